
extern "C" __global__ void reduce_grid(const float4* in, float* out, int n4) {
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n4; i += gridDim.x * blockDim.x) { float4 v = in[i]; s += v.x + v.y + v.z + v.w; }
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
  __shared__ float w[8];
  if (threadIdx.x % 32 == 0) w[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x == 0) { float t = 0; for (int i = 0; i < 8; ++i) t += w[i]; atomicAdd(out, t); }
}