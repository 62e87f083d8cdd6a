// Compiled to features.ptx: nvcc -ptx -arch=sm_90 -std=c++17 -lineinfo features.cu
struct Pack { int a; double b; float c[3]; };
struct Node { int key; int *where; char tag; };

__constant__ float table[8] = {1.f, 2.5f, -3.f, 0.f, 1e-30f};
__device__ int counter = 7;
__device__ int grid[3][4] = {{1, 2}, {3}};
__device__ int *pointers[3] = {&grid[1][2], nullptr, &counter};
__device__ Node node = {3, &grid[2][1], 'q'};
__device__ const char *text = "a // b";
extern __shared__ float dynamic[];

__device__ int plus1(int x) { return x + 1; }
__device__ int twice(int x) { return x * 2; }
typedef int (*unary)(int);
__device__ unary functions[2] = {plus1, twice};

__noinline__ __device__ int factorial(int n) { return n <= 1 ? 1 : n * factorial(n - 1); }
__noinline__ __device__ Pack change(Pack p, int k) { p.a += k; p.c[k & 1] = 3; return p; }

__device__ __forceinline__ float inner(float x) { return __fmaf_rn(x, x, 1.f); }
__device__ __forceinline__ float outer(float x) { return inner(x) * 2.f; }

extern "C" __global__ void __launch_bounds__(128, 2) features(int *out, Pack pack, int n) {
    out[0] = factorial(n);
    out[1] = change(pack, n).a;
    out[2] = functions[n & 1](n);
    switch (n) {
    case 0: out[4] = out[3] ^ 5; break;
    case 1: out[5] = out[6] * 3; break;
    case 2: out[7] = atomicAdd(out, 3); break;
    case 3: out[8] = __popc(n); break;
    case 4: out[9] = __shfl_xor_sync(~0u, n, 3); break;
    case 5: out[10] = __ballot_sync(~0u, n > threadIdx.x); break;
    }
    int local[16];
    for (int i = 0; i < n; i++) local[i & 15] += i;
    out[11] = local[n & 15] + node.key + *pointers[n & 1] + text[n];
    dynamic[threadIdx.x] = outer(table[n & 7]);
    asm volatile("{ .reg .pred p; .reg .u32 t; setp.eq.u32 p, %0, 3; @p mov.u32 t, 1; @!p mov.u32 t, 2; st.global.u32 [%1], t; }"
                 :: "r"(n), "l"(out));
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 3; @p bra DONE; st.global.u32 [%1], %0; DONE: }" :: "r"(n), "l"(out));
    asm volatile("{ .reg .pred p; setp.eq.u32 p, %0, 4; @p bra DONE; st.global.u32 [%1], %0; DONE: }" :: "r"(n), "l"(out));
}
