// Kernels whose machine code has the rarer kinds of instructions: test_kinds.py runs them as PTX and as machine code.
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace cg = cooperative_groups;
typedef unsigned long long u64;
typedef long long s64;

#define KERNEL(name) extern "C" __global__ void name(unsigned *out, const unsigned *in, int n)
#define INDEX int i = blockIdx.x * blockDim.x + threadIdx.x

__device__ void put(unsigned *out, int i, u64 value) {
    out[2 * i] = (unsigned)value;
    out[2 * i + 1] = (unsigned)(value >> 32);
}

// --- 64 bits: register pairs on sm_120 ------------------------------------------------------------------------------------

KERNEL(pairs) {
    INDEX;
    s64 x = ((s64)(int)in[i] << 20) + in[i + 1], y = (s64)(int)in[i + 2] << 19, sum = 0;
    u64 u = x, v = y;
    for (int j = 0; j < n; j++) {
        sum += x * y;
        if (sum > x) sum -= y; else sum ^= x;
        x = min(x, sum);
        y = max(y, x - j);
        u = u > v ? u - v : u + j;
        if (u == v || sum <= x) v += 3;
        v = min(max(u, v), v + 77);
    }
    unsigned __int128 wide = ((unsigned __int128)u << 64 | v) * (u + n);
    wide -= u;
    bool least = x < 0, most = u > 0x123456789abcull;
    put(out, i, (least ? sum : ~sum) + (most ? u : v) + (u64)(wide >> 64) + (u64)wide + (wide > v));
}

KERNEL(uniform_pairs) {
    INDEX;
    s64 q = (s64)n * 0x12345678ll, r = q * q;
    int count = 0;
    while (r > 0 && count < 20) {
        r = r * 3 + 1;
        count++;
        if ((u64)r >> 60 == n) r -= q;
    }
    const unsigned *p = n > 3 ? in : in + 64;
    unsigned sum = 0;
    for (u64 z = n; z < (u64)n * 1000; z *= 3) sum += p[i + (z & 7)];
    u64 most = max((u64)r, (u64)n << 40);
    put(out, i, most + count + min(q, r) + sum);
}

// --- jumps ------------------------------------------------------------------------------------------------------------------

KERNEL(uniform_switch) {
    INDEX;
    unsigned s = i;
    switch (n) {
        case 0: s += 1; break;
        case 1: s ^= 3; break;
        case 2: s *= 7; break;
        case 3: s = __popc(s); break;
        case 4: s -= in[i]; break;
        case 5: s |= in[i + 1]; break;
        case 6: s <<= 2; break;
        case 7: s = ~s; break;
        default: s = in[i + 3];
    }
    out[i] = s;
}

KERNEL(short_circuits) {
    INDEX;
    unsigned x = in[i], y = in[i + 1];
    s64 sum = i;
    for (unsigned j = 0; j < (x & 15); j++) {
        unsigned z = in[i + j];
        if ((x % ((z & 1023) | 1) > 200 && y / ((z & 63) | 1) > 1000) || (z & 3) == 0) sum += (s64)z * x / (((y ^ z) & 1023) | 1);
        else if (y % ((x & 31) | 1) == 3) break;
        if (z % 7 == 2 && sum % 5 != 1) continue;
        sum ^= y;
    }
    put(out, i, sum);
}

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int ackermann(int m, int n) {
    return m == 0 ? n + 1 : n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}
KERNEL(recursion) {
    INDEX;
    out[i] = fibonacci(n + (i & 7)) + ackermann(1, i & 3);
}

__device__ __noinline__ unsigned plus_one(unsigned x) { return x + 1; }
__device__ __noinline__ unsigned square(unsigned x) { return x * x; }
__device__ __noinline__ unsigned third(unsigned x) { return x / 3; }
typedef unsigned (*Function)(unsigned);
__device__ Function in_global[3] = {plus_one, square, third};
__constant__ Function in_constant[2] = {square, plus_one};
KERNEL(pointers) {
    INDEX;
    unsigned x = in[i];
    for (int j = 0; j < n; j++) x = in_global[(i + j) % 3](x) + in_constant[(x + j) & 1](i);
    Function chosen = i & 1 ? third : plus_one;
    out[i] = chosen(x);
}

struct Base {
    int value;
    __device__ Base(int value) : value(value) {}
    __device__ virtual int first(int) = 0;
    __device__ virtual int second() { return 7; }
};
struct Times : Base {
    __device__ Times(int value) : Base(value) {}
    __device__ int first(int n) override { return value * n; }
};
struct Plus : Base {
    __device__ Plus(int value) : Base(value) {}
    __device__ int first(int n) override { return value + n; }
    __device__ int second() override { return value; }
};
KERNEL(virtual_functions) {
    INDEX;
    Times times(i);
    Plus plus(in[i]);
    Base *base = in[i] & 1 ? (Base *)&times : (Base *)&plus;
    out[i] = base->first(n) + base->second();
}

// --- lanes that wait for each other --------------------------------------------------------------------------------------------

KERNEL(spin_locks) {
    INDEX;
    __shared__ int lock, locks[4];
    __shared__ unsigned total, totals[4];
    if (threadIdx.x == 0) lock = total = 0;
    if (threadIdx.x < 4) locks[threadIdx.x] = totals[threadIdx.x] = 0;
    __syncthreads();
    for (bool done = false; !done;)
        if (atomicCAS(&lock, 0, 1) == 0) {
            total += in[i];
            __threadfence_block();
            atomicExch(&lock, 0);
            done = true;
        }
    int which = in[i] & 3;
    while (atomicExch(&locks[which], 1) != 0) {}
    totals[which] += in[i];
    __threadfence_block();
    atomicExch(&locks[which], 0);
    int *global_lock = (int *)out + 1000;
    while (atomicCAS(global_lock, 0, 1)) __nanosleep(20);
    out[1001]++;
    __threadfence();
    atomicExch(global_lock, 0);
    __syncthreads();
    out[i] = total + totals[i & 3];
}

KERNEL(grid_sync) {
    INDEX;
    cg::grid_group grid = cg::this_grid();
    out[i] = in[i];
    grid.sync();
    out[i + 128] = out[(i + 70) % 128];
    grid.sync();
    out[i] = out[128 + (i + 1) % 128];
}

KERNEL(groups) {
    INDEX;
    auto tile = cg::tiled_partition<8>(cg::this_thread_block());
    int v = tile.thread_rank() + in[i];
    for (int d = tile.size() / 2; d; d /= 2) v += tile.shfl_down(v, d);
    if (threadIdx.x % 3 == 0) {
        auto some = cg::coalesced_threads();
        v += some.ballot(in[i] & 1) + some.shfl(v, 0) + some.any(v > 5);
    }
    auto same = cg::labeled_partition(cg::tiled_partition<32>(cg::this_thread_block()), (int)(in[i] & 3));
    out[i] = v + tile.any(in[i] % 5 == 3) + same.size() * 100 + same.thread_rank();
}

KERNEL(bits_to_predicates) {
    INDEX;
    int v = threadIdx.x + in[i];
    if (threadIdx.x % 3 == 0) {
        auto some = cg::coalesced_threads();
        v += some.ballot(in[i] & 1) + some.any(v > 5);
    }
    out[i] = v;
}

KERNEL(barriers) {
    INDEX;
    int all = blockDim.x * (n > 0), first = n - 3;
    __shared__ unsigned s[64];
    s[threadIdx.x] = in[i];
    asm volatile("barrier.sync %0, %1;" ::"r"(first), "r"(all) : "memory");
    unsigned v = s[threadIdx.x ^ 32];
    asm volatile("barrier.sync %0;" ::"r"(first + 1) : "memory");
    s[threadIdx.x] = v * 3;
    if (threadIdx.x < 32) asm volatile("barrier.arrive %0, %1;" ::"r"(first + 2), "r"(all) : "memory");
    else asm volatile("barrier.sync %0, %1;" ::"r"(first + 2), "r"(all) : "memory");
    out[i] = threadIdx.x < 32 ? v : s[threadIdx.x ^ 32];
}

// --- parts of a register --------------------------------------------------------------------------------------------------------

KERNEL(three_way) {
    INDEX;
    int x = in[i], y = in[i + 1], z = in[i + 2];
    unsigned sum = __vimax3_s32(x, y, z) + __vimin3_u32(x, y, z) + __vimax_s32_relu(x, y) + __vimin3_s32_relu(x, y, z);
    sum += __viaddmax_s32(x, y, z) + __viaddmin_u32(x, y, z) + __viaddmax_s32_relu(x, y, z) + __vimax3_s16x2(x, y, z);
    sum += __viaddmax_s16x2(x, y, z) + __vimin3_u16x2(x, y, z) + __viaddmin_u16x2(x, y, z) + __viaddmax_s16x2_relu(x, y, z);
    bool p, q;
    sum += __vimax_s16x2_relu(x, y) + __vibmin_u16x2(x, y, &p, &q);
    out[2 * i] = sum + p + 2 * q;
    out[2 * i + 1] = __vadd2(x, y) + __vsub4(x, y) + __vmaxu4(x, y) + __vmins4(x, y) + __vmaxs2(x, y) + __vsads4(x, y) + __vabsdiffu4(x, y);
}

KERNEL(narrow_integers) {
    INDEX;
    int packed, sum, byte;
    short word;
    unsigned bit8;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(packed) : "r"((int)in[i] >> 20), "r"((int)in[i + 1] >> 22), "r"(n));
    asm("add.sat.s32 %0, %1, %2;" : "=r"(sum) : "r"(in[i]), "r"(in[i + 1]));
    asm("cvt.sat.s8.s32 %0, %1;" : "=r"(byte) : "r"(in[i]));
    asm("cvt.rni.s16.f32 %0, %1;" : "=h"(word) : "f"((int)in[i] * 1e-5f));
    asm("cvt.rzi.u8.f32 %0, %1;" : "=r"(bit8) : "f"(in[i] * 3e-8f));
    float of_byte = (float)(signed char)(in[i] >> 8) + (float)(unsigned char)(in[i + 1] >> 16);
    out[i] = packed + sum + byte + word + bit8 + __float_as_uint(of_byte);
}

KERNEL(halves) {
    INDEX;
    half2 x = ((const half2 *)in)[i], y = ((const half2 *)in)[i + 1];
    half2 s = __hadd2(__hgt2(x, y), __heq2(x, y));
    s = __hadd2(s, __hadd2(h2floor(x), h2rint(y)));
    __nv_bfloat162 a = ((const __nv_bfloat162 *)in)[i], b = ((const __nv_bfloat162 *)in)[i + 1];
    __nv_bfloat162 t = __hadd2(__hgt2(a, b), __hmax2_nan(a, b));
    unsigned sum = __hgt2_mask(x, y) + __hltu2_mask(x, y) + __hlt2_mask(a, b) + __half2int_rn(x.x) + __half2ull_rz(y.y);
    sum += __bfloat162int_rn(a.x) + __bfloat16_as_ushort(__int2bfloat16_rn(i));
    out[4 * i] = *(unsigned *)&s;
    out[4 * i + 1] = *(unsigned *)&t;
    out[4 * i + 2] = sum;
#if __CUDA_ARCH__ >= 900
    unsigned tanh2, power2, of_bf16;
    asm("tanh.approx.f16x2 %0, %1;" : "=r"(tanh2) : "r"(*(unsigned *)&x));
    asm("ex2.approx.f16x2 %0, %1;" : "=r"(power2) : "r"(*(unsigned *)&x));
    asm("tanh.approx.bf16x2 %0, %1;" : "=r"(of_bf16) : "r"(*(unsigned *)&a));
    out[4 * i + 3] = tanh2 + power2 * 3 + of_bf16 * 5;
#endif
}

KERNEL(bytes_of_floats) {
    INDEX;
#if __CUDA_ARCH__ >= 890
    __nv_fp8x4_e4m3 four(make_float4((int)in[i] * 1e-8f, (int)in[i + 1] * 1e-8f, 3.f, -(int)in[i + 2] * 1e-8f));
    __nv_fp8x2_e5m2 two(make_float2((int)in[i] * 1e-9f, 3.f));
    float4 back = float4(four);
    put(out, i, (u64)four.__x << 32 | (two.__x + __float_as_uint(back.x + back.y * 3 + back.w) + __float_as_uint(float2(two).x)));
#endif
}

KERNEL(doubles) {
    INDEX;
    double x = (int)in[i] * 1e-9, y = (int)in[i + 1] * 1e-9, s = 0;
    if (i % 7 == 0) y = __longlong_as_double(0x7ff8000000000000ll);
    for (int j = 0; j < n; j++) s = fmin(__dadd_rn(s, x), fmax(x, y)) - __dmul_rn(0.25, j);
    put(out, i, __double_as_longlong(s));
}

// --- memory -----------------------------------------------------------------------------------------------------------------------

KERNEL(generic) {
    INDEX;
    __shared__ unsigned s[64];
    __shared__ float sums[4];
    unsigned local[4] = {1, 2, 3, in[i]};
    s[threadIdx.x] = in[i];
    if (threadIdx.x < 4) sums[threadIdx.x] = 0;
    __syncthreads();
    const unsigned *p = i & 1 ? in + i + 1 : s + (threadIdx.x ^ 3), *q = i & 2 ? local + (in[i] & 3) : p;
    out[i] = *p + *q + __isShared(p) + 2 * __isGlobal(p) + 4 * __isLocal(q);
    float *to = i & 1 ? sums + (i & 3) : (float *)out + 300 + (i & 3);
    atomicAdd(to, 1.5f);
    half2 *pair = (half2 *)out + 310 + (i & 1);
    atomicAdd(pair, __float2half2_rn(1.f));
    __syncthreads();
    out[i + 128] = __float_as_uint(sums[i & 3]);
#if __CUDA_ARCH__ >= 900
    atomicAdd((float4 *)out + 100 + (i & 3), make_float4(1, 2, 3, 4));
#endif
}

KERNEL(specials) {
    INDEX;
    extern __shared__ unsigned dynamic[];
    unsigned warp, dynamic_bytes;
    s64 start = clock64();
    asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
    asm volatile("mov.u32 %0, %%dynamic_smem_size;" : "=r"(dynamic_bytes));
    dynamic[threadIdx.x] = in[i];
    __syncthreads();
    s64 end = clock64();
    out[i] = dynamic[threadIdx.x ^ 1] + warp + dynamic_bytes + (end > start) + (end - start < 1ll << 40);
#if __CUDA_ARCH__ >= 900
    unsigned leader;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(leader));
    out[i] += leader * 1000;
#endif
}

// --- matrices ------------------------------------------------------------------------------------------------------------------------

KERNEL(matrices) {
    INDEX;
    double c0 = i, c1 = -i, d[4] = {1.0, 2.0, 3.0, double(i)}, a = (int)in[i] * 1e-6, b = (int)in[i + 1] * 1e-7;
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+d"(c0), "+d"(c1) : "d"(a), "d"(b));
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %4, %5}, {%5, %4}, {%0, %1, %2, %3};"
                 : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(a), "d"(b));
#endif
    put(out, i, __double_as_longlong(c0) ^ __double_as_longlong(c1) ^ __double_as_longlong(d[0] + d[1] + d[2] + d[3]));
#if __CUDA_ARCH__ < 1000  // sm_120 emulates them
    int e[2] = {0, i}, f[4] = {1, 2, 3, i};
    asm volatile("mma.sync.aligned.m8n8k32.row.col.s32.u4.s4.s32 {%0, %1}, {%2}, {%3}, {%0, %1};" : "+r"(e[0]), "+r"(e[1]) : "r"(in[i]), "r"(in[i + 1]));
    asm volatile("mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%0, %1, %2, %3}, {%4, %5, %4, %5}, {%5, %4}, {%0, %1, %2, %3};"
                 : "+r"(f[0]), "+r"(f[1]), "+r"(f[2]), "+r"(f[3]) : "r"(in[i]), "r"(in[i + 1]));
    out[300 + i] = e[0] + 3 * e[1] + f[0] + 5 * f[1] + 7 * f[2] + 11 * f[3];
#endif
}
