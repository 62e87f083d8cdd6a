
extern "C" __global__ void dp4a_gemv(const int4* a, const int4* x, int* y, int n16) {
  int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31, s = 0;
  for (int j = lane; j < n16; j += 32) { int4 u = a[(size_t)row * n16 + j], v = __ldg(x + j);
    s = __dp4a(u.x, v.x, s); s = __dp4a(u.y, v.y, s); s = __dp4a(u.z, v.z, s); s = __dp4a(u.w, v.w, s); }
  s = __reduce_add_sync(~0u, s); if (!lane) y[row] = s;
}