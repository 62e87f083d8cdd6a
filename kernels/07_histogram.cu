// 07_histogram.cu: how often each byte value occurs, with atomics in shared and then in global memory.
//
//   nvcc -arch=sm_90 -lineinfo -cubin -o histogram.cubin 07_histogram.cu
//   fasim run histogram --n 10000
//
// What it teaches: privatisation. A CTA counts in shared memory, where an atomic is cheap, and adds its 256 counters to the
// global ones once at the end. Lanes that hit the same counter are served one after the other: with few distinct values
// (--spread 4) a warp's atomic takes many wavefronts, with 256 few.
//
// counts [256] u32 is added to, not set. Grid (ceil(n / 2048)), block 256: eight bytes a thread.

constexpr int BINS = 256, THREADS = 256, PER_THREAD = 8;

extern "C" __global__ void __launch_bounds__(THREADS)
histogram(const unsigned char* __restrict__ x, unsigned int* __restrict__ counts, int n) {
    __shared__ unsigned int cta_counts[BINS];
    for (int i = threadIdx.x; i < BINS; i += THREADS) cta_counts[i] = 0;
    __syncthreads();

    //@ COUNT
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        const int index = (blockIdx.x * PER_THREAD + i) * THREADS + threadIdx.x;
        if (index < n) atomicAdd(&cta_counts[x[index]], 1u);
    }
    __syncthreads();

    //@ MERGE
    for (int i = threadIdx.x; i < BINS; i += THREADS) {
        if (cta_counts[i] != 0) atomicAdd(&counts[i], cta_counts[i]);
    }
}
