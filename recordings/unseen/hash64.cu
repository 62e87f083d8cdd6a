
extern "C" __global__ void hash64(const unsigned long long* x, unsigned long long* y, int rounds) {
  int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned long long h = x[i];
  for (int r = 0; r < rounds; ++r) { h ^= h >> 33; h *= 0xff51afd7ed558ccdULL; h ^= h >> 29; h *= 0xc4ceb9fe1a85ec53ULL; h ^= h >> 32; h += r; }
  y[i] = h;
}