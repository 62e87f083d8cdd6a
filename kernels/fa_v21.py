"""FlashAttention forward v2.1: tensor cores, S and P in registers."""

from __future__ import annotations

from fasim.kernels import attention
from fasim.kernels.spec import KernelSpec, Launch, Option, Options, ceil_div

BLOCK_ROWS = 128
THREADS = 128


def defines(options: Options) -> dict[str, int | str]:
    """Returns the macros BC, D, LAYOUT, CAUSAL and SCALE_LOG2."""
    return {
        "BC": options.integer("bc"),
        "D": options.integer("head_dim"),
        "LAYOUT": attention.LAYOUTS.index(options.text("layout")),
        "CAUSAL": int(options.flag("causal")),
        "SCALE_LOG2": attention.scale_define(options),
    }


def launch(options: Options) -> Launch:
    """Returns a CTA for every 128 query rows of every head; shared memory holds K and V twice, and Q."""
    heads, n, d = attention.shape(options)
    pitch = d + 8 if options.text("layout") == "padded" else d
    dynamic_smem_bytes = (4 * options.integer("bc") + BLOCK_ROWS) * pitch * 2
    return Launch((ceil_div(n, BLOCK_ROWS), heads, 1), (THREADS, 1, 1), dynamic_smem_bytes)


SPEC = KernelSpec(
    name="fa_v21",
    source="10_fa_v21.cu",
    entry="fa_v21",
    title="FlashAttention forward v2.1 on tensor cores",
    options=(
        *attention.SHAPE_OPTIONS,
        Option("bc", int, 32, "key rows per tile", choices=(32, 64, 128)),
        Option("layout", str, "padded", "shared-memory layout", choices=attention.LAYOUTS),
        attention.CAUSAL_OPTION,
    ),
    defines_of=defines,
    launch_of=launch,
    inputs_of=attention.inputs,
    reference_of=attention.reference,
    tolerance_of=attention.tolerance,
    flops_of=attention.flops,
)
