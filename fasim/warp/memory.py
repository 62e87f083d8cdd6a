"""Loads, stores and atomics of one warp: addresses of all lanes are checked before any memory changes.

Operands in the pool of a memory instruction: see `Memory` in fasim.ptx.lower_memory, which writes them.
"""

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
from fasim.numerics.native import (
    first_bit,
    machine_code,
    peek_i32,
    peek_i64,
    peek_u8,
    peek_u16,
    peek_u32,
    poke_i64,
    poke_u8,
    poke_u16,
    poke_u32,
)

# operands of a memory instruction in the pool, int32 each
P_SPACE, P_BYTES, P_VECTOR, P_SIGN, P_ADDRESS, P_WIDE, P_OFFSET_LOW, P_OFFSET_HIGH, P_WRITE, P_REGISTERS = (4 * i for i in range(10))
# scratch: where each lane's data is, then what the last resolution found
SCRATCH_SPACE = 8 * 32
SCRATCH_WORDS = 40


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
def resolve(ctx: int, registers: int, operands: int, mask: int, access: int) -> int:
    """Find the data of every lane in `mask` (left in scratch); returns 0, or 1 with the error recorded."""
    scratch = peek_i64(ctx + C_SCRATCH)
    space = peek_i32(operands + P_SPACE)
    size = peek_i32(operands + P_BYTES) * peek_i32(operands + P_VECTOR)
    failed = 0
    left = mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        address = lane_address(registers, operands, lane)
        host = resolve_lane(ctx, space, address, lane, size, access, peek_i64(scratch + SCRATCH_SPACE + 8))
        if host < 0:
            note_error(ctx, -host, lane, peek_i64(scratch + SCRATCH_SPACE), size, access >> 1, address)
            failed = 1
        poke_i64(scratch + 8 * lane, host)
    return failed


@machine_code
def load(ctx: int, registers: int, operands: int, mask: int) -> int:
    """ld, in all widths and vectors; returns 0, or 1 with the error recorded."""
    if resolve(ctx, registers, operands, mask, 1):
        return 1
    scratch = peek_i64(ctx + C_SCRATCH)
    size, count, sign = peek_i32(operands + P_BYTES), peek_i32(operands + P_VECTOR), peek_i32(operands + P_SIGN)
    for element in range(count):
        row = peek_i32(operands + P_REGISTERS + 8 * element)
        wide = peek_i32(operands + P_REGISTERS + 8 * element + 4)
        left = mask
        while left:
            lane = first_bit(left)
            left &= left - 1
            at = peek_i64(scratch + 8 * lane) + element * size
            if size == 4:
                value = peek_u32(at)
            elif size == 8:
                value = peek_i64(at)
            elif size == 2:
                value = peek_u16(at)
            else:
                value = peek_u8(at)
            if sign and size < 8:
                top = 1 << (8 * size - 1)
                value = (value ^ top) - top
            if row < 0:
                continue
            if wide == 8:
                poke_i64(registers + row + 8 * lane, value)
            elif wide == 4:
                poke_u32(registers + row + 4 * lane, value & 0xFFFFFFFF)
            else:
                poke_u32(registers + row + 4 * lane, value & 0xFFFF)
    return 0


@machine_code
def store(ctx: int, registers: int, operands: int, mask: int) -> int:
    """st, in all widths and vectors; the highest lane wins a shared address. Returns 0, or 1 with the error recorded."""
    if resolve(ctx, registers, operands, mask, 2):
        return 1
    scratch = peek_i64(ctx + C_SCRATCH)
    size, count = peek_i32(operands + P_BYTES), peek_i32(operands + P_VECTOR)
    for element in range(count):
        row = peek_i32(operands + P_REGISTERS + 8 * element)
        wide = peek_i32(operands + P_REGISTERS + 8 * element + 4)
        left = mask
        while left:
            lane = first_bit(left)
            left &= left - 1
            at = peek_i64(scratch + 8 * lane) + element * size
            value = peek_i64(registers + row + 8 * lane) if wide == 8 else peek_u32(registers + row + 4 * lane)
            if size == 4:
                poke_u32(at, value & 0xFFFFFFFF)
            elif size == 8:
                poke_i64(at, value)
            elif size == 2:
                poke_u16(at, value & 0xFFFF)
            else:
                poke_u8(at, value & 0xFF)
    return 0
