"""Sums of 1024 floats each, by shuffles and shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels.spec import Argument, KernelSpec, Launch, Option, Options, ceil_div, fresh_output

THREADS = 256
PER_CTA = 4 * THREADS


def launch(options: Options) -> Launch:
    """Returns a CTA for every 1024 elements."""
    return Launch((ceil_div(options.integer("n"), PER_CTA), 1, 1), (THREADS, 1, 1))


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns x, partial, n; x is float32 standard normal."""
    n = options.integer("n")
    return [
        Argument("x", rng.standard_normal(n, dtype=np.float32), "in"),
        Argument("partial", fresh_output((ceil_div(n, PER_CTA),), np.float32), "out"),
        Argument("n", np.int32(n), "in"),
    ]


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns partial."""
    x = values["x"].astype(np.float64)
    return {"partial": np.add.reduceat(x, np.arange(0, len(x), PER_CTA))}


SPEC = KernelSpec(
    name="reduce",
    source="03_reduce.cu",
    entry="reduce",
    title="sums by warp shuffles and shared memory",
    options=(Option("n", int, 5000, "elements", minimum=1, maximum=1 << 30),),
    defines_of=lambda options: {},
    launch_of=launch,
    inputs_of=inputs,
    reference_of=reference,
    # An element takes part in at most 4 + 5 + 5 additions, each of which rounds a sum of at most 1024 elements.
    tolerance_of=lambda options: (0.0, 14 * 2.0**-24 * PER_CTA),
    flops_of=lambda options: options.integer("n"),
)
