"""cp.async groups: copies stay pending until their group is waited for; until then shared memory holds the old bytes.

The queue of a warp is a header and entries, one an instruction: which lanes copy, each lane's group, where to, and the bytes, read
from global memory when the copy was issued. Groups are counted per thread, as PTX has it.
"""

from __future__ import annotations

from fasim.isa.machine import C_HAZARDS, C_SMEM
from fasim.numerics.native import copy_bytes, first_bit, machine_code, peek_i64, poke_i64, poke_u32
from fasim.smem.cells import NOT_YET, PENDING, SITE_SHIFT, TIME_SHIFT, WARP_SHIFT, WRITE, arrive_copy, pc_of_site
from fasim.smem.check_state import F_COPY_NOT_WAITED, H_ORIGIN_SMEM, H_SHIFT, H_UNDEFINED_SMEM, log, log_full, note

# header: number of entries, then for each lane how many groups it has committed, and of its last wait the groups that were committed
# then and the pc
H_COUNT, H_COMMITTED, H_WAIT_COMMITTED, H_WAIT_PC = 0, *(8 + 8 * 32 * i for i in range(3))
HEADER_BYTES = 8 + 3 * 8 * 32
# entry: lanes still pending, bytes a lane, the access as the search for races knows it, the time of issue (fasim.smem.clocks), the lanes
# that ended without waiting, those that have waited since, then per lane: group, destination (host address), 16 bytes of data and which
# bits of them are undefined
E_MASK, E_SIZE, E_ACCESS, E_TIME, E_ABANDONED, E_WAITED = (8 * i for i in range(6))
E_GROUP, E_TARGET, E_DATA, E_UNDEFINED = (48 + 8 * 32 * i for i in (0, 1, 2, 4))
ENTRY_BYTES = E_UNDEFINED + 16 * 32
# what is wrong with a copy that is read too early
NEVER_COMMITTED, COMMITTED_LATE, NO_WAIT, WAIT_TOO_SHORT = range(1, 5)


@machine_code
def queue_bytes(capacity: int) -> int:
    """Bytes of one warp's queue."""
    return HEADER_BYTES + capacity * ENTRY_BYTES


@machine_code
def push(queue: int, mask: int, size: int, site: int, time: int) -> int:
    """A new entry for the lanes in `mask`, in the group that each of them fills now; returns its address."""
    count = peek_i64(queue + H_COUNT)
    entry = queue + HEADER_BYTES + count * ENTRY_BYTES
    poke_i64(queue + H_COUNT, count + 1)
    poke_i64(entry + E_MASK, mask)
    poke_i64(entry + E_SIZE, size)
    poke_i64(entry + E_ACCESS, site)
    poke_i64(entry + E_TIME, time)
    poke_i64(entry + E_ABANDONED, 0)
    poke_i64(entry + E_WAITED, 0)
    copy_bytes(entry + E_GROUP, queue + H_COMMITTED, 8 * 32)
    return entry


@machine_code
def commit(queue: int, mask: int) -> None:
    """cp.async.commit_group: the lanes' copies so far form a group."""
    left = mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        poke_i64(queue + H_COMMITTED + 8 * lane, peek_i64(queue + H_COMMITTED + 8 * lane) + 1)


@machine_code
def note_wait(queue: int, mask: int, pc: int) -> None:
    """Remember a wait, for whoever asks later why a copy was not there."""
    for i in range(peek_i64(queue + H_COUNT)):
        entry = queue + HEADER_BYTES + i * ENTRY_BYTES
        poke_i64(entry + E_WAITED, peek_i64(entry + E_WAITED) | mask)
    left = mask
    while left:
        lane = 8 * first_bit(left)
        left &= left - 1
        poke_i64(queue + H_WAIT_COMMITTED + lane, peek_i64(queue + H_COMMITTED + lane))
        poke_i64(queue + H_WAIT_PC + lane, pc)


@machine_code
def complete(ctx: int, warp: int, queue: int, mask: int, pending: int) -> None:
    """Carry out, oldest first, the copies of all but the `pending` latest groups of each lane; -1: uncommitted ones too."""
    count, kept = peek_i64(queue + H_COUNT), 0
    for i in range(count):
        entry = queue + HEADER_BYTES + i * ENTRY_BYTES
        waiting = peek_i64(entry + E_MASK)
        left = waiting & mask
        size = peek_i64(entry + E_SIZE)
        while left:
            lane = first_bit(left)
            left &= left - 1
            done = peek_i64(queue + H_COMMITTED + 8 * lane) - pending
            if pending < 0 or peek_i64(entry + E_GROUP + 8 * lane) < done:
                target, data = peek_i64(entry + E_TARGET + 8 * lane), entry + E_DATA + 16 * lane
                if size == 16:  # a constant size needs no call
                    copy_bytes(target, data, 16)
                else:
                    copy_bytes(target, data, size)
                waiting &= ~(1 << lane)
                if peek_i64(ctx + C_HAZARDS):
                    arrive(ctx, warp, entry, lane, target, size)
        poke_i64(entry + E_MASK, waiting)
        if waiting:
            if kept != i:
                copy_bytes(queue + HEADER_BYTES + kept * ENTRY_BYTES, entry, ENTRY_BYTES)
            kept += 1
    poke_i64(queue + H_COUNT, kept)


@machine_code
def arrive(ctx: int, warp: int, entry: int, lane: int, target: int, size: int) -> None:
    """For the checks: one lane's copy is carried out."""
    block, site = peek_i64(ctx + C_HAZARDS), peek_i64(entry + E_ACCESS)
    offset, shift = target - peek_i64(ctx + C_SMEM), peek_i64(block + H_SHIFT)
    tag = NOT_YET << TIME_SHIFT | site << SITE_SHIFT | warp << WARP_SHIFT | WRITE | PENDING
    for granule in range(offset >> shift, (offset + size) >> shift):
        arrive_copy(block, granule, tag, 1 << lane)
    undefined, shadow = entry + E_UNDEFINED + 16 * lane, target + peek_i64(block + H_UNDEFINED_SMEM)
    copy_bytes(shadow, undefined, size)
    if peek_i64(undefined) | peek_i64(undefined + 8):
        for word in range(0, size, 4):
            poke_u32(target + word + peek_i64(block + H_ORIGIN_SMEM), pc_of_site(block, site) + 1)


@machine_code
def pending_granules(block: int, queue: int) -> int:
    """At most how many granules of shared memory the copies of a warp are on their way to."""
    return peek_i64(queue + H_COUNT) * (32 * 16 >> peek_i64(block + H_SHIFT))


@machine_code
def abandon(ctx: int, warp: int, queue: int, mask: int) -> bool:
    """Lanes end: report the copies that they have not waited for. False: the log has to grow, then the rest."""
    block = peek_i64(ctx + C_HAZARDS)
    for i in range(peek_i64(queue + H_COUNT)):
        entry = queue + HEADER_BYTES + i * ENTRY_BYTES
        left = peek_i64(entry + E_MASK) & mask & ~peek_i64(entry + E_ABANDONED)
        while left:
            lane = first_bit(left)
            left &= left - 1
            if log_full(block):
                return False
            poke_i64(entry + E_ABANDONED, peek_i64(entry + E_ABANDONED) | 1 << lane)
            offset = peek_i64(entry + E_TARGET + 8 * lane) - peek_i64(ctx + C_SMEM)
            for word in range(offset, offset + peek_i64(entry + E_SIZE), 4):
                at = log(ctx, block, F_COPY_NOT_WAITED, pc_of_site(block, peek_i64(entry + E_ACCESS)), 0, word & -4, 0)
                note(at, warp, 1 << lane, 0, 0, 0, 1)
    return True


@machine_code
def find_pending(ctx: int, queue: int, lane: int, offset: int, size: int) -> int:
    """A lane's copy on its way to some bytes of shared memory: its entry, 0 if there is none."""
    target = peek_i64(ctx + C_SMEM) + offset
    for i in range(peek_i64(queue + H_COUNT)):
        entry = queue + HEADER_BYTES + i * ENTRY_BYTES
        at = peek_i64(entry + E_TARGET + 8 * lane)
        if peek_i64(entry + E_MASK) >> lane & 1 and at < target + size and target < at + peek_i64(entry + E_SIZE):
            return entry
    return 0


@machine_code
def why_pending(queue: int, entry: int, lane: int) -> int:
    """Why a lane's copy has not come: a reason, the groups to let pending instead << 8, the pc of the last wait << 16."""
    group = peek_i64(entry + E_GROUP + 8 * lane)
    committed, then = peek_i64(queue + H_COMMITTED + 8 * lane), peek_i64(queue + H_WAIT_COMMITTED + 8 * lane)
    pc = peek_i64(queue + H_WAIT_PC + 8 * lane) << 16
    if group >= committed:
        return NEVER_COMMITTED | pc
    if not peek_i64(entry + E_WAITED) >> lane & 1:
        return NO_WAIT | min(committed - 1 - group, 255) << 8
    if group >= then:
        return COMMITTED_LATE | pc
    return WAIT_TOO_SHORT | min(then - 1 - group, 255) << 8 | pc
