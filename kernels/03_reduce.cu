// 03_reduce.cu: sums of 1024 neighbouring floats each, with shuffles inside the warp and shared memory between warps.
//
//   nvcc -arch=sm_90 -lineinfo -cubin -o reduce.cubin 03_reduce.cu
//   fasim run reduce --n 5000
//
// What it teaches: the three levels of a reduction. A thread adds its own four elements in registers; a warp adds its 32
// lanes with five shuffles, no memory and no barrier; the eight warps of a CTA meet in eight words of shared memory. The
// order of the additions is fixed, so the result is the same in every run.
//
// partial[c] = sum of x[1024 c .. 1024 c + 1023], cut off at n. Grid (ceil(n / 1024)), block 256.

constexpr int THREADS = 256, WARPS = THREADS / 32, PER_THREAD = 4;

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int offset = 16; offset > 0; offset /= 2) x = __fadd_rn(x, __shfl_down_sync(0xffffffffu, x, offset));
    return x;                                   // complete in lane 0
}

extern "C" __global__ void __launch_bounds__(THREADS) reduce(const float* __restrict__ x, float* __restrict__ partial, int n) {
    __shared__ float warp_sums[WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    //@ THREAD
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < PER_THREAD; i++) {
        const int index = (blockIdx.x * PER_THREAD + i) * THREADS + threadIdx.x;
        if (index < n) sum = __fadd_rn(sum, x[index]);
    }

    //@ WARP
    sum = warp_sum(sum);
    if (lane == 0) warp_sums[warp] = sum;
    __syncthreads();

    //@ CTA
    if (warp == 0) {
        sum = warp_sum(lane < WARPS ? warp_sums[lane] : 0.0f);
        if (lane == 0) partial[blockIdx.x] = sum;
    }
}
