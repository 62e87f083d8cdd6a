"""Barriers of CTAs: warps arrive, and go on when all have."""

from __future__ import annotations

from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.compiled import inlined, merged
from fasim.sm.timing.state import State
from fasim.sm.timing.waiting import look_again
from fasim.warp import path as p

#: cycles from the end of a CTA's last warp that has not reached a barrier until the others go on
_FREED_BY_EXIT = 14


@inlined
def arrive(i: int, w: int, state: State) -> bool:
    """A warp reaches the barrier of its BAR; whether it waits there."""
    entries, warps, barriers = state.entries, state.warps, state.barriers
    waits = False
    if warps[w, st.W_POSITION] < warps[w, st.W_LIMIT]:
        word = entries[warps[w, st.W_POSITION]]
        if word & p.TYPE_MASK == p.BARRIER_ENTRY:
            warps[w, st.W_POSITION] += 1
            number, expected = word >> p.DETAIL_SHIFT & st.BARRIERS - 1, word >> p.DETAIL_SHIFT + 4
            barriers[w // state.per_cta, number, 0] += 1
            barriers[w // state.per_cta, number, 1] = expected
            waits = state.ins[i, r.I_BARRIER_OP] == 0
            if waits:
                warps[w, st.W_WAITS_FOR] = st.AT_BARRIER
                warps[w, st.W_BARRIER] = number
    return waits


@merged
def open_barriers(w: int, t: int, latency: int, state: State) -> None:
    """Let the warps of a CTA go on whose barrier all have reached; w: the last one there, or that has ended.

    latency: of the BAR, 0 if the warp has ended.
    """
    k, warps, barriers, subs, per_cta = state.k, state.warps, state.barriers, state.subs, state.per_cta
    cta = w // per_cta
    for number in range(st.BARRIERS):
        expected = barriers[cta, number, 1] if barriers[cta, number, 1] > 0 else state.ctas[cta, st.C_LIVE]
        if barriers[cta, number, 0] == 0 or barriers[cta, number, 0] < expected:
            continue
        barriers[cta, number, 0] = 0
        order = 0
        for other in range(cta * per_cta, cta * per_cta + per_cta):
            waits = warps[other, st.W_WAITS_FOR] == st.AT_BARRIER and warps[other, st.W_EARLIEST] >= st.NEVER
            if warps[other, st.W_ALIVE] and waits and warps[other, st.W_BARRIER] == number:
                warps[other, st.W_HELD] = 0
                released = t + (latency + k[st.K_BARRIER_EACH] * order if latency else _FREED_BY_EXIT)
                stalled = warps[other, st.W_READY]
                look_again(other, state)
                if warps[other, st.W_EARLIEST] <= max(stalled, released):
                    warps[other, st.W_EARLIEST] = max(stalled, released)
                    warps[other, st.W_WAITS_FOR] = st.AT_BARRIER
                if warps[other, st.W_EARLIEST] < st.NEVER:
                    sub = other % st.SUBS
                    # a scheduler that has had its turn in this cycle has the next one in the next
                    subs[sub, st.S_WAKE] = min(subs[sub, st.S_WAKE], max(warps[other, st.W_EARLIEST], t + (sub <= w % st.SUBS)))
                order += 1
