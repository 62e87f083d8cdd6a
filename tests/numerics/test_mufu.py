"""The MUFU functions against exhaustive sweeps of an H200, and against the special values that the PTX ISA lists.

`data/mufu_OP.npz`: the key is the first bit pattern in hex, the values are the signed distances in ulp of the hardware's result from
the correctly rounded one, for 2**23 consecutive bit patterns. `data/mufu_ex2_random.npz`: arguments and results as bit patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fasim.numerics import mufu, mufu_rom

DATA = Path(__file__).parent / "data"
CHUNK = 1 << 15  # stays in the cache

Words = NDArray[np.uint32]
Function = Callable[[Words], Words]

FUNCTIONS: dict[str, tuple[Function, Callable[[Any], Any]]] = {
    "ex2": (mufu.ex2_approx_ftz, np.exp2),
    "rcp": (mufu.rcp_approx_ftz, lambda x: 1 / x),
    "rsq": (mufu.rsqrt_approx_ftz, lambda x: 1 / np.sqrt(x)),
    "sqr": (mufu.sqrt_approx_ftz, np.sqrt),
    "lg2": (mufu.lg2_approx_ftz, np.log2),
}
SWEEPS = [
    ("ex2", ["3f800000", "bf800000", "3f000000", "bf000000"]),
    ("rcp", ["3f800000"]),
    ("rsq", ["3f800000", "40000000"]),
    ("sqr", ["3f800000", "40000000"]),
    ("lg2", ["3f000000", "3f800000", "40000000"]),
]

NAN = mufu.NAN
INF, NINF = 0x7F800000, 0xFF800000
ZERO, NZERO = 0x00000000, 0x80000000


def _offset(bits: Words, distance: NDArray[Any]) -> Words:
    """Float32 bit patterns moved by so many representable values, upward for positive distances."""
    magnitude = (bits & 0x7FFFFFFF).astype(np.int64)
    ordered = np.where(bits >> 31 != 0, -magnitude, magnitude) + distance
    moved: Words = np.where(ordered < 0, 0x80000000 - ordered, ordered).astype(np.uint32)
    return moved


def _sweep(op: str, key: str) -> Iterator[tuple[Words, Words]]:
    """Arguments and hardware results, in pieces.

    No correctly rounded result of these sweeps is nearer to a tie than 2**-51 of its value, so float64 finds it.
    """
    with np.load(DATA / f"mufu_{op}.npz") as data:
        distance = data[key]
    assert distance.shape == (1 << 23,)
    exact = FUNCTIONS[op][1]
    for start in range(0, 1 << 23, CHUNK):
        x = np.arange(start, start + CHUNK, dtype=np.uint32) + np.uint32(int(key, 16))
        rounded = exact(x.view(np.float32).astype(np.float64)).astype(np.float32).view(np.uint32)
        yield x, _offset(rounded, distance[start : start + CHUNK])


def _differences(function: Function, x: Words, expected: Words) -> list[str]:
    got = function(x)
    assert got.dtype == np.uint32
    return [f"{x[i]:08x}: {got[i]:08x}, hardware {expected[i]:08x}" for i in np.nonzero(got != expected)[0]]


@pytest.mark.parametrize(("op", "key"), [(op, key) for op, keys in SWEEPS for key in keys])
def test_every_fraction_of_a_binade(op: str, key: str) -> None:
    for x, expected in _sweep(op, key):
        assert _differences(FUNCTIONS[op][0], x, expected)[:5] == []


def test_the_data_holds_nothing_untested() -> None:
    for op, keys in SWEEPS:
        with np.load(DATA / f"mufu_{op}.npz") as data:
            assert set(data.files) == set(keys)


def test_ex2_over_its_whole_range() -> None:
    with np.load(DATA / "mufu_ex2_random.npz") as data:
        x, y = data["x"], data["y"]
    assert x.size > 98_000
    assert _differences(mufu.ex2_approx_ftz, x, y)[:5] == []


SPECIAL = {
    "ex2": [
        (ZERO, 0x3F800000),
        (NZERO, 0x3F800000),
        (0x00000001, 0x3F800000),
        (0x807FFFFF, 0x3F800000),
        (INF, INF),
        (NINF, ZERO),
        (0x7FC00000, NAN),
        (0xFF800001, NAN),
        (0x42FE0000, 0x7F000000),  # 127
        (0x43000000, INF),  # 128
        (0xC2FC0000, 0x00800000),  # -126
        (0xC2FC0001, ZERO),
        (0xC3160000, ZERO),  # -150
    ],
    "rcp": [
        (ZERO, INF),
        (NZERO, NINF),
        (0x00000001, INF),
        (0x807FFFFF, NINF),
        (INF, ZERO),
        (NINF, NZERO),
        (0x7FC00000, NAN),
        (0xFF800001, NAN),
        (0x00800000, 0x7E800000),  # 2**-126
        (0x7E800000, 0x00800000),  # 2**126
        (0x7E800001, ZERO),
        (0xFE800000, 0x80800000),
        (0xFF7FFFFF, NZERO),
    ],
    "rsq": [
        (ZERO, INF),
        (NZERO, NINF),
        (0x00000001, INF),
        (0x807FFFFF, NINF),
        (INF, ZERO),
        (NINF, NAN),
        (0xBF800000, NAN),
        (0x80800000, NAN),
        (0x7FC00000, NAN),
        (0xFF800001, NAN),
        (0x00800000, 0x5F000000),  # 2**-126
        (0x40800000, 0x3F000000),  # 4
    ],
    "sqr": [
        (ZERO, ZERO),
        (NZERO, NZERO),
        (0x00000001, ZERO),
        (0x807FFFFF, NZERO),
        (INF, INF),
        (NINF, NAN),
        (0xBF800000, NAN),
        (0x80800000, NAN),
        (0x7FC00000, NAN),
        (0xFF800001, NAN),
        (0x00800000, 0x20000000),  # 2**-126
        (0x40800000, 0x40000000),  # 4
        (0x7F7FFFFF, 0x5F7FFFFF),
    ],
    "lg2": [
        (ZERO, NINF),
        (NZERO, NINF),
        (0x00000001, NINF),
        (0x807FFFFF, NINF),
        (INF, INF),
        (NINF, NAN),
        (0xBF800000, NAN),
        (0x80800000, NAN),
        (0x7FC00000, NAN),
        (0xFF800001, NAN),
        (0x3F800000, ZERO),
        (0x43800000, 0x41000000),  # 256
        (0x7F000000, 0x42FE0000),  # 2**127
    ],
}


@pytest.mark.parametrize(("op", "x", "expected"), [(op, x, y) for op, rows in SPECIAL.items() for x, y in rows])
def test_special_values(op: str, x: int, expected: int) -> None:
    (got,) = FUNCTIONS[op][0](np.array([x], dtype=np.uint32))
    assert f"{got:08x}" == f"{expected:08x}"


@pytest.mark.parametrize("op", ["rcp", "rsq", "sqr"])
def test_fractions_repeat_with_the_exponent(op: str) -> None:
    function, exact = FUNCTIONS[op]
    fractions = np.random.default_rng(7).integers(0, 1 << 23, 500, dtype=np.uint32)
    step = 2 if op != "rcp" else 1
    for exponent in range(1, 253):
        same = 127 + (exponent - 127) % step
        near, far = function((np.uint32(same) << 23) | fractions), function((np.uint32(exponent) << 23) | fractions)
        scale = exact(2.0 ** (exponent - same))
        assert np.array_equal(near.view(np.float32) * np.float32(scale), far.view(np.float32)), exponent


def test_lg2_adds_the_exponent_in_fixed_point() -> None:
    """Every result is log2(1.f) of [1, 2) plus the exponent, cut to 24 bits: known there to the last bit of the result."""
    fractions = np.random.default_rng(11).integers(1, 1 << 23, 500, dtype=np.uint32)
    low = mufu.lg2_approx_ftz((np.uint32(127) << 23) | fractions).view(np.float32).astype(np.float64)
    for exponent in range(1, 255):
        got = mufu.lg2_approx_ftz((np.uint32(exponent) << 23) | fractions).view(np.float32).astype(np.float64)
        difference = got - (low + (exponent - 127))
        ulp = np.spacing(np.abs(got).astype(np.float32)).astype(np.float64)
        # truncated toward zero, and log2(1.f) itself was cut by less than 2**-24
        if exponent < 127:
            assert np.all((difference > -(2.0**-24)) & (difference < ulp + 2.0**-24)), exponent
        else:
            assert np.all((difference > -ulp) & (difference < 2.0**-24)), exponent


@pytest.mark.parametrize(("bits", "column"), [(16, 17), (17, 19)])
def test_truncated_square_leaves_out_low_columns(bits: int, column: int) -> None:
    r = np.random.default_rng(3).integers(0, 1 << bits, 3000, dtype=np.uint32)
    expected = np.zeros(r.shape, dtype=np.int64)
    for i in range(bits):
        for j in range(i + 1):
            place = 2 * i if i == j else i + j + 1
            if place >= column:
                expected += ((r >> i) & (r >> j) & 1).astype(np.int64) << (place - column)
    assert np.array_equal(mufu.truncated_square(r, bits, column), expected)


@pytest.mark.parametrize(("name", "segments"), [("EX2", 64), ("RCP", 128), ("RSQ", 128), ("SQRT", 128), ("LG2", 64)])
def test_tables_have_one_word_a_segment(name: str, segments: int) -> None:
    rom = getattr(mufu_rom, name)
    assert rom.shape == (segments,)
    assert rom.dtype == np.uint64
    assert int(rom.max()) < 1 << 53
