"""One SM cycle by cycle: four schedulers, their pipes, the load-store unit, barriers and the way to memory.

What warps do is known (`fasim.warp.path`); the engine says when. It jumps from event to event: a scheduler is looked at when one of its
warps might issue, the load-store unit when an instruction in its queues might start.
"""

from __future__ import annotations

from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.compiled import inlined, njit
from fasim.sm.timing.scheduler import choose, issue, open_barriers
from fasim.sm.timing.state import Array
from fasim.sm.timing.unit import serve
from fasim.warp import path as p

#: a warp has not issued a matrix instruction yet
_LONG_AGO = -1000
#: what `run_sm` returns instead of a cycle
DEADLOCK, STRAY_ACCESS = -1, -2


@inlined
def start_cta(
    slot: int, t: int, per_cta: int, ins: Array, entries: Array, begins: Array, ends: Array, streams: Array, warps: Array, boards: Array,
    ctas: Array, barriers: Array, subs: Array, sm: Array, spans: Array,
) -> None:  # fmt: skip
    """The warps of the CTA that has this slot begin."""
    cta = ctas[slot, st.C_CTA]
    ctas[slot, st.C_STARTS_AT] = st.NEVER
    ctas[slot, st.C_LIVE] = per_cta
    ctas[slot, st.C_DRAINS], ctas[slot, st.C_STORED] = 0, 0
    spans[cta, 0] = t
    barriers[slot, :, :] = 0
    for i in range(per_cta):
        w, stream = slot * per_cta + i, streams[cta] + i
        warps[w, st.W_POSITION], warps[w, st.W_LIMIT] = begins[stream], ends[stream]
        if begins[stream] >= ends[stream]:  # a warp without threads
            ctas[slot, st.C_LIVE] -= 1
            continue
        pc = entries[begins[stream]] >> p.POSITION_SHIFT & (1 << p.POSITION_BITS) - 1
        warps[w, st.W_POSITION] += 1
        warps[w, st.W_PC], warps[w, st.W_BLOCK_END] = pc, pc + ins[pc, r.I_LENGTH]
        warps[w, st.W_LINE], warps[w, st.W_ASKED] = pc >> st.CODE_SHIFT, pc >> st.CODE_SHIFT
        warps[w, st.W_ALIVE], warps[w, st.W_WAITS_FOR], warps[w, st.W_HELD] = 1, st.WAIT, 0
        begin = t + i // st.SUBS
        warps[w, st.W_EARLIEST], warps[w, st.W_READY], warps[w, st.W_SINCE] = begin, begin, begin
        warps[w, st.W_MMA_AT], warps[w, st.W_XU_AT] = _LONG_AGO, _LONG_AGO
        warps[w, st.W_QUEUED], warps[w, st.W_COPIES], warps[w, st.W_COMMITTED], warps[w, st.W_SERVED] = 0, 0, 0, 0
        boards[w, :, :] = 0
        warps[w, st.W_AGE] = sm[st.M_SEQUENCE]
        sm[st.M_SEQUENCE] += 1
        sub = w % st.SUBS
        subs[sub, st.S_WAKE] = min(subs[sub, st.S_WAKE], begin)


@inlined
def end_cta(slot: int, t: int, count: int, k: Array, ctas: Array, sm: Array, spans: Array) -> None:
    """The CTA of a slot is done as soon as its stores have left the SM; the next one follows."""
    done = max(t, ctas[slot, st.C_STORED])
    spans[ctas[slot, st.C_CTA], 1] = done
    sm[st.M_FINISHED] = max(sm[st.M_FINISHED], done)
    sm[st.M_ENDED] += 1
    if sm[st.M_NEXT_CTA] < count:
        ctas[slot, st.C_CTA] = sm[st.M_NEXT_CTA]
        sm[st.M_NEXT_CTA] += 1
        start = max(done + k[st.K_CTA_TURNOVER], sm[st.M_LAST_START] + k[st.K_CTA_RATE])
        ctas[slot, st.C_STARTS_AT], sm[st.M_LAST_START] = start, start
        sm[st.M_START_WAKE] = min(sm[st.M_START_WAKE], start)


@inlined
def queued(slot: int, per_cta: int, warps: Array) -> int:
    """Instructions of a CTA that the load-store unit has not begun."""
    count: int = 0
    for w in range(slot * per_cta, slot * per_cta + per_cta):
        count += warps[w, st.W_QUEUED]
    return count


@njit
def run_sm(
    ins: Array,
    entries: Array,
    begins: Array,
    ends: Array,
    streams: Array,
    per_cta: int,
    k: Array,
    buffers: tuple[Array, ...],
    stalls: Array,
    busy: Array,
    spans: Array,
    events: Array,
) -> int:
    """Run CTAs on one SM; returns the cycle at which the last one has ended, DEADLOCK or STRAY_ACCESS.

    ins: see `record`. entries: what warps executed; warp i of the CTA c: entries[begins[streams[c] + i]:ends[streams[c] + i]].
    k: `state.CONSTANTS`. buffers: of `state.buffers`. Results: stalls[n, STALLS] warp cycles by instruction; busy[4, PIPES] parts of
    cycles; spans[ctas, 2] first and last cycle; events[m, 5]: of the first m instructions cycle, sub-partition, warp slot, instruction,
    CTA.
    """
    warps, boards, groups, ctas, barriers, subs, members, pipes, queues, sm, tag_ends, lines, touched, code = buffers
    count = len(streams)
    for slot in range(len(ctas)):
        if sm[st.M_NEXT_CTA] < count:
            ctas[slot, st.C_STARTS_AT] = slot * (k[st.K_CTA_SPACING] + k[st.K_STAGGER])
            ctas[slot, st.C_CTA] = sm[st.M_NEXT_CTA]
            sm[st.M_NEXT_CTA] += 1
    while sm[st.M_ENDED] < count:
        t = min(sm[st.M_LSU_WAKE], sm[st.M_START_WAKE])
        for s in range(st.SUBS):
            t = min(t, subs[s, st.S_WAKE])
        if t >= st.NEVER:
            return DEADLOCK
        if sm[st.M_START_WAKE] <= t:
            sm[st.M_START_WAKE] = st.NEVER
            for slot in range(len(ctas)):
                if ctas[slot, st.C_STARTS_AT] > t:
                    sm[st.M_START_WAKE] = min(sm[st.M_START_WAKE], ctas[slot, st.C_STARTS_AT])
                else:
                    start_cta(slot, t, per_cta, ins, entries, begins, ends, streams, warps, boards, ctas, barriers, subs, sm, spans)
        if sm[st.M_LSU_WAKE] <= t:
            serve(t, ins, entries, per_cta, k, warps, boards, groups, ctas, subs, queues, sm, tag_ends, lines, touched, busy)
            if sm[st.M_DRAINING] > 0:
                for slot in range(len(ctas)):
                    if ctas[slot, st.C_DRAINS] > 0 and queued(slot, per_cta, warps) == 0:
                        ctas[slot, st.C_DRAINS] = 0
                        sm[st.M_DRAINING] -= 1
                        end_cta(slot, t, count, k, ctas, sm, spans)
        for s in range(st.SUBS):
            if subs[s, st.S_WAKE] > t:
                continue
            w = choose(s, t, ins, k, warps, subs, members, pipes)
            if w < 0:
                continue
            i = warps[w, st.W_PC]
            changes = issue(
                s,
                w,
                t,
                per_cta,
                ins,
                entries,
                k,
                warps,
                boards,
                groups,
                ctas,
                barriers,
                subs,
                pipes,
                queues,
                sm,
                code,
                stalls,
                busy,
                events,
            )
            if changes:
                if sm[st.M_FAULT] < 0:
                    fault: int = sm[st.M_FAULT]
                    return fault
                slot = w // per_cta
                if ctas[slot, st.C_LIVE] == 0 and queued(slot, per_cta, warps) > 0:
                    ctas[slot, st.C_DRAINS] = 1
                    sm[st.M_DRAINING] += 1
                elif ctas[slot, st.C_LIVE] == 0:
                    end_cta(slot, t, count, k, ctas, sm, spans)
                else:
                    latency = ins[i, r.I_LATENCY] if warps[w, st.W_ALIVE] else 0
                    open_barriers(w, t, latency, per_cta, ins, k, warps, boards, groups, ctas, barriers, subs)
    finished: int = sm[st.M_FINISHED]
    return finished
