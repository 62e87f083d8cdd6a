"""What to stop at: predicates on places of the code, or on what an instruction did."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fasim.errors import UsageError
from fasim.isa import machine as m
from fasim.sm.hazards import NOT_WAITED, RACES, UNINIT, UNINIT_GLOBAL, UNSYNCHRONISED
from fasim.trace.event import Event, RegisterChange
from fasim.trace.places import Places
from fasim.trace.view import StateView, lanes_array, register_bits, text_name

if TYPE_CHECKING:
    from fasim.ptx.names import OperandName, RegisterNames

Array = np.ndarray[Any, Any]
_NUMBERS = {"f32": "<f", "f64": "<d", "f16": "<e"}
#: kinds of findings, by the check that finds them
HAZARD_GROUPS = {
    "race": (*RACES.values(), NOT_WAITED),
    "init": (*UNINIT.values(), UNINIT_GLOBAL),
    "sync": tuple(UNSYNCHRONISED.values()),
}


@dataclass(frozen=True)
class Breakpoint:
    """Base of all breakpoints.

    before: True for those that stop before an instruction runs, where its warp comes to one of `pcs`; the others stop after an
    instruction at one of `pcs` of which `hit` says so.
    """

    before: ClassVar[bool] = False

    @property
    def every_warp(self) -> bool:
        """Whether it looks at what all warps do, also where one is watched."""
        return False

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """The instructions that it can stop at, bool by pc."""
        raise NotImplementedError

    def hit(self, event: Event, state: StateView) -> bool:
        """Whether an instruction did it; the state is that after it."""
        return True


def _where(places: Places, test: Any) -> Array:
    return np.array([test(pc) for pc in range(len(places.program))], bool)


@dataclass(frozen=True)
class LineBreak(Breakpoint):
    """A source line, also where it was inlined. file: the end of its path, "" for any file."""

    line: int
    file: str = ""
    before: ClassVar[bool] = True

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """The instructions of the line.

        Raises: UsageError if there are none, with the nearest line that has some.
        """
        found = _where(places, lambda pc: any(self._is(*place) for place in places.path(pc)))
        if not found.any():
            lines = {line for pc in range(len(places.program)) for file, line in places.path(pc) if file.endswith(self.file)}
            near = sorted(lines, key=lambda line: (abs(line - self.line), line))[:1]
            hint = f"; the nearest line that has some is {near[0]}" if near else ""
            raise UsageError(f"line {self.line}{f' of {self.file}' if self.file else ''}: no instruction comes from it{hint}")
        return found

    def _is(self, file: str, line: int) -> bool:
        return line == self.line and (file.endswith(self.file) if "/" in self.file else self.file in ("", Path(file).name))


@dataclass(frozen=True)
class StepBreak(Breakpoint):
    """A step of the algorithm, as the `//@` marks name it."""

    name: str
    before: ClassVar[bool] = True

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """The instructions of the step.

        Raises: UsageError listing the steps.
        """
        found = np.array([step == self.name for step in places.steps], bool)
        if not found.any():
            known = dict.fromkeys(step for step in places.steps if step)
            raise UsageError(f"no step {self.name!r}; there are: {', '.join(known) or 'none, the source marks no steps'}")
        return found


@dataclass(frozen=True)
class ConflictBreak(Breakpoint):
    """An access to shared memory with bank conflicts: at least so many, as the hardware counts them."""

    conflicts: int = 1

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """All accesses to memory."""
        return np.isin(places.kinds, m.MEMORY_KINDS)

    def hit(self, event: Event, state: StateView) -> bool:
        """Whether it had."""
        cost = event.access.wavefronts if event.access is not None and event.executed else None
        return cost is not None and cost.conflicts >= self.conflicts


@dataclass(frozen=True)
class HazardBreak(Breakpoint):
    """A new finding of the checks, by any warp. kind: as in `Hazard`, or one of HAZARD_GROUPS, "" for any."""

    kind: str = ""

    @property
    def every_warp(self) -> bool:
        """Always: it takes two warps to race."""
        return True

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """All instructions: an undefined value may decide something anywhere.

        Raises: UsageError for a kind that there is not.
        """
        if self.kind and self.kind not in HAZARD_GROUPS and not any(self.kind in kinds for kinds in HAZARD_GROUPS.values()):
            kinds = ", ".join(kind for group in HAZARD_GROUPS.values() for kind in group)
            raise UsageError(f"no hazard is of kind {self.kind!r}; there are: {kinds}; and all of a kind: {', '.join(HAZARD_GROUPS)}")
        return np.ones(len(places.program), bool)

    def hit(self, event: Event, state: StateView) -> bool:
        """Whether there is one."""
        meant = HAZARD_GROUPS.get(self.kind, (self.kind,))
        return any(not self.kind or hazard.kind in meant for hazard in event.hazards)


@dataclass(frozen=True)
class NanBreak(Breakpoint):
    """A result that is not a number. new: only where none of the operands was one."""

    new: bool = True

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """What writes floating-point registers."""
        return _where(places, lambda pc: any(each.writes and each.is_float for each in names.operands[pc]))

    def hit(self, event: Event, state: StateView) -> bool:
        """Whether there is one."""
        return bool(event.new_nan_lanes if self.new else event.nan_lanes)


@dataclass(frozen=True)
class RegisterBreak(Breakpoint):
    """A register that changes, or gets a value. value: None for any; a float means a number of the register's type.

    name: as the PTX or `RegisterNames` has it. lane: the one whose every write is meant, also of the same value; None for a change in any.
    warp: None for any. function: where the register is, "" for any. all_warps: also those that are not watched.
    """

    name: str
    value: int | float | bool | None = None
    lane: int | None = None
    warp: int | None = None
    function: str = ""
    all_warps: bool = False

    @property
    def every_warp(self) -> bool:
        """If it says whose register it is."""
        return self.all_warps or self.warp is not None

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """What writes it.

        Raises: UsageError if nothing does, or if it cannot hold the value.
        """

        def writes(pc: int) -> bool:
            return any(each.writes and self._is(each) for each in names.operands[pc])

        found = _where(places, writes)
        if self.function:
            found &= _where(places, lambda pc: names.function_at(pc) == self.function)
        if not found.any():
            written = dict.fromkeys(text_name(each.name) for operands in names.operands for each in operands if each.writes)
            some = ", ".join([name for name in written if name][:3])
            hint = f"; the PTX names them, for example {some}" if some else ""
            raise UsageError(f"nothing in kernel {places.program.title} writes a register {self.name}{hint}")
        if self.lane is not None and not 0 <= self.lane < 32:
            raise UsageError(f"lane {self.lane}: a warp has lanes 0 to 31")
        if self.value is not None:
            for pc in np.flatnonzero(found):
                for each in names.operands[pc]:
                    if each.writes and self._is(each):
                        self._bits(each)
        return found

    def hit(self, event: Event, state: StateView) -> bool:
        """Whether it was written so."""
        return next(self.writes(event), None) is not None

    def writes(self, event: Event) -> Iterator[tuple[int, RegisterChange, Array]]:
        """What an event did that is meant: warp, destination and lanes (bool[32])."""
        # of the other warps that waited at a barrier only those lanes are known that changed
        elsewhere = event.arrival.results if event.arrival is not None else ()
        found = [(event.warp, change, lanes_array(event.active)) for change in event.registers]
        found += [(warp, change, change.changed if self.value is None else lanes_array(m.ALL_LANES)) for warp, change in elsewhere]
        for warp, change, lanes in found:
            if self.warp in (None, warp) and self._is(change.operand):
                if self.value is not None:
                    lanes = lanes & (change.new == self._bits(change.operand))
                elif self.lane is None:
                    lanes = lanes & change.changed
                if self.lane is not None:
                    lanes = lanes & (np.arange(32) == self.lane)
                if lanes.any():
                    yield warp, change, lanes

    def _is(self, operand: OperandName) -> bool:
        return self.name in (operand.name, text_name(operand.name))

    def _bits(self, operand: OperandName) -> int | bool:
        assert self.value is not None
        type_ = operand.seen_as
        if operand.bank == 1:
            return bool(self.value)
        if isinstance(self.value, float):
            if type_ not in _NUMBERS:
                raise UsageError(f"register {self.name} is {type_}, no floating-point number: compare it with its bits, not {self.value}")
            try:
                return int.from_bytes(struct.pack(_NUMBERS[type_], self.value), "little")
            except OverflowError:
                raise UsageError(f"register {self.name} is {type_}, too small for {self.value}") from None
        return int(self.value) & ((1 << register_bits(type_, operand.bank)) - 1)


@dataclass(frozen=True)
class _BytesBreak(Breakpoint):
    """Some bytes of memory, whichever warp accesses them. where: "shared", or the name of a buffer, which byte_offset counts from."""

    where: str
    byte_offset: int
    size_bytes: int = 4

    @property
    def every_warp(self) -> bool:
        """Always: a value comes most often from another warp."""
        return True

    def _bytes(self, state: StateView) -> Array:
        """What is there."""
        if self.where == "shared":
            return state.shared_memory
        buffers = state.buffers
        if self.where not in buffers:
            raise UsageError(f"no buffer {self.where!r}; there are: shared, {', '.join(buffers)}")
        return buffers[self.where].reshape(-1).view(np.uint8)

    @property
    def spaces(self) -> tuple[str, ...]:
        """The state spaces in which the bytes are."""
        return ("shared",) if self.where == "shared" else ("global", "const")

    def meets(self, first: int, end: int, state: StateView) -> bool:
        """Whether some of the bytes are between two addresses of one of `spaces`, the second excluded."""
        place: tuple[str, int] | None = (self.where, first)
        if self.where != "shared":
            place = state.buffer_at(first)
        start = self.byte_offset
        return place is not None and place[0] == self.where and place[1] < start + self.size_bytes and start < place[1] + end - first


@dataclass(frozen=True)
class MemoryBreak(_BytesBreak):
    """A write to some bytes by any warp; value: what they must hold then."""

    value: bytes | None = None

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """What writes memory; copies do so where they are waited for."""
        return np.isin(places.kinds, (m.STORE, m.ATOM, m.STMATRIX, m.CP_WAIT))

    def hit(self, event: Event, state: StateView) -> bool:
        """Whether they were written, and hold the value now."""
        data = self._bytes(state)
        if not any(self.meets(first, end, state) for space in self.spaces for first, end in event.written_ranges(space)):
            return False
        return self.value is None or data[self.byte_offset : self.byte_offset + self.size_bytes].tobytes() == self.value


@dataclass(frozen=True)
class ReadBreak(_BytesBreak):
    """A read of some bytes by any warp; copies read where they are issued."""

    def pcs(self, places: Places, names: RegisterNames) -> Array:
        """What reads memory."""
        return np.isin(places.kinds, (m.LOAD, m.ATOM, m.LDMATRIX, m.CP_ASYNC))

    def hit(self, event: Event, state: StateView) -> bool:
        """Whether they were read."""
        self._bytes(state)
        return any(self.meets(first, end, state) for space in self.spaces for first, end in event.read_ranges(space))


@dataclass(frozen=True, eq=False)
class Hit:
    """A breakpoint and the position where it stopped; event: what the instruction before it did, for breakpoints on that."""

    breakpoint: Breakpoint
    position: int
    event: Event | None
