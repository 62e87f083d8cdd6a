// A header that mixes both sides, as projects have them.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <vector>

#define HD __host__ __device__ __forceinline__
#define DEVFN __device__ static inline
#define gpuErrchk(ans) { gpuAssert((ans), __FILE__, __LINE__); }

inline void gpuAssert(cudaError_t code, const char *file, int line, bool abort = true) {
    if (code != cudaSuccess) {
        fprintf(stderr, "GPUassert: %s %s %d\n", cudaGetErrorString(code), file, line);
        if (abort) exit(code);
    }
}

HD int ceil_div(int a, int b) { return (a + b - 1) / b; }

DEVFN float square(float x) { return x * x; }

template <class T>
std::vector<T> random_vector(size_t n) {
    std::vector<T> v(n);
    for (auto &x : v) x = T(rand()) / RAND_MAX;
    return v;
}

constexpr int next_pow2(int n) { return n <= 1 ? 1 : 2 * next_pow2((n + 1) / 2); }
