"""Fused multiply-add of doubles with directed rounding, in integers.

The error of an f64 operation is not a double where it underflows, so the rounding cannot be corrected afterwards as for f32. Here the
128-bit product and the addend are aligned, added and rounded once.
"""

from __future__ import annotations

from fasim.numerics.lanes import Lanes, bits, cast, clz, const, mulhi, where

_FRACTION = (1 << 52) - 1
_FAR = 8000  # exponent of zero: below everything


def _unpack(x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """Sign (u64, 0 or 1), exponent (s64) of the last place, significand (u64) in [2**52, 2**53) or 0 of a finite f64."""
    u = bits(x, "u64")
    biased, fraction = (u >> 52) & 0x7FF, u & _FRACTION
    significand = where(biased == 0, fraction, fraction | (1 << 52))
    shift = where(significand == 0, 0, clz(significand) - 11)
    exponent = bits(where(biased == 0, 1, biased), "s64") - 1075 - bits(shift, "s64")
    return u >> 63, where(significand == 0, -_FAR, exponent), significand << shift


def _shift_right_jam(high: Lanes, low: Lanes, amount: Lanes) -> tuple[Lanes, Lanes]:
    """A 128-bit value shifted right by `amount` (s64, not negative); lost bits stay visible as a set last bit."""
    n = bits(where(amount > 127, 127, amount), "u64")
    wide = n >= 64
    rest = n & 63
    up = 64 - rest  # a shift by 64 gives 0
    lost = where(wide, low | (high << up), low << up) != 0
    shifted_high = where(wide, 0, high >> rest)
    shifted_low = where(wide, high >> rest, (low >> rest) | (high << up))
    return shifted_high, shifted_low | cast(lost, "u64")


def _less(high_a: Lanes, low_a: Lanes, high_b: Lanes, low_b: Lanes) -> Lanes:
    return (high_a < high_b) | ((high_a == high_b) & (low_a < low_b))


def fma_f64(a: Lanes, b: Lanes, c: Lanes, rounding: str) -> Lanes:
    """a * b + c of finite doubles, rounded once by `rz`, `rm` or `rp`."""
    (sign_a, exponent_a, m_a), (sign_b, exponent_b, m_b), (sign_c, exponent_c, m_c) = _unpack(a), _unpack(b), _unpack(c)
    sign_p = sign_a ^ sign_b
    # both terms with their leading bit at 124 or 125 of 128, so that a sum has room and a difference guard bits
    high, low = mulhi(m_a, m_b), m_a * m_b
    p_high, p_low, exponent_p = (high << 20) | (low >> 44), low << 20, exponent_a + exponent_b - 20
    c_high, c_low, exponent_c = m_c << 9, m_c & 0, exponent_c - 73
    gap = exponent_p - exponent_c
    p_high, p_low = _shift_right_jam(p_high, p_low, where(gap < 0, -gap, 0))
    c_high, c_low = _shift_right_jam(c_high, c_low, where(gap > 0, gap, 0))
    exponent = where(gap > 0, exponent_p, exponent_c)

    swap = _less(p_high, p_low, c_high, c_low)
    big_high, big_low, small_high, small_low = (
        where(swap, x, y) for x, y in ((c_high, p_high), (c_low, p_low), (p_high, c_high), (p_low, c_low))
    )
    subtract = sign_p != sign_c
    sum_low, difference_low = big_low + small_low, big_low - small_low
    carry, borrow = cast(sum_low < big_low, "u64"), cast(big_low < small_low, "u64")
    high = where(subtract, big_high - small_high - borrow, big_high + small_high + carry)
    low = where(subtract, difference_low, sum_low)
    sign = where(swap, sign_c, sign_p)
    zero = (high | low) == 0
    zero_sign = where(subtract, const(int(rounding == "rm"), like=sign), sign_p)
    return where(zero, bits(zero_sign << 63, "f64"), _round(where(zero, zero_sign, sign), exponent, high, low, rounding))


def _round(sign: Lanes, exponent: Lanes, high: Lanes, low: Lanes, rounding: str) -> Lanes:
    """The nearest double in the wanted direction from high:low * 2**exponent, which is not 0."""
    empty = high == 0
    high, low = where(empty, low, high), where(empty, 0, low)
    exponent = where(empty, exponent - 64, exponent)
    lead = clz(where(high == 0, 1, high))
    high, low = (high << lead) | (low >> (64 - lead)), low << lead
    biased = exponent + 127 + 1023 - bits(lead, "s64")
    significand = high | cast(low != 0, "u64")  # leading bit at 63: 11 bits more than a double has
    subnormal = biased <= 0
    significand, below = _shift_right_jam(significand, significand & 0, where(subnormal, 1 - biased, 0))
    biased = where(subnormal, 0, biased - 1)  # the leading bit adds 1 where there is one
    rest = (significand | cast(below != 0, "u64")) & 0x7FF
    kept = significand >> 11
    if rounding == "rz":
        up = rest > 0x7FF
    else:
        up = (rest != 0) & ((sign != 0) if rounding == "rm" else (sign == 0))
    overflow = biased > 2046
    value = (bits(where(overflow, 0, biased), "u64") << 52) + kept + cast(up, "u64")
    infinity = 0x7FF0000000000000
    limit = const(infinity, like=sign)
    limit = limit - (const(1, like=sign) if rounding == "rz" else sign if rounding == "rp" else sign ^ 1)
    value = where(overflow | (value >= infinity), limit, value)
    return bits(value | (sign << 63), "f64")
