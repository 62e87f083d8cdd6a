"""What looks at an access to memory beside carrying it out: the count of wavefronts, and the search for races."""

from __future__ import annotations

from fasim.isa.machine import (
    C_HAZARDS,
    C_SCRATCH,
    C_SITES,
    C_SMEM,
    C_SMEM_BYTES,
    C_WARP,
    GENERIC,
    SHARED,
)
from fasim.isa.operands import ACQUIRE, P_BYTES, P_ORDER, P_REGISTERS, P_SPACE, P_VECTOR, R_BYTES, R_ROW, R_STRIDE, RELEASE
from fasim.numerics.native import (
    copy_bytes,
    first_bit,
    lanes_equal,
    lanes_max,
    lanes_min,
    lanes_step,
    machine_code,
    peek_i32,
    peek_i64,
    peek_u8,
    poke_u8,
    popcount,
)
from fasim.smem.accounts import account
from fasim.smem.cells import FLAG_BITS, PENDING, SILENT, STRONG_ACCESS, WRITE, group_of, make_tag, pc_of_site
from fasim.smem.check_state import F_WAW, H_FENCES, H_OLD, H_SHIFT, H_STRONG, H_UNDEFINED_SMEM, R_SAME_WARP, log, note
from fasim.smem.clocks import acquire, release
from fasim.smem.races import access, access_row, note_execution, read_lanes

#: beside the flags of a tag: an atomic reads and writes; a row of a matrix belongs to the lanes that hold its elements, with .trans
#: to others
RMW, MATRIX, TRANSPOSED = 1 << 8, 1 << 9, 1 << 10
#: what was at a lane's address before a store: up to 32 bytes, then whether any of them was undefined
OLD_BYTES, OLD_UNDEFINED = 40, 32


@machine_code
def lanes_between(hosts: int, mask: int, low: int, size: int) -> int:
    """The lanes whose host address lies in a buffer."""
    least, most = lanes_min(hosts, mask), lanes_max(hosts, mask)
    if least >= low and most < low + size:
        return mask
    if most < low or least >= low + size:
        return 0
    found, left = 0, mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        if low <= peek_i64(hosts + 8 * lane) < low + size:
            found |= 1 << lane
    return found


@machine_code
def shared_lanes(ctx: int, space: int, mask: int) -> int:
    """The lanes in `mask` that access shared memory; their host addresses stand in scratch."""
    if space == SHARED or space != GENERIC:
        return mask if space == SHARED else 0
    return lanes_between(peek_i64(ctx + C_SCRATCH), mask, peek_i64(ctx + C_SMEM), peek_i64(ctx + C_SMEM_BYTES))


@machine_code
def note_access(ctx: int, block: int, site: int, mask: int, size: int, flags: int) -> None:
    """Look for races of the lanes in `mask`, which access `size` bytes of shared memory each; host addresses stand in scratch."""
    hosts, smem, shift = peek_i64(ctx + C_SCRATCH), peek_i64(ctx + C_SMEM), peek_i64(block + H_SHIFT)
    group = group_of(block, site)
    tag = make_tag(block, group, peek_i64(ctx + C_WARP), flags & FLAG_BITS)
    note_execution(block, group, peek_i64(ctx + C_WARP))
    if flags & MATRIX:
        while mask:
            lane = first_bit(mask)
            mask &= mask - 1
            offset = peek_i64(hosts + 8 * lane) - smem
            for granule in range(offset >> shift, (offset + size) >> shift):
                access(ctx, block, granule, tag, holders(lane, flags & TRANSPOSED))
        return
    neighbours, left = lanes_step(hosts, mask, size), mask
    distinct = neighbours or steady(hosts, mask, size)
    if neighbours and size == 1 << shift and not flags & (STRONG_ACCESS | PENDING) and peek_i64(block + H_STRONG) == 0:
        lane = first_bit(mask)
        if access_row(block, ((peek_i64(hosts + 8 * lane) - smem) >> shift) - lane, tag, mask):
            return
    if not flags and peek_i64(block + H_STRONG) == 0:
        read_lanes(ctx, block, hosts, mask, size, tag, distinct)
        return
    while left:
        lane = first_bit(left)
        host = peek_i64(hosts + 8 * lane)
        lanes = 1 << lane if distinct else lanes_equal(hosts, host) & left
        left &= ~lanes
        for granule in range((host - smem) >> shift, (host - smem + size) >> shift):
            access(ctx, block, granule, tag, lanes)


@machine_code
def holders(row: int, transposed: int) -> int:
    """The lanes that hold elements of a row of an 8x8 matrix."""
    return 0x11111111 << (row >> 1 & 3) if transposed else 0xF << 4 * (row & 7)


@machine_code
def steady(hosts: int, mask: int, size: int) -> bool:
    """Whether lanes have addresses of their own, since neighbours are equally far from each other."""
    rest = mask & (mask - 1)
    if rest == 0:
        return True
    first, second = first_bit(mask), first_bit(rest)
    step = peek_i64(hosts + 8 * second) - peek_i64(hosts + 8 * first)
    return second == first + 1 and (step >= size or step <= -size) and lanes_step(hosts, mask, step)


@machine_code
def synchronise(ctx: int, block: int, order: int, mask: int, flags: int) -> None:
    """Strong accesses, wherever their memory is, make lanes learn from each other if there are fences."""
    if peek_i64(block + H_FENCES) == 0 and order & (ACQUIRE | RELEASE) == 0:
        return
    hosts, warp, left = peek_i64(ctx + C_SCRATCH), peek_i64(ctx + C_WARP), mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        if flags & WRITE == 0 or flags & RMW:
            acquire(block, warp, lane, peek_i64(hosts + 8 * lane))
        if flags & WRITE:
            release(block, warp, lane, peek_i64(hosts + 8 * lane), order & RELEASE != 0)


@machine_code
def observe(ctx: int, site: int, operands: int, mask: int, flags: int, size: int) -> None:
    """Count an access, and unless it is a plain store look for its races; flags: WRITE, STRONG_ACCESS. Called before data moves."""
    lanes = shared_lanes(ctx, peek_i32(operands + P_SPACE), mask)
    if lanes and peek_i64(ctx + C_SITES):
        account(ctx, site, lanes, 0, 0)
    block = peek_i64(ctx + C_HAZARDS)
    if block == 0:
        return
    order = peek_i32(operands + P_ORDER)
    if order:
        flags |= STRONG_ACCESS
        synchronise(ctx, block, order, mask, flags)
    if lanes == 0:
        return
    if flags & WRITE and not flags & RMW:
        keep_old(ctx, block, lanes, size)
    else:
        note_access(ctx, block, site, lanes, size, flags)


@machine_code
def keep_old(ctx: int, block: int, mask: int, size: int) -> None:
    """Remember what is at the lanes' addresses."""
    hosts, old, left = peek_i64(ctx + C_SCRATCH), peek_i64(block + H_OLD), mask
    shadow = peek_i64(block + H_UNDEFINED_SMEM)
    while left:
        lane = first_bit(left)
        left &= left - 1
        host, undefined = peek_i64(hosts + 8 * lane), 0
        copy_bytes(old + OLD_BYTES * lane, host, size)
        for i in range(size):
            undefined |= peek_u8(host + shadow + i)
        poke_u8(old + OLD_BYTES * lane + OLD_UNDEFINED, undefined)


@machine_code
def same_bytes(a: int, b: int, count: int) -> bool:
    """memcmp, for a few bytes."""
    differ = 0
    for i in range(count):
        differ |= peek_u8(a + i) ^ peek_u8(b + i)
    return differ == 0


@machine_code
def observe_stored(ctx: int, site: int, registers: int, operands: int, mask: int, shape: int) -> None:
    """The races of a store that has been carried out; the host addresses of its first elements stand in scratch.

    shape: 0, or MATRIX and TRANSPOSED. A store that leaves every byte as it was changes nothing for anybody. Lanes that store different
    values to one address race with each other.
    """
    block = peek_i64(ctx + C_HAZARDS)
    if block == 0:
        return
    lanes = shared_lanes(ctx, peek_i32(operands + P_SPACE), mask)
    if lanes == 0:
        return
    size, count = peek_i32(operands + P_BYTES), peek_i32(operands + P_VECTOR)
    hosts, old = peek_i64(ctx + C_SCRATCH), peek_i64(block + H_OLD)
    flags = WRITE | STRONG_ACCESS | shape if peek_i32(operands + P_ORDER) else WRITE | shape
    silent, left = 0, lanes
    while left:
        lane = first_bit(left)
        left &= left - 1
        before = old + OLD_BYTES * lane
        if peek_u8(before + OLD_UNDEFINED) == 0 and same_bytes(before, peek_i64(hosts + 8 * lane), size * count):
            silent |= 1 << lane
    if not lanes_step(hosts, lanes, size * count) and not flags & STRONG_ACCESS:
        left = lanes
        while left:
            lane = first_bit(left)
            group = lanes_equal(hosts, peek_i64(hosts + 8 * lane)) & left
            left &= ~group
            if group & (group - 1):
                contend(ctx, block, site, registers, operands, group)
    if silent:
        note_access(ctx, block, site, silent, size * count, flags | SILENT)
    if lanes & ~silent:
        note_access(ctx, block, site, lanes & ~silent, size * count, flags)


@machine_code
def contend(ctx: int, block: int, site: int, registers: int, operands: int, lanes: int) -> None:
    """Several lanes stored to one address: report it if their values differ."""
    size, first, differ = peek_i32(operands + P_BYTES), first_bit(lanes), 0
    if registers == 0:  # of matrices: whose values are not compared
        differ = lanes & (lanes - 1)
    for element in range(peek_i32(operands + P_VECTOR) if registers else 0):
        register = operands + P_REGISTERS + R_STRIDE * element
        row, held = registers + peek_i32(register + R_ROW), 8 if peek_i32(register + R_BYTES) == 8 else 4
        left = lanes & ~differ
        while left:
            lane = first_bit(left)
            left &= left - 1
            if not same_bytes(row + held * first, row + held * lane, size):
                differ |= 1 << lane
    if differ:
        offset = peek_i64(peek_i64(ctx + C_SCRATCH) + 8 * first) - peek_i64(ctx + C_SMEM)
        pc, warp = pc_of_site(block, group_of(block, site)), peek_i64(ctx + C_WARP)
        at = log(ctx, block, F_WAW, pc, pc, offset & -4, R_SAME_WARP)
        note(at, warp, lanes & ~differ, warp, differ, 0, popcount(lanes))
