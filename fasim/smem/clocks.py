"""What happens before what in a CTA: who has synchronised with whom, whatever order the warps happened to run in.

One clock ticks at every synchronisation. An access is stamped with its time, and it is ordered before what a thread u does now if u
knows of a synchronisation with the accessing thread after that time. Most know it from the last barrier of the whole CTA (one number) or
the last __syncwarp of the whole warp (one number a warp); what threads know beyond that, from partial barriers, partial __syncwarps
and from flags behind fences, stands in a matrix: H_KNOWN[u][t] is the time before which everything that t did is ordered before u.

Source: "FastTrack: efficient and precise dynamic race detection", Flanagan and Freund, PLDI 2009, for clocks that need no vectors most
of the time.
"""

from __future__ import annotations

from fasim.numerics.native import copy_bytes, fill_bytes, first_bit, lanes_raise, machine_code, peek_i64, peek_u32, poke_i64, poke_u32
from fasim.smem.check_state import (
    H_BARRIERS,
    H_CTA_BASE,
    H_EXECUTED,
    H_EXECUTIONS_BASE,
    H_FAR,
    H_FENCED,
    H_FENCES,
    H_KNOWN,
    H_LAST_TICK,
    H_NOW,
    H_OBJECT_CAPACITY,
    H_OBJECT_COUNT,
    H_OBJECTS,
    H_PARTIAL,
    H_ROW,
    H_SEQUENCE,
    H_THREADS,
    H_WARP_BASE,
    H_WARP_EXECUTED,
)

#: a flag in memory by which threads synchronise: its address, the last barrier of the CTA, then what its readers learn, 4 bytes a thread;
#: the records are a hash table, behind which one more stands for all flags that it has no room for
OBJECT_BASE, OBJECT_ROW = 8, 16


@machine_code
def tick(block: int) -> int:
    """A synchronisation: accesses from now on are later. Nothing has happened in between two without any access."""
    now = peek_i64(block + H_NOW)
    if peek_i64(block + H_SEQUENCE) != peek_i64(block + H_LAST_TICK):
        now += 1
        poke_i64(block + H_NOW, now)
        poke_i64(block + H_LAST_TICK, peek_i64(block + H_SEQUENCE))
    return now


@machine_code
def known_row(block: int, thread: int) -> int:
    """Address of what a thread knows of the others."""
    return peek_i64(block + H_KNOWN) + 4 * thread * peek_i64(block + H_THREADS)


@machine_code
def whole_cta(block: int) -> None:
    """A barrier of all threads, or the start of a CTA: everything so far is ordered before everything to come."""
    poke_i64(block + H_CTA_BASE, tick(block))
    poke_i64(block + H_PARTIAL, 0)
    poke_i64(block + H_FAR, 0)
    poke_i64(block + H_OBJECT_COUNT, 0)
    poke_i64(block + H_EXECUTIONS_BASE, peek_i64(block + H_SEQUENCE))


@machine_code
def join(target: int, source: int, count: int) -> None:
    """Learn what stands in another row, of whole warps."""
    for at in range(0, 4 * count, 128):
        lanes_raise(target + at, source + at)


@machine_code
def raise_to(row: int, lanes: int, time: int) -> None:
    """Everything that some lanes of a warp did before `time` is known; row: the 32 entries of that warp."""
    while lanes:
        at = row + 4 * first_bit(lanes)
        lanes &= lanes - 1
        if peek_u32(at) < time:
            poke_u32(at, time)


@machine_code
def not_before(row: int, lanes: int, time: int) -> int:
    """Those of some lanes of a warp whose doings at `time` are not known; row: the 32 entries of that warp."""
    left = lanes
    while left:
        lane = first_bit(left)
        left &= left - 1
        if peek_u32(row + 4 * lane) > time:
            lanes &= ~(1 << lane)
    return lanes


@machine_code
def learn(block: int, row: int, warp: int, lane: int) -> None:
    """Add what a thread knows to a row of all threads; not its own time."""
    threads = peek_i64(block + H_THREADS)
    join(row, known_row(block, 32 * warp + lane), threads)
    raise_to(row + 128 * warp, 0xFFFFFFFF, peek_i64(peek_i64(block + H_WARP_BASE) + 8 * warp))


@machine_code
def sync_warp(block: int, warp: int, lanes: int, whole: bool) -> None:
    """bar.warp.sync of some lanes; whole: they are all that the warp has."""
    now, threads, far = tick(block), peek_i64(block + H_THREADS), peek_i64(block + H_FAR)
    if whole:
        poke_i64(peek_i64(block + H_WARP_BASE) + 8 * warp, now)
        if far == 0:
            return
    else:
        poke_i64(block + H_PARTIAL, 1)
    first, count = (0, threads) if far else (32 * warp, 32)
    row = peek_i64(block + H_ROW)
    fill_bytes(row, 0, 4 * threads)
    left = lanes
    while left:
        lane = first_bit(left)
        left &= left - 1
        join(row + 4 * first, known_row(block, 32 * warp + lane) + 4 * first, count)
    raise_to(row + 128 * warp, lanes, now)
    left = lanes
    while left:
        lane = first_bit(left)
        left &= left - 1
        copy_bytes(known_row(block, 32 * warp + lane) + 4 * first, row + 4 * first, 4 * count)


@machine_code
def executed_row(block: int, thread: int) -> int:
    """Address of the times before which other lanes of the warp have executed their reads, for what a thread does now."""
    return peek_i64(block + H_EXECUTED) + 128 * thread


@machine_code
def execute_together(block: int, warp: int, lanes: int, whole: bool) -> None:
    """Lanes execute a collective; whole: all that the warp has.

    It orders no memory; but a read that a lane made before it is done when another lane goes on.
    """
    now, left = tick(block), lanes
    if whole:
        poke_i64(peek_i64(block + H_WARP_EXECUTED) + 8 * warp, now)
        return
    while left:
        raise_to(executed_row(block, 32 * warp + first_bit(left)), lanes, now)
        left &= left - 1


@machine_code
def still_reading(block: int, time: int, warp: int, lanes: int, own_lane: int) -> int:
    """Which of some lanes of a warp that read at `time` may not have done so when another lane of it writes now."""
    if time < peek_i64(peek_i64(block + H_WARP_EXECUTED) + 8 * warp):
        return 0
    return not_before(executed_row(block, 32 * warp + own_lane), lanes, time)


@machine_code
def barrier_row(block: int, number: int) -> int:
    """Address of what those know who have come to a barrier that is not for the whole CTA."""
    return peek_i64(block + H_BARRIERS) + 4 * number * peek_i64(block + H_THREADS)


@machine_code
def reach_barrier(block: int, number: int, warp: int, lanes: int) -> None:
    """Some lanes come to a barrier: whoever leaves it knows what they did."""
    row, now = barrier_row(block, number), tick(block)
    raise_to(row + 128 * warp, lanes, now)
    while lanes:
        learn(block, row, warp, first_bit(lanes))
        lanes &= lanes - 1


@machine_code
def leave_partial_barrier(block: int, number: int, warp: int, lanes: int) -> None:
    """Some lanes leave a barrier that was not for the whole CTA."""
    poke_i64(block + H_PARTIAL, 1)
    poke_i64(block + H_FAR, 1)
    row, threads = barrier_row(block, number), peek_i64(block + H_THREADS)
    while lanes:
        join(known_row(block, 32 * warp + first_bit(lanes)), row, threads)
        lanes &= lanes - 1


@machine_code
def clear_barrier(block: int, number: int) -> None:
    """A barrier has opened: its next phase knows nothing."""
    fill_bytes(barrier_row(block, number), 0, 4 * peek_i64(block + H_THREADS))


@machine_code
def fence(block: int, warp: int, lanes: int) -> None:
    """Strong writes of these lanes from now on tell their readers what was done so far."""
    now = tick(block)
    poke_i64(block + H_FENCES, 1)
    while lanes:
        poke_i64(peek_i64(block + H_FENCED) + 8 * (32 * warp + first_bit(lanes)), now)
        lanes &= lanes - 1


@machine_code
def find_object(block: int, address: int, make: bool) -> int:
    """Address of the record of a flag in memory, of a new one if `make`; else 0 if nobody has released anything there."""
    size, capacity = OBJECT_ROW + 4 * peek_i64(block + H_THREADS), peek_i64(block + H_OBJECT_CAPACITY)
    base, slot = peek_i64(block + H_CTA_BASE), (address >> 2) % capacity
    count = peek_i64(block + H_OBJECT_COUNT)
    crowded = 4 * count >= 3 * capacity
    while True:
        at = peek_i64(block + H_OBJECTS) + size * slot
        if peek_i64(at + OBJECT_BASE) != base:  # free, since what came before the last barrier of the CTA is of no interest
            if crowded:  # all further flags are taken for one: too much is known then, never too little
                return peek_i64(block + H_OBJECTS) + size * capacity
            if not make:
                return 0
            fill_bytes(at + OBJECT_ROW, 0, size - OBJECT_ROW)
            poke_i64(at, address)
            poke_i64(at + OBJECT_BASE, base)
            poke_i64(block + H_OBJECT_COUNT, count + 1)
            if 4 * (count + 1) >= 3 * capacity:
                fill_bytes(peek_i64(block + H_OBJECTS) + size * capacity, 0, size)
            return at
        if peek_i64(at) == address:
            return at
        slot = slot + 1 if slot + 1 < capacity else 0


@machine_code
def release(block: int, warp: int, lane: int, address: int, at_once: bool) -> None:
    """A strong write: whoever reads it knows what the thread did before its last fence, or until now if the write itself releases."""
    since = tick(block) if at_once else peek_i64(peek_i64(block + H_FENCED) + 8 * (32 * warp + lane))
    if since <= peek_i64(block + H_CTA_BASE):
        return
    row = find_object(block, address, True) + OBJECT_ROW
    learn(block, row, warp, lane)
    raise_to(row + 128 * warp, 1 << lane, since)


@machine_code
def acquire(block: int, warp: int, lane: int, address: int) -> None:
    """A strong read: the thread knows what was released there."""
    if peek_i64(block + H_OBJECT_COUNT) == 0:
        return
    found = find_object(block, address, False)
    if found:
        poke_i64(block + H_PARTIAL, 1)
        poke_i64(block + H_FAR, 1)
        join(known_row(block, 32 * warp + lane), found + OBJECT_ROW, peek_i64(block + H_THREADS))


@machine_code
def unordered(block: int, time: int, warp: int, lanes: int, own_warp: int, own_lane: int) -> int:
    """Which lanes of a warp that accessed something at `time` are not ordered before what a thread does now."""
    if time < peek_i64(block + H_CTA_BASE):
        return 0
    if warp == own_warp:
        if time < peek_i64(peek_i64(block + H_WARP_BASE) + 8 * warp):
            return 0
        lanes &= ~(1 << own_lane)
    if peek_i64(block + H_PARTIAL) == 0:
        return lanes
    return not_before(known_row(block, 32 * own_warp + own_lane) + 128 * warp, lanes, time)
