
extern "C" __global__ void scan_warp(const int* in, int* out, int* sums) {
  __shared__ int w[32];
  int i = blockIdx.x * 1024 + threadIdx.x, lane = threadIdx.x & 31, v = in[i];
  for (int d = 1; d < 32; d *= 2) { int u = __shfl_up_sync(~0u, v, d); if (lane >= d) v += u; }
  if (lane == 31) w[threadIdx.x >> 5] = v;
  __syncthreads();
  if (threadIdx.x < 32) { int s = w[lane];
    for (int d = 1; d < 32; d *= 2) { int u = __shfl_up_sync(~0u, s, d); if (lane >= d) s += u; } w[lane] = s; }
  __syncthreads();
  if (threadIdx.x >= 32) v += w[(threadIdx.x >> 5) - 1];
  out[i] = v; if (threadIdx.x == 1023) sums[blockIdx.x] = v;
}