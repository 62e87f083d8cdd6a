"""One SM cycle by cycle: four schedulers, their pipes, the load-store unit, barriers and the way to memory.

What warps do is known (`record`); the engine says when. It jumps from event to event: a scheduler is looked at when one of its warps might
issue, the load-store unit when an instruction in its queues might start.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.sm.timing.classes import (
    ADU,
    ADU_PIPE,
    BARRIER,
    BRANCH,
    COMMIT,
    CONVERGE,
    COPY,
    DEPBAR,
    FENCE,
    FMA_HEAVY,
    FMA_LITE,
    GLOBAL_ATOMIC,
    GLOBAL_LOAD,
    GLOBAL_STORE,
    LSU,
    NONE,
    PIPES,
    SHARED_ATOMIC,
    SHARED_LOAD,
    SHARED_STORE,
    TENSOR,
    XU,
    XU_PIPE,
)
from fasim.sm.timing.compiled import inlined, njit
from fasim.sm.timing.record import (
    BYPASS_L1,
    I_AFTER_MMA,
    I_ARGUMENT,
    I_BARRIER_OP,
    I_BOTH,
    I_BYTES,
    I_EVEN,
    I_INTERVAL,
    I_KIND,
    I_LATENCY,
    I_LENGTH,
    I_ODD,
    I_PIPE,
    I_READ_SB,
    I_SCOREBOARD,
    I_SLOTS,
    I_STALL,
    I_WAIT,
    I_WRITE_SB,
    I_WRITEBACK,
    I_YIELDS,
    LOCAL_SPACE,
    PARTS,
)
from fasim.warp.path import (
    BARRIER_ENTRY,
    BLOCK,
    DETAIL_SHIFT,
    FILL_BITS,
    LINE_SHIFT,
    LOCAL_LINES,
    POSITION_BITS,
    POSITION_SHIFT,
    SECTOR_SHIFT,
    TYPE_BITS,
)
from fasim.warp.path import GLOBAL_ACCESS as GLOBAL_ENTRY
from fasim.warp.path import SHARED_ACCESS as SHARED_ENTRY

Array = np.ndarray[Any, Any]

#: what keeps a warp from issuing, by ncu's names
STALLS = (
    "selected",
    "wait",
    "short_scoreboard",
    "long_scoreboard",
    "barrier",
    "branch_resolving",
    "math_pipe_throttle",
    "dispatch_stall",
    "mio_throttle",
    "lg_throttle",
    "not_selected",
    "membar",
    "no_instruction",
)
(
    SELECTED,
    WAIT,
    SHORT,
    LONG,
    AT_BARRIER,
    BRANCHING,
    MATH_THROTTLE,
    DISPATCH,
    MIO_THROTTLE,
    LG_THROTTLE,
    NOT_SELECTED,
    MEMBAR,
    NO_INSTRUCTION,
) = range(13)

#: the engine's constants, in the order in which it gets them
CONSTANTS = (
    "decoupling",
    "xu_queue",
    "mma_queue",
    "warp_entries",
    "queue_words",
    "wavefront",
    "store_extra",
    "barrier_each",
    "branch_taken",
    "cta_spacing",
    "cta_turnover",
    "l1_sets",
    "l1_ways",
    "l2_parts_a_sector",
    "share_parts_a_sector",
    "l2_latency",
    "far_latency",
    "dram_latency",
    "dram_parts_a_sector",
    "dram_share",
    "writes_parts_a_sector",
    "adu_interval",
    "commit",
    "tag_queue",
    "stored_share",
    "write_behind",
    "cta_rate",
    "stagger",
)
(
    K_DECOUPLING,
    K_XU_QUEUE,
    K_MMA_QUEUE,
    K_WARP_ENTRIES,
    K_QUEUE_WORDS,
    K_WAVEFRONT,
    K_STORE_EXTRA,
    K_BARRIER_EACH,
    K_BRANCH_TAKEN,
    K_CTA_SPACING,
    K_CTA_TURNOVER,
    K_L1_SETS,
    K_L1_WAYS,
    K_L2_SECTOR,
    K_SHARE_SECTOR,
    K_L2_LATENCY,
    K_FAR_LATENCY,
    K_DRAM_LATENCY,
    K_DRAM_SECTOR,
    K_DRAM_SHARE,
    K_WRITE_SECTOR,
    K_ADU_INTERVAL,
    K_COMMIT,
    K_TAG_QUEUE,
    K_STORED_SHARE,
    K_WRITE_BEHIND,
    K_CTA_RATE,
    K_STAGGER,
) = range(len(CONSTANTS))

NEVER = 1 << 60
SUBS = 4
_PIPES = len(PIPES)
_SB = 6
_RING = 256  # entries of the load-store unit's queue of a sub-partition
_GROUPS = 64
_POSITION_MASK = (1 << POSITION_BITS) - 1
_TYPE_MASK = (1 << TYPE_BITS) - 1
_LSU_SHARED, _LSU_STORE = 0, 1


@inlined
def popcount4(x: int) -> int:
    """Bits set of four."""
    return (x & 1) + (x >> 1 & 1) + (x >> 2 & 1) + (x >> 3 & 1)


@inlined
def fetch(line: int, sectors: int, t: int, cached: bool, k: Array, tags: Array, valid: Array, ready: Array, used: Array, bus: Array, touched: Array) -> int:
    """When the sectors of a line have come, counted like the beginning of an L1 hit; the state of caches and buses moves on.

    bus: [way from L2, its share among SMs, DRAM, ticks, sectors read from L2], the first three in parts of a cycle.
    """
    slot, sets, ways = -1, k[K_L1_SETS], k[K_L1_WAYS]
    missing = sectors
    come = t
    if sets > 0:
        first = ((line ^ line >> 7 ^ line >> 14) % sets) * ways
        oldest = first
        for i in range(first, first + ways):
            if tags[i] == line:
                slot = i
                break
            if used[i] < used[oldest]:
                oldest = i
        bus[3] += 1
        if slot >= 0 and cached:
            missing = sectors & ~valid[slot]
            come = max(t, ready[slot])
        elif cached:
            slot = oldest
            tags[slot], valid[slot], ready[slot] = line, 0, 0
        if slot >= 0:
            used[slot] = bus[3]
    if missing == 0:
        return come
    count = popcount4(missing)
    bus[4] += count
    now = t * PARTS
    bus[0] = max(bus[0], now) + max(count * k[K_L2_SECTOR], PARTS)
    bus[1] = max(bus[1], now) + count * k[K_SHARE_SECTOR]
    done = max(bus[0], bus[1])
    latency = k[K_L2_LATENCY]
    # half of the lines that SMs of both parts of the L2 read have their home in the other one: at first they come from there
    at = (line * 2654435761 >> 12) % len(touched)
    if k[K_FAR_LATENCY] > 0 and touched[at] != line:
        touched[at] = line
        if line < LOCAL_LINES and line * 2654435761 >> 9 & 1:
            latency = k[K_FAR_LATENCY]
    # lines that no SM has asked for yet come from DRAM: which ones is spread evenly
    if k[K_DRAM_SHARE] > 0 and line < LOCAL_LINES and ((line >> 7) * 2654435761 >> 8) % 1024 < k[K_DRAM_SHARE]:
        bus[2] = max(bus[2], now) + count * k[K_DRAM_SECTOR]
        done = max(done, bus[2])
        latency = k[K_DRAM_LATENCY]
    arrival = done // PARTS + latency
    if cached and slot >= 0:
        valid[slot] |= missing
        ready[slot] = max(ready[slot], arrival)
    return max(come, arrival)


@inlined
def fetch_written(line: int, sectors: int, t: int, k: Array, tags: Array, valid: Array, ready: Array, used: Array, bus: Array) -> None:
    """A store to local memory stays in the L1."""
    sets, ways = k[K_L1_SETS], k[K_L1_WAYS]
    if sets == 0:
        return
    first = ((line ^ line >> 7 ^ line >> 14) % sets) * ways
    slot, oldest = -1, first
    for i in range(first, first + ways):
        if tags[i] == line:
            slot = i
            break
        if used[i] < used[oldest]:
            oldest = i
    bus[3] += 1
    if slot < 0:
        slot = oldest
        tags[slot], valid[slot], ready[slot] = line, 0, t
    used[slot] = bus[3]
    valid[slot] |= sectors


@inlined
def when(ins: Array, i: int, w: int, ready: Array, released: Array, unserved: Array, groups: Array, committed: Array, served: Array) -> int:
    """The earliest cycle for a warp's next instruction as far as scoreboards go; NEVER while that is not known."""
    found = ready[w]
    mask = ins[i, I_WAIT]
    sb = 0
    while mask:
        if mask & 1:
            if unserved[w, sb] > 0:
                return NEVER
            found = max(found, released[w, sb])
        mask >>= 1
        sb += 1
    if ins[i, I_KIND] == DEPBAR:
        sb = ins[i, I_SCOREBOARD]
        if sb == 0:
            wanted = committed[w] - ins[i, I_ARGUMENT]
            if wanted > served[w]:
                return NEVER
            for group in range(max(0, wanted - 16), wanted):
                found = max(found, groups[w, group % _GROUPS])
        elif sb > 0:
            if unserved[w, sb] > 0:
                return NEVER
            found = max(found, released[w, sb])
    return found


@inlined
def reason(ins: Array, i: int, w: int, ready: int, earliest: int, before: int, released: Array, long_wait: Array) -> int:
    """What a warp waits for between the end of its stall count and `earliest`."""
    if earliest <= ready:
        return before
    if ins[i, I_KIND] == DEPBAR:
        return LONG
    mask = ins[i, I_WAIT]
    latest, found, sb = -1, SHORT, 0
    while mask:
        if mask & 1 and (long_wait[w, sb] or released[w, sb] > latest):
            latest = released[w, sb]
            found = LONG if long_wait[w, sb] else SHORT
        mask >>= 1
        sb += 1
    return found


@njit
def run_sm(
    ins: Array,
    entries: Array,
    begins: Array,
    ends: Array,
    ctas: Array,
    warps: int,
    resident: int,
    k: Array,
    stalls: Array,
    busy: Array,
    spans: Array,
    events: Array,
    totals: Array,
) -> int:
    """Run CTAs on one SM; returns the cycle at which the last one has ended.

    ins: see `record`. entries: what warps executed; warp i of a CTA c: entries[begins[ctas[c] + i]:ends[ctas[c] + i]].
    k: CONSTANTS. Results: stalls[n, STALLS] warp cycles by instruction; busy[4, PIPES] parts of cycles; spans[ctas, 2] first and last
    cycle; events[m, 5]: of the first m instructions cycle, sub-partition, warp slot, instruction, CTA; totals: [instructions, wavefronts,
    sectors read from L2, events written, sectors stored].
    """
    slots = warps * resident
    total = len(ctas)
    # --- warps ---
    position = np.zeros(slots, np.int64)
    limit = np.zeros(slots, np.int64)
    pc = np.zeros(slots, np.int64)
    block_end = np.zeros(slots, np.int64)
    alive = np.zeros(slots, np.bool_)
    earliest = np.full(slots, NEVER, np.int64)
    ready = np.zeros(slots, np.int64)
    since = np.zeros(slots, np.int64)
    mma_at = np.zeros(slots, np.int64)
    xu_start = np.zeros(slots, np.int64)
    held = np.zeros(slots, np.int64)
    held_by = np.zeros(slots, np.int64)
    waits_for = np.zeros(slots, np.int64)
    age = np.zeros(slots, np.int64)
    queued = np.zeros(slots, np.int64)
    sub_of = np.zeros(slots, np.int64)
    released = np.zeros((slots, _SB), np.int64)
    unserved = np.zeros((slots, _SB), np.int64)
    reading = np.zeros((slots, _SB), np.int64)
    long_wait = np.zeros((slots, _SB), np.bool_)
    copies = np.zeros(slots, np.int64)
    committed = np.zeros(slots, np.int64)
    served_commits = np.zeros(slots, np.int64)
    groups = np.zeros((slots, _GROUPS), np.int64)
    # --- CTAs ---
    cta_of = np.full(resident, -1, np.int64)
    live = np.zeros(resident, np.int64)
    arrived = np.zeros((resident, 17), np.int64)
    starts_at = np.full(resident, NEVER, np.int64)
    # --- sub-partitions ---
    wake = np.full(SUBS, NEVER, np.int64)
    last = np.full(SUBS, -1, np.int64)
    math_free = np.zeros(SUBS, np.int64)
    even_free = np.zeros(SUBS, np.int64)
    odd_free = np.zeros(SUBS, np.int64)
    pipe_free = np.zeros((SUBS, _PIPES), np.int64)
    members = np.zeros((SUBS, slots), np.int64)
    member_count = np.zeros(SUBS, np.int64)
    pending_words = np.zeros(SUBS, np.int64)
    # --- load-store unit ---
    queue = np.zeros((SUBS, _RING, 4), np.int64)  # warp, pc, entry, time of issue
    head = np.zeros(SUBS, np.int64)
    tail = np.zeros(SUBS, np.int64)
    lsu_sub = np.zeros(SUBS, np.int64)
    lsu_free, lsu_turn, lsu_wake = 0, 0, NEVER
    fill_free, fill_head, fill_tail, tag_free = 0, 0, 0, 0
    fill_at = np.zeros(_RING, np.int64)
    fill_size = np.zeros(_RING, np.int64)
    fill_come = np.zeros(_RING, np.int64)
    fill_seen = 0
    adu_free, write_free = 0, 0
    lines = max(1, k[K_L1_SETS] * k[K_L1_WAYS])
    tags = np.full(lines, -1, np.int64)
    valid = np.zeros(lines, np.int64)
    line_ready = np.zeros(lines, np.int64)
    used = np.zeros(lines, np.int64)
    bus = np.zeros(5, np.int64)
    touched = np.full(1 << 15, -1, np.int64)

    for w in range(slots):
        sub_of[w] = w % SUBS
        s = sub_of[w]
        members[s, member_count[s]] = w
        member_count[s] += 1
    next_cta, ended, sequence, written, last_start = 0, 0, 0, 0, 0
    for slot in range(resident):
        if next_cta < total:
            starts_at[slot] = slot * (k[K_CTA_SPACING] + k[K_STAGGER])
            cta_of[slot] = next_cta
            next_cta += 1
    t, finished_at, start_wake = 0, 0, 0
    while ended < total:
        t = min(lsu_wake, start_wake)
        for s in range(SUBS):
            t = min(t, wake[s])
        if t >= NEVER:
            return -1  # warps wait for each other: the streams do not fit together
        # --- CTAs start ---
        if start_wake <= t:
            start_wake = NEVER
            for slot in range(resident):
                if starts_at[slot] > t:
                    start_wake = min(start_wake, starts_at[slot])
                    continue
                starts_at[slot] = NEVER
                cta = cta_of[slot]
                spans[cta, 0] = t
                live[slot] = warps
                arrived[slot, :] = 0
                for i in range(warps):
                    w, stream = slot * warps + i, ctas[cta] + i
                    position[w], limit[w] = begins[stream], ends[stream]
                    if position[w] >= limit[w]:  # a warp without threads
                        live[slot] -= 1
                        continue
                    first = entries[position[w]]
                    pc[w] = first >> POSITION_SHIFT & _POSITION_MASK
                    block_end[w] = pc[w] + ins[pc[w], I_LENGTH]
                    position[w] += 1
                    alive[w] = True
                    ready[w] = earliest[w] = since[w] = t + i // SUBS
                    mma_at[w], xu_start[w], queued[w], copies[w], committed[w], served_commits[w] = -99, -99, 0, 0, 0, 0
                    waits_for[w] = WAIT
                    released[w, :] = 0
                    unserved[w, :] = 0
                    reading[w, :] = 0
                    age[w] = sequence
                    sequence += 1
                    wake[sub_of[w]] = min(wake[sub_of[w]], earliest[w])
        # --- the load-store unit takes one instruction ---
        if lsu_wake <= t:
            idle = lsu_free <= t
            for turn in range(SUBS):
                s = (lsu_turn + turn) % SUBS
                if head[s] == tail[s] or lsu_sub[s] > t or lsu_free > t or queue[s, head[s] % _RING, 3] > t:
                    continue
                idle = False
                at = head[s] % _RING
                head[s] += 1
                lsu_turn = s + 1
                w, i, entry = queue[s, at, 0], queue[s, at, 1], queue[s, at, 2]
                kind = ins[i, I_KIND]
                wavefronts, more = 1, 0
                detail = entries[entry] >> DETAIL_SHIFT if entry >= 0 else 0
                done, read = t + ins[i, I_LATENCY], t + 8
                if kind == SHARED_LOAD:
                    wavefronts = max(detail, 1)
                    done += k[K_WAVEFRONT] * (wavefronts - 1)
                elif kind == SHARED_STORE:
                    wavefronts = max(detail, 1)
                    more = k[K_STORE_EXTRA] * (1 + ins[i, I_BYTES] // 4)
                    read = t + 11 + k[K_WAVEFRONT] * (wavefronts - 1)
                elif kind == SHARED_ATOMIC:
                    wavefronts = max(detail, 1)
                    more = 2 * k[K_STORE_EXTRA]
                    done += k[K_WAVEFRONT] * (wavefronts - 1)
                elif kind == COMMIT:
                    wavefronts = 0
                    groups[w, served_commits[w] % _GROUPS] = max(copies[w], t + k[K_COMMIT])
                    served_commits[w] += 1
                elif kind == GLOBAL_LOAD or kind == COPY:
                    argument = ins[i, I_ARGUMENT]
                    start = max(t, tag_free // PARTS)
                    sectors, come = 0, start
                    for j in range(detail):
                        word = entries[entry + 1 + j]
                        mask = word >> SECTOR_SHIFT & 15
                        sectors += popcount4(mask)
                        line = word >> LINE_SHIFT
                        if argument & LOCAL_SPACE:  # each resident CTA has its own
                            line += w // warps << 32
                        come = max(come, fetch(line, mask, start, argument & BYPASS_L1 == 0, k, tags, valid, line_ready, used, bus, touched))
                    # loads that hit get their data behind what has come for shared memory before
                    while fill_seen < fill_tail and fill_come[fill_seen % _RING] <= t:
                        fill_seen += 1
                    if kind == GLOBAL_LOAD and fill_seen > 0:
                        come = max(come, fill_at[(fill_seen - 1) % _RING] + fill_size[(fill_seen - 1) % _RING])
                    # tags are looked up two lines a cycle, data come a line a cycle
                    tag_free = max(tag_free, t * PARTS) + max(PARTS + detail * PARTS // 2, sectors * PARTS // 4)
                    done = come + ins[i, I_LATENCY] + (2 * (ins[i, I_BYTES] // 4 - 2) if ins[i, I_BYTES] > 8 else 0)
                    more = 2 * k[K_STORE_EXTRA]
                    if kind == COPY:
                        # its address takes the unit now, its data when it comes
                        if detail:
                            fills = entries[entry - 1] >> DETAIL_SHIFT & (1 << FILL_BITS) - 1
                            again = (entries[entry - 1] >> DETAIL_SHIFT + FILL_BITS) - sectors
                            bus[0] += again * k[K_L2_SECTOR]
                            bus[1] += again * k[K_SHARE_SECTOR]
                            bus[4] += again
                            fill_free = max(fill_free, come) + fills
                            at_fill = fill_tail % _RING
                            fill_at[at_fill], fill_size[at_fill], fill_come[at_fill] = fill_free - fills, fills, come
                            fill_tail += 1
                            done = max(done, fill_free + ins[i, I_LATENCY])
                        copies[w] = max(copies[w], done)
                        done = t + 8
                        more = 3 * k[K_STORE_EXTRA]
                elif kind == GLOBAL_STORE:
                    local = ins[i, I_ARGUMENT] & LOCAL_SPACE
                    sectors = 0
                    for j in range(detail):
                        word = entries[entry + 1 + j]
                        count = popcount4(word >> SECTOR_SHIFT & 15)
                        sectors += count
                        totals[4] += count
                        if local:
                            fetch_written(
                                (word >> LINE_SHIFT) + (w // warps << 32),
                                word >> SECTOR_SHIFT & 15,
                                t,
                                k,
                                tags,
                                valid,
                                line_ready,
                                used,
                                bus,
                            )
                    if sectors:
                        write_free = max(write_free, t * PARTS) + sectors * k[K_WRITE_SECTOR]
                        if not local and k[K_DRAM_SHARE] > 0:
                            bus[2] = max(bus[2], t * PARTS) + sectors * k[K_DRAM_SECTOR] * k[K_STORED_SHARE] // 1024
                            write_free = max(write_free, bus[2] - k[K_WRITE_BEHIND] * PARTS)
                    more = max(6, 4 * (ins[i, I_BYTES] // 4))
                    read = max(t + 11, write_free // PARTS - 64)
                    lsu_free = max(lsu_free, write_free // PARTS - 64)
                elif kind == GLOBAL_ATOMIC:
                    more = 2 * k[K_STORE_EXTRA]
                    bus[0] = max(bus[0], t * PARTS) + detail * PARTS
                    done = bus[0] // PARTS + ins[i, I_LATENCY]
                lsu_free = max(lsu_free, t + wavefronts, tag_free // PARTS - k[K_TAG_QUEUE])
                lsu_sub[s] = t + max(k[K_WAVEFRONT] * wavefronts, more)
                totals[1] += wavefronts
                busy[s, LSU] += wavefronts * PARTS
                queued[w] -= 1
                pending_words[s] -= max(ins[i, I_BYTES] // 4, 1)
                sb = ins[i, I_WRITE_SB]
                if sb >= 0:
                    unserved[w, sb] -= 1
                    released[w, sb] = max(released[w, sb], done)
                sb = ins[i, I_READ_SB]
                if sb >= 0:
                    unserved[w, sb] -= 1
                    released[w, sb] = max(released[w, sb], read)
                if alive[w] and earliest[w] >= NEVER and waits_for[w] != AT_BARRIER:
                    earliest[w] = when(ins, pc[w], w, ready, released, unserved, groups, committed, served_commits)
                    waits_for[w] = reason(ins, pc[w], w, ready[w], earliest[w], waits_for[w], released, long_wait)
                wake[s] = min(wake[s], max(t, min(earliest[w], t + 1)))
                break
            if idle and fill_head < fill_tail and fill_at[fill_head % _RING] <= t:
                # data that has come for shared memory is written when nothing else is to be done
                lsu_free = t + fill_size[fill_head % _RING]
                fill_head += 1
            lsu_wake = NEVER
            if fill_head < fill_tail:
                lsu_wake = max(lsu_free, fill_at[fill_head % _RING], t + 1)
            for s in range(SUBS):
                if head[s] != tail[s]:
                    lsu_wake = min(lsu_wake, max(lsu_free, lsu_sub[s], queue[s, head[s] % _RING, 3], t))
        # --- schedulers ---
        for s in range(SUBS):
            if wake[s] > t:
                continue
            chosen, chosen_age, again = -1, -1, NEVER
            for m in range(member_count[s]):
                w = members[s, m]
                if earliest[w] > t:
                    again = min(again, earliest[w])
                    continue
                i = pc[w]
                can, why = t, NOT_SELECTED
                pipe = ins[i, I_PIPE]
                if pipe == LSU or ins[i, I_KIND] == COMMIT:
                    words = max(ins[i, I_BYTES] // 4, 1)
                    if queued[w] >= k[K_WARP_ENTRIES] or (pending_words[s] > 0 and pending_words[s] + words > k[K_QUEUE_WORDS]):
                        can = NEVER  # until the unit takes one
                        why = LG_THROTTLE if ins[i, I_KIND] >= GLOBAL_LOAD else MIO_THROTTLE
                elif pipe != NONE:
                    free = pipe_free[s, pipe]
                    if ins[i, I_BOTH] == 2:
                        free = min(free, pipe_free[s, FMA_LITE])
                    elif ins[i, I_BOTH] == 1:
                        free = max(free, pipe_free[s, FMA_LITE])
                    if pipe == XU_PIPE:  # a warp has one in the queue
                        free = (xu_start[w] + k[K_XU_QUEUE]) * PARTS
                    elif pipe == TENSOR:
                        free = (mma_at[w] + k[K_MMA_QUEUE]) * PARTS
                    if free // PARTS > can:
                        can, why = free // PARTS, MIO_THROTTLE if pipe == XU_PIPE or pipe == ADU_PIPE else MATH_THROTTLE
                if can > t:
                    again = min(again, can)
                    held[w], held_by[w] = t + 1 if can >= NEVER else can, why
                    continue
                if w == last[s]:
                    chosen = w
                    break
                if age[w] > chosen_age:
                    chosen, chosen_age = w, age[w]
            if chosen < 0:
                wake[s] = again
                continue
            w = chosen
            last[s] = w
            i = pc[w]
            kind, pipe = ins[i, I_KIND], ins[i, I_PIPE]
            # what has been selected holds the slot until its registers can be read
            sent = t
            if ins[i, I_SLOTS] > 0:
                sent = max(sent, math_free[s], even_free[s] - k[K_DECOUPLING], odd_free[s] - k[K_DECOUPLING])
                if ins[i, I_AFTER_MMA] > 0 and pipe != TENSOR:
                    sent = max(sent, mma_at[w] + ins[i, I_AFTER_MMA])
                if sent > t:
                    stalls[i, DISPATCH] += sent - t
            wake[s] = sent + 1
            # --- what the warp has waited for ---
            totals[0] += 1
            stalls[i, SELECTED] += 1
            begun = since[w]
            until = min(ready[w], t)
            if until > begun:
                stalls[i, BRANCHING if waits_for[w] == BRANCHING else WAIT] += until - begun
                begun = until
            until = min(earliest[w], t)
            if until > begun:
                stalls[i, waits_for[w]] += until - begun
                begun = until
            until = min(held[w], t)
            if until > begun:
                stalls[i, held_by[w]] += until - begun
                begun = until
            if t > begun:
                stalls[i, NOT_SELECTED] += t - begun
            held[w] = 0
            since[w] = sent + 1
            if written < len(events):
                events[written, 0], events[written, 1], events[written, 2], events[written, 3] = t, s, w, i
                events[written, 4] = cta_of[w // warps]
                written += 1
            # --- it issues ---
            if ins[i, I_SLOTS] > 0:
                math_free[s] = sent + ins[i, I_SLOTS]
                even_free[s] = max(even_free[s], sent) + ins[i, I_EVEN]
                odd_free[s] = max(odd_free[s], sent) + ins[i, I_ODD]
            if pipe > NONE and pipe != LSU:
                interval = ins[i, I_INTERVAL]
                now = sent * PARTS
                busy[s, pipe] += interval
                if ins[i, I_BOTH] == 2:
                    half = FMA_HEAVY if pipe_free[s, FMA_HEAVY] < pipe_free[s, FMA_LITE] else FMA_LITE
                    pipe_free[s, half] = max(pipe_free[s, half], now) + interval
                elif ins[i, I_BOTH] == 1:
                    pipe_free[s, FMA_HEAVY] = pipe_free[s, FMA_LITE] = max(pipe_free[s, FMA_HEAVY], pipe_free[s, FMA_LITE], now) + interval
                else:
                    pipe_free[s, pipe] = max(pipe_free[s, pipe], now) + interval
                if pipe == TENSOR:
                    mma_at[w] = max(sent, (pipe_free[s, TENSOR] - interval) // PARTS)
            wait = max(ins[i, I_STALL], 1)
            if wait == 1 and ins[i, I_YIELDS]:
                wait = 2
            next_ready = sent + wait
            waits_for[w] = WAIT
            arrives = False
            if kind == XU:
                xu_start[w] = max(sent, pipe_free[s, XU_PIPE] // PARTS - ins[i, I_INTERVAL] // PARTS)
                done = xu_start[w] + ins[i, I_LATENCY]
                math_free[s] = max(math_free[s], sent + 1) + ins[i, I_WRITEBACK]
                sb = ins[i, I_WRITE_SB]
                if sb >= 0:
                    released[w, sb], long_wait[w, sb] = max(released[w, sb], done), False
                sb = ins[i, I_READ_SB]
                if sb >= 0:
                    released[w, sb], long_wait[w, sb] = max(released[w, sb], t + 8), False
            elif kind == ADU:
                begin = max(t, adu_free)
                adu_free = begin + k[K_ADU_INTERVAL]
                for which in range(2):
                    sb = ins[i, I_WRITE_SB if which == 0 else I_READ_SB]
                    if sb >= 0:
                        released[w, sb], long_wait[w, sb] = max(released[w, sb], begin + ins[i, I_LATENCY]), False
            elif pipe == LSU or kind == COMMIT:
                entry = -1
                if position[w] < limit[w]:
                    word = entries[position[w]]
                    type_ = word & _TYPE_MASK
                    if (type_ == SHARED_ENTRY or type_ == GLOBAL_ENTRY) and word >> POSITION_SHIFT & _POSITION_MASK == i:
                        entry = position[w]
                        if kind == COPY:
                            entry += 1
                            word = entries[entry]
                            type_ = GLOBAL_ENTRY
                        position[w] = entry + 1 + (word >> DETAIL_SHIFT if type_ == GLOBAL_ENTRY else 0)
                at = tail[s] % _RING
                queue[s, at, 0], queue[s, at, 1], queue[s, at, 2], queue[s, at, 3] = w, i, entry, t
                tail[s] += 1
                queued[w] += 1
                pending_words[s] += max(ins[i, I_BYTES] // 4, 1)
                if ins[i, I_WRITEBACK] > 0:
                    math_free[s] = max(math_free[s], t + 1) + ins[i, I_WRITEBACK]
                for which in range(2):
                    sb = ins[i, I_WRITE_SB if which == 0 else I_READ_SB]
                    if sb >= 0:
                        unserved[w, sb] += 1
                        long_wait[w, sb] = kind == GLOBAL_LOAD or kind == COPY or kind == GLOBAL_ATOMIC
                if kind == COMMIT:
                    committed[w] += 1
                lsu_wake = min(lsu_wake, max(t, lsu_free, lsu_sub[s]))
            elif kind == FENCE:
                next_ready = max(next_ready, t + k[K_L2_LATENCY])
                waits_for[w] = MEMBAR
            elif kind == BARRIER:
                number, expected = ins[i, I_ARGUMENT], ins[i, I_SCOREBOARD]
                if position[w] < limit[w]:
                    word = entries[position[w]]
                    if word & _TYPE_MASK == BARRIER_ENTRY and word >> POSITION_SHIFT & _POSITION_MASK == i:
                        detail = word >> DETAIL_SHIFT
                        number, expected = detail & 15, detail >> 4
                        position[w] += 1
                slot = w // warps
                number = max(number, 0)
                arrived[slot, number] += 1
                arrives = ins[i, I_BARRIER_OP] == 0
                if arrives:
                    waits_for[w] = AT_BARRIER
                    held_by[w] = number
            elif kind == CONVERGE:
                next_ready = max(next_ready, t + ins[i, I_LATENCY])
            # --- its next instruction ---
            gone = False
            if i + 1 < block_end[w]:
                pc[w] = i + 1
            elif position[w] >= limit[w]:
                gone = True
            else:
                word = entries[position[w]]
                if word & _TYPE_MASK != BLOCK:
                    return -2  # an access that no instruction made
                position[w] += 1
                pc[w] = word >> POSITION_SHIFT & _POSITION_MASK
                block_end[w] = pc[w] + ins[pc[w], I_LENGTH]
                if pc[w] != i + 1:
                    if kind == BRANCH and t + ins[i, I_LATENCY] > next_ready:
                        next_ready = t + ins[i, I_LATENCY]
                    waits_for[w] = BRANCHING
            ready[w] = next_ready
            slot = w // warps
            if gone:
                alive[w] = False
                earliest[w] = NEVER
                live[slot] -= 1
                if live[slot] == 0:
                    spans[cta_of[slot], 1] = t
                    finished_at = t
                    ended += 1
                    if next_cta < total:
                        cta_of[slot] = next_cta
                        next_cta += 1
                        starts_at[slot] = max(t + k[K_CTA_TURNOVER], last_start + k[K_CTA_RATE])
                        last_start = starts_at[slot]
                        start_wake = min(start_wake, starts_at[slot])
                    continue
            elif arrives:
                earliest[w] = NEVER
            else:
                earliest[w] = when(ins, pc[w], w, ready, released, unserved, groups, committed, served_commits)
                waits_for[w] = reason(ins, pc[w], w, next_ready, earliest[w], waits_for[w], released, long_wait)
            if kind == BARRIER or gone:
                for number in range(16):
                    if arrived[slot, number] == 0:
                        continue
                    expected = live[slot]
                    if kind == BARRIER and number == max(ins[i, I_ARGUMENT], 0) and ins[i, I_SCOREBOARD] > 0:
                        expected = ins[i, I_SCOREBOARD]
                    if arrived[slot, number] < expected:
                        continue
                    arrived[slot, number] = 0
                    order = 0
                    for other in range(slot * warps, slot * warps + warps):
                        if alive[other] and waits_for[other] == AT_BARRIER and earliest[other] >= NEVER and held_by[other] == number:
                            held[other] = 0
                            earliest[other] = (
                                max(ready[other], t + ins[i, I_LATENCY] + k[K_BARRIER_EACH] * order) if kind == BARRIER else t + 14
                            )
                            later = when(ins, pc[other], other, ready, released, unserved, groups, committed, served_commits)
                            if later > earliest[other]:
                                earliest[other] = later
                                waits_for[other] = reason(ins, pc[other], other, ready[other], later, waits_for[other], released, long_wait)
                            if earliest[other] < NEVER:
                                wake[sub_of[other]] = min(wake[sub_of[other]], max(earliest[other], t + (sub_of[other] <= s)))
                            order += 1
    totals[2], totals[3] = bus[4], written
    return finished_at
