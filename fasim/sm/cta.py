"""A CTA: its warps take turns, barriers release them, one CTA follows the other."""

from __future__ import annotations

from fasim.isa.machine import (
    BAR_BYTES,
    BARRIERS,
    BLOCKED,
    C_BARS,
    C_BLOCK_X,
    C_BLOCK_Y,
    C_CALL_DEPTH,
    C_CLOCK,
    C_CTA,
    C_CTA_END,
    C_ERROR,
    C_GRID_X,
    C_GRID_Y,
    C_HAZARDS,
    C_LOCAL,
    C_LOCAL_BYTES,
    C_NEXT_WARP,
    C_QUEUE_CAPACITY,
    C_REG_STRIDE,
    C_ROUND,
    C_SLICE_LEFT,
    C_SMEM,
    C_SMEM_BYTES,
    C_SMS,
    C_SPECIAL_COUNT,
    C_SPECIALS,
    C_STARTED,
    C_TEMPLATE,
    C_THREADS,
    C_WARP_COUNT,
    DONE,
    E_DEADLOCK,
    ERR_KIND,
    FAILED,
    READY,
    ROUND_ALIVE,
    ROUND_PROGRESS,
    SP_CTAID_X,
    SP_CTAID_Y,
    SP_CTAID_Z,
    SP_SMID,
    SP_TID_X,
    SP_TID_Y,
    SP_TID_Z,
    SP_WARPID,
    SPECIAL_BYTES,
    W_LIVE,
    W_SPLITS,
    WARP_BYTES,
    YIELDED,
)
from fasim.numerics.native import copy_bytes, fill_bytes, machine_code, peek_i64, poke_i64, poke_u32
from fasim.smem.cells import restart_clock
from fasim.smem.check_state import (
    H_EXTRA_COUNT,
    H_GRANULES,
    H_HEADS,
    H_ORIGIN_LOCAL,
    H_ORIGIN_SMEM,
    H_UNDEFINED_LOCAL,
    H_UNDEFINED_SMEM,
    H_USER_BYTES,
    H_WRITE_TAGS,
)
from fasim.smem.clocks import clear_barrier, whole_cta
from fasim.smem.cp_async import HEADER_BYTES
from fasim.warp.copy import queue_at
from fasim.warp.run import run_warp
from fasim.warp.splits import add_split, registers_at, warp_at
from fasim.warp.sync import open_barrier
from fasim.warp.taint import clear_shadows

#: what fresh shared and local memory holds: a NaN in every format, -1 as an integer, so that forgotten initialisation shows
FRESH_BYTE = 0xFF


@machine_code
def special_value(ctx: int, which: int, warp: int, lane: int) -> int:
    """A special register that differs between lanes, warps or CTAs."""
    cta = peek_i64(ctx + C_CTA)
    grid_x, grid_y = peek_i64(ctx + C_GRID_X), peek_i64(ctx + C_GRID_Y)
    thread, block_x, block_y = 32 * warp + lane, peek_i64(ctx + C_BLOCK_X), peek_i64(ctx + C_BLOCK_Y)
    if which == SP_TID_X:
        return thread % block_x
    if which == SP_TID_Y:
        return thread // block_x % block_y
    if which == SP_TID_Z:
        return thread // (block_x * block_y)
    if which == SP_CTAID_X:
        return cta % grid_x
    if which == SP_CTAID_Y:
        return cta // grid_x % grid_y
    if which == SP_CTAID_Z:
        return cta // (grid_x * grid_y)
    if which == SP_WARPID:
        return warp
    if which == SP_SMID:
        return cta % peek_i64(ctx + C_SMS)
    return 0


@machine_code
def start_cta(ctx: int, entry_pc: int) -> None:
    """Fresh registers, memory, barriers and warps for the CTA that C_CTA names."""
    warps, threads = peek_i64(ctx + C_WARP_COUNT), peek_i64(ctx + C_THREADS)
    poke_i64(ctx + C_CLOCK, 0)
    poke_i64(ctx + C_NEXT_WARP, 0)
    poke_i64(ctx + C_ROUND, 0)
    poke_i64(ctx + C_SLICE_LEFT, 0)
    fill_bytes(peek_i64(ctx + C_SMEM), FRESH_BYTE, peek_i64(ctx + C_SMEM_BYTES))
    fill_bytes(peek_i64(ctx + C_LOCAL), FRESH_BYTE, peek_i64(ctx + C_LOCAL_BYTES) * 32 * warps)
    fill_bytes(peek_i64(ctx + C_BARS), 0, BAR_BYTES * BARRIERS)
    if peek_i64(ctx + C_CALL_DEPTH):
        fill_bytes(peek_i64(ctx + C_CALL_DEPTH), 0, 8 * 32 * warps)
    if peek_i64(ctx + C_HAZARDS):
        start_checks(ctx)
    for warp in range(warps):
        registers = registers_at(ctx, warp)
        copy_bytes(registers, peek_i64(ctx + C_TEMPLATE), peek_i64(ctx + C_REG_STRIDE))
        for i in range(peek_i64(ctx + C_SPECIAL_COUNT)):
            special = peek_i64(ctx + C_SPECIALS) + SPECIAL_BYTES * i
            for lane in range(32):
                poke_u32(registers + peek_i64(special + 8) + 4 * lane, special_value(ctx, peek_i64(special), warp, lane))
        if peek_i64(ctx + C_QUEUE_CAPACITY):
            fill_bytes(queue_at(ctx, warp), 0, HEADER_BYTES)
        record = warp_at(ctx, warp)
        lanes = min(threads - 32 * warp, 32)
        fill_bytes(record, 0, WARP_BYTES)
        poke_i64(record + W_LIVE, (1 << lanes) - 1)
        add_split(ctx, warp, entry_pc, (1 << lanes) - 1, READY, 0)


@machine_code
def start_checks(ctx: int) -> None:
    """For a fresh CTA: nobody has accessed anything, shared and local memory are undefined."""
    block, warps = peek_i64(ctx + C_HAZARDS), peek_i64(ctx + C_WARP_COUNT)
    restart_clock(block)
    whole_cta(block)
    granules = peek_i64(block + H_GRANULES)
    fill_bytes(peek_i64(block + H_WRITE_TAGS), 0, 8 * granules)
    fill_bytes(peek_i64(block + H_HEADS), 0, 4 * granules)
    poke_i64(block + H_EXTRA_COUNT, 0)
    smem, local = peek_i64(ctx + C_SMEM), peek_i64(ctx + C_LOCAL)
    smem_bytes, local_bytes = peek_i64(ctx + C_SMEM_BYTES), peek_i64(ctx + C_LOCAL_BYTES) * 32 * warps
    fill_bytes(smem + peek_i64(block + H_UNDEFINED_SMEM), 0xFF, peek_i64(block + H_USER_BYTES))
    fill_bytes(smem + peek_i64(block + H_ORIGIN_SMEM), 0, smem_bytes & -4)
    fill_bytes(local + peek_i64(block + H_UNDEFINED_LOCAL), 0xFF, local_bytes)
    fill_bytes(local + peek_i64(block + H_ORIGIN_LOCAL), 0, local_bytes & -4)
    for number in range(BARRIERS):
        clear_barrier(block, number)
    for warp in range(warps):
        clear_shadows(ctx, warp)


@machine_code
def release_barriers(ctx: int) -> int:
    """Open every barrier whose threads are all there; returns how many opened."""
    opened = 0
    for number in range(BARRIERS):
        opened += open_barrier(ctx, number)
    return opened


@machine_code
def run_cta(ctx: int) -> int:
    """Warps in order, each until it waits or its time is up; returns DONE, or what stopped a warp.

    Goes on with the warp that was stopped, in the round that it was in, so that the order of things does not depend on the caller's budget.
    """
    warps = peek_i64(ctx + C_WARP_COUNT)
    while True:
        warp, round_flags = peek_i64(ctx + C_NEXT_WARP), peek_i64(ctx + C_ROUND)
        while warp < warps:
            if peek_i64(warp_at(ctx, warp) + W_SPLITS):
                status = run_warp(ctx, warp)
                if status == DONE:
                    round_flags |= ROUND_PROGRESS
                elif status == YIELDED:
                    round_flags |= ROUND_PROGRESS | ROUND_ALIVE
                elif status == BLOCKED:
                    round_flags |= ROUND_ALIVE
                else:
                    poke_i64(ctx + C_NEXT_WARP, warp)
                    poke_i64(ctx + C_ROUND, peek_i64(ctx + C_ROUND) | round_flags)
                    return status
            warp += 1
        round_flags |= peek_i64(ctx + C_ROUND)  # a warp may have opened a barrier for others that had their turn
        poke_i64(ctx + C_NEXT_WARP, 0)
        poke_i64(ctx + C_ROUND, 0)
        if round_flags & ROUND_ALIVE == 0:
            return DONE
        if release_barriers(ctx) == 0 and round_flags & ROUND_PROGRESS == 0:
            poke_i64(peek_i64(ctx + C_ERROR) + ERR_KIND, E_DEADLOCK)
            return FAILED


@machine_code
def run_ctas(ctx: int, entry_pc: int) -> int:
    """Run CTAs C_CTA up to C_CTA_END one after the other; resumes where it stopped. Returns DONE or what stopped the CTA."""
    while peek_i64(ctx + C_CTA) < peek_i64(ctx + C_CTA_END):
        if peek_i64(ctx + C_STARTED) == 0:
            start_cta(ctx, entry_pc)
            poke_i64(ctx + C_STARTED, 1)
        status = run_cta(ctx)
        if status != DONE:
            return status
        poke_i64(ctx + C_STARTED, 0)
        poke_i64(ctx + C_CTA, peek_i64(ctx + C_CTA) + 1)
    return DONE
