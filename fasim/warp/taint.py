"""Undefined values on their way through a warp: what memory never held, or a shuffle took from a lane that was not there.

Memory has a shadow of the same shape, in which bits are 1 where data is undefined; so have the registers of a warp. Shadows move as data
does. A warp in whose registers nothing is undefined runs without them. An undefined value has an origin, the instruction that read it first
(its pc plus one), and is reported where it decides something: an address, a branch, an mma, an output.
"""

from __future__ import annotations

from fasim.isa.machine import (
    ABSENT_LANE,
    ALL_LANES,
    AT_AUX,
    AT_GUARD,
    AT_MEMBER,
    AT_OPERANDS,
    AT_SHADOW,
    BAR,
    BAR_RED_AND,
    BAR_RED_OR,
    BAR_RED_POPC,
    BRX,
    C_HAZARDS,
    C_REG_STRIDE,
    C_WARP,
    CALL,
    CLOCK,
    COLLECTIVE,
    CP_ASYNC,
    LANES,
    LDMATRIX,
    MEMORY_KINDS,
    STMATRIX,
    W_TAINTED,
)
from fasim.isa.operands import (
    BAR_COUNT,
    BAR_DEST,
    BAR_NUMBER,
    BAR_OP,
    BAR_PREDICATE,
    K_ADDRESS,
    K_TARGET,
    M_COUNT,
    P_ADDRESS,
    P_WIDE,
    Q_SOURCE,
    Q_SOURCE_SIZE,
    T_BYTES,
    T_DEST,
    X_INDEX,
)
from fasim.numerics.native import (
    call_shadow,
    fill_bytes,
    first_bit,
    lanes_nonzero_i64,
    lanes_nonzero_u32,
    machine_code,
    peek_i32,
    peek_i64,
    peek_u32,
    poke_i64,
    poke_u32,
    popcount,
)
from fasim.smem.check_state import (
    D_ADDRESS,
    D_BARRIER,
    D_BRANCH,
    D_MMA,
    F_DECIDED,
    F_JOINED,
    F_READ_UNDEFINED,
    H_ORIGIN_REGS,
    H_SHADOW_REGS,
    log,
    note,
)
from fasim.warp.splits import same_value, warp_at

#: AT_AUX of register instructions under checks: how many destinations and sources they have, of the first sources two bits each for the
#: bank (BANK_CODES), and what they are
AUX_DESTS, AUX_SOURCES, AUX_BANKS, AUX_MMA, AUX_SHUFFLE = 0, 8, 16, 1 << 28, 1 << 30
SHOWN_SOURCES = 6
BANK_CODES = {32: 0, 64: 1, 1: 2}


@machine_code
def tainted(ctx: int, warp: int) -> bool:
    """Whether anything in a warp's registers may be undefined."""
    return peek_i64(warp_at(ctx, warp) + W_TAINTED) != 0


@machine_code
def shadow_file(ctx: int, block: int, warp: int) -> int:
    """Address of the shadows of a warp's registers."""
    return peek_i64(block + H_SHADOW_REGS) + warp * peek_i64(ctx + C_REG_STRIDE)


@machine_code
def origin_file(ctx: int, block: int, warp: int) -> int:
    """Address of the origins of what is undefined in a warp's registers."""
    return peek_i64(block + H_ORIGIN_REGS) + warp * peek_i64(ctx + C_REG_STRIDE)


@machine_code
def decided(ctx: int, block: int, pc: int, row: int, lanes: int, what: int) -> None:
    """Undefined values in a row decide something."""
    warp = peek_i64(ctx + C_WARP)
    origins = origin_file(ctx, block, warp) + row
    while lanes:
        lane = first_bit(lanes)
        origin = peek_u32(origins + 4 * lane)
        same, left = 0, lanes
        while left:
            other = first_bit(left)
            left &= left - 1
            if peek_u32(origins + 4 * other) == origin:
                same |= 1 << other
        lanes &= ~same
        note(log(ctx, block, F_DECIDED, origin - 1, pc, 0, what), warp, same, 0, 0, 0, popcount(same))


@machine_code
def predicate_decides(ctx: int, block: int, pc: int, guard: int, lanes: int, what: int) -> None:
    """The same for a predicate, of which there is one origin for all lanes."""
    warp = peek_i64(ctx + C_WARP)
    lanes &= peek_u32(shadow_file(ctx, block, warp) + (guard & -2))
    if lanes:
        origin = peek_u32(origin_file(ctx, block, warp) + (guard & -2))
        note(log(ctx, block, F_DECIDED, origin - 1, pc, 0, what), warp, lanes, 0, 0, 0, popcount(lanes))


@machine_code
def row_decides(ctx: int, block: int, pc: int, row: int, wide: int, lanes: int, what: int) -> None:
    """Report what is undefined in a row of 32 or (wide) 64 bits; row -1: no operand."""
    if row < 0:
        return
    shadows = shadow_file(ctx, block, peek_i64(ctx + C_WARP)) + row
    lanes = lanes_nonzero_i64(shadows, lanes) if wide else lanes_nonzero_u32(shadows, lanes)
    if lanes:
        decided(ctx, block, pc, row, lanes, what)


@machine_code
def taint_step(ctx: int, warp: int, pc: int, rec: int, kind: int, registers: int, mask: int, execute: int) -> None:
    """Before an instruction of a warp that holds undefined values: what they decide, and for register instructions where they go."""
    block = peek_i64(ctx + C_HAZARDS)
    guard, operands, aux = peek_i32(rec + AT_GUARD), peek_i64(rec + AT_OPERANDS), peek_i32(rec + AT_AUX)
    if guard >= 0:
        predicate_decides(ctx, block, pc, guard, mask, D_BRANCH)
    if execute == 0:
        return
    if (kind == LANES or kind == COLLECTIVE) and aux & AUX_MMA:
        dests = aux >> AUX_DESTS & 0xFF
        for i in range(dests, dests + (aux >> AUX_SOURCES & 0xFF)):
            row_decides(ctx, block, pc, peek_i32(operands + 4 * i), aux >> AUX_BANKS & 1, execute, D_MMA)
    if kind == LANES:
        join_origins(ctx, block, operands, aux, execute)
        handler = peek_i64(rec + AT_SHADOW)
        call_shadow(handler, registers, shadow_file(ctx, block, warp), origin_file(ctx, block, warp), operands, execute)
    elif kind in MEMORY_KINDS:
        lanes = execute
        if kind == LDMATRIX or kind == STMATRIX:  # the lanes that give addresses
            lanes = (1 << 8 * peek_i32(operands + M_COUNT)) - 1
        row_decides(ctx, block, pc, peek_i32(operands + P_ADDRESS), peek_i32(operands + P_WIDE), lanes, D_ADDRESS)
        if kind == CP_ASYNC:
            source = operands + Q_SOURCE
            row_decides(ctx, block, pc, peek_i32(source + P_ADDRESS), peek_i32(source + P_WIDE), lanes, D_ADDRESS)
            row_decides(ctx, block, pc, peek_i32(operands + Q_SOURCE_SIZE), 0, lanes, D_ADDRESS)
    elif kind == BRX:
        row_decides(ctx, block, pc, peek_i32(operands + X_INDEX), 0, execute, D_BRANCH)
    elif kind == CALL:
        if peek_i32(operands + K_TARGET) < 0:
            row_decides(ctx, block, pc, peek_i32(operands + K_ADDRESS), 1, execute, D_BRANCH)
    elif kind == BAR:
        row_decides(ctx, block, pc, peek_i32(operands + BAR_NUMBER), 0, execute, D_BARRIER)
        row_decides(ctx, block, pc, peek_i32(operands + BAR_COUNT), 0, execute, D_BARRIER)
        if peek_i32(operands + BAR_PREDICATE) >= 0:
            predicate_decides(ctx, block, pc, peek_i32(operands + BAR_PREDICATE), execute, D_BRANCH)
        operation, dest = peek_i32(operands + BAR_OP), peek_i32(operands + BAR_DEST)
        if operation == BAR_RED_POPC:
            define(shadow_file(ctx, block, warp) + dest, 4, execute)
        elif operation == BAR_RED_AND or operation == BAR_RED_OR:
            at = shadow_file(ctx, block, warp) + dest
            poke_u32(at, peek_u32(at) & ~execute)
    elif kind == CLOCK:
        define(shadow_file(ctx, block, warp) + peek_i32(operands + T_DEST), peek_i32(operands + T_BYTES), execute)


@machine_code
def join_origins(ctx: int, block: int, operands: int, aux: int, execute: int) -> None:
    """An instruction combines undefined values: what its result decides, all of them decide."""
    warp = peek_i64(ctx + C_WARP)
    shadows, origins = shadow_file(ctx, block, warp), origin_file(ctx, block, warp)
    dests, sources = aux >> AUX_DESTS & 0xFF, aux >> AUX_SOURCES & 0xFF
    first = 0
    for i in range(min(sources, SHOWN_SOURCES)):
        row, bank = peek_i32(operands + 4 * (dests + i)) & -2, aux >> AUX_BANKS + 2 * i & 3
        if bank == 2:
            lanes = peek_u32(shadows + row) & execute
        elif bank == 1:
            lanes = lanes_nonzero_i64(shadows + row, execute)
        else:
            lanes = lanes_nonzero_u32(shadows + row, execute)
        while lanes:
            origin = peek_u32(origins + row + (0 if bank == 2 else 4 * first_bit(lanes)))
            lanes &= lanes - 1
            if first == 0:
                first = origin
            elif origin != first and origin != ABSENT_LANE:
                note(log(ctx, block, F_JOINED, first - 1, origin - 1, 0, 0), warp, 0, warp, 0, 0, 1)


@machine_code
def define(row: int, size: int, lanes: int) -> None:
    """Some lanes of a row get defined values."""
    while lanes:
        fill_bytes(row + size * first_bit(lanes), 0, size)
        lanes &= lanes - 1


@machine_code
def taint_collective(ctx: int, warp: int, pc: int, rec: int, registers: int, execute: int) -> None:
    """The shadows of a shuffle, vote or match; a shuffle may take a value from a lane that does not execute it with the same mask."""
    block, member = peek_i64(ctx + C_HAZARDS), peek_i32(rec + AT_MEMBER)
    shuffle, dirty = peek_i32(rec + AT_AUX) & AUX_SHUFFLE, tainted(ctx, warp)
    together = member < 0 or same_value(registers + member, execute) == execute
    if not dirty and (shuffle == 0 or (execute == ALL_LANES and together)):
        return
    handler, operands = peek_i64(rec + AT_SHADOW), peek_i64(rec + AT_OPERANDS)
    shadows, origins, left = shadow_file(ctx, block, warp), origin_file(ctx, block, warp), execute
    while left:
        group = left if together or shuffle == 0 else same_value(registers + member, left)
        left &= ~group
        call_shadow(handler, registers, shadows, origins, operands, group)
    if shuffle:
        row = peek_i32(operands)
        lanes = lanes_nonzero_u32(shadows + row, execute)
        if lanes:
            poke_i64(warp_at(ctx, warp) + W_TAINTED, 1)
        while lanes:
            lane = first_bit(lanes)
            lanes &= lanes - 1
            if peek_u32(origins + row + 4 * lane) == ABSENT_LANE:
                poke_u32(origins + row + 4 * lane, pc + 1)
                note(log(ctx, block, F_READ_UNDEFINED, pc, 0, 0, COLLECTIVE_SPACE), warp, 1 << lane, 0, 0, execute, 1)


#: the "space" of what was taken from a lane that does not execute a shuffle
COLLECTIVE_SPACE = 16 + COLLECTIVE


@machine_code
def settle(ctx: int, warp: int) -> None:
    """Notice that nothing in a warp's registers is undefined any more."""
    block, stride = peek_i64(ctx + C_HAZARDS), peek_i64(ctx + C_REG_STRIDE)
    if block == 0 or not tainted(ctx, warp):
        return
    at = shadow_file(ctx, block, warp)
    for i in range(0, stride, 8):
        if peek_i64(at + i):
            return
    poke_i64(warp_at(ctx, warp) + W_TAINTED, 0)


@machine_code
def clear_shadows(ctx: int, warp: int) -> None:
    """A fresh warp has defined registers."""
    block = peek_i64(ctx + C_HAZARDS)
    if block and tainted(ctx, warp):
        fill_bytes(shadow_file(ctx, block, warp), 0, peek_i64(ctx + C_REG_STRIDE))
