"""Formats narrower than f32: f16 and bf16 values are u16 lanes of bits, tf32 is f32, fp8 is u32 lanes below 256.

Wider values come as f32 or f64 and are rounded once, in every direction that the hardware offers.
"""

from __future__ import annotations

from dataclasses import dataclass

from fasim.numerics import ieee
from fasim.numerics.lanes import Lanes, bits, cast, const, where


@dataclass(frozen=True, slots=True)
class Format:
    """A 16-bit format: its infinity and canonical NaN, as bits."""

    name: str
    infinity: int
    nan: int = 0x7FFF
    sign: int = 0x8000


F16 = Format("f16", 0x7C00)
BF16 = Format("bf16", 0x7F80)
FORMATS = {"f16": F16, "bf16": BF16}


def is_nan(x: Lanes, format_: Format) -> Lanes:
    """Predicate: NaN."""
    return (x & 0x7FFF) > format_.infinity


def widen(x: Lanes, format_: Format) -> Lanes:
    """The f32 of the same value; NaN stays NaN with any payload."""
    if format_ is F16:
        return cast(bits(x, "f16"), "f32")
    return bits(cast(x, "u32") << 16, "f32")


def f32_of(d: Lanes) -> Lanes:
    """An f64 as the f32 that narrower formats round correctly: rounded to odd."""
    if d.type == "f32":
        return d
    r = cast(d, "f32")
    back = cast(r, "f64")
    return ieee.to_odd(r, d > back, d < back)


def _cut_nan(d: Lanes, fraction_bits: int, type_: str) -> Lanes:
    """An f64 NaN in a narrower type, as bits: sign and leading payload bits stay, and it becomes quiet.

    Source: measured on an H200.
    """
    n, u = int(type_[1:]), bits(d, "u64") | ieee.QUIET_BIT_F64
    return cast(((u >> 63) << (n - 1)) | ((u & 0x7FFFFFFFFFFFFFFF) >> (52 - fraction_bits) & ((1 << (n - 1)) - 1)), type_)


def narrow_f32(d: Lanes, rounding: str = "rn") -> Lanes:
    """f64 to f32."""
    r = cast(d, "f32")
    back = cast(r, "f64")
    r = ieee.direct(r, d > back, d < back, rounding)
    return bits(where(d != d, _cut_nan(d, 23, "u32"), bits(r, "u32")), "f32")


def _step(h: Lanes, format_: Format, x: Lanes, rounding: str) -> Lanes:
    """Turn `h`, x rounded to nearest, into another rounding."""
    if rounding == "rn":
        return h
    back, negative = widen(h, format_), (h & format_.sign) != 0
    above, below = x > back, x < back
    outward = (above & ~negative if rounding == "rp" else below & negative) if rounding != "rz" else above & ~above
    inward = {"rp": above & negative, "rm": below & ~negative, "rz": (above & negative) | (below & ~negative)}[rounding]
    return h + cast(outward, "u16") - cast(inward, "u16")


def _bf16_nearest(x: Lanes) -> Lanes:
    u = bits(x, "u32")
    return cast((u + 0x7FFF + ((u >> 16) & 1)) >> 16, "u16")


def narrow(x: Lanes, format_: Format, rounding: str = "rn") -> Lanes:
    """f32 or f64 to a 16-bit format; NaN is canonical if it comes from an f32."""
    if x.type == "f64":
        h = narrow(f32_of(x), format_, rounding)
        return where(x != x, _cut_nan(x, 10 if format_ is F16 else 7, "u16"), h)
    if format_ is F16:
        h = bits(cast(x, "f16"), "u16")
        return where(is_nan(h, F16), F16.nan, _step(h, F16, x, rounding))
    if rounding == "rz":
        h = cast(bits(x, "u32") >> 16, "u16")
    elif rounding == "rna":
        h = cast((bits(x, "u32") + 0x8000) >> 16, "u16")
    else:
        h = _step(_bf16_nearest(x), BF16, x, rounding)
    return where(x != x, BF16.nan, h)


def relu(h: Lanes, format_: Format) -> Lanes:
    """`.relu`: negative values and -0 become +0, NaN the canonical NaN."""
    return where(is_nan(h, format_), format_.nan, where(h >= format_.sign, 0, h))


def satfinite(h: Lanes, format_: Format) -> Lanes:
    """`.satfinite`: an infinity becomes the largest finite value of its sign."""
    return h - cast((h & 0x7FFF) == format_.infinity, "u16")


def saturate(h: Lanes, format_: Format) -> Lanes:
    """`.sat`: clamp to [0, 1]; NaN and negative values give +0."""
    one = 0x3C00 if format_ is F16 else 0x3F80
    return where((h >= format_.sign) | is_nan(h, format_), 0, where(h > one, one, h))


def flush_f16(h: Lanes) -> Lanes:
    """`.ftz`: f16 subnormals become zero of the same sign."""
    return where((h & 0x7C00) == 0, h & 0x8000, h)


def low_half(x: Lanes) -> Lanes:
    """The lower 16 bits of a 32-bit register."""
    return cast(x, "u16")


def high_half(x: Lanes) -> Lanes:
    """The upper 16 bits of a 32-bit register."""
    return cast(x >> 16, "u16")


def pack(high: Lanes, low: Lanes) -> Lanes:
    """Two 16-bit values in a 32-bit register."""
    return (cast(high, "u32") << 16) | cast(low, "u32")


# --- arithmetic ----------------------------------------------------------------------------------------------------------------


def canonical(h: Lanes, format_: Format) -> Lanes:
    """`h` with the one NaN that arithmetic gives."""
    return where(is_nan(h, format_), format_.nan, h)


def _rounded(x: Lanes, format_: Format) -> Lanes:
    return narrow(x, format_)


def add(a: Lanes, b: Lanes, format_: Format) -> Lanes:
    """a + b to nearest: the f32 sum has more than twice the bits, so rounding it again cannot go wrong."""
    return _rounded(widen(a, format_) + widen(b, format_), format_)


def sub(a: Lanes, b: Lanes, format_: Format) -> Lanes:
    """a - b to nearest."""
    return _rounded(widen(a, format_) - widen(b, format_), format_)


def mul(a: Lanes, b: Lanes, format_: Format) -> Lanes:
    """a * b to nearest."""
    return _rounded(widen(a, format_) * widen(b, format_), format_)


def _underflows(x: Lanes) -> Lanes:
    """Predicate: an f32 rounded to f16, as if exponents had no lower end, is below 2**-14 (NaN is not)."""
    return ieee.magnitude(x) < 2.0**-14 - 2.0**-26


def product_underflows(a: Lanes, b: Lanes) -> Lanes:
    """Predicate: `.ftz` makes the f16 product a * b zero."""
    return _underflows(widen(a, F16) * widen(b, F16))


def fma_underflows(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """Predicate: `.ftz` makes the f16 a * b + c zero."""
    return _underflows(_fma_odd(*(widen(x, F16) for x in (a, b, c))))


def _fma_odd(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b + c of f16 values given as f32, rounded to odd."""
    product = a * b  # exact, and far from the limits of f32
    total = product + c
    part = total - product
    error = (product - (total - part)) + (c - part)
    u = bits(total, "u32")
    odd = (u - ((u ^ bits(error, "u32")) >> 31)) | 1
    return bits(where(ieee.magnitude(error) > 0.0, odd, u), "f32")


def fma(a: Lanes, b: Lanes, c: Lanes, format_: Format) -> Lanes:
    """a * b + c, rounded once to nearest: through an f32 that is rounded to odd."""
    a, b, c = (widen(x, format_) for x in (a, b, c))
    if format_ is F16:
        return narrow(_fma_odd(a, b, c), F16)
    return narrow(ieee.to_odd(*ieee.fused(a, b, c)), BF16)


def _key(h: Lanes) -> Lanes:
    """An integer (s16) in the order of the values, -0 below +0."""
    s = bits(h, "s16")
    return s ^ bits(bits(s >> 15, "u16") >> 1, "s16")


def extreme(a: Lanes, b: Lanes, format_: Format, *, largest: bool, nan: bool = False) -> Lanes:
    """The larger or smaller of two; a NaN loses against a number, but with `nan` wins."""
    key_a, key_b = _key(a), _key(b)
    chosen = where(key_a > key_b if largest else key_a < key_b, a, b)
    nan_a, nan_b = is_nan(a, format_), is_nan(b, format_)
    if nan:
        return where(nan_a | nan_b, format_.nan, chosen)
    return canonical(where(nan_a, b, where(nan_b, a, chosen)), format_)


def neg(h: Lanes, format_: Format) -> Lanes:
    """-h."""
    return canonical(h ^ format_.sign, format_)


def absolute(h: Lanes, format_: Format) -> Lanes:
    """The magnitude of h."""
    return canonical(h & 0x7FFF, format_)


# --- tf32 ----------------------------------------------------------------------------------------------------------------------


def tf32(x: Lanes, rounding: str) -> Lanes:
    """f32 to tf32 (10 fraction bits, the upper bits of an f32), as u32: `rna` (ties away, infinity and NaN only cut), `rn` or `rz`."""
    u = bits(x, "u32")
    if rounding == "rna":
        return where(ieee.is_finite(x), u + 0x1000, u) & 0xFFFFE000
    if rounding == "rn":
        u = u + 0xFFF + ((u >> 13) & 1)
    return where(x != x, const(0x7FFFE000, like=u), u & 0xFFFFE000)


# --- fp8 -----------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fp8:
    """An 8-bit format by its fraction bits, exponent bias and largest finite pattern; NaN is 0x7f."""

    fraction_bits: int
    bias: int
    largest: int


E4M3 = Fp8(3, 7, 0x7E)
E5M2 = Fp8(2, 15, 0x7B)


def to_fp8(x: Lanes, format_: Fp8) -> Lanes:
    """f32 to fp8 to nearest even, too large values and infinities to the largest finite one."""
    u = bits(x, "u32")
    magnitude, drop = u & 0x7FFFFFFF, 23 - format_.fraction_bits
    normal = ((magnitude + ((1 << (drop - 1)) - 1) + ((magnitude >> drop) & 1)) >> drop) - ((127 - format_.bias) << format_.fraction_bits)
    # adding this power of two leaves the multiples of the least subnormal in the last bits
    shifter = 2.0 ** (23 + 1 - format_.bias - format_.fraction_bits)
    subnormal = bits(bits(magnitude, "f32") + shifter, "u32") & 0xFF
    code = where(bits(magnitude, "f32") < 2.0 ** (1 - format_.bias), subnormal, normal)
    code = where(code > format_.largest, format_.largest, code)
    return where(x != x, 0x7F, code | ((u >> 24) & 0x80))


def fp8_relu(code: Lanes) -> Lanes:
    """`.relu` on fp8."""
    return where(code >= 0x80, 0, code)


def from_fp8(code: Lanes, format_: Fp8) -> Lanes:
    """fp8 (u16 lanes, below 256) to f16, exactly; NaN canonical."""
    magnitude, sign = code & 0x7F, (code & 0x80) << 8
    if format_ is E5M2:
        return where(magnitude > 0x7C, F16.nan, (magnitude << 8) | sign)
    # the fields fit those of f16, whose bias is larger by 8
    scaled = cast(cast(bits(magnitude << 7, "f16"), "f32") * 256.0, "f16")
    return where(magnitude == 0x7F, F16.nan, bits(scaled, "u16") | sign)
