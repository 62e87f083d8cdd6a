
extern "C" __global__ void copy_v4_dram(const uint4* a, uint4* b, int n) {
  int i = blockIdx.x * 1024 + threadIdx.x;
  #pragma unroll
  for (int j = 0; j < 4; ++j) if (i + 256 * j < n) b[i + 256 * j] = a[i + 256 * j];
}