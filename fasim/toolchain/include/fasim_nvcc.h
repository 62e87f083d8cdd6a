// What a .cu file may use without including anything under nvcc, and NVRTC does not define.
// nvcc puts cuda_runtime.h, and with it math.h, limits.h, stdlib.h, string.h, stdio.h, <cmath>, <limits> in front of every file.
#pragma once

#define __NVCC__ 1
#ifndef __linux__
#define __linux__ 1
#endif

// The C library of a 64-bit Linux takes long for the 64-bit types, NVIDIA's headers take long long under NVRTC; those that
// declare such types themselves, or pass pointers to them, allow nothing else.
#ifdef FASIM_INT64_IS_LONG
typedef long int64_t, intptr_t, intmax_t, int_fast16_t, int_fast32_t, int_fast64_t, int_least64_t;
typedef unsigned long uint64_t, uintptr_t, uintmax_t, uint_fast16_t, uint_fast32_t, uint_fast64_t, uint_least64_t;
#define int64_t fasim_cccl_int64_t
#define intptr_t fasim_cccl_intptr_t
#define intmax_t fasim_cccl_intmax_t
#define int_fast16_t fasim_cccl_int_fast16_t
#define int_fast32_t fasim_cccl_int_fast32_t
#define int_fast64_t fasim_cccl_int_fast64_t
#define int_least64_t fasim_cccl_int_least64_t
#define uint64_t fasim_cccl_uint64_t
#define uintptr_t fasim_cccl_uintptr_t
#define uintmax_t fasim_cccl_uintmax_t
#define uint_fast16_t fasim_cccl_uint_fast16_t
#define uint_fast32_t fasim_cccl_uint_fast32_t
#define uint_fast64_t fasim_cccl_uint_fast64_t
#define uint_least64_t fasim_cccl_uint_least64_t
#include <cuda/std/cstdint>
#undef int64_t
#undef intptr_t
#undef intmax_t
#undef int_fast16_t
#undef int_fast32_t
#undef int_fast64_t
#undef int_least64_t
#undef uint64_t
#undef uintptr_t
#undef uintmax_t
#undef uint_fast16_t
#undef uint_fast32_t
#undef uint_fast64_t
#undef uint_least64_t
#ifndef _CCCL_BEGIN_NAMESPACE_CUDA_STD // CCCL up to 3.1
#define _CCCL_BEGIN_NAMESPACE_CUDA_STD _LIBCUDACXX_BEGIN_NAMESPACE_STD
#define _CCCL_END_NAMESPACE_CUDA_STD _LIBCUDACXX_END_NAMESPACE_STD
#endif
_CCCL_BEGIN_NAMESPACE_CUDA_STD
using ::int64_t;
using ::intptr_t;
using ::intmax_t;
using ::int_fast16_t;
using ::int_fast32_t;
using ::int_fast64_t;
using ::int_least64_t;
using ::uint64_t;
using ::uintptr_t;
using ::uintmax_t;
using ::uint_fast16_t;
using ::uint_fast32_t;
using ::uint_fast64_t;
using ::uint_least64_t;
_CCCL_END_NAMESPACE_CUDA_STD
#else
#include <cuda/std/cstdint>
#endif
#include <cuda/std/climits>
#include "fasim_float.h"

typedef unsigned char u_char;
typedef unsigned short u_short, ushort;
typedef unsigned int u_int, uint;
typedef unsigned long u_long, ulong;
typedef unsigned char u_int8_t;
typedef unsigned short u_int16_t;
typedef unsigned int u_int32_t;
typedef unsigned long u_int64_t;
typedef long ssize_t, off_t;
typedef decltype(nullptr) nullptr_t;
typedef struct { int quot, rem; } div_t;
typedef struct { long quot, rem; } ldiv_t;

#define LONG_LONG_MAX LLONG_MAX
#define LONG_LONG_MIN LLONG_MIN
#define ULONG_LONG_MAX ULLONG_MAX
#define SSIZE_MAX LONG_MAX
#define PATH_MAX 4096

#define INFINITY (__builtin_bit_cast(float, 0x7f800000))
#define NAN (__builtin_bit_cast(float, 0x7fc00000))
#define HUGE_VALF INFINITY
#define HUGE_VAL (__builtin_bit_cast(double, 0x7ff0000000000000LL))
#define MAXFLOAT 3.40282346638528859812e+38F
#define __builtin_inff() (__builtin_bit_cast(float, 0x7f800000))
#define __builtin_inf() HUGE_VAL
#define __builtin_huge_valf() (__builtin_bit_cast(float, 0x7f800000))
#define __builtin_huge_val() HUGE_VAL
#define __builtin_nanf(payload) (__builtin_bit_cast(float, 0x7fc00000))
#define __builtin_nan(payload) (__builtin_bit_cast(double, 0x7ff8000000000000LL))

#define FP_NAN 0
#define FP_INFINITE 1
#define FP_ZERO 2
#define FP_SUBNORMAL 3
#define FP_NORMAL 4
#define FP_ILOGB0 (-2147483647 - 1)
#define FP_ILOGBNAN (-2147483647 - 1)

#define M_E 2.7182818284590452354
#define M_LOG2E 1.4426950408889634074
#define M_LOG10E 0.43429448190325182765
#define M_LN2 0.69314718055994530942
#define M_LN10 2.30258509299404568402
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_PI_4 0.78539816339744830962
#define M_1_PI 0.31830988618379067154
#define M_2_PI 0.63661977236758134308
#define M_2_SQRTPI 1.12837916709551257390
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_Ef 2.7182818284590452354f
#define M_LOG2Ef 1.4426950408889634074f
#define M_LOG10Ef 0.43429448190325182765f
#define M_LN2f 0.69314718055994530942f
#define M_LN10f 2.30258509299404568402f
#define M_PIf 3.14159265358979323846f
#define M_PI_2f 1.57079632679489661923f
#define M_PI_4f 0.78539816339744830962f
#define M_1_PIf 0.31830988618379067154f
#define M_2_PIf 0.63661977236758134308f
#define M_2_SQRTPIf 1.12837916709551257390f
#define M_SQRT2f 1.41421356237309504880f
#define M_SQRT1_2f 0.70710678118654752440f

#ifndef offsetof
#if __has_builtin(__builtin_offsetof)
#define offsetof(type, member) __builtin_offsetof(type, member)
#else // 13.0 to 13.2 lack it; an address of a member of a null object is a constant only in this operator of the compiler
#define offsetof(type, member) ((size_t)__INTADDR__(&((type*)0)->member))
#endif
#endif

#define EXIT_SUCCESS 0
#define EXIT_FAILURE 1
#define RAND_MAX 2147483647
#define EOF (-1)
#define BUFSIZ 8192
#define SEEK_SET 0
#define SEEK_CUR 1
#define SEEK_END 2
#define CLOCKS_PER_SEC ((long)1000000)

struct _IO_FILE;
typedef struct _IO_FILE FILE;

// names that cuda_runtime.h of nvcc brings into namespace std; NVRTC has them in the global one, with all overloads
namespace std {
using ::size_t;
using ::ptrdiff_t;
using ::nullptr_t;
using ::int8_t; using ::int16_t; using ::int32_t; using ::int64_t;
using ::uint8_t; using ::uint16_t; using ::uint32_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; using ::intmax_t; using ::uintmax_t;
using ::acos; using ::acosh; using ::asin; using ::asinh; using ::atan; using ::atan2; using ::atanh; using ::cbrt; using ::ceil;
using ::copysign; using ::cos; using ::cosh; using ::erf; using ::erfc; using ::exp; using ::exp2; using ::expm1; using ::fabs;
using ::fdim; using ::floor; using ::fma; using ::fmax; using ::fmin; using ::fmod; using ::frexp; using ::hypot; using ::ilogb;
using ::ldexp; using ::lgamma; using ::llrint; using ::llround; using ::log; using ::log10; using ::log1p; using ::log2; using ::logb;
using ::lrint; using ::lround; using ::modf; using ::nan; using ::nanf; using ::nearbyint; using ::nextafter; using ::pow;
using ::remainder; using ::remquo; using ::rint; using ::round; using ::scalbln; using ::scalbn; using ::sin; using ::sinh;
using ::sqrt; using ::tan; using ::tanh; using ::tgamma; using ::trunc;
using ::acosf; using ::asinf; using ::atanf; using ::atan2f; using ::ceilf; using ::copysignf; using ::cosf; using ::expf; using ::exp2f;
using ::fabsf; using ::floorf; using ::fmaf; using ::fmaxf; using ::fminf; using ::fmodf; using ::logf; using ::log2f; using ::log10f;
using ::powf; using ::roundf; using ::sinf; using ::sqrtf; using ::tanf; using ::tanhf; using ::truncf;
using ::abs; using ::labs; using ::llabs;
using ::isfinite; using ::isinf; using ::isnan; using ::signbit;
using ::malloc; using ::free; using ::memcpy; using ::memset; using ::printf; using ::clock; using ::clock_t;
}

#ifdef FASIM_USES_LIMITS
#include "fasim_limits.h"
#endif
#ifdef FASIM_USES_STD
#include "fasim_std.h"
#endif
