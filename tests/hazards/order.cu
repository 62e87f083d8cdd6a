// Order without __syncthreads: named barriers, fences with flags, locks, tickets. 64 threads.
#define BAR_SYNC(id, n) asm volatile("bar.sync %0, %1;" ::"n"(id), "n"(n) : "memory")
#define BAR_ARRIVE(id, n) asm volatile("bar.arrive %0, %1;" ::"n"(id), "n"(n) : "memory")

// Warp 0 produces, warp 1 consumes: barrier 1 says "full", barrier 2 says "empty".
extern "C" __global__ void producer_consumer(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        if (t < 32) {
            if (i > 0) BAR_SYNC(2, 64);
            s[t] = in[i * 32 + t];
            BAR_ARRIVE(1, 64);
        } else {
            BAR_SYNC(1, 64);
            sum += s[63 - t];
            if (i < 3) BAR_ARRIVE(2, 64);
        }
    }
    if (t >= 32) out[t] = sum;
}
// Nobody says "empty".
extern "C" __global__ void producer_does_not_wait(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        if (t < 32) s[t] = in[i * 32 + t];                          // @W
        BAR_SYNC(1, 64);
        if (t >= 32) sum += s[63 - t];                              // @R
    }
    if (t >= 32) out[t] = sum;
}
// The consumer arrives where it should wait.
extern "C" __global__ void consumer_does_not_wait(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) {
        s[t] = in[t];                                               // @W
        BAR_SYNC(1, 64);
    } else {
        BAR_ARRIVE(1, 64);
        out[t] = s[63 - t];                                         // @R
    }
}
// Each pair of warps has a barrier of its own (128 threads).
extern "C" __global__ void pairs_of_warps(const int *in, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];
    if (t < 64) BAR_SYNC(1, 64);
    else BAR_SYNC(2, 64);
    out[t] = s[t ^ 32];
}
extern "C" __global__ void pairs_read_across(const int *in, int *out) {
    __shared__ int s[128];
    int t = threadIdx.x;
    s[t] = in[t];                                                   // @W
    if (t < 64) BAR_SYNC(1, 64);
    else BAR_SYNC(2, 64);
    out[t] = s[t ^ 64];                                             // @R
}

// The votes of __syncthreads_or and its kin are barriers, too.
extern "C" __global__ void voting_barriers(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    int any = __syncthreads_or(in[t] == 5);
    int v = s[63 - t];
    int count = __syncthreads_count(v > 10);
    s[t] = v + any + count;
    int all = __syncthreads_and(v >= 0);
    out[t] = s[63 - t] + all;
}

// A flag in shared memory with fences on both sides.
extern "C" __global__ void flag(const int *in, int *out) {
    __shared__ int s[32];
    __shared__ volatile int ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        s[t] = in[t];
        __syncwarp();
        __threadfence_block();
        if (t == 0) ready = 1;
    } else {
        while (ready == 0) {}
        __threadfence_block();
        out[t] = s[63 - t];
    }
}
extern "C" __global__ void flag_without_fences(const int *in, int *out) {
    __shared__ volatile int s[32];
    __shared__ volatile int ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        s[t] = in[t];
        __syncwarp();
        if (t == 0) ready = 1;
    } else {
        while (ready == 0) {}
        out[t] = s[63 - t];
    }
}
extern "C" __global__ void plain_data_without_fences(const int *in, int *out) {
    __shared__ int s[32];
    __shared__ volatile int ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        s[t] = in[t];                                               // @W
        __syncwarp();
        if (t == 0) ready = 1;
    } else {
        while (ready == 0) {}
        out[t] = s[63 - t];                                         // @R
    }
}
extern "C" __global__ void atomic_flag(const int *in, int *out) {
    __shared__ int s[32];
    __shared__ int ready;
    int t = threadIdx.x;
    if (t == 0) ready = 0;
    __syncthreads();
    if (t < 32) {
        s[t] = in[t];
        __threadfence_block();
        atomicAdd(&ready, 1);
    } else {
        while (atomicAdd(&ready, 0) < 32) {}
        __threadfence_block();
        out[t] = s[63 - t];
    }
}

// A lock that one lane of each warp takes.
extern "C" __global__ void lock(const int *in, int *out) {
    __shared__ int mutex, total;
    int t = threadIdx.x;
    if (t == 0) { mutex = 0; total = 0; }
    __syncthreads();
    if ((t & 31) == 0) {
        while (atomicCAS(&mutex, 0, 1) != 0) {}
        __threadfence_block();
        total += in[t + 1];
        __threadfence_block();
        atomicExch(&mutex, 0);
    }
    __syncthreads();
    out[t] = total;
}
extern "C" __global__ void lock_without_fences(const int *in, int *out) {
    __shared__ int mutex, total;
    int t = threadIdx.x;
    if (t == 0) { mutex = 0; total = 0; }
    __syncthreads();
    if ((t & 31) == 0) {
        while (atomicCAS(&mutex, 0, 1) != 0) {}
        total += in[t + 1];                                         // @I
        atomicExch(&mutex, 0);
    }
    __syncthreads();
    out[t] = total;
}
extern "C" __global__ void no_lock(const int *in, int *out) {
    __shared__ int total;
    int t = threadIdx.x;
    if (t == 0) total = 0;
    __syncthreads();
    if ((t & 31) == 0) total += in[t + 1];                          // @I
    __syncthreads();
    out[t] = total;
}
// Every lane takes the lock: possible since lanes make progress on their own.
extern "C" __global__ void lock_of_lanes(const int *in, int *out) {
    __shared__ int mutex, total;
    int t = threadIdx.x;
    if (t == 0) { mutex = 0; total = 0; }
    __syncthreads();
    for (bool done = false; !done;) {
        if (atomicCAS(&mutex, 0, 1) == 0) {
            __threadfence_block();
            total += in[t];
            __threadfence_block();
            atomicExch(&mutex, 0);
            done = true;
        }
    }
    __syncthreads();
    out[t] = total;
}

// The warp that draws the last ticket adds up what all left behind (128 threads).
extern "C" __global__ void last_ticket(const int *in, int *out) {
    __shared__ int s[4], tickets;
    int t = threadIdx.x;
    if (t == 0) tickets = 0;
    __syncthreads();
    if ((t & 31) == 0) {
        s[t >> 5] = in[t];
        __threadfence_block();
        if (atomicAdd(&tickets, 1) == 3) {
            __threadfence_block();
            out[0] = s[0] + s[1] + s[2] + s[3];
        }
    }
}
extern "C" __global__ void last_ticket_without_fences(const int *in, int *out) {
    __shared__ int s[4], tickets;
    int t = threadIdx.x;
    if (t == 0) tickets = 0;
    __syncthreads();
    if ((t & 31) == 0) {
        s[t >> 5] = in[t];                                          // @W
        if (atomicAdd(&tickets, 1) == 3) {
            out[0] = s[0] + s[1] + s[2] + s[3];                     // @R
        }
    }
}
