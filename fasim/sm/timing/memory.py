"""The way of an access out of the SM: tags of the L1, the L2 with its two parts, DRAM."""

from __future__ import annotations

from fasim.sm.timing import state as st
from fasim.sm.timing.compiled import inlined, merged
from fasim.sm.timing.record import PARTS
from fasim.sm.timing.state import State
from fasim.warp.path import LOCAL_LINES

#: for spreading line numbers evenly (Knuth's multiplicative hash)
_HASH = 2654435761


@merged
def sectors_of(mask: int) -> int:
    """Bits set of four."""
    return (mask & 1) + (mask >> 1 & 1) + (mask >> 2 & 1) + (mask >> 3 & 1)


@inlined
def first_way(line: int, state: State) -> int:
    """Where the set of a line begins in the L1."""
    k = state.k
    first: int = (line * _HASH >> 13) % k[st.K_L1_SETS] * k[st.K_L1_WAYS]
    return first


@inlined
def find_line(line: int, state: State) -> int:
    """Where a line is in the L1, now used last; if it was not there, the one that has been used least recently gives it its place."""
    k, sm, lines = state.k, state.sm, state.lines
    first = first_way(line, state)
    slot, oldest = -1, first
    for i in range(first, first + k[st.K_L1_WAYS]):
        if lines[i, st.L_TAG] == line:
            slot = i
            break
        if lines[i, st.L_USED] < lines[oldest, st.L_USED]:
            oldest = i
    sm[st.M_TICKS] += 1
    if slot < 0:
        slot = oldest
        lines[slot, st.L_TAG], lines[slot, st.L_VALID], lines[slot, st.L_READY] = line, 0, 0
    lines[slot, st.L_USED] = sm[st.M_TICKS]
    return slot


@inlined
def forget(line: int, state: State) -> None:
    """Give the place of a line free that has been read for the last time."""
    k, lines = state.k, state.lines
    if k[st.K_L1_SETS] > 0:
        first = first_way(line, state)
        for i in range(first, first + k[st.K_L1_WAYS]):
            if lines[i, st.L_TAG] == line:
                lines[i, st.L_TAG], lines[i, st.L_USED] = -1, 0
                break


@inlined
def fetch(line: int, sectors: int, t: int, cached: bool, state: State) -> int:
    """When the sectors of a line have come, counted like the beginning of an L1 hit."""
    k, sm, lines, touched = state.k, state.sm, state.lines, state.touched
    missing, come, slot = sectors, t, -1
    if cached and k[st.K_L1_SETS] > 0:
        slot = find_line(line, state)
        missing = sectors & ~lines[slot, st.L_VALID]
        come = max(t, lines[slot, st.L_READY])
        if line >= LOCAL_LINES:
            sm[st.M_LOCAL_SECTORS] += sectors_of(sectors)
            sm[st.M_LOCAL_HITS] += sectors_of(sectors & ~missing)
    if missing != 0:
        count = sectors_of(missing)
        sm[st.M_SECTORS_READ] += count
        now = t * PARTS
        # a request takes a cycle, however few sectors it asks for
        sm[st.M_L2_BUS] = max(sm[st.M_L2_BUS], now) + max(count * k[st.K_L2_SECTOR], PARTS)
        sm[st.M_L2_SHARE] = max(sm[st.M_L2_SHARE], now) + max(16 * count, k[st.K_READ_PIECE]) * k[st.K_SHARE_SECTOR] // 16
        done = max(sm[st.M_L2_BUS], sm[st.M_L2_SHARE])
        latency = k[st.K_L2_LATENCY]
        if line < LOCAL_LINES:
            # half of the lines that SMs of both parts of the L2 read have their home in the other one: at first they come from there,
            # two sectors at a time
            pair = line * 2 + (missing < 4)
            at = (pair * _HASH >> 12) % st.TOUCHED
            if k[st.K_FAR_LATENCY] > 0 and touched[at] != pair:
                touched[at] = pair
                if line * _HASH >> 9 & 1:
                    latency = k[st.K_FAR_LATENCY]
            # lines that no SM has asked for yet come from DRAM; neighbours are asked for together
            if k[st.K_DRAM_SHARE] > 0 and ((line >> 7) * _HASH >> 8) % 1024 < k[st.K_DRAM_SHARE]:
                sm[st.M_DRAM] = max(sm[st.M_DRAM], now) + count * k[st.K_DRAM_SECTOR]
                done = max(done, sm[st.M_DRAM])
                latency = k[st.K_DRAM_LATENCY]
        arrival = done // PARTS + latency
        if slot >= 0:
            lines[slot, st.L_VALID] |= missing
            lines[slot, st.L_READY] = max(lines[slot, st.L_READY], arrival)
        come = max(come, arrival)
    return come


@inlined
def keep_stored(line: int, sectors: int, t: int, state: State) -> None:
    """A store to local memory leaves its data in the L1, too."""
    k, lines = state.k, state.lines
    if k[st.K_L1_SETS] > 0:
        slot = find_line(line, state)
        if lines[slot, st.L_VALID] == 0:
            lines[slot, st.L_READY] = t
        lines[slot, st.L_VALID] |= sectors


@inlined
def send_stored(sectors: int, cycles: int, costs: int, local: bool, t: int, state: State) -> None:
    """Stores go to the L2, and in the end to DRAM if they do not fit; what looks up tags sends them, so that what follows waits.

    cycles: for each sector. costs: of the L2, in sixteenths of what a sector of a whole line costs.
    """
    k, sm = state.k, state.sm
    sm[st.M_SECTORS_STORED] += sectors
    sm[st.M_TAG_FREE] = max(sm[st.M_TAG_FREE], t * PARTS) + sectors * cycles * k[st.K_WRITE_SECTOR]
    # SMs that begin together store together, until what they wait for each other has brought them out of step
    sm[st.M_WRITE_SHARE] = max(sm[st.M_WRITE_SHARE], t * PARTS - sm[st.M_APART]) + costs * k[st.K_SHARE_WRITE] // 16
    if sm[st.M_WRITE_SHARE] > sm[st.M_TAG_FREE]:
        sm[st.M_APART] += sm[st.M_WRITE_SHARE] - sm[st.M_TAG_FREE]
        sm[st.M_TAG_FREE] = sm[st.M_WRITE_SHARE]
    if not local and k[st.K_STORED_SHARE] > 0:
        sm[st.M_DRAM] = max(sm[st.M_DRAM], t * PARTS) + sectors * k[st.K_DRAM_SECTOR] * k[st.K_STORED_SHARE] // 1024
        sm[st.M_TAG_FREE] = max(sm[st.M_TAG_FREE], sm[st.M_DRAM] - k[st.K_WRITE_BEHIND] * PARTS)
