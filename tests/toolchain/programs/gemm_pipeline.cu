// Tiled GEMM with cooperative groups and the two pipeline interfaces.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cuda/pipeline>
#include <cuda_pipeline.h>
#include <cuda_fp16.h>
#include <vector>
#include <random>
#include <algorithm>

namespace cg = cooperative_groups;

namespace gemm {
template <int BM, int BN, int BK>
__global__ void __launch_bounds__(256) tiled(const float *A, const float *B, float *C, int M, int N, int K) {
    __shared__ float As[2][BM][BK], Bs[2][BK][BN];
    auto block = cg::this_thread_block();
    auto pipe = cuda::make_pipeline();
    float acc = 0.f;
    int row = blockIdx.y * BM + threadIdx.y, col = blockIdx.x * BN + threadIdx.x;
    for (int k = 0; k < K; k += BK) {
        pipe.producer_acquire();
        if (threadIdx.x < BK) cuda::memcpy_async(&As[0][threadIdx.y][threadIdx.x], &A[row * K + k + threadIdx.x], sizeof(float), pipe);
        if (threadIdx.y < BK) cuda::memcpy_async(&Bs[0][threadIdx.y][threadIdx.x], &B[(k + threadIdx.y) * N + col], sizeof(float), pipe);
        pipe.producer_commit();
        pipe.consumer_wait();
        block.sync();
        for (int j = 0; j < BK; ++j) acc += As[0][threadIdx.y][j] * Bs[0][j][threadIdx.x];
        block.sync();
        pipe.consumer_release();
    }
    if (row < M && col < N) C[row * N + col] = acc;
}
}  // namespace gemm

extern "C" __global__ void copy_async(const float4 *in, float4 *out) {
    __shared__ float4 tile[128];
    __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(float4));
    __pipeline_commit();
    __pipeline_wait_prior(0);
    cg::thread_block_tile<32> warp = cg::tiled_partition<32>(cg::this_thread_block());
    float s = cg::reduce(warp, tile[threadIdx.x].x, cg::plus<float>());
    tile[threadIdx.x].x = s;
    __syncthreads();
    out[threadIdx.x] = tile[threadIdx.x];
}

struct Matrix {
    int rows, cols;
    std::vector<float> data;
    Matrix(int r, int c) : rows{r}, cols(c), data(r * c) {
        std::mt19937 gen(42);
        std::uniform_real_distribution<float> dis(-1.f, 1.f);
        std::generate(data.begin(), data.end(), [&] { return dis(gen); });
    }
    float &operator()(int i, int j) { return data[i * cols + j]; }
    const float *ptr() const { return data.data(); }
};

int main() {
    Matrix a(64, 64), b(64, 64), c(64, 64);
    float *d = nullptr;
    cudaMalloc(&d, 3 * 64 * 64 * sizeof(float));
    dim3 block(16, 16), grid(4, 4);
    gemm::tiled<16, 16, 16><<<grid, block>>>(d, d + 4096, d + 8192, 64, 64, 64);
    copy_async<<<1, 128>>>((float4 *)d, (float4 *)(d + 4096));
    cudaFree(d);
}
