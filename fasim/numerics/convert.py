"""Conversions between integers and floats on lanes, in every rounding."""

from __future__ import annotations

from fasim.numerics import ieee, narrow
from fasim.numerics.lanes import Lanes, bits, cast, ceil, floor, rint, trunc, where, width

INTEGRAL = {"rni": rint, "rzi": trunc, "rmi": floor, "rpi": ceil}


def widened(x: Lanes, type_: str) -> Lanes:
    """A float operand as f32 or f64."""
    return narrow.widen(x, narrow.FORMATS[type_]) if type_ in narrow.FORMATS else x


def narrowed(x: Lanes, type_: str, rounding: str) -> Lanes:
    """f32 or f64 rounded to a float type; NaN canonical where the width changes."""
    if type_ in narrow.FORMATS:
        return narrow.narrow(x, narrow.FORMATS[type_], rounding)
    if x.type == type_:
        return x
    return cast(x, "f64") if type_ == "f64" else narrow.narrow_f32(x, rounding)


def flush_narrowed(d: Lanes, rounding: str) -> Lanes:
    """f64 to f32 with `.ftz`: what would be below 2**-126 if exponents had no lower end becomes zero.

    Source: machine code that ptxas 13.0 makes of cvt.{rn,rz,rm,rp}.ftz.f32.f64 for sm_90.
    """
    r = narrow.narrow_f32(d, rounding)
    zero = bits(bits(r, "u32") & 0x80000000, "f32")
    least, size, negative = 2.0**-126, ieee.magnitude(d), ieee.is_negative(d)
    if rounding == "rn":
        tiny = size < least - 2.0**-151
    elif rounding == "rz":
        tiny = size < least
    else:
        away = negative if rounding == "rm" else ~negative
        tiny = where(away, size <= least - 2.0**-150, size < least)
    return where(tiny, zero, r)


def to_integer(x: Lanes, rounding: str, target: str, from_f64: bool) -> Lanes:
    """f32 or f64 to an integer type, clamped to its range.

    NaN gives 0, but 1 << (bits - 1) where the source is f64 or the target has 64 bits.
    Source: PTX ISA, cvt, integer notes.
    """
    n, is_signed = int(target[1:]), target[0] == "s"
    low, high = (-(1 << (n - 1)), 1 << (n - 1)) if is_signed else (0, 1 << n)
    whole = INTEGRAL[rounding](x)
    inside = where((whole >= float(low)) & (whole < float(high)), whole, 0.0)
    value = cast(cast(inside, target[0] + str(max(n, 32))), target)
    value = where(whole < float(low), low, where(whole >= float(high), high - 1, value))
    return where(x != x, (1 << (n - 1)) if from_f64 or n == 64 else 0, value)


def _magnitude(a: Lanes) -> tuple[Lanes, Lanes]:
    """A 64-bit integer's magnitude (u64) and whether it is negative."""
    if a.type == "u64":
        return a, a < 0
    negative = a < 0
    return bits(where(negative, -a, a), "u64"), negative


def _odd_f64(a: Lanes) -> Lanes:
    """An integer as an f64, rounded to odd if it does not fit."""
    if width(a.type) < 64:
        return cast(a, "f64")
    m, negative = _magnitude(a)
    jammed = (m & ~0x7FF) | (cast((m & 0x7FF) != 0, "u64") << 11)
    d = cast(where(m >> 53 != 0, jammed, m), "f64")
    return where(negative, -d, d)


def _f64(a: Lanes, rounding: str) -> Lanes:
    r = cast(a, "f64")
    if rounding == "rn" or width(a.type) < 64:
        return r
    m, negative = _magnitude(a)
    size = ieee.magnitude(r)
    huge = size >= 2.0**64
    back = cast(where(huge, 0.0, size), "u64")
    smaller, larger = ~huge & (back < m), huge | (back > m)
    above, below = where(negative, larger, smaller), where(negative, smaller, larger)
    return ieee.direct(r, above, below, rounding)


def from_integer(a: Lanes, type_: str, rounding: str) -> Lanes:
    """An integer to a float type."""
    if type_ == "f64":
        return _f64(a, rounding)
    if type_ == "f32":
        return cast(a, "f32") if rounding == "rn" else narrow.narrow_f32(_odd_f64(a), rounding)
    exact = cast(a, "f32") if width(a.type) <= 16 else _odd_f64(a)
    return narrow.narrow(exact, narrow.FORMATS[type_], rounding)


def saturated(x: Lanes, type_: str) -> Lanes:
    """`.sat` on a float type."""
    return narrow.saturate(x, narrow.FORMATS[type_]) if type_ in narrow.FORMATS else ieee.saturate(x)
