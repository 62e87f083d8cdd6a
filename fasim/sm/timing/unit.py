"""The load-store unit: it takes instructions from the queues of the four sub-partitions in turn, each for as long as its wavefronts."""

from __future__ import annotations

from fasim.sm.timing import classes as c
from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.compiled import njit
from fasim.sm.timing.memory import fetch, forget, keep_stored, sectors_of, send_stored
from fasim.sm.timing.record import PARTS
from fasim.sm.timing.state import Array
from fasim.sm.timing.waiting import look_again, words_of
from fasim.warp import path as p

#: cycles until the registers of an instruction have been read: of loads, and of stores with one wavefront
_ADDRESS_READ, _DATA_READ = 8, 11


@njit
def serve(
    t: int,
    ins: Array,
    entries: Array,
    per_cta: int,
    k: Array,
    warps: Array,
    boards: Array,
    groups: Array,
    ctas: Array,
    subs: Array,
    queues: Array,
    sm: Array,
    tag_ends: Array,
    lines: Array,
    touched: Array,
    busy: Array,
) -> None:
    """Take an instruction if one is there and the unit is free."""
    for turn in range(st.SUBS):
        s = (sm[st.M_LSU_TURN] + turn) % st.SUBS
        at = subs[s, st.S_HEAD] % st.QUEUE_ENTRIES
        if subs[s, st.S_HEAD] == subs[s, st.S_TAIL] or subs[s, st.S_LSU_FREE] > t or sm[st.M_LSU_FREE] > t or queues[s, at, st.Q_TIME] > t:
            continue
        behind = tag_ends[(sm[st.M_TAGGED] - k[st.K_TAG_QUEUE]) % st.TAG_ENTRIES]
        if behind > t and ins[queues[s, at, st.Q_PC], r.I_KIND] in (c.GLOBAL_LOAD, c.COPY, c.GLOBAL_STORE):
            subs[s, st.S_LSU_FREE] = behind  # it waits for the tags, and what is behind it in its queue, too
            continue
        if ins[queues[s, at, st.Q_PC], r.I_KIND] == c.ADU and sm[st.M_ADU_FREE] > t:
            subs[s, st.S_LSU_FREE] = sm[st.M_ADU_FREE]
            continue
        subs[s, st.S_HEAD] += 1
        sm[st.M_LSU_TURN] = s + 1
        w, i, entry = queues[s, at, st.Q_WARP], queues[s, at, st.Q_PC], queues[s, at, st.Q_ENTRY]
        kind, latency, size = ins[i, r.I_KIND], ins[i, r.I_LATENCY], ins[i, r.I_BYTES]
        detail = entries[entry] >> p.DETAIL_SHIFT if entry >= 0 else 0
        wavefronts, occupied, tagged = 1, 0, False
        done, read = t + latency, t + _ADDRESS_READ
        if kind == c.SHARED_LOAD or kind == c.SHARED_STORE or kind == c.SHARED_ATOMIC:
            wavefronts = max(detail, 1)
            done += k[st.K_WAVEFRONT] * (wavefronts - 1)
            if kind == c.SHARED_STORE:
                occupied = k[st.K_STORE_EXTRA] * (1 + size // 4)
                read = t + _DATA_READ + k[st.K_WAVEFRONT] * (wavefronts - 1)
            elif kind == c.SHARED_ATOMIC:
                occupied = 2 * k[st.K_STORE_EXTRA]
        elif kind == c.ADU:  # goes through the same queue to another unit
            wavefronts, read = 0, done
            sm[st.M_ADU_FREE] = t + k[st.K_ADU_INTERVAL]
            busy[s, c.ADU_PIPE] += ins[i, r.I_INTERVAL]
        elif kind == c.COMMIT:
            wavefronts = 0
            groups[w, warps[w, st.W_SERVED] % st.GROUPS] = max(warps[w, st.W_COPIES], t + k[st.K_COMMIT])
            warps[w, st.W_SERVED] += 1
        elif kind == c.GLOBAL_LOAD or kind == c.COPY:
            argument = ins[i, r.I_ARGUMENT]
            start = max(t, sm[st.M_TAG_FREE] // PARTS)
            sectors, pending, come = 0, 0, start
            for j in range(detail):
                word = entries[entry + 1 + j]
                mask = word >> p.SECTOR_SHIFT & 15
                sectors += sectors_of(mask)
                line = word >> p.LINE_SHIFT
                if argument & r.LOCAL_SPACE:  # each resident CTA has its own
                    line += w // per_cta << 32
                there = fetch(line, mask, start, argument & r.BYPASS_L1 == 0, k, sm, lines, touched)
                come = max(come, there)
                pending += there > start
                if argument & r.LAST_USE:
                    forget(line, k, lines)
            # tags are looked up two lines a cycle, but what is not there yet takes one; data come a line a cycle
            length = max(PARTS + (detail > 1) * detail * PARTS // 2, sectors * PARTS // 4, pending * PARTS)
            if kind == c.GLOBAL_LOAD and pending > 0:  # each line that it had to wait for is handed over in a cycle of its own
                sm[st.M_RETURN_FREE] = max(sm[st.M_RETURN_FREE], come) + pending
                come = sm[st.M_RETURN_FREE]
            done = come + latency + (2 * (size // 4 - 2) if size > 8 else 0)
            occupied = 2 * k[st.K_STORE_EXTRA]
            if kind == c.COPY:
                # of a copy, each piece of a line of shared memory that a line of global memory goes to
                if detail:
                    said = entries[entry - 1] >> p.DETAIL_SHIFT
                    again = (said >> p.FILL_BITS) - sectors
                    length = max(length, (said & (1 << p.FILL_BITS) - 1) * PARTS)
                    sm[st.M_L2_BUS] += again * k[st.K_L2_SECTOR]
                    sm[st.M_L2_SHARE] += again * k[st.K_SHARE_SECTOR]
                    sm[st.M_SECTORS_READ] += again
                warps[w, st.W_COPIES] = max(warps[w, st.W_COPIES], done + length // PARTS)
                done = t + _ADDRESS_READ
                occupied = 3 * k[st.K_STORE_EXTRA]
            sm[st.M_TAG_FREE] = max(sm[st.M_TAG_FREE], t * PARTS) + length
            tagged = True
        elif kind == c.GLOBAL_STORE:
            local = ins[i, r.I_ARGUMENT] & r.LOCAL_SPACE != 0
            sectors = 0
            for j in range(detail):
                word = entries[entry + 1 + j]
                mask = word >> p.SECTOR_SHIFT & 15
                sectors += sectors_of(mask)
                if local:
                    keep_stored((word >> p.LINE_SHIFT) + (w // per_cta << 32), mask, t, k, sm, lines)
            if sectors:
                send_stored(sectors, local, t, k, sm)
            occupied = max(3 * k[st.K_STORE_EXTRA], size)
            read = t + _DATA_READ
            tagged = True
            ctas[w // per_cta, st.C_STORED] = max(ctas[w // per_cta, st.C_STORED], sm[st.M_TAG_FREE] // PARTS)
        elif kind == c.GLOBAL_ATOMIC:
            occupied = 2 * k[st.K_STORE_EXTRA]
            sm[st.M_L2_BUS] = max(sm[st.M_L2_BUS], t * PARTS) + detail * PARTS
            done = sm[st.M_L2_BUS] // PARTS + latency
        if tagged:
            tag_ends[sm[st.M_TAGGED] % st.TAG_ENTRIES] = sm[st.M_TAG_FREE] // PARTS
            sm[st.M_TAGGED] += 1
        sm[st.M_LSU_FREE] = max(sm[st.M_LSU_FREE], t + wavefronts)
        subs[s, st.S_LSU_FREE] = t + max(k[st.K_WAVEFRONT] * wavefronts, occupied)
        sm[st.M_WAVEFRONTS] += wavefronts
        busy[s, c.LSU] += wavefronts * PARTS
        warps[w, st.W_QUEUED] -= 1
        subs[s, st.S_WORDS] -= words_of(kind, size)
        board = ins[i, r.I_WRITE_SB]
        if board >= 0:
            boards[w, board, st.B_UNSERVED] -= 1
            boards[w, board, st.B_RELEASED] = max(boards[w, board, st.B_RELEASED], done)
        board = ins[i, r.I_READ_SB]
        if board >= 0:
            boards[w, board, st.B_UNSERVED] -= 1
            boards[w, board, st.B_RELEASED] = max(boards[w, board, st.B_RELEASED], read)
        if warps[w, st.W_ALIVE] and warps[w, st.W_EARLIEST] >= st.NEVER and warps[w, st.W_WAITS_FOR] != st.AT_BARRIER:
            look_again(ins, w, warps, boards, groups)
        subs[s, st.S_WAKE] = min(subs[s, st.S_WAKE], max(t, min(warps[w, st.W_EARLIEST], t + 1)))
        break
    wake = st.NEVER
    for s in range(st.SUBS):
        if subs[s, st.S_HEAD] != subs[s, st.S_TAIL]:
            issued = queues[s, subs[s, st.S_HEAD] % st.QUEUE_ENTRIES, st.Q_TIME]
            wake = min(wake, max(sm[st.M_LSU_FREE], subs[s, st.S_LSU_FREE], issued, t))
    sm[st.M_LSU_WAKE] = wake
