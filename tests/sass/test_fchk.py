"""FCHK against an H200: a 256 x 256 table of exponents, which random operands confirmed.

tests/sass/data/h200_fchk.npz, `slow`: bits by exponent of a and of b, of an H200 with driver 580.159.04 on 2026-11-30. In a cubin of
NVRTC 13.5 for a / b the fast result was made 0 and the call of the slow path 1. Four mantissas each made no difference.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.harness import BACKENDS, run_row


@pytest.mark.parametrize("backend", BACKENDS)
def test_all_exponents(backend: str) -> None:
    packed = np.load(Path(__file__).parent / "data" / "h200_fchk.npz")["slow"]
    slow = np.unpackbits(packed).astype(bool).reshape(256, 256)
    lanes = np.arange(32, dtype=np.uint32)
    for a in range(0, 256, 1 if backend == "jit" else 25):
        for b in range(0, 256, 32):
            mantissas = lanes * 0x3FFFF & 0x7FFFFF
            (found,) = run_row("FCHK", [a << 23 | mantissas, (b + lanes) << 23 | mantissas[::-1]], immediates=(0,), backend=backend)
            assert (found == slow[a, b : b + 32]).all()
