"""Attention with S and P in global memory."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fasim.kernels import attention
from fasim.kernels.spec import Argument, KernelSpec, Launch, Options, fresh_output

THREADS = 128


def defines(options: Options) -> dict[str, int | str]:
    """Returns the macros D, CAUSAL and SCALE_LOG2."""
    return {"D": options.integer("head_dim"), "CAUSAL": int(options.flag("causal")), "SCALE_LOG2": attention.scale_define(options)}


def launch(options: Options) -> Launch:
    """Returns a CTA for every query row of every head."""
    heads, n, _ = attention.shape(options)
    return Launch((n, heads, 1), (THREADS, 1, 1))


def inputs(options: Options, rng: np.random.Generator) -> list[Argument]:
    """Returns q, k, v, o, p, n; p is [B*H, N, N] float32 and receives the softmax."""
    *qkvo, n = attention.inputs(options, rng)
    heads, length, _ = attention.shape(options)
    return [*qkvo, Argument("p", fresh_output((heads, length, length), np.float32), "out"), n]


def reference(options: Options, values: dict[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Returns o and p."""
    p = np.stack([attention.probabilities(q, k, 0, options.flag("causal")) for q, k in zip(values["q"], values["k"])])
    return {"o": p @ values["v"].astype(np.float64), "p": p}


SPEC = KernelSpec(
    name="attention_naive",
    source="08_attention_naive.cu",
    entry="attention_naive",
    title="attention with S and P in global memory",
    options=(*attention.SHAPE_OPTIONS, attention.CAUSAL_OPTION),
    defines_of=defines,
    launch_of=launch,
    inputs_of=inputs,
    reference_of=reference,
    tolerance_of=attention.tolerance,
    flops_of=attention.flops,
)
