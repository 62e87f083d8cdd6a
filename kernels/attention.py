"""What the attention kernels share: shapes, inputs and the float64 reference."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels.spec import Argument, Option, Options, fresh_output

LAYOUTS = ("linear", "padded", "swizzled")

SHAPE_OPTIONS = (
    Option("n", int, 256, "sequence length", minimum=1, maximum=1 << 24),
    Option("batch", int, 1, "batch size B", minimum=1),
    Option("heads", int, 2, "heads H of each batch entry", minimum=1),
    Option("head_dim", int, 64, "head dimension D", choices=(64, 128)),
)
CAUSAL_OPTION = Option("causal", bool, False, "query i sees keys 0..i only")

_REFERENCE_ROWS = 256


def shape(options: Options) -> tuple[int, int, int]:
    """Returns (B*H, N, D), the shape of q, k, v and o."""
    return options.integer("batch") * options.integer("heads"), options.integer("n"), options.integer("head_dim")


def scale_define(options: Options) -> str:
    """Returns log2(e) / sqrt(D) as a C literal of type float."""
    return f"{math.log2(math.e) / math.sqrt(options.integer('head_dim'))!r}f"


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns q, k, v, o, n: q, k and v, drawn in this order, are float32 standard normal rounded to half."""
    size = shape(options)
    drawn = [Argument(name, rng.standard_normal(size, dtype=np.float32).astype(np.float16), "in") for name in "qkv"]
    return [*drawn, Argument("o", fresh_output(size, np.float16), "out"), Argument("n", np.int32(size[1]), "in")]


def probabilities(q: NDArray[Any], k: NDArray[Any], first_row: int, causal: bool) -> NDArray[np.float64]:
    """Returns softmax(q k^T / sqrt(D)) in float64 for query rows first_row, first_row + 1, ...

    A causal one has no columns past the last of these rows.
    """
    visible = min(first_row + len(q), len(k)) if causal else len(k)
    s = q.astype(np.float64) @ k[:visible].astype(np.float64).T / math.sqrt(q.shape[1])
    if causal:
        s[np.arange(visible)[None, :] > np.arange(first_row, first_row + len(q))[:, None]] = -np.inf
    s -= s.max(axis=1, keepdims=True)
    np.exp(s, out=s)
    s /= s.sum(axis=1, keepdims=True)
    return s


def reference_o(options: Options, values: dict[str, Any]) -> NDArray[np.float64]:
    """Returns the output in float64, computed by blocks of query rows so that no N x N matrix is needed."""
    q, k, v = values["q"], values["k"], values["v"]
    result = np.empty(q.shape, np.float64)
    for head in range(q.shape[0]):
        v_head = v[head].astype(np.float64)
        for first_row in range(0, q.shape[1], _REFERENCE_ROWS):
            rows = slice(first_row, first_row + _REFERENCE_ROWS)
            p = probabilities(q[head, rows], k[head], first_row, options.flag("causal"))
            result[head, rows] = p @ v_head[: p.shape[1]]
    return result


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns the reference of a kernel whose only output is o."""
    return {"o": reference_o(options, values)}


def tolerance(options: Options) -> tuple[float, float]:
    """Returns (rtol, atol) for half outputs."""
    return 1e-3, 1e-3


def flops(options: Options) -> int:
    """Returns 4 D for every visible pair of query and key: the two products."""
    heads, n, d = shape(options)
    pairs = n * (n + 1) // 2 if options.flag("causal") else n * n
    return 4 * d * heads * pairs
