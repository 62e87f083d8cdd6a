
extern "C" __global__ void scatter_atomic(const int* idx, const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) atomicAdd(b + idx[i], a[i]);
}