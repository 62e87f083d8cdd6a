"""The scheduler of a sub-partition: which warp issues, what that takes, and what the warp does next.

It goes on with the warp that issued last as long as that can issue, else it takes the youngest that can. Math that has been selected keeps
other math out until its registers can be read; what needs no registers, or goes to the load-store unit, passes it.
"""

from __future__ import annotations

from fasim.sm.timing import classes as c
from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.barriers import arrive
from fasim.sm.timing.code import fetch_code
from fasim.sm.timing.compiled import inlined, merged
from fasim.sm.timing.record import PARTS
from fasim.sm.timing.state import State
from fasim.sm.timing.unit import enqueue, words_of
from fasim.sm.timing.waiting import hold_boards, look_again, release_boards
from fasim.warp import path as p

#: cycles until the operand of an instruction of the XU has been read
_OPERAND_READ = 8


@inlined
def is_queued(kind: int, pipe: int) -> bool:
    """Whether an instruction goes through the queue of the load-store unit."""
    return pipe == c.LSU or pipe == c.ADU_PIPE or kind == c.COMMIT


@inlined
def choose(s: int, t: int, state: State) -> int:
    """The warp that issues, -1 if none can; then the scheduler sleeps until one might."""
    ins, k, warps, subs, members, pipes = state.ins, state.k, state.warps, state.subs, state.members, state.pipes
    chosen, chosen_age, again = -1, -1, st.NEVER
    for m in range(subs[s, st.S_MEMBERS]):
        w = members[s, m]
        if warps[w, st.W_EARLIEST] > t:
            again = min(again, warps[w, st.W_EARLIEST])
            continue
        i = warps[w, st.W_PC]
        can, why = t, st.NOT_SELECTED
        pipe = ins[i, r.I_PIPE]
        if is_queued(ins[i, r.I_KIND], pipe):
            words = words_of(ins[i, r.I_KIND], ins[i, r.I_BYTES])
            waiting = subs[s, st.S_WORDS]
            if warps[w, st.W_QUEUED] >= k[st.K_WARP_ENTRIES] or (waiting > 0 and waiting + words > k[st.K_QUEUE_WORDS]):
                can = st.NEVER  # until the unit takes one
                why = st.LG_THROTTLE if ins[i, r.I_KIND] >= c.GLOBAL_LOAD else st.MIO_THROTTLE
        elif pipe != c.NONE:
            free = pipes[s, pipe]
            if ins[i, r.I_BOTH] == r.EITHER_HALF:
                free = min(free, pipes[s, c.FMA_LITE])
            elif ins[i, r.I_BOTH] == r.BOTH_HALVES:
                free = max(free, pipes[s, c.FMA_LITE])
            if pipe == c.XU_PIPE or pipe == c.TENSOR:  # a warp has one in the queue
                begun = warps[w, st.W_XU_AT if pipe == c.XU_PIPE else st.W_MMA_AT]
                free = (begun - k[st.K_AHEAD]) * PARTS + ins[i, r.I_INTERVAL]
            if free // PARTS > can:
                can = free // PARTS
                why = st.MIO_THROTTLE if pipe == c.XU_PIPE else st.MATH_PIPE_THROTTLE
        if ins[i, r.I_SLOTS] > 0 and subs[s, st.S_SENT] >= can:
            can, why = subs[s, st.S_SENT] + 1, st.DISPATCH_STALL
        if can > t:
            again = min(again, can)
            warps[w, st.W_HELD], warps[w, st.W_HELD_BY] = t + 1 if can >= st.NEVER else can, why
            continue
        if w == subs[s, st.S_LAST]:
            chosen = w
            break
        if warps[w, st.W_AGE] > chosen_age:
            chosen, chosen_age = w, warps[w, st.W_AGE]
    if chosen < 0:
        subs[s, st.S_WAKE] = again
    return chosen


@inlined
def account(i: int, w: int, t: int, state: State) -> None:
    """What a warp has waited for before it issued."""
    warps, stalls = state.warps, state.stalls
    stalls[i, st.SELECTED] += 1
    begun, waits_for = warps[w, st.W_SINCE], warps[w, st.W_WAITS_FOR]
    until = min(warps[w, st.W_READY], t)
    if until > begun:
        named = waits_for == st.BRANCH_RESOLVING or waits_for == st.NO_INSTRUCTION
        stalls[i, waits_for if named else st.WAIT] += until - begun
        begun = until
    until = min(warps[w, st.W_EARLIEST], t)
    if until > begun:
        stalls[i, waits_for] += until - begun
        begun = until
    until = min(warps[w, st.W_HELD], t)
    if until > begun:
        stalls[i, warps[w, st.W_HELD_BY]] += until - begun
        begun = until
    if t > begun:
        stalls[i, st.NOT_SELECTED] += t - begun
    warps[w, st.W_HELD] = 0


@inlined
def take_pipe(s: int, i: int, w: int, sent: int, state: State) -> None:
    """The pipe of an instruction that is not for the load-store unit."""
    ins, warps, pipes, busy = state.ins, state.warps, state.pipes, state.busy
    pipe, interval, now = ins[i, r.I_PIPE], ins[i, r.I_INTERVAL], sent * PARTS
    if ins[i, r.I_BOTH] == r.EITHER_HALF:
        half = c.FMA_HEAVY if pipes[s, c.FMA_HEAVY] < pipes[s, c.FMA_LITE] else c.FMA_LITE
        busy[s, half] += interval
        pipes[s, half] = max(pipes[s, half], now) + interval
    elif ins[i, r.I_BOTH] == r.BOTH_HALVES:
        busy[s, c.FMA_HEAVY] += interval
        busy[s, c.FMA_LITE] += interval
        pipes[s, c.FMA_HEAVY] = max(pipes[s, c.FMA_HEAVY], pipes[s, c.FMA_LITE], now) + interval
        pipes[s, c.FMA_LITE] = pipes[s, c.FMA_HEAVY]
    else:
        busy[s, pipe] += interval
        pipes[s, pipe] = max(pipes[s, pipe], now) + interval
    if pipe == c.TENSOR:
        warps[w, st.W_MMA_AT] = max(sent, (pipes[s, c.TENSOR] - interval) // PARTS)
    elif pipe == c.XU_PIPE:
        warps[w, st.W_XU_AT] = max(sent, (pipes[s, c.XU_PIPE] - interval) // PARTS)


@inlined
def next_instruction(i: int, w: int, state: State) -> bool:
    """Move a warp on; False if it has ended."""
    ins, entries, warps = state.ins, state.entries, state.warps
    if i + 1 < warps[w, st.W_BLOCK_END]:
        warps[w, st.W_PC] = i + 1
        return True
    if warps[w, st.W_POSITION] >= warps[w, st.W_LIMIT]:
        return False
    word = entries[warps[w, st.W_POSITION]]
    if word & p.TYPE_MASK != p.BLOCK:
        state.sm[st.M_FAULT] = st.STRAY_ACCESS  # an access that no instruction made
        return False
    warps[w, st.W_POSITION] += 1
    pc = word >> p.POSITION_SHIFT & p.POSITION_MASK
    warps[w, st.W_PC] = pc
    warps[w, st.W_BLOCK_END] = pc + ins[pc, r.I_LENGTH]
    return True


@inlined
def dispatch(s: int, i: int, w: int, t: int, state: State) -> int:
    """When an instruction leaves for its pipe: math does when the ports to its registers are free, other instructions at once."""
    ins, subs = state.ins, state.subs
    sent: int = t
    if ins[i, r.I_SLOTS] > 0:
        ports = max(subs[s, st.S_EVEN_FREE], subs[s, st.S_ODD_FREE]) - state.k[st.K_DECOUPLING]
        sent = max(sent, subs[s, st.S_MATH_FREE], ports)
        if ins[i, r.I_AFTER_MMA] > 0 and ins[i, r.I_PIPE] != c.TENSOR:
            sent = max(sent, state.warps[w, st.W_MMA_AT] + ins[i, r.I_AFTER_MMA])
        if sent > t:
            state.stalls[i, st.DISPATCH_STALL] += sent - t
        subs[s, st.S_SENT] = sent
        subs[s, st.S_MATH_FREE] = sent + ins[i, r.I_SLOTS]
        subs[s, st.S_EVEN_FREE] = max(subs[s, st.S_EVEN_FREE], sent) + ins[i, r.I_EVEN]
        subs[s, st.S_ODD_FREE] = max(subs[s, st.S_ODD_FREE], sent) + ins[i, r.I_ODD]
    return sent


@inlined
def log(s: int, i: int, w: int, t: int, state: State) -> None:
    """Count an instruction, and note it if it is one of the first."""
    sm, events = state.sm, state.events
    sm[st.M_INSTRUCTIONS] += 1
    if sm[st.M_EVENTS] < len(events):
        at = sm[st.M_EVENTS]
        events[at, 0], events[at, 1], events[at, 2], events[at, 3] = t, s, w, i
        events[at, 4] = state.ctas[w // state.per_cta, st.C_CTA]
        sm[st.M_EVENTS] += 1


@merged
def issue(s: int, w: int, t: int, state: State) -> bool:
    """Issue the next instruction of a warp; whether the warp's CTA may now get past a barrier, or has ended."""
    ins, k, warps, subs = state.ins, state.k, state.warps, state.subs
    i = warps[w, st.W_PC]
    kind, pipe = ins[i, r.I_KIND], ins[i, r.I_PIPE]
    subs[s, st.S_LAST] = w
    subs[s, st.S_WAKE] = t + 1
    sent = dispatch(s, i, w, t, state)
    account(i, w, t, state)
    log(s, i, w, t, state)
    wait = max(ins[i, r.I_STALL], 1)
    if wait == 1 and ins[i, r.I_YIELDS]:
        wait = 2
    ready = sent + wait
    warps[w, st.W_SINCE] = sent + 1
    warps[w, st.W_WAITS_FOR] = st.WAIT
    if is_queued(kind, pipe):
        enqueue(s, i, w, t, state)
    elif pipe != c.NONE:
        take_pipe(s, i, w, sent, state)
    at_barrier = False
    if kind == c.XU:
        subs[s, st.S_MATH_FREE] = max(subs[s, st.S_MATH_FREE], sent + 1) + ins[i, r.I_WRITEBACK]
        hold_boards(i, w, False, state)
        release_boards(i, w, warps[w, st.W_XU_AT] + ins[i, r.I_LATENCY], t + _OPERAND_READ, state)
    elif kind == c.FENCE:
        ready = max(ready, t + k[st.K_L2_LATENCY])
        warps[w, st.W_WAITS_FOR] = st.MEMBAR
    elif kind == c.CONVERGE:
        ready = max(ready, t + ins[i, r.I_LATENCY])
    elif kind == c.BARRIER:
        at_barrier = arrive(i, w, state)
    goes_on = next_instruction(i, w, state)
    if goes_on and warps[w, st.W_PC] != i + 1:
        if kind == c.BRANCH:
            ready = max(ready, t + ins[i, r.I_LATENCY])
        if not at_barrier:
            warps[w, st.W_WAITS_FOR] = st.BRANCH_RESOLVING
    if k[st.K_NEAR_CODE] > 0 and goes_on:
        fetched = fetch_code(s, w, t + 1, state)
        if fetched > ready:
            ready = fetched
            if not at_barrier:
                warps[w, st.W_WAITS_FOR] = st.NO_INSTRUCTION
    warps[w, st.W_READY] = ready
    if not goes_on:
        warps[w, st.W_ALIVE] = 0
        state.ctas[w // state.per_cta, st.C_LIVE] -= 1
    if at_barrier or not goes_on:
        warps[w, st.W_EARLIEST] = st.NEVER
    else:
        look_again(w, state)
    return kind == c.BARRIER or not goes_on
