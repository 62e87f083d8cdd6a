"""The multifunction unit (MUFU) bit for bit: ex2, rcp, rsqrt, sqrt and lg2 `.approx.ftz.f32`.

Every function is a piecewise quadratic on the fraction. Its leading bits choose a segment (A, B, C of 26, 16 and 10 bits; only the
first A of rcp is 2**26), the other n bits are r, and the result is A +- B r +- C sq(r) in fixed point plus a constant that the function
has in common for all segments, then truncated. sq(r) is a squarer without its low columns:

    function  segments  n   sq(r)            sum, in units of the last bit kept
    ex2       64        17  columns from 19  (A << 13) + 0x17e2 + B r + C sq              >> 15
    rcp       128       16  columns from 17  (A << 13) + 0x07e7 - B r + C sq              >> 15
    rsqrt     2 x 64    17  columns from 19  (A << 14) + 0x3fff - B r + (C sq << 2)       >> 16
    sqrt      2 x 64    17  columns from 19  (A << 15) + 0x7fff + (B r << odd) - (C sq << 1)  >> 17
    lg2       64        17  columns from 19  (A << 12) + 0x0345 + B r - (C sq << 1)       >> 2, leaving 36 fraction bits

All arguments and results are float32 bit patterns, in arrays of uint32 or u32 lanes. Subnormal arguments count as zero, subnormal
results become zero, and every NaN result is 0x7fffffff.

The tables come from sweeps of ex2 over [-2, -0.5) and [0.5, 2), rcp over [1, 2), rsqrt and sqrt over [1, 4) and lg2 over [0.5, 4). The
whole functions equal an H200's on all 2**32 arguments (tests/hardware holds a sum for every binade).

Source: recovered from exhaustive sweeps on an H200 (tools/recover_mufu.py); the shape is that of Oberman and Siu, "A High-Performance
Area-Efficient Multifunction Interpolator", ARITH 2005.
"""

from __future__ import annotations

from typing import Any

from fasim.numerics import mufu_rom
from fasim.numerics.either import leading_zeros, lookup, u32, u64, where

U32 = Any  # an array of uint32, or u32 lanes
U64 = Any  # an array of uint64, or u64 lanes

NAN = 0x7FFFFFFF
INF = 0x7F800000
_MAGNITUDE = 0x7FFFFFFF
_SIGN = 0x80000000
_FRACTION = 0x7FFFFF
_ONE = 1 << 23
_LEAST_NORMAL = 0x00800000


def truncated_square(r: U32, bits: int, column: int) -> U32:
    """The square of `r` (`bits` wide) as a folded squarer makes it that leaves out the partial products below 2**column.

    Returns: the sum of the products that are left, in units of 2**column.
    """
    total = r & 0
    for i in range(column // 2 + 1, bits):
        # row i holds the products r[i] r[j], j < i, in column i + j + 1, and r[i] itself in column 2 i
        row = ((r & ((1 << i) - 1)) + (1 << (i - 1))) >> (column - 1 - i)
        total = total + where((r & (1 << i)) != 0, row, 0)
    return total


def _coefficients(rom: U64, segment: U32) -> tuple[U64, U64, U64]:
    word = lookup(rom, segment)
    return word >> 26, (word >> 10) & 0xFFFF, word & 0x3FF


def _terms(rom: U64, set_: U32, fraction: U32, bits: int, column: int) -> tuple[U64, U64, U64]:
    """A, B r and C sq(r) for a 23-bit fraction that leaves `bits` bits below the segment number; `set_` counts tables of one binade."""
    a, b, c = _coefficients(rom, (set_ << (23 - bits)) + (fraction >> bits))
    r = fraction & ((1 << bits) - 1)
    return a, b * u64(r), c * u64(truncated_square(r, bits, column))


def ex2_approx_ftz(x: U32) -> U32:
    """2**x, as MUFU.EX2 gives it.

    Source: PTX ISA, floating-point instructions, ex2; H200 sweeps.
    """
    magnitude = x & _MAGNITUDE
    negative = (x & _SIGN) != 0
    exponent = magnitude >> 23
    # 7.23 fixed point, truncated; 134 and above overflows or underflows whatever the fraction
    exponent = where(exponent > 133, 133, exponent)
    up = where(exponent > 127, exponent - 127, 0)
    down = where(exponent < 127, 127 - exponent, 0)
    down = where(down > 31, 31, down)
    fixed = (((magnitude & _FRACTION) | _ONE) << up) >> down
    # a negative argument is complemented, not negated, unless its fraction is 0
    fraction = fixed & _FRACTION
    inverted = negative & (fraction != 0)
    fraction = where(inverted, fraction ^ _FRACTION, fraction)
    whole = fixed >> 23
    result_exponent = where(negative, where(inverted, 126 - whole, 127 - whole), 127 + whole)

    a, br, cs = _terms(mufu_rom.EX2, x & 0, fraction, 17, 19)
    mantissa = u32(((a << 13) + 0x17E2 + br + cs) >> 15)
    result = (result_exponent << 23) + (mantissa - _ONE)
    result = where(negative & (magnitude > 0x42FC0000), 0, result)
    result = where(~negative & (magnitude >= 0x43000000), INF, result)
    return where(magnitude > INF, NAN, result)


def rcp_approx_ftz(x: U32) -> U32:
    """1 / x, as MUFU.RCP gives it.

    Source: PTX ISA, floating-point instructions, rcp; H200 sweeps.
    """
    magnitude = x & _MAGNITUDE
    a, br, cs = _terms(mufu_rom.RCP, x & 0, x & _FRACTION, 16, 17)
    mantissa = u32(((a << 13) + 0x07E7 - br + cs) >> 15)
    result = ((253 - (magnitude >> 23)) << 23) + (mantissa - _ONE)
    result = where(magnitude > 0x7E800000, 0, result)  # above 2**126: subnormal
    result = where(magnitude < _LEAST_NORMAL, INF, result)
    result = result | (x & _SIGN)
    return where(magnitude > INF, NAN, result)


def _upper(y: U32, exponent: U32) -> U32:
    """The upper word of an f64 with the fraction of a float32 `y`, cut to 20 bits."""
    return (exponent << 20) | ((y & _FRACTION) >> 3)


def rcp64h(high: U32) -> U32:
    """1 / x on the upper words of f64 numbers, as MUFU.RCP64H gives it: rcp's table on 20 fraction bits, of which 20 are kept.

    Source: H200, all fractions of a binade and samples of all exponents.
    """
    exponent, sign = (high >> 20) & 0x7FF, high & _SIGN
    y = rcp_approx_ftz((127 << 23) | ((high & 0xFFFFF) << 3))
    limit = (y >> 23) + (2046 - 127)
    result = where(exponent >= limit, 0, _upper(y, limit - exponent))
    result = where(exponent == 0, 0x7FF00000, result) | sign
    return where((high & _MAGNITUDE) > 0x7FF00000, NAN, result)


def rsq64h(high: U32) -> U32:
    """1 / sqrt(x) on the upper words of f64 numbers, as MUFU.RSQ64H gives it: rsqrt's tables on 20 fraction bits, of which 20 are kept.

    Source: H200, all fractions of two binades and samples of all exponents.
    """
    exponent = (high >> 20) & 0x7FF
    y = rsqrt_approx_ftz(((128 - (exponent & 1)) << 23) | ((high & 0xFFFFF) << 3))
    result = _upper(y, (y >> 23) + (1023 - 127 + 512) - ((exponent + 1) >> 1))
    result = where(high == 0x7FF00000, 0, result)
    result = where(high > 0x7FF00000, NAN, result)
    return where(exponent == 0, (high & _SIGN) | 0x7FF00000, result)


def _root_special(x: U32, result: U32, zero: int, infinity: int) -> U32:
    """`result`, but `zero` with the sign of x for zeros and subnormals, `infinity` for +inf, NaN for NaN and below zero."""
    magnitude = x & _MAGNITUDE
    result = where(x == INF, infinity, result)
    result = where((x > INF), NAN, result)
    return where(magnitude < _LEAST_NORMAL, (x & _SIGN) | zero, result)


def rsqrt_approx_ftz(x: U32) -> U32:
    """1 / sqrt(x), as MUFU.RSQ gives it.

    Source: PTX ISA, floating-point instructions, rsqrt; H200 sweeps.
    """
    exponent = x >> 23
    fraction = x & _FRACTION
    odd = (exponent & 1) ^ 1  # the bias is odd
    a, br, cs = _terms(mufu_rom.RSQ, odd, fraction, 17, 19)
    mantissa = u32(((a << 14) + 0x3FFF - br + (cs << 2)) >> 16)
    # the sum would be one ulp low where the result is a power of two
    mantissa = where((odd == 0) & (fraction == 0), 1 << 24, mantissa)
    result = ((190 - ((exponent + 1) >> 1)) << 23) + (mantissa - _ONE)
    return _root_special(x, result, INF, 0)


def sqrt_approx_ftz(x: U32) -> U32:
    """The square root of x, as MUFU.SQRT gives it.

    Source: PTX ISA, floating-point instructions, sqrt; H200 sweeps.
    """
    exponent = x >> 23
    odd = (exponent & 1) ^ 1  # the bias is odd
    a, br, cs = _terms(mufu_rom.SQRT, odd, x & _FRACTION, 17, 19)
    mantissa = u32(((a << 15) + 0x7FFF + (br << u64(odd)) - (cs << 1)) >> 17)
    result = ((63 + ((exponent + 1) >> 1)) << 23) + (mantissa - _ONE)
    return _root_special(x, result, 0, INF)


def lg2_approx_ftz(x: U32) -> U32:
    """The logarithm of x to the base 2, as MUFU.LG2 gives it.

    Source: PTX ISA, floating-point instructions, lg2; H200 sweeps.
    """
    exponent = x >> 23
    below_one = exponent < 127
    a, br, cs = _terms(mufu_rom.LG2, x & 0, x & _FRACTION, 17, 19)
    fraction = ((a << 12) + 0x0345 + br - (cs << 1)) >> 2
    # exponent and fraction make one fixed-point number with 36 fraction bits; a negative one is complemented, not negated
    whole = u64(where(below_one, 127 - exponent, exponent - 127) & 0xFF)
    magnitude = where(below_one, (whole << 36) - 1 - fraction, (whole << 36) + fraction)
    zeros = leading_zeros(magnitude)
    mantissa = u32((magnitude << zeros) >> 40)
    result = ((154 - u32(zeros)) << 23) + (mantissa - _ONE)
    result = where(below_one, result | _SIGN, result)
    result = where(x == 127 << 23, 0, result)  # 1 has the exact logarithm
    result = where(x == INF, INF, result)
    result = where(x > INF, NAN, result)
    return where((x & _MAGNITUDE) < _LEAST_NORMAL, 0xFF800000, result)
