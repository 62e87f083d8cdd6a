// cp.async in raw PTX and by the __pipeline_* intrinsics. 64 threads; a copy brings one int unless it says otherwise.
#include <cuda_pipeline.h>
#define SMEM(p) ((unsigned)__cvta_generic_to_shared(p))
#define COPY(d, s) asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(SMEM(d)), "l"(s) : "memory")
#define COPY16(d, s, n) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SMEM(d)), "l"(s), "r"(n) : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(n) asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory")
#define WAIT_ALL() asm volatile("cp.async.wait_all;" ::: "memory")

// ---- read before the wait
extern "C" __global__ void no_wait(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);                  // @C
    COMMIT();
    __syncthreads();
    out[t] = s[t ^ 32];                   // @R
    WAIT(0);
}
extern "C" __global__ void no_wait_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);
    COMMIT();
    WAIT(0);
    __syncthreads();
    out[t] = s[t ^ 32];
}
extern "C" __global__ void pipeline_no_wait(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], in + t, 4);                      // @C
    __pipeline_commit();
    __syncthreads();
    out[t] = s[t ^ 32];                   // @R
    __pipeline_wait_prior(0);
}
extern "C" __global__ void pipeline_no_wait_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], in + t, 4);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = s[t ^ 32];
}

// ---- waited for, but not by those who read
extern "C" __global__ void wait_without_barrier(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);                  // @C
    WAIT_ALL();
    out[t] = s[t ^ 32];                   // @R
}
extern "C" __global__ void wait_without_barrier_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);
    WAIT_ALL();
    __syncthreads();
    out[t] = s[t ^ 32];
}
// The barrier stands before the wait.
extern "C" __global__ void barrier_before_wait(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], in + t, 4);                      // @C
    __pipeline_commit();
    __syncthreads();
    __pipeline_wait_prior(0);
    out[t] = s[t ^ 32];                   // @R
}
extern "C" __global__ void wait_without_syncwarp(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);                  // @C
    WAIT_ALL();
    out[t] = s[t ^ 1];                    // @R
}
extern "C" __global__ void wait_without_syncwarp_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);
    WAIT_ALL();
    __syncwarp();
    out[t] = s[t ^ 1];
}
extern "C" __global__ void own_copy(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);
    COMMIT();
    WAIT(0);
    out[t] = s[t];
}

// ---- group counts
extern "C" __global__ void one_group_too_few(const int *in, int *out) {
    __shared__ int a[64], b[64];
    int t = threadIdx.x;
    COPY(&a[t], in + t);
    COMMIT();
    COPY(&b[t], in + 64 + t);             // @C
    COMMIT();
    WAIT(1);
    __syncthreads();
    out[t] = a[t ^ 32];
    out[64 + t] = b[t ^ 32];              // @R
    WAIT(0);
}
extern "C" __global__ void one_group_too_few_fixed(const int *in, int *out) {
    __shared__ int a[64], b[64];
    int t = threadIdx.x;
    COPY(&a[t], in + t);
    COMMIT();
    COPY(&b[t], in + 64 + t);
    COMMIT();
    WAIT(1);
    __syncthreads();
    out[t] = a[t ^ 32];
    WAIT(0);
    __syncthreads();
    out[64 + t] = b[t ^ 32];
}
extern "C" __global__ void pipeline_one_group_too_few(const int *in, int *out) {
    __shared__ int s[2][64];
    int t = threadIdx.x, sum = 0;
    __pipeline_memcpy_async(&s[0][t], in + t, 4);
    __pipeline_commit();
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        if (i < 3) __pipeline_memcpy_async(&s[(i + 1) & 1][t], in + (i + 1) * 64 + t, 4);   // @C
        if (i < 3) __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += s[i & 1][t ^ 32];          // @R
        __syncthreads();
    }
    __pipeline_wait_prior(0);
    out[t] = sum;
}
extern "C" __global__ void pipeline_one_group_too_few_fixed(const int *in, int *out) {
    __shared__ int s[2][64];
    int t = threadIdx.x, sum = 0;
    __pipeline_memcpy_async(&s[0][t], in + t, 4);
    __pipeline_commit();
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        if (i < 3) __pipeline_memcpy_async(&s[(i + 1) & 1][t], in + (i + 1) * 64 + t, 4);
        __pipeline_commit();
        __pipeline_wait_prior(1);
        __syncthreads();
        sum += s[i & 1][t ^ 32];
        __syncthreads();
    }
    out[t] = sum;
}

// ---- the commit comes after the wait
extern "C" __global__ void commit_after_wait(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);                  // @C
    WAIT(0);
    COMMIT();
    __syncthreads();
    out[t] = s[t ^ 32];                   // @R
    WAIT(0);
}
extern "C" __global__ void pipeline_commit_after_wait(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    __pipeline_memcpy_async(&s[t], in + t, 4);                      // @C
    __pipeline_wait_prior(0);
    __pipeline_commit();
    __syncthreads();
    out[t] = s[t ^ 32];                   // @R
    __pipeline_wait_prior(0);
}
// wait_all needs no commit.
extern "C" __global__ void wait_all_without_commit(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);
    WAIT_ALL();
    __syncthreads();
    out[t] = s[t ^ 32];
}

// ---- a copy into what others still read
extern "C" __global__ void copied_over(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    int v = s[t ^ 32];                    // @R
    COPY(&s[t], in + 64 + t);             // @C
    WAIT_ALL();
    __syncthreads();
    out[t] = v + s[t ^ 32];
}
extern "C" __global__ void copied_over_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    int v = s[t ^ 32];
    __syncthreads();
    COPY(&s[t], in + 64 + t);
    WAIT_ALL();
    __syncthreads();
    out[t] = v + s[t ^ 32];
}
// A plain store into what a copy of the same thread is still to fill.
extern "C" __global__ void stored_under_a_copy(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);                  // @C
    if (t >= 48) s[t] = 0;                // @S
    WAIT_ALL();
    __syncthreads();
    out[t] = s[t ^ 32];
}
extern "C" __global__ void stored_under_a_copy_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) COPY(&s[t], in + t);
    else s[t] = 0;
    WAIT_ALL();
    __syncthreads();
    out[t] = s[t ^ 32];
}
// Two copies of different threads into one place.
extern "C" __global__ void two_copies(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    COPY(&s[t & 31], in + t);             // @C
    WAIT_ALL();
    __syncthreads();
    out[t] = s[t & 31];
}

// ---- nobody waits at all
extern "C" __global__ void never_waited(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);                  // @C
    COMMIT();
    out[t] = in[t];
}
extern "C" __global__ void never_committed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    COPY(&s[t], in + t);                  // @C
    WAIT(0);
    out[t] = in[t];
}

// ---- zero fill: what src-size leaves out arrives as zeros, and is initialised
extern "C" __global__ void zero_filled(const int *in, int *out) {
    __shared__ __align__(16) int s[64];
    int t = threadIdx.x;
    if (t < 16) COPY16(&s[4 * t], in + 4 * t, t < 12 ? 16 : t < 14 ? 4 : 0);
    WAIT_ALL();
    __syncthreads();
    out[t] = s[t];
}
extern "C" __global__ void tail_not_copied(const int *in, int *out) {
    __shared__ __align__(16) int s[64];
    int t = threadIdx.x;
    if (t < 12) COPY16(&s[4 * t], in + 4 * t, 16);
    WAIT_ALL();
    __syncthreads();
    out[t] = s[t];                        // @U
}
extern "C" __global__ void pipeline_zero_filled(const int *in, int *out) {
    __shared__ __align__(16) int s[64];
    int t = threadIdx.x;
    if (t < 16) __pipeline_memcpy_async(&s[4 * t], in + 4 * t, 16, t < 12 ? 0 : 16);
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    out[t] = s[t];
}
