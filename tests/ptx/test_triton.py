"""PTX as Triton writes it, executed: the kernels are in data/triton_kernels.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fasim

DATA = Path(__file__).parent / "data"


def launch(name, grid, arguments, **keywords):
    kernel = fasim.compile(DATA / f"triton_{name}.ptx", arch="sm_80").kernel()
    # Triton adds pointers to scratch memory that these kernels do not use
    spare = [None] * (len(kernel.program.parameters) - len(arguments))
    return kernel.launch(grid, 128, [*arguments, *spare], **keywords)


def test_add():
    x, y = np.random.default_rng(0).standard_normal((2, 3000), dtype=np.float32)
    out = np.zeros(3000, np.float32)
    launch("add", 3, [x, y, out, 3000])
    assert (out == x + y).all()


def test_softmax():
    x = np.random.default_rng(0).standard_normal((7, 200), dtype=np.float32)
    out = np.zeros_like(x)
    launch("softmax", 7, [x, out, 200, 200], dynamic_smem_bytes=64)
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-5)


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_matmul(backend):
    m, n, k = (128, 128, 96) if backend == "jit" else (64, 64, 32)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (m, k)).astype(np.float16), rng.integers(-4, 5, (k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    launch("matmul", (m // 64, n // 64), [a, b, c, m, n, k], dynamic_smem_bytes=3 * 8192, backend=backend)
    assert (c == a.astype(np.float32) @ b.astype(np.float32)).all()
