
#include <cuda_fp16.h>
extern "C" __global__ void gelu_h8(const uint4* x, uint4* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  uint4 v = x[i]; half2* h = (half2*)&v;
  #pragma unroll
  for (int j = 0; j < 4; ++j) { float2 f = __half22float2(h[j]);
    f.x = 0.5f * f.x * (1.f + tanhf(0.79788456f * (f.x + 0.044715f * f.x * f.x * f.x))); f.y = 0.5f * f.y * (1.f + erff(f.y * 0.70710678f));
    h[j] = __floats2half2_rn(f.x, f.y); }
  y[i] = v;
}