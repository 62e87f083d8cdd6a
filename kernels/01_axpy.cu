// 01_axpy.cu: y = a x + y, one thread an element.
//
//   nvcc -arch=sm_90 -lineinfo -cubin -o axpy.cubin 01_axpy.cu
//   fasim run axpy --n 1000
//
// What it teaches: the index of a thread, the tail check, and that neighbouring lanes should touch neighbouring words:
// a warp's 32 floats are 128 contiguous bytes, four 32-byte sectors, none of them fetched twice.
//
// Grid (ceil(n / 256)), block 256.

extern "C" __global__ void axpy(float a, const float* __restrict__ x, float* __restrict__ y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = __fmaf_rn(a, x[i], y[i]);
}
