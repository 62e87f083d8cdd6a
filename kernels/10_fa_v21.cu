// 10_fa_v21.cu: FlashAttention forward (v2.1) on tensor cores, with every step written out as raw PTX.
//
//   nvcc -arch=sm_90 -lineinfo -DBC=64 -DD=64 -DLAYOUT=2 -DCAUSAL=1 -cubin -o fa_v21.cubin 10_fa_v21.cu
//   fasim run fa_v21 --n 256 --bc 64 --head-dim 64 --layout swizzled --causal
//
// What it teaches: attention in one pass over K and V. No N x N matrix ever exists: S and P live in the registers of one
// tile, and a running maximum and a running sum per query row make the softmax come out right anyway. On the way: ldmatrix
// with and without .trans, mma.sync fragments that turn from accumulator into operand without touching memory, a cp.async
// double buffer, and three shared-memory layouts that differ in speed and in nothing else.
//
// O = softmax(Q K^T / sqrt(D)) V for each of the B*H heads; q, k, v, o are half [B*H, N, D] row-major, accumulation is f32.
// Grid (ceil(N / BR), B*H), block 128 = 4 warps. Warp w owns query rows 32w..32w+31 of the CTA's 128 as two m16 blocks and
// never exchanges data with another warp; the warps share only the loading of K and V.
//
// A line "//@ NAME" names the step that begins below it: tracers and reports use these names.
#include <cuda_fp16.h>

#ifndef BC
#define BC 32        // key rows per tile: 32, 64 or 128
#endif
#ifndef D
#define D 64         // head dimension: 64 or 128
#endif
#ifndef LAYOUT
#define LAYOUT 1     // shared memory: 0 linear, 1 padded, 2 swizzled
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
#define BR 128       // query rows per CTA

static_assert(BC == 32 || BC == 64 || BC == 128, "BC: 32, 64 or 128");
static_assert(D == 64 || D == 128, "D: 64 or 128");
static_assert(LAYOUT >= 0 && LAYOUT <= 2, "LAYOUT: 0 linear, 1 padded, 2 swizzled");

constexpr int THREADS = 128;
constexpr int M2 = 2;                              // m16 row blocks of a warp
constexpr int KM = D / 16;                         // k16 steps of Q K^T
constexpr int NM = BC / 8;                         // n8 blocks of S
constexpr int KP = BC / 16;                        // k16 steps of P V
constexpr int ND = D / 8;                          // n8 blocks of O
constexpr int ROW_CHUNKS = D / 8;                  // 16-byte chunks of a row
constexpr int LD = LAYOUT == 1 ? D + 8 : D;        // row pitch in halfs
constexpr int ROW_BYTES = LD * 2;
constexpr int TILE_BYTES = BC * ROW_BYTES;
constexpr int K_BYTES = 0;                         // dynamic shared memory: K [2][BC][LD], V [2][BC][LD], Q [BR][LD]
constexpr int V_BYTES = K_BYTES + 2 * TILE_BYTES;
constexpr int Q_BYTES = V_BYTES + 2 * TILE_BYTES;

typedef unsigned int u32;

// ---- shared memory -------------------------------------------------------------------------------------------------

// Byte offset of a 16-byte chunk of a row. This function is the layout: all writes and all reads go through it.
// Linear rows of 128 or 256 B start in the same bank, so the 8 rows of an 8x8 matrix collide 8 ways. Padding moves each row
// on by 4 banks; swizzling permutes the chunks of a row instead and needs no extra space.
__device__ __forceinline__ u32 chunk_offset_bytes(int row, int chunk) {
    const int place = LAYOUT == 2 ? chunk ^ (row & 7) : chunk;
    return row * ROW_BYTES + place * 16;
}

__device__ __forceinline__ void store_shared_16_bytes(u32 address, uint4 x) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" :: "r"(address), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

// Four 8x8 matrices of halfs: lane L gives the address of row L % 8 of matrix L / 8, and receives in register i the two
// neighbours (row L / 4, columns 2 (L % 4) and + 1) of matrix i.
__device__ __forceinline__ void ldmatrix_x4(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

// The same with every 8x8 matrix transposed on the way.
__device__ __forceinline__ void ldmatrix_x4_trans(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

// ---- asynchronous copies -------------------------------------------------------------------------------------------

// 16 bytes from global to shared memory past the registers; source_bytes 0 reads nothing and writes zeros.
__device__ __forceinline__ void cp_async_16_bytes(u32 address, const half* source, int source_bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(address), "l"(source), "r"(source_bytes) : "memory");
}

__device__ __forceinline__ void cp_async_commit_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until at most PENDING of this thread's newest groups are still on their way.
template <int PENDING> __device__ __forceinline__ void cp_async_wait_group() {
    asm volatile("cp.async.wait_group %0;" :: "n"(PENDING) : "memory");
}

// Starts the copies of key rows first_row..first_row+BC-1 of K and of V into one of the two buffers and commits them as one group.
__device__ __forceinline__ void copy_tile_async(u32 smem, int buffer, const half* k, const half* v, int first_row, int n) {
    const u32 k_tile = smem + K_BYTES + buffer * TILE_BYTES;
    const u32 v_tile = smem + V_BYTES + buffer * TILE_BYTES;
#pragma unroll
    for (int i = 0; i < BC * ROW_CHUNKS / THREADS; i++) {
        const int packet = i * THREADS + threadIdx.x;
        const int row = packet / ROW_CHUNKS, chunk = packet % ROW_CHUNKS;
        const int source_bytes = first_row + row < n ? 16 : 0;
        const long long source = (long long)(first_row + row) * D + chunk * 8;
        cp_async_16_bytes(k_tile + chunk_offset_bytes(row, chunk), k + source, source_bytes);
        cp_async_16_bytes(v_tile + chunk_offset_bytes(row, chunk), v + source, source_bytes);
    }
    cp_async_commit_group();
}

// ---- arithmetic ----------------------------------------------------------------------------------------------------

// d += A B for a 16x16 A (row-major) and a 16x8 B (column-major). With g = lane / 4 and t = lane % 4 a lane holds
//   A: a[0] (row g, columns 2t, 2t+1), a[1] (row g+8, same), a[2] (row g, columns 2t+8, 2t+9), a[3] (row g+8, same)
//   B: b0 (rows 2t, 2t+1 of column g), b1 (rows 2t+8, 2t+9)
//   C and D: d[0], d[1] (row g, columns 2t, 2t+1), d[2], d[3] (row g+8, same)
__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// exp2f as the hardware unit computes it, subnormal results kept.
__device__ __forceinline__ float exp2_approx(float x) {
    float y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Two floats to half, round to nearest even; `low` becomes the lower column.
__device__ __forceinline__ u32 pack_half2(float low, float high) {
    u32 packed;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}

// The four lanes of a quad (equal lane / 4) hold one row of a C fragment: two butterfly steps reduce over the row.
__device__ __forceinline__ float quad_max(float x) {
    x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
    return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
}

__device__ __forceinline__ float quad_sum(float x) {
    x = __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, 2));
    return __fadd_rn(x, __shfl_xor_sync(0xffffffffu, x, 1));
}

// ---- the kernel ----------------------------------------------------------------------------------------------------

// Sums and products carry an explicit rounding (__fmul_rn, __fadd_rn, __fmaf_rn): the compiler may fuse or split the others,
// and then the last bit would depend on the compiler.
extern "C" __global__ void __launch_bounds__(THREADS)
fa_v21(const half* __restrict__ q, const half* __restrict__ k, const half* __restrict__ v, half* __restrict__ o, int n) {
    extern __shared__ __align__(128) unsigned char dynamic_smem[];
    const u32 smem = (u32)__cvta_generic_to_shared(dynamic_smem);

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int g = lane >> 2, t = lane & 3;      // fragments: row (g and g + 8) and column pair (2t, 2t + 1)
    const int tl = lane >> 3, tr = lane & 7;    // ldmatrix.x4: which 8x8 matrix, and which of its rows, this lane addresses
    const int q_start = blockIdx.x * BR;
    const int warp_row = warp * 32;
    const float infinity = __int_as_float(0x7f800000);

    const long long head = (long long)blockIdx.y * n * D;
    q += head;
    k += head;
    v += head;
    o += head;

    //@ LOAD_Q
#pragma unroll
    for (int i = 0; i < BR * ROW_CHUNKS / THREADS; i++) {
        const int packet = i * THREADS + threadIdx.x;
        const int row = packet / ROW_CHUNKS, chunk = packet % ROW_CHUNKS;
        uint4 x = make_uint4(0, 0, 0, 0);
        if (q_start + row < n) x = *reinterpret_cast<const uint4*>(q + (long long)(q_start + row) * D + chunk * 8);
        store_shared_16_bytes(smem + Q_BYTES + chunk_offset_bytes(row, chunk), x);
    }
    __syncthreads();

    //@ Q_FRAGMENTS
    u32 q_frag[M2][KM][4];
#pragma unroll
    for (int mi = 0; mi < M2; mi++) {
#pragma unroll
        for (int km = 0; km < KM; km++) {
            const int row = warp_row + mi * 16 + (tl & 1) * 8 + tr, chunk = km * 2 + (tl >> 1);
            ldmatrix_x4(q_frag[mi][km], smem + Q_BYTES + chunk_offset_bytes(row, chunk));
        }
    }

    //@ STATE
    float row_max[M2][2], row_sum[M2][2];       // [m16 block][0: row g, 1: row g + 8]; row_sum covers this lane's columns only
    float o_frag[M2][ND][4];
#pragma unroll
    for (int mi = 0; mi < M2; mi++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            row_max[mi][h] = -infinity;
            row_sum[mi][h] = 0.0f;
        }
#pragma unroll
        for (int nd = 0; nd < ND; nd++) {
#pragma unroll
            for (int c = 0; c < 4; c++) o_frag[mi][nd][c] = 0.0f;
        }
    }

    //@ PROLOGUE
    const int limit = CAUSAL ? min(q_start + BR, n) : n;
    const int tiles = (limit + BC - 1) / BC;
    copy_tile_async(smem, 0, k, v, 0, n);

#pragma unroll 1
    for (int j = 0; j < tiles; j++) {
        const int k_start = j * BC;

        //@ PREFETCH
        if (j + 1 < tiles) {
            copy_tile_async(smem, (j + 1) & 1, k, v, k_start + BC, n);
            cp_async_wait_group<1>();           // tile j is there, tile j + 1 may still be on its way
        } else {
            cp_async_wait_group<0>();
        }
        __syncthreads();                        // ... and the copies of the other threads are visible, too
        const u32 k_tile = smem + K_BYTES + (j & 1) * TILE_BYTES;
        const u32 v_tile = smem + V_BYTES + (j & 1) * TILE_BYTES;

        float s[M2][NM][4];
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
#pragma unroll
            for (int ni = 0; ni < NM; ni++) {
#pragma unroll
                for (int c = 0; c < 4; c++) s[mi][ni][c] = 0.0f;
            }
        }
#pragma unroll
        for (int ni = 0; ni < NM; ni += 2) {
#pragma unroll
            for (int km = 0; km < KM; km++) {
                //@ K_FRAGMENTS
                // B = K^T column-major is K row-major, just as it is stored: no .trans.
                u32 b[4];
                ldmatrix_x4(b, k_tile + chunk_offset_bytes(ni * 8 + (tl >> 1) * 8 + tr, km * 2 + (tl & 1)));
                //@ S_QK
#pragma unroll
                for (int mi = 0; mi < M2; mi++) {
                    mma_m16n8k16(s[mi][ni], q_frag[mi][km], b[0], b[1]);
                    mma_m16n8k16(s[mi][ni + 1], q_frag[mi][km], b[2], b[3]);
                }
            }
        }

        //@ MASK
        if (k_start + BC > n || (CAUSAL && k_start + BC - 1 > q_start)) {
#pragma unroll
            for (int mi = 0; mi < M2; mi++) {
#pragma unroll
                for (int ni = 0; ni < NM; ni++) {
#pragma unroll
                    for (int c = 0; c < 4; c++) {
                        const int row = q_start + warp_row + mi * 16 + (c >> 1) * 8 + g;
                        const int column = k_start + ni * 8 + 2 * t + (c & 1);
                        if (column >= n || (CAUSAL && column > row)) s[mi][ni][c] = -infinity;
                    }
                }
            }
        }

        //@ SCALE
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
#pragma unroll
            for (int ni = 0; ni < NM; ni++) {
#pragma unroll
                for (int c = 0; c < 4; c++) s[mi][ni][c] = __fmul_rn(s[mi][ni][c], SCALE_LOG2);
            }
        }

        //@ ROW_MAX
        float new_max[M2][2];
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float x = -infinity;
#pragma unroll
                for (int ni = 0; ni < NM; ni++) x = fmaxf(x, fmaxf(s[mi][ni][2 * h], s[mi][ni][2 * h + 1]));
                new_max[mi][h] = fmaxf(row_max[mi][h], quad_max(x));
            }
        }

        //@ RESCALE_FACTOR
        // A row that has seen no key yet would compute -inf - -inf = NaN: subtract 0 there.
        float subtrahend[M2][2], rescale[M2][2];
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                subtrahend[mi][h] = new_max[mi][h] == -infinity ? 0.0f : new_max[mi][h];
                rescale[mi][h] = exp2_approx(__fsub_rn(row_max[mi][h], subtrahend[mi][h]));
            }
        }

        //@ P_EXP2
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
#pragma unroll
            for (int ni = 0; ni < NM; ni++) {
#pragma unroll
                for (int c = 0; c < 4; c++) s[mi][ni][c] = exp2_approx(__fsub_rn(s[mi][ni][c], subtrahend[mi][c >> 1]));
            }
        }

        //@ ROW_SUM
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float x = 0.0f;
#pragma unroll
                for (int ni = 0; ni < NM; ni++) x = __fadd_rn(__fadd_rn(x, s[mi][ni][2 * h]), s[mi][ni][2 * h + 1]);
                row_sum[mi][h] = __fmaf_rn(row_sum[mi][h], rescale[mi][h], x);
            }
        }

        //@ PACK_P
        // Two neighbouring C fragments are, lane by lane, one A fragment: P never leaves the registers.
        u32 p_frag[M2][KP][4];
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
#pragma unroll
            for (int kp = 0; kp < KP; kp++) {
                p_frag[mi][kp][0] = pack_half2(s[mi][2 * kp][0], s[mi][2 * kp][1]);
                p_frag[mi][kp][1] = pack_half2(s[mi][2 * kp][2], s[mi][2 * kp][3]);
                p_frag[mi][kp][2] = pack_half2(s[mi][2 * kp + 1][0], s[mi][2 * kp + 1][1]);
                p_frag[mi][kp][3] = pack_half2(s[mi][2 * kp + 1][2], s[mi][2 * kp + 1][3]);
            }
        }

        //@ RESCALE_O
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
#pragma unroll
            for (int nd = 0; nd < ND; nd++) {
#pragma unroll
                for (int c = 0; c < 4; c++) o_frag[mi][nd][c] = __fmul_rn(o_frag[mi][nd][c], rescale[mi][c >> 1]);
            }
        }

#pragma unroll
        for (int kp = 0; kp < KP; kp++) {
#pragma unroll
            for (int nd = 0; nd < ND; nd += 2) {
                //@ V_FRAGMENTS
                // B = V column-major, but V is stored row-major: .trans.
                u32 b[4];
                ldmatrix_x4_trans(b, v_tile + chunk_offset_bytes(kp * 16 + (tl & 1) * 8 + tr, nd + (tl >> 1)));
                //@ O_PV
#pragma unroll
                for (int mi = 0; mi < M2; mi++) {
                    mma_m16n8k16(o_frag[mi][nd], p_frag[mi][kp], b[0], b[1]);
                    mma_m16n8k16(o_frag[mi][nd + 1], p_frag[mi][kp], b[2], b[3]);
                }
            }
        }

        //@ NEXT_TILE
#pragma unroll
        for (int mi = 0; mi < M2; mi++) {
            row_max[mi][0] = new_max[mi][0];
            row_max[mi][1] = new_max[mi][1];
        }
        __syncthreads();                        // nobody may still read the buffer that the next prefetch overwrites
    }

    //@ EPILOGUE
#pragma unroll
    for (int mi = 0; mi < M2; mi++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float inverse = __frcp_rn(quad_sum(row_sum[mi][h]));
            const int row = q_start + warp_row + mi * 16 + h * 8 + g;
            if (row < n) {
                u32* target = reinterpret_cast<u32*>(o + (long long)row * D + 2 * t);
#pragma unroll
                for (int nd = 0; nd < ND; nd++) {
                    const float low = __fmul_rn(o_frag[mi][nd][2 * h], inverse), high = __fmul_rn(o_frag[mi][nd][2 * h + 1], inverse);
                    target[nd * 4] = pack_half2(low, high);
                }
            }
        }
    }
}
