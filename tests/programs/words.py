"""Integers for the cases: random words with their corner cases, and C's arithmetic on Python's integers."""

from __future__ import annotations

from typing import Any

import numpy as np

T = 192
t = np.arange(T)
U32, U64, I32, I64 = np.uint32, np.uint64, np.int32, np.int64
M32, M64 = (1 << 32) - 1, (1 << 64) - 1


def words(rng: Any, dtype: Any, n: int = T) -> Any:
    """Random words, the first ones corner cases."""
    info = np.iinfo(dtype)
    values = rng.integers(info.min, info.max, n, dtype, endpoint=True)
    shift = rng.integers(0, info.bits, n).astype(dtype)
    values = values >> shift
    corners = np.array([0, 1, info.max, info.min, info.max - 1, 2, 3, 7], dtype)
    values[: len(corners)] = corners
    return values


def each(function: Any, *arrays: Any, dtype: Any) -> Any:
    """A Python function on the integers of arrays, wrapped to a type."""
    bits = np.dtype(dtype).itemsize * 8
    unsigned = np.array(
        [[int(v) & ((1 << bits) - 1) for v in np.atleast_1d(np.array(function(*(int(x) for x in xs)), object))] for xs in zip(*arrays)],
        f"u{bits // 8}",
    )
    return unsigned.view(dtype).reshape(-1)


def cdiv(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


def cmod(a: int, b: int) -> int:
    return a - b * cdiv(a, b)


def s(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x
