"""y = a x + y."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels.spec import Argument, KernelSpec, Launch, Option, Options, ceil_div

THREADS = 256


def launch(options: Options) -> Launch:
    """Returns one thread an element."""
    return Launch((ceil_div(options.integer("n"), THREADS), 1, 1), (THREADS, 1, 1))


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns a, x, y, n; a is drawn first, then x, then y, float32 standard normal."""
    n = options.integer("n")
    a = np.float32(rng.standard_normal(dtype=np.float32))
    x, y = (rng.standard_normal(n, dtype=np.float32) for _ in range(2))
    return [Argument("a", a, "in"), Argument("x", x, "in"), Argument("y", y, "inout"), Argument("n", np.int32(n), "in")]


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns y."""
    return {"y": np.float64(values["a"]) * values["x"].astype(np.float64) + values["y"].astype(np.float64)}


SPEC = KernelSpec(
    name="axpy",
    source="01_axpy.cu",
    entry="axpy",
    title="y = a x + y, one thread an element",
    options=(Option("n", int, 1000, "elements", minimum=1, maximum=1 << 30),),
    defines_of=lambda options: {},
    launch_of=launch,
    inputs_of=inputs,
    reference_of=reference,
    tolerance_of=lambda options: (2.0**-23, 0.0),
    flops_of=lambda options: 2 * options.integer("n"),
)
