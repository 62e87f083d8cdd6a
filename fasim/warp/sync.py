"""bar.warp.sync and the arrival at CTA barriers."""

from __future__ import annotations

from fasim.isa.machine import (
    AT_BARRIER,
    AT_COLLECTIVE,
    AT_POOL,
    B_AND,
    B_ARRIVED,
    B_EXPECTED,
    B_OR,
    B_POPC,
    BAR_ARRIVE,
    BAR_BYTES,
    BAR_RED_AND,
    BAR_RED_OR,
    BAR_RED_POPC,
    BARRIERS,
    C_BARS,
    C_CODE,
    C_HAZARDS,
    C_POOL,
    C_ROUND,
    C_THREADS,
    C_WARP_COUNT,
    CODE_BYTES,
    E_BARRIER_COUNT,
    E_BARRIER_OPERANDS,
    READY,
    ROUND_PROGRESS,
    S_DETAIL,
    S_MASK,
    S_PC,
    S_STATE,
    SYNC_BARRIER_SHIFT,
    SYNC_FLAG,
    W_LIVE,
    W_SPLITS,
    W_YIELDED,
)
from fasim.isa.operands import BAR_ALIGNED, BAR_COUNT, BAR_DEST, BAR_NUMBER, BAR_OP, BAR_PC, BAR_PREDICATE, Y_BARRIER, Y_MEMBERS
from fasim.numerics.native import fill_bytes, first_bit, machine_code, peek_i32, peek_i64, peek_u32, poke_i64, poke_u32, popcount
from fasim.smem.cells import clear_chains, restart_clock
from fasim.smem.check_state import F_DIVERGENT_BARRIER, log, note
from fasim.smem.clocks import clear_barrier, leave_partial_barrier, reach_barrier, whole_cta
from fasim.warp.memory import note_error
from fasim.warp.splits import add_split, leave_members, registers_at, remove_split, same_value, split_at, warp_at
from fasim.warp.stray import all_arrived


@machine_code
def sync_lanes(ctx: int, warp: int, pc: int, registers: int, operands: int, mask: int) -> None:
    """bar.warp.sync: wait until the lanes of the member mask are at one with the same mask, wherever it stands."""
    record = warp_at(ctx, warp)
    poke_i64(record + W_YIELDED, peek_i64(record + W_YIELDED) & ~mask)
    row, left = registers + peek_i32(operands + Y_MEMBERS), mask
    flags = SYNC_FLAG | peek_i32(operands + Y_BARRIER) << SYNC_BARRIER_SHIFT
    while left:
        group = same_value(row, left)
        add_split(ctx, warp, pc + 1, group, AT_COLLECTIVE, flags | peek_u32(row + 4 * first_bit(left)))
        left &= ~group


@machine_code
def leave_lanes(ctx: int, warp: int, registers: int, operands: int, mask: int) -> None:
    """BREAK: lanes leave a convergence barrier, so that nobody waits for them there, also those who do already."""
    row, left = registers + peek_i32(operands + Y_MEMBERS), mask
    while left:
        group, members = same_value(row, left), peek_u32(row + 4 * first_bit(left))
        left &= ~group
        leave_members(row, members, mask)
        # whoever waits for other members uses this barrier one call further out, and has saved it
        wanted = SYNC_FLAG | peek_i32(operands + Y_BARRIER) << SYNC_BARRIER_SHIFT | members
        for i in range(peek_i64(warp_at(ctx, warp) + W_SPLITS)):
            at = split_at(ctx, warp, i)
            if peek_i64(at + S_STATE) == AT_COLLECTIVE and peek_i64(at + S_DETAIL) == wanted:
                poke_i64(at + S_DETAIL, wanted & ~mask)


@machine_code
def barrier_at(ctx: int, number: int) -> int:
    """Address of a barrier's record."""
    return peek_i64(ctx + C_BARS) + number * BAR_BYTES


@machine_code
def arrive(ctx: int, warp: int, registers: int, operands: int, mask: int) -> int:
    """Lanes arrive at a CTA barrier and, unless it is bar.arrive, wait there; returns 1 for operands that are not allowed.

    Lanes that never were, or have exited, do not hold up a barrier: they are counted when it is looked at (`open_barrier`), for
    lanes may exit while others wait.
    """
    lane = first_bit(mask)
    number = peek_u32(registers + peek_i32(operands + BAR_NUMBER) + 4 * lane)
    count_row = peek_i32(operands + BAR_COUNT)
    count = peek_u32(registers + count_row + 4 * lane) if count_row >= 0 else 0
    if number >= BARRIERS or count & 31 or (count_row >= 0 and (count == 0 or count > (peek_i64(ctx + C_THREADS) + 31) & -32)):
        note_error(ctx, E_BARRIER_OPERANDS, lane, number, count, 0, 0)
        return 1
    bar = barrier_at(ctx, number)
    if peek_i64(bar + B_ARRIVED) and peek_i64(bar + B_EXPECTED) != count:
        full = (peek_i64(ctx + C_THREADS) + 31) & -32
        earlier = peek_i64(bar + B_EXPECTED)
        if (earlier if earlier else full) != (count if count else full):
            note_error(ctx, E_BARRIER_COUNT, lane, number, count, 0, earlier)
            return 1
        count = full
    poke_i64(bar + B_EXPECTED, count)
    record = warp_at(ctx, warp)
    operation = peek_i32(operands + BAR_OP)
    if operation == BAR_RED_POPC or operation == BAR_RED_AND or operation == BAR_RED_OR:
        guard = peek_i32(operands + BAR_PREDICATE)
        word = peek_u32(registers + (guard & -2))
        if guard & 1:
            word ^= 0xFFFFFFFF
        if peek_i64(bar + B_ARRIVED) == 0 and peek_i64(bar + B_POPC) == 0:
            poke_i64(bar + B_AND, 1)
        poke_i64(bar + B_POPC, peek_i64(bar + B_POPC) + popcount(word & mask))
        if word & mask:
            poke_i64(bar + B_OR, 1)
        if mask & ~word:
            poke_i64(bar + B_AND, 0)
    block = peek_i64(ctx + C_HAZARDS)
    if block and count:
        reach_barrier(block, number, warp, mask)
    arrived = popcount(mask)
    if operation != BAR_ARRIVE:
        add_split(ctx, warp, peek_i32(operands + BAR_PC), mask, AT_BARRIER, number)
    elif mask == peek_i64(record + W_LIVE):
        arrived = 32
    poke_i64(bar + B_ARRIVED, peek_i64(bar + B_ARRIVED) + arrived)
    # whoever comes next belongs to the barrier's next phase; one for the whole CTA opens when no warp can go on
    if count and open_barrier(ctx, number):
        poke_i64(ctx + C_ROUND, peek_i64(ctx + C_ROUND) | ROUND_PROGRESS)
    return 0


@machine_code
def leave_barrier(ctx: int, warp: int, number: int) -> None:
    """All lanes of a warp that wait at a barrier go on behind it."""
    record = warp_at(ctx, warp)
    i = 0
    while i < peek_i64(record + W_SPLITS):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_STATE) == AT_BARRIER and peek_i64(at + S_DETAIL) == number:
            pc, mask = peek_i64(at + S_PC), peek_i64(at + S_MASK)
            remove_split(ctx, warp, i)
            add_split(ctx, warp, pc + 1, mask, READY, 0)
            i = 0
        else:
            i += 1


@machine_code
def waiting_lanes(ctx: int, warp: int, number: int) -> int:
    """Lanes of a warp that wait at a barrier."""
    mask = 0
    for i in range(peek_i64(warp_at(ctx, warp) + W_SPLITS)):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_STATE) == AT_BARRIER and peek_i64(at + S_DETAIL) == number:
            mask |= peek_i64(at + S_MASK)
    return mask


@machine_code
def write_reduction(ctx: int, warp: int, number: int) -> None:
    """The result of bar.red for the lanes of a warp that wait at a barrier."""
    bar = barrier_at(ctx, number)
    registers = registers_at(ctx, warp)
    for i in range(peek_i64(warp_at(ctx, warp) + W_SPLITS)):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_STATE) != AT_BARRIER or peek_i64(at + S_DETAIL) != number:
            continue
        code = peek_i64(ctx + C_CODE) + peek_i64(at + S_PC) * CODE_BYTES
        operands = peek_i64(ctx + C_POOL) + 4 * peek_i32(code + AT_POOL)
        operation, dest, mask = peek_i32(operands + BAR_OP), peek_i32(operands + BAR_DEST), peek_i64(at + S_MASK)
        if operation == BAR_RED_POPC:
            left = mask
            while left:
                lane = first_bit(left)
                left &= left - 1
                poke_u32(registers + dest + 4 * lane, peek_i64(bar + B_POPC))
        elif operation == BAR_RED_AND or operation == BAR_RED_OR:
            value = peek_i64(bar + B_AND) if operation == BAR_RED_AND else peek_i64(bar + B_OR)
            old = peek_i32(registers + dest) & 0xFFFFFFFF
            poke_u32(registers + dest, old | mask if value else old & ~mask)


@machine_code
def open_barrier(ctx: int, number: int) -> int:
    """Let all go on who wait at a barrier, if everybody is there; returns 1 if so.

    A counted barrier counts threads by whole warps: lanes that never were, or have exited, are there once the rest of their warp waits.
    """
    bar, warps = barrier_at(ctx, number), peek_i64(ctx + C_WARP_COUNT)
    expected, arrived = peek_i64(bar + B_EXPECTED), peek_i64(bar + B_ARRIVED)
    if arrived == 0:
        return 0
    for warp in range(warps):
        waiting = waiting_lanes(ctx, warp, number)
        if waiting == peek_i64(warp_at(ctx, warp) + W_LIVE):
            if waiting:
                arrived += 32 - popcount(waiting)
        elif expected == 0:
            return 0
    if arrived < expected:
        return 0
    if peek_i64(ctx + C_HAZARDS):
        order_threads(ctx, number)
    for warp in range(warps):
        write_reduction(ctx, warp, number)
        leave_barrier(ctx, warp, number)
    fill_bytes(bar, 0, BAR_BYTES)
    return 1


@machine_code
def order_threads(ctx: int, number: int) -> None:
    """For the checks: a barrier opens. What its threads did before comes before what they do now; lanes of a warp should come together."""
    block, warps = peek_i64(ctx + C_HAZARDS), peek_i64(ctx + C_WARP_COUNT)
    counted = peek_i64(barrier_at(ctx, number) + B_EXPECTED)
    # threads that have ended take part in a barrier of all threads, not in one of a number of them
    whole = counted == 0 or counted == (peek_i64(ctx + C_THREADS) + 31) & -32
    for warp in range(warps):
        if waiting_lanes(ctx, warp, number) != peek_i64(warp_at(ctx, warp) + W_LIVE):
            whole = False
    for warp in range(warps):
        lanes = waiting_lanes(ctx, warp, number)
        if lanes:
            all_arrived(ctx, warp)
            find_divergence(ctx, warp, number)
            if not whole:
                leave_partial_barrier(block, number, warp, lanes)
    if counted:
        clear_barrier(block, number)
    if whole:
        restart_clock(block)
        whole_cta(block)
        clear_chains(block)


@machine_code
def find_divergence(ctx: int, warp: int, number: int) -> None:
    """Report lanes of one warp that wait at the same barrier at different places of the code."""
    first = -1
    for i in range(peek_i64(warp_at(ctx, warp) + W_SPLITS)):
        at = split_at(ctx, warp, i)
        if peek_i64(at + S_STATE) != AT_BARRIER or peek_i64(at + S_DETAIL) != number:
            continue
        pc = peek_i64(at + S_PC)
        code = peek_i64(ctx + C_CODE) + pc * CODE_BYTES
        if not peek_i32(peek_i64(ctx + C_POOL) + 4 * peek_i32(code + AT_POOL) + BAR_ALIGNED):
            continue
        if first < 0:
            first = i
        else:
            other = split_at(ctx, warp, first)
            finding = log(ctx, peek_i64(ctx + C_HAZARDS), F_DIVERGENT_BARRIER, peek_i64(other + S_PC), pc, 0, 0)
            note(finding, warp, peek_i64(other + S_MASK), warp, peek_i64(at + S_MASK), 0, popcount(peek_i64(at + S_MASK)))
