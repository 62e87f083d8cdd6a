"""What one warp instruction did: the lanes that executed it, registers before and after, its access to memory and what that cost."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.isa import machine as m
from fasim.isa import operands as o
from fasim.isa.program import SourceInstruction
from fasim.sm.findings import lanes_of, pc_of
from fasim.sm.operations import operation_of
from fasim.sm.result import Hazard
from fasim.sm.state import CtaState
from fasim.smem.wavefronts import Wavefronts, count_wavefronts
from fasim.trace.view import PendingCopy, committed_groups, joined_ranges, lanes_array, mask_of, numbers, pending_copies, row_values

if TYPE_CHECKING:
    from fasim.ptx.names import OperandName, RegisterNames

Array = np.ndarray[Any, Any]
BAR_OPERATIONS = ("sync", "arrive", "red.popc", "red.and", "red.or")
_WINDOWS = {m.SHARED_WINDOW: m.SHARED, m.LOCAL_WINDOW: m.LOCAL, m.PARAM_WINDOW: m.PARAM}


@dataclass(frozen=True, slots=True, eq=False)
class RegisterChange:
    """A destination: its 32 lanes before and after. fresh: lanes that hold a value for the first time; `old` is not theirs, then."""

    operand: OperandName
    old: Array
    new: Array
    fresh: int = 0

    @property
    def changed(self) -> Array:
        """Which lanes hold something else now, or for the first time."""
        return np.asarray((self.old != self.new) | lanes_array(self.fresh))


@dataclass(frozen=True, eq=False)
class Access:
    """An access to memory. addresses: of the 32 lanes, in shared and local memory and parameters as byte offsets; 0 where inactive.

    space: "generic" if lanes access different ones. lanes: those that give an address. op: the machine operation as `count_wavefronts`
    names it, "" if it is not to shared memory or has no cost of its own. sources: where cp.async reads from, in global memory.
    Copies write when they are waited for, not here.
    """

    space: str
    lanes: int
    addresses: tuple[int, ...]
    bytes_per_lane: int
    reads: bool
    writes: bool
    op: str
    sources: tuple[int, ...]
    arch: str

    @cached_property
    def wavefronts(self) -> Wavefronts | None:
        """What the access costs in shared memory, and which lanes collide; None where that is not defined."""
        if not self.op or self.space != "shared":
            return None
        return count_wavefronts(self.op, self.addresses, self.lanes, self.arch, self.sources or None)

    def places(self, space: str = "") -> dict[int, int]:
        """The first byte that each lane accesses in a state space ("": that of the access)."""
        taken = {lane: self.addresses[lane] for lane in lanes_of(self.lanes)}
        if self.space == "generic" and space not in ("", "generic"):
            found = {lane: _window(m.GENERIC, at) for lane, at in taken.items()}
            return {lane: at for lane, (where, at) in found.items() if m.SPACE_NAMES[where] == space}
        return taken if space in ("", self.space) else {}

    def ranges(self, space: str = "") -> tuple[tuple[int, int], ...]:
        """The bytes that are accessed in a state space ("": that of the access), joined, ends excluded."""
        return joined_ranges([(at, at + self.bytes_per_lane) for at in self.places(space).values()])

    def source_ranges(self) -> tuple[tuple[int, int], ...]:
        """The bytes of global memory that cp.async reads, joined, ends excluded."""
        places = [self.sources[lane] for lane in lanes_of(self.lanes)] if self.sources else []
        return joined_ranges([(at, at + self.bytes_per_lane) for at in places])


@dataclass(frozen=True, slots=True)
class Arrival:
    """Lanes at a barrier of the CTA. count: of threads, 0 for all; opened: whether they were the last.

    results: what it then writes to registers of other warps, which have waited there: warp and destination.
    """

    operation: str
    number: int
    count: int
    opened: bool
    results: tuple[tuple[int, RegisterChange], ...] = ()


@dataclass(frozen=True, slots=True)
class CopyStep:
    """cp.async.commit_group and its waits. group: the one committed, -1 for waits; pending: how many a wait leaves, -1 for wait_all.

    arrived: where bytes arrived in shared memory.
    """

    group: int
    pending: int
    arrived: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Event:
    """What the instruction did that was executed between a position and the next.

    path: source places from the kernel's line inwards. lanes: at the instruction; active: those that its guard lets execute it.
    executed: False if they only began to wait there for others: then they have written and accessed nothing.
    """

    position: int
    warp: int
    pc: int
    kind: str
    source: SourceInstruction
    path: tuple[tuple[str, int], ...]
    step: str
    lanes: int
    active: int
    executed: bool
    registers: tuple[RegisterChange, ...]
    float_sources: tuple[tuple[OperandName, Array], ...]
    access: Access | None
    arrival: Arrival | None
    copies: CopyStep | None
    hazards: tuple[Hazard, ...]
    printed: str

    @property
    def text(self) -> str:
        """The PTX instruction."""
        return self.source.text

    @cached_property
    def nan_lanes(self) -> int:
        """Lanes with a result that is not a number."""
        found = np.zeros(32, bool)
        for change in self.registers:
            if change.operand.is_float:
                found |= is_nan(change.new, change.operand.seen_as)
        return mask_of(found & lanes_array(self.active))

    @cached_property
    def new_nan_lanes(self) -> int:
        """Those of them to which no operand brought it: in mma the operands of any lane."""
        brought = np.zeros(32, bool)
        for operand, values in self.float_sources:
            brought |= is_nan(values, operand.seen_as)
        if self.source.mnemonic.startswith(("mma", "wmma", "shfl")):
            brought[:] = brought.any()
        return self.nan_lanes & ~mask_of(brought)

    def written_ranges(self, space: str) -> tuple[tuple[int, int], ...]:
        """The bytes of a state space that were written."""
        if space == "shared" and self.copies is not None:
            return self.copies.arrived
        access = self.access
        if access is None or not access.writes or self.kind == "cp_async":
            return ()
        return access.ranges(space)

    def read_ranges(self, space: str) -> tuple[tuple[int, int], ...]:
        """The bytes of a state space that were read, cp.async reads where it is issued."""
        access = self.access
        if access is None:
            return ()
        if access.sources:
            return access.source_ranges() if space == "global" else ()
        return access.ranges(space) if access.reads else ()


def is_nan(values: Array, type_: str) -> Array:
    """Which lanes hold a not-a-number, of pairs at least one."""
    if type_ in ("f32", "f64"):
        return np.asarray(np.isnan(numbers(values, type_)))
    exponent, fraction = (0x7C00, 0x3FF) if type_ in ("f16", "f16x2") else (0x7F80, 0x7F)
    halves = values.astype("<u4").view("<u2").reshape(-1, 2)
    if not type_.endswith("x2"):
        halves = halves[:, :1]
    return np.asarray(((halves & exponent == exponent) & (halves & fraction != 0)).any(axis=1))


# --- before the instruction -------------------------------------------------------------------------------------------------------


def active_lanes(state: CtaState, warp: int, pc: int, lanes: int) -> int:
    """The lanes that an instruction's guard lets execute it."""
    guard = int(state.program.code[pc, m.AT_GUARD // 4])
    if guard < 0:
        return lanes
    start = warp * len(state.program.template) + (guard & -2)
    word = int(state.registers[start : start + 4].view("<u4")[0])
    return lanes & (~word if guard & 1 else word)


def _addresses(state: CtaState, warp: int, pc: int, at: int = 0) -> list[int]:
    """What the lanes compute as address: register plus offset."""
    program = state.program
    row, wide = program.operand(pc, at + o.P_ADDRESS), program.operand(pc, at + o.P_WIDE)
    offset = (program.operand(pc, at + o.P_OFFSET_LOW) & 0xFFFFFFFF) | program.operand(pc, at + o.P_OFFSET_HIGH) << 32
    if row < 0:
        return [offset] * 32
    mask = 0xFFFFFFFFFFFFFFFF if wide else 0xFFFFFFFF
    return [(int(value) + offset) & mask for value in row_values(state, warp, 64 if wide else 32, row).tolist()]


def _window(space: int, address: int) -> tuple[int, int]:
    """State space and address in it, of a generic address."""
    if space == m.GENERIC:
        for base, found in _WINDOWS.items():
            if base <= address < base + m.WINDOW_BYTES:
                return found, address - base
        return m.GLOBAL, address
    return space, address


def access_of(state: CtaState, warp: int, pc: int, active: int, arch: str) -> Access | None:
    """The access to memory that an instruction is about to make."""
    program, kind = state.program, int(state.program.code[pc, m.AT_KIND // 4])
    if kind not in m.MEMORY_KINDS or not active:
        return None
    space, size = program.operand(pc, o.P_SPACE), program.operand(pc, o.P_BYTES) * program.operand(pc, o.P_VECTOR)
    lanes = active
    if kind in (m.LDMATRIX, m.STMATRIX):
        lanes &= (1 << 8 * program.operand(pc, o.M_COUNT)) - 1
    taking = lanes_of(lanes)
    raw, addresses, spaces = _addresses(state, warp, pc), [0] * 32, set()
    for lane in taking:
        where, addresses[lane] = _window(space, raw[lane])
        spaces.add(where)
    if len(spaces) > 1:
        addresses = [raw[lane] if lane in taking else 0 for lane in range(32)]
    sources: tuple[int, ...] = ()
    if kind == m.CP_ASYNC:
        read = _addresses(state, warp, pc, o.Q_SOURCE)
        sources = tuple(read[lane] if lane in taking else 0 for lane in range(32))
    return Access(
        space=m.SPACE_NAMES[spaces.pop()] if len(spaces) == 1 else "generic",
        lanes=lanes,
        addresses=tuple(addresses),
        bytes_per_lane=size,
        reads=kind in (m.LOAD, m.ATOM, m.LDMATRIX),
        writes=kind in (m.STORE, m.ATOM, m.STMATRIX, m.CP_ASYNC),
        op=operation_of(program, pc),
        sources=sources,
        arch=arch,
    )


def _landed(before: list[PendingCopy], after: list[PendingCopy]) -> tuple[tuple[int, int], ...]:
    """Where bytes arrived, of copies that were pending before and are not any more."""
    left = {(copy.groups[lane], copy.byte_offsets[lane]) for copy in after for lane in lanes_of(copy.lanes)}
    spans = []
    for copy in before:
        for lane in lanes_of(copy.lanes):
            at = copy.byte_offsets[lane]
            if (copy.groups[lane], at) not in left:
                spans.append((at, at + copy.bytes_per_lane))
    return joined_ranges(spans)


def _barrier(state: CtaState, warp: int, pc: int, active: int) -> tuple[int, int]:
    """Number and count of the barrier that an instruction is about to come to."""
    number, count = state.program.operand(pc, o.BAR_NUMBER), state.program.operand(pc, o.BAR_COUNT)
    lane = lanes_of(active)[0]
    return tuple(int(row_values(state, warp, 32, row)[lane]) if row >= 0 else 0 for row in (number, count))  # type: ignore[return-value]


def _results(state: CtaState, warp: int, number: int, names: RegisterNames) -> list[tuple[int, OperandName, Array, int]]:
    """Destinations of the other warps that wait at a barrier: warp, operand, its 32 lanes, and lanes that hold no value yet."""
    found = []
    for other in range(state.shape.warps):
        for split in state.splits_of(other) if other != warp else ():
            if split.state == m.AT_BARRIER and split.detail == number:
                pc = pc_of(split)
                for each in names.operands[pc]:
                    if each.writes and not each.name.startswith("~"):
                        fresh = 0 if names.holds(each.name, pc) else split.mask
                        found.append((other, each, row_values(state, other, each.bank, each.row), fresh))
    return found


class Capture:
    """What has to be looked at before an instruction is executed, to say afterwards what it did."""

    def __init__(self, state: CtaState, warp: int, pc: int, lanes: int, names: RegisterNames, arch: str) -> None:
        operands = names.operands[pc]
        self.warp, self.pc, self.lanes, self.operands = warp, pc, lanes, operands
        self.kind = int(state.program.code[pc, m.AT_KIND // 4])
        self.active = active_lanes(state, warp, pc, lanes)
        written = [each for each in operands if each.writes]
        self.dests = [
            (each, row_values(state, warp, each.bank, each.row), 0 if names.holds(each.name, pc) else self.active) for each in written
        ]
        self.sources = tuple((each, row_values(state, warp, each.bank, each.row)) for each in operands if each.reads and each.is_float)
        self.access = access_of(state, warp, pc, self.active, arch)
        self.count = int(state.run_counts[pc])
        self.pending = pending_copies(state, warp) if self.kind == m.CP_WAIT else []
        groups = committed_groups(state, warp) if self.kind == m.CP_COMMIT else ()
        self.group = max((groups[lane] for lane in lanes_of(self.active)), default=-1) if groups else -1
        # a result may stand where these stood
        self.barrier = _barrier(state, warp, pc, self.active) if self.kind == m.BAR and self.active else None
        self.waiting = [] if self.barrier is None else _results(state, warp, self.barrier[0], names)

    def registers(self, state: CtaState) -> tuple[RegisterChange, ...]:
        """The destinations, now that it has been executed; those that lowering made only if there are no others."""
        named = [dest for dest in self.dests if not dest[0].name.startswith("~")]
        shown = named if named or self.kind == m.ATOM else self.dests
        return tuple(RegisterChange(each, old, row_values(state, self.warp, each.bank, each.row), fresh) for each, old, fresh in shown)

    def arrival(self, state: CtaState) -> Arrival | None:
        """What a barrier did."""
        if self.barrier is None:
            return None
        number, count = self.barrier
        operation = BAR_OPERATIONS[state.program.operand(self.pc, o.BAR_OP)]
        opened = not int(state.bars.reshape(m.BARRIERS, -1)[number, m.B_ARRIVED // 8])
        changes = [(warp, each, old, row_values(state, warp, each.bank, each.row), fresh) for warp, each, old, fresh in self.waiting]
        results = tuple((warp, RegisterChange(each, old, new, fresh)) for warp, each, old, new, fresh in changes)
        return Arrival(operation, number, count, opened, results if opened else ())

    def copies(self, state: CtaState) -> CopyStep | None:
        """What a commit or a wait did."""
        if self.kind == m.CP_COMMIT and self.active:
            return CopyStep(self.group, 0, ())
        if self.kind == m.CP_WAIT and self.active:
            pending = int(state.program.code[self.pc, m.AT_AUX // 4])
            return CopyStep(-1, pending, _landed(self.pending, pending_copies(state, self.warp)))
        return None
