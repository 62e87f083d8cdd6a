"""ldmatrix and stmatrix: 8x8 matrices of 16-bit elements between shared memory and fragments."""

from __future__ import annotations

from fasim.isa.machine import ALL_LANES, C_HAZARDS, C_SCRATCH, C_WARP, SCRATCH_SHADOWS
from fasim.isa.operands import M_COUNT, M_REGISTERS, M_TRANSPOSED, P_SPACE
from fasim.numerics.native import (
    copy_bytes,
    first_bit,
    lanes_nonzero_u32,
    machine_code,
    peek_i32,
    peek_i64,
    peek_u16,
    peek_u32,
    poke_u16,
    poke_u32,
)
from fasim.smem.cells import WRITE, representative
from fasim.smem.check_state import H_DUMP, H_ZEROS
from fasim.warp.memory import resolve
from fasim.warp.observe import MATRIX, TRANSPOSED, observe, observe_stored
from fasim.warp.taint import origin_file, shadow_file, tainted
from fasim.warp.taint_memory import note_read, origin_address, set_origin, shadow_hosts


@machine_code
def ldmatrix(ctx: int, pc: int, site: int, registers: int, operands: int, mask: int) -> int:
    """Lane 8i+r gives the address of row r of matrix i; returns 0, or 1 with the error recorded."""
    rows = (1 << 8 * peek_i32(operands + M_COUNT)) - 1
    if resolve(ctx, registers, operands, rows, 1):
        return 1
    observe(ctx, site, operands, rows, shape_of(operands), 16)
    if peek_i64(ctx + C_HAZARDS):
        taint_ldmatrix(ctx, pc, operands, rows)
    read_matrices(registers, operands, peek_i64(ctx + C_SCRATCH))
    return 0


@machine_code
def shape_of(operands: int) -> int:
    """Which lanes hold the elements of a row, for the search for races."""
    return MATRIX | TRANSPOSED if peek_i32(operands + M_TRANSPOSED) else MATRIX


@machine_code
def read_matrices(registers: int, operands: int, hosts: int) -> None:
    """Matrix rows at the addresses in `hosts` to register rows."""
    count, transposed = peek_i32(operands + M_COUNT), peek_i32(operands + M_TRANSPOSED)
    for i in range(count):
        target = registers + peek_i32(operands + M_REGISTERS + 4 * i)
        for row in range(8):
            source = peek_i64(hosts + 8 * (8 * i + row))
            if transposed:  # element (row, column) goes to lane 4*column + row/2, half row%2
                for column in range(8):
                    poke_u16(target + 16 * column + 2 * row, peek_u16(source + 2 * column))
            else:  # lane 4*row + c holds the row's c-th pair: the row as it stands
                copy_bytes(target + 16 * row, source, 16)


@machine_code
def stmatrix(ctx: int, pc: int, site: int, registers: int, operands: int, mask: int) -> int:
    """The inverse of ldmatrix; returns 0, or 1 with the error recorded."""
    rows = (1 << 8 * peek_i32(operands + M_COUNT)) - 1
    if resolve(ctx, registers, operands, rows, 2):
        return 1
    observe(ctx, site, operands, rows, WRITE | shape_of(operands), 16)
    write_matrices(registers, operands, peek_i64(ctx + C_SCRATCH))
    if peek_i64(ctx + C_HAZARDS):
        taint_stmatrix(ctx, pc, operands, rows)
        observe_stored(ctx, site, 0, operands, rows, shape_of(operands))
    return 0


@machine_code
def write_matrices(registers: int, operands: int, hosts: int) -> None:
    """Register rows to matrix rows at the addresses in `hosts`."""
    count, transposed = peek_i32(operands + M_COUNT), peek_i32(operands + M_TRANSPOSED)
    for i in range(count):
        source = registers + peek_i32(operands + M_REGISTERS + 4 * i)
        for row in range(8):
            target = peek_i64(hosts + 8 * (8 * i + row))
            for pair in range(4):
                if transposed:
                    low, high = peek_u16(source + 32 * pair + 2 * row), peek_u16(source + 32 * pair + 16 + 2 * row)
                    poke_u32(target + 4 * pair, low | high << 16)
                else:
                    poke_u32(target + 4 * pair, peek_u32(source + 16 * row + 4 * pair))


@machine_code
def taint_ldmatrix(ctx: int, pc: int, operands: int, rows: int) -> None:
    """The shadows of ldmatrix: matrices of shadows, and an origin for each lane that got something undefined."""
    block, warp, hosts = peek_i64(ctx + C_HAZARDS), peek_i64(ctx + C_WARP), peek_i64(ctx + C_SCRATCH)
    space, transposed = peek_i32(operands + P_SPACE), peek_i32(operands + M_TRANSPOSED)
    if not shadow_hosts(ctx, block, space, rows, peek_i64(block + H_ZEROS)):
        return
    shadows = shadow_file(ctx, block, warp)
    read_matrices(shadows, operands, hosts + SCRATCH_SHADOWS)
    for i in range(peek_i32(operands + M_COUNT)):
        row = peek_i32(operands + M_REGISTERS + 4 * i)
        lanes = lanes_nonzero_u32(shadows + row, ALL_LANES)
        if lanes:
            taint_matrix(ctx, block, representative(ctx, block, pc), space, 8 * i, row, lanes, transposed)


@machine_code
def taint_matrix(ctx: int, block: int, pc: int, space: int, first: int, row: int, lanes: int, transposed: int) -> None:
    """One matrix of an ldmatrix, whose rows' addresses the lanes from `first` on give, left undefined bits in some lanes."""
    hosts = peek_i64(ctx + C_SCRATCH)
    shadow_of = hosts + SCRATCH_SHADOWS
    for lane in range(first, first + 8):
        host, shadow = peek_i64(hosts + 8 * lane), peek_i64(shadow_of + 8 * lane)
        count = 1
        for byte in range(0, 16, 4):
            if peek_u32(shadow + byte):
                note_read(ctx, block, pc, space, host + byte, shadow + byte, 4, lane, count)
                count = 0
    while lanes:
        lane = first_bit(lanes)
        lanes &= lanes - 1
        # with .trans a lane has elements of two matrix rows: the first one that is undefined
        at, byte = first + lane // 4, 4 * (lane & 3)
        if transposed:
            at, byte = first + 2 * (lane & 3), 2 * (lane // 4)
            if peek_u16(peek_i64(shadow_of + 8 * at) + byte) == 0:
                at += 1
        kept = origin_address(ctx, block, space, peek_i64(hosts + 8 * at) + byte)
        origin = peek_u32(kept) if kept else 0
        set_origin(ctx, block, row, lane, origin if origin else pc + 1)


@machine_code
def taint_stmatrix(ctx: int, pc: int, operands: int, rows: int) -> None:
    """The shadows of stmatrix; what is undefined gets the origin of the first such lane."""
    block, warp, hosts = peek_i64(ctx + C_HAZARDS), peek_i64(ctx + C_WARP), peek_i64(ctx + C_SCRATCH)
    space = peek_i32(operands + P_SPACE)
    if not shadow_hosts(ctx, block, space, rows, peek_i64(block + H_DUMP)):
        return
    shadows = shadow_file(ctx, block, warp)
    write_matrices(shadows, operands, hosts + SCRATCH_SHADOWS)
    if not tainted(ctx, warp):
        return
    for i in range(peek_i32(operands + M_COUNT)):
        row = peek_i32(operands + M_REGISTERS + 4 * i)
        lanes = lanes_nonzero_u32(shadows + row, ALL_LANES)
        if lanes == 0:
            continue
        origin = peek_u32(origin_file(ctx, block, warp) + row + 4 * first_bit(lanes))
        for lane in range(8 * i, 8 * i + 8):
            for word in range(0, 16, 4):
                kept = origin_address(ctx, block, space, peek_i64(hosts + 8 * lane) + word)
                if kept and peek_u32(peek_i64(hosts + SCRATCH_SHADOWS + 8 * lane) + word):
                    poke_u32(kept, origin)
