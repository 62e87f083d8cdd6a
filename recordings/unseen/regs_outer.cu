
extern "C" __global__ void __launch_bounds__(128) regs_outer(const float4* a, const float4* b, float* c, int kk) {
  float acc[12][12]; 
  #pragma unroll
  for (int i = 0; i < 144; ++i) acc[i / 12][i % 12] = 0;
  int t = blockIdx.x * 128 + threadIdx.x, T = gridDim.x * 128;
  for (int k = 0; k < kk; ++k) { float x[12], y[12];
    #pragma unroll
    for (int i = 0; i < 3; ++i) { *(float4*)(x + 4 * i) = a[(k * 3 + i) * 128 + threadIdx.x]; *(float4*)(y + 4 * i) = b[(k * 3 + i) * 32 + blockIdx.x % 32]; }
    #pragma unroll
    for (int i = 0; i < 144; ++i) acc[i / 12][i % 12] += x[i / 12] * y[i % 12]; }
  float s = 0;
  #pragma unroll
  for (int i = 0; i < 144; ++i) { s += acc[i / 12][i % 12]; if (i % 12 == 11) { c[i / 12 * T + t] = s; s = 0; } }
}