"""C = A B on tensor cores, half operands, float32 accumulation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels.spec import Argument, KernelSpec, Launch, Option, Options, ceil_div, fresh_output

TILE_M, TILE_N, TILE_K = 64, 64, 32
PAD = 8


def launch(options: Options) -> Launch:
    """Returns a CTA of four warps for every 64x64 tile of C; shared memory holds STAGES padded tiles of A and B."""
    stage_bytes = (TILE_M * (TILE_K + PAD) + TILE_K * (TILE_N + PAD)) * 2
    grid = ceil_div(options.integer("n"), TILE_N), ceil_div(options.integer("m"), TILE_M), 1
    return Launch(grid, (128, 1, 1), options.integer("stages") * stage_bytes)


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns a, b, c, m, n, k; a and b, drawn in this order, are float32 standard normal rounded to half."""
    m, n, k = (options.integer(name) for name in "mnk")
    a, b = (rng.standard_normal(size, dtype=np.float32).astype(np.float16) for size in ((m, k), (k, n)))
    sizes = [Argument(name, np.int32(options.integer(name)), "in") for name in "mnk"]
    return [Argument("a", a, "in"), Argument("b", b, "in"), Argument("c", fresh_output((m, n), np.float32), "out"), *sizes]


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns c."""
    return {"c": values["a"].astype(np.float64) @ values["b"].astype(np.float64)}


SPEC = KernelSpec(
    name="gemm_mma",
    source="06_gemm_mma.cu",
    entry="gemm_mma",
    title="C = A B on tensor cores with a cp.async pipeline",
    options=(
        Option("m", int, 128, "rows of A and C", minimum=1, maximum=1 << 20),
        Option("n", int, 128, "columns of B and C", minimum=8, maximum=1 << 20, multiple_of=8),
        Option("k", int, 256, "columns of A, rows of B", minimum=8, maximum=1 << 20, multiple_of=8),
        Option("stages", int, 2, "tiles in shared memory", choices=(2, 3, 4)),
    ),
    defines_of=lambda options: {"STAGES": options.integer("stages")},
    launch_of=launch,
    inputs_of=inputs,
    reference_of=reference,
    # Tensor cores truncate every partial sum.
    tolerance_of=lambda options: (0.0, options.integer("k") * 2.0**-20),
    flops_of=lambda options: 2 * options.integer("m") * options.integer("n") * options.integer("k"),
)
