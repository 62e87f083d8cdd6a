// std::numeric_limits for the arithmetic types, without the 0.7 s that the headers of CCCL take.
// Members are instantiated only for the types a file asks for: NVRTC writes every instantiated static member into the PTX.
#pragma once

namespace std {

enum float_round_style { round_indeterminate = -1, round_toward_zero, round_to_nearest, round_toward_infinity, round_toward_neg_infinity };
enum float_denorm_style { denorm_indeterminate = -1, denorm_absent, denorm_present };

#define FASIM_FUNCTION __host__ __device__ static constexpr

template <class T> struct fasim_no_limits {
    static constexpr bool is_specialized = false, is_signed = false, is_integer = false, is_exact = false, is_bounded = false;
    static constexpr bool is_modulo = false, is_iec559 = false, has_infinity = false, has_quiet_NaN = false, has_signaling_NaN = false;
    static constexpr int digits = 0, digits10 = 0, max_digits10 = 0, radix = 0;
    FASIM_FUNCTION T min() noexcept { return T(); }
    FASIM_FUNCTION T max() noexcept { return T(); }
    FASIM_FUNCTION T lowest() noexcept { return T(); }
    FASIM_FUNCTION T epsilon() noexcept { return T(); }
    FASIM_FUNCTION T infinity() noexcept { return T(); }
    FASIM_FUNCTION T quiet_NaN() noexcept { return T(); }
    FASIM_FUNCTION T denorm_min() noexcept { return T(); }
};

template <class T> struct fasim_integer_limits {
    static constexpr bool is_specialized = true, is_signed = T(-1) < T(0), is_integer = true, is_exact = true, is_bounded = true;
    static constexpr bool is_modulo = !is_signed && T(2) != T(1), is_iec559 = false, traps = true, tinyness_before = false;
    static constexpr bool has_infinity = false, has_quiet_NaN = false, has_signaling_NaN = false, has_denorm_loss = false;
    static constexpr float_denorm_style has_denorm = denorm_absent;
    static constexpr float_round_style round_style = round_toward_zero;
    static constexpr int digits = T(2) == T(1) ? 1 : int(sizeof(T)) * 8 - is_signed, digits10 = digits * 30103 / 100000;
    static constexpr int max_digits10 = 0, radix = 2, min_exponent = 0, min_exponent10 = 0, max_exponent = 0, max_exponent10 = 0;
    FASIM_FUNCTION T min() noexcept { return is_signed ? T(-max() - 1) : T(0); }
    FASIM_FUNCTION T max() noexcept { return T(2) == T(1) ? T(1) : T((((1ULL << (digits - 1)) - 1) << 1) + 1); }
    FASIM_FUNCTION T lowest() noexcept { return min(); }
    FASIM_FUNCTION T epsilon() noexcept { return T(0); }
    FASIM_FUNCTION T round_error() noexcept { return T(0); }
    FASIM_FUNCTION T infinity() noexcept { return T(0); }
    FASIM_FUNCTION T quiet_NaN() noexcept { return T(0); }
    FASIM_FUNCTION T signaling_NaN() noexcept { return T(0); }
    FASIM_FUNCTION T denorm_min() noexcept { return T(0); }
};

// BITS is the integer of the same size; the values come as bit patterns: smallest normal, largest, epsilon, infinity, NaNs
template <class T, class BITS, BITS MIN, BITS MAX, BITS EPSILON, BITS INF, BITS QNAN, BITS SNAN, int DIGITS, int MINE, int MAXE>
struct fasim_float_limits {
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false, is_bounded = true;
    static constexpr bool is_modulo = false, is_iec559 = true, traps = false, tinyness_before = false;
    static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true, has_denorm_loss = false;
    static constexpr float_denorm_style has_denorm = denorm_present;
    static constexpr float_round_style round_style = round_to_nearest;
    static constexpr int digits = DIGITS, digits10 = (DIGITS - 1) * 30103 / 100000, max_digits10 = DIGITS * 30103 / 100000 + 2, radix = 2;
    static constexpr int min_exponent = MINE, min_exponent10 = (MINE - 1) * 30103 / 100000;
    static constexpr int max_exponent = MAXE, max_exponent10 = MAXE * 30103 / 100000;
    FASIM_FUNCTION T min() noexcept { return __builtin_bit_cast(T, MIN); }
    FASIM_FUNCTION T max() noexcept { return __builtin_bit_cast(T, MAX); }
    FASIM_FUNCTION T lowest() noexcept { return -__builtin_bit_cast(T, MAX); }
    FASIM_FUNCTION T epsilon() noexcept { return __builtin_bit_cast(T, EPSILON); }
    FASIM_FUNCTION T round_error() noexcept { return T(0.5); }
    FASIM_FUNCTION T infinity() noexcept { return __builtin_bit_cast(T, INF); }
    FASIM_FUNCTION T quiet_NaN() noexcept { return __builtin_bit_cast(T, QNAN); }
    FASIM_FUNCTION T signaling_NaN() noexcept { return __builtin_bit_cast(T, SNAN); }
    FASIM_FUNCTION T denorm_min() noexcept { return __builtin_bit_cast(T, BITS(1)); }
};

template <class T> struct fasim_limits_of { typedef fasim_no_limits<T> type; };
#define FASIM_INTEGER(T) template <> struct fasim_limits_of<T> { typedef fasim_integer_limits<T> type; };
FASIM_INTEGER(bool)
FASIM_INTEGER(char)
FASIM_INTEGER(signed char)
FASIM_INTEGER(unsigned char)
FASIM_INTEGER(wchar_t)
FASIM_INTEGER(char16_t)
FASIM_INTEGER(char32_t)
FASIM_INTEGER(short)
FASIM_INTEGER(unsigned short)
FASIM_INTEGER(int)
FASIM_INTEGER(unsigned int)
FASIM_INTEGER(long)
FASIM_INTEGER(unsigned long)
FASIM_INTEGER(long long)
FASIM_INTEGER(unsigned long long)
template <> struct fasim_limits_of<float> {
    typedef fasim_float_limits<float, unsigned int, 0x00800000, 0x7f7fffff, 0x34000000, 0x7f800000, 0x7fc00000, 0x7fa00000, 24, -125, 128> type;
};
template <> struct fasim_limits_of<double> {
    typedef fasim_float_limits<double, unsigned long long, 0x0010000000000000, 0x7fefffffffffffff, 0x3cb0000000000000, 0x7ff0000000000000,
                               0x7ff8000000000000, 0x7ff4000000000000, 53, -1021, 1024> type;
};

template <class T> class numeric_limits : public fasim_limits_of<T>::type {};
template <class T> class numeric_limits<const T> : public numeric_limits<T> {};

#undef FASIM_INTEGER
#undef FASIM_FUNCTION
}
