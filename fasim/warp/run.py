"""The inner loop: one warp runs until it ends, waits, fails or has used up its budget."""

from __future__ import annotations

from fasim.isa.machine import (
    ALL_LANES,
    AT_AUX,
    AT_GUARD,
    AT_HANDLER,
    AT_KIND,
    AT_MEMBER,
    AT_OPERANDS,
    AT_RUN,
    BAR,
    BAR_ARRIVE,
    BLOCKED,
    BRA,
    BREAK,
    BRX,
    C_BUDGET,
    C_CLOCK,
    C_CODE,
    C_COUNTS,
    C_ERROR,
    C_HAZARDS,
    C_INSTRUCTIONS,
    C_PATH,
    C_QUANTUM,
    C_QUEUE_CAPACITY,
    C_SLICE_LEFT,
    C_WARP,
    CALL,
    CLOCK,
    CODE_BYTES,
    COLLECTIVE,
    CP_ASYNC,
    CP_COMMIT,
    CP_WAIT,
    DONE,
    E_TRAP,
    ERR_LANES,
    ERR_PC,
    ERR_WARP,
    EXIT,
    FAILED,
    FENCE,
    LANES,
    LDMATRIX,
    LEAVES_BARRIERS,
    LOAD,
    LOG_FULL,
    MARK,
    NEEDS_SERVICE,
    OUT_OF_BUDGET,
    QUEUE_FULL,
    READY,
    RET,
    S_MASK,
    S_PC,
    SERVICE,
    SERVICE_FLAG,
    STMATRIX,
    TRAP,
    W_FAIR,
    W_LIVE,
    W_PATIENCE,
    W_SPLITS,
    W_STRAY,
    W_STRAY_PC,
    W_TAINTED,
    W_TURN,
    W_YIELDED,
    WARP_SYNC,
    YIELD,
    YIELDED,
)
from fasim.isa.operands import BAR_ALIGNED, BAR_OP, Y_BARRIER, Y_MEMBERS
from fasim.numerics.native import call_handler, first_bit, machine_code, peek_i32, peek_i64, peek_u32, poke_i64
from fasim.smem.check_state import full
from fasim.smem.clocks import execute_together, fence
from fasim.smem.cp_async import abandon, pending_granules
from fasim.warp.access import access_memory
from fasim.warp.calls import call, ret
from fasim.warp.copy import cp_commit, cp_wait, queue_at
from fasim.warp.memory import note_error
from fasim.warp.path import note_barrier, note_block, path_full
from fasim.warp.schedule import FAIR_INSTRUCTIONS
from fasim.warp.splits import (
    NEVER,
    add_split,
    gather,
    interrupt,
    join_at,
    next_stop,
    pick,
    registers_at,
    remove_split,
    split_at,
    wake,
    warp_at,
)
from fasim.warp.steps import branch_indexed, failure, named_lanes, read_clock, run_lanes
from fasim.warp.stray import all_arrived, await_lanes, check_masks, stray_step
from fasim.warp.sync import arrive, leave_lanes, sync_lanes
from fasim.warp.taint import settle, taint_collective, taint_step


@machine_code
def run_warp(ctx: int, warp: int) -> int:
    """Run one warp; returns DONE, BLOCKED, OUT_OF_BUDGET, FAILED, NEEDS_SERVICE, QUEUE_FULL, LOG_FULL or YIELDED."""
    record = warp_at(ctx, warp)
    registers = registers_at(ctx, warp)
    code, counts, count = peek_i64(ctx + C_CODE), peek_i64(ctx + C_COUNTS), peek_i64(ctx + C_INSTRUCTIONS)
    poke_i64(ctx + C_WARP, warp)
    hazards = peek_i64(ctx + C_HAZARDS)
    settle(ctx, warp)
    budget = peek_i64(ctx + C_BUDGET)
    slice_left = peek_i64(ctx + C_SLICE_LEFT)
    if slice_left <= 0:
        slice_left = peek_i64(ctx + C_QUANTUM)
    poke_i64(ctx + C_SLICE_LEFT, 0)
    status = DONE
    while status == DONE:
        # --- choose the lanes to run ---
        wake(ctx, warp)
        fair = peek_i64(record + W_FAIR)
        chosen = pick(ctx, warp, fair)
        if chosen < 0:
            status = BLOCKED if peek_i64(record + W_SPLITS) else DONE
            break
        at = split_at(ctx, warp, chosen)
        pc, mask = peek_i64(at + S_PC), peek_i64(at + S_MASK)
        remove_split(ctx, warp, chosen)
        poke_i64(record + W_TURN, peek_i64(record + W_TURN) + 1)
        stop = NEVER if fair else next_stop(ctx, warp)
        patience = NEVER
        if peek_i64(record + W_SPLITS):
            kept = peek_i64(record + W_PATIENCE)
            patience = kept if 0 < kept < FAIR_INSTRUCTIONS else FAIR_INSTRUCTIONS
        poke_i64(record + W_PATIENCE, 0)
        poke_i64(record + W_FAIR, 0)
        careful = hazards != 0 and (peek_i64(record + W_TAINTED) | peek_i64(record + W_STRAY)) != 0
        # --- run them ---
        while True:
            if pc >= stop:
                if pc == stop:
                    mask |= join_at(ctx, warp, pc)
                    stop = next_stop(ctx, warp)
                    if peek_i64(record + W_SPLITS) == 0:
                        patience = NEVER
                    continue
                add_split(ctx, warp, pc, mask, READY, 0)
                break
            if budget <= 0 or slice_left <= 0:
                interrupt(ctx, warp, pc, mask, fair, patience)
                status = YIELDED if slice_left <= 0 else OUT_OF_BUDGET
                break
            if patience <= 0:
                add_split(ctx, warp, pc, mask, READY, 0)
                break
            rec = code + pc * CODE_BYTES
            kind = peek_i32(rec + AT_KIND)
            run = peek_i32(rec + AT_RUN)
            if 1 < run <= budget and not careful:
                run_lanes(rec, run, registers, mask)
                poke_i64(counts + 8 * (count + pc), peek_i64(counts + 8 * (count + pc)) + 1)
                budget -= run
                slice_left -= run
                patience -= run
                pc += run
                continue
            budget -= 1
            slice_left -= 1
            patience -= 1
            guard = peek_i32(rec + AT_GUARD)
            execute = mask
            if guard >= 0:
                word = peek_u32(registers + (guard & -2))
                execute = mask & (word ^ 0xFFFFFFFF if guard & 1 else word)
            operands = peek_i64(rec + AT_OPERANDS)
            poke_i64(counts + 8 * pc, peek_i64(counts + 8 * pc) + 1)
            if careful:
                if peek_i64(record + W_TAINTED):
                    taint_step(ctx, warp, pc, rec, kind, registers, mask, execute)
                if peek_i64(record + W_STRAY) & mask:
                    stray_step(ctx, warp, pc, kind, mask, execute)
            if kind == LANES:
                if execute:
                    call_handler(peek_i64(rec + AT_HANDLER), registers, operands, execute)
                pc += 1
                continue
            if kind == BRA:
                target = peek_i32(rec + AT_AUX)
                if execute == mask:
                    pc = target
                elif execute == 0:
                    pc += 1
                else:
                    # the part with the lower pc goes on, the other waits there
                    other, first = (target, pc + 1) if target > pc else (pc + 1, target)
                    waiting = execute if other == target else mask & ~execute
                    add_split(ctx, warp, other, waiting, READY, 0)
                    mask &= ~waiting
                    pc = first
                    stop = next_stop(ctx, warp)
                    if patience > FAIR_INSTRUCTIONS:
                        patience = FAIR_INSTRUCTIONS
                continue
            if execute == 0 and kind != EXIT:
                pc += 1
                continue
            if LOAD <= kind <= CP_ASYNC:
                if (kind == LDMATRIX or kind == STMATRIX) and mask != peek_i64(record + W_LIVE):
                    # .aligned: all lanes take part, so wait for the rest of the warp
                    poke_i64(counts + 8 * pc, peek_i64(counts + 8 * pc) - 1)
                    gather(ctx, warp, pc, -1, mask)
                    break
                status = access_memory(ctx, warp, pc, kind, rec, registers, execute)
                if status != DONE:
                    if status == FAILED:
                        failure(ctx, warp, pc, mask)
                    else:  # nothing was done yet
                        poke_i64(counts + 8 * pc, peek_i64(counts + 8 * pc) - 1)
                        add_split(ctx, warp, pc, mask, READY, 0)
                    break
                careful = hazards != 0 and (peek_i64(record + W_TAINTED) | peek_i64(record + W_STRAY)) != 0
                pc += 1
                continue
            if kind == COLLECTIVE:
                ready = gather(ctx, warp, pc, peek_i32(rec + AT_MEMBER), execute)
                if hazards:
                    if peek_i32(rec + AT_MEMBER) >= 0:
                        check_masks(ctx, warp, pc, registers + peek_i32(rec + AT_MEMBER), execute)
                    if execute & ~ready:
                        await_lanes(ctx, warp, pc, execute, named_lanes(rec, registers, execute & ~ready), mask & ~execute, pc + 1)
                    elif peek_i64(record + W_STRAY_PC) == pc:
                        all_arrived(ctx, warp)
                    if ready:
                        execute_together(hazards, warp, ready, ready == peek_i64(record + W_LIVE))
                        taint_collective(ctx, warp, pc, rec, registers, ready)
                    careful = (peek_i64(record + W_TAINTED) | peek_i64(record + W_STRAY)) != 0
                mask &= ~(execute & ~ready)
                if ready:
                    call_handler(peek_i64(rec + AT_HANDLER), registers, operands, ready)
                else:
                    poke_i64(counts + 8 * pc, peek_i64(counts + 8 * pc) - 1)
                pc += 1
                if mask == 0:
                    break
                if mask != execute and patience > FAIR_INSTRUCTIONS and peek_i64(record + W_SPLITS):
                    patience = FAIR_INSTRUCTIONS
            elif kind == CP_COMMIT:
                cp_commit(ctx, warp, execute)
                pc += 1
            elif kind == CP_WAIT:
                if hazards and full(hazards, pending_granules(hazards, queue_at(ctx, warp))):
                    poke_i64(counts + 8 * pc, peek_i64(counts + 8 * pc) - 1)
                    add_split(ctx, warp, pc, mask, READY, 0)
                    status = LOG_FULL
                    break
                cp_wait(ctx, warp, pc, execute, peek_i32(rec + AT_AUX))
                pc += 1
            elif kind == FENCE:
                if hazards:
                    fence(hazards, warp, execute)
                pc += 1
            elif kind == EXIT:
                if hazards and peek_i64(ctx + C_QUEUE_CAPACITY) and not abandon(ctx, warp, queue_at(ctx, warp), execute):
                    poke_i64(counts + 8 * pc, peek_i64(counts + 8 * pc) - 1)
                    add_split(ctx, warp, pc, mask, READY, 0)
                    status = LOG_FULL
                    break
                poke_i64(record + W_LIVE, peek_i64(record + W_LIVE) & ~execute)
                mask &= ~execute
                pc += 1
                if mask == 0:
                    break
            elif kind == BAR:
                if peek_i64(ctx + C_PATH):
                    note_barrier(ctx, warp, registers, operands, first_bit(execute))
                if arrive(ctx, warp, registers, operands, execute):
                    status = failure(ctx, warp, pc, mask)
                    break
                if peek_i32(operands + BAR_OP) == BAR_ARRIVE:  # does not wait
                    pc += 1
                    continue
                if hazards and peek_i32(operands + BAR_ALIGNED):
                    await_lanes(ctx, warp, pc, execute, ALL_LANES, mask & ~execute, pc + 1)
                if mask & ~execute:
                    add_split(ctx, warp, pc + 1, mask & ~execute, READY, 0)
                break
            elif kind == BREAK:
                leave_lanes(ctx, warp, registers, operands, execute)
                pc += 1
            elif kind == WARP_SYNC:
                if hazards and peek_i32(operands + Y_BARRIER) == 0:
                    members = registers + peek_i32(operands + Y_MEMBERS)
                    check_masks(ctx, warp, pc, members, execute)
                    await_lanes(ctx, warp, pc, execute, peek_u32(members + 4 * first_bit(execute)), mask & ~execute, pc + 1)
                sync_lanes(ctx, warp, pc, registers, operands, execute)
                if mask & ~execute:
                    add_split(ctx, warp, pc + 1, mask & ~execute, READY, 0)
                break
            elif kind == BRX:
                if mask & ~execute:
                    add_split(ctx, warp, pc + 1, mask & ~execute, READY, 0)
                if branch_indexed(ctx, warp, registers, operands, execute):
                    status = failure(ctx, warp, pc, execute)
                break
            elif kind == CALL or kind == RET:
                if mask & ~execute:
                    add_split(ctx, warp, pc + 1, mask & ~execute, READY, 0)
                failed = call(ctx, warp, pc, registers, operands, execute) if kind == CALL else ret(ctx, warp, registers, execute)
                if failed:
                    status = failure(ctx, warp, pc, execute)
                break
            elif kind == CLOCK:
                read_clock(ctx, registers, operands, execute, peek_i64(ctx + C_BUDGET) - budget)
                pc += 1
            elif kind == YIELD:
                add_split(ctx, warp, pc + 1, mask, READY, 0)
                poke_i64(record + W_FAIR, 1)
                if peek_i32(rec + AT_AUX) == LEAVES_BARRIERS:
                    poke_i64(record + W_YIELDED, peek_i64(record + W_YIELDED) | mask)
                status = YIELDED
                break
            elif kind == SERVICE:
                add_split(ctx, warp, pc, mask, READY, SERVICE_FLAG)
                error = peek_i64(ctx + C_ERROR)
                poke_i64(error + ERR_PC, pc)
                poke_i64(error + ERR_WARP, warp)
                poke_i64(error + ERR_LANES, execute)
                status = NEEDS_SERVICE
                break
            elif kind == MARK:
                if path_full(peek_i64(ctx + C_PATH)):
                    poke_i64(counts + 8 * pc, peek_i64(counts + 8 * pc) - 1)
                    add_split(ctx, warp, pc, mask, READY, 0)
                    status = LOG_FULL
                    break
                note_block(ctx, warp, peek_i32(rec + AT_AUX))
                pc += 1
            elif kind == TRAP:
                note_error(ctx, E_TRAP, first_bit(execute), 0, 0, 0, 0)
                status = failure(ctx, warp, pc, mask)
                break
            else:  # NOP: fences, prefetches
                pc += 1
        if status == DONE and patience <= FAIR_INSTRUCTIONS:
            # the others go on waiting, whatever made this split stop
            if patience > 0:
                poke_i64(record + W_PATIENCE, patience)
            else:
                poke_i64(record + W_FAIR, 1 - fair)
    poke_i64(ctx + C_CLOCK, peek_i64(ctx + C_CLOCK) + peek_i64(ctx + C_BUDGET) - budget)
    poke_i64(ctx + C_BUDGET, budget)
    if status == OUT_OF_BUDGET or status == NEEDS_SERVICE or status == QUEUE_FULL or status == LOG_FULL:
        poke_i64(ctx + C_SLICE_LEFT, max(slice_left, 1))
    return status
