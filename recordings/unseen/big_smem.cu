
extern "C" __global__ void big_smem(const unsigned* tab, unsigned* out, int rounds) {
  extern __shared__ unsigned s[];
  for (int i = threadIdx.x; i < 40960; i += 512) s[i] = tab[i];
  __syncthreads();
  unsigned v = blockIdx.x * 512 + threadIdx.x;
  for (int r = 0; r < rounds; ++r) v = s[(v * 2654435761u >> 8) % 40960] ^ (v >> 3);
  out[blockIdx.x * 512 + threadIdx.x] = v;
}