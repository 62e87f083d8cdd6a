
extern "C" __global__ void libm(const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; float v = x[i] * 10.f;
  y[i] = sinf(v) + powf(fabsf(v), 1.7f) + erff(v) + cbrtf(v) / (1.f + log1pf(v * v));
}