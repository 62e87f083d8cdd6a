"""The shadows of memory: what a load brings along with its data, and what a store leaves behind."""

from __future__ import annotations

from fasim.isa.machine import (
    C_HAZARDS,
    C_LOCAL,
    C_LOCAL_BYTES,
    C_SCRATCH,
    C_SMEM,
    C_SMEM_BYTES,
    C_THREADS,
    C_WARP,
    GENERIC,
    LOCAL,
    PARAM,
    SCRATCH_SHADOWS,
    SHARED,
    W_TAINTED,
)
from fasim.isa.operands import (
    P_BYTES,
    P_REGISTERS,
    P_SIGN,
    P_SPACE,
    P_VECTOR,
    R_BYTES,
    R_ROW,
    R_STRIDE,
)
from fasim.numerics.native import (
    first_bit,
    lanes_add,
    lanes_nonzero_i64,
    lanes_nonzero_u32,
    lanes_step,
    machine_code,
    peek_i32,
    peek_i64,
    peek_u32,
    poke_i64,
    poke_u32,
)
from fasim.smem.cells import representative
from fasim.smem.check_state import (
    BUFFER_SHIFT,
    D_OUTPUT,
    F_READ_UNDEFINED,
    FURTHER_WORDS,
    H_BUFFERS,
    H_DUMP,
    H_LOG_COUNT,
    H_ORIGIN_LOCAL,
    H_ORIGIN_SMEM,
    H_UNDEFINED_LOCAL,
    H_UNDEFINED_SMEM,
    H_ZEROS,
    log,
    note,
    note_undefined,
)
from fasim.warp.splits import (
    warp_at,
)
from fasim.warp.taint import decided, origin_file, shadow_file, tainted
from fasim.warp.transfer import (
    load_by_lane,
    load_row,
    store_by_lane,
    store_row,
)

#: so many findings are kept by word; of global and local memory, which may be large, only a number beyond that
WORDS_KEPT = 1 << 15
# a buffer with a shadow: first byte, size, distance to its shadow
BUFFER_BYTES = 24


@machine_code
def buffer_at(block: int, host: int) -> int:
    """Address of the record of the buffer with a shadow that a host address lies in, 0 if there is none."""
    table = peek_i64(block + H_BUFFERS)
    for i in range(peek_i64(table)):
        at = table + 8 + BUFFER_BYTES * i
        if 0 <= host - peek_i64(at) < peek_i64(at + 8):
            return at
    return 0


@machine_code
def buffer_shadow(block: int, host: int) -> int:
    """Address of the shadow of global memory, 0 if the buffer has none."""
    at = buffer_at(block, host)
    return host + peek_i64(at + 16) if at else 0


@machine_code
def space_of_host(ctx: int, space: int, host: int) -> int:
    """The state space of a lane's data; all that is not shared or local counts as global."""
    if space != GENERIC:
        return space
    if 0 <= host - peek_i64(ctx + C_SMEM) < peek_i64(ctx + C_SMEM_BYTES):
        return SHARED
    if 0 <= host - peek_i64(ctx + C_LOCAL) < peek_i64(ctx + C_LOCAL_BYTES) * ((peek_i64(ctx + C_THREADS) + 31) & -32):
        return LOCAL
    return PARAM


@machine_code
def shadow_hosts(ctx: int, block: int, space: int, mask: int, other: int) -> bool:
    """Where each lane's shadow is, for the host addresses in scratch; False if none has any.

    other: the address for lanes whose memory has no shadow.
    """
    hosts = peek_i64(ctx + C_SCRATCH)
    target = hosts + SCRATCH_SHADOWS
    if space == SHARED:
        lanes_add(target, hosts, peek_i64(block + H_UNDEFINED_SMEM))
        return True
    if space == LOCAL:
        lanes_add(target, hosts, peek_i64(block + H_UNDEFINED_LOCAL))
        return True
    if space != GENERIC and peek_i64(peek_i64(block + H_BUFFERS)) == 0:
        return False
    found, left = False, mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        host = peek_i64(hosts + 8 * lane)
        where = space_of_host(ctx, space, host)
        if where == SHARED:
            shadow = host + peek_i64(block + H_UNDEFINED_SMEM)
        elif where == LOCAL:
            shadow = host + peek_i64(block + H_UNDEFINED_LOCAL)
        else:
            shadow = buffer_shadow(block, host)
        found = found or shadow != 0
        poke_i64(target + 8 * lane, shadow if shadow else other)
    return found


@machine_code
def origin_address(ctx: int, block: int, space: int, host: int) -> int:
    """Where the origin of undefined data in memory stands, 0 for global memory, which keeps none."""
    where = space_of_host(ctx, space, host)
    if where == SHARED:
        return (host & -4) + peek_i64(block + H_ORIGIN_SMEM)
    if where == LOCAL:
        return (host & -4) + peek_i64(block + H_ORIGIN_LOCAL)
    return 0


@machine_code
def word_of(ctx: int, block: int, space: int, host: int, lane: int) -> int:
    """Byte offset of the word in its state space, in global memory in its buffer."""
    where = space_of_host(ctx, space, host)
    if where == SHARED:
        return (host - peek_i64(ctx + C_SMEM)) & -4
    if where == LOCAL:
        frames = peek_i64(ctx + C_LOCAL) + (peek_i64(ctx + C_WARP) * 32 + lane) * peek_i64(ctx + C_LOCAL_BYTES)
        return (host - frames) & -4
    at = buffer_at(block, host)
    return (host - peek_i64(at)) & -4 if at else 0


@machine_code
def buffer_number(block: int, host: int) -> int:
    """The number of a buffer with a shadow, from 1 on; 0 for other memory."""
    at = buffer_at(block, host)
    return (at - peek_i64(block + H_BUFFERS) - 8) // BUFFER_BYTES + 1 if at else 0


@machine_code
def note_read(ctx: int, block: int, pc: int, space: int, host: int, shadow: int, size: int, lane: int, count: int) -> int:
    """A lane reads undefined data: log the words that nobody has written; returns the origin, here or where a copy of them was read.

    shadow: address of the data's shadow. count: how many lanes to count.
    """
    first = 0
    while size > 4 and first + 4 < size and peek_u32(shadow + first) == 0:
        first += 4
    kept = origin_address(ctx, block, space, host + first)
    origin = peek_u32(kept) if kept else 0
    if origin:
        return origin
    warp = peek_i64(ctx + C_WARP)
    for byte in range(0, size, 4):
        if size <= 4 or peek_u32(shadow + byte):
            where = space_of_host(ctx, space, host)
            word = word_of(ctx, block, space, host + byte, lane)
            if where == SHARED:
                note_undefined(ctx, block, pc, word, where, warp, 1 << lane, count)
            else:
                if peek_i64(block + H_LOG_COUNT) > WORDS_KEPT:
                    word = FURTHER_WORDS
                detail = where | buffer_number(block, host) << BUFFER_SHIFT
                note(log(ctx, block, F_READ_UNDEFINED, pc, 0, word, detail), warp, 1 << lane, 0, 0, 0, max(count, word == FURTHER_WORDS))
            count = 0
    return pc + 1


@machine_code
def set_origin(ctx: int, block: int, row: int, lane: int, origin: int) -> None:
    """A lane's register, by the offset of its row, holds undefined bits from an origin."""
    warp = peek_i64(ctx + C_WARP)
    poke_u32(origin_file(ctx, block, warp) + row + 4 * lane, origin)
    poke_i64(warp_at(ctx, warp) + W_TAINTED, 1)


@machine_code
def taint_load(ctx: int, pc: int, operands: int, mask: int) -> None:
    """The shadows of a load; the host addresses of its first elements stand in scratch."""
    block, warp = peek_i64(ctx + C_HAZARDS), peek_i64(ctx + C_WARP)
    reader = representative(ctx, block, pc)
    space, size, count = peek_i32(operands + P_SPACE), peek_i32(operands + P_BYTES), peek_i32(operands + P_VECTOR)
    sign, hosts = peek_i32(operands + P_SIGN), peek_i64(ctx + C_SCRATCH)
    target = hosts + SCRATCH_SHADOWS
    if not shadow_hosts(ctx, block, space, mask, peek_i64(block + H_ZEROS)):
        if not tainted(ctx, warp):
            return
        for lane in range(32):
            poke_i64(target + 8 * lane, peek_i64(block + H_ZEROS))
    shadows, found = shadow_file(ctx, block, warp), 0
    for element in range(count):
        register = operands + P_REGISTERS + R_STRIDE * element
        row, wide = peek_i32(register + R_ROW), peek_i32(register + R_BYTES)
        if row >= 0:
            if (wide == 8) == (size == 8) and (sign == 0 or size >= 4):
                load_row(shadows + row, target, mask, size, lanes_step(target, mask, size))
            else:
                load_by_lane(shadows + row, target, mask, size, sign, wide)
            lanes = lanes_nonzero_i64(shadows + row, mask) if wide == 8 else lanes_nonzero_u32(shadows + row, mask)
            while lanes:
                lane = first_bit(lanes)
                lanes &= lanes - 1
                host, shadow = peek_i64(hosts + 8 * lane) + size * element, peek_i64(target + 8 * lane)
                set_origin(ctx, block, row, lane, note_read(ctx, block, reader, space, host, shadow, size, lane, 1 - (found >> lane & 1)))
                found |= 1 << lane
        lanes_add(target, target, size)


@machine_code
def taint_store(ctx: int, pc: int, operands: int, mask: int) -> None:
    """The shadows of a store; the host addresses of its first elements stand in scratch."""
    block, warp = peek_i64(ctx + C_HAZARDS), peek_i64(ctx + C_WARP)
    space, size, count = peek_i32(operands + P_SPACE), peek_i32(operands + P_BYTES), peek_i32(operands + P_VECTOR)
    hosts = peek_i64(ctx + C_SCRATCH)
    target, dirty = hosts + SCRATCH_SHADOWS, tainted(ctx, warp)
    shadowed = shadow_hosts(ctx, block, space, mask, peek_i64(block + H_DUMP))
    if not shadowed and not dirty:
        return
    shadows = shadow_file(ctx, block, warp)
    for element in range(count):
        register = operands + P_REGISTERS + R_STRIDE * element
        row, wide = peek_i32(register + R_ROW), peek_i32(register + R_BYTES)
        if dirty:
            lanes = stored_bits(shadows + row, mask, size, wide)
            while lanes:
                lane = first_bit(lanes)
                lanes &= lanes - 1
                host = peek_i64(hosts + 8 * lane) + size * element
                kept = origin_address(ctx, block, space, host)
                if kept:
                    origin = peek_u32(origin_file(ctx, block, warp) + row + 4 * lane)
                    for word in range(0, max(size, 4), 4):
                        poke_u32(kept + word, origin)
                else:
                    decided(ctx, block, pc, row, 1 << lane, D_OUTPUT)
        if shadowed:
            if (wide == 8) == (size == 8):
                store_row(shadows + row, target, mask, size, lanes_step(target, mask, size))
            else:
                store_by_lane(shadows + row, target, mask, size, wide)
            lanes_add(target, target, size)


@machine_code
def stored_bits(row: int, mask: int, size: int, wide: int) -> int:
    """The lanes of which undefined bits are stored."""
    if wide == 8:
        lanes = lanes_nonzero_i64(row, mask)
        if size == 8 or lanes == 0:
            return lanes
    else:
        lanes = lanes_nonzero_u32(row, mask)
        if size >= 4 or lanes == 0:
            return lanes
    kept, left = 0, lanes
    while left:
        lane = first_bit(left)
        left &= left - 1
        if peek_u32(row + wide_bytes(wide) * lane) & ((1 << 8 * size) - 1):
            kept |= 1 << lane
    return kept


@machine_code
def wide_bytes(wide: int) -> int:
    """Bytes of a lane in a row, from the bytes that count."""
    return 8 if wide == 8 else 4
