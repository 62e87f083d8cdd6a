"""C = A B in float32 with tiles in shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels.spec import Argument, KernelSpec, Launch, Option, Options, ceil_div, fresh_output

TILE = 32


def launch(options: Options) -> Launch:
    """Returns a CTA of 32x8 threads for every 32x32 tile of C."""
    return Launch((ceil_div(options.integer("n"), TILE), ceil_div(options.integer("m"), TILE), 1), (TILE, 8, 1))


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns a, b, c, m, n, k; a and b, drawn in this order, are float32 standard normal."""
    m, n, k = (options.integer(name) for name in "mnk")
    a, b = (rng.standard_normal(size, dtype=np.float32) for size in ((m, k), (k, n)))
    sizes = [Argument(name, np.int32(options.integer(name)), "in") for name in "mnk"]
    return [Argument("a", a, "in"), Argument("b", b, "in"), Argument("c", fresh_output((m, n), np.float32), "out"), *sizes]


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns c."""
    return {"c": values["a"].astype(np.float64) @ values["b"].astype(np.float64)}


SPEC = KernelSpec(
    name="gemm_tiled",
    source="05_gemm_tiled.cu",
    entry="gemm_tiled",
    title="C = A B in f32 with shared tiles",
    options=tuple(
        Option(name, int, default, what, minimum=1, maximum=1 << 20)
        for name, default, what in (("m", 70, "rows of A and C"), ("n", 50, "columns of B and C"), ("k", 90, "columns of A, rows of B"))
    ),
    defines_of=lambda options: {},
    launch_of=launch,
    inputs_of=inputs,
    reference_of=reference,
    tolerance_of=lambda options: (0.0, options.integer("k") * 2.0**-22),
    flops_of=lambda options: 2 * options.integer("m") * options.integer("n") * options.integer("k"),
)
