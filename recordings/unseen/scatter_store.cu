
extern "C" __global__ void scatter_store(const int* idx, const float2* a, float2* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) b[idx[i]] = a[i];
}