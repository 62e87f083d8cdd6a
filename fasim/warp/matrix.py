"""ldmatrix and stmatrix: 8x8 matrices of 16-bit elements between shared memory and fragments."""

from __future__ import annotations

from fasim.isa.machine import C_SCRATCH
from fasim.isa.operands import M_COUNT, M_REGISTERS, M_TRANSPOSED
from fasim.numerics.native import copy_bytes, machine_code, peek_i32, peek_i64, peek_u16, peek_u32, poke_u16, poke_u32
from fasim.warp.memory import resolve


@machine_code
def ldmatrix(ctx: int, registers: int, operands: int, mask: int) -> int:
    """Lane 8i+r gives the address of row r of matrix i; returns 0, or 1 with the error recorded."""
    count, transposed = peek_i32(operands + M_COUNT), peek_i32(operands + M_TRANSPOSED)
    if resolve(ctx, registers, operands, (1 << 8 * count) - 1, 1):
        return 1
    scratch = peek_i64(ctx + C_SCRATCH)
    for i in range(count):
        target = registers + peek_i32(operands + M_REGISTERS + 4 * i)
        for row in range(8):
            source = peek_i64(scratch + 8 * (8 * i + row))
            if transposed:  # element (row, column) goes to lane 4*column + row/2, half row%2
                for column in range(8):
                    poke_u16(target + 16 * column + 2 * row, peek_u16(source + 2 * column))
            else:  # lane 4*row + c holds the row's c-th pair: the row as it stands
                copy_bytes(target + 16 * row, source, 16)
    return 0


@machine_code
def stmatrix(ctx: int, registers: int, operands: int, mask: int) -> int:
    """The inverse of ldmatrix; returns 0, or 1 with the error recorded."""
    count, transposed = peek_i32(operands + M_COUNT), peek_i32(operands + M_TRANSPOSED)
    if resolve(ctx, registers, operands, (1 << 8 * count) - 1, 2):
        return 1
    scratch = peek_i64(ctx + C_SCRATCH)
    for i in range(count):
        source = registers + peek_i32(operands + M_REGISTERS + 4 * i)
        for row in range(8):
            target = peek_i64(scratch + 8 * (8 * i + row))
            for pair in range(4):
                if transposed:
                    low, high = peek_u16(source + 32 * pair + 2 * row), peek_u16(source + 32 * pair + 16 + 2 * row)
                    poke_u32(target + 4 * pair, low | high << 16)
                else:
                    poke_u32(target + 4 * pair, peek_u32(source + 16 * row + 4 * pair))
    return 0
