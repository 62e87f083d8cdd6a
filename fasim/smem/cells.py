"""Who accessed what in shared memory: for each granule the accesses that a later one may race with.

A granule is the least size that the kernel accesses. It has the last write, and for each warp its last read or strong access; what else is
not yet ordered before everything stands in a chain. An access is a tag and the lanes that made it. The tag's upper half is the time of
the access, so that one comparison tells whether the last barrier of the CTA came after it; copies that are still on their way are later
than any barrier.
"""

from __future__ import annotations

from fasim.isa.machine import AT_AUX, BARRIERS, C_CODE, CODE_BYTES
from fasim.numerics.native import fill_bytes, machine_code, peek_i32, peek_i64, peek_u32, poke_i64, poke_u32
from fasim.smem.check_state import (
    H_BARRIERS,
    H_CTA_BASE,
    H_EXECUTED,
    H_EXTRA,
    H_EXTRA_COUNT,
    H_FENCED,
    H_GRANULES,
    H_GROUPS,
    H_HEADS,
    H_KNOWN,
    H_LANES,
    H_NOW,
    H_OBJECT_CAPACITY,
    H_OBJECTS,
    H_SEQUENCE,
    H_SITES,
    H_TAGS,
    H_THREADS,
    H_WARP_BASE,
    H_WARP_EXECUTED,
    H_WARPS,
    H_WRITE_LANES,
    H_WRITE_TAGS,
)
from fasim.smem.clocks import OBJECT_ROW

# tag: time << 32 | site << 10 | warp << 5 | flags
WRITE, STRONG_ACCESS, PENDING, SILENT = 1, 2, 4, 8
FLAG_BITS, WARP_SHIFT, SITE_SHIFT, TIME_SHIFT = 0x1F, 5, 10, 32
IDENTITY = 0xFFFFFFFF
#: the time of a copy that nobody has waited for
NOT_YET = 0x7FFFFFFF
#: at this time a new count begins
RESTART = 1 << 30
#: sites that fit in a tag
MAX_SITES = 1 << 22
# chained accesses: tag, lanes, number of the next one (0: none), granule
EXTRA_BYTES = 32
X_TAG, X_LANES, X_NEXT, X_GRANULE = 0, 8, 16, 24


@machine_code
def group_of(block: int, site: int) -> int:
    """The number by which the search for races knows an access: the same for all that one source line makes of one kind.

    An unrolled loop reads the same word through many instructions, which would all have to be kept apart.
    """
    return peek_i64(peek_i64(block + H_GROUPS) + 8 * site)


@machine_code
def make_tag(block: int, site: int, warp: int, flags: int) -> int:
    """The tag of an access now."""
    time = NOT_YET if flags & PENDING else peek_i64(block + H_NOW)
    return time << TIME_SHIFT | site << SITE_SHIFT | warp << WARP_SHIFT | flags


@machine_code
def site_of(tag: int) -> int:
    """The site of an access."""
    return tag >> SITE_SHIFT & MAX_SITES - 1


@machine_code
def warp_of(tag: int) -> int:
    """The warp of an access."""
    return tag >> WARP_SHIFT & 31


@machine_code
def pc_of_site(block: int, site: int) -> int:
    """The instruction of a site."""
    return peek_i64(peek_i64(block + H_SITES) + 8 * site)


@machine_code
def representative(ctx: int, block: int, pc: int) -> int:
    """The instruction that stands for an access in findings: the first one of its source line and kind."""
    site = peek_i32(peek_i64(ctx + C_CODE) + pc * CODE_BYTES + AT_AUX)
    return pc_of_site(block, group_of(block, site))


@machine_code
def extra_at(block: int, number: int) -> int:
    """Address of a chained access; numbers begin with 1."""
    return peek_i64(block + H_EXTRA) + EXTRA_BYTES * number


@machine_code
def chain(block: int, granule: int, tag: int, lanes: int) -> None:
    """Put an access into the granule's chain; one of the same kind by the same lanes makes way."""
    head = peek_i64(block + H_HEADS) + 4 * granule
    number, free = peek_u32(head), 0
    while number:
        at = extra_at(block, number)
        old = peek_i64(at + X_TAG)
        if old == tag:
            poke_i64(at + X_LANES, peek_i64(at + X_LANES) | lanes)
            return
        if (old ^ tag) & IDENTITY == 0:
            poke_i64(at + X_LANES, peek_i64(at + X_LANES) & ~lanes)
        if peek_i64(at + X_LANES) == 0:
            free = at
        number = peek_i64(at + X_NEXT)
    if free == 0:
        count = peek_i64(block + H_EXTRA_COUNT) + 1
        poke_i64(block + H_EXTRA_COUNT, count)
        free = extra_at(block, count)
        poke_i64(free + X_NEXT, peek_u32(head))
        poke_i64(free + X_GRANULE, granule)
        poke_u32(head, count)
    poke_i64(free + X_TAG, tag)
    poke_i64(free + X_LANES, lanes)


@machine_code
def clear_chains(block: int) -> None:
    """After a barrier of the whole CTA chained accesses are of no interest, but for copies that are still on their way."""
    count = peek_i64(block + H_EXTRA_COUNT)
    kept = 0
    for number in range(1, count + 1):
        at = extra_at(block, number)
        poke_u32(peek_i64(block + H_HEADS) + 4 * peek_i64(at + X_GRANULE), 0)
    for number in range(1, count + 1):
        at = extra_at(block, number)
        tag, lanes, granule = peek_i64(at + X_TAG), peek_i64(at + X_LANES), peek_i64(at + X_GRANULE)
        if tag & PENDING and lanes:
            kept += 1
            to, head = extra_at(block, kept), peek_i64(block + H_HEADS) + 4 * granule
            poke_i64(to + X_TAG, tag)
            poke_i64(to + X_LANES, lanes)
            poke_i64(to + X_GRANULE, granule)
            poke_i64(to + X_NEXT, peek_u32(head))
            poke_u32(head, kept)
    poke_i64(block + H_EXTRA_COUNT, kept)


@machine_code
def record(block: int, granule: int, tag: int, lanes: int) -> None:
    """Keep an access for those to come."""
    if tag & WRITE and not tag & STRONG_ACCESS:
        tags, owners = peek_i64(block + H_WRITE_TAGS) + 8 * granule, peek_i64(block + H_WRITE_LANES) + 4 * granule
    else:
        cell = granule + peek_i64(block + H_GRANULES) * warp_of(tag)
        tags, owners = peek_i64(block + H_TAGS) + 8 * cell, peek_i64(block + H_LANES) + 4 * cell
    old = peek_i64(tags)
    if old == tag:
        poke_u32(owners, peek_u32(owners) | lanes)
        return
    if old >> TIME_SHIFT >= peek_i64(block + H_CTA_BASE):
        rest = peek_u32(owners)
        if (old ^ tag) & IDENTITY == 0:
            rest &= ~lanes
        if rest:
            chain(block, granule, old, rest)
    poke_i64(tags, tag)
    poke_u32(owners, lanes)


@machine_code
def arrive_copy(block: int, granule: int, tag: int, lanes: int) -> None:
    """The thread that started a copy has waited for it: from now on it is a write of that thread. tag: of the copy on its way."""
    poke_i64(block + H_SEQUENCE, peek_i64(block + H_SEQUENCE) + 1)
    tags, owners = peek_i64(block + H_WRITE_TAGS) + 8 * granule, peek_i64(block + H_WRITE_LANES) + 4 * granule
    if peek_i64(tags) == tag:
        rest = peek_u32(owners) & ~lanes
        poke_u32(owners, rest)
        if rest == 0:
            poke_i64(tags, 0)
    else:
        number = peek_u32(peek_i64(block + H_HEADS) + 4 * granule)
        while number:
            at = extra_at(block, number)
            if peek_i64(at + X_TAG) == tag:
                poke_i64(at + X_LANES, peek_i64(at + X_LANES) & ~lanes)
            number = peek_i64(at + X_NEXT)
    record(block, granule, peek_i64(block + H_NOW) << TIME_SHIFT | tag & IDENTITY & ~PENDING, lanes)


@machine_code
def restart_clock(block: int) -> None:
    """Begin to count anew, long before times no longer fit in a tag; only when everything so far is ordered before everything to come."""
    if peek_i64(block + H_NOW) < RESTART:
        return
    granules, warps, threads = peek_i64(block + H_GRANULES), peek_i64(block + H_WARPS), peek_i64(block + H_THREADS)
    fill_bytes(peek_i64(block + H_TAGS), 0, 8 * granules * warps)
    for granule in range(granules):
        at = peek_i64(block + H_WRITE_TAGS) + 8 * granule
        if not peek_i64(at) & PENDING:
            poke_i64(at, 0)
    fill_bytes(peek_i64(block + H_KNOWN), 0, 4 * threads * threads)
    fill_bytes(peek_i64(block + H_EXECUTED), 0, 4 * 32 * threads)
    fill_bytes(peek_i64(block + H_WARP_BASE), 0, 8 * warps)
    fill_bytes(peek_i64(block + H_WARP_EXECUTED), 0, 8 * warps)
    fill_bytes(peek_i64(block + H_FENCED), 0, 8 * threads)
    fill_bytes(peek_i64(block + H_BARRIERS), 0, 4 * BARRIERS * threads)
    fill_bytes(peek_i64(block + H_OBJECTS), 0, (peek_i64(block + H_OBJECT_CAPACITY) + 1) * (OBJECT_ROW + 4 * threads))
    poke_i64(block + H_NOW, 1)
