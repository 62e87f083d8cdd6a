"""FlashAttention forward v2.1: tensor cores, S and P in registers."""

from __future__ import annotations

import itertools

from fasim.kernels import attention
from fasim.kernels.spec import KernelSpec, Launch, Option, Options, Region, WatchedLine, ceil_div

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
    heads, n, _ = attention.shape(options)
    return Launch((ceil_div(n, BLOCK_ROWS), heads, 1), (THREADS, 1, 1), regions(options)[-1].end)


def regions(options: Options) -> tuple[Region, ...]:
    """Returns the two buffers of K, those of V, and Q."""
    d = options.integer("head_dim")
    row_bytes = 2 * (d + 8 if options.text("layout") == "padded" else d)
    tile = options.integer("bc") * row_bytes
    parts = {"K[0]": tile, "K[1]": tile, "V[0]": tile, "V[1]": tile, "Q": BLOCK_ROWS * row_bytes}
    ends = list(itertools.accumulate(parts.values()))
    return tuple(Region(name, end - size, end) for (name, size), end in zip(parts.items(), ends))


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
    watched=(
        WatchedLine("m", "new_max[mi][h] = fmaxf(", "max"),
        WatchedLine("rescale", "rescale[mi][h] = exp2_approx(", "ex2"),
        WatchedLine("l", "row_sum[mi][h] = __fmaf_rn(", "fma", total=True),
    ),
    regions_of=regions,
)
