"""Machine code on its way to a warp: what sub-partitions and the SM keep of it, and what has to come from the L2."""

from __future__ import annotations

from fasim.sm.timing import state as st
from fasim.sm.timing.compiled import inlined, merged
from fasim.sm.timing.state import State


@inlined
def code_line(s: int, line: int, t: int, state: State) -> int:
    """When a sub-partition has a line of machine code; of those that it and the SM keep, the first in is the first out."""
    k, sm, code = state.k, state.sm, state.code
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


@merged
def fetch_code(s: int, w: int, t: int, state: State) -> int:
    """When the next instruction of a warp is there; the line that follows is asked for some instructions before its end."""
    warps = state.warps
    line, then = warps[w, st.W_PC] >> st.CODE_SHIFT, warps[w, st.W_PC] + state.k[st.K_CODE_AHEAD] >> st.CODE_SHIFT
    there: int = t
    if line != warps[w, st.W_LINE]:
        if line != warps[w, st.W_ASKED]:  # a branch
            warps[w, st.W_ASKED], warps[w, st.W_ASKED_AT] = line, code_line(s, line, t, state)
        there = max(t, warps[w, st.W_ASKED_AT])
        warps[w, st.W_LINE] = line
    if then != warps[w, st.W_ASKED]:
        warps[w, st.W_ASKED], warps[w, st.W_ASKED_AT] = then, code_line(s, then, there, state)
    return there
