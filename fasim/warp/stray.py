"""Lanes that go round a barrier or a collective at which the rest of their warp waits for them.

Lanes may come late, and they may end; what they must not do is to go on with what comes after the barrier. A lane is a stray while others
wait for it, it has gone round once it executes something that every path from the barrier leads to, and it is reported if it ends then
without having come. Lanes that are about to end when the others arrive are no strays: they returned early.
"""

from __future__ import annotations

from fasim.isa.machine import (
    AT_AUX,
    AT_GUARD,
    AT_KIND,
    BAR,
    BRA,
    C_CODE,
    C_HAZARDS,
    CODE_BYTES,
    EXIT,
    FENCE,
    NOP,
    READY,
    S_MASK,
    S_PC,
    S_STATE,
    W_BYPASSED,
    W_LIVE,
    W_SPLITS,
    W_STRAY,
    W_STRAY_PC,
)
from fasim.numerics.native import first_bit, machine_code, peek_i32, peek_i64, peek_u8, peek_u32, poke_i64, popcount
from fasim.smem.check_state import F_ABSENT_LANES, F_DIVERGENT_BARRIER, F_UNNAMED_LANES, H_AFTER, H_BLOCK_OF, log, note
from fasim.warp.splits import split_at, warp_at

#: how many jumps in a row are followed to see whether they lead to the end
JUMPS = 8


@machine_code
def about_to_end(ctx: int, pc: int) -> bool:
    """Whether nothing but jumps stand between a pc and the end of the thread."""
    for _ in range(JUMPS):
        rec = peek_i64(ctx + C_CODE) + pc * CODE_BYTES
        kind = peek_i32(rec + AT_KIND)
        if kind == NOP:
            pc += 1
        elif peek_i32(rec + AT_GUARD) >= 0 or (kind != BRA and kind != EXIT):
            return False
        elif kind == EXIT:
            return True
        else:
            pc = peek_i32(rec + AT_AUX)
    return False


@machine_code
def await_lanes(ctx: int, warp: int, pc: int, arrived: int, named: int, rest: int, rest_pc: int) -> None:
    """Lanes arrive at a barrier or collective for the `named` ones; `rest`: lanes that were with them and go on at `rest_pc`."""
    record = warp_at(ctx, warp)
    stray = peek_i64(record + W_STRAY)
    if rest & named and not about_to_end(ctx, rest_pc):
        stray |= rest & named
    for i in range(peek_i64(record + W_SPLITS)):
        at = split_at(ctx, warp, i)
        lanes = peek_i64(at + S_MASK) & named
        if lanes and peek_i64(at + S_STATE) == READY and not about_to_end(ctx, peek_i64(at + S_PC)):
            stray |= lanes
    poke_i64(record + W_STRAY, stray & ~arrived & peek_i64(record + W_LIVE))
    poke_i64(record + W_BYPASSED, peek_i64(record + W_BYPASSED) & ~arrived)
    poke_i64(record + W_STRAY_PC, pc)


@machine_code
def check_masks(ctx: int, warp: int, pc: int, row: int, lanes: int) -> None:
    """Report lanes whose own member mask does not name them; row: address of the masks."""
    unnamed, left = 0, lanes
    while left:
        lane = first_bit(left)
        left &= left - 1
        unnamed |= 1 << lane & ~peek_u32(row + 4 * lane)
    if unnamed:
        at = log(ctx, peek_i64(ctx + C_HAZARDS), F_UNNAMED_LANES, pc, 0, 0, 0)
        note(at, warp, lanes & ~unnamed, warp, unnamed, 0, popcount(unnamed))


@machine_code
def all_arrived(ctx: int, warp: int) -> None:
    """Nobody is waited for any more."""
    record = warp_at(ctx, warp)
    poke_i64(record + W_STRAY, 0)
    poke_i64(record + W_BYPASSED, 0)


@machine_code
def stray_step(ctx: int, warp: int, pc: int, kind: int, mask: int, execute: int) -> None:
    """Strays execute an instruction: note whether they have gone round, and report those that end."""
    record, block = warp_at(ctx, warp), peek_i64(ctx + C_HAZARDS)
    waiting = peek_i64(record + W_STRAY_PC)
    if kind == EXIT:
        lanes = execute & peek_i64(record + W_BYPASSED)
        if lanes:
            rec = peek_i64(ctx + C_CODE) + waiting * CODE_BYTES
            finding = F_DIVERGENT_BARRIER if peek_i32(rec + AT_KIND) == BAR else F_ABSENT_LANES
            at = log(ctx, block, finding, waiting, 0, 0, 0)
            note(at, warp, peek_i64(record + W_LIVE) & ~lanes, warp, lanes, 0, popcount(lanes))
        poke_i64(record + W_STRAY, peek_i64(record + W_STRAY) & ~execute)
        poke_i64(record + W_BYPASSED, peek_i64(record + W_BYPASSED) & ~execute)
        return
    if kind == BRA or kind == NOP or kind == FENCE:
        return
    after = peek_i64(peek_i64(block + H_AFTER) + 8 * waiting)
    blocks = peek_i64(block + H_BLOCK_OF)
    own = peek_i32(blocks + 4 * pc)
    if after and peek_u8(after + own) and (own != peek_i32(blocks + 4 * waiting) or pc > waiting):
        poke_i64(record + W_BYPASSED, peek_i64(record + W_BYPASSED) | mask & peek_i64(record + W_STRAY))
