"""MUFU.SIN, MUFU.COS and MUFU.TANH against recordings of an H200.

`data/mufu_OP_every_61st.npz`: results of every 61st pattern of [0.25, 4), as the four bytes of their first differences. The tables
were recovered from all patterns of that range; tools/recover_mufu_trig.py fails unless each of them fits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fasim.numerics import mufu_trig
from fasim.numerics.lanes.numpy_backend import lanes

DATA = Path(__file__).parent / "data"
NAN = 0x7FFFFFFF

Words = NDArray[np.uint32]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sin": mufu_trig.sin_approx_ftz,
    "cos": mufu_trig.cos_approx_ftz,
    "tanh": mufu_trig.tanh_approx,
}
SIGN_OF = {"sin": 0x80000000, "cos": 0, "tanh": 0x80000000}


def words(*values: int) -> Words:
    return np.array(values, np.uint32)


def recorded(op: str) -> tuple[Words, Words]:
    with np.load(DATA / f"mufu_{op}_every_61st.npz") as data:
        planes = data["steps"].astype(np.uint32)
    steps = planes[0] | planes[1] << 8 | planes[2] << 16 | planes[3] << 24
    x = np.arange(0x3E800000, 0x40800000, 61, dtype=np.uint32)
    assert steps.shape == x.shape
    return x, np.cumsum(steps, dtype=np.uint32)


@pytest.mark.parametrize("op", FUNCTIONS)
@pytest.mark.parametrize("sign", [0, 0x80000000])
def test_recorded(op: str, sign: int) -> None:
    x, y = recorded(op)
    got = FUNCTIONS[op](x | np.uint32(sign))
    expected = y ^ np.uint32(SIGN_OF[op] & sign)
    assert got.dtype == np.uint32
    assert [f"{x[i]:08x}: {got[i]:08x}, hardware {expected[i]:08x}" for i in np.flatnonzero(got != expected)[:5]] == []


SPECIAL = {
    "sin": [
        (0x00000000, 0x00000000),
        (0x80000000, 0x80000000),
        (0x00000001, 0x00000000),  # subnormal
        (0x807FFFFF, 0x80000000),
        (0x7F800000, NAN),
        (0xFF800000, NAN),
        (0x7FC00000, NAN),
        (0xFF800001, NAN),
    ],
    "cos": [
        (0x00000000, 0x3F800000),
        (0x80000000, 0x3F800000),
        (0x00000001, 0x3F800000),
        (0x807FFFFF, 0x3F800000),
        (0x7F800000, NAN),
        (0xFF800000, NAN),
        (0x7FC00000, NAN),
        (0xFF800001, NAN),
    ],
    "tanh": [
        (0x00000000, 0x00000000),
        (0x80000000, 0x80000000),
        (0x7F800000, 0x3F800000),
        (0xFF800000, 0xBF800000),
        (0x7FC00000, NAN),
        (0xFF800001, NAN),
    ],
}


@pytest.mark.parametrize(("op", "x", "y"), [(op, x, y) for op, rows in SPECIAL.items() for x, y in rows])
def test_special_values(op: str, x: int, y: int) -> None:
    got = int(FUNCTIONS[op](words(x))[0])
    assert f"{got:08x}" == f"{y:08x}"


@pytest.mark.parametrize(
    ("t", "sin", "cos"),
    [  # the sweeps tell neither the signs of these zeros nor results outside [0.25, 4): they follow from the structure
        (0.25, 0x3F800000, 0x80000000),  # one's complement: the zero of the second half turn is negative
        (0.5, 0x80000000, 0xBF800000),
        (0.75, 0xBF800000, 0x00000000),
        (1.0, 0x00000000, 0x3F800000),
        (2.0**24, 0x00000000, 0x3F800000),  # no fraction is left
        (2.0**-26, 0x00000000, 0x3F800000),  # below one step of a turn
    ],
)
def test_exact_turns(t: float, sin: int, cos: int) -> None:
    x = np.array([t], np.float32).view(np.uint32)
    assert f"{int(mufu_trig.mufu_sin(x)[0]):08x}" == f"{sin:08x}"
    assert f"{int(mufu_trig.mufu_cos(x)[0]):08x}" == f"{cos:08x}"


def test_fmul_rz_truncates_exact_products() -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(0, 1 << 32, 20_000, dtype=np.uint32)
    exponent = (x >> 23) & 0xFF
    x = x[(exponent > 8) & (exponent < 255)]
    factor = words(mufu_trig.ONE_OVER_TWO_PI).view(np.float32).astype(np.float64)[0]
    exact = x.view(np.float32).astype(np.float64) * factor  # 48 bits fit a double
    nearest = exact.astype(np.float32)
    over = np.abs(nearest.astype(np.float64)) > np.abs(exact)
    expected = nearest.view(np.uint32) - over.astype(np.uint32)
    np.testing.assert_array_equal(mufu_trig.fmul_rz(x, mufu_trig.ONE_OVER_TWO_PI), expected)


def test_squarer_without_low_columns() -> None:
    r = np.random.default_rng(3).integers(0, 1 << 17, 2_000, dtype=np.uint32)
    kept = np.zeros(r.shape, np.int64)
    for i in range(17):
        for j in range(17):
            product = ((r >> i) & (r >> j) & 1).astype(np.int64)
            column = 2 * i if i == j else i + j + 1  # r[i] r[j] stands twice, so one column up
            if j <= i and column >= 19:
                kept += product << (column - 19)
    np.testing.assert_array_equal(mufu_trig.square(r), kept)


@pytest.mark.parametrize("op", FUNCTIONS)
def test_lanes_agree_with_arrays(op: str) -> None:
    rng = np.random.default_rng(11)
    for exponent in (0, 100, 120, 124, 125, 126, 127, 128, 130, 150, 255):
        x = rng.integers(0, 1 << 23, 32, dtype=np.uint32) | np.uint32(exponent << 23)
        np.testing.assert_array_equal(FUNCTIONS[op](lanes(x, "u32")).raw, FUNCTIONS[op](x))
