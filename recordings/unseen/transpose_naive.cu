
extern "C" __global__ void transpose_naive(const float* in, float* out, int n) {
  int x = blockIdx.x * 32 + threadIdx.x;
  for (int j = 0; j < 4; ++j) { int y = blockIdx.y * 32 + threadIdx.y + 8 * j; out[(size_t)x * n + y] = in[(size_t)y * n + x]; }
}