"""The special registers of PTX and their types.

Source: PTX ISA, "Special Registers".
"""

from __future__ import annotations

AXES = ("x", "y", "z", "w")

_VECTORS = ("%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid")
_WORDS = (
    *("%laneid", "%warpid", "%nwarpid", "%smid", "%nsmid", "%cluster_ctarank", "%cluster_nctarank"),
    *("%lanemask_eq", "%lanemask_le", "%lanemask_lt", "%lanemask_ge", "%lanemask_gt"),
    *("%clock", "%clock_hi", "%globaltimer_lo", "%globaltimer_hi"),
    *("%total_smem_size", "%aggr_smem_size", "%dynamic_smem_size"),
)
_LONGS = ("%gridid", "%clock64", "%globaltimer", "%current_graph_exec")
_BITS = [f"%reserved_smem_offset_{name}" for name in ("begin", "end", "cap", "0", "1")] + [f"%envreg{i}" for i in range(32)]

SPECIAL_VECTORS: frozenset[str] = frozenset(_VECTORS)
"""Special registers of four u32 elements, named without their element."""

SPECIAL_REGISTERS: dict[str, str] = {
    **{f"{name}.{axis}": "u32" for name in _VECTORS for axis in AXES},
    **dict.fromkeys(_WORDS, "u32"),
    **dict.fromkeys(_LONGS, "u64"),
    **dict.fromkeys(_BITS, "b32"),
    **{f"%pm{i}": "u32" for i in range(8)},
    **{f"%pm{i}_64": "u64" for i in range(8)},
    "%is_explicit_cluster": "pred",
}
"""Type by name; vectors by element (`%tid.x`)."""
