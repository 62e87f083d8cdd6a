"""One CTA, instruction by instruction: forward by a budget of one, back to a keyframe and forward again.

A position is the number of warp instructions that the CTA has begun, counted as the machine's budget counts them: lanes that arrive at a
collective and wait there for others have begun it too. Every position is reached by the same calls of the machine, however one got there,
so that a position always stands for the same state. What ends a step in the middle (Ctrl-C) leads back to the latest keyframe.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasim.errors import ExecutionError, FasimError, InstructionLimit, UsageError, Where
from fasim.isa import machine as m
from fasim.sm import findings
from fasim.sm.grid import GridRun
from fasim.sm.hazards import hazards
from fasim.sm.result import Hazard
from fasim.sm.services import Services
from fasim.sm.state import CtaState
from fasim.smem import check_state as h
from fasim.trace.history import Buffer, History

#: positions between keyframes at first, and what keyframes may take before they are thinned out
KEYFRAME_INSTRUCTIONS, KEYFRAME_LIMIT_BYTES = 256, 256 << 20
#: what a walk ends at, since a CTA may wait for ever for one that does not run
MAX_INSTRUCTIONS = 10_000_000
#: positions after which those are told who watch a walk
WATCH_INSTRUCTIONS = 256
Watch = Callable[[int], bool]
Array = np.ndarray[Any, Any]
#: buffers of the checks that never change
_FIXED = frozenset({h.H_GROUPS, h.H_SITES, h.H_BUFFERS, h.H_ZEROS, h.H_DUMP, h.H_AFTER, h.H_BLOCK_OF, h.H_LOG, h.H_OBJECTS, h.H_EXTRA})

_NEXT_WARP, _BUDGET, _SLICE_LEFT = m.C_NEXT_WARP // 8, m.C_BUDGET // 8, m.C_SLICE_LEFT // 8
_WARP_WORDS, _SPLIT_WORDS = m.WARP_BYTES // 8, m.SPLIT_BYTES // 8
_SPLITS, _FAIR, _PATIENCE, _TURN = m.W_SPLITS // 8, m.W_FAIR // 8, m.W_PATIENCE // 8, m.W_TURN // 8
_PC, _MASK, _STATE, _SPLIT_TURN = m.S_PC // 8, m.S_MASK // 8, m.S_STATE // 8, m.S_TURN // 8


@dataclass(frozen=True, slots=True)
class Next:
    """The instruction that comes next: warp, pc, and the lanes at it (its guard may still keep some of them from executing it)."""

    warp: int
    pc: int
    lanes: int


@dataclass
class Walker:
    """The chosen CTA of a launch. before: warp instructions that other CTAs executed before it started.

    known_warps, known_pcs: of the instruction at each position that was reached. end: the last position, once it is known. failure: what
    makes going on from there impossible. hazards: what the checks have found by then. progress: told now and then on the way forward where
    one is, and the end if it is known. origin: device memory, and what it held before other CTAs ran.
    """

    run: GridRun
    cta: int
    wanted: frozenset[str] = frozenset()
    before: int = 0
    interval: int = KEYFRAME_INSTRUCTIONS
    limit_bytes: int = KEYFRAME_LIMIT_BYTES
    max_instructions: int = MAX_INSTRUCTIONS
    progress: Callable[[int, int | None], None] | None = None
    position: int = field(init=False, default=0)
    end: int | None = field(init=False, default=None)
    failure: ExecutionError | None = field(init=False, default=None)
    hazards: tuple[Hazard, ...] | None = field(init=False, default=None)
    next: Next | None = field(init=False, default=None)
    state: CtaState = field(init=False)
    history: History = field(init=False)
    known_warps: array[int] = field(init=False, default_factory=lambda: array("H"))
    known_pcs: array[int] = field(init=False, default_factory=lambda: array("I"))
    printed: list[tuple[int, str]] = field(init=False, default_factory=list)
    origin: list[tuple[Array, Array]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self._runs = self.run.program.code[:, m.AT_RUN // 4].tolist()
        self._torn = False  # a step has begun and not ended
        self._full: CtaState | None = None  # it has to begin again, for a buffer of this state is too small
        self._begin(None)

    # --- the beginning -------------------------------------------------------------------------------------------------------

    def _begin(self, like: CtaState | None) -> None:
        """A fresh CTA at its first instruction, with buffers as large as those of `like`."""
        run, program = self.run, self.run.program
        state = CtaState(program, run.shape, run.shared, map_bytes=run.space.map_bytes, shadows=run.shadows)
        if like is not None:
            _enlarge(state, like)
        for slot, value in {m.C_CTA: self.cta, m.C_CTA_END: self.cta + 1, m.C_STARTED: 0, m.C_TIME: self.before}.items():
            state.set(slot, value)
        self.state, self.position, self.printed = state, 0, []
        self._services = Services(program, run.space, lambda text: self.printed.append((self.position, text)))
        self._context, self._warps, self._splits = (a.data for a in (state.context, state.warps, state.splits))
        self._address = int(state.context.ctypes.data)
        self._arrive(self._call(0))
        self.history = History(self._buffers(), self.interval, self.limit_bytes, 0, self._extra())

    def _buffers(self) -> list[Buffer]:
        """Everything that the CTA can change."""
        state, space = self.state, self.run.space
        own = [state.registers, state.smem, state.local, state.warps, state.splits, state.bars, state.error, state.run_counts]
        own += [state.call_depth, state.call_stack, state.save, state.queue, state.context]
        buffers = [Buffer(data) for data in own if data.nbytes]
        checks = state.checks
        if checks is not None:
            block = checks.block.data
            found = {slot: data for slot, data in checks.buffers.items() if slot not in _FIXED}
            # before the block, whose counts say whether they are in use
            for slot, count in ((h.H_LOG, h.H_LOG_COUNT), (h.H_OBJECTS, h.H_OBJECT_COUNT), (h.H_EXTRA, h.H_EXTRA_COUNT)):
                buffers.append(Buffer(checks.buffers[slot], used=_counted(block, count // 8)))
            buffers += [Buffer(data) for data in (checks.block, *checks.memory, *found.values()) if data.nbytes]
        at, words = 0, state.writes.view("<u8")
        for allocation in space.allocations:
            if not allocation.constant and allocation.size_bytes:
                buffers.append(Buffer(allocation.data, written=words[at // 8 : (at + allocation.map_bytes) // 8]))
            at += allocation.map_bytes
        if self.run.shadows is not None:
            buffers += [Buffer(shadow) for _, _, shadow in self.run.shadows.buffers]
        return buffers

    def _extra(self) -> Any:
        """What belongs to a keyframe beside the buffers: what malloc has given out."""
        services = self._services
        return services.heap_used, dict(services.blocks), {size: list(blocks) for size, blocks in services.free.items()}

    def _grow(self, status: int) -> None:
        """A buffer is full: begin again with a larger one, so that all keyframes are of buffers of one size; then come back here."""
        state, position = self.state, self.position
        self._full = state
        if status == m.QUEUE_FULL:
            state.grow_queue()
        else:
            assert state.checks is not None
            try:
                state.checks.grow()
            except FasimError:
                self._full = None
                self._restore(position)
                raise
        self._mend()
        self.go_to(position)

    def _mend(self) -> None:
        """Make the state whole after a step that did not end: that of the latest keyframe, or of the beginning if a buffer was to grow."""
        del self.known_warps[len(self.known_pcs) :]
        if self._full is not None:
            self.history.rewind(0)
            self._begin(self._full)
            self._full = None
            self._torn = False
        else:
            self._rewind(self.position)

    # --- forward -------------------------------------------------------------------------------------------------------------

    def _call(self, budget: int) -> int:
        self._context[_BUDGET] = budget
        return self.run.machine.run(self._address, self.run.program.entry_pc)

    def advance(self) -> bool:
        """Execute the next instruction; False at the end.

        Raises: ExecutionError where the kernel fails; the position stays before the instruction that does.
        """
        if self._torn:
            self._mend()
        if self.position == self.end:
            if self.failure is not None:
                raise self.failure
            return False
        following = self.next
        assert following is not None
        if self.position == self.max_instructions:
            self._ended(self.position, self._limit())
            assert self.failure is not None
            raise self.failure
        self._torn = True
        try:
            self._execute(following)
        finally:
            if self._torn:
                self._mend()
        if self.progress is not None and not self.position % WATCH_INSTRUCTIONS:
            self.progress(self.position, self.end)
        return True

    def _execute(self, following: Next) -> None:
        """Execute an instruction."""
        position, warp = self.position, following.warp
        record = warp * _WARP_WORDS
        whole = self._runs[following.pc] <= 1
        # the machine does not part a run of instructions on registers when a turn is over: nor may we, who make it execute one
        if not whole:
            if self._context[_SLICE_LEFT] == 1:
                self._context[_SLICE_LEFT] = 2
            if self._warps[record + _PATIENCE] == 1:
                self._warps[record + _PATIENCE] = 2
        turn_over = whole and self._warps[record + _PATIENCE] == 1 and self._context[_SLICE_LEFT] != 1
        status = self._call(1)
        if status in (m.QUEUE_FULL, m.LOG_FULL):
            self._grow(status)
            self.advance()
            return
        if status == m.NEEDS_SERVICE:
            try:
                self._services.perform(self.state)
            except ExecutionError as error:
                self._fail(position, error)
            except FasimError:
                self._restore(position)
                raise
            status = self._call(0)
        elif status == m.FAILED and (self._context[_BUDGET] or int(self.state.error[m.ERR_KIND // 8]) != m.E_DEADLOCK):
            self._fail(position, findings.from_record(self.run.program, self.state, self.run.space))
        if turn_over and status == m.OUT_OF_BUDGET and self._context[_NEXT_WARP] == warp and self._warps[record + _PATIENCE] == 1:
            self._set_aside(warp)
            status = self._call(0)
        self.position = position + 1
        self._arrive(status)
        if self.next is not None and self.position - self.history.last >= self.history.interval:
            self.history.push(self.position, self._extra())
        self._torn = False

    def _arrive(self, status: int) -> None:
        """The machine has stopped: let lanes wake up that may go on, as they would when it is called again, and look what comes next."""
        if status == m.OUT_OF_BUDGET:
            warp = self._context[_NEXT_WARP]
            first, count = warp * m.SPLITS_PER_WARP * _SPLIT_WORDS, self._warps[warp * _WARP_WORDS + _SPLITS]
            if count > 1 and any(self._splits[first + i * _SPLIT_WORDS + _STATE] == m.AT_COLLECTIVE for i in range(count)):
                self._call(0)
            self._look()
            return
        self.next = None
        error = findings.from_record(self.run.program, self.state, self.run.space) if status == m.FAILED else None
        self._ended(self.position, error)

    def _ended(self, position: int, error: ExecutionError | None) -> None:
        """This is the end: of the kernel, or of what can be done because of an error."""
        if self.end is None:
            state, run = self.state, self.run
            certain = self.wanted if error is None or run.shape.warps == 1 else self.wanted - {"init"}
            found = hazards(run.program, run.shape, [state.checks], certain, run.buffer_names) if state.checks is not None else []
            if error is not None:
                error.hazards = found
            self.hazards, self.failure = tuple(found), error
            self.end = position

    def _look(self) -> None:
        """See which instruction comes next."""
        warp = self._context[_NEXT_WARP]
        at = self._chosen(warp)
        self.next = Next(warp, self._splits[at + _PC], self._splits[at + _MASK])
        if self.position == len(self.known_pcs):
            self.known_warps.append(warp)
            self.known_pcs.append(self.next.pc)

    def _chosen(self, warp: int) -> int:
        """Where the split stands that the machine will run: as `fasim.warp.splits.pick` chooses."""
        first, count = warp * m.SPLITS_PER_WARP * _SPLIT_WORDS, self._warps[warp * _WARP_WORDS + _SPLITS]
        if count == 1:
            return first
        key = _SPLIT_TURN if self._warps[warp * _WARP_WORDS + _FAIR] else _PC
        places = [first + i * _SPLIT_WORDS for i in range(count)]
        return min((at for at in places if self._splits[at + _STATE] == m.READY), key=lambda at: self._splits[at + key])

    def _set_aside(self, warp: int) -> None:
        """The running split has used up its turn, and others of its warp wait: what the machine does when its budget does not end there."""
        at, record = self._chosen(warp), warp * _WARP_WORDS
        self._splits[at + _SPLIT_TURN] = self._warps[record + _TURN]
        self._warps[record + _FAIR] = 1 - self._warps[record + _FAIR]
        self._warps[record + _PATIENCE] = 0

    def _fail(self, position: int, error: ExecutionError) -> None:
        """The instruction at a position fails: stay before it."""
        self._ended(position, error)
        self._restore(position)
        assert self.failure is not None
        raise self.failure

    def _limit(self) -> InstructionLimit:
        run = self.run
        cta = run.shape.ctaid(self.cta)
        alone = ", or for what a CTA does that does not run while this one is stepped" if run.program.communicates else ""
        return InstructionLimit(
            f"kernel {run.program.title} executed {self.max_instructions} warp instructions in CTA {cta} and had not ended; raise "
            f"max_instructions, or look for a loop that waits for ever{alone}",
            Where(run.program.title, ctaid=cta),
            kind="instruction_limit",
        )

    # --- to a position -------------------------------------------------------------------------------------------------------

    def go_to(self, position: int, watch: Watch | None = None) -> None:
        """Go to a position, or to the end if that comes first; watch: told now and then where one is, and False means to stay there.

        Raises: ExecutionError if the kernel fails before it, at the position where it does; UsageError.
        """
        if position < 0:
            raise UsageError(f"position {position}: the first one is 0")
        if self._torn:
            self._mend()
        if position < self.position:
            self._rewind(position)
        while self.position < position and self.advance():
            if watch is not None and not self.position % WATCH_INSTRUCTIONS and not watch(self.position):
                return

    def _restore(self, position: int) -> None:
        """Go back to a position by its keyframe."""
        self._rewind(position)
        while self.position < position:
            self.advance()

    def _rewind(self, position: int) -> None:
        """Go back to the keyframe of a position."""
        self._torn = True
        frame = self.history.rewind(position)
        self._services.heap_used, blocks, free = frame.extra
        self._services.blocks, self._services.free = dict(blocks), {size: list(each) for size, each in free.items()}
        self.position = frame.position
        self.printed = [entry for entry in self.printed if entry[0] < frame.position]
        self._look()
        self._torn = False


def _counted(block: memoryview, word: int) -> Callable[[], bool]:
    return lambda: bool(block[word])


def _enlarge(state: CtaState, like: CtaState) -> None:
    """Give the buffers of a fresh CTA the sizes that another one's have grown to."""
    while state.capacity < like.capacity:
        state.grow_queue()
    checks, grown = state.checks, like.checks
    if checks is None or grown is None:
        return
    while checks.log_capacity < grown.log_capacity:
        checks.block[h.H_LOG_COUNT // 8] = checks.log_capacity
        checks.grow()
    checks.block[h.H_LOG_COUNT // 8] = 0
    if checks.extra_capacity < grown.extra_capacity:
        checks.block[h.H_NEEDED // 8] = grown.extra_capacity // 2
        checks.grow()


def start(
    run: GridRun,
    cta: Sequence[int],
    wanted: frozenset[str],
    *,
    interval: int,
    limit_bytes: int,
    max_instructions: int,
    progress: Callable[[int, int | None], None] | None = None,
) -> tuple[Walker, str]:
    """The walker of a CTA, and what CTAs printed that ran before it.

    If CTAs of the program communicate, those that come before it in the stated order have run for as long as they do until it starts;
    otherwise it runs alone.
    Raises: UsageError; ExecutionError if an earlier CTA fails.
    """
    grid = run.shape.grid
    place = (*cta, 0, 0)[: max(3, len(cta))]
    origin: list[tuple[Array, Array]] = []
    if len(place) > 3 or any(not 0 <= at < size for at, size in zip(place, grid)):
        raise UsageError(f"CTA {tuple(cta)}: the grid is {grid}, so it goes from (0, 0, 0) to {tuple(size - 1 for size in grid)}")
    number = place[0] + grid[0] * (place[1] + grid[1] * place[2])
    text: list[str] = []
    before = 0
    if run.program.communicates and number:
        run.output, run.stop_before = text.append, number
        origin = [(np.asarray(each.data), each.data.copy()) for each in run.space.allocations if not each.constant]
        try:
            run.run()
        except BaseException:
            put_back(origin)
            raise
        before = int(run.counts.sum())
    walker = Walker(run, number, wanted, before, interval, limit_bytes, max_instructions, progress)
    walker.origin = origin
    return walker, "".join(text)


def put_back(origin: Sequence[tuple[Array, Array]]) -> None:
    """Give memory earlier contents."""
    for data, before in origin:
        data[...] = before
