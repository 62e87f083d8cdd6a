"""Addresses of the lanes of one warp: all are checked and translated before any memory changes."""

from __future__ import annotations

from fasim.isa.machine import (
    A_BASE,
    A_BITMAP,
    A_HOST,
    A_SIZE,
    ALLOC_BYTES,
    C_ALLOC_COUNT,
    C_ALLOCS,
    C_ERROR,
    C_LOCAL,
    C_LOCAL_BYTES,
    C_PARAM,
    C_PARAM_BYTES,
    C_READS,
    C_SCRATCH,
    C_SMEM,
    C_SMEM_BYTES,
    C_TRACK,
    C_WARP,
    C_WRITES,
    E_CONST_WRITE,
    E_MISALIGNED,
    E_OUT_OF_BOUNDS,
    ERR_ADDRESS,
    ERR_BYTES,
    ERR_KIND,
    ERR_LANES,
    ERR_SPACE,
    ERR_WRITE,
    GENERIC,
    GLOBAL,
    LOCAL,
    LOCAL_WINDOW,
    PARAM,
    PARAM_WINDOW,
    SHARED,
    SHARED_WINDOW,
    WINDOW_BYTES,
)
from fasim.isa.operands import P_ADDRESS, P_BYTES, P_OFFSET_HIGH, P_OFFSET_LOW, P_SPACE, P_VECTOR, P_WIDE
from fasim.numerics.native import (
    fill_bytes,
    first_bit,
    lanes_add,
    lanes_add_u32,
    lanes_max,
    lanes_min,
    lanes_or,
    lanes_step,
    machine_code,
    peek_i32,
    peek_i64,
    peek_u8,
    peek_u32,
    poke_i64,
    poke_u8,
    popcount,
)

# scratch: where each lane's data is, then what the last resolution found
SCRATCH_SPACE = 8 * 32
#: no host address is that far from the address in the kernel
NOWHERE = 1 << 62


@machine_code
def lane_address(registers: int, operands: int, lane: int) -> int:
    """The address that a lane computes: register (32 or 64 bits, or none) plus offset."""
    offset = peek_u32(operands + P_OFFSET_LOW) | peek_i32(operands + P_OFFSET_HIGH) << 32
    row = peek_i32(operands + P_ADDRESS)
    if row < 0:
        return offset
    if peek_i32(operands + P_WIDE):
        return wrap64(peek_i64(registers + row + 8 * lane), offset)
    return (peek_u32(registers + row + 4 * lane) + offset) & 0xFFFFFFFF


@machine_code
def wrap64(a: int, b: int) -> int:
    """a + b modulo 2**64 as a signed number, without leaving 64 bits on the way."""
    low = (a & 0xFFFFFFFF) + (b & 0xFFFFFFFF)
    high = (a >> 32) + (b >> 32) + (low >> 32)
    high = ((high + 0x80000000) & 0xFFFFFFFF) - 0x80000000
    return high << 32 | (low & 0xFFFFFFFF)


@machine_code
def locate_global(ctx: int, address: int, size: int, hint: int) -> int:
    """Index of the allocation that holds all `size` bytes, -1 if none does; `hint` is tried first."""
    table, count = peek_i64(ctx + C_ALLOCS), peek_i64(ctx + C_ALLOC_COUNT)
    if hint < count:
        at = table + hint * ALLOC_BYTES
        distance = address - peek_i64(at + A_BASE)
        if 0 <= distance <= peek_i64(at + A_SIZE) - size:
            return hint
    low, high = 0, count
    while low < high:
        middle = (low + high) >> 1
        if peek_i64(table + middle * ALLOC_BYTES + A_BASE) <= address:
            low = middle + 1
        else:
            high = middle
    if low == 0:
        return -1
    at = table + (low - 1) * ALLOC_BYTES
    if address - peek_i64(at + A_BASE) <= peek_i64(at + A_SIZE) - size:
        return low - 1
    return -1


@machine_code
def mark(bitmap: int, offset: int, size: int) -> None:
    """Note an access to naturally aligned bytes in a map of one bit a byte."""
    at = bitmap + (offset >> 3)
    if size >= 8:
        for i in range(size >> 3):
            poke_u8(at + i, 0xFF)
    elif size == 4:
        poke_u8(at, peek_u8(at) | 0xF << (offset & 4))
    else:
        poke_u8(at, peek_u8(at) | ((1 << size) - 1) << (offset & 7))


@machine_code
def mark_range(bitmap: int, offset: int, size: int) -> None:
    """Note an access to `size` bytes from `offset` on."""
    first, last = bitmap + (offset >> 3), bitmap + (offset + size >> 3)
    head, tail = 0xFF << (offset & 7) & 0xFF, (1 << (offset + size & 7)) - 1
    if first == last:
        poke_u8(first, peek_u8(first) | head & tail)
        return
    poke_u8(first, peek_u8(first) | head)
    fill_bytes(first + 1, 0xFF, last - first - 1)
    if tail:
        poke_u8(last, peek_u8(last) | tail)


@machine_code
def mark_lanes(bitmap: int, base: int, addresses: int, size: int, mask: int) -> None:
    """Note the accesses of all lanes in `mask` to one allocation, whose address is `base`."""
    low, high = lanes_min(addresses, mask), lanes_max(addresses, mask)
    if low == high or (high - low == size * (popcount(mask) - 1) and lanes_step(addresses, mask, size)):
        mark_range(bitmap, low - base, high - low + size)
        return
    left = mask
    while left:
        mark(bitmap, peek_i64(addresses + 8 * first_bit(left)) - base, size)
        left &= left - 1


@machine_code
def check_alignment(address: int, size: int) -> int:
    """0, or E_MISALIGNED if the address is no multiple of the (power of two) size."""
    return E_MISALIGNED if address & (size - 1) else 0


@machine_code
def window(space: int, address: int) -> int:
    """The state space that a generic address points into."""
    if space != GENERIC:
        return space
    if SHARED_WINDOW <= address < SHARED_WINDOW + WINDOW_BYTES:
        return SHARED
    if LOCAL_WINDOW <= address < LOCAL_WINDOW + WINDOW_BYTES:
        return LOCAL
    if PARAM_WINDOW <= address < PARAM_WINDOW + WINDOW_BYTES:
        return PARAM
    return GLOBAL


@machine_code
def window_base(space: int) -> int:
    """Generic address of offset 0 of a windowed space."""
    return SHARED_WINDOW if space == SHARED else LOCAL_WINDOW if space == LOCAL else PARAM_WINDOW


@machine_code
def resolve_lane(ctx: int, space: int, address: int, lane: int, size: int, access: int, hint: int) -> int:
    """Host address of one lane's data; -E_... if the access is not allowed. access: 1 read, 2 write, 3 both.

    Leaves the state space (and for global the allocation) in scratch.
    """
    scratch = peek_i64(ctx + C_SCRATCH)
    where = window(space, address)
    poke_i64(scratch + SCRATCH_SPACE, where)
    if check_alignment(address, size):
        return -E_MISALIGNED
    if where == SHARED or where == LOCAL or where == PARAM:
        offset = address - window_base(where) if space == GENERIC else address
        if where == SHARED:
            if 0 <= offset <= peek_i64(ctx + C_SMEM_BYTES) - size:
                return peek_i64(ctx + C_SMEM) + offset
        elif where == LOCAL:
            local_bytes = peek_i64(ctx + C_LOCAL_BYTES)
            if 0 <= offset <= local_bytes - size:
                return peek_i64(ctx + C_LOCAL) + (peek_i64(ctx + C_WARP) * 32 + lane) * local_bytes + offset
        elif 0 <= offset <= peek_i64(ctx + C_PARAM_BYTES) - size:
            if access & 2:
                return -E_CONST_WRITE
            return peek_i64(ctx + C_PARAM) + offset
        return -E_OUT_OF_BOUNDS
    index = locate_global(ctx, address, size, hint)
    if index < 0:
        return -E_OUT_OF_BOUNDS
    poke_i64(scratch + SCRATCH_SPACE + 8, index)
    at = peek_i64(ctx + C_ALLOCS) + index * ALLOC_BYTES
    offset = address - peek_i64(at + A_BASE)
    flags = peek_i64(at + A_BITMAP)
    if access & 2 and flags & 1:
        return -E_CONST_WRITE
    if peek_i64(ctx + C_TRACK):
        if access & 1:
            mark(peek_i64(ctx + C_READS) + (flags >> 1), offset, size)
        if access & 2:
            mark(peek_i64(ctx + C_WRITES) + (flags >> 1), offset, size)
    return peek_i64(at + A_HOST) + offset


@machine_code
def note_error(ctx: int, kind: int, lane: int, space: int, size: int, write: int, address: int) -> None:
    """Add a lane to the error record; the first kind found is kept."""
    error = peek_i64(ctx + C_ERROR)
    if peek_i64(error + ERR_KIND) == 0:
        poke_i64(error + ERR_KIND, kind)
        poke_i64(error + ERR_SPACE, space)
        poke_i64(error + ERR_BYTES, size)
        poke_i64(error + ERR_WRITE, write)
        poke_i64(error + ERR_LANES, 0)
    if peek_i64(error + ERR_KIND) == kind:
        poke_i64(error + ERR_LANES, peek_i64(error + ERR_LANES) | 1 << lane)
        poke_i64(error + ERR_ADDRESS + 8 * lane, address)


@machine_code
def lane_addresses(registers: int, operands: int, target: int) -> None:
    """The addresses that all lanes compute."""
    row = peek_i32(operands + P_ADDRESS)
    if row >= 0 and peek_i32(operands + P_WIDE) == 0:
        lanes_add_u32(target, registers + row, peek_u32(operands + P_OFFSET_LOW))
    elif row >= 0:
        lanes_add(target, registers + row, peek_u32(operands + P_OFFSET_LOW) | peek_i32(operands + P_OFFSET_HIGH) << 32)
    else:
        offset = peek_u32(operands + P_OFFSET_LOW) | peek_i32(operands + P_OFFSET_HIGH) << 32
        for lane in range(32):
            poke_i64(target + 8 * lane, offset)


@machine_code
def common_distance(ctx: int, space: int, size: int, mask: int, access: int) -> int:
    """From the addresses in scratch to their host addresses, if one distance does for all lanes in `mask` and all accesses are allowed;
    else NOWHERE, and nothing has been marked."""
    addresses = peek_i64(ctx + C_SCRATCH)
    low, high = lanes_min(addresses, mask), lanes_max(addresses, mask)
    where = window(space, low)
    if window(space, high) != where or lanes_or(addresses, mask) & (size - 1):
        return NOWHERE
    if where == SHARED or where == PARAM:
        base = window_base(where) if space == GENERIC else 0
        if low < base or high - base > peek_i64(ctx + (C_SMEM_BYTES if where == SHARED else C_PARAM_BYTES)) - size:
            return NOWHERE
        if where == SHARED:
            return peek_i64(ctx + C_SMEM) - base
        return NOWHERE if access & 2 else peek_i64(ctx + C_PARAM) - base
    if where == LOCAL:
        base, local_bytes = window_base(LOCAL) if space == GENERIC else 0, peek_i64(ctx + C_LOCAL_BYTES)
        if low < base or high - base > local_bytes - size:
            return NOWHERE
        for lane in range(32):  # each has a stretch of its own
            poke_i64(addresses + 8 * lane, peek_i64(addresses + 8 * lane) + lane * local_bytes)
        return peek_i64(ctx + C_LOCAL) + peek_i64(ctx + C_WARP) * 32 * local_bytes - base
    index = locate_global(ctx, low, size, peek_i64(addresses + SCRATCH_SPACE + 8))
    if index < 0:
        return NOWHERE
    poke_i64(addresses + SCRATCH_SPACE + 8, index)
    at = peek_i64(ctx + C_ALLOCS) + index * ALLOC_BYTES
    base, flags = peek_i64(at + A_BASE), peek_i64(at + A_BITMAP)
    if high - base > peek_i64(at + A_SIZE) - size or (access & 2 and flags & 1):
        return NOWHERE
    if peek_i64(ctx + C_TRACK):
        if access & 1:
            mark_lanes(peek_i64(ctx + C_READS) + (flags >> 1), base, addresses, size, mask)
        if access & 2:
            mark_lanes(peek_i64(ctx + C_WRITES) + (flags >> 1), base, addresses, size, mask)
    return peek_i64(at + A_HOST) - base


@machine_code
def resolve(ctx: int, registers: int, operands: int, mask: int, access: int) -> int:
    """Find the data of every lane in `mask` (left in scratch); returns 0, or 1 with the error recorded."""
    scratch = peek_i64(ctx + C_SCRATCH)
    space = peek_i32(operands + P_SPACE)
    size = peek_i32(operands + P_BYTES) * peek_i32(operands + P_VECTOR)
    lane_addresses(registers, operands, scratch)
    distance = common_distance(ctx, space, size, mask, access)
    if distance != NOWHERE:
        lanes_add(scratch, scratch, distance)
        return 0
    failed = 0
    left = mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        address = peek_i64(scratch + 8 * lane)
        host = resolve_lane(ctx, space, address, lane, size, access, peek_i64(scratch + SCRATCH_SPACE + 8))
        if host < 0:
            note_error(ctx, -host, lane, peek_i64(scratch + SCRATCH_SPACE), size, access >> 1, address)
            failed = 1
        poke_i64(scratch + 8 * lane, host)
    return failed
