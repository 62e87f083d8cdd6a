"""Constant bank 0, where the driver puts what a launch is: sizes of grid and block, shared memory, windows of memory, the stack,
where grids synchronise, parameters.

Source: machine code that ptxas 13.0 makes for sm_80 to sm_120 of kernels that read these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.isa import machine as m
from fasim.isa.program import Program
from fasim.sm.state import LaunchShape

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Layout:
    """Byte offsets of what the driver passes: sizes of block and grid, base of local memory, a thread's stack, dynamic shared memory,
    the address for synchronisation of the grid, its upper half first, and the base of shared memory (-1: nowhere)."""

    block: int
    grid: int
    local_base: int
    stack: int
    dynamic_smem: int
    workspace: int
    shared_base: int = -1


#: by where parameters begin, which tells the layouts apart
LAYOUTS = {
    0x160: Layout(0x0, 0xC, 0x20, 0x28, 0x2C, 0x8C, 0x18),
    0x210: Layout(0x0, 0xC, 0x20, 0x28, 0x2C, 0x44, 0x18),
    # the last two stand as many times 0xa0 before 0x2ac and 0x254 as a cluster has CTAs
    0x380: Layout(0x360, 0x370, 0x2F8, 0x37C, 0x2AC - 0xA0, 0x254 - 0xA0),
}


def bank0(program: Program, shape: LaunchShape, params: Array, workspace: int) -> Array:
    """The bytes of the bank, with as many behind the parameters that wide loads stay inside; what is not known here is zero."""
    base = program.parameter_base
    bank = np.zeros(base // 4 + -(-len(params) // 4) + 2, np.uint32)
    at = LAYOUTS[base]
    for first, words in (
        (at.block, shape.block),
        (at.grid, shape.grid),
        (at.local_base, (m.LOCAL_WINDOW & 0xFFFFFFFF, m.LOCAL_WINDOW >> 32)),
        (at.stack, (program.local_bytes,)),
        (at.dynamic_smem, (shape.dynamic_smem_bytes,)),
        (at.workspace, (workspace >> 32, workspace & 0xFFFFFFFF)),
        (at.shared_base, (m.SHARED_WINDOW & 0xFFFFFFFF, m.SHARED_WINDOW >> 32)),
    ):
        if first < 0:
            continue
        bank[first // 4 : first // 4 + len(words)] = words
    data = np.asarray(params, np.uint8)
    found: Array = bank.view(np.uint8)
    found[base : base + len(data)] = data
    return found


def bank0_words(bank: Array) -> dict[str, int]:
    """Its words by their names as rows."""
    return {f"c[0x0][{4 * i:#x}]": int(word) for i, word in enumerate(bank.view(np.uint32))}
