"""What a CTA holds at the position where one is: registers, shared memory, splits, barriers, copies on their way. All read-only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.errors import UsageError
from fasim.isa import machine as m
from fasim.sm.findings import lanes_of, pc_of
from fasim.sm.result import Hazard
from fasim.sm.state import CtaState
from fasim.smem import check_state as h
from fasim.smem import cp_async as q
from fasim.trace.walker import Next, Walker
from fasim.warp.calls import MAX_DEPTH

if TYPE_CHECKING:
    from fasim.ptx.names import RegisterName, RegisterNames

Array = np.ndarray[Any, Any]
_LANES = np.arange(32)


@dataclass(frozen=True, slots=True)
class WarpSplit:
    """Lanes of a warp at one pc. state: ready, barrier, collective, warp_sync or service; detail: the barrier, or the lanes waited for."""

    pc: int
    lanes: int
    state: str
    detail: int


@dataclass(frozen=True, slots=True)
class BarrierState:
    """A barrier at which somebody has arrived. expected: threads, 0 for all; waiting: lanes by warp."""

    number: int
    arrived: int
    expected: int
    waiting: dict[int, int]


@dataclass(frozen=True, slots=True)
class PendingCopy:
    """One cp.async whose bytes have not arrived. lanes: those still pending; byte_offsets: where each lane's bytes go in shared memory.

    data: the bytes, as they were read when the copy was issued, empty for lanes that do not take part. groups: the group of each lane,
    counted from 0; committed: lanes whose group is complete. pc: an instruction of the source line that issued it, -1 unless checks are on.
    """

    lanes: int
    bytes_per_lane: int
    byte_offsets: tuple[int, ...]
    data: tuple[bytes, ...]
    groups: tuple[int, ...]
    committed: int
    pc: int


@dataclass(frozen=True, slots=True)
class CopyGroup:
    """The pending copies of a warp that one commit makes a group. ranges: where they go in shared memory, joined, ends excluded."""

    number: int
    committed: bool
    lanes: int
    size_bytes: int
    ranges: tuple[tuple[int, int], ...]


def lanes_array(mask: int) -> Array:
    """A mask as 32 booleans."""
    return np.asarray(mask >> _LANES & 1, bool)


def mask_of(lanes: Array) -> int:
    """32 booleans as a mask."""
    return int.from_bytes(np.packbits(lanes, bitorder="little").tobytes(), "little")


def text_name(name: str) -> str:
    """What the PTX calls a register: those that a block of the text has for itself are told apart by a number, as in "x~1"."""
    return name.partition("~")[0]


def is_made(name: str) -> bool:
    """Whether a register was made while lowering: the PTX does not have it, and nobody is to see it."""
    return name.startswith("~")


def register_bits(type_: str, bank: int) -> int:
    """The bits that a register of a type has of its place in a bank."""
    return min(bank, int(type_[1:])) if type_[1:].isdigit() else bank


def row_values(state: CtaState, warp: int, bank: int, row: int) -> Array:
    """A copy of a register row: 32 numbers of 64 or 32 bits, or 32 booleans."""
    start = warp * len(state.program.template) + row
    data = state.registers[start : start + m.ROW_BYTES[bank]]
    if bank == 1:
        return lanes_array(int(data.view("<u4")[0]))
    return data.view("<u8" if bank == 64 else "<u4").copy()


def numbers(values: Array, type_: str) -> Array:
    """A register row as numbers of a type: float32[32] for f32, float64[32] for f64, float32[32, 2] for f16x2 and bf16x2 (low half first).

    f16 and bf16 give float32[32], s32 and s64 signed numbers; all others stay what they are.
    """
    if type_ in ("f32", "f64", "s32", "s64"):
        return values.view(f"<{'i' if type_[0] == 's' else 'f'}{int(type_[1:]) // 8}")
    if type_ in ("f16", "f16x2", "bf16", "bf16x2"):
        halves = values.view("<u2").reshape(-1, 2)
        wide = (halves.astype("<u4") << 16).view("<f4") if type_[0] == "b" else halves.view("<f2").astype("<f4")
        return np.asarray(wide if type_.endswith("x2") else wide[:, 0])
    return values


def joined_ranges(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Ranges with those that touch made one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return tuple(found)


def pending_copies(state: CtaState, warp: int) -> list[PendingCopy]:
    """The queue of a warp, the oldest first."""
    if not state.capacity:
        return []
    size = q.queue_bytes(state.capacity)
    queue = state.queue[warp * size : (warp + 1) * size].view("<i8")
    committed, smem, found = queue[q.H_COMMITTED // 8 : q.H_COMMITTED // 8 + 32], int(state.smem.ctypes.data), []
    for i in range(int(queue[q.H_COUNT // 8])):
        entry = queue[(q.HEADER_BYTES + i * q.ENTRY_BYTES) // 8 :]
        groups, targets = entry[q.E_GROUP // 8 : q.E_GROUP // 8 + 32], entry[q.E_TARGET // 8 : q.E_TARGET // 8 + 32]
        lanes, pc = int(entry[q.E_MASK // 8]), -1
        taking = lanes_array(lanes)
        if state.checks is not None:
            pc = int(state.checks.buffers[h.H_SITES][int(entry[q.E_ACCESS // 8])])
        offsets = np.where(taking, targets - smem, 0)
        ready = mask_of((groups < committed) & taking)
        size_bytes, raw = int(entry[q.E_SIZE // 8]), entry.view(np.uint8)[q.E_DATA :]
        data = tuple(raw[16 * lane : 16 * lane + size_bytes].tobytes() if taking[lane] else b"" for lane in range(32))
        found.append(PendingCopy(lanes, size_bytes, tuple(offsets.tolist()), data, tuple(groups.tolist()), ready, pc))
    return found


def committed_groups(state: CtaState, warp: int) -> tuple[int, ...]:
    """How many groups each lane of a warp has committed."""
    if not state.capacity:
        return (0,) * 32
    at = warp * q.queue_bytes(state.capacity) + q.H_COMMITTED
    return tuple(state.queue[at : at + 8 * 32].view("<i8").tolist())


class StateView:
    """The state of a CTA; it follows the stepper, so that one view is enough."""

    def __init__(self, walker: Walker, names: Callable[[], RegisterNames], hazards: Callable[[], list[Hazard]]) -> None:
        self._walker, self._names, self._hazards = walker, names, hazards

    @property
    def _state(self) -> CtaState:
        return self._walker.state

    @property
    def position(self) -> int:
        """Warp instructions executed."""
        return self._walker.position

    @property
    def next(self) -> Next | None:
        """The instruction that comes next, None where nothing does."""
        return self._walker.next

    @property
    def warps(self) -> int:
        """Warps of the CTA."""
        return self._walker.run.shape.warps

    def live_lanes(self, warp: int) -> int:
        """The lanes of a warp that have not ended."""
        return self._state.warp_word(self.checked_warp(warp), m.W_LIVE)

    def checked_warp(self, warp: int) -> int:
        """The warp itself.

        Raises: UsageError if the CTA has none of that number.
        """
        if not 0 <= warp < self.warps:
            raise UsageError(f"warp {warp}: the CTA has warps 0 to {self.warps - 1}")
        return warp

    # --- registers -----------------------------------------------------------------------------------------------------------

    def row(self, warp: int, bank: int, row: int) -> Array:
        """A register row by its place: uint32[32], uint64[32] (bank 64) or bool[32] (bank 1)."""
        return row_values(self._state, self.checked_warp(warp), bank, row)

    def pc(self, warp: int) -> int | None:
        """The instruction that the warp's next lanes are at, None if it has ended."""
        following = self.next
        if following is not None and following.warp == warp:
            return following.pc
        splits = self._state.splits_of(self.checked_warp(warp))
        return min((pc_of(s) for s in splits), default=None)

    def registers(self, warp: int) -> list[RegisterName]:
        """The registers of a warp that hold their values now: rows are shared, and others have been given away."""
        pc = self.pc(warp)
        return [] if pc is None else self._names().live_at(pc)

    def register(self, warp: int, name: str) -> Array:
        """A register by its name in the PTX.

        Raises: UsageError if it holds no value here.
        """
        for register in self.registers(warp):
            if register.name == name:
                return self.row(warp, register.bank, register.row)
        known = any(register.name == name for register in self._names().registers)
        why = "is not in use here: another register may have its row" if known else "is no register of this kernel"
        raise UsageError(f"{name} {why} (warp {warp}, pc {self.pc(warp)})")

    # --- memory --------------------------------------------------------------------------------------------------------------

    @property
    def shared_memory(self) -> Array:
        """The bytes of shared memory; what nobody has written holds 0xff."""
        view = self._state.smem.view()
        view.flags.writeable = False
        return view

    @property
    def shared_undefined(self) -> Array | None:
        """For each byte of shared memory which bits nobody has defined, None unless checks are on."""
        checks = self._state.checks
        if checks is None:
            return None
        view = checks.memory[0][: len(self._state.smem)]
        view.flags.writeable = False
        return view

    def local_memory(self, warp: int, lane: int) -> Array:
        """The bytes of a thread's local memory."""
        size = self._state.program.local_bytes
        start = (self.checked_warp(warp) * 32 + lane) * size
        view = self._state.local[start : start + size]
        view.flags.writeable = False
        return view

    @property
    def buffers(self) -> dict[str, Array]:
        """Device memory by name: the arguments, and variables of the module."""
        found = {}
        for allocation in self._walker.run.space.allocations:
            view = np.asarray(allocation.data).view()
            view.flags.writeable = False
            found[allocation.name] = view
        return found

    def buffer_at(self, address: int) -> tuple[str, int] | None:
        """The buffer that a global address points into and the byte there, None if it points into none."""
        near = self._walker.run.space.nearest(address)
        return (near[0].name, address - near[0].address) if near is not None and near[1] == 0 else None

    # --- control -------------------------------------------------------------------------------------------------------------

    def splits(self, warp: int) -> list[WarpSplit]:
        """The parts of a warp that are at different places, or wait for different things."""
        found = []
        for split in self._state.splits_of(self.checked_warp(warp)):
            state, detail = "ready", 0
            if split.state == m.AT_BARRIER:
                state, detail = "barrier", split.detail
            elif split.state == m.AT_COLLECTIVE:
                state, detail = "warp_sync" if split.detail & m.SYNC_FLAG else "collective", split.detail & m.ALL_LANES
            found.append(WarpSplit(pc_of(split), split.mask, state, detail))
        return found

    def calls(self, warp: int, lane: int) -> list[int]:
        """The pc of each call that a thread is in, the outermost first."""
        state, thread = self._state, self.checked_warp(warp) * 32 + lane
        if not state.program.has_calls:
            return []
        return state.call_stack[thread * MAX_DEPTH :][: int(state.call_depth[thread])].tolist()  # type: ignore[no-any-return]

    def barriers(self) -> list[BarrierState]:
        """The barriers at which threads have arrived."""
        words, found = self._state.bars.reshape(m.BARRIERS, -1), []
        for number in np.flatnonzero(words[:, m.B_ARRIVED // 8]).tolist():
            waiting = {}
            for warp in range(self.warps):
                lanes = 0
                for split in self._state.splits_of(warp):
                    if split.state == m.AT_BARRIER and split.detail == number:
                        lanes |= split.mask
                if lanes:
                    waiting[warp] = lanes
            arrived, expected = (int(words[number, word // 8]) for word in (m.B_ARRIVED, m.B_EXPECTED))
            found.append(BarrierState(number, arrived, expected, waiting))
        return found

    def copies(self, warp: int) -> list[PendingCopy]:
        """The cp.async of a warp that have not arrived, the oldest first."""
        return pending_copies(self._state, self.checked_warp(warp))

    def committed_groups(self, warp: int) -> tuple[int, ...]:
        """How many groups each lane of a warp has committed."""
        return committed_groups(self._state, self.checked_warp(warp))

    def copy_groups(self, warp: int) -> list[CopyGroup]:
        """The same by group."""
        found: dict[int, list[tuple[int, int, int, bool]]] = {}
        for copy in self.copies(warp):
            for lane in lanes_of(copy.lanes):
                part = (copy.byte_offsets[lane], copy.bytes_per_lane, lane, bool(copy.committed >> lane & 1))
                found.setdefault(copy.groups[lane], []).append(part)
        groups = []
        for number, parts in sorted(found.items()):
            lanes = 0
            for _, _, lane, _ in parts:
                lanes |= 1 << lane
            ranges = joined_ranges([(at, at + size) for at, size, _, _ in parts])
            groups.append(CopyGroup(number, all(done for *_, done in parts), lanes, sum(size for _, size, _, _ in parts), ranges))
        return groups

    # --- findings ------------------------------------------------------------------------------------------------------------

    @property
    def hazards(self) -> list[Hazard]:
        """What the checks have found so far; a read of what nobody has written may yet turn out to be a race."""
        return self._hazards()
