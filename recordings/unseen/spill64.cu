
extern "C" __global__ void __launch_bounds__(512, 4) spill64(const float* a, float* b, int rounds) {
  float v[64]; int t = blockIdx.x * 512 + threadIdx.x, n = gridDim.x * 512;
  #pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = a[(i % 8) * n + t] + i;
  for (int r = 0; r < rounds; ++r) {
    #pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = fmaf(v[(i * 7 + 3) % 64], 0.99f, v[i]);
  }
  float s = 0;
  #pragma unroll
  for (int i = 0; i < 64; ++i) s += v[i] * i;
  b[t] = s;
}