
extern "C" __global__ void scan_blelloch(const float* in, float* out) {
  __shared__ float s[1024];
  int t = threadIdx.x, base = blockIdx.x * 1024;
  s[2 * t] = in[base + 2 * t]; s[2 * t + 1] = in[base + 2 * t + 1];
  int off = 1;
  for (int d = 512; d > 0; d >>= 1) { __syncthreads();
    if (t < d) { int a = off * (2 * t + 1) - 1, b = off * (2 * t + 2) - 1; s[b] += s[a]; } off *= 2; }
  if (t == 0) s[1023] = 0;
  for (int d = 1; d < 1024; d *= 2) { off >>= 1; __syncthreads();
    if (t < d) { int a = off * (2 * t + 1) - 1, b = off * (2 * t + 2) - 1; float x = s[a]; s[a] = s[b]; s[b] += x; } }
  __syncthreads();
  out[base + 2 * t] = s[2 * t]; out[base + 2 * t + 1] = s[2 * t + 1];
}