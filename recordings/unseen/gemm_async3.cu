
#define CP(d, s) asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(d)), "l"(s))
extern "C" __global__ void gemm_async3(const float* A, const float* B, float* C, int n) {
  __shared__ float a[3][64][16]; __shared__ float b[3][16][64];
  int t = threadIdx.x, tx = t % 16, ty = t / 16, r0 = blockIdx.y * 64, c0 = blockIdx.x * 64;
  float acc[4][4] = {};
  int nk = n / 16;
  auto load = [&](int k) { int s = k % 3; CP(&a[s][t / 4][(t % 4) * 4], A + (size_t)(r0 + t / 4) * n + k * 16 + (t % 4) * 4);
    CP(&b[s][t / 16][(t % 16) * 4], B + (size_t)(k * 16 + t / 16) * n + c0 + (t % 16) * 4); };
  load(0); asm volatile("cp.async.commit_group;"); load(1); asm volatile("cp.async.commit_group;");
  for (int k = 0; k < nk; ++k) {
    asm volatile("cp.async.wait_group 1;"); __syncthreads();
    if (k + 2 < nk) load(k + 2); asm volatile("cp.async.commit_group;");
    int s = k % 3;
    #pragma unroll
    for (int i = 0; i < 16; ++i) { float x[4]; float4 y = *(float4*)&b[s][i][tx * 4];
      #pragma unroll
      for (int j = 0; j < 4; ++j) x[j] = a[s][ty * 4 + j][i];
      #pragma unroll
      for (int j = 0; j < 4; ++j) { acc[j][0] += x[j] * y.x; acc[j][1] += x[j] * y.y; acc[j][2] += x[j] * y.z; acc[j][3] += x[j] * y.w; } }
  }
  for (int j = 0; j < 4; ++j) *(float4*)(C + (size_t)(r0 + ty * 4 + j) * n + c0 + tx * 4) = make_float4(acc[j][0], acc[j][1], acc[j][2], acc[j][3]);
}