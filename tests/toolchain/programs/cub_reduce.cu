// CUB inside a kernel, thrust on the host.
#include <cub/cub.cuh>
#include <thrust/device_vector.h>
#include <thrust/sort.h>
#include <iostream>

template <int BLOCK_THREADS, int ITEMS>
__global__ void BlockSum(const int *in, int *out) {
    using BlockLoad = cub::BlockLoad<int, BLOCK_THREADS, ITEMS, cub::BLOCK_LOAD_TRANSPOSE>;
    using BlockReduce = cub::BlockReduce<int, BLOCK_THREADS>;
    __shared__ union {
        typename BlockLoad::TempStorage load;
        typename BlockReduce::TempStorage reduce;
    } temp;
    int data[ITEMS];
    BlockLoad(temp.load).Load(in + blockIdx.x * BLOCK_THREADS * ITEMS, data);
    __syncthreads();
    int sum = BlockReduce(temp.reduce).Sum(data);
    if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

int main() {
    thrust::device_vector<int> v(1024, 1);
    thrust::sort(v.begin(), v.end());
    int *out;
    cudaMalloc(&out, 4);
    BlockSum<128, 8><<<1, 128>>>(thrust::raw_pointer_cast(v.data()), out);
    std::cout << "done\n";
}
