// warps of a sub-partition with different work: X is that of the first four, Y of the others
#ifndef X
#define X 0
#endif
#ifndef Y
#define Y 1
#endif
__device__ __forceinline__ void mma(float (&c)[4], unsigned a0, unsigned a1, unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
    : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void ldsm(unsigned (&b)[4], unsigned p) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(b[0]), "=r"(b[1]), "=r"(b[2]), "=r"(b[3]) : "r"(p));
}
__device__ __forceinline__ float ex2(float x) { float y; asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x)); return y; }
extern __shared__ unsigned smem[];
template <int ROLE> __device__ float work(int n) {
  float c[8][4] = {}; float f[16]; unsigned a[4][4], b[4]; 
  for (int i = 0; i < 16; i++) { f[i] = threadIdx.x + i; a[i / 4][i % 4] = threadIdx.x * i; }
  for (int i = 0; i < 4; i++) b[i] = threadIdx.x;
  unsigned p = (unsigned)__cvta_generic_to_shared(smem) + threadIdx.x % 32 * 16;
  for (int r = 0; r < n; r++) {
    if (ROLE == 0) {
#pragma unroll
      for (int i = 0; i < 64; i++) mma(c[i % 8], a[i / 16][0], a[i / 16][1], a[i / 16][2], a[i / 16][3], b[i % 2 * 2], b[i % 2 * 2 + 1]);
    } else if (ROLE == 1) {
#pragma unroll
      for (int i = 0; i < 32; i++) {
        mma(c[i % 8], a[i / 8][0], a[i / 8][1], a[i / 8][2], a[i / 8][3], b[i % 2 * 2], b[i % 2 * 2 + 1]);
#pragma unroll
        for (int j = 0; j < 12; j++) { int q = (i * 12 + j) % 16; if (j % 2) f[q] = f[q] * f[(q + 5) % 16]; else f[q] = f[q] + f[(q + 3) % 16]; asm volatile("" : "+f"(f[q])); }
      }
    } else if (ROLE == 2) {
#pragma unroll
      for (int i = 0; i < 384; i++) { int q = i % 16; if (i % 12 == 11) f[q] = ex2(f[q]); else if (i % 2) f[q] = f[q] * f[(q + 5) % 16]; else f[q] = f[q] + f[(q + 3) % 16]; asm volatile("" : "+f"(f[q])); }
    } else if (ROLE == 3) {
#pragma unroll
      for (int i = 0; i < 64; i++) { if (i % 2 == 0) ldsm(b, p + i * 512); mma(c[i % 8], a[i / 16][0], a[i / 16][1], a[i / 16][2], a[i / 16][3], b[i % 2 * 2], b[i % 2 * 2 + 1]); }
    } else if (ROLE == 4) {
#pragma unroll
      for (int i = 0; i < 384; i++) { int q = i % 16; if (i % 3 == 0) f[q] = fmaxf(f[q], f[(q + 7) % 16]); else if (i % 3 == 1) f[q] = f[q] * f[(q + 5) % 16]; else f[q] = f[q] + f[(q + 3) % 16]; asm volatile("" : "+f"(f[q])); }
    } else if (ROLE == 5) {
#pragma unroll
      for (int i = 0; i < 32; i++) {
        mma(c[i % 8], a[i / 8][0], a[i / 8][1], a[i / 8][2], a[i / 8][3], b[i % 2 * 2], b[i % 2 * 2 + 1]);
#pragma unroll
        for (int j = 0; j < 3; j++) { int q = (i * 3 + j) % 16; if (j % 2) f[q] = f[q] * f[(q + 5) % 16]; else f[q] = f[q] + f[(q + 3) % 16]; asm volatile("" : "+f"(f[q])); }
      }
    }
  }
  float s = 0; for (int i = 0; i < 16; i++) s += f[i]; for (int i = 0; i < 8; i++) for (int j = 0; j < 4; j++) s += c[i][j];
  return s;
}
extern "C" __global__ void __launch_bounds__(256) pair(float* out, long long* t, int nx, int ny) {
  long long t0 = clock64(); float s;
  if (threadIdx.x < 128) s = work<X>(nx); else s = work<Y>(ny);
  long long t1 = clock64();
  out[blockIdx.x * 256 + threadIdx.x] = s;
  if (threadIdx.x % 32 == 0) t[blockIdx.x * 8 + threadIdx.x / 32] = t1 - t0;
}
