"""Matrix transpose through shared memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels.spec import Argument, KernelSpec, Launch, Option, Options, ceil_div, fresh_output

TILE = 32
LAYOUTS = ("linear", "padded")


def launch(options: Options) -> Launch:
    """Returns a CTA of 32x8 threads for every 32x32 tile."""
    return Launch((ceil_div(options.integer("columns"), TILE), ceil_div(options.integer("rows"), TILE), 1), (TILE, 8, 1))


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns input, output, rows, columns; the input is float32 standard normal."""
    rows, columns = options.integer("rows"), options.integer("columns")
    return [
        Argument("input", rng.standard_normal((rows, columns), dtype=np.float32), "in"),
        Argument("output", fresh_output((columns, rows), np.float32), "out"),
        Argument("rows", np.int32(rows), "in"),
        Argument("columns", np.int32(columns), "in"),
    ]


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns output."""
    return {"output": np.ascontiguousarray(values["input"].T, dtype=np.float64)}


SPEC = KernelSpec(
    name="transpose",
    source="02_transpose.cu",
    entry="transpose",
    title="matrix transpose through a shared tile",
    options=(
        Option("rows", int, 100, "rows of the input", minimum=1, maximum=1 << 20),
        Option("columns", int, 70, "columns of the input", minimum=1, maximum=1 << 20),
        Option("layout", str, "padded", "shared-memory layout", choices=LAYOUTS),
    ),
    defines_of=lambda options: {"LAYOUT": LAYOUTS.index(options.text("layout"))},
    launch_of=launch,
    inputs_of=inputs,
    reference_of=reference,
    tolerance_of=lambda options: (0.0, 0.0),
    flops_of=lambda options: 0,
)
