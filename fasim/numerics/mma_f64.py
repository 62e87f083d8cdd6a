"""Matrix multiply-accumulate of f64."""

from __future__ import annotations

from collections.abc import Sequence

from fasim.numerics import ieee
from fasim.numerics.fragments import sources
from fasim.numerics.lanes import Lanes
from fasim.numerics.mma_integer import Moved


def f64_multiply(shape: str, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes], rounding: str = "rn") -> list[Lanes]:
    """A*B + C in f64: fused multiply-adds in increasing k, each rounded.

    Source: "MMA-Sim: Bit-Accurate Reference Model of Tensor Cores and Matrix Cores" (the order and the fusing).
    """
    left, right, d = Moved(a), Moved(b), list(c)
    for products in zip(*sources(shape, "f64")):
        for number, (of_a, of_b) in enumerate(products):
            d[number] = ieee.fma_rounded(left[of_a], right[of_b], d[number], rounding)
    return d
