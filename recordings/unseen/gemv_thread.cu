
extern "C" __global__ void gemv_thread(const float* a, const float* x, float* y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x; float s = 0;
  for (int j = 0; j < n; ++j) s += a[(size_t)row * n + j] * x[j];
  y[row] = s;
}