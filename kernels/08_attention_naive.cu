// 08_attention_naive.cu: attention the direct way: a whole row of S and of P in global memory.
//
//   nvcc -arch=sm_90 -lineinfo -DD=64 -DCAUSAL=1 -cubin -o attention_naive.cubin 08_attention_naive.cu
//   fasim run attention_naive --n 100 --causal
//
// What it teaches: what FlashAttention saves. The kernel writes N numbers of S for every query, reads them for the maximum,
// for the sum, and again as P for the product with V: the memory traffic grows with N^2 and dwarfs that of q, k, v and o.
//
// q, k, v, o half [B*H, N, D] row-major; p f32 [B*H, N, N] is scratch and ends up holding P (zero above the diagonal if
// causal). Grid (N, B*H): one CTA a query row. Block 128.
#include <cuda_fp16.h>

#ifndef D
#define D 64         // head dimension: 64 or 128
#endif
#ifndef CAUSAL
#define CAUSAL 0     // 1: query i sees keys 0..i
#endif
#ifndef SCALE_LOG2   // log2(e) / sqrt(D): the softmax is computed in base 2
#if D == 64
#define SCALE_LOG2 0.18033688011112042f
#else
#define SCALE_LOG2 0.12751743082459868f
#endif
#endif

constexpr int THREADS = 128, WARPS = THREADS / 32;

template <bool MAXIMUM> __device__ __forceinline__ float combine(float a, float b) { return MAXIMUM ? fmaxf(a, b) : __fadd_rn(a, b); }

// The maximum or the sum over the CTA, returned to every thread.
template <bool MAXIMUM> __device__ __forceinline__ float cta_reduce(float x, float* warp_values) {
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) x = combine<MAXIMUM>(x, __shfl_xor_sync(0xffffffffu, x, mask));
    if (threadIdx.x % 32 == 0) warp_values[threadIdx.x / 32] = x;
    __syncthreads();
    x = warp_values[0];
#pragma unroll
    for (int w = 1; w < WARPS; w++) x = combine<MAXIMUM>(x, warp_values[w]);
    return x;
}

extern "C" __global__ void __launch_bounds__(THREADS)
attention_naive(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ o,
                float* __restrict__ p, int n) {
    __shared__ float q_row[D], warp_max[WARPS], warp_sum[WARPS];
    const int row = blockIdx.x;
    const long long head = (long long)blockIdx.y * n * D;
    const int visible = CAUSAL ? row + 1 : n;
    k += head;
    v += head;
    p += ((long long)blockIdx.y * n + row) * n;
    for (int d = threadIdx.x; d < D; d += THREADS) q_row[d] = __half2float(q[head + (long long)row * D + d]);
    __syncthreads();

    //@ S_QK
    float maximum = -__int_as_float(0x7f800000);
    for (int key = threadIdx.x; key < visible; key += THREADS) {
        float s = 0.0f;
#pragma unroll 8
        for (int d = 0; d < D; d++) s = __fmaf_rn(q_row[d], __half2float(k[(long long)key * D + d]), s);
        s = __fmul_rn(s, SCALE_LOG2);
        p[key] = s;
        maximum = fmaxf(maximum, s);
    }

    //@ SOFTMAX
    maximum = cta_reduce<true>(maximum, warp_max);
    float sum = 0.0f;
    for (int key = threadIdx.x; key < visible; key += THREADS) {
        const float e = exp2f(__fsub_rn(p[key], maximum));
        p[key] = e;
        sum = __fadd_rn(sum, e);
    }
    const float inverse = __frcp_rn(cta_reduce<false>(sum, warp_sum));
    for (int key = threadIdx.x; key < n; key += THREADS) p[key] = key < visible ? __fmul_rn(p[key], inverse) : 0.0f;
    __syncthreads();                            // every thread reads all of the row below

    //@ O_PV
    for (int d = threadIdx.x; d < D; d += THREADS) {
        float sum_pv = 0.0f;
#pragma unroll 4
        for (int key = 0; key < visible; key++) sum_pv = __fmaf_rn(p[key], __half2float(v[(long long)key * D + d]), sum_pv);
        o[head + (long long)row * D + d] = __float2half_rn(sum_pv);
    }
}
