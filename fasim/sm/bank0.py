"""Constant bank 0, where the driver puts what a launch is: sizes of grid and block, windows of memory, the stack, parameters.

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
    """Byte offsets of what the driver passes: sizes of block and grid, base of local memory, a thread's stack."""

    block: int
    grid: int
    local_base: int
    stack: int


#: by where parameters begin, which tells the layouts apart
LAYOUTS = {0x160: Layout(0x0, 0xC, 0x20, 0x28), 0x210: Layout(0x0, 0xC, 0x20, 0x28), 0x380: Layout(0x360, 0x370, 0x2F8, 0x37C)}


def bank0_words(program: Program, shape: LaunchShape, params: Array) -> dict[str, int]:
    """The words of the bank that a program uses, by their names as rows; what is not known here is zero."""
    base = program.parameter_base
    bank = np.zeros(base // 4 + -(-len(params) // 4) + 2, np.uint32)
    at = LAYOUTS[base]
    for first, words in (
        (at.block, shape.block),
        (at.grid, shape.grid),
        (at.local_base, (m.LOCAL_WINDOW & 0xFFFFFFFF, m.LOCAL_WINDOW >> 32)),
        (at.stack, (program.local_bytes,)),
    ):
        bank[first // 4 : first // 4 + len(words)] = words
    data = np.asarray(params, np.uint8)
    bank.view(np.uint8)[base : base + len(data)] = data
    return {f"c[0x0][{4 * i:#x}]": int(word) for i, word in enumerate(bank)}
