// wmma kernel, a host class that owns device memory, a host template, a helper that launches.
#include <mma.h>
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <chrono>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

using namespace nvcuda;
using namespace std;

#define WM 16
#define WN 16
#define WK 16

__global__ void wmma_gemm(const half *a, const half *b, float *c, int M, int N, int K) {
    int warpM = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
    int warpN = blockIdx.y * blockDim.y + threadIdx.y;
    wmma::fragment<wmma::matrix_a, WM, WN, WK, half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, WM, WN, WK, half, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, WM, WN, WK, float> acc;
    wmma::fill_fragment(acc, 0.0f);
    for (int k = 0; k < K; k += WK) {
        wmma::load_matrix_sync(fa, a + warpM * WM * K + k, K);
        wmma::load_matrix_sync(fb, b + warpN * WN * K + k, K);
        wmma::mma_sync(acc, fa, fb, acc);
    }
    wmma::store_matrix_sync(c + warpM * WM * N + warpN * WN, acc, N, wmma::mem_row_major);
}

template <typename T>
class DeviceBuffer {
public:
    explicit DeviceBuffer(size_t n) : n_(n) {
        if (cudaMalloc(&ptr_, n * sizeof(T)) != cudaSuccess) throw std::runtime_error("out of memory");
    }
    DeviceBuffer(const DeviceBuffer &) = delete;
    DeviceBuffer &operator=(const DeviceBuffer &) = delete;
    ~DeviceBuffer() { cudaFree(ptr_); }
    T *get() const { return ptr_; }
    size_t size() const { return n_; }

private:
    T *ptr_ = nullptr;
    size_t n_;
};

class GpuTimer {
    cudaEvent_t start_, stop_;
    std::chrono::time_point<std::chrono::high_resolution_clock> host_start_;

public:
    GpuTimer() {
        cudaEventCreate(&start_);
        cudaEventCreate(&stop_);
    }
    ~GpuTimer() {
        cudaEventDestroy(start_);
        cudaEventDestroy(stop_);
    }
    void start() { cudaEventRecord(start_, 0); }
    float stop() {
        float ms;
        cudaEventRecord(stop_, 0);
        cudaEventSynchronize(stop_);
        cudaEventElapsedTime(&ms, start_, stop_);
        return ms;
    }
};

static std::string describe(const std::string &name, float ms) { return name + ": " + std::to_string(ms) + " ms"; }
static int g_launches = 0;
const char *kTitle = "wmma";
string g_name;

template <class F>
float timed(F f) {
    GpuTimer t;
    t.start();
    f();
    return t.stop();
}

namespace {
void launch(const half *a, const half *b, float *c) {
    wmma_gemm<<<dim3(1, 1), dim3(32, 1)>>>(a, b, c, 16, 16, 16);
    ++g_launches;
}
}  // namespace

int main() try {
    DeviceBuffer<half> a(256), b(256);
    DeviceBuffer<float> c(256);
    cout << describe(kTitle, timed([&] { launch(a.get(), b.get(), c.get()); })) << '\n';
    return 0;
} catch (const std::exception &e) {
    cerr << e.what() << endl;
    return 1;
}
