
extern "C" __global__ void few_fat(const float* a, float* b, int n) {
  __shared__ float s[1024];
  float v = 0; 
  for (int i = threadIdx.x; i < n; i += 1024) { s[threadIdx.x] = a[blockIdx.x * n + i] + v; __syncthreads(); v = s[(threadIdx.x * 33 + 1) & 1023] * 0.5f; __syncthreads(); }
  b[blockIdx.x * 1024 + threadIdx.x] = v;
}