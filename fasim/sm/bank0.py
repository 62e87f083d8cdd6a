"""Constant bank 0, where the driver puts what a launch is: sizes of grid and block, windows of memory, the stack, parameters.

Source: machine code that ptxas 13.0 makes for sm_80 to sm_120 of kernels that read these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.isa import machine as m
from fasim.isa.program import Program
from fasim.sm.state import LaunchShape

Array = np.ndarray[Any, Any]
#: byte offsets of what the driver passes
BLOCK, GRID, LOCAL_BASE, STACK = 0x0, 0xC, 0x20, 0x28


def bank0_words(program: Program, shape: LaunchShape, params: Array) -> dict[str, int]:
    """The words of the bank that a program uses, by their names as rows; what is not known here is zero."""
    base = program.parameter_base
    bank = np.zeros(base // 4 + -(-len(params) // 4) + 2, np.uint32)
    bank[BLOCK // 4 : BLOCK // 4 + 3] = shape.block
    bank[GRID // 4 : GRID // 4 + 3] = shape.grid
    bank[LOCAL_BASE // 4 : LOCAL_BASE // 4 + 2] = m.LOCAL_WINDOW & 0xFFFFFFFF, m.LOCAL_WINDOW >> 32
    bank[STACK // 4] = program.local_bytes
    data = np.asarray(params, np.uint8)
    bank.view(np.uint8)[base : base + len(data)] = data
    return {f"c[0x0][{4 * i:#x}]": int(word) for i, word in enumerate(bank)}
