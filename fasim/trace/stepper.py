"""Stepping through one CTA of a launch, forward and back.

    stepper = Stepper(kernel, grid, block, args, cta=(0, 0, 0))
    stepper.step(); stepper.step(-1)                   # warp instructions
    stepper.next_line(); stepper.previous_step()       # for any warp, or warp=...
    stepper.run_to([ConflictBreak()])
    stepper.event().access.wavefronts                  # what the instruction before this position did
    stepper.state.register(0, "%f12")                  # what the CTA holds at this position

Device memory is the arrays that were given, as in a launch; going back puts them back, too. CTAs that share nothing do not need each
other, so the chosen one runs alone. If the program lets CTAs communicate (atomics or ordered accesses in global memory), those before it
run first, in the stated order, as far as they get until it starts; later ones do not run, so what it would wait for them never comes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.errors import ExecutionError, UsageError
from fasim.isa import machine as m
from fasim.sm.hazards import checks_of, hazards
from fasim.sm.module import Kernel
from fasim.sm.result import Hazard
from fasim.smem import check_state as h
from fasim.trace.breaks import Breakpoint, Hit
from fasim.trace.elements import Elements
from fasim.trace.event import Capture, Event, active_lanes
from fasim.trace.history import flat_bytes
from fasim.trace.places import INHERITED, Places, entries
from fasim.trace.search import Search
from fasim.trace.view import StateView, committed_groups, pending_copies
from fasim.trace.walker import KEYFRAME_INSTRUCTIONS, KEYFRAME_LIMIT_BYTES, MAX_INSTRUCTIONS, Walker, Watch, put_back, start

if TYPE_CHECKING:
    from fasim.ptx.names import RegisterNames

Array = np.ndarray[Any, Any]
#: events that need not be looked at once more
KEPT_EVENTS = 64
#: what tells records of the log apart, but for the word that they are about
_WHAT = {h.L_KIND // 8: 1, h.L_DETAIL // 8: 1 << 4, h.L_FIRST // 8: 1 << 24, h.L_SECOND // 8: 1 << 44}


class Stepper:
    """A launch that stands still in one CTA.

    names: registers by row, and the operands of each instruction. places: lines, steps and loops. elements: device memory by names and
    elements. earlier_output: what CTAs printed that had to run before.
    """

    def __init__(
        self,
        kernel: Kernel,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        *,
        cta: Sequence[int] = (0, 0, 0),
        dynamic_smem_bytes: int = 0,
        opt_in: bool = True,
        check: bool | str = True,
        names: Sequence[str] = (),
        backend: str = "jit",
        texts: Mapping[str, str] | None = None,
        dtypes: Mapping[str, str] | None = None,
        interval: int = KEYFRAME_INSTRUCTIONS,
        limit_bytes: int = KEYFRAME_LIMIT_BYTES,
        max_instructions: int = MAX_INSTRUCTIONS,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> None:
        """Make a launch ready and stop before the first instruction of a CTA.

        grid, block, args, dynamic_smem_bytes, opt_in, names, backend: as for `Kernel.launch`. check: whether to look for hazards, or which,
        as there. texts: sources that are not on disk, by path. dtypes: "bf16" for the buffers that hold it, by name. interval, limit_bytes:
        instructions between keyframes at first, and what keyframes may take. max_instructions: where a walk ends that does not come to an
        end. progress: told now and then on any way forward the position, and the last one if it is known.
        Raises: what `Kernel.launch` raises; UsageError for a CTA outside of the grid.
        """
        checks = ("all" if check else "") if isinstance(check, bool) else check
        self.kernel, self._wanted = kernel, checks_of(checks)
        self._run, self._arguments = kernel.prepare(
            grid, block, args, dynamic_smem_bytes=dynamic_smem_bytes, opt_in=opt_in, check=checks, names=names, backend=backend, workers=1
        )
        self._walker, self.earlier_output = start(
            self._run,
            cta,
            self._wanted,
            interval=interval,
            limit_bytes=limit_bytes,
            max_instructions=max_instructions,
            progress=progress,
        )
        module = kernel.module.compiled
        known = {module.source_path: module.source_text, **(texts or {})} if module is not None else texts
        self.places = Places(self._run.program, known)
        self.state = StateView(self._walker, lambda: self.names, self._all_hazards)
        self.elements = Elements(self._run.space, dtypes)
        self._search = Search(self._walker)
        self.names: RegisterNames = kernel.register_names
        self._events: dict[int, Event] = {}  # those that were asked for last, by position
        self._logged, self._found = 0, (b"", [])  # type: tuple[int, tuple[bytes, list[Hazard]]]

    def __repr__(self) -> str:
        known = "?" if self.end is None else str(self.end)
        return f"<Stepper in {self.kernel.name}, CTA {self.ctaid}: {self.position} of {known} warp instructions>"

    @property
    def walker(self) -> Walker:
        """What moves."""
        return self._walker

    @property
    def ctaid(self) -> tuple[int, int, int]:
        """blockIdx of the CTA."""
        return self._run.shape.ctaid(self._walker.cta)

    @property
    def grid(self) -> tuple[int, int, int]:
        """gridDim of the launch."""
        return self._run.shape.grid

    @property
    def position(self) -> int:
        """Warp instructions executed so far."""
        return self._walker.position

    @property
    def trail(self) -> tuple[Array, Array]:
        """pc and warp of the instruction at each position that anybody has been at, also after this one."""
        return self._search.known()

    @property
    def end(self) -> int | None:
        """The last position, None as long as nobody has been there."""
        return self._walker.end

    @property
    def failure(self) -> ExecutionError | None:
        """What ends the kernel at `end`, None if it ends well or nobody knows yet."""
        return self._walker.failure

    @property
    def output(self) -> str:
        """What the CTA has printed up to here."""
        return "".join(text for position, text in self._walker.printed if position < self.position)

    # --- moving --------------------------------------------------------------------------------------------------------------
    # What ends a move in the middle, such as Ctrl-C, leaves one at a position on its way, or at a keyframe before it.

    def go_to(self, position: int, watch: Watch | None = None) -> None:
        """Go to a position, or to the end; watch: told now and then where one is on the way forward, False stops there.

        Raises: ExecutionError at the end of a kernel that fails, if the position lies after it.
        """
        self._walker.go_to(position, watch)

    def go_to_end(self, watch: Watch | None = None) -> None:
        """Go to the end.

        Raises: ExecutionError if the kernel fails there.
        """
        self._walker.go_to(1 << 62, watch)

    def step(self, count: int = 1, watch: Watch | None = None) -> None:
        """Execute so many warp instructions, or go back over them; watch: as for `go_to`.

        Raises: ExecutionError for the instruction that fails.
        """
        if count == 1 and self._walker.next is not None:
            self._observe()
        else:
            self._walker.go_to(max(self.position + count, 0), watch)

    def leave(self) -> None:
        """Put device memory back to what it was before the launch, also to before the CTAs that had to run first; this stepper is done."""
        self._walker.go_to(0)
        put_back(self._walker.origin)

    def next_line(self, warp: int | None = None, watch: Watch | None = None) -> bool:
        """Go to where a warp (None: any) comes to another source line; False if it does not, then one is at the end.

        watch: as for `go_to`; False if it stops.
        Raises: ExecutionError if the kernel fails on the way; one is where it does.
        """
        return self._search.forward(lambda pcs, warps: entries(self.places.line_keys[pcs], warps), warp, watch)

    def previous_line(self, warp: int | None = None) -> bool:
        """Go back to where a warp came to a line; False if there is none, then one is at the beginning."""
        return self._search.backward(lambda pcs, warps: entries(self.places.line_keys[pcs], warps), warp)

    def next_step(self, warp: int | None = None, watch: Watch | None = None) -> bool:
        """The same for steps of the algorithm; for lines where none are marked."""
        return self._search.forward(lambda pcs, warps: entries(self.places.step_keys[pcs], warps), warp, watch)

    def previous_step(self, warp: int | None = None) -> bool:
        """The same for steps of the algorithm; for lines where none are marked."""
        return self._search.backward(lambda pcs, warps: entries(self.places.step_keys[pcs], warps), warp)

    def next_tile(self, warp: int | None = None, watch: Watch | None = None) -> bool:
        """The same for tiles: rounds of the loop that holds the marked steps.

        Raises: UsageError if the kernel has no loop.
        """
        return self._search.forward(lambda pcs, warps: self._tiles()[pcs], warp, watch)

    def previous_tile(self, warp: int | None = None) -> bool:
        """The same for tiles."""
        return self._search.backward(lambda pcs, warps: self._tiles()[pcs], warp)

    def next_barrier(self, warp: int | None = None, watch: Watch | None = None) -> bool:
        """The same for barriers of the CTA: one is before it."""
        return self.next_of(self.places.barrier_pcs, warp, watch)

    def previous_barrier(self, warp: int | None = None) -> bool:
        """The same for barriers of the CTA."""
        return self._search.backward(lambda pcs, warps: self.places.barrier_pcs[pcs], warp)

    def next_of(self, meant: Array, warp: int | None = None, watch: Watch | None = None) -> bool:
        """The same for some instructions, a bool for each pc."""
        return self._search.forward(lambda pcs, warps: meant[pcs], warp, watch)

    def _tiles(self) -> Array:
        if self.places.tile_loop is None:
            raise UsageError(f"kernel {self.kernel.name} has no loop, so there are no tiles; move by step or by line")
        return self.places.tile_pcs

    def tile(self, warp: int) -> int:
        """The tile that a warp is in, counted from 0; -1 before the first."""
        pcs, warps = self._search.known()
        upto = min(self.position + 1, len(pcs))
        return int((self.places.tile_pcs[pcs[:upto]] & (warps[:upto] == warp)).sum()) - 1

    def run_to(
        self, breakpoints: Sequence[Breakpoint], direction: int = 1, *, warp: int | None = None, watch: Watch | None = None
    ) -> Hit | None:
        """Go forward (1) or back (-1) to the next place where a breakpoint stops, None if there is none: then one is at the end.

        warp: look only at what this warp does, but for breakpoints that look at every warp. watch: as for `go_to`.
        Raises: ExecutionError if the kernel fails on the way; UsageError for a breakpoint that can never be met.
        """
        if direction not in (1, -1):
            raise UsageError(f"direction {direction}: 1 is forward, -1 is back")
        places = {each: self._pcs(each) for each in breakpoints}
        look = self._search.run_forward if direction == 1 else self._search.run_back
        return look(places, self._observe, self.state, warp, watch)

    def _pcs(self, breakpoint_: Breakpoint) -> Array:
        """Where a breakpoint can stop; instructions without a line belong to the place before them."""
        found = breakpoint_.pcs(self.places, self.names)
        if breakpoint_.before:
            for pc in np.flatnonzero(self.places.line_keys[1:] == INHERITED) + 1:
                found[pc] = found[pc - 1]
        return found

    # --- what happened -------------------------------------------------------------------------------------------------------

    def event(self, position: int | None = None) -> Event | None:
        """What the instruction did that was executed from a position to the next; None: the one before here. None if there is none.

        Raises: ExecutionError for the instruction that fails.
        """
        wanted = self.position - 1 if position is None else position
        if wanted in self._events:
            self._events[wanted] = event = self._events.pop(wanted)
            return event
        if wanted < 0 or (self.end is not None and wanted >= self.end):
            return None
        here = self.position
        self._walker.go_to(wanted)
        found = None
        try:
            if self.position == wanted and self._walker.next is not None:
                found = self._observe()
        finally:
            self._walker.go_to(here)
        return found

    def next_lanes(self, warp: int) -> tuple[int, int]:
        """The lanes of a warp that are at its next instruction, and those of them that its guard lets execute it; 0 where it has ended."""
        state, pc = self._walker.state, self.state.pc(warp)
        if pc is None:
            return 0, 0
        following = self.state.next
        lanes = following.lanes if following is not None and following.warp == warp else 0
        lanes = lanes or next((each.lanes for each in self.state.splits(warp) if each.pc == pc), 0)
        return lanes, active_lanes(state, warp, pc, lanes)

    def _observe(self) -> Event:
        """Execute the next instruction and tell what it did."""
        walker, program = self._walker, self._run.program
        following = walker.next
        assert following is not None
        position, warp, pc = walker.position, following.warp, following.pc
        before = Capture(walker.state, warp, pc, following.lanes, self.names, self.kernel.module.arch.name)
        known = self._hazards()
        walker.advance()
        state = walker.state
        executed = int(state.run_counts[pc]) != before.count
        event = Event(
            position=position,
            warp=warp,
            pc=pc,
            kind=m.KINDS[before.kind],
            source=program.source_at(pc),
            path=self.places.path(pc),
            step=self.places.step(pc),
            lanes=following.lanes,
            active=before.active,
            executed=executed,
            registers=before.registers(state) if executed else (),
            float_sources=before.sources,
            access=before.access if executed else None,
            arrival=before.arrival(state),
            copies=before.copies(state),
            hazards=_new(known, self._hazards()),
            printed="".join(text for at, text in walker.printed if at == position),
        )
        self._events.pop(position, None)
        self._events[position] = event
        if len(self._events) > KEPT_EVENTS:
            self._events.pop(next(iter(self._events)), None)
        return event

    def _all_hazards(self) -> list[Hazard]:
        """What the checks have found."""
        run, checks = self._run, self._walker.state.checks
        if checks is None or not checks.block[h.H_LOG_COUNT // 8]:
            return []
        return hazards(run.program, run.shape, [checks], self._wanted, run.buffer_names)

    def _hazards(self) -> list[Hazard]:
        """The same, though perhaps as it was some instructions ago, when the log had records of the same kinds and places."""
        checks = self._walker.state.checks
        count = 0 if checks is None else int(checks.block[h.H_LOG_COUNT // 8])
        if checks is not None and self._logged != count:
            table = checks.buffers[h.H_LOG].view(np.int64).reshape(-1, h.LOG_BYTES // 8)
            used = np.flatnonzero(table[:, 0])
            kinds = np.unique(sum(table[used, at] * factor for at, factor in _WHAT.items())).tobytes()
            if self._found[0] != kinds:
                self._found = (kinds, self._all_hazards())
            self._logged = count
        return self._found[1]

    def lasting(self, found: Sequence[Hazard]) -> tuple[Hazard, ...]:
        """Those findings that are none of those which something later explained in another way; all as long as the end is not known."""
        true = self._walker.hazards
        return tuple(found) if true is None else _same(true, found)

    def digest(self) -> str:
        """A hash of everything that the kernel's further course depends on: the same position has the same."""
        state, digest = self._walker.state, hashlib.blake2b(digest_size=16)
        parts = [state.registers, state.smem, state.local, state.warps, state.splits, state.bars, state.call_depth, state.call_stack]
        parts += [state.save, state.run_counts, state.context[[m.C_CLOCK // 8, m.C_NEXT_WARP // 8, m.C_ROUND // 8, m.C_SLICE_LEFT // 8]]]
        parts += [a.data for a in self._run.space.allocations if not a.constant]
        for part in parts:
            digest.update(flat_bytes(part).data)
        for warp in range(state.shape.warps):
            digest.update(repr((committed_groups(state, warp), pending_copies(state, warp))).encode())
        return digest.hexdigest()


def _new(before: Sequence[Hazard], after: Sequence[Hazard]) -> tuple[Hazard, ...]:
    """Findings that were not there before."""
    if before is after:
        return ()
    known = {_what(each) for each in before}
    return tuple(each for each in after if _what(each) not in known)


def _same(known: Sequence[Hazard], found: Sequence[Hazard]) -> tuple[Hazard, ...]:
    """Findings that are among those that are known."""
    true = {_what(each) for each in known}
    return tuple(each for each in found if _what(each) in true)


def _what(hazard: Hazard) -> tuple[Any, ...]:
    return hazard.kind, hazard.first, hazard.second
