// Warp-wide operations, atomics, locks, barriers, cooperative groups.
#include <cstdint>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda/std/atomic>
namespace cg = cooperative_groups;
using u32 = unsigned; using u64 = unsigned long long; using i64 = long long;
#define I (blockIdx.x * blockDim.x + threadIdx.x)
#define LANE (threadIdx.x & 31)
#define FULL 0xffffffffu

extern "C" __global__ void shuffles(int* o, const int* in) {
    int v = in[I]; int* p = o + 10 * I;
    p[0] = __shfl_sync(FULL, v, 5); p[1] = __shfl_sync(FULL, v, I * 7, 8); p[2] = __shfl_up_sync(FULL, v, 3); p[3] = __shfl_up_sync(FULL, v, 2, 16);
    p[4] = __shfl_down_sync(FULL, v, 9); p[5] = __shfl_down_sync(FULL, v, 1, 4); p[6] = __shfl_xor_sync(FULL, v, 17); p[7] = __shfl_xor_sync(FULL, v, 3, 8);
    p[8] = __shfl_sync(FULL, v, LANE ^ 31); p[9] = __shfl_sync(FULL, v, -1);
}
extern "C" __global__ void shuffle_wide(double* o, i64* q, const double* in) { double v = in[I]; o[I] = __shfl_down_sync(FULL, v, 4); q[I] = __shfl_xor_sync(FULL, (i64)I << 40 | 7, 12); }
extern "C" __global__ void votes(u32* o, const int* in) {
    int v = in[I]; u32* p = o + 8 * I;
    p[0] = __ballot_sync(FULL, v & 1); p[1] = __any_sync(FULL, v > 90); p[2] = __all_sync(FULL, v > 5); p[3] = __match_any_sync(FULL, v & 3); int s; p[4] = __match_all_sync(FULL, v >> 8, &s); p[5] = s;
    p[6] = __match_any_sync(FULL, (u64)(v & 1) << 35); p[7] = __activemask();
}
extern "C" __global__ void reductions(u32* o, const int* in) {
    int v = in[I]; u32* p = o + 8 * I;
    p[0] = __reduce_add_sync(FULL, v); p[1] = __reduce_min_sync(FULL, v); p[2] = __reduce_max_sync(FULL, v); p[3] = __reduce_min_sync(FULL, (u32)v); p[4] = __reduce_max_sync(FULL, (u32)v);
    p[5] = __reduce_and_sync(FULL, (u32)v); p[6] = __reduce_or_sync(FULL, (u32)v); p[7] = __reduce_xor_sync(FULL, (u32)v);
}
extern "C" __global__ void masked(u32* o, const int* in) {
    int v = in[I]; u32 r = 0;
    if (v & 1) { u32 m = __activemask(); m = __ballot_sync(FULL & m, 1); r = __reduce_add_sync(m, v); r += __shfl_sync(m, v, __ffs(m) - 1) * 1000; }
    else if (v & 2) { u32 m = __match_any_sync(__activemask(), v & 12); r = __reduce_max_sync(m, v) + __popc(m) * 100000; }
    else r = 7;
    __syncwarp(); o[I] = r + __reduce_xor_sync(FULL, r);
}
extern "C" __global__ void exited(u32* o) { int l = LANE; if (l % 3 == 1) return; u32 m = __ballot_sync(0x6db6db6du & FULL, l & 4); o[I] = __shfl_sync(0x6db6db6du, l * l, (l + 3) % 33 / 3 * 3) + m; }
extern "C" __global__ void scan(int* o, const int* in, int n) {
    __shared__ int part[32]; int t = threadIdx.x, v = t < n ? in[blockIdx.x * n + t] : 0, x = v;
    for (int d = 1; d < 32; d *= 2) { int y = __shfl_up_sync(FULL, x, d); if (LANE >= d) x += y; }
    if (LANE == 31) part[t / 32] = x; __syncthreads();
    if (t < 32) { int p = t < blockDim.x / 32 ? part[t] : 0; for (int d = 1; d < 32; d *= 2) { int y = __shfl_up_sync(FULL, p, d); if (t >= d) p += y; } part[t] = p; }
    __syncthreads(); if (t >= 32) x += part[t / 32 - 1]; if (t < n) o[blockIdx.x * n + t] = x;
}
extern "C" __global__ void bitonic(int* o, const int* in) {
    extern __shared__ int s[]; int t = threadIdx.x, n = blockDim.x; s[t] = in[blockIdx.x * n + t];
    for (int k = 2; k <= n; k *= 2) for (int j = k / 2; j > 0; j /= 2) { __syncthreads(); int q = t ^ j; if (q > t) { bool up = (t & k) == 0; int a = s[t], b = s[q]; if ((a > b) == up) { s[t] = b; s[q] = a; } } }
    __syncthreads(); o[blockIdx.x * n + t] = s[t];
}
extern "C" __global__ void spin_lanes(int* o) { __shared__ int lock, n; if (threadIdx.x == 0) lock = n = 0; __syncthreads(); for (bool done = false; !done;) if (atomicCAS(&lock, 0, 1) == 0) { volatile int* p = &n; *p = *p * 3 + 1; __threadfence_block(); atomicExch(&lock, 0); done = true; } __syncthreads(); o[I] = n; }
extern "C" __global__ void spin_waiting(int* o) { __shared__ volatile int turn; if (threadIdx.x == 0) turn = blockDim.x - 1; __syncthreads(); while (turn != (int)threadIdx.x) ; o[I] = turn * 2; __threadfence_block(); turn = threadIdx.x - 1; }
extern "C" __global__ void spin_grid(int* o, int* lock, int* sum) { if (threadIdx.x == 0) { while (atomicCAS(lock, 0, 1)) __nanosleep(20); *(volatile int*)sum = *(volatile int*)sum + blockIdx.x + 1; __threadfence(); atomicExch(lock, 0); } o[I] = 1; }
extern "C" __global__ void ticket(int* o, u32* next, volatile u32* serving) { __shared__ int mine; if (threadIdx.x == 0) { u32 m = atomicAdd(next, 1); while (*serving != m) ; mine = m; __threadfence(); *serving = m + 1; } __syncthreads(); o[I] = mine; }
extern "C" __global__ void chain(volatile int* flags, int* o) { if (threadIdx.x == 0) { if (blockIdx.x + 1 < gridDim.x) while (flags[blockIdx.x + 1] == 0) ; o[blockIdx.x] = blockIdx.x + 1 < gridDim.x ? flags[blockIdx.x + 1] + blockIdx.x : 5; __threadfence(); flags[blockIdx.x] = o[blockIdx.x] + 1; } }
__device__ u32 arrivals; extern "C" __global__ void last_block(float* partial, float* total, const float* in, int n) {
    __shared__ float s[128]; __shared__ bool last; float v = 0; for (int i = I; i < n; i += gridDim.x * blockDim.x) v += in[i]; s[threadIdx.x] = v; __syncthreads();
    for (int d = 64; d; d /= 2) { if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d]; __syncthreads(); }
    if (threadIdx.x == 0) { partial[blockIdx.x] = s[0]; __threadfence(); last = atomicInc(&arrivals, gridDim.x - 1) == gridDim.x - 1; } __syncthreads();
    if (last && threadIdx.x == 0) { float r = 0; for (int i = 0; i < gridDim.x; i++) r += ((volatile float*)partial)[i]; *total = r; }
}
extern "C" __global__ void grid_barrier(int* o, int* a, volatile u32* count) {
    a[I] = I * 3; __threadfence(); __syncthreads(); if (threadIdx.x == 0) { atomicAdd((u32*)count, 1); while (*count < gridDim.x) ; } __syncthreads(); __threadfence(); o[I] = ((volatile int*)a)[gridDim.x * blockDim.x - 1 - I]; }
extern "C" __global__ void atomics32(int* s, u32* u, int* old) {
    int v = (I * 37) % 101 - 50; atomicAdd(s, v); atomicMin(s + 1, v); atomicMax(s + 2, v); atomicSub(s + 3, v); atomicMin(u, (u32)v); atomicMax(u + 1, (u32)v); atomicInc(u + 2, 17); atomicDec(u + 3, 23);
    atomicAnd(u + 4, ~(1u << (v & 31))); atomicOr(u + 5, 1u << (v & 31)); atomicXor(u + 6, v); old[I] = atomicAdd(u + 7, 2); }
extern "C" __global__ void atomics64(i64* s, u64* u) { i64 v = ((i64)I * 0x123456789abll) - (1ll << 45); atomicMin(s, v); atomicMax(s + 1, v); atomicAdd(u, (u64)v); atomicAnd(u + 1, ~(1ull << (I & 63))); atomicOr(u + 2, 1ull << (I & 63)); atomicXor(u + 3, (u64)v);
    atomicMin(u + 4, (u64)v); atomicMax(u + 5, (u64)v); u64 seen = u[6], want; do { want = seen; seen = atomicCAS(u + 6, want, want * 3 + 1); } while (seen != want); }
extern "C" __global__ void atomics_float(float* f, double* d, __half2* h, __nv_bfloat162* b, unsigned short* c) {
    atomicAdd(f, 0.25f * (I % 8)); atomicAdd(d, 0.125); atomicAdd(h, __floats2half2_rn(1, 0.5f)); atomicAdd(b, __floats2bfloat162_rn(0.5f, 1)); atomicAdd_block(f + 1 + blockIdx.x, 1.0f); atomicAdd_system(d + 1, 2.0); atomicAdd((__half*)h + 2, __float2half(0.5f));
    unsigned short seen = *(volatile unsigned short*)c, want; do { want = seen; seen = atomicCAS(c, want, (unsigned short)(want + 3)); } while (seen != want);
    float x = I - 20.0f; int* m = (int*)(f + 4); int o = *m; while (__int_as_float(o) < x) { int a = o; o = atomicCAS(m, a, __float_as_int(x)); if (o == a) break; } }
extern "C" __global__ void aggregated(int* count, int* o, const int* in) { int v = in[I]; if (v % 3 == 0) { auto g = cg::coalesced_threads(); int base; if (g.thread_rank() == 0) base = atomicAdd(count, g.size()); base = g.shfl(base, 0); o[base + g.thread_rank()] = I; } }
extern "C" __global__ void shared_histogram(u32* o, const unsigned char* in, int n) { __shared__ u32 h[256]; for (int i = threadIdx.x; i < 256; i += blockDim.x) h[i] = 0; __syncthreads(); for (int i = I; i < n; i += gridDim.x * blockDim.x) atomicAdd(&h[in[i]], 1); __syncthreads(); for (int i = threadIdx.x; i < 256; i += blockDim.x) if (h[i]) atomicAdd(o + i, h[i]); }
extern "C" __global__ void block_votes(int* o, const int* in) { int v = in[I]; int a = __syncthreads_count(v & 1), b = __syncthreads_and(v > 3), c = __syncthreads_or(v > 98); o[I] = a * 4 + b * 2 + c; }
extern "C" __global__ void named(int* o) {  // warps 0 and 1 produce, 2 and 3 consume, over named barriers
    __shared__ int box[64]; int t = threadIdx.x, w = t / 32, r = 0;
    for (int i = 0; i < 4; i++) { if (w < 2) { asm volatile("bar.sync 1, 128;"); box[t] = t * 10 + i; __threadfence_block(); asm volatile("bar.arrive 2, 128;"); } else { asm volatile("bar.arrive 1, 128;"); asm volatile("bar.sync 2, 128;"); r = r * 3 + box[t - 64]; } }
    o[I] = r; }
extern "C" __global__ void bar_ptx(u32* o) { u32 t = threadIdx.x, n, p, q; asm volatile("{ .reg .pred a, b; setp.gt.u32 a, %3, 40; bar.red.popc.u32 %0, 3, a; bar.red.and.pred b, 4, 96, !a; selp.u32 %1, 1, 0, b; barrier.cta.red.or.pred b, 5, a; selp.u32 %2, 1, 0, b; }" : "=r"(n), "=r"(p), "=r"(q) : "r"(t)); o[I] = n * 4 + p * 2 + q; }
extern "C" __global__ void warp_barrier(int* o) { __shared__ int s[96]; int t = threadIdx.x; s[t] = t; __syncwarp(); int v = s[t ^ 1]; __syncwarp(); if (t & 1) { s[t] = v * 2; __syncwarp(0xaaaaaaaau); v = s[t ^ 2]; } else { s[t] = v * 5; __syncwarp(0x55555555u); v = s[t ^ 4]; } __syncwarp(); o[I] = v; }
extern "C" __global__ void groups(int* o) {
    auto b = cg::this_thread_block(); auto t32 = cg::tiled_partition<32>(b); auto t8 = cg::tiled_partition<8>(t32); auto t16 = cg::tiled_partition<16>(b); int v = I * 3 + 1; int* p = o + 10 * I;
    p[0] = cg::reduce(t8, v, cg::plus<int>()); p[1] = cg::reduce(t16, v, cg::greater<int>()); p[2] = cg::inclusive_scan(t8, v); p[3] = cg::exclusive_scan(t32, v & 7, cg::plus<int>()); p[4] = t8.meta_group_rank() * 100 + t8.thread_rank(); p[5] = t8.shfl(v, 3) + t16.shfl_xor(v, 5);
    p[6] = b.thread_rank() + b.size() * 1000; p[7] = t8.any(v % 11 == 0) + 2 * t8.all(v > 30) + 4 * t16.ballot(v & 2); p[8] = 0; if (v % 2) { auto c = cg::coalesced_threads(); p[8] = cg::reduce(c, v, cg::plus<int>()) + c.thread_rank(); auto l = cg::labeled_partition(c, v % 3); p[9] = cg::reduce(l, 1, cg::plus<int>()) * 100 + l.thread_rank(); } else { auto d = cg::binary_partition(cg::coalesced_threads(), v % 4 == 0); p[9] = d.size(); } b.sync(); }
extern "C" __global__ void std_atomics(int* a, u64* b, int* o) { cuda::std::atomic_ref<int> r(*a); o[I] = r.fetch_add(1, cuda::std::memory_order_relaxed) >= 0; cuda::std::atomic_ref<u64> q(*b); u64 x = q.load(); while (!q.compare_exchange_weak(x, x + 5)) ; }
extern "C" __global__ void divergent_barrier(int* o) { __shared__ int s[96]; s[threadIdx.x] = 0; __syncthreads(); for (int i = 0; i < 3; i++) { if (threadIdx.x & 1) { s[threadIdx.x] += i; __syncthreads(); } else { s[threadIdx.x] += 2 * i; __syncthreads(); } } o[I] = s[95 - threadIdx.x]; }
extern "C" __global__ void transpose(float* o, const float* in, int w, int h) { __shared__ float t[32][33]; int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y; for (int j = 0; j < 32; j += 8) if (x < w && y + j < h) t[threadIdx.y + j][threadIdx.x] = in[(y + j) * w + x]; __syncthreads(); x = blockIdx.y * 32 + threadIdx.x; y = blockIdx.x * 32 + threadIdx.y; for (int j = 0; j < 32; j += 8) if (x < h && y + j < w) o[(y + j) * h + x] = t[threadIdx.x][threadIdx.y + j]; }
extern "C" __global__ void carved(double* o, const float* in, int n) { extern __shared__ __align__(16) char raw[]; double* d = (double*)raw; float* f = (float*)(d + n); short* s = (short*)(f + n); unsigned char* c = (unsigned char*)(s + n); int t = threadIdx.x; f[t] = in[I]; d[t] = in[I] * 2.0; s[t] = t * 3; c[t] = t * 5; __syncthreads(); int u = (t + 7) % n; o[I] = d[u] + f[u] * 0.5 + s[u] + c[u]; }
extern "C" __global__ void stencil(float* o, const float* in, int n, int steps) { extern __shared__ float rows[]; float* a = rows; float* b = rows + blockDim.x + 2; int t = threadIdx.x; a[t + 1] = in[I]; if (t == 0) a[0] = a[blockDim.x + 1] = b[0] = b[blockDim.x + 1] = 0; __syncthreads(); for (int k = 0; k < steps; k++) { b[t + 1] = a[t] * 0.25f + a[t + 1] * 0.5f + a[t + 2] * 0.25f; __syncthreads(); float* x = a; a = b; b = x; } o[I] = a[t + 1]; }
