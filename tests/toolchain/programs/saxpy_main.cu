// SAXPY with the error-check macro that most tutorials show, and a main that launches it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <iostream>
#include <vector>

#define CHECK_CUDA(call)                                                                     \
    do {                                                                                     \
        cudaError_t err_ = (call);                                                           \
        if (err_ != cudaSuccess) {                                                           \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err_));    \
            std::exit(EXIT_FAILURE);                                                         \
        }                                                                                    \
    } while (0)

const int kBlock = 256;
constexpr float kScale = 2.0f;

__global__ void saxpy(int n, float a, const float *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = kScale * a * x[i] + y[i];
}

static inline int div_up(int a, int b) { return (a + b - 1) / b; }

void cpu_saxpy(int n, float a, const std::vector<float> &x, std::vector<float> &y) {
    for (int i = 0; i < n; ++i) y[i] = kScale * a * x[i] + y[i];
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 1 << 20;
    std::vector<float> x(n, 1.0f), y(n, 2.0f), ref(y);
    float *dx = nullptr, *dy = nullptr;
    CHECK_CUDA(cudaMalloc(&dx, n * sizeof(float)));
    CHECK_CUDA(cudaMalloc(&dy, n * sizeof(float)));
    CHECK_CUDA(cudaMemcpy(dx, x.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    CHECK_CUDA(cudaMemcpy(dy, y.data(), n * sizeof(float), cudaMemcpyHostToDevice));
    saxpy<<<div_up(n, kBlock), kBlock>>>(n, 3.0f, dx, dy);
    CHECK_CUDA(cudaGetLastError());
    CHECK_CUDA(cudaMemcpy(y.data(), dy, n * sizeof(float), cudaMemcpyDeviceToHost));
    cpu_saxpy(n, 3.0f, x, ref);
    double worst = 0;
    for (int i = 0; i < n; ++i) worst = std::max(worst, (double)std::fabs(y[i] - ref[i]));
    std::cout << "max error " << worst << std::endl;
    return worst < 1e-5 ? 0 : 1;
}
