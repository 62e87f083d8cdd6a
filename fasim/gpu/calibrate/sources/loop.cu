// One loop: $name. Written once for each number of statements in it, so that what stands around them cancels.
extern "C" __global__ void $name(unsigned long long* out, const unsigned* in, unsigned iterations, unsigned parameter) {
  const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
$setup
#pragma unroll 1
  for (unsigned repetition = 0; repetition < REPETITIONS; ++repetition) {
    unsigned long long begin, end;
    // before the barrier: behind it a warp may read the clock of its arrival, or be kept from reading by others that are let go
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(begin)::"memory");
    __syncthreads();
#pragma unroll 1
    for (unsigned iteration = 0; iteration < iterations; ++iteration) {
$body
    }
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(end)::"memory");
    if (lane == 0) {
      out[2 * (repetition * warps + warp)] = begin;
      out[2 * (repetition * warps + warp) + 1] = end;
    }
  }
  // never so; the compiler does not know
  if (iterations == 0xffffffff) {
$keep
  }
}
