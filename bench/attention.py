"""Attention in the machine: the v2.1 kernel (Bc = 32, D = 64, dense) and the naive one, outputs checked."""

from __future__ import annotations

from functools import cache

import numpy as np

import fasim
from fasim import kernels


@cache
def _kernel(name: str) -> fasim.Kernel:
    spec = kernels.load(name)
    return fasim.compile(spec.path, defines=spec.defines()).kernel(spec.entry)


class Problem:
    """One shape of a kernel of the collection, ready to launch."""

    def __init__(self, name: str, n: int, batch: int, heads: int) -> None:
        self.spec, self.kernel = kernels.load(name), _kernel(name)
        self.options = {"n": n, "batch": batch, "heads": heads}
        self.arguments = self.spec.inputs(self.options)

    def seconds(self) -> float:
        """Time in the machine of one launch on all cores."""
        launch = self.spec.launch(self.options)
        values = [argument.value for argument in self.arguments]
        return self.kernel.launch(launch.grid, launch.block, values, dynamic_smem_bytes=launch.dynamic_smem_bytes).seconds

    def check(self) -> None:
        """Compare the outputs of the last launch with float64; raises AssertionError if they are wrong."""
        rtol, atol = self.spec.tolerance(self.options)
        for name, expected in self.spec.reference(self.options, self.arguments).items():
            actual = next(argument.value for argument in self.arguments if argument.name == name)
            np.testing.assert_allclose(np.asarray(actual, np.float64), expected, rtol, atol)
