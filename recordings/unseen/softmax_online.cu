
extern "C" __global__ void softmax_online(const float* x, float* y, int n, int rows) {
  int row = blockIdx.x * 4 + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= rows) return;
  const float* r = x + (size_t)row * n; float m = -INFINITY, s = 0;
  for (int i = lane; i < n; i += 32) { float v = r[i], mn = fmaxf(m, v); s = s * __expf(m - mn) + __expf(v - mn); m = mn; }
  for (int d = 16; d; d >>= 1) { float m2 = __shfl_xor_sync(~0u, m, d), q = __shfl_xor_sync(~0u, s, d), mn = fmaxf(m, m2);
    s = s * __expf(m - mn) + q * __expf(m2 - mn); m = mn; }
  for (int i = lane; i < n; i += 32) y[(size_t)row * n + i] = __expf(r[i] - m) / s;
}