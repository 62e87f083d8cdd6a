"""atom and red: read, combine, write back, lane after lane in ascending order where addresses coincide."""

from __future__ import annotations

from fasim.isa.machine import C_HAZARDS, C_SCRATCH, C_WARP, GENERIC, LOCAL, SCRATCH_SHADOWS, SHARED
from fasim.isa.operands import (
    A_B,
    A_C,
    A_DEST,
    A_ELEMENTS,
    A_HANDLER,
    A_NEW,
    A_OLD,
    A_STRIDE,
    OVERWRITES,
    P_BYTES,
    P_ORDER,
    P_SPACE,
    P_VECTOR,
)
from fasim.numerics.native import (
    call_handler,
    fill_bytes,
    first_bit,
    lanes_add,
    lanes_equal,
    lanes_load_i64,
    lanes_load_u32,
    lanes_step,
    machine_code,
    peek_i32,
    peek_i64,
    peek_u8,
    peek_u32,
    poke_u32,
)
from fasim.smem.cells import WRITE, representative
from fasim.smem.check_state import D_OUTPUT, H_BUFFERS
from fasim.warp.memory import resolve
from fasim.warp.observe import RMW, observe
from fasim.warp.taint import decided, origin_file, shadow_file, tainted
from fasim.warp.taint_memory import note_read, origin_address, set_origin, shadow_hosts
from fasim.warp.transfer import load_row, store_row


@machine_code
def atom(ctx: int, pc: int, site: int, registers: int, operands: int, mask: int, handler: int) -> int:
    """Returns 0, or 1 with the error recorded; the handler computes new from (old, b[, c])."""
    if resolve(ctx, registers, operands, mask, 3):
        return 1
    hosts, size = peek_i64(ctx + C_SCRATCH), peek_i32(operands + P_BYTES)
    stride = size * peek_i32(operands + P_VECTOR)
    observe(ctx, site, operands, mask, WRITE | RMW, stride)
    if peek_i64(ctx + C_HAZARDS):
        taint_atom(ctx, pc, operands, mask)
    for element in range(peek_i32(operands + P_VECTOR)):
        own = operands + A_ELEMENTS + A_STRIDE * element
        old, new = registers + peek_i32(own + A_OLD), registers + peek_i32(own + A_NEW)
        left, distinct = mask, lanes_step(hosts, mask, stride)
        while left:
            # the lanes of one round have addresses of their own
            now, rest = (left, 0) if distinct else (0, left)
            while rest:
                lane = first_bit(rest)
                now |= 1 << lane
                rest &= ~lanes_equal(hosts, peek_i64(hosts + 8 * lane))
            left &= ~now
            load_row(old, hosts, now, size, False)
            call_handler(handler, registers, own + A_HANDLER, now)
            store_row(new, hosts, now, size, False)
        lanes_add(hosts, hosts, size)
    # last, since a destination may be the source of another element
    for element in range(peek_i32(operands + P_VECTOR)):
        own = operands + A_ELEMENTS + A_STRIDE * element
        old, dest = registers + peek_i32(own + A_OLD), peek_i32(own + A_DEST)
        if dest >= 0:
            if size == 8:
                lanes_load_i64(registers + dest, old, mask)
            else:
                lanes_load_u32(registers + dest, old, mask)
    return 0


@machine_code
def taint_atom(ctx: int, pc: int, operands: int, mask: int) -> None:
    """The shadows of an atomic: what it leaves is undefined if what it found or got was; what it returns, if what it found was."""
    block, warp, hosts = peek_i64(ctx + C_HAZARDS), peek_i64(ctx + C_WARP), peek_i64(ctx + C_SCRATCH)
    space, size, dirty = peek_i32(operands + P_SPACE), peek_i32(operands + P_BYTES), tainted(ctx, warp)
    if not shadow_hosts(ctx, block, space, mask, 0) and not dirty:
        return
    if space != SHARED and space != LOCAL and space != GENERIC and peek_i64(peek_i64(block + H_BUFFERS)) == 0:
        fill_bytes(hosts + SCRATCH_SHADOWS, 0, 8 * 32)
    if not dirty and not any_shadow(hosts + SCRATCH_SHADOWS, mask, size * peek_i32(operands + P_VECTOR)):
        return
    overwrites = peek_i32(operands + P_ORDER) & OVERWRITES
    for element in range(peek_i32(operands + P_VECTOR)):
        own, left = operands + A_ELEMENTS + A_STRIDE * element, mask
        while left:
            lane = first_bit(left)
            left &= left - 1
            shadow = peek_i64(hosts + SCRATCH_SHADOWS + 8 * lane)
            taint_atom_lane(ctx, block, pc, space, size, own, lane, shadow + size * element if shadow else 0, overwrites)


@machine_code
def taint_atom_lane(ctx: int, block: int, pc: int, space: int, size: int, own: int, lane: int, shadow: int, overwrites: int) -> None:
    """One element of one lane; shadow: where the shadow of its memory is, 0 if it has none."""
    warp = peek_i64(ctx + C_WARP)
    shadows, host = shadow_file(ctx, block, warp), peek_i64(peek_i64(ctx + C_SCRATCH) + 8 * lane)
    held, before, given = 8 if size == 8 else 4, 0, -1
    for source in range(A_B, A_C + 1, A_C - A_B):
        row = peek_i32(own + source)
        if row >= 0 and any_byte(shadows + row + held * lane, size):
            given = row
    origin = 0
    if shadow:
        before = any_byte(shadow, size)
        if before:
            origin = note_read(ctx, block, representative(ctx, block, pc), space, host, shadow, size, lane, 1)
        fill_bytes(shadow, 0xFF if given >= 0 or (before and not overwrites) else 0, size)
    elif given >= 0:
        decided(ctx, block, pc, given, 1 << lane, D_OUTPUT)
    dest = peek_i32(own + A_DEST)
    if dest >= 0:
        fill_bytes(shadows + dest + held * lane, 0xFF if before else 0, held)
    if before:
        set_origin(ctx, block, dest if dest >= 0 else peek_i32(own + A_OLD), lane, origin)
    if given >= 0:
        origin = peek_u32(origin_file(ctx, block, warp) + given + 4 * lane)
    kept = origin_address(ctx, block, space, host) if shadow else 0
    if kept and origin:
        for word in range(0, size, 4):
            poke_u32(kept + word, origin)


@machine_code
def any_shadow(shadows: int, mask: int, size: int) -> bool:
    """Whether anything is undefined at the lanes' addresses, of which 0 means defined memory."""
    while mask:
        shadow = peek_i64(shadows + 8 * first_bit(mask))
        mask &= mask - 1
        if shadow and (peek_u32(shadow) if size == 4 else any_byte(shadow, size)):
            return True
    return False


@machine_code
def any_byte(at: int, count: int) -> int:
    """1 if any of some bytes is not zero."""
    for i in range(count):
        if peek_u8(at + i):
            return 1
    return 0
