"""Integer operations for formulas that run both on numpy arrays of any length and on the lanes of a warp.

A formula written with these functions, operators and Python constants is checked on arrays against whole sweeps, and used on lanes by
instructions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.numerics import lanes
from fasim.numerics.lanes import Lanes


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`; one of them may be a Python number."""
    if isinstance(condition, Lanes):
        return lanes.where(condition, a, b)
    dtype = a.dtype if isinstance(a, np.ndarray) else b.dtype
    return np.where(condition, np.asarray(a, dtype), np.asarray(b, dtype))


def u32(x: Any) -> Any:
    """An unsigned value cut or extended to 32 bits."""
    return lanes.cast(x, "u32") if isinstance(x, Lanes) else x.astype(np.uint32)


def u64(x: Any) -> Any:
    """An unsigned value extended to 64 bits."""
    return lanes.cast(x, "u64") if isinstance(x, Lanes) else x.astype(np.uint64)


def lookup(table: Any, index: Any) -> Any:
    """table[index]."""
    return lanes.table(table, index) if isinstance(index, Lanes) else table[index]


def leading_zeros(x: Any) -> Any:
    """Zero bits above the highest set bit of a 64-bit value, as 64 bits; 64 for 0."""
    if isinstance(x, Lanes):
        return lanes.clz(x)
    for n in (1, 2, 4, 8, 16, 32):
        x = x | (x >> n)
    return 64 - np.bitwise_count(x).astype(np.uint64)
