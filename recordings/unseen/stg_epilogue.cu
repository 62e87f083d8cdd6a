
extern "C" __global__ void stg_epilogue(float2* out, int pitch2, float s) {
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float x = s + threadIdx.x;
  for (int r = 0; r < 16; ++r)
    #pragma unroll
    for (int j = 0; j < 8; ++j) {
      int row = blockIdx.x * 128 + warp * 16 + (r & 1) * 8 + lane / 4, col = (r >> 1) * 32 + j * 4 + lane % 4;
      out[(size_t)row * pitch2 + col] = make_float2(x * j, x + r);
    }
}