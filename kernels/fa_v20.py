"""FlashAttention forward v2.0: scalar multiply-adds, S and O in shared memory."""

from __future__ import annotations

from fasim.kernels import attention
from fasim.kernels.spec import KernelSpec, Launch, Options, ceil_div

BLOCK_ROWS = 128
TILE_ROWS = 32


def defines(options: Options) -> dict[str, int | str]:
    """Returns the macros D, CAUSAL and SCALE_LOG2."""
    return {"D": options.integer("head_dim"), "CAUSAL": int(options.flag("causal")), "SCALE_LOG2": attention.scale_define(options)}


def launch(options: Options) -> Launch:
    """Returns a CTA for every 128 query rows of every head; shared memory holds K and V twice (half), Q (half), S and O (float)."""
    heads, n, d = attention.shape(options)
    tiles_bytes = 4 * TILE_ROWS * d * 2
    row_bytes = 4 * ((d // 2 + 1) + (TILE_ROWS + 1) + (d + 1))
    return Launch((ceil_div(n, BLOCK_ROWS), heads, 1), (BLOCK_ROWS, 1, 1), tiles_bytes + BLOCK_ROWS * row_bytes)


SPEC = KernelSpec(
    name="fa_v20",
    source="09_fa_v20.cu",
    entry="fa_v20",
    title="FlashAttention forward v2.0 on scalar multiply-adds",
    options=(*attention.SHAPE_OPTIONS, attention.CAUSAL_OPTION),
    defines_of=defines,
    launch_of=launch,
    inputs_of=attention.inputs,
    reference_of=attention.reference,
    tolerance_of=attention.tolerance,
    flops_of=attention.flops,
)
