"""Divergence: a warp is a list of splits, each some lanes at one pc.

Code is laid out so that the place where paths meet comes after them (fasim.ptx.order), so running the split with the least pc
first brings lanes together as early as can be. A split that keeps others waiting for too long loses its turn, so that lanes which wait
for each other make progress. The running split is kept outside of the list.

Source: "SIMD re-convergence at thread frontiers", Diamos et al., MICRO 2011, for running in order of priority.
"""

from __future__ import annotations

from fasim.isa.machine import (
    ALL_LANES,
    AT_BARRIER,
    AT_COLLECTIVE,
    AT_POOL,
    C_BARRIERS_ONLY,
    C_CODE,
    C_HAZARDS,
    C_POOL,
    C_REG_STRIDE,
    C_REGS,
    C_SPLITS,
    C_WARPS,
    CODE_BYTES,
    COLLECTIVE_FLAG,
    READY,
    S_DETAIL,
    S_MASK,
    S_PC,
    S_STATE,
    S_TURN,
    SPLIT_BYTES,
    SPLITS_PER_WARP,
    SYNC_BARRIER_MASK,
    SYNC_BARRIER_SHIFT,
    SYNC_FLAG,
    W_BYPASSED,
    W_FAIR,
    W_LIVE,
    W_PATIENCE,
    W_SPLITS,
    W_STRAY,
    W_TURN,
    W_YIELDED,
    WARP_BYTES,
)
from fasim.isa.operands import Y_MEMBERS
from fasim.numerics.native import first_bit, machine_code, peek_i32, peek_i64, peek_u32, poke_i64, poke_u32, popcount
from fasim.smem.clocks import sync_warp

#: no split waits in front
NEVER = 1 << 40


@machine_code
def warp_at(ctx: int, warp: int) -> int:
    """Address of a warp's record."""
    return peek_i64(ctx + C_WARPS) + warp * WARP_BYTES


@machine_code
def split_at(ctx: int, warp: int, i: int) -> int:
    """Address of the i-th split of a warp."""
    return peek_i64(ctx + C_SPLITS) + (warp * SPLITS_PER_WARP + i) * SPLIT_BYTES


@machine_code
def registers_at(ctx: int, warp: int) -> int:
    """Address of a warp's register file."""
    return peek_i64(ctx + C_REGS) + warp * peek_i64(ctx + C_REG_STRIDE)


@machine_code
def add_split(ctx: int, warp: int, pc: int, mask: int, state: int, detail: int) -> None:
    """Put lanes aside at `pc`, joined with others there in the same state; ready ones of machine code join only at its barriers."""
    record = warp_at(ctx, warp)
    count = peek_i64(record + W_SPLITS)
    apart = state == READY and peek_i64(ctx + C_BARRIERS_ONLY) != 0
    for i in range(0 if apart else count):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_PC) == pc and peek_i64(at + S_STATE) == state and peek_i64(at + S_DETAIL) == detail:
            poke_i64(at + S_MASK, peek_i64(at + S_MASK) | mask)
            return
    at = split_at(ctx, warp, count)
    poke_i64(at + S_PC, pc)
    poke_i64(at + S_MASK, mask)
    poke_i64(at + S_STATE, state)
    poke_i64(at + S_DETAIL, detail)
    poke_i64(at + S_TURN, peek_i64(record + W_TURN))
    poke_i64(record + W_SPLITS, count + 1)


@machine_code
def interrupt(ctx: int, warp: int, pc: int, mask: int, fair: int, patience: int) -> None:
    """Put the running split aside so that it is the next to run, with the patience that it had left."""
    add_split(ctx, warp, pc, mask, READY, 0)
    record = warp_at(ctx, warp)
    poke_i64(record + W_PATIENCE, max(patience, 1))
    poke_i64(record + W_FAIR, fair)
    if fair:
        for i in range(peek_i64(record + W_SPLITS)):
            at = split_at(ctx, warp, i)
            if peek_i64(at + S_PC) == pc and peek_i64(at + S_STATE) == READY:
                poke_i64(at + S_TURN, -1)


@machine_code
def remove_split(ctx: int, warp: int, i: int) -> None:
    """Take the i-th split out; the order of the others stays, since results must not depend on the past."""
    record = warp_at(ctx, warp)
    count = peek_i64(record + W_SPLITS) - 1
    for j in range(i, count):
        here, after = split_at(ctx, warp, j), split_at(ctx, warp, j + 1)
        for word in range(0, SPLIT_BYTES, 8):
            poke_i64(here + word, peek_i64(after + word))
    poke_i64(record + W_SPLITS, count)


@machine_code
def same_value(row: int, mask: int) -> int:
    """The lanes in `mask` whose word in a register row equals that of the first of them."""
    value, lanes, left = peek_u32(row + 4 * first_bit(mask)), 0, mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        if peek_u32(row + 4 * lane) == value:
            lanes |= 1 << lane
    return lanes


@machine_code
def gather(ctx: int, warp: int, pc: int, row: int, mask: int) -> int:
    """Lanes arrive at a collective instruction: those of complete groups may execute it, the others are put aside to wait.

    A group are the lanes with the same member mask, as the tiles of a warp have; row: where the masks stand, -1 for all lanes.
    """
    live, ready, left = peek_i64(warp_at(ctx, warp) + W_LIVE), 0, mask
    while left:
        group, wanted = left, ALL_LANES
        if row >= 0:
            masks = registers_at(ctx, warp) + row
            group, wanted = same_value(masks, left), peek_u32(masks + 4 * first_bit(left))
        left &= ~group
        if wanted & live & ~group:
            add_split(ctx, warp, pc, group, AT_COLLECTIVE, COLLECTIVE_FLAG | wanted)
        else:
            ready |= group
    return ready


@machine_code
def converging(at: int) -> bool:
    """Whether a split waits at a convergence barrier."""
    detail = peek_i64(at + S_DETAIL)
    return peek_i64(at + S_STATE) == AT_COLLECTIVE and detail & SYNC_FLAG != 0 and detail >> SYNC_BARRIER_SHIFT & SYNC_BARRIER_MASK != 0


@machine_code
def leave_members(row: int, members: int, lanes: int) -> None:
    """Take lanes out of the members of a convergence barrier, in the registers of all members that have not saved it."""
    left = members
    while left:
        lane = first_bit(left)
        left &= left - 1
        if peek_u32(row + 4 * lane) == members:
            poke_u32(row + 4 * lane, members & ~lanes)


@machine_code
def release(ctx: int, warp: int, detail: int) -> None:
    """Lanes that wait at a convergence barrier go on and leave it: the others are its members now."""
    lanes, pc = 0, 0
    for i in range(peek_i64(warp_at(ctx, warp) + W_SPLITS)):
        at = split_at(ctx, warp, i)
        if converging(at) and peek_i64(at + S_DETAIL) == detail:
            lanes |= peek_i64(at + S_MASK)
            pc = peek_i64(at + S_PC) - 1
            poke_i64(at + S_STATE, READY)
            poke_i64(at + S_DETAIL, 0)
    code = peek_i64(ctx + C_CODE) + pc * CODE_BYTES
    row = registers_at(ctx, warp) + peek_i32(peek_i64(ctx + C_POOL) + 4 * peek_i32(code + AT_POOL) + Y_MEMBERS)
    leave_members(row, peek_u32(row + 4 * first_bit(lanes)), lanes)


@machine_code
def loosen(ctx: int, warp: int) -> None:
    """No lane can go on: those that wait at a convergence barrier for none but lanes at another one do, the innermost first.

    Source: ptxas 13.0 for sm_120, which leaves out the BREAK on some ways from a switch out of its inner barrier to the outer one.
    """
    count, waiting, best, least = peek_i64(warp_at(ctx, warp) + W_SPLITS), 0, 0, 33
    for i in range(count):
        at = split_at(ctx, warp, i)
        if converging(at):
            waiting |= peek_i64(at + S_MASK)
    for i in range(count):
        at = split_at(ctx, warp, i)
        members = peek_i64(at + S_DETAIL) & ALL_LANES
        if converging(at) and members & peek_i64(warp_at(ctx, warp) + W_LIVE) & ~waiting == 0 and popcount(members) < least:
            best, least = peek_i64(at + S_DETAIL), popcount(members)
    if best:
        release(ctx, warp, best)


@machine_code
def wake(ctx: int, warp: int) -> None:
    """Lanes whose group is complete, at a collective or in bar.warp.sync, may go on; exited lanes count as arrived.

    At a convergence barrier nobody waits for lanes that have yielded: they may be in a loop until those here go on.
    Source: US patent 10,067,768, for yielding at convergence barriers.
    """
    record = warp_at(ctx, warp)
    live, count = peek_i64(record + W_LIVE), peek_i64(record + W_SPLITS)
    for i in range(count):
        at = split_at(ctx, warp, i)
        detail = peek_i64(at + S_DETAIL)
        if peek_i64(at + S_STATE) != AT_COLLECTIVE:
            continue
        arrived = peek_i64(at + S_MASK)
        if detail & SYNC_FLAG:  # wherever in the code the others wait
            for j in range(count):
                other = split_at(ctx, warp, j)
                if peek_i64(other + S_STATE) != AT_BARRIER and peek_i64(other + S_DETAIL) == detail:
                    arrived |= peek_i64(other + S_MASK)
        missing = detail & ALL_LANES & live & ~arrived
        yielded = peek_i64(record + W_YIELDED)
        if missing and missing & ~yielded == 0 and converging(at):
            release(ctx, warp, detail)
            poke_i64(record + W_YIELDED, yielded & ~missing)
        elif missing == 0:
            poke_i64(at + S_STATE, READY)
            if detail & SYNC_FLAG == 0:
                poke_i64(at + S_DETAIL, 0)
            elif peek_i64(ctx + C_HAZARDS) and detail >> SYNC_BARRIER_SHIFT & SYNC_BARRIER_MASK == 0:
                lanes = arrived | detail & ALL_LANES & ~live
                sync_warp(peek_i64(ctx + C_HAZARDS), warp, lanes, live & ~arrived == 0)
                poke_i64(record + W_STRAY, 0)
                poke_i64(record + W_BYPASSED, 0)
    stuck = count != 0 and peek_i64(ctx + C_BARRIERS_ONLY) != 0
    for i in range(count):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_STATE) == READY:
            stuck = False
            if peek_i64(at + S_DETAIL) & SYNC_FLAG:
                poke_i64(at + S_DETAIL, 0)
    if stuck:
        loosen(ctx, warp)


@machine_code
def pick(ctx: int, warp: int, fair: int) -> int:
    """Index of the split to run: the least pc, or the one that waits longest if `fair`; -1 if none is ready."""
    best, best_key = -1, 0
    for i in range(peek_i64(warp_at(ctx, warp) + W_SPLITS)):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_STATE) == READY:
            key = peek_i64(at + S_TURN) if fair else peek_i64(at + S_PC)
            if best < 0 or key < best_key:
                best, best_key = i, key
    return best


@machine_code
def next_stop(ctx: int, warp: int) -> int:
    """Least pc of the ready splits in the list: where the running one has to stop; NEVER if there is none, or they do not join there."""
    stop = NEVER
    if peek_i64(ctx + C_BARRIERS_ONLY):
        return stop
    for i in range(peek_i64(warp_at(ctx, warp) + W_SPLITS)):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_STATE) == READY:
            stop = min(stop, peek_i64(at + S_PC))
    return stop


@machine_code
def join_at(ctx: int, warp: int, pc: int) -> int:
    """Take the ready split that waits at `pc` out of the list; returns its lanes, 0 if there is none."""
    for i in range(peek_i64(warp_at(ctx, warp) + W_SPLITS)):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_STATE) == READY and peek_i64(at + S_PC) == pc:
            mask = peek_i64(at + S_MASK)
            remove_split(ctx, warp, i)
            return mask
    return 0
