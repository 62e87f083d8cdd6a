"""cp.async groups: copies stay pending until their group is waited for; until then shared memory holds the old bytes.

The queue of a warp is a header and entries, one an instruction: which lanes copy, each lane's group, where to, and the bytes, read
from global memory when the copy was issued. Groups are counted per thread, as PTX has it.
"""

from __future__ import annotations

from fasim.numerics.native import copy_bytes, first_bit, machine_code, peek_i64, poke_i64

# header: number of entries, then how many groups each lane has committed
H_COUNT, H_COMMITTED = 0, 8
HEADER_BYTES = 8 + 8 * 32
# entry: lanes still pending, bytes a lane, then per lane: group, destination (host address), 16 bytes of data
E_MASK, E_SIZE, E_GROUP, E_TARGET, E_DATA = 0, 8, 16, 16 + 8 * 32, 16 + 16 * 32
ENTRY_BYTES = 16 + 16 * 32 + 16 * 32


@machine_code
def queue_bytes(capacity: int) -> int:
    """Bytes of one warp's queue."""
    return HEADER_BYTES + capacity * ENTRY_BYTES


@machine_code
def push(queue: int, mask: int, size: int) -> int:
    """A new entry for the lanes in `mask`, in the group that each of them fills now; returns its address."""
    count = peek_i64(queue + H_COUNT)
    entry = queue + HEADER_BYTES + count * ENTRY_BYTES
    poke_i64(queue + H_COUNT, count + 1)
    poke_i64(entry + E_MASK, mask)
    poke_i64(entry + E_SIZE, size)
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
def complete(queue: int, mask: int, pending: int) -> None:
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
        poke_i64(entry + E_MASK, waiting)
        if waiting:
            if kept != i:
                copy_bytes(queue + HEADER_BYTES + kept * ENTRY_BYTES, entry, ENTRY_BYTES)
            kept += 1
    poke_i64(queue + H_COUNT, kept)
