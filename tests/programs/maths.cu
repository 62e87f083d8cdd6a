// libdevice in single and double precision, half, bfloat16 and fp8 intrinsics.
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#define I (blockIdx.x * blockDim.x + threadIdx.x)
extern "C" __global__ void single(float* o, const float* a, const float* b) {
    float x = a[I], y = b[I]; float* p = o + 20 * I;
    p[0] = sinf(x); p[1] = cosf(x); p[2] = tanf(x * 1e-4f); p[3] = expf(y); p[4] = logf(fabsf(x)); p[5] = powf(fabsf(x), y * 0.1f); p[6] = erff(y); p[7] = tgammaf(fabsf(y) + 0.5f); p[8] = atan2f(x, y); p[9] = sinhf(y);
    p[10] = log1pf(fabsf(y)); p[11] = cbrtf(x); p[12] = exp2f(y); p[13] = hypotf(x, y); p[14] = asinf(y * 0.05f); p[15] = lgammaf(fabsf(y) + 0.1f); p[16] = expm1f(y); p[17] = log10f(fabsf(x)); p[18] = tanhf(y); p[19] = erfcf(y); }
extern "C" __global__ void single_exact(float* o, const float* a, const float* b) {
    float x = a[I], y = b[I]; float* p = o + 12 * I; int e;
    p[0] = x / y; p[1] = sqrtf(fabsf(x)); p[2] = fmodf(x, y); p[3] = rintf(y); p[4] = truncf(x); p[5] = fmaf(x, y, x); p[6] = frexpf(x, &e); p[7] = ldexpf(y, 5); p[8] = copysignf(x, y); p[9] = 1.0f / y; p[10] = floorf(y) + ceilf(x); p[11] = nextafterf(x, y); }
extern "C" __global__ void twice(double* o, const double* a, const double* b) {
    double x = a[I], y = b[I]; double* p = o + 12 * I;
    p[0] = sin(x); p[1] = cos(x); p[2] = exp(y); p[3] = log(fabs(x)); p[4] = pow(fabs(x), y * 0.1); p[5] = erf(y); p[6] = tgamma(fabs(y) + 0.5); p[7] = atan2(x, y); p[8] = cbrt(x); p[9] = log1p(fabs(y)); p[10] = tanh(y); p[11] = sinh(y); }
extern "C" __global__ void twice_exact(double* o, const double* a, const double* b) { double x = a[I], y = b[I]; double* p = o + 6 * I; p[0] = x / y; p[1] = sqrt(fabs(x)); p[2] = fmod(x, y); p[3] = rint(y); p[4] = 1.0 / y; p[5] = __dadd_ru(x, y) - __dadd_rd(x, y); }
extern "C" __global__ void fast(float* o, const float* b) { float y = b[I]; float* p = o + 6 * I; p[0] = __expf(y); p[1] = __logf(fabsf(y) + 3); p[2] = __sinf(y * 0.1f) + 2.0f; p[3] = __fdividef(3.0f, y); p[4] = rsqrtf(fabsf(y)); p[5] = __powf(fabsf(y), 0.3f); }
extern "C" __global__ void halves(unsigned short* o, const unsigned short* a, const unsigned short* b) {
    __half x = __ushort_as_half(a[I]), y = __ushort_as_half(b[I]); __half r[10] = {__hadd(x, y), __hmul(x, y), __hfma(x, y, x), __hdiv(x, y), hsqrt(__habs(x)), __hmax(x, y), __hmin_nan(x, y), hrint(x), __float2half_rz(__half2float(x) * 1.1f), __hsub_sat(x, y)};
    for (int i = 0; i < 10; i++) o[12 * I + i] = __half_as_ushort(r[i]); o[12 * I + 10] = __hlt(x, y) | __heq(x, y) << 1 | __hgtu(x, y) << 2 | __hisnan(x) << 3; o[12 * I + 11] = __half2short_rz(x); }
extern "C" __global__ void bfloats(unsigned short* o, const unsigned short* a, const unsigned short* b) {
    __nv_bfloat16 x = __ushort_as_bfloat16(a[I]), y = __ushort_as_bfloat16(b[I]); __nv_bfloat16 r[5] = {__hadd(x, y), __hmul(x, y), __hmax(x, y), __float2bfloat16_rn(__bfloat162float(x) * 1.1f), __hneg(x)}; for (int i = 0; i < 5; i++) o[5 * I + i] = __bfloat16_as_ushort(r[i]); }
extern "C" __global__ void fp8(unsigned char* o, float* back, const float* a) { float x = a[I]; __nv_fp8_e4m3 e(x); __nv_fp8_e5m2 f(x); o[2 * I] = e.__x; o[2 * I + 1] = f.__x; back[2 * I] = (float)e; back[2 * I + 1] = (float)f; }
extern "C" __global__ void dot(float* o, const __half2* a, const __half2* b) { __half2 s = __float2half2_rn(0); for (int i = 0; i < 8; i++) s = __hfma2(a[8 * I + i], b[8 * I + i], s); o[I] = __low2float(s) + __high2float(s); }
