// 06_gemm_mma.cu: C = A B on tensor cores: half operands, f32 accumulation, a cp.async pipeline of STAGES tiles.
//
//   nvcc -arch=sm_90 -lineinfo -DSTAGES=3 -cubin -o gemm_mma.cubin 06_gemm_mma.cu
//   fasim run gemm_mma --m 128 --n 128 --k 256 --stages 3
//
// What it teaches: the two ingredients of the attention kernel by themselves. (1) ldmatrix feeds mma.sync: A as stored, B
// with .trans because it is row-major. (2) A pipeline of copy groups: STAGES - 1 tiles are on their way while one is
// computed; a group is committed in every step, empty ones too, so that "all but the newest STAGES - 2" is always the tile
// needed next. Rows are padded by 16 bytes so that the eight rows of an 8x8 matrix lie in different banks.
//
// A [m, k], B [k, n] half, C [m, n] f32, row-major; n and k multiples of 8 (16-byte packets), m any.
// Grid (ceil(n / 64), ceil(m / 64)), block 128: four warps in a 2x2 arrangement, 32x32 of C each.
#include <cuda_fp16.h>

#ifndef STAGES
#define STAGES 2     // tiles in shared memory: 2, 3 or 4
#endif
static_assert(STAGES >= 2 && STAGES <= 4, "STAGES: 2, 3 or 4");

constexpr int BM = 64, BN = 64, BK = 32, THREADS = 128;
constexpr int A_ROW_BYTES = (BK + 8) * 2, B_ROW_BYTES = (BN + 8) * 2;
constexpr int A_BYTES = BM * A_ROW_BYTES, STAGE_BYTES = A_BYTES + BK * B_ROW_BYTES;

typedef unsigned int u32;

__device__ __forceinline__ void cp_async_16_bytes(u32 address, const half* source, bool inside) {
    const int source_bytes = inside ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"(address), "l"(source), "r"(source_bytes) : "memory");
}

__device__ __forceinline__ void ldmatrix_x4(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address) : "memory");
}

__device__ __forceinline__ void mma_m16n8k16(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

extern "C" __global__ void __launch_bounds__(THREADS)
gemm_mma(const half* __restrict__ a, const half* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    extern __shared__ __align__(128) unsigned char dynamic_smem[];
    const u32 smem = (u32)__cvta_generic_to_shared(dynamic_smem);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
    const int g = lane >> 2, t = lane & 3, tl = lane >> 3, tr = lane & 7;
    const int row_start = blockIdx.y * BM, column_start = blockIdx.x * BN;
    const int tiles = (k + BK - 1) / BK;

    auto copy_tile = [&](int tile) {
        if (tile < tiles) {
            const u32 stage = smem + tile % STAGES * STAGE_BYTES;
#pragma unroll
            for (int i = 0; i < BM * BK / 8 / THREADS; i++) {
                const int packet = i * THREADS + threadIdx.x, row = packet / (BK / 8), chunk = packet % (BK / 8);
                const int a_row = row_start + row, a_column = tile * BK + chunk * 8;
                cp_async_16_bytes(stage + row * A_ROW_BYTES + chunk * 16, a + (long long)a_row * k + a_column, a_row < m && a_column < k);
            }
#pragma unroll
            for (int i = 0; i < BK * BN / 8 / THREADS; i++) {
                const int packet = i * THREADS + threadIdx.x, row = packet / (BN / 8), chunk = packet % (BN / 8);
                const int b_row = tile * BK + row, b_column = column_start + chunk * 8;
                cp_async_16_bytes(stage + A_BYTES + row * B_ROW_BYTES + chunk * 16, b + (long long)b_row * n + b_column,
                                  b_row < k && b_column < n);
            }
        }
        asm volatile("cp.async.commit_group;" ::: "memory");
    };

    float sum[2][4][4];
#pragma unroll
    for (int i = 0; i < 2 * 4 * 4; i++) sum[i / 16][i / 4 % 4][i % 4] = 0.0f;

    //@ PROLOGUE
#pragma unroll
    for (int tile = 0; tile < STAGES - 1; tile++) copy_tile(tile);

#pragma unroll 1
    for (int tile = 0; tile < tiles; tile++) {
        //@ WAIT
        asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
        __syncthreads();                        // the tile is there for all, and nobody reads the stage that is refilled next
        //@ PREFETCH
        copy_tile(tile + STAGES - 1);

        const u32 a_tile = smem + tile % STAGES * STAGE_BYTES, b_tile = a_tile + A_BYTES;
#pragma unroll
        for (int kk = 0; kk < BK; kk += 16) {
            //@ FRAGMENTS
            u32 a_frag[2][4], b_frag[2][4];
#pragma unroll
            for (int mi = 0; mi < 2; mi++)
                ldmatrix_x4(a_frag[mi], a_tile + (warp_row + mi * 16 + (tl & 1) * 8 + tr) * A_ROW_BYTES + (kk + (tl >> 1) * 8) * 2);
#pragma unroll
            for (int ni = 0; ni < 2; ni++)
                ldmatrix_x4_trans(b_frag[ni], b_tile + (kk + (tl & 1) * 8 + tr) * B_ROW_BYTES + (warp_column + ni * 16 + (tl >> 1) * 8) * 2);
            //@ MULTIPLY
#pragma unroll
            for (int mi = 0; mi < 2; mi++) {
#pragma unroll
                for (int ni = 0; ni < 4; ni++) mma_m16n8k16(sum[mi][ni], a_frag[mi], b_frag[ni / 2][ni % 2 * 2], b_frag[ni / 2][ni % 2 * 2 + 1]);
            }
        }
    }

    //@ STORE
#pragma unroll
    for (int mi = 0; mi < 2; mi++) {
#pragma unroll
        for (int ni = 0; ni < 4; ni++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                const int row = row_start + warp_row + mi * 16 + h * 8 + g, column = column_start + warp_column + ni * 8 + 2 * t;
                if (row < m && column < n)
                    *reinterpret_cast<float2*>(c + (long long)row * n + column) = make_float2(sum[mi][ni][2 * h], sum[mi][ni][2 * h + 1]);
            }
        }
    }
}
