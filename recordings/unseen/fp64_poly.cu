
extern "C" __global__ void fp64_poly(const double* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
  double v = x[i], s = 1.0;
  for (int k = 0; k < 64; ++k) s = s * v + 1.0 / (k + 1);
  y[i] = sqrt(s * s + 1.0) / (1.0 + v * v);
}