
extern "C" __global__ void transpose4(const float4* in, float4* out, int w4, int h4) {
  __shared__ float t[64][65];
  int tx = threadIdx.x, ty = threadIdx.y;
  #pragma unroll
  for (int r = ty; r < 64; r += 16) { float4 v = in[(size_t)(blockIdx.y * 64 + r) * w4 + blockIdx.x * 16 + tx];
    t[r][tx * 4] = v.x; t[r][tx * 4 + 1] = v.y; t[r][tx * 4 + 2] = v.z; t[r][tx * 4 + 3] = v.w; }
  __syncthreads();
  #pragma unroll
  for (int r = ty; r < 64; r += 16)
    out[(size_t)(blockIdx.x * 64 + r) * h4 + blockIdx.y * 16 + tx] = make_float4(t[tx * 4][r], t[tx * 4 + 1][r], t[tx * 4 + 2][r], t[tx * 4 + 3][r]);
}