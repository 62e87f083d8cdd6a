"""Cases for maths.cu: IEEE operations to the bit, libdevice within the ulps that NVIDIA documents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fasim import empty
from tests.programs.harness import Case
from tests.programs.words import T

F32, F16, U16 = np.float32, np.float16, np.uint16
elementwise = np.vectorize


def inputs(rng: Any, dtype: Any) -> Any:
    """Values of many sizes (large enough for sine and cosine to need many bits of pi), and moderate ones."""
    x = (rng.standard_normal(T) * 10.0 ** rng.integers(-3, 9, T)).astype(dtype)
    return x, (rng.standard_normal(T) * 5).astype(dtype)


def single(rng: Any) -> Any:
    a, b = inputs(rng, F32)
    x, y = a.astype(float), b.astype(float)
    m, n = np.abs(x), np.abs(y)
    tenth = (b * F32(0.1)).astype(float)
    values = [
        np.sin(x),
        np.cos(x),
        np.tan((a * F32(1e-4)).astype(float)),
        np.exp(y),
        np.log(m),
        m**tenth,
        elementwise(math.erf)(y),
        elementwise(math.gamma)((np.abs(b) + F32(0.5)).astype(float)),
        np.arctan2(x, y),
        np.sinh(y),
        np.log1p(n),
        np.cbrt(x),
        np.exp2(y),
        np.hypot(x, y),
        np.arcsin((b * F32(0.05)).astype(float)),
        elementwise(math.lgamma)((np.abs(b) + F32(0.1)).astype(float)),
        np.expm1(y),
        np.log10(m),
        np.tanh(y),
        elementwise(math.erfc)(y),
    ]
    return [empty((T, 20)), a, b], {0: np.stack(values, 1).astype(F32)}


def single_exact(rng: Any) -> Any:
    a, b = inputs(rng, F32)
    fma = (a.astype(np.longdouble) * b + a).astype(F32)
    values = [
        a / b,
        np.sqrt(np.abs(a)),
        np.fmod(a, b),
        np.rint(b),
        np.trunc(a),
        fma,
        np.frexp(a)[0],
        np.ldexp(b, 5),
        np.copysign(a, b),
        F32(1) / b,
        np.floor(b) + np.ceil(a),
        np.nextafter(a, b),
    ]
    return [empty((T, 12)), a, b], {0: np.stack(values, 1)}


def twice(rng: Any) -> Any:
    x, y = inputs(rng, np.float64)
    m, n = np.abs(x), np.abs(y)
    values = [
        np.sin(x),
        np.cos(x),
        np.exp(y),
        np.log(m),
        m ** (y * 0.1),
        elementwise(math.erf)(y),
        elementwise(math.gamma)(n + 0.5),
        np.arctan2(x, y),
        np.cbrt(x),
        np.log1p(n),
        np.tanh(y),
        np.sinh(y),
    ]
    return [empty((T, 12), np.float64), x, y], {0: np.stack(values, 1)}


def twice_exact(rng: Any) -> Any:
    x, y = inputs(rng, np.float64)
    total = x + y
    error = (x.astype(np.longdouble) + y) - total
    exact = (x - (total - (total - x))) + (y - (total - x))  # Knuth's two-sum
    up, down = np.where(exact > 0, np.nextafter(total, np.inf), total), np.where(exact < 0, np.nextafter(total, -np.inf), total)
    assert (np.sign(error) == np.sign(exact))[np.abs(error) > 0].all()
    return [empty((T, 6), np.float64), x, y], {0: np.stack([x / y, np.sqrt(np.abs(x)), np.fmod(x, y), np.rint(y), 1 / y, up - down], 1)}


def fast(rng: Any) -> Any:
    _, b = inputs(rng, F32)
    y = b.astype(float)
    values = [
        np.exp(y),
        np.log((np.abs(b) + F32(3)).astype(float)),
        np.sin((b * F32(0.1)).astype(float)) + 2,
        3 / y,
        1 / np.sqrt(np.abs(y)),
        np.abs(y) ** 0.3,
    ]
    return [empty((T, 6)), b], {0: np.stack(values, 1).astype(F32)}


def halves(rng: Any) -> Any:
    a, b = ((rng.standard_normal(T) * 20).astype(F16) for _ in range(2))
    a[:5], b[:5] = (np.inf, np.nan, 0, -0.0, 60000), (1, 1, -0.0, 0, 60000)
    x, y = a.astype(np.float64), b.astype(np.float64)
    with np.errstate(all="ignore"):
        values = [x + y, x * y, x * y + x, x / y, np.sqrt(np.abs(x)), np.fmax(x, y), np.minimum(x, y), np.rint(x)]
        rows = [v.astype(F16) for v in values]
        rows[5] = np.where((x == 0) & (y == 0), F16(0), rows[5])
        rows[6] = np.where((x == 0) & (y == 0), F16(-0.0), rows[6])
        scaled = (a.astype(F32) * F32(1.1)).astype(np.float64)
        near = scaled.astype(F16)
        toward_zero = np.where(np.isfinite(scaled) & (np.abs(near.astype(np.float64)) > np.abs(scaled)), np.nextafter(near, F16(0)), near)
        rows += [toward_zero, np.clip(np.nan_to_num(x - y, nan=0.0, posinf=2), 0, 1).astype(F16) + F16(0)]
    bits = [np.where(np.isnan(r), F16(0).view(U16) + U16(0x7FFF), r.view(U16)) for r in rows]
    flags = (x < y) | (x == y) << 1 | (~(x <= y)) << 2 | np.isnan(x) << 3
    whole = np.clip(np.trunc(np.nan_to_num(x, nan=0.0)), -32768, 32767).astype(np.int16).view(U16)
    return [empty((T, 12), U16), a.view(U16), b.view(U16)], {0: np.stack([*bits, flags.astype(U16), whole], 1)}


def to_bfloat(x: Any) -> Any:
    """Round float64 values that are exact sums or products of bfloat16 numbers."""
    word = x.astype(F32).view(np.uint32).astype(np.uint64)
    return ((word + 0x7FFF + (word >> np.uint64(16) & np.uint64(1))) >> np.uint64(16)).astype(U16)


def bfloats(rng: Any) -> Any:
    a, b = (to_bfloat(rng.standard_normal(T) * 2.0 ** rng.integers(-3, 4, T)) for _ in range(2))
    x, y = ((v.astype(np.uint32) << 16).view(F32) for v in (a, b))
    values = [x + y, x * y, np.maximum(x, y), x * F32(1.1), -x]
    return [empty((T, 5), U16), a, b], {0: np.stack([to_bfloat(v) for v in values], 1)}


def fp8(rng: Any) -> Any:
    a = (rng.standard_normal(T) * 2.0 ** rng.integers(-8, 8, T)).astype(F32)
    a[:5] = 1e6, -1e6, 0, 448, 2.0**-9

    def table(mantissa: int, bias: int, count: int) -> Any:
        code = np.arange(count)
        e, m = code >> mantissa, code & (1 << mantissa) - 1
        return np.where(e == 0, m * 2.0 ** (1 - bias - mantissa), (1 + m / (1 << mantissa)) * 2.0 ** (e - bias))

    codes, backs = [], []
    for values in (table(3, 7, 127), table(2, 15, 124)):
        size = np.minimum(np.abs(a.astype(np.float64)), values[-1])
        above = np.clip(np.searchsorted(values, size), 1, len(values) - 1)
        low, high = size - values[above - 1], values[above] - size
        code = np.where((low < high) | ((low == high) & (above % 2 == 1)), above - 1, above)
        codes.append(code | np.signbit(a) << 7)
        backs.append(np.copysign(values[code], a))
    return [empty((T, 2), np.uint8), empty((T, 2)), a], {0: np.stack(codes, 1), 1: np.stack(backs, 1)}


def dot(rng: Any) -> Any:
    a, b = (rng.integers(-4, 5, (T, 16)).astype(F16) for _ in range(2))
    return [empty(T), a, b], {0: (a.astype(F32) * b.astype(F32)).sum(1)}


F = "maths"
CASES = [
    Case(F, "single", single, ulps=7, reference=False),
    Case(F, "single_exact", single_exact, reference=False),
    Case(F, "twice", twice, ulps=10, reference=False),
    Case(F, "twice_exact", twice_exact, reference=False),
    Case(F, "fast", fast, ulps=40),
    Case(F, "halves", halves),
    Case(F, "bfloats", bfloats),
    Case(F, "fp8", fp8),
    Case(F, "dot", dot),
]
