"""Looking for a place: in the index of what each position executes, and by walking where nobody has been."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from fasim.errors import ExecutionError
from fasim.trace.breaks import Breakpoint, Hit
from fasim.trace.event import Event
from fasim.trace.view import StateView
from fasim.trace.walker import WATCH_INSTRUCTIONS, Walker, Watch

Array = np.ndarray[Any, Any]
#: (pcs, warps) of positions from the first on -> which of them are meant
Rule = Callable[[Array, Array], Array]
Places = Mapping[Breakpoint, Array]
#: positions to walk before the index is searched again, at first and at most (a large index: a part of its length)
CHUNK, LARGEST_CHUNK, CHUNK_PART = 512, 1 << 14, 16
#: positions whose instructions are looked at one by one before those are told who watch
LOOKED_AT = 2048


class Search:
    """Finds positions of a walker and goes there."""

    def __init__(self, walker: Walker) -> None:
        self.walker = walker

    def known(self) -> tuple[Array, Array]:
        """pc and warp of the instruction at each position that was reached."""
        # copies, for an array that is looked into cannot grow
        return np.array(self.walker.known_pcs), np.array(self.walker.known_warps)

    def _found(self, rule: Rule, warp: int | None) -> Array:
        pcs, warps = self.known()
        found = rule(pcs, warps)
        return np.flatnonzero(found if warp is None else found & (warps == warp))

    def forward(self, rule: Rule, warp: int | None, watch: Watch | None) -> bool:
        """Go to the next position that is meant; False at the end, or where one is when `watch` ends it."""
        walker, start, chunk = self.walker, self.walker.position, CHUNK
        stopped = False

        def go_on(position: int) -> bool:
            nonlocal stopped
            stopped = watch is not None and not watch(position)
            return not stopped

        while True:
            found = self._found(rule, warp)
            after = found[np.searchsorted(found, start, side="right") :]
            if len(after):
                walker.go_to(int(after[0]))
                return True
            if walker.end is not None:
                walker.go_to(walker.end + (walker.failure is not None))
                return False
            if stopped:
                return False
            with suppress(ExecutionError):  # what is meant may come before it
                walker.go_to(len(walker.known_pcs) - 1 + chunk, go_on)
            chunk = min(2 * chunk, max(LARGEST_CHUNK, len(walker.known_pcs) // CHUNK_PART))

    def backward(self, rule: Rule, warp: int | None) -> bool:
        """Go back to the latest position that is meant; False at the beginning."""
        found = self._found(rule, warp)
        before = found[: np.searchsorted(found, self.walker.position, side="left")]
        self.walker.go_to(int(before[-1]) if len(before) else 0)
        return bool(len(before))

    # --- breakpoints ---------------------------------------------------------------------------------------------------------

    def run_forward(
        self, places: Places, observe: Callable[[], Event], state: StateView, warp: int | None, watch: Watch | None
    ) -> Hit | None:
        """Walk until a breakpoint stops."""
        walker = self.walker
        before, after = _parts(places)
        own, others = self._looked_at(after)
        latest = self._latest_pcs()
        first = walker.position
        while walker.next is not None:
            following = walker.next
            meant = warp in (None, following.warp)
            if meant and walker.position != first:
                for breakpoint_, pcs in before.items():
                    if pcs[following.pc] and (following.warp not in latest or not pcs[latest[following.warp]]):
                        return Hit(breakpoint_, walker.position, None)
            latest[following.warp] = following.pc
            if (own if meant else others)[following.pc]:
                event = observe()
                hit = _hit(after, event, state, meant)
                if hit is not None:
                    return hit
            else:
                walker.advance()
            if watch is not None and not walker.position % WATCH_INSTRUCTIONS and not watch(walker.position):
                return None
        if walker.failure is not None:
            raise walker.failure
        return None

    def _looked_at(self, after: Places) -> tuple[list[bool], list[bool]]:
        """The instructions that have to be looked at: of the watched warp, and of the others."""
        nothing = np.zeros(len(self.walker.run.program), bool)
        every = [pcs for each, pcs in after.items() if each.every_warp]
        return np.logical_or.reduce([nothing, *after.values()]).tolist(), np.logical_or.reduce([nothing, *every]).tolist()

    def _latest_pcs(self) -> dict[int, int]:
        """The last instruction that each warp executed before here."""
        pcs, warps = self.known()
        position, latest = self.walker.position, {}
        for warp in range(self.walker.run.shape.warps):
            own = np.flatnonzero(warps[:position] == warp)
            if len(own):
                latest[warp] = int(pcs[own[-1]])
        return latest

    def run_back(self, places: Places, observe: Callable[[], Event], state: StateView, warp: int | None, watch: Watch | None) -> Hit | None:
        """Go back to the latest position where a breakpoint stops."""
        walker = self.walker
        here = walker.position
        before, after = _parts(places)
        best = self._last_place(before, here, warp)
        lowest = -1 if best is None else best.position
        if after:
            own, others = self._looked_at(after)
            high = here - 1  # the hit itself must lie before here
            while high > max(lowest, 0):
                low = max(walker.history.rewind_position(high - 1), high - LOOKED_AT)
                walker.go_to(low)
                found = None
                while walker.position < high and walker.next is not None:
                    following = walker.next
                    meant = warp in (None, following.warp)
                    if (own if meant else others)[following.pc]:
                        found = _hit(after, observe(), state, meant) or found
                    else:
                        walker.advance()
                if found is not None:
                    if found.position > lowest:
                        best = found
                    break
                high = low
                if high > max(lowest, 0) and watch is not None and not watch(low + 1):
                    walker.go_to(low + 1)  # where going on back looks at what has not been looked at
                    return None
        walker.go_to(0 if best is None else best.position)
        return best

    def _last_place(self, before: Places, here: int, warp: int | None) -> Hit | None:
        """The latest position before here where a warp came to a place."""
        pcs, warps = self.known()
        pcs, warps = pcs[:here], warps[:here]
        best = None
        for breakpoint_, meant in before.items():
            for each in np.unique(warps) if warp is None else [warp]:
                at = np.flatnonzero(warps == each)
                inside = meant[pcs[at]]
                entered = at[inside & ~np.concatenate([np.zeros(min(len(at), 1), bool), inside[:-1]])]
                if len(entered) and (best is None or entered[-1] > best.position):
                    best = Hit(breakpoint_, int(entered[-1]), None)
        return best


def _parts(places: Places) -> tuple[dict[Breakpoint, Array], dict[Breakpoint, Array]]:
    """Breakpoints that stop before an instruction, and those that stop after it."""
    before = {each: pcs for each, pcs in places.items() if each.before}
    return before, {each: pcs for each, pcs in places.items() if not each.before}


def _hit(after: Places, event: Event, state: StateView, meant: bool) -> Hit | None:
    """The breakpoint that stops after an instruction; meant: whether its warp is watched."""
    for breakpoint_, pcs in after.items():
        if pcs[event.pc] and (meant or breakpoint_.every_warp) and breakpoint_.hit(event, state):
            return Hit(breakpoint_, event.position + 1, event)
    return None
