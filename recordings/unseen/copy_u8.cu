
extern "C" __global__ void copy_u8(const unsigned char* a, unsigned char* b, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) b[i] = a[i];
}