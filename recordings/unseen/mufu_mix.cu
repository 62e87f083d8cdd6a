
extern "C" __global__ void mufu_mix(const float* x, float* y, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; float v = x[i];
  for (int r = 0; r < rounds; ++r) { float a = __sinf(v), b = __expf(-v * v), c = rsqrtf(fabsf(v) + 1.f); v = tanhf(a + b * c) + __logf(1.f + c); }
  y[i] = v;
}