
extern "C" __global__ void persistent_csr(const int* ptr, const int* col, const float* val, const float* x, float* y, int rows) {
  int lane = threadIdx.x & 31;
  for (int r = (blockIdx.x * blockDim.x + threadIdx.x) / 32; r < rows; r += gridDim.x * blockDim.x / 32) {
    float s = 0; for (int j = ptr[r] + lane; j < ptr[r + 1]; j += 32) s += val[j] * x[col[j]];
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    if (!lane) y[r] = s;
  }
}