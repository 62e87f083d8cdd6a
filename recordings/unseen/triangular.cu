
extern "C" __global__ void triangular(const float* a, float* y, int n) {
  int row = blockIdx.x; float s = 0;
  for (int i = 0; i <= row; ++i) s = fmaf(a[i * 128 + threadIdx.x], s, 1.f / (i + 1));
  y[row * 128 + threadIdx.x] = s;
}