"""The scheduler of a sub-partition: which warp issues, what that takes, and what the warp does next.

It goes on with the warp that issued last as long as that can issue, else it takes the youngest that can. Math that has been selected keeps
other math out until its registers can be read; what needs no registers, or goes to the load-store unit, passes it.
"""

from __future__ import annotations

from fasim.sm.timing import classes as c
from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.compiled import inlined
from fasim.sm.timing.record import PARTS
from fasim.sm.timing.state import Array
from fasim.sm.timing.waiting import look_again, words_of
from fasim.warp import path as p

_TYPE, _POSITION = (1 << p.TYPE_BITS) - 1, (1 << p.POSITION_BITS) - 1
#: cycles until the operand of an instruction of the XU has been read
_OPERAND_READ = 8
#: from the end of a CTA's last warp at a barrier, if that frees the others
_FREED_BY_EXIT = 14


@inlined
def choose(s: int, t: int, ins: Array, k: Array, warps: Array, subs: Array, members: Array, pipes: Array) -> int:
    """The warp that issues, -1 if none can; then the scheduler sleeps until one might."""
    chosen, chosen_age, again = -1, -1, st.NEVER
    for m in range(subs[s, st.S_MEMBERS]):
        w = members[s, m]
        if warps[w, st.W_EARLIEST] > t:
            again = min(again, warps[w, st.W_EARLIEST])
            continue
        i = warps[w, st.W_PC]
        can, why = t, st.NOT_SELECTED
        pipe = ins[i, r.I_PIPE]
        if pipe == c.LSU or pipe == c.ADU_PIPE or ins[i, r.I_KIND] == c.COMMIT:
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
def account(i: int, w: int, t: int, warps: Array, stalls: Array) -> None:
    """What a warp has waited for before it issued."""
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
def take_pipe(s: int, i: int, w: int, sent: int, ins: Array, warps: Array, pipes: Array, busy: Array) -> None:
    """The pipe of an instruction that is not for the load-store unit."""
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
def enqueue(
    s: int, i: int, w: int, t: int, ins: Array, entries: Array, warps: Array, boards: Array, subs: Array, queues: Array, sm: Array
) -> None:
    """Put an instruction into the queue of the load-store unit, with the entry that says where it goes."""
    kind, entry, position = ins[i, r.I_KIND], -1, warps[w, st.W_POSITION]
    if position < warps[w, st.W_LIMIT]:
        word = entries[position]
        type_ = word & _TYPE
        if (type_ == p.SHARED_ACCESS or type_ == p.GLOBAL_ACCESS) and word >> p.POSITION_SHIFT & _POSITION == i:
            entry = position
            if kind == c.COPY:  # what its data take stands before where they come from
                entry += 1
                word = entries[entry]
                type_ = word & _TYPE
            warps[w, st.W_POSITION] = entry + 1 + (word >> p.DETAIL_SHIFT if type_ == p.GLOBAL_ACCESS else 0)
    at = subs[s, st.S_TAIL] % st.QUEUE_ENTRIES
    queues[s, at, st.Q_WARP], queues[s, at, st.Q_PC], queues[s, at, st.Q_ENTRY], queues[s, at, st.Q_TIME] = w, i, entry, t
    subs[s, st.S_TAIL] += 1
    warps[w, st.W_QUEUED] += 1
    subs[s, st.S_WORDS] += words_of(kind, ins[i, r.I_BYTES])
    if ins[i, r.I_WRITEBACK] > 0:
        subs[s, st.S_MATH_FREE] = max(subs[s, st.S_MATH_FREE], t + 1) + ins[i, r.I_WRITEBACK]
    slow = kind == c.GLOBAL_LOAD or kind == c.COPY or kind == c.GLOBAL_ATOMIC
    for which in range(2):
        board = ins[i, r.I_WRITE_SB if which == 0 else r.I_READ_SB]
        if board >= 0:
            boards[w, board, st.B_UNSERVED] += 1
            boards[w, board, st.B_LONG] = slow
    if kind == c.COMMIT:
        warps[w, st.W_COMMITTED] += 1
    sm[st.M_LSU_WAKE] = min(sm[st.M_LSU_WAKE], max(t, sm[st.M_LSU_FREE], subs[s, st.S_LSU_FREE]))


@inlined
def set_boards(i: int, w: int, done: int, read: int, ins: Array, boards: Array) -> None:
    """Scoreboards of an instruction whose times are known when it issues."""
    for which in range(2):
        board = ins[i, r.I_WRITE_SB if which == 0 else r.I_READ_SB]
        if board >= 0:
            boards[w, board, st.B_RELEASED] = max(boards[w, board, st.B_RELEASED], done if which == 0 else read)
            boards[w, board, st.B_LONG] = 0


@inlined
def next_instruction(i: int, w: int, ins: Array, entries: Array, warps: Array, sm: Array) -> bool:
    """Move a warp on; False if it has ended."""
    if i + 1 < warps[w, st.W_BLOCK_END]:
        warps[w, st.W_PC] = i + 1
        return True
    if warps[w, st.W_POSITION] >= warps[w, st.W_LIMIT]:
        return False
    word = entries[warps[w, st.W_POSITION]]
    if word & _TYPE != p.BLOCK:
        sm[st.M_FAULT] = -2  # an access that no instruction made
        return False
    warps[w, st.W_POSITION] += 1
    pc = word >> p.POSITION_SHIFT & _POSITION
    warps[w, st.W_PC] = pc
    warps[w, st.W_BLOCK_END] = pc + ins[pc, r.I_LENGTH]
    return True


@inlined
def fetch_line(s: int, line: int, t: int, k: Array, sm: Array, code: Array) -> int:
    """When a sub-partition has a line of machine code; of those that it and the SM keep, the first in is the first out."""
    stamp = code[s, 1 + line]
    if stamp > 0 and code[s, 0] - stamp < k[st.K_NEAR_CODE]:
        return t
    code[s, 0] += 1
    code[s, 1 + line] = code[s, 0]
    done: int = t + k[st.K_NEAR_MISS]
    if k[st.K_FAR_CODE] > 0:
        stamp = code[st.SUBS, 1 + line]
        if stamp == 0 or code[st.SUBS, 0] - stamp >= k[st.K_FAR_CODE]:
            code[st.SUBS, 0] += 1
            code[st.SUBS, 1 + line] = code[st.SUBS, 0]
            sm[st.M_CODE_FREE] = max(sm[st.M_CODE_FREE], t) + k[st.K_FAR_MISS]
        done = max(done, sm[st.M_CODE_FREE])
    return done


@inlined
def fetch(s: int, w: int, t: int, k: Array, warps: Array, sm: Array, code: Array) -> int:
    """When the next instruction of a warp is there; the line that follows is asked for some instructions before its end."""
    line, then = warps[w, st.W_PC] >> st.CODE_SHIFT, warps[w, st.W_PC] + k[st.K_CODE_AHEAD] >> st.CODE_SHIFT
    there: int = t
    if line != warps[w, st.W_LINE]:
        if line != warps[w, st.W_ASKED]:  # a branch
            warps[w, st.W_ASKED], warps[w, st.W_ASKED_AT] = line, fetch_line(s, line, t, k, sm, code)
        there = max(t, warps[w, st.W_ASKED_AT])
        warps[w, st.W_LINE] = line
    if then != warps[w, st.W_ASKED]:
        warps[w, st.W_ASKED], warps[w, st.W_ASKED_AT] = then, fetch_line(s, then, there, k, sm, code)
    return there


@inlined
def issue(
    s: int,
    w: int,
    t: int,
    per_cta: int,
    ins: Array,
    entries: Array,
    k: Array,
    warps: Array,
    boards: Array,
    groups: Array,
    ctas: Array,
    barriers: Array,
    subs: Array,
    pipes: Array,
    queues: Array,
    sm: Array,
    code: Array,
    stalls: Array,
    busy: Array,
    events: Array,
) -> bool:
    """Issue the next instruction of a warp; whether the warp's CTA may now get past a barrier, or has ended."""
    i = warps[w, st.W_PC]
    kind, pipe = ins[i, r.I_KIND], ins[i, r.I_PIPE]
    subs[s, st.S_LAST] = w
    sent = t
    if ins[i, r.I_SLOTS] > 0:
        ports = max(subs[s, st.S_EVEN_FREE], subs[s, st.S_ODD_FREE]) - k[st.K_DECOUPLING]
        sent = max(sent, subs[s, st.S_MATH_FREE], ports)
        if ins[i, r.I_AFTER_MMA] > 0 and pipe != c.TENSOR:
            sent = max(sent, warps[w, st.W_MMA_AT] + ins[i, r.I_AFTER_MMA])
        if sent > t:
            stalls[i, st.DISPATCH_STALL] += sent - t
        subs[s, st.S_SENT] = sent
        subs[s, st.S_MATH_FREE] = sent + ins[i, r.I_SLOTS]
        subs[s, st.S_EVEN_FREE] = max(subs[s, st.S_EVEN_FREE], sent) + ins[i, r.I_EVEN]
        subs[s, st.S_ODD_FREE] = max(subs[s, st.S_ODD_FREE], sent) + ins[i, r.I_ODD]
    subs[s, st.S_WAKE] = t + 1
    account(i, w, t, warps, stalls)
    warps[w, st.W_SINCE] = sent + 1
    sm[st.M_INSTRUCTIONS] += 1
    if sm[st.M_EVENTS] < len(events):
        at = sm[st.M_EVENTS]
        events[at, 0], events[at, 1], events[at, 2], events[at, 3] = t, s, w, i
        events[at, 4] = ctas[w // per_cta, st.C_CTA]
        sm[st.M_EVENTS] += 1
    wait = max(ins[i, r.I_STALL], 1)
    if wait == 1 and ins[i, r.I_YIELDS]:
        wait = 2
    ready = sent + wait
    warps[w, st.W_WAITS_FOR] = st.WAIT
    arrives = False
    if pipe == c.LSU or pipe == c.ADU_PIPE or kind == c.COMMIT:
        enqueue(s, i, w, t, ins, entries, warps, boards, subs, queues, sm)
    elif pipe != c.NONE:
        take_pipe(s, i, w, sent, ins, warps, pipes, busy)
    if kind == c.XU:
        subs[s, st.S_MATH_FREE] = max(subs[s, st.S_MATH_FREE], sent + 1) + ins[i, r.I_WRITEBACK]
        set_boards(i, w, warps[w, st.W_XU_AT] + ins[i, r.I_LATENCY], t + _OPERAND_READ, ins, boards)
    elif kind == c.FENCE:
        ready = max(ready, t + k[st.K_L2_LATENCY])
        warps[w, st.W_WAITS_FOR] = st.MEMBAR
    elif kind == c.CONVERGE:
        ready = max(ready, t + ins[i, r.I_LATENCY])
    elif kind == c.BARRIER and warps[w, st.W_POSITION] < warps[w, st.W_LIMIT]:
        word = entries[warps[w, st.W_POSITION]]
        if word & _TYPE == p.BARRIER_ENTRY:
            warps[w, st.W_POSITION] += 1
            number, expected = word >> p.DETAIL_SHIFT & st.BARRIERS - 1, word >> p.DETAIL_SHIFT + 4
            barriers[w // per_cta, number, 0] += 1
            barriers[w // per_cta, number, 1] = expected
            arrives = ins[i, r.I_BARRIER_OP] == 0
            if arrives:
                warps[w, st.W_WAITS_FOR] = st.AT_BARRIER
                warps[w, st.W_HELD_BY] = number
    goes_on = next_instruction(i, w, ins, entries, warps, sm)
    if goes_on and warps[w, st.W_PC] != i + 1:
        if kind == c.BRANCH:
            ready = max(ready, t + ins[i, r.I_LATENCY])
        if not arrives:
            warps[w, st.W_WAITS_FOR] = st.BRANCH_RESOLVING
    if k[st.K_NEAR_CODE] > 0 and goes_on:
        fetched = fetch(s, w, t + 1, k, warps, sm, code)
        if fetched > ready:
            ready = fetched
            if not arrives:
                warps[w, st.W_WAITS_FOR] = st.NO_INSTRUCTION
    warps[w, st.W_READY] = ready
    if not goes_on:
        warps[w, st.W_ALIVE] = 0
        ctas[w // per_cta, st.C_LIVE] -= 1
    if arrives or not goes_on:
        warps[w, st.W_EARLIEST] = st.NEVER
    else:
        look_again(ins, w, warps, boards, groups)
    return kind == c.BARRIER or not goes_on


@inlined
def open_barriers(
    w: int, t: int, latency: int, per_cta: int, ins: Array, k: Array, warps: Array, boards: Array, groups: Array, ctas: Array,
    barriers: Array, subs: Array,
) -> None:  # fmt: skip
    """Let the warps of a CTA go on whose barrier all have reached; latency: of the BAR that was last, 0 if a warp has ended."""
    cta = w // per_cta
    for number in range(st.BARRIERS):
        expected = barriers[cta, number, 1] if barriers[cta, number, 1] > 0 else ctas[cta, st.C_LIVE]
        if barriers[cta, number, 0] == 0 or barriers[cta, number, 0] < expected:
            continue
        barriers[cta, number, 0] = 0
        order = 0
        for other in range(cta * per_cta, cta * per_cta + per_cta):
            waits = warps[other, st.W_WAITS_FOR] == st.AT_BARRIER and warps[other, st.W_EARLIEST] >= st.NEVER
            if warps[other, st.W_ALIVE] and waits and warps[other, st.W_HELD_BY] == number:
                warps[other, st.W_HELD] = 0
                released = t + (latency + k[st.K_BARRIER_EACH] * order if latency else _FREED_BY_EXIT)
                stalled = warps[other, st.W_READY]
                look_again(ins, other, warps, boards, groups)
                if warps[other, st.W_EARLIEST] <= max(stalled, released):
                    warps[other, st.W_EARLIEST] = max(stalled, released)
                    warps[other, st.W_WAITS_FOR] = st.AT_BARRIER
                if warps[other, st.W_EARLIEST] < st.NEVER:
                    sub = other % st.SUBS
                    # a scheduler that has had its turn in this cycle has the next one in the next
                    subs[sub, st.S_WAKE] = min(subs[sub, st.S_WAKE], max(warps[other, st.W_EARLIEST], t + (sub <= w % st.SUBS)))
                order += 1
