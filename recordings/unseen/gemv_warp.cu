
extern "C" __global__ void gemv_warp(const float* a, const float* x, float* y, int n) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x & 31;
  float s = 0;
  for (int j = lane; j < n; j += 32) s = fmaf(a[(size_t)row * n + j], x[j], s);
  for (int d = 16; d; d >>= 1) s += __shfl_down_sync(~0u, s, d);
  if (!lane) y[row] = s;
}