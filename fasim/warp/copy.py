"""cp.async as the warp executes it: addresses checked, bytes read, the copy queued."""

from __future__ import annotations

from fasim.isa.machine import C_HAZARDS, C_QUEUE, C_QUEUE_CAPACITY, C_SCRATCH, C_SITES, E_SRC_SIZE, GLOBAL, SCRATCH_SHADOWS
from fasim.isa.operands import P_BYTES, P_SPACE, Q_IGNORE, Q_SOURCE, Q_SOURCE_SIZE
from fasim.numerics.native import copy_bytes, fill_bytes, first_bit, machine_code, peek_i32, peek_i64, peek_u32, poke_i64
from fasim.smem.accounts import account
from fasim.smem.cells import PENDING, WRITE, group_of, pc_of_site
from fasim.smem.check_state import H_BUFFERS, H_NOW
from fasim.smem.cp_async import E_ACCESS, E_DATA, E_TARGET, E_UNDEFINED, H_COUNT, commit, complete, note_wait, push, queue_bytes
from fasim.warp.memory import (
    NOWHERE,
    SCRATCH_SPACE,
    check_alignment,
    common_distance,
    lane_address,
    lane_addresses,
    note_error,
    resolve,
    resolve_lane,
)
from fasim.warp.observe import note_access
from fasim.warp.taint_memory import buffer_shadow, note_read


@machine_code
def queue_at(ctx: int, warp: int) -> int:
    """Address of a warp's queue."""
    return peek_i64(ctx + C_QUEUE) + warp * queue_bytes(peek_i64(ctx + C_QUEUE_CAPACITY))


@machine_code
def read_all(ctx: int, registers: int, operands: int, mask: int, size: int, data: int) -> bool:
    """Every lane reads `size` bytes of one allocation, the common case; False if it is another case, and nothing was done."""
    scratch = peek_i64(ctx + C_SCRATCH)
    lane_addresses(registers, operands + Q_SOURCE, scratch)
    distance = common_distance(ctx, peek_i32(operands + Q_SOURCE + P_SPACE), size, mask, 1)
    if distance == NOWHERE:
        return False
    left = mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        source = peek_i64(scratch + 8 * lane) + distance
        if size == 16:  # a constant size needs no call
            copy_bytes(data + 16 * lane, source, 16)
        else:
            copy_bytes(data + 16 * lane, source, size)
    return True


@machine_code
def cp_async(ctx: int, warp: int, site: int, registers: int, operands: int, mask: int) -> int:
    """Returns 0, 1 with the error recorded, or 2 if the queue is full and nothing was done."""
    queue = queue_at(ctx, warp)
    if peek_i64(queue + H_COUNT) >= peek_i64(ctx + C_QUEUE_CAPACITY):
        return 2
    if resolve(ctx, registers, operands, mask, 2):
        return 1
    size, scratch = peek_i32(operands + P_BYTES), peek_i64(ctx + C_SCRATCH)
    block = peek_i64(ctx + C_HAZARDS)
    entry = push(queue, mask, size, group_of(block, site) if block else 0, peek_i64(block + H_NOW) if block else 0)
    copy_bytes(entry + E_TARGET, scratch, 8 * 32)
    if issue(ctx, registers, operands, mask, entry):
        poke_i64(queue + H_COUNT, peek_i64(queue + H_COUNT) - 1)
        return 1
    observe_copy(ctx, site, registers, operands, mask, entry)
    return 0


@machine_code
def observe_copy(ctx: int, site: int, registers: int, operands: int, mask: int, entry: int) -> None:
    """Count a copy, and look for the races that it begins: it may write at any time until it is waited for."""
    scratch, size = peek_i64(ctx + C_SCRATCH), peek_i32(operands + P_BYTES)
    copy_bytes(scratch, entry + E_TARGET, 8 * 32)
    if peek_i64(ctx + C_SITES):
        sources = scratch + SCRATCH_SHADOWS
        lane_addresses(registers, operands + Q_SOURCE, sources)
        account(ctx, site, mask, sources, filling_lanes(registers, operands, mask))
    block = peek_i64(ctx + C_HAZARDS)
    if block:
        fill_bytes(entry + E_UNDEFINED, 0, 16 * 32)
        if peek_i64(peek_i64(block + H_BUFFERS)):
            copy_undefined(ctx, block, registers, operands, mask, entry)
        note_access(ctx, block, site, mask, size, WRITE | PENDING)


@machine_code
def copy_undefined(ctx: int, block: int, registers: int, operands: int, mask: int, entry: int) -> None:
    """Take the shadows of what the lanes copy along."""
    size, size_row = peek_i32(operands + P_BYTES), peek_i32(operands + Q_SOURCE_SIZE)
    space = peek_i32(operands + Q_SOURCE + P_SPACE)
    left = mask & ~ignored_lanes(registers, operands)
    while left:
        lane = first_bit(left)
        left &= left - 1
        count = peek_u32(registers + size_row + 4 * lane) if size_row >= 0 else size
        if count == 0:
            continue
        host = resolve_lane(ctx, space, lane_address(registers, operands + Q_SOURCE, lane), lane, 1, 1, 0)
        shadow = buffer_shadow(block, host)
        if shadow:
            undefined = entry + E_UNDEFINED + 16 * lane
            copy_bytes(undefined, shadow, count)
            if peek_i64(undefined) | peek_i64(undefined + 8):
                note_read(ctx, block, pc_of_site(block, peek_i64(entry + E_ACCESS)), GLOBAL, host, shadow, count, lane, 1)


@machine_code
def ignored_lanes(registers: int, operands: int) -> int:
    """The lanes whose ignore-src predicate is set."""
    ignore = peek_i32(operands + Q_IGNORE)
    if ignore < 0:
        return 0
    word = peek_u32(registers + (ignore & -2))
    return word ^ 0xFFFFFFFF if ignore & 1 else word


@machine_code
def filling_lanes(registers: int, operands: int, mask: int) -> int:
    """The lanes that read nothing and write zeros: their ignore-src predicate is set, or their src-size is 0."""
    size_row = peek_i32(operands + Q_SOURCE_SIZE)
    filling = mask & ignored_lanes(registers, operands)
    left = mask & ~filling if size_row >= 0 else 0
    while left:
        lane = first_bit(left)
        left &= left - 1
        if peek_u32(registers + size_row + 4 * lane) == 0:
            filling |= 1 << lane
    return filling


@machine_code
def issue(ctx: int, registers: int, operands: int, mask: int, entry: int) -> int:
    """Read what the lanes copy; returns 0, or 1 with the error recorded."""
    size, scratch = peek_i32(operands + P_BYTES), peek_i64(ctx + C_SCRATCH)
    size_row, ignored = peek_i32(operands + Q_SOURCE_SIZE), ignored_lanes(registers, operands)
    if size_row < 0 and peek_i32(operands + Q_IGNORE) < 0 and read_all(ctx, registers, operands, mask, size, entry + E_DATA):
        return 0
    space = peek_i32(operands + Q_SOURCE + P_SPACE)
    failed, left = 0, mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        data = entry + E_DATA + 16 * lane
        fill_bytes(data, 0, 16)
        count = size
        if size_row >= 0:
            count = peek_u32(registers + size_row + 4 * lane)
            if count > size:
                note_error(ctx, E_SRC_SIZE, lane, 0, size, 0, count)
                failed = 1
                continue
        if ignored >> lane & 1:
            count = 0
        if count == 0:
            continue  # nothing is read, so the source may point anywhere
        address = lane_address(registers, operands + Q_SOURCE, lane)
        if count == size:
            host = resolve_lane(ctx, space, address, lane, size, 1, peek_i64(scratch + SCRATCH_SPACE + 8))
            if host >= 0:
                copy_bytes(data, host, size)
                continue
        kind = check_alignment(address, size)
        # a short copy reads `count` bytes: check them one by one, since they need not be a power of two
        first = resolve_lane(ctx, space, address, lane, 1, 1, peek_i64(scratch + SCRATCH_SPACE + 8))
        if kind == 0 and first >= 0:
            for i in range(1, count):
                host = resolve_lane(ctx, space, address + i, lane, 1, 1, peek_i64(scratch + SCRATCH_SPACE + 8))
                first = host if host < 0 else first
        if kind != 0 or first < 0:
            note_error(ctx, kind if kind else -first, lane, peek_i64(scratch + SCRATCH_SPACE), size if kind else count, 0, address)
            failed = 1
            continue
        copy_bytes(data, first, count)
    return failed


@machine_code
def cp_commit(ctx: int, warp: int, mask: int) -> None:
    """cp.async.commit_group."""
    commit(queue_at(ctx, warp), mask)


@machine_code
def cp_wait(ctx: int, warp: int, pc: int, mask: int, pending: int) -> None:
    """cp.async.wait_group N; N = -1 is wait_all."""
    queue = queue_at(ctx, warp)
    complete(ctx, warp, queue, mask, pending)
    if peek_i64(ctx + C_HAZARDS):
        note_wait(queue, mask, pc)
