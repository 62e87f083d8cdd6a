"""One SM cycle by cycle: four schedulers, their pipes, the load-store unit, barriers and the way to memory.

What warps do is known (`fasim.warp.path`); the engine says when. It jumps from event to event: a scheduler is looked at when one of its
warps might issue, the load-store unit when an instruction in its queues might start.
"""

from __future__ import annotations

from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.barriers import open_barriers
from fasim.sm.timing.compiled import inlined, merged, njit
from fasim.sm.timing.scheduler import choose, issue
from fasim.sm.timing.state import State
from fasim.sm.timing.unit import serve
from fasim.warp import path as p

#: a warp has not issued a matrix instruction yet
_LONG_AGO = -1000


@inlined
def place_ctas(state: State) -> None:
    """Give the first CTAs their slots."""
    k, ctas, sm = state.k, state.ctas, state.sm
    for slot in range(len(ctas)):
        if sm[st.M_NEXT_CTA] < len(state.streams):
            ctas[slot, st.C_STARTS_AT] = slot * (k[st.K_CTA_SPACING] + k[st.K_STAGGER])
            ctas[slot, st.C_CTA] = sm[st.M_NEXT_CTA]
            sm[st.M_NEXT_CTA] += 1


@inlined
def start_cta(slot: int, t: int, state: State) -> None:
    """The warps of the CTA that has this slot begin."""
    ins, entries, begins, ends = state.ins, state.entries, state.begins, state.ends
    warps, ctas, subs, sm, per_cta = state.warps, state.ctas, state.subs, state.sm, state.per_cta
    cta = ctas[slot, st.C_CTA]
    ctas[slot, st.C_STARTS_AT] = st.NEVER
    ctas[slot, st.C_LIVE] = per_cta
    ctas[slot, st.C_DRAINS], ctas[slot, st.C_STORED] = 0, 0
    state.spans[cta, 0] = t
    state.barriers[slot, :, :] = 0
    for i in range(per_cta):
        w, stream = slot * per_cta + i, state.streams[cta] + i
        warps[w, st.W_POSITION], warps[w, st.W_LIMIT] = begins[stream], ends[stream]
        if begins[stream] >= ends[stream]:  # a warp without threads
            ctas[slot, st.C_LIVE] -= 1
            continue
        pc = entries[begins[stream]] >> p.POSITION_SHIFT & p.POSITION_MASK
        warps[w, st.W_POSITION] += 1
        warps[w, st.W_PC], warps[w, st.W_BLOCK_END] = pc, pc + ins[pc, r.I_LENGTH]
        warps[w, st.W_LINE], warps[w, st.W_ASKED] = pc >> st.CODE_SHIFT, pc >> st.CODE_SHIFT
        warps[w, st.W_ALIVE], warps[w, st.W_WAITS_FOR], warps[w, st.W_HELD] = 1, st.WAIT, 0
        begin = t + i // st.SUBS
        warps[w, st.W_EARLIEST], warps[w, st.W_READY], warps[w, st.W_SINCE] = begin, begin, begin
        warps[w, st.W_MMA_AT], warps[w, st.W_XU_AT] = _LONG_AGO, _LONG_AGO
        warps[w, st.W_QUEUED], warps[w, st.W_COPIES], warps[w, st.W_COMMITTED], warps[w, st.W_SERVED] = 0, 0, 0, 0
        state.boards[w, :, :] = 0
        warps[w, st.W_AGE] = sm[st.M_SEQUENCE]
        sm[st.M_SEQUENCE] += 1
        sub = w % st.SUBS
        subs[sub, st.S_WAKE] = min(subs[sub, st.S_WAKE], begin)


@merged
def start_ctas(t: int, state: State) -> None:
    """The CTAs begin whose time has come."""
    ctas, sm = state.ctas, state.sm
    sm[st.M_START_WAKE] = st.NEVER
    for slot in range(len(ctas)):
        if ctas[slot, st.C_STARTS_AT] > t:
            sm[st.M_START_WAKE] = min(sm[st.M_START_WAKE], ctas[slot, st.C_STARTS_AT])
        else:
            start_cta(slot, t, state)


@inlined
def queued(slot: int, state: State) -> int:
    """Instructions of a CTA that the load-store unit has not begun."""
    count: int = 0
    for w in range(slot * state.per_cta, (slot + 1) * state.per_cta):
        count += state.warps[w, st.W_QUEUED]
    return count


@merged
def end_cta(slot: int, t: int, state: State) -> None:
    """The CTA of a slot is done as soon as its stores have left the SM; the next one follows."""
    k, ctas, sm = state.k, state.ctas, state.sm
    done = max(t, ctas[slot, st.C_STORED])
    state.spans[ctas[slot, st.C_CTA], 1] = done
    sm[st.M_FINISHED] = max(sm[st.M_FINISHED], done)
    sm[st.M_ENDED] += 1
    if sm[st.M_NEXT_CTA] < len(state.streams):
        ctas[slot, st.C_CTA] = sm[st.M_NEXT_CTA]
        sm[st.M_NEXT_CTA] += 1
        start = max(done + k[st.K_CTA_TURNOVER], sm[st.M_LAST_START] + k[st.K_CTA_RATE])
        ctas[slot, st.C_STARTS_AT], sm[st.M_LAST_START] = start, start
        sm[st.M_START_WAKE] = min(sm[st.M_START_WAKE], start)


@inlined
def end_drained(t: int, state: State) -> None:
    """The CTAs end whose warps have, now that the load-store unit has begun all that they issued."""
    ctas, sm = state.ctas, state.sm
    for slot in range(len(ctas)):
        if ctas[slot, st.C_DRAINS] > 0 and queued(slot, state) == 0:
            ctas[slot, st.C_DRAINS] = 0
            sm[st.M_DRAINING] -= 1
            end_cta(slot, t, state)


@inlined
def let_others_go_on(w: int, i: int, t: int, state: State) -> None:
    """A warp has ended or come to a barrier with its instruction i: its CTA ends, or the others get past a barrier."""
    ctas, slot = state.ctas, w // state.per_cta
    if ctas[slot, st.C_LIVE] > 0:
        open_barriers(w, t, state.ins[i, r.I_LATENCY] if state.warps[w, st.W_ALIVE] else 0, state)
    elif queued(slot, state) > 0:
        ctas[slot, st.C_DRAINS] = 1
        state.sm[st.M_DRAINING] += 1
    else:
        end_cta(slot, t, state)


@inlined
def next_event(state: State) -> int:
    """The earliest cycle at which something is to be looked at."""
    sm, subs = state.sm, state.subs
    t: int = min(sm[st.M_LSU_WAKE], sm[st.M_START_WAKE])
    for s in range(st.SUBS):
        t = min(t, subs[s, st.S_WAKE])
    return t


@njit
def run_sm(state: State) -> int:
    """Run all CTAs of `state.streams` on one SM; returns the cycle at which the last one has ended, `state.DEADLOCK` or `STRAY_ACCESS`."""
    warps, subs, sm = state.warps, state.subs, state.sm
    place_ctas(state)
    while sm[st.M_ENDED] < len(state.streams):
        t = next_event(state)
        if t >= st.NEVER:
            return st.DEADLOCK
        if sm[st.M_START_WAKE] <= t:
            start_ctas(t, state)
        if sm[st.M_LSU_WAKE] <= t:
            serve(t, state)
            if sm[st.M_DRAINING] > 0:
                end_drained(t, state)
        for s in range(st.SUBS):
            if subs[s, st.S_WAKE] > t:
                continue
            w = choose(s, t, state)
            if w < 0:
                continue
            i = warps[w, st.W_PC]
            if issue(s, w, t, state):
                if sm[st.M_FAULT] < 0:
                    return st.STRAY_ACCESS
                let_others_go_on(w, i, t, state)
    finished: int = sm[st.M_FINISHED]
    return finished
