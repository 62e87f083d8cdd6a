// Races between warps, and what looks like one and is none. Marks (`// @NAME`) name lines inside their kernel.
// Unless the table says otherwise a kernel runs with 64 threads, in[i] = i, out[i] = 0.

extern "C" __global__ void read_too_early(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];                         // @W
    out[t] = s[t ^ 32];                   // @R
}
extern "C" __global__ void read_too_early_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    out[t] = s[t ^ 32];
}

extern "C" __global__ void overwritten_too_early(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    int v = s[t ^ 32];                    // @R
    s[t] = v + 1;                         // @W
    __syncthreads();
    out[t] = s[t ^ 32];
}
extern "C" __global__ void overwritten_too_early_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncthreads();
    int v = s[t ^ 32];
    __syncthreads();
    s[t] = v + 1;
    __syncthreads();
    out[t] = s[t ^ 32];
}

extern "C" __global__ void written_twice(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t & 31] = in[t];                    // @W
    __syncthreads();
    out[t] = s[t & 31];
}
extern "C" __global__ void written_twice_fixed(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 32) s[t] = in[t];
    __syncthreads();
    out[t] = s[t & 31];
}
extern "C" __global__ void same_value_twice(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t & 31] = in[t & 31];               // @W
    __syncthreads();
    out[t] = s[t & 31];
}

// Two lanes of one store instruction to one word.
extern "C" __global__ void one_store_two_values(const int *in, int *out) {
    __shared__ int s[16];
    int t = threadIdx.x;
    s[t >> 1] = in[t];                    // @W
    __syncwarp();
    out[t] = s[t & 15];
}
extern "C" __global__ void one_store_two_values_fixed(const int *in, int *out) {
    __shared__ int s[16];
    int t = threadIdx.x;
    if ((t & 1) == 0) s[t >> 1] = in[t];
    __syncwarp();
    out[t] = s[t & 15];
}
extern "C" __global__ void one_store_same_value(const int *in, int *out) {
    __shared__ int s[16];
    int t = threadIdx.x;
    s[t >> 1] = in[t >> 1];               // @W
    __syncwarp();
    out[t] = s[t & 15];
}

// Neighbouring bytes and halves of a word belong to different warps: no race.
extern "C" __global__ void bytes_of_a_word(const int *in, int *out) {
    __shared__ volatile unsigned char s[64];
    int t = threadIdx.x, mine = (t & 31) * 2 + (t >> 5);
    s[mine] = in[t];
    int own = s[mine];
    __syncthreads();
    out[t] = own + s[mine ^ 1];
}
extern "C" __global__ void halves_of_a_word(const int *in, int *out) {
    __shared__ volatile unsigned short s[64];
    int t = threadIdx.x, mine = (t & 31) * 2 + (t >> 5);
    s[mine] = in[t];
    int own = s[mine];
    __syncthreads();
    out[t] = own + s[mine ^ 1];
}
extern "C" __global__ void byte_inside_a_word(const int *in, int *out) {
    __shared__ int s[8];
    int t = threadIdx.x;
    if (t < 8) s[t] = in[t + 16];                                   // @W
    if (t >= 32 && t < 40) ((unsigned char *)s)[4 * (t - 32) + 1] = 7;   // @B
    __syncthreads();
    out[t] = s[t & 7];
}
extern "C" __global__ void byte_inside_a_word_fixed(const int *in, int *out) {
    __shared__ int s[8];
    int t = threadIdx.x;
    if (t < 8) s[t] = in[t + 16];
    __syncthreads();
    if (t >= 32 && t < 40) ((unsigned char *)s)[4 * (t - 32) + 1] = 7;
    __syncthreads();
    out[t] = s[t & 7];
}

extern "C" __global__ void atomics_only(const int *in, int *out) {
    __shared__ int s[8];
    int t = threadIdx.x;
    if (t < 8) s[t] = 0;
    __syncthreads();
    atomicAdd(&s[t & 7], in[t]);
    atomicMax(&s[t & 3], in[t]);
    __syncthreads();
    out[t] = s[t & 7];
}
extern "C" __global__ void store_and_atomics(const int *in, int *out) {
    __shared__ int s[8];
    int t = threadIdx.x;
    if (t < 8) s[t] = 0;                                            // @S
    if (t >= 32) atomicAdd(&s[t & 7], in[t]);                       // @A
    __syncthreads();
    out[t] = s[t & 7];
}
extern "C" __global__ void store_and_atomics_fixed(const int *in, int *out) {
    __shared__ int s[8];
    int t = threadIdx.x;
    if (t < 8) s[t] = 0;
    __syncthreads();
    if (t >= 32) atomicAdd(&s[t & 7], in[t]);
    __syncthreads();
    out[t] = s[t & 7];
}
extern "C" __global__ void read_beside_atomics(const int *in, int *out) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) sum = 0;
    __syncthreads();
    if (t < 32) atomicAdd(&sum, in[t]);                             // @A
    if (t == 40) out[0] = sum;                                      // @R
}
extern "C" __global__ void read_beside_atomics_fixed(const int *in, int *out) {
    __shared__ int sum;
    int t = threadIdx.x;
    if (t == 0) sum = 0;
    __syncthreads();
    if (t < 32) atomicAdd(&sum, in[t]);
    __syncthreads();
    if (t == 40) out[0] = sum;
}

// Everybody keeps to a slot of its own; everybody reads what nobody writes.
extern "C" __global__ void own_slots(const int *in, int *out) {
    __shared__ volatile int s[64];
    int t = threadIdx.x;
    for (int i = 0; i < 4; i++) {
        s[t] = in[i * 64 + t];
        out[t] += s[t];
    }
}
extern "C" __global__ void all_read(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
    s[t] = in[t];
    __syncthreads();
    for (int i = 0; i < 64; i++) sum += s[i] * s[(t + i) & 63];
    out[t] = sum;
}

// One buffer in a loop: one barrier an iteration is not enough.
extern "C" __global__ void loop_with_one_barrier(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        s[t] = in[i * 64 + t];            // @W
        __syncthreads();
        sum += s[t ^ 32];                 // @R
    }
    out[t] = sum;
}
extern "C" __global__ void loop_with_one_barrier_fixed(const int *in, int *out) {
    __shared__ int s[64];
    int t = threadIdx.x, sum = 0;
#pragma unroll 1
    for (int i = 0; i < 4; i++) {
        s[t] = in[i * 64 + t];
        __syncthreads();
        sum += s[t ^ 32];
        __syncthreads();
    }
    out[t] = sum;
}

// Warp w works w + 1 rounds in a row of its own; the result is read behind a barrier.
extern "C" __global__ void different_trip_counts(const int *in, int *out) {
    __shared__ int s[2][32];
    int t = threadIdx.x, w = t >> 5, lane = t & 31;
    s[w][lane] = in[t];
    __syncwarp();
#pragma unroll 1
    for (int i = 0; i <= 3 * w; i++) {
        int v = s[w][31 - lane];
        __syncwarp();
        s[w][lane] = v + i;
        __syncwarp();
    }
    __syncthreads();
    out[t] = s[1 - w][lane];
}
// The same with the row of the other warp: warp 0 reads what warp 1 still works on.
extern "C" __global__ void different_trip_counts_no_barrier(const int *in, int *out) {
    __shared__ int s[2][32];
    int t = threadIdx.x, w = t >> 5, lane = t & 31;
    s[w][lane] = in[t];
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < 3 * w; i++) s[w][lane] += i + 1;            // @W
    if (w == 0) out[t] = s[1][lane];                                // @R
}
