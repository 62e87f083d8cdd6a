
__constant__ float cw[8 * 4 * 9] = {0.5f, -1.f, 2.f, 0.25f, 1.f, 1.f, -3.f, 0.125f, 1.5f, 2.5f};
extern "C" __global__ void conv3x3(const float* in, float* out, int w, int h) {
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
  if (x >= w || y >= h) return;
  float acc[8] = {};
  for (int c = 0; c < 4; ++c)
    for (int dy = 0; dy < 3; ++dy)
      for (int dx = 0; dx < 3; ++dx) {
        int yy = y + dy - 1, xx = x + dx - 1;
        float v = (xx >= 0 && xx < w && yy >= 0 && yy < h) ? in[(c * h + yy) * w + xx] : 0.f;
        #pragma unroll
        for (int o = 0; o < 8; ++o) acc[o] += v * cw[(o * 4 + c) * 9 + dy * 3 + dx];
      }
  for (int o = 0; o < 8; ++o) out[(o * h + y) * w + x] = acc[o];
}