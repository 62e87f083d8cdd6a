"""Recover the tables of MUFU.SIN, MUFU.COS and MUFU.TANH from exhaustive recordings: python tools/recover_mufu_trig.py SWEEPS RECORDED OUT.npz

SWEEPS holds mufu_{sin,cos,tanh}.npz (distance in ulp from the correctly rounded result for 2^23 consecutive patterns a key),
RECORDED holds tanh.npz as tools/record_mufu_trig.py writes it (the tanh binades that the sweeps lack).
The model is S = A + B*r - C*square(r), truncated to 24 significant bits; for each segment, every (B, C) near the least-squares
fit is tried and the intervals that the samples put on A are intersected. Exactly one solution a segment is accepted.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from fasim.numerics.mufu import truncated_square

Array = np.ndarray[Any, Any]

BINADE = 1 << 23
KEYS = ("3e800000", "3f000000", "3f800000", "40000000")
ONE = 0x3F800000
R_BITS = 17
QUADRANT_BITS = 23
QUADRANT_MASK = (1 << QUADRANT_BITS) - 1
SIN_FRACTION_BITS, TANH_FRACTION_BITS = 37, 44
R = np.arange(1 << R_BITS, dtype=np.int64)
SQUARE = truncated_square(R.astype(np.uint32), R_BITS, 19).astype(np.int64)
SCREEN = np.unique(np.concatenate([R[::53], R[:64], R[-64:]]))


def sweep(directory: Path, name: str, key: str) -> tuple[Array, Array]:
    """Input and output patterns of one key; a zero result comes out as +0, whatever its sign."""
    x = int(key, 16) + np.arange(BINADE, dtype=np.uint32)
    exact = getattr(np, name)(x.view(np.float32).astype(np.float64))
    reference = exact.astype(np.float32)
    near_tie = np.abs((exact.view(np.int64) & 0x1FFFFFFF) - 0x10000000) < 8
    reference[near_tie] = getattr(np, name)(x[near_tie].view(np.float32).astype(np.longdouble)).astype(np.float32)
    bits = reference.view(np.uint32).astype(np.int64)
    ordered = np.where(bits >> 31, -(bits & 0x7FFFFFFF), bits) + np.load(directory / f"mufu_{name}.npz")[key].astype(np.int64)
    return x, np.where(ordered < 0, 0x80000000 - ordered, ordered).astype(np.uint32)


def unpack(store: Any, key: str) -> Array:
    """The output patterns that the recorder stored as packed differences."""
    first, least, bits, count = (int(v) for v in store[key])
    packed = store[key + "_d"]
    if bits < 8:
        packed = np.stack([packed >> (bits * i) & ((1 << bits) - 1) for i in range(8 // bits)], 1).ravel()
    steps = packed[: count - 1].astype(np.int64) + least
    return np.concatenate([[first], first + np.cumsum(steps)]).astype(np.uint32)


def turn_steps(x: Array) -> Array:
    """FMUL.RZ(x, 1 / (2 pi)) in units of 2^-25, truncated, for the patterns of [0.25, 4)."""
    product = ((x & 0x7FFFFF) | 0x800000).astype(np.int64) * 0xA2F983  # 24 x 24 bits, of 2^(exponent - 150) and 2^-26
    extra = product >> 47
    significand = product >> (23 + extra)
    exponent = (x >> 23).astype(np.int64) - 126 + extra  # of the significand's last bit, in units of 2^-25, offset by 23 + 1
    return np.asarray(significand << np.maximum(exponent - 1, 0) >> np.maximum(1 - exponent, 0))


def fit(y: Array, fraction_bits: int) -> tuple[int, int, int]:
    """The only (A, B, C) of a segment in units of 2^-fraction_bits, from its 2^17 output patterns; A has as many zero bits as it can."""
    exponent = (y >> 23).astype(np.int64) - 150 + fraction_bits
    low = ((y & 0x7FFFFF) | 0x800000).astype(np.int64) << np.maximum(exponent, 0)
    low = np.where(y == 0, 0, np.where(exponent < 0, low >> np.maximum(-exponent, 0), low))
    high = low + (1 << np.maximum(exponent, 0)) - 1
    weight = 1 / (high - low + 1)
    basis = np.stack([np.ones(len(R)), R, -SQUARE], 1).astype(float)
    _, b0, c0 = np.linalg.lstsq(basis * weight[:, None], (low + high) / 2 * weight, rcond=None)[0]
    found = []
    for c in range(round(c0) - 4, round(c0) + 5):
        for b in range(round(b0) - 8, round(b0) + 9):
            for index in (SCREEN, R):
                rest = b * R[index] - c * SQUARE[index]
                least, most = int((low[index] - rest).max()), int((high[index] - rest).min())
                if least > most:
                    break
            else:
                zeros = next(n for n in range(40, -1, -1) if most >> n << n >= least)
                found.append((most >> zeros << zeros, b, c))
    if len(found) != 1:
        raise ValueError(f"{len(found)} solutions where one was expected: {found[:4]}")
    return found[0]


def recover_sin(sweeps: Path) -> Array:
    """The 64 rows of the quarter sine (A in units of 2^-25, B of 2^-37, C of 2^-37), from both functions' sweeps."""
    quarter = np.zeros(1 << QUADRANT_BITS, np.uint32)
    seen = np.zeros(1 << QUADRANT_BITS, bool)
    for name, ahead in (("sin", 0), ("cos", 1)):
        for key in KEYS:
            x, y = sweep(sweeps, name, key)
            q = turn_fraction(fmul_rz(x, ONE_OVER_TWO_PI)) + (ahead << QUADRANT_BITS)
            fraction = (q & QUADRANT_MASK) ^ np.where(q >> QUADRANT_BITS & 1, QUADRANT_MASK, 0)
            magnitude = y & 0x7FFFFFFF
            if (quarter[fraction] != magnitude)[seen[fraction]].any():
                raise ValueError(f"{name} {key}: the quadrants disagree")
            quarter[fraction], seen[fraction] = magnitude, True
            if (quarter[fraction] != magnitude).any():
                raise ValueError(f"{name} {key}: the result depends on more than the 25-bit fraction of a turn")
    if not seen.all():
        raise ValueError("the sweeps do not cover the quarter turn")
    rows = [fit(segment, 37) for segment in quarter.reshape(64, -1)]
    if any(a % 4096 for a, _, _ in rows):
        raise ValueError("A is finer than 2^-25")
    return np.array([(a >> 12, b, c) for a, b, c in rows], np.uint32)
