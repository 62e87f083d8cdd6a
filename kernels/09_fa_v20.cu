// 09_fa_v20.cu: FlashAttention forward (v2.0): the one-pass algorithm on ordinary multiply-adds, S and O in shared memory.
//
//   nvcc -arch=sm_90 -lineinfo -DD=64 -DCAUSAL=1 -cubin -o fa_v20.cubin 09_fa_v20.cu
//   fasim run fa_v20 --n 200 --causal
//
// What it teaches: the skeleton that v2.1 moves onto tensor cores: query rows outside, key tiles inside, online softmax,
// division by the sum once at the end, cp.async double buffer, and a causal mask on two levels: tiles that lie above
// the diagonal are never loaded, and only tiles that cross it are tested element by element. A thread owns one query row,
// so no two threads share a row of S or O; odd pitches in words keep the 32 rows of a warp in 32 different banks, and K and
// V are read as broadcasts. What it costs: every multiply-add fetches its operands from shared memory.
//
// q, k, v, o half [B*H, N, D] row-major, f32 accumulation. Grid (ceil(N / 128), B*H), block 128.
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
#define BR 128       // query rows per CTA: one a thread
#define BC 32        // key rows per tile

constexpr int ROW_CHUNKS = D / 8;                  // 16-byte chunks of a row
constexpr int TILE_HALFS = BC * D;
constexpr int Q_PITCH = D / 2 + 1;                 // words (half2) a row
constexpr int S_PITCH = BC + 1, O_PITCH = D + 1;   // floats a row
constexpr int K_BYTES = 0;                         // dynamic shared memory: K [2][BC][D], V [2][BC][D], Q, S, O [BR][pitch]
constexpr int V_BYTES = K_BYTES + 2 * TILE_HALFS * 2;
constexpr int Q_BYTES = V_BYTES + 2 * TILE_HALFS * 2;
constexpr int S_BYTES = Q_BYTES + BR * Q_PITCH * 4;
constexpr int O_BYTES = S_BYTES + BR * S_PITCH * 4;

// Starts the copies of one tile of K and of V and commits them as one group; rows past n arrive as zeros.
__device__ __forceinline__ void copy_tile_async(half* k_tile, half* v_tile, const half* k, const half* v, int first_row, int n) {
#pragma unroll
    for (int i = 0; i < BC * ROW_CHUNKS / BR; i++) {
        const int packet = i * BR + threadIdx.x, row = packet / ROW_CHUNKS, chunk = packet % ROW_CHUNKS;
        const int source_bytes = first_row + row < n ? 16 : 0;
        const long long source = (long long)(first_row + row) * D + chunk * 8;
        const unsigned k_address = (unsigned)__cvta_generic_to_shared(k_tile + row * D + chunk * 8);
        const unsigned v_address = (unsigned)__cvta_generic_to_shared(v_tile + row * D + chunk * 8);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(k_address), "l"(k + source), "r"(source_bytes) : "memory");
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(v_address), "l"(v + source), "r"(source_bytes) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(BR)
fa_v20(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ o, int n) {
    extern __shared__ __align__(128) unsigned char dynamic_smem[];
    half* k_buffers = reinterpret_cast<half*>(dynamic_smem + K_BYTES);
    half* v_buffers = reinterpret_cast<half*>(dynamic_smem + V_BYTES);
    half2* q_row = reinterpret_cast<half2*>(dynamic_smem + Q_BYTES) + threadIdx.x * Q_PITCH;
    float* s_row = reinterpret_cast<float*>(dynamic_smem + S_BYTES) + threadIdx.x * S_PITCH;
    float* o_row = reinterpret_cast<float*>(dynamic_smem + O_BYTES) + threadIdx.x * O_PITCH;
    const int q_start = blockIdx.x * BR, row = q_start + threadIdx.x;
    const long long head = (long long)blockIdx.y * n * D;
    const float infinity = __int_as_float(0x7f800000);
    q += head;
    k += head;
    v += head;
    o += head;

    //@ LOAD_Q
    for (int i = threadIdx.x; i < BR * D / 2; i += BR) {
        const int source_row = i / (D / 2), word = i % (D / 2);
        half2 x = __floats2half2_rn(0.0f, 0.0f);
        if (q_start + source_row < n) x = *reinterpret_cast<const half2*>(q + (long long)(q_start + source_row) * D + word * 2);
        reinterpret_cast<half2*>(dynamic_smem + Q_BYTES)[source_row * Q_PITCH + word] = x;
    }

    //@ STATE
    float row_max = -infinity, row_sum = 0.0f;
    for (int d = 0; d < D; d++) o_row[d] = 0.0f;

    //@ PROLOGUE
    const int limit = CAUSAL ? min(q_start + BR, n) : n;
    const int tiles = (limit + BC - 1) / BC;
    copy_tile_async(k_buffers, v_buffers, k, v, 0, n);

#pragma unroll 1
    for (int j = 0; j < tiles; j++) {
        const int k_start = j * BC, buffer = (j & 1) * TILE_HALFS, other = TILE_HALFS - buffer;

        //@ PREFETCH
        if (j + 1 < tiles) {
            copy_tile_async(k_buffers + other, v_buffers + other, k, v, k_start + BC, n);
            asm volatile("cp.async.wait_group 1;" ::: "memory");
        } else {
            asm volatile("cp.async.wait_group 0;" ::: "memory");
        }
        __syncthreads();                        // the first one also publishes Q
        const half2* k_tile = reinterpret_cast<const half2*>(k_buffers + buffer);
        const half2* v_tile = reinterpret_cast<const half2*>(v_buffers + buffer);

        //@ S_QK
        const bool crosses = k_start + BC > n || (CAUSAL && k_start + BC - 1 > q_start);
        float new_max = row_max;
#pragma unroll 1
        for (int c = 0; c < BC; c++) {
            float s = 0.0f;
#pragma unroll 8
            for (int w = 0; w < D / 2; w++) {
                const float2 a = __half22float2(q_row[w]), b = __half22float2(k_tile[c * (D / 2) + w]);
                s = __fmaf_rn(a.y, b.y, __fmaf_rn(a.x, b.x, s));
            }
            if (crosses && (k_start + c >= n || (CAUSAL && k_start + c > row))) s = -infinity;
            s = __fmul_rn(s, SCALE_LOG2);
            s_row[c] = s;
            new_max = fmaxf(new_max, s);
        }

        //@ SOFTMAX
        const float subtrahend = new_max == -infinity ? 0.0f : new_max;
        const float rescale = exp2f(__fsub_rn(row_max, subtrahend));
        float sum = 0.0f;
#pragma unroll 4
        for (int c = 0; c < BC; c++) {
            const float p = exp2f(__fsub_rn(s_row[c], subtrahend));
            s_row[c] = p;
            sum = __fadd_rn(sum, p);
        }
        row_sum = __fmaf_rn(row_sum, rescale, sum);
        row_max = new_max;

        //@ O_PV
#pragma unroll 1
        for (int w = 0; w < D / 2; w++) {
            float x = __fmul_rn(o_row[2 * w], rescale), y = __fmul_rn(o_row[2 * w + 1], rescale);
#pragma unroll 8
            for (int c = 0; c < BC; c++) {
                const float2 b = __half22float2(v_tile[c * (D / 2) + w]);
                x = __fmaf_rn(s_row[c], b.x, x);
                y = __fmaf_rn(s_row[c], b.y, y);
            }
            o_row[2 * w] = x;
            o_row[2 * w + 1] = y;
        }

        //@ NEXT_TILE
        __syncthreads();                        // nobody may still read the buffer that the next prefetch overwrites
    }

    //@ EPILOGUE
    if (row < n) {
        const float inverse = __frcp_rn(row_sum);
        for (int w = 0; w < D / 2; w++) {
            *reinterpret_cast<half2*>(o + (long long)row * D + 2 * w) =
                __floats2half2_rn(__fmul_rn(o_row[2 * w], inverse), __fmul_rn(o_row[2 * w + 1], inverse));
        }
    }
}
