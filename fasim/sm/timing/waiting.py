"""When the next instruction of a warp may issue as far as scoreboards go, and what it waits for."""

from __future__ import annotations

from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.classes import COPY, DEPBAR
from fasim.sm.timing.compiled import inlined
from fasim.sm.timing.state import Array

#: groups before the one that DEPBAR waits for whose times are looked at: the others have long been there
_LOOK_BACK = 16


@inlined
def words_of(kind: int, size: int) -> int:
    """Room that an instruction takes in a queue of the load-store unit, in registers; four copies fill it."""
    return 16 if kind == COPY else max(size // 4, 1)


@inlined
def when(ins: Array, w: int, warps: Array, boards: Array, groups: Array) -> int:
    """The earliest cycle for a warp's next instruction; NEVER while that is not known."""
    i = warps[w, st.W_PC]
    found: int = warps[w, st.W_READY]
    mask = ins[i, r.I_WAIT]
    board = 0
    while mask:
        if mask & 1:
            found = st.NEVER if boards[w, board, st.B_UNSERVED] > 0 else max(found, boards[w, board, st.B_RELEASED])
        mask >>= 1
        board += 1
    if ins[i, r.I_KIND] == DEPBAR:
        board = ins[i, r.I_SCOREBOARD]
        if board == 0:
            wanted = warps[w, st.W_COMMITTED] - ins[i, r.I_ARGUMENT]
            if wanted > warps[w, st.W_SERVED]:
                found = st.NEVER
            for group in range(max(0, wanted - _LOOK_BACK), wanted):
                found = max(found, groups[w, group % st.GROUPS])
        elif board > 0:
            found = st.NEVER if boards[w, board, st.B_UNSERVED] > 0 else max(found, boards[w, board, st.B_RELEASED])
    return found


@inlined
def reason(ins: Array, w: int, warps: Array, boards: Array) -> int:
    """What a warp waits for between the end of its stall count and its earliest cycle."""
    i = warps[w, st.W_PC]
    found: int = warps[w, st.W_WAITS_FOR]
    if warps[w, st.W_EARLIEST] > warps[w, st.W_READY]:
        if ins[i, r.I_KIND] == DEPBAR:
            found = st.LONG_SCOREBOARD
        else:
            mask = ins[i, r.I_WAIT]
            latest, board = -1, 0
            found = st.SHORT_SCOREBOARD
            while mask:
                if mask & 1:
                    slow = boards[w, board, st.B_LONG]
                    if slow or boards[w, board, st.B_RELEASED] > latest:
                        latest = boards[w, board, st.B_RELEASED]
                        found = st.LONG_SCOREBOARD if slow else st.SHORT_SCOREBOARD
                mask >>= 1
                board += 1
    return found


@inlined
def look_again(ins: Array, w: int, warps: Array, boards: Array, groups: Array) -> None:
    """Work out anew what a warp waits for, and until when."""
    warps[w, st.W_EARLIEST] = when(ins, w, warps, boards, groups)
    warps[w, st.W_WAITS_FOR] = reason(ins, w, warps, boards)
