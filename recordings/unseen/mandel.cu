
extern "C" __global__ void mandel(int* out, int w, int h, int it) {
  int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float cx = -2.f + 3.f * x / w, cy = -1.5f + 3.f * y / h, a = 0, b = 0; int i = 0;
  while (i < it && a * a + b * b < 4.f) { float t = a * a - b * b + cx; b = 2 * a * b + cy; a = t; ++i; }
  out[y * w + x] = i;
}