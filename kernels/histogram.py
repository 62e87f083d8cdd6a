"""Counts of byte values, by atomics in shared and global memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels.spec import Argument, KernelSpec, Launch, Option, Options, ceil_div

BINS = 256
THREADS = 256
PER_CTA = 8 * THREADS


def launch(options: Options) -> Launch:
    """Returns a CTA for every 2048 bytes."""
    return Launch((ceil_div(options.integer("n"), PER_CTA), 1, 1), (THREADS, 1, 1))


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns x, counts, n; x is uniform over 0..spread-1, counts start at zero."""
    n = options.integer("n")
    return [
        Argument("x", rng.integers(0, options.integer("spread"), n, dtype=np.uint8, endpoint=False), "in"),
        Argument("counts", np.zeros(BINS, np.uint32), "inout"),
        Argument("n", np.int32(n), "in"),
    ]


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns counts."""
    return {"counts": np.bincount(values["x"], minlength=BINS).astype(np.float64) + values["counts"]}


SPEC = KernelSpec(
    name="histogram",
    source="07_histogram.cu",
    entry="histogram",
    title="byte counts by shared and global atomics",
    options=(
        Option("n", int, 10000, "bytes", minimum=1, maximum=1 << 30),
        Option("spread", int, 256, "number of distinct values", minimum=1, maximum=256),
    ),
    defines_of=lambda options: {},
    launch_of=launch,
    inputs_of=inputs,
    reference_of=reference,
    tolerance_of=lambda options: (0.0, 0.0),
    flops_of=lambda options: 0,
)
