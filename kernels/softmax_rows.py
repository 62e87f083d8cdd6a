"""Softmax over the rows of a matrix, one warp a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels.spec import Argument, KernelSpec, Launch, Option, Options, ceil_div, fresh_output

WARPS = 4


def launch(options: Options) -> Launch:
    """Returns a CTA for every four rows."""
    return Launch((ceil_div(options.integer("rows"), WARPS), 1, 1), (32 * WARPS, 1, 1))


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns x, y, rows, columns; x is float32 normal with standard deviation 4."""
    size = options.integer("rows"), options.integer("columns")
    return [
        Argument("x", np.float32(4.0) * rng.standard_normal(size, dtype=np.float32), "in"),
        Argument("y", fresh_output(size, np.float32), "out"),
        Argument("rows", np.int32(size[0]), "in"),
        Argument("columns", np.int32(size[1]), "in"),
    ]


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns y."""
    x = values["x"].astype(np.float64)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}


def tolerance(options: Options) -> tuple[float, float]:
    """Returns (rtol, atol).

    Arguments of exp2 up to about 2^5 carry errors of 2^-19, and a lane adds columns / 32 terms one after the other.
    """
    return 2.0**-17 + options.integer("columns") / 32 * 2.0**-23, 2.0**-126


SPEC = KernelSpec(
    name="softmax_rows",
    source="04_softmax_rows.cu",
    entry="softmax_rows",
    title="online softmax, one warp a row",
    options=(
        Option("rows", int, 37, "rows", minimum=1, maximum=1 << 24),
        Option("columns", int, 300, "columns", minimum=1, maximum=1 << 24),
    ),
    defines_of=lambda options: {},
    launch_of=launch,
    inputs_of=inputs,
    reference_of=reference,
    tolerance_of=tolerance,
    flops_of=lambda options: 5 * options.integer("rows") * options.integer("columns"),
)
