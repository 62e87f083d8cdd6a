
extern "C" __global__ void stencil2d(const float* in, float* out, int w, int h) {
  __shared__ float t[18][34];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  for (int i = threadIdx.y * 32 + threadIdx.x; i < 18 * 34; i += 512) {
    int r = i / 34, c = i % 34, gx = blockIdx.x * 32 + c - 1, gy = blockIdx.y * 16 + r - 1;
    t[r][c] = (gx >= 0 && gx < w && gy >= 0 && gy < h) ? in[gy * w + gx] : 0.f;
  }
  __syncthreads();
  if (x < w && y < h) {
    float c = t[threadIdx.y + 1][threadIdx.x + 1];
    out[y * w + x] = c + 0.1f * (t[threadIdx.y][threadIdx.x + 1] + t[threadIdx.y + 2][threadIdx.x + 1] + t[threadIdx.y + 1][threadIdx.x] + t[threadIdx.y + 1][threadIdx.x + 2] - 4 * c);
  }
}