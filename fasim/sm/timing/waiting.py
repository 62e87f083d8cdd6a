"""Scoreboards of warps: held, released, waited for; and with them when the next instruction of a warp may issue."""

from __future__ import annotations

from fasim.sm.timing import record as r
from fasim.sm.timing import state as st
from fasim.sm.timing.classes import DEPBAR
from fasim.sm.timing.compiled import inlined
from fasim.sm.timing.state import State

#: groups before the one that DEPBAR waits for whose times are looked at: the others have long been there
_LOOK_BACK = 16


@inlined
def hold_boards(i: int, w: int, slow: bool, state: State) -> None:
    """An instruction holds its scoreboards from its issue on; slow: what releases them is memory outside of the SM."""
    ins, boards = state.ins, state.boards
    for which in range(2):
        board = ins[i, r.I_WRITE_SB if which == 0 else r.I_READ_SB]
        if board >= 0:
            boards[w, board, st.B_UNSERVED] += 1
            boards[w, board, st.B_LONG] = slow


@inlined
def release_boards(i: int, w: int, done: int, read: int, state: State) -> None:
    """It is known now when its result will be there and when its operands will have been read."""
    ins, boards = state.ins, state.boards
    for which in range(2):
        board = ins[i, r.I_WRITE_SB if which == 0 else r.I_READ_SB]
        if board >= 0:
            boards[w, board, st.B_UNSERVED] -= 1
            boards[w, board, st.B_RELEASED] = max(boards[w, board, st.B_RELEASED], done if which == 0 else read)


@inlined
def earliest(w: int, state: State) -> int:
    """The earliest cycle for a warp's next instruction; NEVER while that is not known."""
    ins, warps, boards, groups = state.ins, state.warps, state.boards, state.groups
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
def reason(w: int, state: State) -> int:
    """What a warp waits for between the end of its stall count and its earliest cycle."""
    ins, warps, boards = state.ins, state.warps, state.boards
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
def look_again(w: int, state: State) -> None:
    """Work out anew what a warp waits for, and until when."""
    warps = state.warps
    warps[w, st.W_EARLIEST] = earliest(w, state)
    warps[w, st.W_WAITS_FOR] = reason(w, state)
