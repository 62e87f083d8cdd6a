// 02_transpose.cu: matrix transpose through a 32x32 tile in shared memory.
//
//   nvcc -arch=sm_90 -lineinfo -DLAYOUT=0 -cubin -o transpose.cubin 02_transpose.cu
//   fasim run transpose --rows 100 --columns 70 --layout linear
//
// What it teaches: both global accesses run along rows, so both are coalesced; the turn happens in shared memory. There a
// column read of a tile with a pitch of 32 words puts all 32 lanes into one bank (32 wavefronts), a pitch of 33 words puts
// them into 32 different banks (1 wavefront).
//
// output[c][r] = input[r][c]. Grid (ceil(columns / 32), ceil(rows / 32)), block (32, 8): a thread moves four elements.

#ifndef LAYOUT
#define LAYOUT 1     // 0 linear, 1 padded
#endif

constexpr int TILE = 32, BLOCK_ROWS = 8;
constexpr int PITCH = LAYOUT == 1 ? TILE + 1 : TILE;

extern "C" __global__ void __launch_bounds__(TILE * BLOCK_ROWS)
transpose(const float* __restrict__ input, float* __restrict__ output, int rows, int columns) {
    __shared__ float tile[TILE][PITCH];
    const int row_start = blockIdx.y * TILE, column_start = blockIdx.x * TILE;

#pragma unroll
    for (int i = threadIdx.y; i < TILE; i += BLOCK_ROWS) {
        const int row = row_start + i, column = column_start + threadIdx.x;
        //@ STORE_ROW
        if (row < rows && column < columns) tile[i][threadIdx.x] = input[(long long)row * columns + column];
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.y; i < TILE; i += BLOCK_ROWS) {
        const int row = row_start + threadIdx.x, column = column_start + i;
        //@ LOAD_COLUMN
        if (row < rows && column < columns) output[(long long)column * rows + row] = tile[threadIdx.x][i];
    }
}
