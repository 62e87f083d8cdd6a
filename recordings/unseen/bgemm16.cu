
extern "C" __global__ void bgemm16(const float* a, const float* b, float* c) {
  __shared__ float sa[16][17], sb[16][16];
  int x = threadIdx.x, y = threadIdx.y, o = blockIdx.x * 256 + y * 16 + x;
  sa[y][x] = a[o]; sb[y][x] = b[o];
  __syncthreads();
  float s = 0;
  #pragma unroll
  for (int i = 0; i < 16; ++i) s += sa[y][i] * sb[i][x];
  c[o] = s;
}