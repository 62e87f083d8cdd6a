
extern "C" __global__ void im2col(const float* in, float* col, int c, int h, int w, int total) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < total; i += blockDim.x * gridDim.x) {
    int wo = i % w, ho = (i / w) % h, ci = i / w / h;
    float* p = col + (size_t)ci * 9 * h * w + ho * w + wo;
    const float* q = in + (size_t)ci * h * w;
    for (int r = 0; r < 3; ++r) for (int s = 0; s < 3; ++s) {
      int y = ho + r - 1, x = wo + s - 1;
      *p = (y >= 0 && x >= 0 && y < h && x < w) ? q[y * w + x] : 0.f; p += h * w;
    }
  }
}