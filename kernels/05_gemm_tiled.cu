// 05_gemm_tiled.cu: C = A B in f32 with 32x32 tiles in shared memory.
//
//   nvcc -arch=sm_90 -lineinfo -cubin -o gemm_tiled.cubin 05_gemm_tiled.cu
//   fasim run gemm_tiled --m 70 --n 50 --k 90
//
// What it teaches: reuse. Each element that a CTA brings from global memory serves 32 dot products. A thread computes four
// rows of one column, so that one word of B serves four products. Reading a[row][i] is a broadcast (one word for the whole
// warp) and b[i][column] is one row of 32 neighbouring words: one wavefront each, no padding needed.
//
// A [m, k], B [k, n], C [m, n], all row-major, any sizes: tails are filled with zeros.
// Grid (ceil(n / 32), ceil(m / 32)), block (32, 8).

constexpr int TILE = 32, BLOCK_ROWS = 8, PER_THREAD = TILE / BLOCK_ROWS;

extern "C" __global__ void __launch_bounds__(TILE * BLOCK_ROWS)
gemm_tiled(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ float a_tile[TILE][TILE], b_tile[TILE][TILE];
    const int column = blockIdx.x * TILE + threadIdx.x;
    const int row_start = blockIdx.y * TILE;

    float sum[PER_THREAD];
#pragma unroll
    for (int r = 0; r < PER_THREAD; r++) sum[r] = 0.0f;

    for (int k_start = 0; k_start < k; k_start += TILE) {
        //@ LOAD_TILES
#pragma unroll
        for (int r = 0; r < PER_THREAD; r++) {
            const int i = threadIdx.y + r * BLOCK_ROWS;
            const int a_row = row_start + i, a_column = k_start + threadIdx.x, b_row = k_start + i;
            a_tile[i][threadIdx.x] = a_row < m && a_column < k ? a[(long long)a_row * k + a_column] : 0.0f;
            b_tile[i][threadIdx.x] = b_row < k && column < n ? b[(long long)b_row * n + column] : 0.0f;
        }
        __syncthreads();

        //@ MULTIPLY
#pragma unroll
        for (int i = 0; i < TILE; i++) {
            const float b_value = b_tile[i][threadIdx.x];
#pragma unroll
            for (int r = 0; r < PER_THREAD; r++) sum[r] = __fmaf_rn(a_tile[threadIdx.y + r * BLOCK_ROWS][i], b_value, sum[r]);
        }
        __syncthreads();                        // nobody may still read the tiles that the next step overwrites
    }

    //@ STORE
#pragma unroll
    for (int r = 0; r < PER_THREAD; r++) {
        const int row = row_start + threadIdx.y + r * BLOCK_ROWS;
        if (row < m && column < n) c[(long long)row * n + column] = sum[r];
    }
}
