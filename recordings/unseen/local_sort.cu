
extern "C" __global__ void local_sort(const float* a, float* b) {
  float v[24]; int t = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  for (int i = 0; i < 24; ++i) { float x = a[i * n + t]; int j = i - 1;
    while (j >= 0 && v[j] > x) { v[j + 1] = v[j]; --j; } v[j + 1] = x; }
  for (int i = 0; i < 24; ++i) b[i * n + t] = v[i];
}