
extern "C" __global__ void attn_decode(const float* q, const float* K, const float* V, float* o, int n) {
  __shared__ float part[8][64], ms[8], ls[8];
  int lane = threadIdx.x & 31, w = threadIdx.x >> 5; const float* k = K + (size_t)blockIdx.x * n * 64; const float* v = V + (size_t)blockIdx.x * n * 64;
  float2 qq = ((const float2*)(q + blockIdx.x * 64))[lane], acc = {0, 0}; float m = -INFINITY, l = 0;
  for (int j = w; j < n; j += 8) {
    float2 kk = ((const float2*)(k + j * 64))[lane]; float s = kk.x * qq.x + kk.y * qq.y;
    for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(~0u, s, d);
    float mn = fmaxf(m, s), c = __expf(m - mn), p = __expf(s - mn); float2 vv = ((const float2*)(v + j * 64))[lane];
    l = l * c + p; acc.x = acc.x * c + p * vv.x; acc.y = acc.y * c + p * vv.y; m = mn;
  }
  part[w][lane * 2] = acc.x; part[w][lane * 2 + 1] = acc.y; if (!lane) { ms[w] = m; ls[w] = l; }
  __syncthreads();
  if (threadIdx.x < 64) { float M = -INFINITY, L = 0, r = 0; for (int i = 0; i < 8; ++i) M = fmaxf(M, ms[i]);
    for (int i = 0; i < 8; ++i) { float c = __expf(ms[i] - M); L += ls[i] * c; r += part[i][threadIdx.x] * c; } o[blockIdx.x * 64 + threadIdx.x] = r / L; }
}