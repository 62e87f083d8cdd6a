"""The special function unit's sine, cosine and hyperbolic tangent, bit for bit, on f32 bit patterns in arrays or lanes.

All three are piecewise quadratics, S = A + B*r - C*square(r), with 17-bit r, the truncated squarer of `mufu`, no constant and no
rounding: S is cut to 24 significant bits. Only integer operations are used, so that every step has a counterpart on vectors of 32 lanes.

The recordings hold every fraction of a turn that sine and cosine can tell apart, and all of tanh in [2^-12, 16). Counts over all of
float32, made on the GPU, give the rest: sine and cosine depend on nothing but those fractions, sine and tanh are odd and cosine is even
to the last bit, and tanh is x itself in every binade below 2^-8 and 1 from 8 on.

Source: exhaustive recordings on an H200 (sm_90, tools/record_mufu_trig.py); tools/recover_mufu_trig.py makes data/mufu_trig.npz of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fasim.numerics.either import leading_zeros, lookup, u32, u64, where
from fasim.numerics.mufu import truncated_square

U32 = Any  # an array of uint32, or u32 lanes
U64 = Any  # an array of uint64, or u64 lanes

CANONICAL_NAN = 0x7FFFFFFF
SIGN = 0x80000000
ONE = 0x3F800000
ONE_OVER_TWO_PI = 0x3E22F983  # the constant that ptxas multiplies by ahead of MUFU.SIN and MUFU.COS

R_BITS = 17
R_MASK = (1 << R_BITS) - 1
QUADRANT_BITS = 23  # a quarter turn is 2^23 steps
QUADRANT_MASK = (1 << QUADRANT_BITS) - 1
TURN_MASK = (1 << (QUADRANT_BITS + 2)) - 1
SIN_FRACTION_BITS = 37  # S of sine counts units of 2^-37
TANH_FRACTION_BITS = 44  # the finest unit that a row of tanh uses
TANH_LEAST = 0x3B800000  # 2^-8: a smaller |x| is its own tanh
TANH_SATURATED = 0x41000000  # 8: tanh is 1 from here on


def _load() -> list[Any]:
    with np.load(Path(__file__).parent / "data" / "mufu_trig.npz") as data:
        tables = [np.ascontiguousarray(data[name].T) for name in ("sin", "tanh", "tanh_binades")]
    for table in tables:
        table.flags.writeable = False
    return tables


# A, B and C (u64) of every segment
SIN_TABLE, TANH_TABLE, _BINADES = _load()
# u32 for each binade of tanh between the limits: the low bits of the argument's fraction that are dropped, and the binade's first segment
TANH_DROP, TANH_FIRST_ROW = _BINADES


def square(r: U32) -> U32:
    """r*r / 2^19 of a 17-bit r, without the partial products of weight below 2^19."""
    return truncated_square(r, R_BITS, 19)


def normalise(s: U64, fraction_bits: int) -> U32:
    """The f32 bits of s / 2^fraction_bits, truncated to 24 significant bits; 0 for 0."""
    length = u32(64 - leading_zeros(s))
    drop = u64(where(length > 24, length - 24, 0))
    grow = u64(where(length < 24, 24 - length, 0))
    significand = u32((s >> drop) << grow)
    biased = length + (126 - fraction_bits)
    return where(s == 0, 0, (biased << 23) + significand - (1 << 23))


def fmul_rz(a: U32, b: int) -> U32:
    """FMUL.RZ of f32 patterns by a finite normal constant in (0, 1); a product under 2^-126 becomes a signed zero.

    MUFU.SIN and MUFU.COS cannot tell such a product from zero.
    """
    exponent = (a >> 23) & 0xFF
    product = u64((a & 0x7FFFFF) | 0x800000) * ((b & 0x7FFFFF) | 0x800000)
    carry = u32(product >> 47)
    significand = u32(product >> u64(carry + 23)) & 0x7FFFFF
    biased = exponent + carry + (b >> 23)  # 127 too large
    finite = (biased - 127) << 23 | significand
    magnitude = where((exponent == 0) | (biased < 128), 0, where(exponent == 255, a & 0x7FFFFFFF, finite))
    return (a & SIGN) | magnitude


def turn_fraction(t: U32) -> U32:
    """|t| modulo 1 in units of 2^-25, truncated, for finite f32 patterns."""
    exponent = (t >> 23) & 0xFF
    significand = (t & 0x7FFFFF) | 0x800000
    left = where(exponent > 125, exponent - 125, 0)
    right = where(exponent < 125, 125 - exponent, 0)
    fixed = (significand << where(left < 31, left, 31)) >> where(right < 31, right, 31)
    return fixed & TURN_MASK


def _quadratic(table: Any, row: U32, r: U32) -> U64:
    a, b, c = (lookup(table[i], row) for i in range(3))
    return a + b * u64(r) - c * u64(square(r))


def _sine_of_steps(q: U32) -> U32:
    """sin(2 pi q / 2^25), q < 2^25; the descending quadrants take the one's complement of their fraction."""
    quadrant = q >> QUADRANT_BITS
    fraction = (q & QUADRANT_MASK) ^ where(quadrant & 1 != 0, (q & 0) + QUADRANT_MASK, 0)
    row = fraction >> R_BITS
    r = fraction & R_MASK
    return normalise(_quadratic(SIN_TABLE, row, r), SIN_FRACTION_BITS) | ((quadrant >> 1) << 31)


def mufu_sin(t: U32) -> U32:
    """MUFU.SIN: the sine of t turns; infinities and NaN give 0x7fffffff."""
    value = _sine_of_steps(turn_fraction(t)) ^ (t & SIGN)
    return where((t & 0x7F800000) == 0x7F800000, CANONICAL_NAN, value)


def mufu_cos(t: U32) -> U32:
    """MUFU.COS: the cosine of t turns, the sine a quarter turn ahead; infinities and NaN give 0x7fffffff."""
    value = _sine_of_steps((turn_fraction(t) + (1 << QUADRANT_BITS)) & TURN_MASK)
    return where((t & 0x7F800000) == 0x7F800000, CANONICAL_NAN, value)


def sin_approx_ftz(x: U32) -> U32:
    """sin.approx.ftz.f32 (and sin.approx.f32, the same machine code): FMUL.RZ by 1/(2 pi), then MUFU.SIN."""
    return mufu_sin(fmul_rz(x, ONE_OVER_TWO_PI))


def cos_approx_ftz(x: U32) -> U32:
    """cos.approx.ftz.f32 (and cos.approx.f32, the same machine code): FMUL.RZ by 1/(2 pi), then MUFU.COS."""
    return mufu_cos(fmul_rz(x, ONE_OVER_TWO_PI))


def tanh_approx(x: U32) -> U32:
    """tanh.approx.f32, which is MUFU.TANH: subnormals are kept, NaN gives 0x7fffffff."""
    magnitude = x & 0x7FFFFFFF
    inside = where(magnitude < TANH_LEAST, TANH_LEAST, magnitude)
    inside = where(inside < TANH_SATURATED, inside, TANH_SATURATED - 1)
    binade = (inside >> 23) - (TANH_LEAST >> 23)
    fraction = (inside & 0x7FFFFF) >> lookup(TANH_DROP, binade)
    row = lookup(TANH_FIRST_ROW, binade) + (fraction >> R_BITS)
    value = normalise(_quadratic(TANH_TABLE, row, fraction & R_MASK), TANH_FRACTION_BITS)
    value = where(magnitude < TANH_LEAST, magnitude, where(magnitude < TANH_SATURATED, value, ONE))
    return where(magnitude > 0x7F800000, CANONICAL_NAN, value | (x & SIGN))
