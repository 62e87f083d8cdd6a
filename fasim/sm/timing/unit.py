"""The load-store unit: it takes instructions from the queues of the four sub-partitions in turn, each for as long as its wavefronts.

What it does with each kind of instruction is a function that returns four cycles, or numbers of them: when the result is there, when the
operands have been read, the wavefronts, and for how long the unit takes nothing else of the same sub-partition.
"""

from __future__ import annotations

from fasim.sm.timing import classes as c
from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.compiled import inlined, merged
from fasim.sm.timing.memory import fetch, forget, keep_stored, sectors_of, send_stored
from fasim.sm.timing.record import PARTS
from fasim.sm.timing.state import State
from fasim.sm.timing.waiting import hold_boards, look_again, release_boards
from fasim.warp import path as p

#: cycles until the registers of an instruction have been read: of loads, and of stores with one wavefront
_ADDRESS_READ, _DATA_READ = 8, 11
#: registers: the room that a copy takes in a queue, so that four fill it
_COPY_WORDS = 16


# --- the queue of a sub-partition ------------------------------------------------------------------------------------------------------


@inlined
def words_of(kind: int, size: int) -> int:
    """Room that an instruction takes in a queue, in registers."""
    return _COPY_WORDS if kind == c.COPY else max(size // 4, 1)


@inlined
def enqueue(s: int, i: int, w: int, t: int, state: State) -> None:
    """Put an instruction into the queue, with the entry that says where it goes."""
    ins, entries, warps, subs, queues, sm = state.ins, state.entries, state.warps, state.subs, state.queues, state.sm
    kind, entry, position = ins[i, r.I_KIND], -1, warps[w, st.W_POSITION]
    if position < warps[w, st.W_LIMIT]:
        word = entries[position]
        type_ = word & p.TYPE_MASK
        if (type_ == p.SHARED_ACCESS or type_ == p.GLOBAL_ACCESS) and word >> p.POSITION_SHIFT & p.POSITION_MASK == i:
            entry = position
            if kind == c.COPY:  # what its data take stands before where they come from
                entry += 1
                word = entries[entry]
                type_ = word & p.TYPE_MASK
            warps[w, st.W_POSITION] = entry + 1 + (word >> p.DETAIL_SHIFT if type_ == p.GLOBAL_ACCESS else 0)
    at = subs[s, st.S_TAIL] % st.QUEUE_ENTRIES
    queues[s, at, st.Q_WARP], queues[s, at, st.Q_PC], queues[s, at, st.Q_ENTRY], queues[s, at, st.Q_TIME] = w, i, entry, t
    subs[s, st.S_TAIL] += 1
    warps[w, st.W_QUEUED] += 1
    subs[s, st.S_WORDS] += words_of(kind, ins[i, r.I_BYTES])
    if ins[i, r.I_WRITEBACK] > 0:
        subs[s, st.S_MATH_FREE] = max(subs[s, st.S_MATH_FREE], t + 1) + ins[i, r.I_WRITEBACK]
    hold_boards(i, w, kind == c.GLOBAL_LOAD or kind == c.COPY or kind == c.GLOBAL_ATOMIC, state)
    if kind == c.COMMIT:
        warps[w, st.W_COMMITTED] += 1
    sm[st.M_LSU_WAKE] = min(sm[st.M_LSU_WAKE], max(t, sm[st.M_LSU_FREE], subs[s, st.S_LSU_FREE]))


@inlined
def can_begin(s: int, t: int, state: State) -> bool:
    """Whether the unit can take the first instruction of the queue; where another unit keeps it waiting, what is behind it waits, too."""
    subs, queues, sm = state.subs, state.queues, state.sm
    at = subs[s, st.S_HEAD] % st.QUEUE_ENTRIES
    if subs[s, st.S_HEAD] == subs[s, st.S_TAIL] or subs[s, st.S_LSU_FREE] > t or sm[st.M_LSU_FREE] > t or queues[s, at, st.Q_TIME] > t:
        return False
    kind, free = state.ins[queues[s, at, st.Q_PC], r.I_KIND], t
    if kind == c.GLOBAL_LOAD or kind == c.COPY or kind == c.GLOBAL_STORE:
        free = state.tag_ends[(sm[st.M_TAGGED] - state.k[st.K_TAG_QUEUE]) % st.TAG_ENTRIES]
    elif kind == c.ADU:
        free = sm[st.M_ADU_FREE]
    if free > t:
        subs[s, st.S_LSU_FREE] = free
    return free <= t


# --- the kinds of instructions ---------------------------------------------------------------------------------------------------------


@inlined
def access_shared(i: int, detail: int, t: int, state: State) -> tuple[int, int, int, int]:
    """Shared memory, as often as its banks ask for."""
    ins, k = state.ins, state.k
    wavefronts = max(detail, 1)
    more, read, occupied = k[st.K_WAVEFRONT] * (wavefronts - 1), t + _ADDRESS_READ, 0
    if ins[i, r.I_KIND] == c.SHARED_STORE:
        read = t + _DATA_READ + more
        occupied = k[st.K_STORE_EXTRA] * (1 + ins[i, r.I_BYTES] // 4)
    elif ins[i, r.I_KIND] == c.SHARED_ATOMIC:
        occupied = 2 * k[st.K_STORE_EXTRA]
    return t + ins[i, r.I_LATENCY] + more, read, wavefronts, occupied


@inlined
def pass_to_adu(s: int, i: int, t: int, state: State) -> tuple[int, int, int, int]:
    """Special registers and the like go through the same queue to a unit of their own."""
    done = t + state.ins[i, r.I_LATENCY]
    state.sm[st.M_ADU_FREE] = t + state.k[st.K_ADU_INTERVAL]
    state.busy[s, c.ADU_PIPE] += state.ins[i, r.I_INTERVAL]
    return done, done, 0, 0


@inlined
def commit(w: int, i: int, t: int, state: State) -> tuple[int, int, int, int]:
    """A group of copies is there when the last of the warp's copies is."""
    warps = state.warps
    state.groups[w, warps[w, st.W_SERVED] % st.GROUPS] = max(warps[w, st.W_COPIES], t + state.k[st.K_COMMIT])
    warps[w, st.W_SERVED] += 1
    return t + state.ins[i, r.I_LATENCY], t + _ADDRESS_READ, 0, 0


@merged
def load(w: int, i: int, entry: int, detail: int, t: int, state: State) -> tuple[int, int, int, int]:
    """Global or local memory, read into registers or copied to shared memory."""
    ins, k, warps, sm = state.ins, state.k, state.warps, state.sm
    size = ins[i, r.I_BYTES]
    come, sectors, length = fetch_lines(w, i, entry, detail, max(t, sm[st.M_TAG_FREE] // PARTS), state)
    done = come + ins[i, r.I_LATENCY] + (2 * (size // 4 - 2) if size > 8 else 0)
    occupied = 2 * k[st.K_STORE_EXTRA]
    if ins[i, r.I_KIND] == c.COPY:
        if detail:
            length = max(length, write_copied(entry, sectors, state))
        warps[w, st.W_COPIES] = max(warps[w, st.W_COPIES], done + length // PARTS)
        done = t + _ADDRESS_READ
        occupied = 3 * k[st.K_STORE_EXTRA]
    sm[st.M_TAG_FREE] = max(sm[st.M_TAG_FREE], t * PARTS) + length
    return done, t + _ADDRESS_READ, 1, occupied


@inlined
def fetch_lines(w: int, i: int, entry: int, detail: int, start: int, state: State) -> tuple[int, int, int]:
    """When the last line of an access is there, how many sectors it asks for, and for how long tags are looked up, in parts of a cycle."""
    entries, argument = state.entries, state.ins[i, r.I_ARGUMENT]
    sectors, pending, come = 0, 0, start
    for j in range(detail):
        word = entries[entry + 1 + j]
        mask = word >> p.SECTOR_SHIFT & 15
        sectors += sectors_of(mask)
        line = word >> p.LINE_SHIFT
        if argument & r.LOCAL_SPACE:  # each resident CTA has its own
            line += w // state.per_cta << 32
        there = fetch(line, mask, start, argument & r.BYPASS_L1 == 0, state)
        come = max(come, there)
        pending += there > start
        if argument & r.LAST_USE:
            forget(line, state)
    # tags are looked up two lines a cycle, but what is not there yet takes one; data come a line a cycle
    length = max(PARTS + (detail > 1) * detail * PARTS // 2, sectors * PARTS // 4, pending * PARTS)
    if state.ins[i, r.I_KIND] == c.GLOBAL_LOAD and pending > 0:  # each line that it had to wait for is handed over in a cycle of its own
        state.sm[st.M_RETURN_FREE] = max(state.sm[st.M_RETURN_FREE], come) + pending
        come = state.sm[st.M_RETURN_FREE]
    return come, sectors, length


@inlined
def write_copied(entry: int, sectors: int, state: State) -> int:
    """For how long a copy writes, in parts of a cycle: each piece of a line of shared memory that a line of global memory goes to.

    Sectors that go to two pieces are asked for twice.
    """
    k, sm = state.k, state.sm
    said = state.entries[entry - 1] >> p.DETAIL_SHIFT
    again = (said >> p.FILL_BITS) - sectors
    sm[st.M_L2_BUS] += again * k[st.K_L2_SECTOR]
    sm[st.M_L2_SHARE] += again * k[st.K_SHARE_SECTOR]
    sm[st.M_SECTORS_READ] += again
    length: int = (said & (1 << p.FILL_BITS) - 1) * PARTS
    return length


@merged
def store(w: int, i: int, entry: int, detail: int, t: int, state: State) -> tuple[int, int, int, int]:
    """Global or local memory, written."""
    ins, k, ctas, sm, cta = state.ins, state.k, state.ctas, state.sm, w // state.per_cta
    local = ins[i, r.I_ARGUMENT] & r.LOCAL_SPACE != 0
    sectors, costs = 0, 0
    for j in range(detail):
        word = state.entries[entry + 1 + j]
        mask = word >> p.SECTOR_SHIFT & 15
        sectors += sectors_of(mask)
        costs += max(16 * sectors_of(mask), k[st.K_WRITE_PIECE])
        if local:
            keep_stored((word >> p.LINE_SHIFT) + (cta << 32), mask, t, state)
    if sectors > ins[i, r.I_BYTES]:  # more than all lanes together fill
        send_stored(sectors, k[st.K_PART], max(costs, sectors * k[st.K_WRITE_PART]), local, t, state)
    elif sectors:
        send_stored(sectors, 1, costs, local, t, state)
    ctas[cta, st.C_STORED] = max(ctas[cta, st.C_STORED], sm[st.M_TAG_FREE] // PARTS)
    return t + ins[i, r.I_LATENCY], t + _DATA_READ, 1, max(3 * k[st.K_STORE_EXTRA], ins[i, r.I_BYTES])


@inlined
def operate(i: int, detail: int, t: int, state: State) -> tuple[int, int, int, int]:
    """Atomic operations on global memory, which the L2 carries out."""
    sm = state.sm
    sm[st.M_L2_BUS] = max(sm[st.M_L2_BUS], t * PARTS) + detail * PARTS
    return sm[st.M_L2_BUS] // PARTS + state.ins[i, r.I_LATENCY], t + _ADDRESS_READ, 1, 2 * state.k[st.K_STORE_EXTRA]


# --- the unit --------------------------------------------------------------------------------------------------------------------------


@inlined
def begin(s: int, t: int, state: State) -> None:
    """Take the first instruction of a queue."""
    ins, k, warps, subs, queues, sm = state.ins, state.k, state.warps, state.subs, state.queues, state.sm
    at = subs[s, st.S_HEAD] % st.QUEUE_ENTRIES
    w, i, entry = queues[s, at, st.Q_WARP], queues[s, at, st.Q_PC], queues[s, at, st.Q_ENTRY]
    kind = ins[i, r.I_KIND]
    detail = state.entries[entry] >> p.DETAIL_SHIFT if entry >= 0 else 0
    if kind == c.SHARED_LOAD or kind == c.SHARED_STORE or kind == c.SHARED_ATOMIC:
        done, read, wavefronts, occupied = access_shared(i, detail, t, state)
    elif kind == c.ADU:
        done, read, wavefronts, occupied = pass_to_adu(s, i, t, state)
    elif kind == c.COMMIT:
        done, read, wavefronts, occupied = commit(w, i, t, state)
    elif kind == c.GLOBAL_LOAD or kind == c.COPY:
        done, read, wavefronts, occupied = load(w, i, entry, detail, t, state)
    elif kind == c.GLOBAL_STORE:
        done, read, wavefronts, occupied = store(w, i, entry, detail, t, state)
    elif kind == c.GLOBAL_ATOMIC:
        done, read, wavefronts, occupied = operate(i, detail, t, state)
    else:  # SHUFFLE
        done, read, wavefronts, occupied = t + ins[i, r.I_LATENCY], t + _ADDRESS_READ, 1, 0
    if kind == c.GLOBAL_LOAD or kind == c.COPY or kind == c.GLOBAL_STORE:
        state.tag_ends[sm[st.M_TAGGED] % st.TAG_ENTRIES] = sm[st.M_TAG_FREE] // PARTS
        sm[st.M_TAGGED] += 1
    subs[s, st.S_HEAD] += 1
    subs[s, st.S_LSU_FREE] = t + max(k[st.K_WAVEFRONT] * wavefronts, occupied)
    subs[s, st.S_WORDS] -= words_of(kind, ins[i, r.I_BYTES])
    sm[st.M_LSU_TURN] = s + 1
    sm[st.M_LSU_FREE] = max(sm[st.M_LSU_FREE], t + wavefronts)
    sm[st.M_WAVEFRONTS] += wavefronts
    state.busy[s, c.LSU] += wavefronts * PARTS
    warps[w, st.W_QUEUED] -= 1
    release_boards(i, w, done, read, state)
    if warps[w, st.W_ALIVE] and warps[w, st.W_EARLIEST] >= st.NEVER and warps[w, st.W_WAITS_FOR] != st.AT_BARRIER:
        look_again(w, state)
    # there is room in the queue again
    subs[s, st.S_WAKE] = min(subs[s, st.S_WAKE], max(t, min(warps[w, st.W_EARLIEST], t + 1)))


@merged
def serve(t: int, state: State) -> None:
    """Take an instruction if one is there and the unit is free; then the unit sleeps until it might take another one."""
    subs, queues, sm = state.subs, state.queues, state.sm
    for turn in range(st.SUBS):
        s = (sm[st.M_LSU_TURN] + turn) % st.SUBS
        if can_begin(s, t, state):
            begin(s, t, state)
            break
    wake = st.NEVER
    for s in range(st.SUBS):
        if subs[s, st.S_HEAD] != subs[s, st.S_TAIL]:
            issued = queues[s, subs[s, st.S_HEAD] % st.QUEUE_ENTRIES, st.Q_TIME]
            wake = min(wake, max(sm[st.M_LSU_FREE], subs[s, st.S_LSU_FREE], issued, t))
    sm[st.M_LSU_WAKE] = wake
