// Kernels that once went wrong, and kernels that must be refused or stopped with a clear message.
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
#define I (blockIdx.x * blockDim.x + threadIdx.x)

typedef int (*through)(int, void*);
__device__ __noinline__ int bounce(int n, void* p) { int r = ((through)p)(n - 1, p); return r * 2 + n; }
__device__ __noinline__ int start(int n, void* p) { if (n <= 0) return 1; int a = n * 7, b = n ^ 3; int r = bounce(n, p); return r + a * b + n; }
extern "C" __global__ void pointer_recursion(int* o) { o[I] = start(threadIdx.x % 7, (void*)start); }
struct Huge { int v[6000]; };
__device__ __noinline__ int eat(Huge b, int i) { b.v[i] += 5; return b.v[i] + b.v[5999]; }
extern "C" __global__ void huge_arguments(int* o) { Huge b; for (int i = 0; i < 6000; i++) b.v[i] = i; o[I] = eat(b, threadIdx.x); }
__device__ __noinline__ int fill(int i) { int a[10000]; for (int k = 0; k < 10000; k += 100) a[k + i % 100] = k; return a[(i * 100) % 10000 + i % 100]; }
extern "C" __global__ void big_frame(int* o) { o[I] = fill(threadIdx.x); }
__device__ __noinline__ int deep(int n) { volatile int a[16]; a[n & 15] = n; return n == 0 ? 0 : deep(n - 1) * 3 + a[n & 15]; }
extern "C" __global__ void too_deep(int* o, int n) { o[I] = deep(n); }
__device__ int (*kept)(int); __device__ __noinline__ int f1(int x) { return x + 1; } __device__ __noinline__ int f2(int x) { return x * 3; } __device__ __noinline__ int f3(int x) { return x - 7; }
extern "C" __global__ void keep_function() { kept = f3; }
extern "C" __global__ void use_function(int* o) { int (*q)(int) = threadIdx.x & 1 ? f1 : f2; if (threadIdx.x > 500) q = f2; o[I] = kept(threadIdx.x) * 1000 + q(threadIdx.x); }
extern "C" __global__ void exit_while_others_wait(int* o) { if ((threadIdx.x & 31) < 16) { asm volatile("bar.sync 1, 96;"); o[I] = 1; } else { o[I] = 2; } }
extern "C" __global__ void whole_block_in_two_ways(int* o) { if (threadIdx.x < 32) asm volatile("bar.sync 1;"); else if (threadIdx.x < 64) asm volatile("bar.arrive 1, 96;"); else asm volatile("bar.sync 1, 96;"); o[I] = 1; }
extern "C" __global__ void counts_differ(int* o) { if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else asm volatile("bar.sync 1, 96;"); o[I] = 1; }
extern "C" __global__ void last_warp_first(int* o) { __shared__ volatile int turn; if (threadIdx.x == 0) turn = blockDim.x / 32 - 1; __syncthreads(); int w = threadIdx.x / 32; while (turn != w) ; __syncwarp(); o[I] = w * 2; if ((threadIdx.x & 31) == 0) turn = w - 1; }
extern "C" __global__ void churn(int* o) { int s = 0; for (int i = 0; i < 40; i++) { char* p = (char*)malloc(400000); if (!p) { s = -1; break; } p[i] = i; s += p[i]; free(p); } o[I] = s; }
__shared__ int in_shared; __constant__ int in_const[3] = {4, 5, 6}; __device__ int in_global;
extern "C" __global__ void which_space(int* o) { in_shared = 1; const void* p[4] = {in_const, &in_global, &in_shared, o}; for (int i = 0; i < 4; i++) { int q, r; asm volatile("{ .reg .pred p; isspacep.const p, %2; selp.s32 %0, 1, 0, p; isspacep.global p, %2; selp.s32 %1, 1, 0, p; }" : "=r"(q), "=r"(r) : "l"(p[i])); o[i] = q * 2 + r; } o[4] = *(volatile const int*)(threadIdx.x < 99 ? &in_const[1] : &in_global); }
extern "C" __global__ void big_tiles(int* o, const int* in) { auto t = cg::tiled_partition<64>(cg::this_thread_block()); int v = in[I]; int r = cg::reduce(t, v, cg::plus<int>()); t.sync(); o[I] = r + t.shfl(v, 40) * 1000 + t.any(v == 3) * 7; }
extern "C" __global__ void grid_phases(int* o, int* a, int n) { auto g = cg::this_grid(); for (int k = 0; k < n; k++) { a[g.thread_rank()] = o[(g.thread_rank() + 33) % g.size()] + k; g.sync(); o[g.thread_rank()] = a[g.size() - 1 - g.thread_rank()] * 2; cg::sync(g); } }

extern "C" __global__ void store_at(int* a, long long at) { a[at] = 1; }
extern "C" __global__ void load_at(int* a, const int* b, long long at) { a[0] = b[at]; }
extern "C" __global__ void store_vector(char* b, int at) { *(float4*)(b + at) = make_float4(1, 2, 3, 4); }
extern "C" __global__ void store_const(int i) { int* p = in_const; asm volatile("" : "+l"(p)); p[i] = 1; }
extern "C" __global__ void store_shared(int* o, int i) { __shared__ volatile int s[16]; s[i] = 1; o[0] = s[i]; }
extern "C" __global__ void store_local(int* o, int i) { int l[8]; for (int k = 0; k < 8; k++) l[k] = k; l[i] = 3; o[0] = l[i ^ 1]; }
extern "C" __global__ void store_generic(unsigned long long a) { asm volatile("st.u32 [%0], 5;" :: "l"(a)); }
extern "C" __global__ void add_at(int* a, int at) { atomicAdd(a + at, 1); }
extern "C" __global__ void copy_async(int* g, int i, int j) { __shared__ __align__(16) int s[32]; asm volatile("cp.async.ca.shared.global [%0], [%1], 16; cp.async.wait_all;" :: "r"((unsigned)__cvta_generic_to_shared(s) + i), "l"((char*)g + j)); }
extern "C" __global__ void load_matrix(int* o, int i) { __shared__ __align__(16) int s[64]; int a, b; asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "r"((unsigned)__cvta_generic_to_shared(s) + i)); o[0] = a + b; }
extern "C" __global__ void call_at(int* o, unsigned long long d) { int (*f)(int) = f1; asm volatile("" : "+l"(f)); f = (int (*)(int))((unsigned long long)f + d); o[0] = f(3); }
extern "C" __global__ void jump_to(int* o, int i) { int r; asm volatile("{ T: .branchtargets A, B; brx.idx %1, T; A: mov.u32 %0, 5; bra E; B: mov.u32 %0, 6; E: }" : "=r"(r) : "r"(i)); o[0] = r; }
extern "C" __global__ void barrier_number(int n, int c) { asm volatile("bar.sync %0, %1;" :: "r"(n), "r"(c)); }
extern "C" __global__ void two_barriers(int* o) { if (threadIdx.x < 32) __syncthreads(); else asm volatile("bar.sync 1, 96;"); o[0] = 1; }
extern "C" __global__ void no_producer(int* o) { if (threadIdx.x < 32) asm volatile("bar.sync 2, 96;"); }
extern "C" __global__ void lanes_miss(int* o) { if (threadIdx.x == 0) o[0] = __shfl_sync(3, 1, 1); else if (threadIdx.x == 1) { asm volatile("bar.sync 2, 32;"); o[1] = __ballot_sync(3, 1); } else __syncthreads(); }
extern "C" __global__ void lanes_spin(int* o) { if (threadIdx.x < 16) __syncwarp(); else while (((volatile int*)o)[0] == 0) ; }
extern "C" __global__ void never_set(int* o) { while (((volatile int*)o)[0] == 0) ; }
extern "C" __global__ void for_ever(int* o) { volatile int i = 0; while (1) i++; }
extern "C" __global__ void free_twice(int* o) { int* p = (int*)malloc(8); free(p); if (threadIdx.x == 5) free(p); }
extern "C" __global__ void free_foreign(int* o) { free(o); }
extern "C" __global__ void print_missing() { printf("%s\n", (char*)8); }
extern "C" __global__ void print_wide(int n) { printf("%*d\n", n, 3); }
extern "C" __global__ void check(int n) { assert(threadIdx.x != n); }
extern "C" __global__ void stop() { if (threadIdx.x == 3) __trap(); }
extern "C" __global__ void scalars(unsigned short h, short s, unsigned char c, bool b, float f, double d, long long q, int* p) { p[0] = h; p[1] = s; p[2] = c; p[3] = b; p[4] = f; p[5] = d; p[6] = q; }
extern "C" __global__ void mbarrier(int* o) { __shared__ unsigned long long b; asm volatile("mbarrier.init.shared.b64 [%0], 32;" :: "r"((unsigned)__cvta_generic_to_shared(&b))); }
extern "C" __global__ void texture(float* o, cudaTextureObject_t t) { o[I] = tex2D<float>(t, I, 0); }
extern "C" __global__ void surface(int* o, cudaSurfaceObject_t t) { o[I] = surf1Dread<int>(t, I); }
#if __CUDA_ARCH__ >= 900
extern "C" __global__ void cluster(int* o) { cg::this_cluster().sync(); }
extern "C" __global__ void bulk(int* o) { asm volatile("cp.async.bulk.commit_group;"); }
#endif
