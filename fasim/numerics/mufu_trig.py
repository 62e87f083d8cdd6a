"""The special function unit's sine, cosine and hyperbolic tangent, bit for bit, on arrays of f32 bit patterns.

All three are piecewise quadratics, S = A + B*r - C*square(r), with 17-bit r, a truncated squarer and no rounding: S is cut to 24
significant bits. Only integer operations are used, so that every step has a counterpart on vectors of 32 lanes.

Source: exhaustive recordings on an H200 (sm_90); the tables in data/mufu_trig.npz come from tools/recover_mufu_trig.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]

CANONICAL_NAN = 0x7FFFFFFF
SIGN = 0x80000000
ONE = 0x3F800000
ONE_OVER_TWO_PI = 0x3E22F983  # the constant that ptxas multiplies by ahead of MUFU.SIN and MUFU.COS

R_BITS = 17
R_MASK = (1 << R_BITS) - 1
QUADRANT_BITS = 23  # a quarter turn is 2^23 steps
QUADRANT_MASK = (1 << QUADRANT_BITS) - 1
TURN_MASK = (1 << (QUADRANT_BITS + 2)) - 1

_TABLES = np.load(Path(__file__).parent / "data" / "mufu_trig.npz")
SIN_TABLE: U32 = _TABLES["sin"]
TANH_TABLE: U32 = _TABLES["tanh"]
for _table in (SIN_TABLE, TANH_TABLE):
    _table.flags.writeable = False


def square(r: U32) -> U32:
    """r*r / 2^19 of a 17-bit r, without the partial products of weight below 2^19."""
    total = np.zeros_like(r)
    for i in range(10, R_BITS):
        row = ((r & ((1 << i) - 1)) >> (18 - i)) + (1 << (2 * i - 19))
        total = total + np.where((r >> i) & 1 != 0, row, 0)
    return total


def normalise(s: U64, fraction_bits: int) -> U32:
    """The f32 bits of s / 2^fraction_bits, truncated to 24 significant bits; 0 for 0."""
    length = (64 - leading_zeros(s)).astype(np.uint32)
    drop = np.where(length > 24, length - 24, 0).astype(np.uint64)
    grow = np.where(length < 24, 24 - length, 0).astype(np.uint64)
    significand = ((s >> drop) << grow).astype(np.uint32)
    biased = length + (126 - fraction_bits)
    return np.where(s == 0, 0, (biased << 23) + significand - (1 << 23))


def leading_zeros(s: U64) -> U64:
    """Zero bits above the highest set bit of a 64-bit value."""
    for n in (1, 2, 4, 8, 16, 32):
        s = s | (s >> n)
    return 64 - np.bitwise_count(s).astype(np.uint64)


def fmul_rz(a: U32, b: int) -> U32:
    """FMUL.RZ of f32 patterns by a finite normal constant in (0, 1); a product under 2^-126 becomes a signed zero.

    MUFU.SIN and MUFU.COS cannot tell such a product from zero.
    """
    exponent = (a >> 23) & 0xFF
    product = ((a & 0x7FFFFF) | 0x800000).astype(np.uint64) * ((b & 0x7FFFFF) | 0x800000)
    carry = (product >> 47).astype(np.uint32)
    significand = (product >> (carry + 23).astype(np.uint64)).astype(np.uint32) & 0x7FFFFF
    biased = exponent + carry + (b >> 23)  # 127 too large
    finite = (biased - 127) << 23 | significand
    magnitude = np.where((exponent == 0) | (biased < 128), 0, np.where(exponent == 255, a & 0x7FFFFFFF, finite))
    return (a & SIGN) | magnitude


def turn_fraction(t: U32) -> U32:
    """|t| modulo 1 in units of 2^-25, truncated, for finite f32 patterns."""
    exponent = (t >> 23) & 0xFF
    significand = (t & 0x7FFFFF) | 0x800000
    left = np.where(exponent > 125, exponent - 125, 0)
    right = np.where(exponent < 125, 125 - exponent, 0)
    fixed = (significand << np.where(left < 31, left, 31)) >> np.where(right < 31, right, 31)
    return fixed & TURN_MASK


def _sine_of_steps(q: U32) -> U32:
    """sin(2 pi q / 2^25), q < 2^25; the descending quadrants take the one's complement of their fraction."""
    quadrant = q >> QUADRANT_BITS
    fraction = (q & QUADRANT_MASK) ^ np.where(quadrant & 1 != 0, QUADRANT_MASK, 0).astype(np.uint32)
    row = fraction >> R_BITS
    r = fraction & R_MASK
    a, b, c = (SIN_TABLE[:, i][row].astype(np.uint64) for i in range(3))
    s = (a << 12) + b * r - c * square(r)
    return normalise(s, 37) | ((quadrant >> 1) << 31)


def mufu_sin(t: U32) -> U32:
    """MUFU.SIN: the sine of t turns; infinities and NaN give 0x7fffffff."""
    value = _sine_of_steps(turn_fraction(t)) ^ (t & SIGN)
    return np.where((t & 0x7F800000) == 0x7F800000, CANONICAL_NAN, value)


def mufu_cos(t: U32) -> U32:
    """MUFU.COS: the cosine of t turns, the sine a quarter turn ahead; infinities and NaN give 0x7fffffff."""
    value = _sine_of_steps((turn_fraction(t) + (1 << QUADRANT_BITS)) & TURN_MASK)
    return np.where((t & 0x7F800000) == 0x7F800000, CANONICAL_NAN, value)


def sin_approx_ftz(x: U32) -> U32:
    """sin.approx.ftz.f32 (and sin.approx.f32, the same machine code): FMUL.RZ by 1/(2 pi), then MUFU.SIN."""
    return mufu_sin(fmul_rz(x, ONE_OVER_TWO_PI))


def cos_approx_ftz(x: U32) -> U32:
    """cos.approx.ftz.f32 (and cos.approx.f32, the same machine code): FMUL.RZ by 1/(2 pi), then MUFU.COS."""
    return mufu_cos(fmul_rz(x, ONE_OVER_TWO_PI))
