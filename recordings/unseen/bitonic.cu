
extern "C" __global__ void bitonic(unsigned* d) {
  __shared__ unsigned s[2048];
  unsigned* p = d + blockIdx.x * 2048;
  s[threadIdx.x] = p[threadIdx.x]; s[threadIdx.x + 1024] = p[threadIdx.x + 1024];
  for (int size = 2; size <= 2048; size *= 2)
    for (int st = size / 2; st > 0; st /= 2) { __syncthreads();
      int pos = 2 * threadIdx.x - (threadIdx.x & (st - 1)); unsigned a = s[pos], b = s[pos + st];
      bool up = (pos & size) == 0;
      if ((a > b) == up) { s[pos] = b; s[pos + st] = a; } }
  __syncthreads();
  p[threadIdx.x] = s[threadIdx.x]; p[threadIdx.x + 1024] = s[threadIdx.x + 1024];
}