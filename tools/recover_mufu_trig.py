"""Recover the tables of MUFU.SIN, MUFU.COS and MUFU.TANH: python tools/recover_mufu_trig.py OUT.npz SWEEPS TANH.npz

SWEEPS is a directory with mufu_{sin,cos,tanh}.npz (distance in ulp from the correctly rounded result, 2^23 consecutive patterns a
key); TANH.npz holds the other binades of tanh in [2^-12, 16) as tools/record_mufu_trig.py packs them.
The model is S = A + B*r - C*square(r), truncated to 24 significant bits. For each segment every (B, C) near the least-squares fit is
tried, and the intervals that all 2^17 samples put on A are intersected; a segment with any other number of solutions than one is an error.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from fasim.numerics.mufu import truncated_square

Array = np.ndarray[Any, Any]
Row = tuple[int, int, int]

BINADE = 1 << 23
KEYS = ("3e800000", "3f000000", "3f800000", "40000000")
ONE = 0x3F800000
TANH_LEAST, TANH_SATURATED = 0x3B800000, 0x41000000  # 2^-8 and 8: tanh is x itself below, 1 from there on
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
    product = ((x & 0x7FFFFF) | 0x800000).astype(np.int64) * 0xA2F983
    extra = product >> 47
    shift = (x >> 23).astype(np.int64) + extra - 128
    return np.asarray(product >> (23 + extra) << np.maximum(shift, 0) >> np.maximum(-shift, 0))


def fit(y: Array, fraction_bits: int) -> Row:
    """The only (A, B, C) of a segment in units of 2^-fraction_bits, from its 2^17 outputs; A has as many zero bits as it can."""
    shift = (y >> 23).astype(np.int64) - 150 + fraction_bits
    low = ((y & 0x7FFFFF) | 0x800000).astype(np.int64) << np.maximum(shift, 0)
    low = np.where(y == 0, 0, low >> np.maximum(-shift, 0))
    width = 1 << np.maximum(shift, 0)
    basis = np.stack([np.ones(len(R)), R, -SQUARE], 1).astype(float)
    _, b0, c0 = np.linalg.lstsq(basis / width[:, None], (low + width / 2) / width, rcond=None)[0]
    found = []
    for c in range(round(c0) - 32, round(c0) + 33):  # a segment of few distinct results leaves C the least certain
        for b in range(round(b0) - 8, round(b0) + 9):
            for index in (SCREEN, R):
                rest = b * R[index] - c * SQUARE[index]
                least, most = int((low[index] - rest).max()), int((low[index] + width[index] - 1 - rest).min())
                if least > most:
                    break
            else:
                zeros = next(n for n in range(fraction_bits, -1, -1) if most >> n << n >= least)
                found.append((most >> zeros << zeros, b, c))
    if len(found) != 1:
        raise ValueError(f"{len(found)} solutions where one was expected: {found[:4]}")
    return found[0]


def recover_sin(sweeps: Path) -> Array:
    """The 64 segments of the quarter sine, from the sweeps of both functions."""
    quarter = np.zeros(1 << QUADRANT_BITS, np.uint32)
    seen = np.zeros(1 << QUADRANT_BITS, bool)
    for name, ahead in (("sin", 0), ("cos", 1)):
        for key in KEYS:
            x, y = sweep(sweeps, name, key)
            steps = turn_steps(x) + (ahead << QUADRANT_BITS)
            fraction = (steps & QUADRANT_MASK) ^ np.where(steps >> QUADRANT_BITS & 1, QUADRANT_MASK, 0)
            magnitude = y & 0x7FFFFFFF
            if (quarter[fraction] != magnitude)[seen[fraction]].any():
                raise ValueError(f"{name} {key}: the quadrants disagree")
            quarter[fraction], seen[fraction] = magnitude, True
            if (quarter[fraction] != magnitude).any():
                raise ValueError(f"{name} {key}: the result depends on more than the 25-bit fraction of a turn")
    if not seen.all():
        raise ValueError("the sweeps do not cover the quarter turn")
    return np.array([fit(segment, SIN_FRACTION_BITS) for segment in quarter.reshape(64, -1)], np.uint64)


def tanh_binades(sweeps: Path, recorded: Path) -> dict[int, Array]:
    """Output patterns of every binade at hand, by biased exponent."""
    binades = {int(key, 16) >> 23: sweep(sweeps, "tanh", key)[1] for key in KEYS}
    with np.load(recorded) as store:
        return binades | {int(key): unpack(store, key) for key in store if key.isdigit()}


def recover_tanh(binades: dict[int, Array]) -> tuple[list[Row], list[tuple[int, int]]]:
    """Segments, and (dropped bits, first segment) of each binade between the limits."""
    for exponent in sorted(binades):
        own = (exponent << 23) + np.arange(BINADE, dtype=np.uint32)
        if (own[0] < TANH_LEAST and (binades[exponent] != own).any()) or (own[0] >= TANH_SATURATED and (binades[exponent] != ONE).any()):
            raise ValueError(f"tanh 2^{exponent - 127}: the limits are others")
    rows: list[Row] = []
    layout: list[tuple[int, int]] = []
    for exponent in range(TANH_LEAST >> 23, TANH_SATURATED >> 23):
        y = binades[exponent]
        drop = next(n for n in range(23 - R_BITS, -1, -1) if (y.reshape(-1, 1 << n) == y[:: 1 << n, None]).all())
        segments = y[:: 1 << drop].reshape(-1, 1 << R_BITS)
        print(f"tanh 2^{exponent - 127}: {drop} bits dropped, {len(segments)} segments")
        layout.append((drop, len(rows)))
        rows += [fit(segment, TANH_FRACTION_BITS) for segment in segments]
    return rows, layout


def main(out: Path, sweeps: Path, recorded: Path) -> None:
    """Write the tables that fasim.numerics.mufu_trig loads."""
    rows, layout = recover_tanh(tanh_binades(sweeps, recorded))
    np.savez_compressed(out, sin=recover_sin(sweeps), tanh=np.array(rows, np.uint64), tanh_binades=np.array(layout, np.uint32))


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
