// Memory that nobody wrote: used, and harmlessly carried along. 64 threads, in[i] = i.

extern "C" __global__ void to_output(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) s[t] = in[t];
    __syncthreads();
    out[t] = s[63 - t];                                             // @U
}
extern "C" __global__ void to_output_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t < 48 ? in[t] : 0;
    __syncthreads();
    out[t] = s[63 - t];
}
extern "C" __global__ void through_arithmetic(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) s[t] = in[t];
    __syncthreads();
    int v = s[63 - t];                                              // @U
    v = v * 3 + in[t];
    v ^= v >> 3;
    out[t] = v;                                                     // @O
}
extern "C" __global__ void through_shared_memory(const int *in, int *out) {
    __shared__ int a[64], b[64];
    int t = threadIdx.x;
    if (t < 48) a[t] = in[t];
    __syncthreads();
    b[t] = a[63 - t];                                               // @U
    __syncthreads();
    out[t] = b[63 - t];                                             // @O
}
extern "C" __global__ void to_atomic_output(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) s[t] = in[t];
    __syncthreads();
    int v = s[63 - t];                                              // @U
    atomicAdd(out + (t & 3), v);                                    // @O
}
extern "C" __global__ void as_address(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) s[t] = in[t];
    __syncthreads();
    int v = s[63 - t] & 63;                                         // @U
    out[t] = in[v];                                                 // @A
}
extern "C" __global__ void as_address_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = t < 48 ? in[t] : 63;
    __syncthreads();
    int v = s[63 - t] & 63;
    out[t] = in[v];
}
extern "C" __global__ void as_branch(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) s[t] = in[t];
    __syncthreads();
    int v = s[63 - t];                                              // @U
    if (v > 20)                                                     // @B
        for (int i = 0; i < 4; i++) out[64 * i + t] = in[t + i];
}
extern "C" __global__ void as_branch_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) s[t] = in[t];
    __syncthreads();
    if (t >= 16) {
        int v = s[63 - t];
        if (v > 20)
            for (int i = 0; i < 4; i++) out[64 * i + t] = in[t + i];
    }
}
// Of a 16x16 tile of halves (128 words) the last four rows are missing (32 words); one warp.
#define MMA(d, a, b) \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b), "r"(b))
extern "C" __global__ void as_matrix(const int *in, float *out) {
    __shared__ unsigned s[128];
    int t = threadIdx.x, g = t / 4, q = t % 4;
    for (int i = t; i < 96; i += 32) s[i] = in[i];
    __syncwarp();
    unsigned a[4];
    for (int i = 0; i < 4; i++) a[i] = s[(g + 8 * (i & 1)) * 8 + q + 4 * (i >> 1)];      // @U
    float d[4] = {0, 0, 0, 0};
    MMA(d, a, 0u);                                                  // @M
    for (int i = 0; i < 4; i++) out[32 * i + t] = d[i];
}
extern "C" __global__ void as_matrix_fixed(const int *in, float *out) {
    __shared__ unsigned s[128];
    int t = threadIdx.x, g = t / 4, q = t % 4;
    for (int i = t; i < 128; i += 32) s[i] = i < 96 ? in[i] : 0;
    __syncwarp();
    unsigned a[4];
    for (int i = 0; i < 4; i++) a[i] = s[(g + 8 * (i & 1)) * 8 + q + 4 * (i >> 1)];
    float d[4] = {0, 0, 0, 0};
    MMA(d, a, 0u);
    for (int i = 0; i < 4; i++) out[32 * i + t] = d[i];
}
// An atomic on a counter that nobody set to 0.
extern "C" __global__ void counter_not_cleared(const int *in, int *out) {
    __shared__ int count;
    int t = threadIdx.x;
    atomicAdd(&count, in[t]);                                       // @A
    __syncthreads();
    if (t == 0) out[0] = count;                                     // @O
}

// ---- harmless
extern "C" __global__ void padding_copied(const int *in, int *out) {
    __shared__ __align__(16) int a[64 * 4];
    __shared__ __align__(16) int b[64 * 4];
    int t = threadIdx.x;
    for (int i = 0; i < 3; i++) a[4 * t + i] = in[3 * t + i];
    __syncthreads();
    ((int4 *)b)[t] = ((int4 *)a)[63 - t];
    __syncthreads();
    out[t] = b[4 * t] + b[4 * t + 1] + b[4 * t + 2];
}
extern "C" __global__ void padding_used(const int *in, int *out) {
    __shared__ __align__(16) int a[64 * 4];
    __shared__ __align__(16) int b[64 * 4];
    int t = threadIdx.x;
    for (int i = 0; i < 3; i++) a[4 * t + i] = in[3 * t + i];
    __syncthreads();
    ((int4 *)b)[t] = ((int4 *)a)[63 - t];                           // @U
    __syncthreads();
    out[t] = b[4 * t] + b[4 * t + 3];                               // @O
}
extern "C" __global__ void selected_away(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) s[t] = in[t];
    __syncthreads();
    int v = s[63 - t];
    out[t] = t < 16 ? -1 : v;
}
extern "C" __global__ void masked_away(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    if (t < 48) s[t] = in[t];
    __syncthreads();
    int v = s[63 - t] & (in[t] < 16 ? 0 : -1);
    out[t] = v;
}
extern "C" __global__ void low_byte(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    ((unsigned char *)s)[4 * t] = in[t];
    __syncthreads();
    int v = s[63 - t];
    out[t] = v & 0xff;
}
extern "C" __global__ void second_byte(const int *in, int *out) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    ((volatile unsigned char *)s)[4 * t] = in[t];
    __syncthreads();
    int v = s[63 - t];                                              // @U
    out[t] = (v >> 8) & 0xff;                                       // @O
}
extern "C" __global__ void byte_shifted_out(const int *in, int *out) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    ((volatile unsigned char *)s)[4 * t + 2] = in[t];
    ((volatile unsigned char *)s)[4 * t + 3] = 1;
    __syncthreads();
    unsigned v = s[63 - t];
    out[t] = v >> 16;
}
extern "C" __global__ void low_half(const int *in, int *out) {
    __shared__ volatile unsigned s[64];
    int t = threadIdx.x;
    ((volatile unsigned short *)s)[2 * t] = in[t];
    __syncthreads();
    unsigned v = s[63 - t];
    unsigned r;
    asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {lo, lo}; }" : "=r"(r) : "r"(v));
    out[t] = r;
}
extern "C" __global__ void high_half(const int *in, int *out) {
    __shared__ volatile unsigned s[64];
    int t = threadIdx.x;
    ((volatile unsigned short *)s)[2 * t] = in[t];
    __syncthreads();
    unsigned v = s[63 - t];                                         // @U
    unsigned r;
    asm("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {hi, lo}; }" : "=r"(r) : "r"(v));
    out[t] = r;                                                     // @O
}
extern "C" __global__ void shuffled_away(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) s[t] = in[t];
    __syncwarp();
    int v = s[t];
    out[t] = __shfl_sync(0xffffffffu, v, t & 15);
}
extern "C" __global__ void shuffled_in(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) s[t] = in[t];
    __syncwarp();
    int v = s[t];                                                   // @U
    out[t] = __shfl_sync(0xffffffffu, v, t | 16);                   // @O
}
extern "C" __global__ void read_and_dropped(const int *in, int *out) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    int v = s[t];
    if (t > 70) out[1] = v;
    out[t] = in[t];
}
extern "C" __global__ void overwritten(const int *in, int *out) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    int v = s[t];
    v = in[t];
    s[t] = v;
    out[t] = s[t];
}

// ---- arrays of a thread
extern "C" __global__ void local_array(const int *in, int *out, int n) {
    int a[8], t = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < n; i++) a[(i * 5) & 7] = in[t + i];
    int v = a[in[t] & 7];                                           // @U
    out[t] = v;                                                     // @O
}
extern "C" __global__ void local_array_fixed(const int *in, int *out, int n) {
    int a[8], t = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < n; i++) a[(i * 5) & 7] = in[t + i];
    int v = a[((in[t] % 6) * 5) & 7];
    out[t] = v;
}

// ---- device memory: `buffer` is fresh
extern "C" __global__ void fresh_buffer(const int *in, int *buffer, int *out) {
    int t = threadIdx.x;
    if (t < 48) buffer[t] = in[t];
    __syncthreads();
    int v = buffer[63 - t];                                         // @U
    out[t] = v + 1;                                                 // @O
}
extern "C" __global__ void fresh_buffer_fixed(const int *in, int *buffer, int *out) {
    int t = threadIdx.x;
    buffer[t] = in[t];
    __syncthreads();
    int v = buffer[63 - t];
    out[t] = v + 1;
}
