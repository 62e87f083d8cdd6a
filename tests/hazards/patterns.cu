// Whole algorithms with a barrier forgotten, and as they should be.

// Sum over a block of 256: warps by shuffles, then over the warps' sums.
__device__ __forceinline__ int warp_sum(int x) {
#pragma unroll
    for (int d = 16; d > 0; d >>= 1) x += __shfl_xor_sync(0xffffffffu, x, d);
    return x;
}
extern "C" __global__ void block_sum(const int *in, int *out) {
    __shared__ int s[8];
    int t = threadIdx.x, x = warp_sum(in[t]);
    if ((t & 31) == 0) s[t >> 5] = x;     // @W
    if (t < 32) {
        x = t < 8 ? s[t] : 0;             // @R
        x = warp_sum(x);
        if (t == 0) out[0] = x;
    }
}
extern "C" __global__ void block_sum_fixed(const int *in, int *out) {
    __shared__ int s[8];
    int t = threadIdx.x, x = warp_sum(in[t]);
    if ((t & 31) == 0) s[t >> 5] = x;
    __syncthreads();
    if (t < 32) {
        x = t < 8 ? s[t] : 0;
        x = warp_sum(x);
        if (t == 0) out[0] = x;
    }
}

// Sum over a block of 128 as a tree in shared memory.
extern "C" __global__ void tree_sum(const int *in, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
#pragma unroll 1
    for (int d = 64; d > 0; d >>= 1)
        if (t < d) s[t] += s[t + d];      // @A
    if (t == 0) out[0] = s[0];
}
extern "C" __global__ void tree_sum_fixed(const int *in, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
#pragma unroll 1
    for (int d = 64; d > 0; d >>= 1) {
        if (t < d) s[t] += s[t + d];
        __syncthreads();
    }
    if (t == 0) out[0] = s[0];
}

// Two buffers: one barrier an iteration is enough, none is not.
extern "C" __global__ void double_buffer(const int *in, int *out) {
    __shared__ int s[2][64];
    int t = threadIdx.x, sum = 0;
    s[0][t] = in[t];
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        if (i < 3) s[(i + 1) & 1][t] = in[(i + 1) * 64 + t];        // @W
        sum += s[i & 1][t ^ 32];                                    // @R
    }
    out[t] = sum;
}
extern "C" __global__ void double_buffer_fixed(const int *in, int *out) {
    __shared__ int s[2][64];
    int t = threadIdx.x, sum = 0;
    s[0][t] = in[t];
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        if (i < 3) s[(i + 1) & 1][t] = in[(i + 1) * 64 + t];
        sum += s[i & 1][t ^ 32];
        __syncthreads();
    }
    out[t] = sum;
}

// Transpose of 32x32 by 32x8 threads.
extern "C" __global__ void transpose(const int *in, int *out) {
    __shared__ int s[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    for (int k = 0; k < 32; k += 8) s[y + k][x] = in[(y + k) * 32 + x];       // @W
    for (int k = 0; k < 32; k += 8) out[(y + k) * 32 + x] = s[x][y + k];      // @R
}
extern "C" __global__ void transpose_fixed(const int *in, int *out) {
    __shared__ int s[32][33];
    int x = threadIdx.x, y = threadIdx.y;
    for (int k = 0; k < 32; k += 8) s[y + k][x] = in[(y + k) * 32 + x];
    __syncthreads();
    for (int k = 0; k < 32; k += 8) out[(y + k) * 32 + x] = s[x][y + k];
}

// Inclusive scan of 64 numbers after Hillis and Steele: two barriers a step.
extern "C" __global__ void scan(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
#pragma unroll 1
    for (int d = 1; d < 64; d *= 2) {
        int v = 0;
        if (t >= d) v = s[t - d];         // @R
        __syncthreads();
        s[t] += v;                        // @W
    }
    out[t] = s[t];
}
extern "C" __global__ void scan_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
#pragma unroll 1
    for (int d = 1; d < 64; d *= 2) {
        int v = 0;
        if (t >= d) v = s[t - d];
        __syncthreads();
        s[t] += v;
        __syncthreads();
    }
    out[t] = s[t];
}

// Bitonic sort of 64 numbers: a thread of every pair compares and exchanges.
extern "C" __global__ void bitonic(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = (in[t] * 37 + 11) & 63;
    __syncthreads();
#pragma unroll 1
    for (int k = 2; k <= 64; k *= 2)
#pragma unroll 1
        for (int j = k / 2; j > 0; j /= 2) {
            int p = t ^ j;
            if (p > t) {
                int a = s[t], b = s[p];                             // @R
                bool up = (t & k) == 0;
                s[t] = up ? min(a, b) : max(a, b);                  // @LOW
                s[p] = up ? max(a, b) : min(a, b);                  // @HIGH
            }
        }
    __syncthreads();
    out[t] = s[t];
}
extern "C" __global__ void bitonic_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = (in[t] * 37 + 11) & 63;
    __syncthreads();
#pragma unroll 1
    for (int k = 2; k <= 64; k *= 2)
#pragma unroll 1
        for (int j = k / 2; j > 0; j /= 2) {
            int p = t ^ j;
            if (p > t) {
                int a = s[t], b = s[p];
                bool up = (t & k) == 0;
                s[t] = up ? min(a, b) : max(a, b);
                s[p] = up ? max(a, b) : min(a, b);
            }
            __syncthreads();
        }
    out[t] = s[t];
}

// Histogram of 256 values by 256 threads: every value falls into a bin that another warp cleared.
extern "C" __global__ void histogram(const int *in, int *out) {
    __shared__ int bins[256];
    int t = threadIdx.x;
    bins[t] = 0;                                                    // @Z
    atomicAdd(&bins[255 - (in[t] & 255)], 1);                       // @A
    __syncthreads();
    out[t] = bins[t];
}
extern "C" __global__ void histogram_fixed(const int *in, int *out) {
    __shared__ int bins[256];
    int t = threadIdx.x;
    bins[t] = 0;
    __syncthreads();
    atomicAdd(&bins[255 - (in[t] & 255)], 1);
    __syncthreads();
    out[t] = bins[t];
}
extern "C" __global__ void histogram_without_atomics(const int *in, int *out) {
    __shared__ int bins[32];
    int t = threadIdx.x;
    if (t < 32) bins[t] = 0;
    __syncthreads();
    bins[in[t] & 31] += 1;                                          // @I
    __syncthreads();
    out[t] = bins[t & 31];
}

// Stencil of three points with a halo.
extern "C" __global__ void stencil(const int *in, int *out) {
    __shared__ int s[66];
    int t = threadIdx.x;
    s[t + 1] = in[t + 1];                                           // @W
    if (t == 0) s[0] = in[0];
    if (t == 63) s[65] = in[65];
    int left = s[t], right = s[t + 2];                              // @R
    out[t] = left + right;
}
extern "C" __global__ void stencil_fixed(const int *in, int *out) {
    __shared__ int s[66];
    int t = threadIdx.x;
    s[t + 1] = in[t + 1];
    if (t == 0) s[0] = in[0];
    if (t == 63) s[65] = in[65];
    __syncthreads();
    int left = s[t], right = s[t + 2];
    out[t] = left + right;
}
