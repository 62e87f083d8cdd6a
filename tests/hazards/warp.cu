// Exchange between the lanes of a warp. Unless the table says otherwise a kernel runs with 32 threads.
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void exchange(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];                         // @W
    out[t] = s[31 - t];                   // @R
}
extern "C" __global__ void exchange_fixed(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncwarp();
    out[t] = s[31 - t];
}
extern "C" __global__ void exchange_overwrite(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncwarp();
    int v = s[31 - t];                    // @R
    s[t] = v * 2;                         // @W
    __syncwarp();
    out[t] = s[31 - t];
}
extern "C" __global__ void exchange_overwrite_fixed(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncwarp();
    int v = s[31 - t];
    __syncwarp();
    s[t] = v * 2;
    __syncwarp();
    out[t] = s[31 - t];
}

// The two halves of the warp synchronise apart, and read across.
extern "C" __global__ void halves_read_across(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];                                                   // @W
    __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
    out[t] = s[31 - t];                                             // @R
}
extern "C" __global__ void halves_read_across_fixed(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncwarp(t < 16 ? 0x0000ffffu : 0xffff0000u);
    out[t] = s[t ^ 15];
}
extern "C" __global__ void halves_in_branches(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    if (t < 16) {
        s[t] = in[t];
        __syncwarp(0x0000ffffu);
        out[t] = s[15 - t];
    } else {
        s[t] = in[t] * 3;
        __syncwarp(0xffff0000u);
        out[t] = s[47 - t] + 1;
    }
}

// Tiles of 8 lanes.
extern "C" __global__ void eights_read_across(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];                         // @W
    __syncwarp(0xffu << (t & 24));
    out[t] = s[t ^ 8];                    // @R
}
extern "C" __global__ void eights_read_across_fixed(const int *in, int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncwarp(0xffu << (t & 24));
    out[t] = s[t ^ 7];
}

// Cooperative groups.
extern "C" __global__ void tile_reads_across(const int *in, int *out) {
    __shared__ int s[64];
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int t = threadIdx.x;
    s[t] = in[t];                         // @W
    tile.sync();
    out[t] = s[t ^ 16];                   // @R
}
extern "C" __global__ void tile_reads_across_fixed(const int *in, int *out) {
    __shared__ int s[64];
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int t = threadIdx.x;
    s[t] = in[t];
    tile.sync();
    out[t] = s[t ^ 15];
}
extern "C" __global__ void block_group(const int *in, int *out) {
    __shared__ int s[64];
    auto block = cg::this_thread_block();
    int t = threadIdx.x;
    s[t] = in[t];
    block.sync();
    out[t] = s[63 - t];
}

// The warp reduction of the days before independent threads: volatile does not order lanes.
extern "C" __global__ void volatile_reduction(const int *in, int *out) {
    __shared__ volatile int s[32];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncwarp();
#pragma unroll 1
    for (int d = 16; d > 0; d >>= 1)
        if (t < d) s[t] = s[t] + s[t + d];    // @A
    if (t == 0) out[0] = s[0];
}
extern "C" __global__ void volatile_reduction_fixed(const int *in, int *out) {
    __shared__ volatile int s[32];
    int t = threadIdx.x;
    s[t] = in[t];
    __syncwarp();
#pragma unroll 1
    for (int d = 16; d > 0; d >>= 1) {
        if (t < d) s[t] = s[t] + s[t + d];
        __syncwarp();
    }
    if (t == 0) out[0] = s[0];
}

// Half of the lanes write, all read.
extern "C" __global__ void half_writes(const int *in, int *out) {
    __shared__ int s[16];
    int t = threadIdx.x;
    if (t < 16) s[t] = in[t];             // @W
    out[t] = s[t & 15];                   // @R
}
extern "C" __global__ void half_writes_fixed(const int *in, int *out) {
    __shared__ int s[16];
    int t = threadIdx.x;
    if (t < 16) s[t] = in[t];
    __syncwarp();
    out[t] = s[t & 15];
}
