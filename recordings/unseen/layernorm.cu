
extern "C" __global__ void layernorm(const float* x, const float* g, const float* b, float* y, int n) {
  __shared__ float s1[8], s2[8];
  const float* r = x + (size_t)blockIdx.x * n; float a = 0, q = 0;
  for (int i = threadIdx.x; i < n; i += 256) { float v = r[i]; a += v; q += v * v; }
  for (int d = 16; d; d >>= 1) { a += __shfl_xor_sync(~0u, a, d); q += __shfl_xor_sync(~0u, q, d); }
  if (threadIdx.x % 32 == 0) { s1[threadIdx.x / 32] = a; s2[threadIdx.x / 32] = q; }
  __syncthreads();
  a = 0; q = 0;
  for (int i = 0; i < 8; ++i) { a += s1[i]; q += s2[i]; }
  float mu = a / n, rs = rsqrtf(q / n - mu * mu + 1e-5f);
  for (int i = threadIdx.x; i < n; i += 256) y[(size_t)blockIdx.x * n + i] = (r[i] - mu) * rs * g[i] + b[i];
}