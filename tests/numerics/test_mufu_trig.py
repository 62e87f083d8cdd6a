"""MUFU.SIN, MUFU.COS and MUFU.TANH against recordings of an H200.

`data/mufu_OP_every_61st.npz` holds every 61st pattern of [0.25, 4); tools/check_mufu_trig.py makes the other files:
`mufu_trig_special` (limits, quarter turns, subnormals, infinities, NaN), `_random` (all signs and exponents), `_turn` (t = 61 i / 2^24),
`_binades` (every 1021st pattern of a binade), `_counts` (0, the argument, 1, a result above the next one: how many in each binade).
Results are kept as the bytes of their first differences. `ptx` is the PTX instruction, `mufu` the unit, whose argument is in turns.
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
ONE = 0x3F800000

Words = NDArray[np.uint32]
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "ptx_sin": mufu_trig.sin_approx_ftz,
    "ptx_cos": mufu_trig.cos_approx_ftz,
    "ptx_tanh": mufu_trig.tanh_approx,
    "mufu_sin": mufu_trig.mufu_sin,
    "mufu_cos": mufu_trig.mufu_cos,
}
SIGN_OF = {"sin": 0x80000000, "cos": 0, "tanh": 0x80000000}


def words(*values: int) -> Words:
    return np.array(values, np.uint32)


def load(file: str, key: str) -> Words:
    with np.load(DATA / file) as data:
        planes = data[key].astype(np.uint32)
    return np.cumsum(planes[0] | planes[1] << 8 | planes[2] << 16 | planes[3] << 24, dtype=np.uint32)


def check(name: str, x: Words, expected: Words) -> None:
    got = FUNCTIONS[name](x)
    assert got.dtype == np.uint32 and got.shape == expected.shape
    assert [f"{x[i]:08x}: {got[i]:08x}, hardware {expected[i]:08x}" for i in np.flatnonzero(got != expected)[:5]] == []


@pytest.mark.parametrize("op", SIGN_OF)
@pytest.mark.parametrize("sign", [0, 0x80000000])
def test_middle_binades(op: str, sign: int) -> None:
    x = np.arange(0x3E800000, 0x40800000, 61, dtype=np.uint32)
    check(f"ptx_{op}", x | np.uint32(sign), load(f"mufu_{op}_every_61st.npz", "steps") ^ np.uint32(SIGN_OF[op] & sign))


def binade_keys() -> list[str]:
    with np.load(DATA / "mufu_trig_binades.npz") as data:
        return list(data)


def test_binades_recorded() -> None:
    unit = {f"mufu_{op}_{exponent}" for op in ("sin", "cos") for exponent in range(115, 123)}
    assert set(binade_keys()) == unit | {f"ptx_tanh_{exponent}" for exponent in (*range(115, 125), 129, 130)}


@pytest.mark.parametrize("key", binade_keys())
def test_binade(key: str) -> None:
    name, _, exponent = key.rpartition("_")
    x = (int(exponent) << 23) + np.arange(0, 1 << 23, 1021, dtype=np.uint32)
    check(name, x, load("mufu_trig_binades.npz", key))


@pytest.mark.parametrize("name", ["mufu_sin", "mufu_cos"])
def test_whole_turn(name: str) -> None:
    t = np.arange(0, 1 << 24, 61) * 2.0**-24
    check(name, t.astype(np.float32).view(np.uint32), load("mufu_trig_turn.npz", name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_exponent(name: str) -> None:
    i = np.arange(1 << 19, dtype=np.uint64)
    hashed = (i * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(41)
    x = ((i >> np.uint64(10)) << np.uint64(23) | hashed).astype(np.uint32)[::11]
    assert len(np.unique(x >> 23)) == 512
    check(name, x, load("mufu_trig_random.npz", name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values(name: str) -> None:
    with np.load(DATA / "mufu_trig_special.npz") as data:
        x, expected = data["x"], data[name]
    zeros_and_limits = {0, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, NAN}
    quarters = {0x3E800000, 0x3F000000, 0x3F400000, ONE}
    assert {v | sign for v in zeros_and_limits | quarters for sign in (0, 0x80000000)} <= set(x.tolist())
    check(name, x, expected)


@pytest.mark.parametrize(
    ("name", "exponent"),
    [  # where FMUL.RZ leaves few bits of fraction, where results vanish, where the argument comes back
        ("ptx_sin", 20),
        ("ptx_sin", -23),
        ("ptx_cos", 23),
        ("ptx_tanh", -8),
        ("mufu_sin", 20),
        ("mufu_cos", -3),
    ],
)
def test_counts_in_a_whole_binade(name: str, exponent: int) -> None:
    with np.load(DATA / "mufu_trig_counts.npz") as data:
        expected = data[name][:, exponent + 127].tolist()
    got = np.zeros(4, np.int64)
    for start in range((exponent + 127) << 23, (exponent + 128) << 23, 1 << 15):
        x = np.arange(start, start + (1 << 15) + 1, dtype=np.uint32)
        all_ = FUNCTIONS[name](x)
        y, following = all_[:-1], all_[1:]
        cases = ((y & NAN) == 0, y == x[:-1], y == ONE, following.view(np.int32) < y.view(np.int32))
        got += [np.count_nonzero(case) for case in cases]
    assert any(expected) and got.tolist() == expected


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
