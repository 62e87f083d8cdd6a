
#include <cuda_fp16.h>
#define CP(d, s) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(d)), "l"(s))
#define LDSM4(r, p) asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"((unsigned)__cvta_generic_to_shared(p)))
#define LDSM4T(r, p) asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"((r)[0]), "=r"((r)[1]), "=r"((r)[2]), "=r"((r)[3]) : "r"((unsigned)__cvta_generic_to_shared(p)))
#define MMA16(c, a, b0, b1) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};" : "+f"((c)[0]), "+f"((c)[1]), "+f"((c)[2]), "+f"((c)[3]) : "r"((a)[0]), "r"((a)[1]), "r"((a)[2]), "r"((a)[3]), "r"(b0), "r"(b1))
#if 1
#define AT(r, c) ((r) * 32 + (((c) / 8 ^ ((r) >> 1 & 3)) * 8))
#define BT(r, c) ((r) * 128 + (((c) / 8 ^ ((r) & 7)) * 8))
#else
#define AT(r, c) ((r) * 32 + (c))
#define BT(r, c) ((r) * 128 + (c))
#endif
// 128x128 tile, k 32, 8 warps 2x4 (64x32 each), 3 stages
extern "C" __global__ void __launch_bounds__(256) hgemm_swz(const half* A, const half* B, float* C, int n) {
  extern __shared__ __align__(128) half sm[];
  half* sa = sm; half* sb = sm + 3 * 128 * 32;
  int t = threadIdx.x, lane = t & 31, w = t >> 5, wr = (w >> 2) * 64, wc = (w & 3) * 32, r0 = blockIdx.y * 128, c0 = blockIdx.x * 128, nk = n / 32;
  float acc[4][4][4] = {};
  auto load = [&](int k) { half* pa = sa + (k % 3) * 4096; half* pb = sb + (k % 3) * 4096;
    for (int i = t; i < 512; i += 256) { int r = i / 4, c = i % 4 * 8; CP(pa + AT(r, c), A + (size_t)(r0 + r) * n + k * 32 + c);
      int rb = i / 16, cb = i % 16 * 8; CP(pb + BT(rb, cb), B + (size_t)(k * 32 + rb) * n + c0 + cb); } };
  load(0); asm volatile("cp.async.commit_group;"); load(1); asm volatile("cp.async.commit_group;");
  for (int k = 0; k < nk; ++k) {
    asm volatile("cp.async.wait_group 1;" ::: "memory"); __syncthreads();
    if (k + 2 < nk) load(k + 2); asm volatile("cp.async.commit_group;");
    half* pa = sa + (k % 3) * 4096; half* pb = sb + (k % 3) * 4096;
    #pragma unroll
    for (int kk = 0; kk < 32; kk += 16) {
      unsigned a[4][4], b[2][4];
      #pragma unroll
      for (int i = 0; i < 4; ++i) LDSM4(a[i], pa + AT(wr + i * 16 + lane % 16, kk + lane / 16 * 8));
      #pragma unroll
      for (int j = 0; j < 2; ++j) LDSM4T(b[j], pb + BT(kk + lane % 16, wc + j * 16 + lane / 16 * 8));
      #pragma unroll
      for (int i = 0; i < 4; ++i)
        #pragma unroll
        for (int j = 0; j < 4; ++j) MMA16(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
  }
  #pragma unroll
  for (int i = 0; i < 4; ++i)
    #pragma unroll
    for (int j = 0; j < 4; ++j) { int r = r0 + wr + i * 16 + lane / 4, c = c0 + wc + j * 8 + lane % 4 * 2;
      *(float2*)(C + (size_t)r * n + c) = make_float2(acc[i][j][0], acc[i][j][1]);
      *(float2*)(C + (size_t)(r + 8) * n + c) = make_float2(acc[i][j][2], acc[i][j][3]); }
}