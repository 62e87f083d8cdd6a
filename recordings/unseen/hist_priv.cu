
extern "C" __global__ void hist_priv(const unsigned* in, unsigned* out, int n4) {
  __shared__ unsigned h[8][256];
  for (int i = threadIdx.x; i < 2048; i += 256) (&h[0][0])[i] = 0;
  __syncthreads();
  unsigned* m = h[threadIdx.x / 32];
  for (int i = blockIdx.x * 256 + threadIdx.x; i < n4; i += gridDim.x * 256) { unsigned v = in[i];
    atomicAdd(m + (v & 255), 1); atomicAdd(m + (v >> 8 & 255), 1); atomicAdd(m + (v >> 16 & 255), 1); atomicAdd(m + (v >> 24), 1); }
  __syncthreads();
  unsigned s = 0; for (int i = 0; i < 8; ++i) s += h[i][threadIdx.x];
  if (s) atomicAdd(out + threadIdx.x, s);
}