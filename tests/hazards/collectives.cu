// Barriers that not everybody reaches, and warp operations with lanes that do not come.
#define BAR_SYNC(id, n) asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(n) : "memory")

// ---- barriers
extern "C" __global__ void half_a_warp(const int *in, int *out) {
    int t = threadIdx.x;
    if ((t & 31) < 16) __syncthreads();                             // @B
    out[t] = in[t];
}
extern "C" __global__ void half_a_warp_fixed(const int *in, int *out) {
    int t = threadIdx.x;
    if ((t & 31) < 16) out[t] = 1;
    __syncthreads();
    out[t] += in[t];
}
extern "C" __global__ void one_lane(const int *in, int *out) {
    int t = threadIdx.x;
    if (t == 0) __syncthreads();                                    // @B
    out[t] = in[t];
}
extern "C" __global__ void half_the_cta(const int *in, int *out) {
    int t = threadIdx.x;
    if (t < 32) __syncthreads();                                    // @B
    out[t] = in[t];
}
extern "C" __global__ void two_places_in_a_warp(const int *in, int *out) {
    int t = threadIdx.x;
    if ((t & 31) < 16) {
        __syncthreads();                                            // @A
        out[t] = in[t];
    } else {
        __syncthreads();                                            // @B
        out[t] = in[t] + 1;
    }
}
extern "C" __global__ void two_places_of_warps(const int *in, int *out) {
    int t = threadIdx.x;
    if (t < 32) {
        __syncthreads();                                            // @A
        out[t] = in[t];
    } else {
        __syncthreads();                                            // @B
        out[t] = in[t] + 1;
    }
}
extern "C" __global__ void more_rounds_in_one_warp(const int *in, int *out) {
    int t = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < 2 + (t >> 5); i++) __syncthreads();         // @A
    out[t] = in[t];
}
extern "C" __global__ void exit_after_barrier(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    if (t >= 40) return;
    out[t] = s[63 - t];
}
extern "C" __global__ void warp_exits_before_barrier(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t >= 64) return;
    s[t] = in[t];
    __syncthreads();                                                // @B
    out[t] = s[63 - t];
}
extern "C" __global__ void lanes_exit_before_barrier(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t >= 48) return;
    s[t] = in[t];
    __syncthreads();                                                // @B
    out[t] = s[47 - t];
}
extern "C" __global__ void tail_loop_barrier(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
#pragma unroll 1
    for (int i = t; i < 100; i += 64) {
        s[t] = in[i];
        __syncthreads();                                            // @B
        out[i] = s[t];
    }
}

// ---- what never ends
extern "C" __global__ void different_barriers(int *out) {
    if (threadIdx.x < 32) BAR_SYNC(1, 64);                          // @A
    else BAR_SYNC(2, 64);                                           // @B
    out[threadIdx.x] = 1;
}
extern "C" __global__ void different_barriers_fixed(int *out) {
    if (threadIdx.x < 32) BAR_SYNC(1, 64);
    else BAR_SYNC(1, 64);
    out[threadIdx.x] = 1;
}
// 96 threads: the last warp does not come.
extern "C" __global__ void different_counts(int *out) {
    if (threadIdx.x < 32) BAR_SYNC(1, 96);                          // @A
    else if (threadIdx.x < 64) BAR_SYNC(1, 64);                     // @B
    out[threadIdx.x] = 1;
}
extern "C" __global__ void count_too_high(int *out) {
    if (threadIdx.x < 64) BAR_SYNC(1, 96);                          // @A
    out[threadIdx.x] = 1;
}
extern "C" __global__ void count_too_high_fixed(int *out) {
    if (threadIdx.x < 64) BAR_SYNC(1, 64);
    out[threadIdx.x] = 1;
}
extern "C" __global__ void shuffle_against_barrier(int *out) {
    int t = threadIdx.x, v = t;
    if (t < 16) v = __shfl_sync(0xffffffffu, t, 3);                 // @S
    else BAR_SYNC(1, 32);                                           // @B
    out[t] = v;
}
extern "C" __global__ void flag_never_set(int *out) {
    __shared__ volatile int ready;
    if (threadIdx.x == 0) ready = 0;
    __syncthreads();
    while (ready == 0) {}                                           // @L
    out[threadIdx.x] = 1;
}
extern "C" __global__ void lock_never_released(int *out) {
    __shared__ int mutex;
    if (threadIdx.x == 0) mutex = 0;
    __syncthreads();
    if ((threadIdx.x & 31) == 0) {
        while (atomicCAS(&mutex, 0, 1) != 0) {}                     // @L
        out[threadIdx.x] = 1;
    }
}

// ---- lanes that are named and do not come (32 threads)
extern "C" __global__ void shuffle_absent(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 16) v = __shfl_sync(0xffffffffu, v, 3);                 // @S
    out[t] = v + in[t + 1];
}
extern "C" __global__ void shuffle_absent_fixed(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 16) v = __shfl_sync(0x0000ffffu, v, 3);
    out[t] = v + in[t + 1];
}
extern "C" __global__ void vote_absent(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t & 1) v = __ballot_sync(0xffffffffu, v > 8);               // @S
    out[t] = v + in[t + 1];
}
extern "C" __global__ void vote_absent_fixed(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t & 1) v = __ballot_sync(0xaaaaaaaau, v > 8);
    out[t] = v + in[t + 1];
}
extern "C" __global__ void match_absent(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 8) v = __match_any_sync(0x000fffffu, v & 3);            // @S
    out[t] = v + in[t + 1];
}
extern "C" __global__ void match_absent_fixed(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 8) v = __match_any_sync(0x000000ffu, v & 3);
    out[t] = v + in[t + 1];
}
extern "C" __global__ void reduce_absent(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 24) v = __reduce_add_sync(0xffffffffu, v);              // @S
    out[t] = v + in[t + 1];
}
extern "C" __global__ void reduce_absent_fixed(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 24) v = __reduce_add_sync(0x00ffffffu, v);
    out[t] = v + in[t + 1];
}
extern "C" __global__ void both_branches(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 16) v = __shfl_xor_sync(0x0000ffffu, v, 1);
    else v = __shfl_xor_sync(0xffff0000u, v, 2) * 2;
    out[t] = v;
}

// ---- sources outside the mask
extern "C" __global__ void source_outside(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 16) {
        v = __shfl_sync(0x0000ffffu, v, 20);                        // @S
        out[t] = v;                                                 // @O
    }
}
extern "C" __global__ void source_outside_fixed(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 16) {
        v = __shfl_sync(0x0000ffffu, v, 12);
        out[t] = v;
    }
}
// The sum of 16 lanes: the lower lanes never use what comes from outside.
extern "C" __global__ void source_outside_unused(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    if (t < 16) {
        for (int d = 8; d > 0; d >>= 1) v += __shfl_down_sync(0x0000ffffu, v, d);
        if (t == 0) out[0] = v;
    }
}

// ---- tail warps (48 threads: the second warp has 16 lanes)
extern "C" __global__ void tail_warp(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    unsigned mask = t < 32 ? 0xffffffffu : 0x0000ffffu;
    for (int d = t < 32 ? 16 : 8; d > 0; d >>= 1) v += __shfl_xor_sync(mask, v, d);
    if ((t & 31) == 0) out[t >> 5] = v;
}
extern "C" __global__ void tail_warp_full_mask(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    for (int d = 8; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
    out[t] = v;
}
extern "C" __global__ void tail_warp_reads_beyond(const int *in, int *out) {
    int t = threadIdx.x, v = in[t];
    for (int d = 16; d > 0; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);   // @S
    if ((t & 31) == 0) out[t >> 5] = v;                             // @O
}
extern "C" __global__ void tail_warp_shared(const int *in, int *out) {
    __shared__ int s[48];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[47 - t];
}

// ---- an index below the array
extern "C" __global__ void negative_index(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[t - 1];                                              // @X
}
extern "C" __global__ void negative_index_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[t] = t > 0 ? s[t - 1] : 0;
}
