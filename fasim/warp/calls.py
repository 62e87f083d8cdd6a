"""Calls of device functions.

Every function has register rows of its own and, in local memory, a frame: its parameters, return values and variables. The register row
named in the call gives each lane's frame base. A function that can reach itself again also has its rows saved by the caller.
"""

from __future__ import annotations

from fasim.isa.machine import (
    AT_POOL,
    C_CALL_DEPTH,
    C_CALL_STACK,
    C_CODE,
    C_FUNCTIONS,
    C_HAZARDS,
    C_LOCAL,
    C_LOCAL_BYTES,
    C_POOL,
    C_REGS,
    C_SAVE,
    C_SAVE_BYTES,
    CODE_BYTES,
    E_BAD_TARGET,
    E_CALL_DEPTH,
    FUNCTION_BASE,
    FUNCTION_STRIDE,
    LANE32_BYTES,
    LANE64_BYTES,
    LANE_PREDICATE_BYTES,
    PREDICATE_BYTES,
    READY,
    ROW32_BYTES,
    ROW64_BYTES,
)
from fasim.isa.operands import (
    K_ADDRESS,
    K_ARGUMENTS,
    K_CALLEE_BYTES,
    K_COUNT32,
    K_COUNT64,
    K_COUNT_PREDICATES,
    K_FORMAL_BYTES,
    K_FRAME,
    K_FRAME_BYTES,
    K_SAVE32,
    K_SAVE64,
    K_SAVE_PREDICATES,
    K_TARGET,
    PART_BYTES,
    PART_SOURCE,
    PART_STRIDE,
    PART_TARGET,
    PARTS_FIRST,
)
from fasim.numerics.native import copy_bytes, first_bit, machine_code, peek_i32, peek_i64, peek_u32, poke_i64, poke_u32
from fasim.smem.check_state import H_ORIGIN_LOCAL, H_SHADOW_REGS, H_UNDEFINED_LOCAL
from fasim.warp.memory import note_error
from fasim.warp.splits import add_split

MAX_DEPTH = 256


@machine_code
def local_at(ctx: int, warp: int, lane: int) -> int:
    """Address of a lane's local memory."""
    return peek_i64(ctx + C_LOCAL) + (warp * 32 + lane) * peek_i64(ctx + C_LOCAL_BYTES)


@machine_code
def copy_parts(ctx: int, parts: int, source: int, target: int) -> None:
    """Carry out a list of what moves between frames."""
    block = peek_i64(ctx + C_HAZARDS)
    for i in range(peek_i32(parts)):
        part = parts + PARTS_FIRST + PART_STRIDE * i
        to, at, size = target + peek_i32(part + PART_TARGET), source + peek_i32(part + PART_SOURCE), peek_i32(part + PART_BYTES)
        copy_bytes(to, at, size)
        if block:
            shadow, origins = peek_i64(block + H_UNDEFINED_LOCAL), peek_i64(block + H_ORIGIN_LOCAL)
            copy_bytes(to + shadow, at + shadow, size)
            copy_bytes((to & -4) + origins, (at & -4) + origins, (size + 3) & -4)


@machine_code
def end_of_parts(parts: int) -> int:
    """Where a list of what moves between frames ends."""
    return parts + PARTS_FIRST + PART_STRIDE * peek_i32(parts)


@machine_code
def save_rows(ctx: int, warp: int, registers: int, operands: int, lane: int, depth: int, back: int) -> None:
    """Copy a lane's column of the caller's rows to the save area, or back."""
    block, shadow = peek_i64(ctx + C_HAZARDS), 0
    if block and back:  # what comes back counts as defined
        shadow = peek_i64(block + H_SHADOW_REGS) - peek_i64(ctx + C_REGS)
    area = peek_i64(ctx + C_SAVE) + ((warp * 32 + lane) * MAX_DEPTH + depth) * peek_i64(ctx + C_SAVE_BYTES)
    first, count = peek_i32(operands + K_SAVE32), peek_i32(operands + K_COUNT32)
    for i in range(count):
        at = registers + first + ROW32_BYTES * i + LANE32_BYTES * lane
        if back:
            poke_u32(at, peek_u32(area))
            if shadow:
                poke_u32(at + shadow, 0)
        else:
            poke_u32(area, peek_u32(at))
        area += LANE32_BYTES
    first, count = peek_i32(operands + K_SAVE64), peek_i32(operands + K_COUNT64)
    for i in range(count):
        at = registers + first + ROW64_BYTES * i + LANE64_BYTES * lane
        if back:
            poke_i64(at, peek_i64(area))
            if shadow:
                poke_i64(at + shadow, 0)
        else:
            poke_i64(area, peek_i64(at))
        area += LANE64_BYTES
    first, count = peek_i32(operands + K_SAVE_PREDICATES), peek_i32(operands + K_COUNT_PREDICATES)
    for i in range(count):
        at = registers + first + PREDICATE_BYTES * i
        if back:
            poke_u32(at, peek_u32(at) & ~(1 << lane) & 0xFFFFFFFF | (peek_u32(area) & 1) << lane)
            if shadow:
                poke_u32(at + shadow, peek_u32(at + shadow) & ~(1 << lane))
        else:
            poke_u32(area, peek_u32(at) >> lane & 1)
        area += LANE_PREDICATE_BYTES


@machine_code
def call(ctx: int, warp: int, pc: int, registers: int, operands: int, mask: int) -> int:
    """Lanes enter the function; returns 1 with the error recorded."""
    frame_row, frame_bytes = peek_i32(operands + K_FRAME), peek_i32(operands + K_FRAME_BYTES)
    depths, stack = peek_i64(ctx + C_CALL_DEPTH), peek_i64(ctx + C_CALL_STACK)
    needed = frame_bytes + max(peek_i32(operands + K_CALLEE_BYTES), peek_i32(operands + K_FORMAL_BYTES))
    failed, left = 0, mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        target = peek_i32(operands + K_TARGET)
        if target < 0:
            address = peek_i64(registers + peek_i32(operands + K_ADDRESS) + 8 * lane)
            functions = peek_i64(ctx + C_FUNCTIONS)
            index = (address - FUNCTION_BASE) // FUNCTION_STRIDE
            if address < FUNCTION_BASE or (address - FUNCTION_BASE) % FUNCTION_STRIDE or index >= peek_i64(functions):
                note_error(ctx, E_BAD_TARGET, lane, 0, 0, 0, address)
                failed = 1
                continue
            target = peek_i64(functions + 8 + 8 * index)
            if target < 0:
                note_error(ctx, E_BAD_TARGET, lane, 0, 0, 0, address)
                failed = 1
                continue
        slot = 8 * (warp * 32 + lane)
        depth = peek_i64(depths + slot)
        frame = peek_u32(registers + frame_row + 4 * lane)
        if depth >= MAX_DEPTH or frame + needed > peek_i64(ctx + C_LOCAL_BYTES):
            note_error(ctx, E_CALL_DEPTH, lane, 0, 0, 0, depth)
            failed = 1
            continue
        base = local_at(ctx, warp, lane) + frame
        copy_parts(ctx, operands + K_ARGUMENTS, base, base + frame_bytes)
        save_rows(ctx, warp, registers, operands, lane, depth, 0)
        poke_i64(stack + 8 * ((warp * 32 + lane) * MAX_DEPTH + depth), pc)
        poke_i64(depths + slot, depth + 1)
        poke_u32(registers + frame_row + 4 * lane, frame + frame_bytes)
        add_split(ctx, warp, target, 1 << lane, READY, 0)
    return failed


@machine_code
def ret(ctx: int, warp: int, registers: int, mask: int) -> int:
    """Lanes return, each to where it came from; 0."""
    depths, stack = peek_i64(ctx + C_CALL_DEPTH), peek_i64(ctx + C_CALL_STACK)
    left = mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        slot = 8 * (warp * 32 + lane)
        depth = peek_i64(depths + slot) - 1
        poke_i64(depths + slot, depth)
        pc = peek_i64(stack + 8 * ((warp * 32 + lane) * MAX_DEPTH + depth))
        operands = peek_i64(ctx + C_POOL) + 4 * peek_i32(peek_i64(ctx + C_CODE) + pc * CODE_BYTES + AT_POOL)
        frame_row, frame_bytes = peek_i32(operands + K_FRAME), peek_i32(operands + K_FRAME_BYTES)
        frame = peek_u32(registers + frame_row + 4 * lane) - frame_bytes
        poke_u32(registers + frame_row + 4 * lane, frame)
        save_rows(ctx, warp, registers, operands, lane, depth, 1)
        base = local_at(ctx, warp, lane) + frame
        copy_parts(ctx, end_of_parts(operands + K_ARGUMENTS), base + frame_bytes, base)
        add_split(ctx, warp, pc + 1, 1 << lane, READY, 0)
    return 0
