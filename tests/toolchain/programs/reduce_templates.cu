// Block reduction with a templated size, launched through a switch.
#include <cuda_runtime.h>
#include <stdio.h>
#include <assert.h>
#include <float.h>
#include <limits.h>

template <typename T>
struct SumOp {
    __device__ __forceinline__ T operator()(T a, T b) const { return a + b; }
    static __device__ T identity() { return T(0); }
};

template <typename T>
struct MaxOp {
    __host__ __device__ T operator()(const T &a, const T &b) const { return a > b ? a : b; }
    static __host__ __device__ T identity() { return -FLT_MAX; }
};

template <typename T, unsigned int blockSize, template <typename> class Op>
__global__ void reduce(const T *in, T *out, unsigned int n) {
    extern __shared__ unsigned char raw[];
    T *sdata = reinterpret_cast<T *>(raw);
    Op<T> op;
    unsigned int tid = threadIdx.x, i = blockIdx.x * blockSize * 2 + tid;
    T acc = Op<T>::identity();
    while (i < n) {
        acc = op(acc, in[i]);
        if (i + blockSize < n) acc = op(acc, in[i + blockSize]);
        i += blockSize * 2 * gridDim.x;
    }
    sdata[tid] = acc;
    __syncthreads();
#pragma unroll
    for (unsigned int s = blockSize / 2; s > 0; s >>= 1) {
        if (tid < s) sdata[tid] = op(sdata[tid], sdata[tid + s]);
        __syncthreads();
    }
    if (tid == 0) out[blockIdx.x] = sdata[0];
}

template <class T>
void run(const T *in, T *out, int n, int threads, int blocks) {
    size_t smem = threads * sizeof(T);
    switch (threads) {
        case 512: reduce<T, 512, SumOp><<<blocks, 512, smem>>>(in, out, n); break;
        case 256: reduce<T, 256, SumOp><<<blocks, 256, smem>>>(in, out, n); break;
        default: assert(!"unsupported");
    }
}

int main() {
    float *in, *out;
    cudaMalloc((void **)&in, 4096 * sizeof(float));
    cudaMalloc((void **)&out, sizeof(float));
    run<float>(in, out, 4096, 256, 1);
    reduce<float, 128, MaxOp><<<1, 128, 128 * sizeof(float)>>>(in, out, 4096);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
    return 0;
}
