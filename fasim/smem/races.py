"""Races: two accesses to the same word, one of them a write, which nothing orders."""

from __future__ import annotations

from fasim.isa.machine import C_QUEUE, C_QUEUE_CAPACITY, C_SMEM, SHARED
from fasim.numerics.native import (
    first_bit,
    lanes_equal,
    lanes_max,
    lanes_nonzero_u32,
    lanes_note,
    machine_code,
    peek_i64,
    peek_u32,
    poke_i64,
    poke_u32,
    popcount,
)
from fasim.smem.cells import (
    PENDING,
    SILENT,
    STRONG_ACCESS,
    TIME_SHIFT,
    WRITE,
    X_LANES,
    X_NEXT,
    X_TAG,
    extra_at,
    pc_of_site,
    record,
    site_of,
    warp_of,
)
from fasim.smem.check_state import (
    F_RAW,
    F_WAR,
    F_WAW,
    H_CTA_BASE,
    H_EXECUTIONS,
    H_EXECUTIONS_BASE,
    H_GRANULES,
    H_HEADS,
    H_LANES,
    H_SEQUENCE,
    H_SHIFT,
    H_STRONG,
    H_TAGS,
    H_WARPS,
    H_WRITE_LANES,
    H_WRITE_TAGS,
    R_ASYNC,
    R_BENIGN,
    R_SAME_WARP,
    log,
    note,
    note_raced,
)
from fasim.smem.clocks import still_reading, unordered
from fasim.smem.cp_async import E_TIME, find_pending, queue_bytes, why_pending


@machine_code
def last_execution(block: int, site: int, warp: int) -> int:
    """Address of when a warp last executed a site."""
    return peek_i64(block + H_EXECUTIONS) + 8 * (site * peek_i64(block + H_WARPS) + warp)


@machine_code
def note_execution(block: int, site: int, warp: int) -> None:
    """A warp executes an access."""
    now = peek_i64(block + H_SEQUENCE) + 1
    poke_i64(block + H_SEQUENCE, now)
    poke_i64(last_execution(block, site, warp), now)


@machine_code
def reversed_order(block: int, old: int, tag: int) -> bool:
    """Whether the later of two racing accesses comes first in the program, as the earlier one's warp has executed it.

    Which of two unordered accesses happens first is chance. A person reads them in the order in which any one warp makes them since the
    last barrier.
    """
    warp, base = warp_of(old), peek_i64(block + H_EXECUTIONS_BASE)
    first, second = peek_i64(last_execution(block, site_of(old), warp)), peek_i64(last_execution(block, site_of(tag), warp))
    if second <= base and not old & PENDING and peek_i64(last_execution(block, site_of(old), warp_of(tag))) <= base:
        return site_of(tag) < site_of(old)  # no warp makes both: as they stand in the program
    return base < second < first


@machine_code
def conflict(ctx: int, block: int, granule: int, old: int, old_lanes: int, tag: int, lanes: int) -> None:
    """Report a race between an earlier access and one that is made now, if nothing orders them."""
    if not (old | tag) & WRITE or old & tag & STRONG_ACCESS:
        return
    warp, old_warp, shift = warp_of(tag), warp_of(old), peek_i64(block + H_SHIFT)
    bad, lane, left, detail, more = 0, 0, lanes, R_SAME_WARP if warp == old_warp else 0, 0
    if old & PENDING:
        bad, lane = old_lanes, first_bit(lanes)
        queue = peek_i64(ctx + C_QUEUE) + old_warp * queue_bytes(peek_i64(ctx + C_QUEUE_CAPACITY))
        entry = find_pending(ctx, queue, first_bit(old_lanes), granule << shift, 1 << shift)
        if entry == 0 or unordered(block, peek_i64(entry + E_TIME), old_warp, old_lanes, warp, lane) == 0:
            detail = R_ASYNC
            more = why_pending(queue, entry, first_bit(old_lanes)) if entry else 0
    while left and bad == 0:
        lane = first_bit(left)
        left &= left - 1
        bad = unordered(block, old >> TIME_SHIFT, old_warp, old_lanes, warp, lane)
        if bad and warp == old_warp and not old & WRITE:
            bad = still_reading(block, old >> TIME_SHIFT, warp, bad, lane)
    if bad == 0:
        return
    kind = F_WAW if old & tag & WRITE else F_RAW if old & WRITE else F_WAR
    if (old & SILENT or not old & WRITE or kind == F_WAW) and (tag & SILENT or not tag & WRITE):
        detail |= R_BENIGN
    first, second = pc_of_site(block, site_of(old)), pc_of_site(block, site_of(tag))
    first_lanes, second_lanes, first_warp, second_warp = bad, 1 << lane, old_warp, warp
    if reversed_order(block, old, tag):
        kind = F_WAW if kind == F_WAW else F_RAW + F_WAR - kind
        first, second = second, first
        first_lanes, second_lanes, first_warp, second_warp = second_lanes, first_lanes, second_warp, first_warp
    offset = granule << shift
    for word in range(offset & -4, offset + (1 << shift), 4):
        note_raced(ctx, block, first, word, SHARED)
        note_raced(ctx, block, second, word, SHARED)
        note(log(ctx, block, kind, first, second, word, detail), first_warp, first_lanes, second_warp, second_lanes, more, popcount(lanes))


@machine_code
def access_row(block: int, granule: int, tag: int, mask: int) -> bool:
    """The same for neighbouring lanes with neighbouring granules, `granule` being that of lane 0, if nothing there is of interest.

    False: nothing was done.
    """
    base = peek_i64(block + H_CTA_BASE) << TIME_SHIFT
    writes, tags, granules = (
        peek_i64(block + H_WRITE_TAGS) + 8 * granule,
        peek_i64(block + H_TAGS) + 8 * granule,
        peek_i64(block + H_GRANULES),
    )
    if lanes_nonzero_u32(peek_i64(block + H_HEADS) + 4 * granule, mask):
        return False
    if tag & WRITE:
        for cell in range(0, granules * peek_i64(block + H_WARPS), granules):
            if lanes_max(tags + 8 * cell, mask) >= base:
                return False
        return lanes_note(writes, peek_i64(block + H_WRITE_LANES) + 4 * granule, mask, tag, base)
    if lanes_max(writes, mask) >= base:
        return False
    cell = granules * warp_of(tag)
    return lanes_note(tags + 8 * cell, peek_i64(block + H_LANES) + 4 * (granule + cell), mask, tag, base)


@machine_code
def read_lanes(ctx: int, block: int, hosts: int, mask: int, size: int, tag: int, distinct: bool) -> None:
    """`access` for plain reads in a kernel without strong accesses: mostly there is nothing of interest. distinct: so are the addresses."""
    base, shift, smem = peek_i64(block + H_CTA_BASE) << TIME_SHIFT, peek_i64(block + H_SHIFT), peek_i64(ctx + C_SMEM)
    writes, heads = peek_i64(block + H_WRITE_TAGS), peek_i64(block + H_HEADS)
    cell = peek_i64(block + H_GRANULES) * warp_of(tag)
    tags, owners = peek_i64(block + H_TAGS) + 8 * cell, peek_i64(block + H_LANES) + 4 * cell
    while mask:
        lane = first_bit(mask)
        host = peek_i64(hosts + 8 * lane)
        lanes = 1 << lane if distinct else lanes_equal(hosts, host) & mask
        mask &= ~lanes
        for granule in range((host - smem) >> shift, (host - smem + size) >> shift):
            old = peek_i64(tags + 8 * granule)
            if peek_i64(writes + 8 * granule) >= base or peek_u32(heads + 4 * granule) or (old >= base and old != tag):
                access(ctx, block, granule, tag, lanes)
            else:
                poke_i64(tags + 8 * granule, tag)
                poke_u32(owners + 4 * granule, peek_u32(owners + 4 * granule) | lanes if old == tag else lanes)


@machine_code
def access(ctx: int, block: int, granule: int, tag: int, lanes: int) -> None:
    """Lanes of a warp access a granule: races with earlier accesses are reported, the access is kept."""
    base = peek_i64(block + H_CTA_BASE) << TIME_SHIFT
    old = peek_i64(peek_i64(block + H_WRITE_TAGS) + 8 * granule)
    if old >= base:
        conflict(ctx, block, granule, old, peek_u32(peek_i64(block + H_WRITE_LANES) + 4 * granule), tag, lanes)
    number = peek_u32(peek_i64(block + H_HEADS) + 4 * granule)
    while number:
        at = extra_at(block, number)
        if peek_i64(at + X_LANES):
            conflict(ctx, block, granule, peek_i64(at + X_TAG), peek_i64(at + X_LANES), tag, lanes)
        number = peek_i64(at + X_NEXT)
    if tag & WRITE or peek_i64(block + H_STRONG):
        granules = peek_i64(block + H_GRANULES)
        for cell in range(granule, granule + granules * peek_i64(block + H_WARPS), granules):
            old = peek_i64(peek_i64(block + H_TAGS) + 8 * cell)
            if old >= base:
                conflict(ctx, block, granule, old, peek_u32(peek_i64(block + H_LANES) + 4 * cell), tag, lanes)
    record(block, granule, tag, lanes)
