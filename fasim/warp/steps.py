"""What the inner loop does for single instructions, lane by lane."""

from __future__ import annotations

from fasim.isa.machine import (
    ALL_LANES,
    AT_HANDLER,
    AT_MEMBER,
    AT_OPERANDS,
    C_CLOCK,
    C_ERROR,
    C_TIME,
    CODE_BYTES,
    E_BAD_TARGET,
    ERR_PC,
    ERR_WARP,
    FAILED,
    READY,
)
from fasim.isa.operands import T_BYTES, T_DEST, T_LAUNCH_WIDE, T_SHIFT, X_COUNT, X_INDEX, X_TARGETS
from fasim.numerics.native import call_handler, first_bit, machine_code, peek_i32, peek_i64, peek_u32, poke_i64, poke_u32
from fasim.warp.memory import note_error
from fasim.warp.splits import add_split, same_value


@machine_code
def failure(ctx: int, warp: int, pc: int, mask: int) -> int:
    """Complete the error record; the lanes stay at the instruction."""
    error = peek_i64(ctx + C_ERROR)
    poke_i64(error + ERR_PC, pc)
    poke_i64(error + ERR_WARP, warp)
    add_split(ctx, warp, pc, mask, READY, 0)
    return FAILED


@machine_code
def branch_indexed(ctx: int, warp: int, registers: int, operands: int, mask: int) -> int:
    """brx.idx: lanes go to the splits of their targets; returns 1 if an index is outside of the list."""
    row, count = peek_i32(operands + X_INDEX), peek_i32(operands + X_COUNT)
    failed, left = 0, mask
    while left:
        lane = first_bit(left)
        group = same_value(registers + row, left)
        left &= ~group
        index = peek_u32(registers + row + 4 * lane)
        if index >= count:
            note_error(ctx, E_BAD_TARGET, lane, 0, 0, 0, index)
            failed = 1
        else:
            add_split(ctx, warp, peek_i32(operands + X_TARGETS + 4 * index), group, READY, 0)
    return failed


@machine_code
def run_lanes(rec: int, count: int, registers: int, mask: int) -> None:
    """Instructions on registers that follow each other without guard or label: nothing to decide between them."""
    end = rec + count * CODE_BYTES
    while rec < end:
        call_handler(peek_i64(rec + AT_HANDLER), registers, peek_i64(rec + AT_OPERANDS), mask)
        rec += CODE_BYTES


@machine_code
def named_lanes(rec: int, registers: int, lanes: int) -> int:
    """All lanes that the member masks of some lanes name."""
    row, named = peek_i32(rec + AT_MEMBER), 0
    if row < 0:
        return ALL_LANES
    while lanes:
        named |= peek_u32(registers + row + 4 * first_bit(lanes))
        lanes &= lanes - 1
    return named


@machine_code
def read_clock(ctx: int, registers: int, operands: int, mask: int, executed: int) -> None:
    """%clock and the like; executed: instructions since the clock of the CTA was written down last."""
    ticks = peek_i64(ctx + C_CLOCK) + executed
    row, size, shift = peek_i32(operands + T_DEST), peek_i32(operands + T_BYTES), peek_i32(operands + T_SHIFT)
    if peek_i32(operands + T_LAUNCH_WIDE):  # %globaltimer goes on over all CTAs
        ticks += peek_i64(ctx + C_TIME)
    while mask:
        lane = first_bit(mask)
        mask &= mask - 1
        if size == 8:
            poke_i64(registers + row + 8 * lane, ticks)
        else:
            poke_u32(registers + row + 4 * lane, (ticks >> shift) & 0xFFFFFFFF)
