"""tanh and ex2 of f16 and bf16, one and two of them, for all 65536 inputs against an H200.

`numerics/data/mufu_half.npz`: the results as the bytes of their first differences (tools/check_mufu_trig.py).
"""

from pathlib import Path

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from tests.harness import BACKENDS, run_row

DATA = Path(__file__).parents[1] / "numerics" / "data" / "mufu_half.npz"
ROW_OF = {
    "tanh_f16": "tanh.approx.f16",
    "tanh_bf16": "tanh.approx.bf16",
    "ex2_f16": "ex2.approx.f16",
    "ex2_bf16": "ex2.approx.ftz.bf16",
}
WARPS = {"jit": 1, "reference": 61}  # every n-th warp of inputs
X = np.arange(1 << 16, dtype=np.uint32)


def recorded(key):
    with np.load(DATA) as data:
        assert set(data) == set(ROW_OF)
        planes = data[key].astype(np.uint16)
    return np.cumsum(planes[0] | planes[1] << 8, dtype=np.uint16).astype(np.uint32)


def check(name, x, expected, backend):
    wrong = []
    for start in range(0, len(x), 32 * WARPS[backend]):
        (got,) = run_row(name, [x[start : start + 32]], backend=backend)
        want = expected[start : start + 32]
        wrong += [f"{x[start + i]:08x}: {got[i]:08x}, hardware {want[i]:08x}" for i in np.flatnonzero(got != want)]
    assert wrong[:5] == []


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("key", ROW_OF)
def test_every_input(key, backend):
    y = recorded(key)
    assert y.shape == X.shape
    check(ROW_OF[key], X, y, backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("key", ROW_OF)
def test_pairs(key, backend):
    y = recorded(key)
    check(ROW_OF[key] + "x2", X | X[::-1] << np.uint32(16), y | y[::-1] << np.uint32(16), backend)
