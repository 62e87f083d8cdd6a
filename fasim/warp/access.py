"""What a warp does with memory: loads and stores, and which of its instructions does what."""

from __future__ import annotations

from fasim.isa.machine import (
    AT_AUX,
    AT_HANDLER,
    AT_OPERANDS,
    ATOM,
    C_HAZARDS,
    C_PATH,
    C_SCRATCH,
    DONE,
    FAILED,
    LDMATRIX,
    LOAD,
    LOG_FULL,
    QUEUE_FULL,
    STMATRIX,
    STORE,
)
from fasim.isa.operands import P_BYTES, P_REGISTERS, P_SIGN, P_VECTOR, R_BYTES, R_ROW, R_STRIDE
from fasim.numerics.native import lanes_add, lanes_step, machine_code, peek_i32, peek_i64
from fasim.smem.cells import WRITE
from fasim.smem.check_state import full
from fasim.warp.atomics import atom
from fasim.warp.copy import cp_async
from fasim.warp.matrix import ldmatrix, stmatrix
from fasim.warp.memory import resolve
from fasim.warp.observe import observe, observe_stored
from fasim.warp.path import note_memory, path_full
from fasim.warp.taint_memory import taint_load, taint_store
from fasim.warp.transfer import load_by_lane, load_row, store_by_lane, store_row


@machine_code
def load(ctx: int, pc: int, site: int, registers: int, operands: int, mask: int) -> int:
    """ld, in all widths and vectors; returns 0, or 1 with the error recorded."""
    if resolve(ctx, registers, operands, mask, 1):
        return 1
    hosts = peek_i64(ctx + C_SCRATCH)
    size, count, sign = peek_i32(operands + P_BYTES), peek_i32(operands + P_VECTOR), peek_i32(operands + P_SIGN)
    observe(ctx, site, operands, mask, 0, size * count)
    if peek_i64(ctx + C_HAZARDS):
        taint_load(ctx, pc, operands, mask)
    step = lanes_step(hosts, mask, size)
    for element in range(count):
        register = operands + P_REGISTERS + R_STRIDE * element
        row, wide = peek_i32(register + R_ROW), peek_i32(register + R_BYTES)
        if row >= 0:
            if (wide == 8) == (size == 8) and (sign == 0 or size >= 4):
                load_row(registers + row, hosts, mask, size, step)
            else:
                load_by_lane(registers + row, hosts, mask, size, sign, wide)
        if element + 1 < count:
            lanes_add(hosts, hosts, size)
    return 0


@machine_code
def store(ctx: int, pc: int, site: int, registers: int, operands: int, mask: int) -> int:
    """st, in all widths and vectors; the highest lane wins a shared address. Returns 0, or 1 with the error recorded."""
    if resolve(ctx, registers, operands, mask, 2):
        return 1
    hosts = peek_i64(ctx + C_SCRATCH)
    size, count = peek_i32(operands + P_BYTES), peek_i32(operands + P_VECTOR)
    observe(ctx, site, operands, mask, WRITE, size * count)
    step = lanes_step(hosts, mask, size)
    for element in range(count):
        register = operands + P_REGISTERS + R_STRIDE * element
        row, wide = registers + peek_i32(register + R_ROW), peek_i32(register + R_BYTES)
        if (wide == 8) == (size == 8):
            store_row(row, hosts, mask, size, step)
        else:
            store_by_lane(row, hosts, mask, size, wide)
        if element + 1 < count:
            lanes_add(hosts, hosts, size)
    if peek_i64(ctx + C_HAZARDS):
        lanes_add(hosts, hosts, size * (1 - count))
        taint_store(ctx, pc, operands, mask)
        observe_stored(ctx, site, registers, operands, mask, 0)
    return 0


#: an instruction accesses at most 32 times 32 bytes
MOST_GRANULES = 32 * 32


@machine_code
def access_memory(ctx: int, warp: int, pc: int, kind: int, rec: int, registers: int, mask: int) -> int:
    """Carry out what accesses memory; returns DONE, FAILED with the error recorded, or QUEUE_FULL or LOG_FULL with nothing done."""
    operands, site, block = peek_i64(rec + AT_OPERANDS), peek_i32(rec + AT_AUX), peek_i64(ctx + C_HAZARDS)
    if block and full(block, MOST_GRANULES):
        return LOG_FULL
    path = peek_i64(ctx + C_PATH)
    if path and path_full(path):
        return LOG_FULL
    if kind == LOAD:
        failed = load(ctx, pc, site, registers, operands, mask)
    elif kind == STORE:
        failed = store(ctx, pc, site, registers, operands, mask)
    elif kind == ATOM:
        failed = atom(ctx, pc, site, registers, operands, mask, peek_i64(rec + AT_HANDLER))
    elif kind == LDMATRIX:
        failed = ldmatrix(ctx, pc, site, registers, operands, mask)
    elif kind == STMATRIX:
        failed = stmatrix(ctx, pc, site, registers, operands, mask)
    else:
        failed = cp_async(ctx, warp, site, registers, operands, mask)
        if failed == 2:
            return QUEUE_FULL
    if path and not failed:
        note_memory(ctx, warp, site, kind, registers, operands, mask)
    return FAILED if failed else DONE
