"""A grid: CTAs over all cores, with the same result whatever the number of cores.

CTAs that share nothing run in parallel. Every worker notes which bytes its CTAs read and wrote; if two workers touched the same bytes
and one of them wrote, memory is put back and the grid runs once more in the stated order: one core, CTAs in linear order, each until it
ends or has used up its turn. Kernels that talk between CTAs (atomics, volatile or ordered accesses, fences in global memory) run that
way at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasim.errors import DeadlockError, ExecutionError, InstructionLimit, Where
from fasim.gmem import AddressSpace
from fasim.isa import machine as m
from fasim.isa.program import Program
from fasim.sm import findings
from fasim.sm.machines import Machine
from fasim.sm.repetition import RepetitionWatch
from fasim.sm.services import Services
from fasim.sm.state import CtaState, LaunchShape, Shared
from fasim.sm.watch import Accounts, Checks, Shadows
from fasim.warp.schedule import QUANTUM_INSTRUCTIONS, TURN_INSTRUCTIONS

Array = np.ndarray[Any, Any]
#: the longest that a slice should take
SLICE_SECONDS = 0.1


@dataclass
class GridRun:
    """One launch on its way: what runs, on what, and how far it got."""

    program: Program
    shape: LaunchShape
    shared: Shared
    space: AddressSpace
    machine: Machine
    workers: int
    max_instructions: int | None
    resident_ctas: int
    progress: Callable[[int, int], None] | None = None
    output: Callable[[str], None] = print
    count: bool = False
    shadows: Shadows | None = None
    stop_before: int | None = None  # in the stated order, end when the CTA of that number would start
    accounts: list[Accounts] = field(init=False, default_factory=list)
    checks: list[Checks] = field(init=False, default_factory=list)
    counts: np.ndarray[Any, Any] = field(init=False)
    ordered: bool = field(init=False, default=False)
    _states: list[CtaState] = field(init=False, default_factory=list)
    _stop: threading.Event = field(init=False, default_factory=threading.Event)

    def run(self) -> None:
        """Run the whole grid; device memory is changed in place."""
        total = self.shape.ctas
        workers = min(self.workers, total)
        if workers > 1 and not self.program.communicates:
            changing = [a.data for a in self.space.allocations if not a.constant]
            changing += [shadow for _, _, shadow in self.shadows.buffers] if self.shadows else []
            saved = [(data, data.copy()) for data in changing]
            finished = False
            try:
                finished = self._run_parallel(workers)
            finally:
                if not finished:
                    for data, before in saved:
                        data[...] = before
            if finished:
                return
        self._run_ordered()

    @property
    def buffer_names(self) -> list[str]:
        """Names of the buffers that may hold undefined bytes."""
        return [name for name, _, _ in self.shadows.buffers] if self.shadows is not None else []

    def _state(self, map_bytes: int = 0) -> CtaState:
        state = CtaState(self.program, self.shape, self.shared, map_bytes=map_bytes, count=self.count, shadows=self.shadows)
        self._states.append(state)
        return state

    def _collect(self) -> None:
        """Gather what all CTAs did, also if one of them failed."""
        self.counts = np.sum([state.counts for state in self._states], axis=0)
        self.accounts = [state.accounts for state in self._states if state.accounts is not None]
        self.checks = [state.checks for state in self._states if state.checks is not None]

    # --- CTAs in the stated order ---------------------------------------------------------------------------------------------

    def _run_ordered(self) -> None:
        self.ordered = True
        self._states.clear()
        services = Services(self.program, self.space, self.output)
        total, next_cta, executed = self.shape.ctas, 0, 0
        states: list[CtaState] = []
        spare: list[CtaState] = []
        watch = RepetitionWatch(self.program, self.space)
        done = 0
        try:
            while done < total:
                finished = 0
                for state in [*states]:
                    used, status = self._turn(state, services, executed)
                    executed += used
                    if status == m.DONE:
                        states.remove(state)
                        spare.append(state)
                        finished += 1
                # a CTA starts when those before it wait for something, as the hardware fills its SMs
                while next_cta < total and len(states) < self.resident_ctas:
                    if next_cta == self.stop_before:
                        return
                    state = spare.pop() if spare else self._state()
                    state.set(m.C_CTA, next_cta)
                    state.set(m.C_CTA_END, next_cta + 1)
                    state.set(m.C_STARTED, 0)
                    next_cta += 1
                    used, status = self._turn(state, services, executed)
                    executed += used
                    if status == m.DONE:
                        spare.append(state)
                        finished += 1
                        self._report(done + finished)
                        continue
                    states.append(state)
                done += finished
                self._report(done)
                if finished or (next_cta < total and len(states) < self.resident_ctas):
                    watch.reset()
                elif states and watch.repeats(states):
                    raise self._livelock(states)
        finally:
            self._collect()

    def _turn(self, state: CtaState, services: Services, executed: int) -> tuple[int, int]:
        """Run a CTA for its turn; CTAs that (seem to) have nothing to wait for run to their end."""
        budget = min(TURN_INSTRUCTIONS, self.machine.slice_instructions)
        used, watch = 0, RepetitionWatch(self.program, self.space)
        while True:
            if self.max_instructions is not None:
                budget = min(budget, self.max_instructions - executed - used)
                if budget <= 0:
                    raise self._limit(state)
            state.set(m.C_BUDGET, budget)
            # the clock of the CTA itself counts on from its own start
            state.set(m.C_TIME, executed + used - (state.get(m.C_CLOCK) if state.get(m.C_STARTED) else 0))
            status = self._step(state, services)
            used += budget - state.get(m.C_BUDGET)
            if status == m.DONE or self.program.communicates or watch.repeats([state]):
                return used, status

    def _step(self, state: CtaState, services: Services) -> int:
        """Run a CTA until it is done, out of budget or failed; services are carried out on the way."""
        status = self.machine.run(int(state.context.ctypes.data), self.program.entry_pc)
        while status in (m.NEEDS_SERVICE, m.QUEUE_FULL, m.LOG_FULL):
            if status == m.QUEUE_FULL:
                state.grow_queue()
            elif status == m.LOG_FULL:
                assert state.checks is not None
                state.checks.grow()
            else:
                services.perform(state)
            status = self.machine.run(int(state.context.ctypes.data), self.program.entry_pc)
        if status == m.FAILED:
            raise findings.from_record(self.program, state, self.space)
        return status

    def _limit(self, state: CtaState) -> InstructionLimit:
        cta = self.shape.ctaid(state.get(m.C_CTA))
        return InstructionLimit(
            f"kernel {self.program.title} executed {self.max_instructions} warp instructions and had not ended (CTA {cta}); "
            "raise --max-instructions, or look for a loop that does not end",
            Where(self.program.title, ctaid=cta),
            kind="instruction_limit",
        )

    def _livelock(self, states: list[CtaState]) -> DeadlockError:
        places: list[str] = []
        waiting: list[dict[str, Any]] = []
        for state in states[:8]:
            cta = self.shape.ctaid(state.get(m.C_CTA))
            for warp in range(self.shape.warps):
                for split in state.splits_of(warp):
                    source = self.program.source_at(findings.pc_of(split))
                    lanes = findings.lanes_of(split.mask)
                    entry = {"ctaid": cta, "warp": warp, "lanes": lanes, "line": source.line, "file": source.file, "text": source.text}
                    waiting.append({**entry, "for": "a change in memory"})
                    shown = findings.describe_lanes(lanes)
                    places.append(f"  CTA {cta} warp {warp} lanes {shown} at {source.file}:{source.line}: `{source.text}`")
        first = states[0]
        absent = self.shape.ctas - first.get(m.C_CTA) - len(states)
        advice = (
            f"; {absent} CTAs have not started, since {self.resident_ctas} fill the GPU"
            if absent > 0 and len(states) >= self.resident_ctas
            else ""
        )
        message = f"livelock in kernel {self.program.title}: the same states come round again and nothing changes in memory{advice}\n"
        where = Where(self.program.title)
        if waiting:
            one = waiting[0]
            where = Where(self.program.title, one["file"], one["line"], 0, one["text"], one["ctaid"], one["warp"], one["lanes"])
        return DeadlockError(message + "\n".join(places[:12]), where, kind="livelock", waiting=waiting)

    def _report(self, done: int) -> None:
        if self.progress is not None:
            self.progress(done, self.shape.ctas)

    def last_writers(self, places: Sequence[tuple[int, int]]) -> list[int | None]:
        """For each of some places in device memory (address and size) the last CTA that writes there, None for one where none does.

        The launch has not run yet; CTAs run alone, one by one from the last to the first, so they must not communicate. Memory changes.
        Raises: ExecutionError for a CTA that fails.
        """
        state, services = self._state(self.space.map_bytes), Services(self.program, self.space, lambda text: None)
        bits: list[Array] = []
        for address, size in places:
            at = 0
            for allocation in self.space.allocations:
                if allocation.address <= address < allocation.address + allocation.size_bytes:
                    bits.append(8 * at + address - allocation.address + np.arange(size))
                at += allocation.map_bytes
        found: list[int | None] = [None] * len(bits)
        for cta in reversed(range(self.shape.ctas)):
            for slot, value in {m.C_CTA: cta, m.C_CTA_END: cta + 1, m.C_STARTED: 0}.items():
                state.set(slot, value)
            self._turn(state, services, 0)
            for i, each in enumerate(bits):
                if found[i] is None and (state.writes[each >> 3] >> (each & 7) & 1).any():
                    found[i] = cta
            if None not in found:
                break
        return found

    # --- in parallel ----------------------------------------------------------------------------------------------------------

    def _run_parallel(self, workers: int) -> bool:
        """Returns False if the result might depend on the order of CTAs, or a CTA failed: then memory has to be put back."""
        total = self.shape.ctas
        chunk = max(1, total // (workers * 8))
        lock, position = threading.Lock(), 0
        states = [self._state(self.space.map_bytes) for _ in range(workers)]
        printed: dict[int, list[str]] = {}
        executed = [0] * workers
        done = [0]
        suspect = threading.Event()

        def take() -> tuple[int, int]:
            nonlocal position
            with lock:
                first = position
                position = min(position + chunk, total)
                return first, position

        def work(number: int) -> None:
            state = states[number]
            services = Services(self.program, self.space, lambda text: printed.setdefault(state.get(m.C_CTA), []).append(text))
            watch = RepetitionWatch(self.program, None)
            pace = _Pace(self.machine.slice_instructions)
            while not suspect.is_set() and not self._stop.is_set():
                first, last = take()
                if first == last:
                    return
                state.set(m.C_CTA, first)
                state.set(m.C_CTA_END, last)
                status = m.OUT_OF_BUDGET
                while status == m.OUT_OF_BUDGET and not suspect.is_set() and not self._stop.is_set():
                    budget, before = pace.start(), state.get(m.C_CTA)
                    state.set(m.C_BUDGET, budget)
                    try:
                        status = self._step(state, services)
                    except ExecutionError:
                        suspect.set()
                        return
                    executed[number] += budget - state.get(m.C_BUDGET)
                    pace.end(used_up=status == m.OUT_OF_BUDGET)
                    if self.max_instructions is not None and sum(executed) > self.max_instructions:
                        suspect.set()
                        return
                    if state.get(m.C_CTA) != before:
                        watch.reset()
                    elif status == m.OUT_OF_BUDGET and watch.repeats([state]):
                        suspect.set()
                        return
                with lock:
                    done[0] += last - first

        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(work, i) for i in range(workers)]
            try:
                while not all(f.done() for f in futures):
                    _wait(futures)
                    self._report(done[0])
                    for future in futures:
                        if future.done():
                            future.result()
            except BaseException:
                self._stop.set()
                raise
            for future in futures:
                future.result()
        if suspect.is_set() or _conflict(states):
            return False
        self._collect()
        for cta in sorted(printed):
            for text in printed[cta]:
                self.output(text)
        self._report(total)
        return True


class _Pace:
    """Slices of a worker: as long as pays, short enough that the worker soon sees that it has to stop."""

    def __init__(self, most: int) -> None:
        self.most, self.budget, self.started = most, min(most, TURN_INSTRUCTIONS), 0.0

    def start(self) -> int:
        """The warp instructions of the next slice."""
        self.started = time.perf_counter()
        return self.budget

    def end(self, *, used_up: bool) -> None:
        """The slice has ended, `used_up` if it ran out of instructions."""
        seconds = time.perf_counter() - self.started
        if seconds > SLICE_SECONDS:
            self.budget = max(self.budget // 2, QUANTUM_INSTRUCTIONS)
        elif used_up and seconds < SLICE_SECONDS / 4:
            self.budget = min(2 * self.budget, self.most)


def _wait(futures: list[Any]) -> None:
    from concurrent.futures import wait

    wait(futures, timeout=0.1)


def _conflict(states: list[CtaState]) -> bool:
    """Whether a worker touched bytes that another one wrote."""
    read, written = states[0].reads.copy(), states[0].writes.copy()
    for state in states[1:]:
        if (state.writes & (read | written)).any() or (state.reads & written).any():
            return True
        read |= state.reads
        written |= state.writes
    return False
