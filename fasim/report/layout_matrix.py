"""The layouts of ldmatrix and stmatrix, found by letting the machine's own functions move matrices of element numbers."""

from __future__ import annotations

import functools

import numpy as np

from fasim.isa.operands import M_COUNT, M_REGISTERS, M_TRANSPOSED
from fasim.numerics.fragments import LANES, Elements
from fasim.warp.matrix import read_matrices, write_matrices

#: rows and columns of the matrices
SIZE = 8


@functools.cache
def matrix_elements(loads: bool, count: int, transposed: bool) -> Elements:
    """The elements of the registers of an ldmatrix (loads) or stmatrix, as the machine executes it.

    count: matrices.
    Returns int64[32 lanes, 2 * count elements, 3] of (matrix, row, column) in shared memory, the low half of a register first.
    """
    memory = np.zeros((SIZE * count, SIZE), np.uint16)
    halves = np.zeros((count, LANES, 2), np.uint16)
    operands = np.zeros(M_REGISTERS // 4 + count, np.int32)
    operands[M_COUNT // 4], operands[M_TRANSPOSED // 4] = count, transposed
    operands[M_REGISTERS // 4 :] = halves.strides[0] * np.arange(count)
    rows = memory.ctypes.data + memory.strides[0] * np.arange(len(memory), dtype=np.int64)
    if loads:
        memory.flat[:] = np.arange(memory.size)
        read_matrices(halves.ctypes.data, operands.ctypes.data, rows.ctypes.data)
        numbers = halves.astype(np.int64)
    else:
        halves.flat[:] = np.arange(halves.size)
        write_matrices(halves.ctypes.data, operands.ctypes.data, rows.ctypes.data)
        numbers = np.argsort(memory.ravel()).reshape(halves.shape)
    by_lane = numbers.transpose(1, 0, 2).reshape(LANES, -1)
    result = np.stack(np.unravel_index(by_lane, (count, SIZE, SIZE)), axis=-1).astype(np.int64)
    result.flags.writeable = False
    return result


def matrix_names(count: int) -> tuple[str, ...]:
    """Which lanes give the addresses of the rows of each matrix."""
    return tuple(f"lanes {SIZE * i}-{SIZE * i + SIZE - 1} give the addresses of its rows" for i in range(count))
