"""A trace for ui.perfetto.dev: what the warps of a CTA execute over time, which copies are on their way, what shared memory costs.

A microsecond stands for one warp instruction of the CTA, in the order in which they were executed; it says nothing of real time.
The CTA is a process. Its tracks: "launch" (one slice with what the trace is of), counters of the wavefronts and conflicts of each
access to shared memory, and for each warp "warp N" with slices nested as step, source line, instruction (two levels where no steps are
marked), findings as instants, and as many tracks "warp N copies" as it has groups of cp.async on their way at once: a slice lasts from a
group's first cp.async to behind the wait that covers it. Groups are whole, also where filters keep only a part of what belongs to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fasim.report.trace_protobuf import COUNTER, INSTANT, SLICE_BEGIN, SLICE_END, PacketWriter, Value
from fasim.report.trace_record import copy_groups_of, fault_record, is_inserted, mask_text
from fasim.report.trace_select import Chosen, Selection
from fasim.trace.event import Event
from fasim.trace.places import Places
from fasim.trace.stepper import Stepper
from fasim.trace.view import joined_ranges

INSTRUCTION_NS = 1000
NOTE = "1 us = 1 warp instruction of this CTA, in the order of execution; not real time"
OUTSIDE, INSERTED = "(outside of steps)", "(jump)"
_CTA, _LAUNCH, _WAVEFRONTS, _CONFLICTS, _FIRST_WARP = 1, 2, 3, 4, 16
_TRACKS_PER_WARP = 1 << 12


def _time(position: int) -> int:
    return position * INSTRUCTION_NS


@dataclass
class _Group:
    """A copy group on its way. slot: its track; first: where it was issued; committed: where it was closed, -1 while it is open."""

    slot: int
    first: int
    step: str
    line: str
    copies: int = 0
    size_bytes: int = 0
    ranges: tuple[tuple[int, int], ...] = ()
    committed: int = -1


@dataclass
class _Open:
    """The slices that are open on a warp's track: names of step and line with the tile, and the last instruction."""

    names: list[tuple[int, str]] = field(default_factory=list)
    last: int = -1


class PerfettoTrace:
    """Writes packet by packet; what is kept are the open slices, the copies on their way, and strings of the program."""

    sees_copies, also = True, None

    def __init__(self, file: BinaryIO, stepper: Stepper, selection: Selection, header: dict[str, Any]) -> None:
        self._out, self._stepper, self._selection = PacketWriter(file), stepper, selection
        self._lines = _LineNames(stepper.places)
        self._static: dict[tuple[int, str], bytes] = {}
        self._open: dict[int, _Open] = {}
        self._groups: dict[tuple[int, int], _Group] = {}
        self._slots: dict[int, int] = {}
        self._last = -1
        self._costs = {_WAVEFRONTS: 0, _CONFLICTS: 0}
        cta = ",".join(map(str, header["cta"]))
        self._out.track(_CTA, f"{header['kernel']} CTA ({cta})", pid=1, sorts=True, description=NOTE)
        self._out.track(_LAUNCH, "launch", parent=_CTA, rank=1, description=NOTE)
        self._out.track(_WAVEFRONTS, "shared wavefronts", parent=_CTA, rank=2, unit="wavefronts", description="of each access")
        self._out.track(_CONFLICTS, "shared bank conflicts", parent=_CTA, rank=3, unit="conflicts", description="of each access")
        facts = {name: _plain(value) for name, value in header.items()}
        self._slice_begin(_LAUNCH, selection.first, str(header["kernel"]), {"time": NOTE, **facts})
        self._out.event(SLICE_END, _time(selection.last + 1), _LAUNCH)

    # --- instructions --------------------------------------------------------------------------------------------------------

    def _warp_track(self, warp: int, slot: int = 0) -> int:
        """The uuid of a warp's track, or of one of those for its copies, counted from 1."""
        return _FIRST_WARP + warp * _TRACKS_PER_WARP + slot

    def _declare(self, warp: int, slot: int = 0) -> None:
        track = self._warp_track(warp, slot)
        self._out.track(track, f"warp {warp} copies" if slot else f"warp {warp}", parent=_CTA, rank=track)

    def event(self, event: Event, chosen: Chosen) -> None:
        """Write what the instruction before the stepper's position did; if it is not wanted, only what it did to copies."""
        self._copies(event)
        if not chosen.wanted:
            return
        self._nest(event, chosen)
        self._count(event)
        self._last = event.position

    def _nest(self, event: Event, chosen: Chosen) -> None:
        if event.warp not in self._open:
            self._declare(event.warp)
            self._open[event.warp] = _Open()
        opened, track, at = self._open[event.warp], self._warp_track(event.warp), event.position
        names = [(chosen.tile, event.step or OUTSIDE)] if self._stepper.places.has_steps else []
        names.append((chosen.tile, self._lines.name(event.path)))
        same = 0
        if chosen.follows:
            same = next((i for i, (a, b) in enumerate(zip(names, opened.names)) if a != b), len(names))
        self._close(opened, track, same)
        tile: dict[str, Value] = {"tile": chosen.tile} if chosen.tile >= 0 else {}
        for _, name in names[same:]:
            self._slice_begin(track, at, name, tile)
        opened.names, opened.last = names, at
        name = INSERTED if is_inserted(event, self._stepper) else event.source.mnemonic
        self._out.event(SLICE_BEGIN, _time(at), track, name, self._arguments(event))
        self._out.event(SLICE_END, _time(at + 1), track)
        for hazard in self._selection.lasting(event.hazards):
            text: dict[str, Value] = {"severity": hazard.severity, "text": hazard.text, "space": hazard.space, "scope": hazard.scope}
            self._out.event(INSTANT, _time(at), track, f"{hazard.severity}: {hazard.kind}", self._out.annotations(text))

    def _close(self, opened: _Open, track: int, keep: int) -> None:
        for _ in opened.names[keep:]:
            self._out.event(SLICE_END, _time(opened.last + 1), track)

    def _slice_begin(self, track: int, position: int, name: str, values: dict[str, Value]) -> None:
        self._out.event(SLICE_BEGIN, _time(position), track, name, self._out.annotations(values))

    def _arguments(self, event: Event) -> bytes:
        key = event.pc, event.step
        if key not in self._static and is_inserted(event, self._stepper):
            self._static[key] = self._out.annotations({"pc": event.pc, "ptx": "a jump that is not in the PTX"})
        elif key not in self._static:
            place = {"line": f"{event.source.file}:{event.source.line}", "calls": _calls(event.path)} if event.source.line else {}
            self._static[key] = self._out.annotations({"ptx": " ".join(event.text.split()), "pc": event.pc, **place})
        varying: dict[str, Value] = {"position": event.position, "active": mask_text(event.active)}
        if event.lanes != event.active:
            varying["lanes"] = mask_text(event.lanes)
        if not event.executed:
            varying["waits"] = "for the other lanes of its mask"
        access = event.access
        if access is not None:
            varying["space"] = access.space
            if access.wavefronts is not None:
                varying |= {"wavefronts": access.wavefronts.actual, "conflicts": access.wavefronts.conflicts}
        if event.arrival is not None:
            varying["barrier"] = f"{event.arrival.operation} {event.arrival.number}: {'opens' if event.arrival.opened else 'waits'}"
        if event.new_nan_lanes:
            varying["new NaN in lanes"] = mask_text(event.new_nan_lanes)
        if event.printed:
            varying["printed"] = event.printed
        return self._static[key] + self._out.annotations(varying)

    # --- counters ------------------------------------------------------------------------------------------------------------

    def _count(self, event: Event) -> None:
        """Each access has its cost for one unit of time."""
        if event.position != self._last + 1:
            self._set_costs(self._last + 1, 0, 0)
        cost = None if event.access is None else event.access.wavefronts
        self._set_costs(event.position, 0 if cost is None else cost.actual, 0 if cost is None else cost.conflicts)

    def _set_costs(self, position: int, wavefronts: int, conflicts: int) -> None:
        for track, value in ((_WAVEFRONTS, wavefronts), (_CONFLICTS, conflicts)):
            if self._costs[track] != value:
                self._costs[track] = value
                self._out.event(COUNTER, _time(position), track, value=value)

    # --- copies --------------------------------------------------------------------------------------------------------------

    def _copies(self, event: Event) -> None:
        if event.kind == "cp_async" and event.access is not None:
            for number, lanes in copy_groups_of(event, self._stepper.state).items():
                group = self._group(event, number)
                spans = [event.access.addresses[lane] for lane in range(32) if lanes >> lane & 1]
                size = event.access.bytes_per_lane
                group.copies += 1
                group.size_bytes += size * len(spans)
                group.ranges = joined_ranges([*group.ranges, *((at, at + size) for at in spans)])
        elif event.kind == "cp_commit" and event.copies is not None:
            group_ = self._groups.get((event.warp, event.copies.group))
            if group_ is not None:
                group_.committed = event.position
        elif event.kind == "cp_wait" and self._groups:
            left = {group.number for group in self._stepper.state.copy_groups(event.warp)}
            for warp, number in list(self._groups):
                if warp == event.warp and number not in left:
                    ends: dict[str, Value] = {
                        "waited for at": event.position,
                        "wait": " ".join(event.text.split()),
                        "wait line": self._lines.name(event.path),
                    }
                    self._write_group(warp, number, event.position + 1, ends)

    def _group(self, event: Event, number: int) -> _Group:
        key = event.warp, number
        if key not in self._groups:
            taken = {group.slot for (warp, _), group in self._groups.items() if warp == event.warp}
            slot = next(i for i in range(1, _TRACKS_PER_WARP) if i not in taken)
            self._groups[key] = _Group(slot, event.position, event.step, self._lines.name(event.path))
        return self._groups[key]

    def _write_group(self, warp: int, number: int, end: int, ends: dict[str, Value]) -> None:
        """Write a group that is complete, if it was on its way at anything that is wanted."""
        group = self._groups.pop((warp, number))
        if end <= self._selection.first or group.first > self._selection.last:
            return
        while self._slots.get(warp, 0) < group.slot:
            self._slots[warp] = self._slots.get(warp, 0) + 1
            self._declare(warp, self._slots[warp])
        values: dict[str, Value] = {
            "group": number,
            "bytes": group.size_bytes,
            "cp.async instructions": group.copies,
            "into shared memory": ", ".join(f"{first:#x} to {last - 1:#x}" for first, last in group.ranges),
            "issued in": " ".join(filter(None, (group.step, group.line))),
            "issued at": group.first,
            "committed at": group.committed if group.committed >= 0 else "never",
            **ends,
        }
        track = self._warp_track(warp, group.slot)
        self._slice_begin(track, group.first, f"copy group {number}", values)
        self._out.event(SLICE_END, _time(end), track)

    # --- the end -------------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Close all slices; the stepper stands where the kernel ends."""
        for warp, opened in self._open.items():
            self._close(opened, self._warp_track(warp), 0)
        self._set_costs(self._last + 1, 0, 0)
        fault = fault_record(self._stepper)
        for warp, number in list(self._groups):
            ends: dict[str, Value] = {"waited for at": "never: the kernel faults before" if fault else "never"}
            self._write_group(warp, number, self._stepper.position, ends)
        if fault is not None:
            warp = fault["warp"]
            track = self._warp_track(warp) if warp in self._open else _LAUNCH
            where: dict[str, Value] = {name: fault[name] for name in ("message", "text", "lanes", "step") if fault[name]}
            self._out.event(INSTANT, _time(fault["position"]), track, f"fault: {fault['type']}", self._out.annotations(where))


class _LineNames:
    """Source lines as slices call them: "fa.cu:251 text"."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._names: dict[tuple[str, int], str] = {}

    def name(self, path: tuple[tuple[str, int], ...]) -> str:
        """The line of the kernel that leads to an instruction."""
        if not path:
            return "(no source line)"
        if path[0] not in self._names:
            file, line = path[0]
            self._names[path[0]] = f"{Path(file).name}:{line} {self._places.sources.text(file, line)}".strip()
        return self._names[path[0]]


def _calls(path: tuple[tuple[str, int], ...]) -> str:
    """The places that lead to an instruction, from the kernel inwards."""
    return " > ".join(f"{Path(file).name}:{line}" for file, line in path)


def _plain(value: Any) -> Value:
    """Facts of the header as an annotation."""
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, (int, str)):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(str(_plain(item)) for item in value)
    return str(value)
