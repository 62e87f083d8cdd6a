
extern "C" __global__ void chase(const int* nxt, int* out, int steps) {
  int p = blockIdx.x * 64 + threadIdx.x; for (int i = 0; i < steps; ++i) p = nxt[p];
  out[blockIdx.x * 64 + threadIdx.x] = p;
}