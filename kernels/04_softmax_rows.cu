// 04_softmax_rows.cu: softmax over the rows of a matrix, one warp a row, in one pass over the row plus one to write it.
//
//   nvcc -arch=sm_90 -lineinfo -cubin -o softmax_rows.cubin 04_softmax_rows.cu
//   fasim run softmax_rows --rows 37 --columns 300
//
// What it teaches: the online softmax that FlashAttention is built on. A lane keeps a running maximum m and a running sum l
// of exp2(x - m); when m grows, l is rescaled by exp2(m_old - m_new). Two such pairs merge by the same rule, so the lanes
// combine theirs with shuffles. exp(x) is exp2(x log2(e)): the hardware knows base 2 only.
//
// Grid (ceil(rows / 4)), block 128: four warps, each with a row of its own. f32 in and out; no input may be -inf.

constexpr int WARPS = 4;
constexpr float LOG2E = 1.4426950408889634f;

// A lane without elements has m = -inf and l = 0; -inf - -inf would be NaN, so it subtracts 0 instead.
__device__ __forceinline__ float rescale_factor(float old_max, float new_max, float infinity) {
    return exp2f(__fsub_rn(old_max, new_max == -infinity ? 0.0f : new_max));
}

extern "C" __global__ void __launch_bounds__(WARPS * 32)
softmax_rows(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = blockIdx.x * WARPS + warp;
    const float infinity = __int_as_float(0x7f800000);
    if (row >= rows) return;                    // the whole warp leaves: the shuffles below stay complete
    x += (long long)row * columns;
    y += (long long)row * columns;

    //@ LANE
    float m = -infinity, l = 0.0f;
    for (int c = lane; c < columns; c += 32) {
        const float value = __fmul_rn(x[c], LOG2E);
        const float new_m = fmaxf(m, value);
        l = __fmaf_rn(l, rescale_factor(m, new_m, infinity), exp2f(__fsub_rn(value, new_m)));
        m = new_m;
    }

    //@ WARP
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) {
        const float other_m = __shfl_xor_sync(0xffffffffu, m, mask), other_l = __shfl_xor_sync(0xffffffffu, l, mask);
        const float new_m = fmaxf(m, other_m);
        l = __fadd_rn(__fmul_rn(l, rescale_factor(m, new_m, infinity)), __fmul_rn(other_l, rescale_factor(other_m, new_m, infinity)));
        m = new_m;
    }

    //@ WRITE
    const float inverse = __frcp_rn(l);
    for (int c = lane; c < columns; c += 32) y[c] = __fmul_rn(exp2f(__fsub_rn(__fmul_rn(x[c], LOG2E), m)), inverse);
}
