"""A trace for ui.perfetto.dev: what the warps of a CTA execute over time, which copies are on their way, what shared memory costs.

A microsecond stands for one warp instruction of the CTA, in the order in which they were executed; it says nothing of real time.
The CTA is a process. Its tracks: "launch" (one slice with what the trace is of), counters of the wavefronts and conflicts of each
access to shared memory, and for each warp "warp N" with slices nested as step, source line, instruction (two levels where no steps are
marked), findings as instants, and as many tracks "warp N copies" as it has groups of cp.async on their way at once: a slice lasts from a
group's first cp.async to after the wait that covers it. Groups are whole, also where filters keep only a part of what belongs to them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from fasim.report.trace_copies import TracedCopies, TracedGroup
from fasim.report.trace_protobuf import COUNTER, INSTANT, SLICE_BEGIN, SLICE_END, PacketWriter, Value
from fasim.report.trace_record import fault_record, mask_text
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
class _Open:
    """The slices that are open on a warp's track: names of step and line with the tile, and the last instruction."""

    names: list[tuple[int, str]] = field(default_factory=list)
    last: int = -1


class PerfettoTrace:
    """Writes packet by packet; what is kept are the open slices, the copies on their way, and strings of the program."""

    def __init__(self, file: BinaryIO, stepper: Stepper, selection: Selection, header: dict[str, Any]) -> None:
        self._out, self._stepper, self._selection = PacketWriter(file), stepper, selection
        self._lines = _LineNames(stepper.places)
        self._static: dict[tuple[int, str], bytes] = {}
        self._open: dict[int, _Open] = {}
        self.further_pcs = stepper.places.copy_pcs
        self._copies = TracedCopies()
        self._slots: dict[tuple[int, int], int] = {}  # of groups on their way, by warp and number
        self._declared: dict[int, int] = {}  # tracks for copies that a warp has
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
        self._follow_copies(event)
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
        name = INSERTED if self._stepper.places.inserted(event.pc) else event.source.mnemonic
        self._out.event(SLICE_BEGIN, _time(at), track, name, self._arguments(event))
        self._out.event(SLICE_END, _time(at + 1), track)
        for hazard in self._stepper.lasting(event.hazards):
            text: dict[str, Value] = {"severity": hazard.severity, "text": hazard.text, "space": hazard.space, "scope": hazard.scope}
            self._out.event(INSTANT, _time(at), track, f"{hazard.severity}: {hazard.kind}", self._out.annotations(text))

    def _close(self, opened: _Open, track: int, keep: int) -> None:
        for _ in opened.names[keep:]:
            self._out.event(SLICE_END, _time(opened.last + 1), track)

    def _slice_begin(self, track: int, position: int, name: str, values: dict[str, Value]) -> None:
        self._out.event(SLICE_BEGIN, _time(position), track, name, self._out.annotations(values))

    def _arguments(self, event: Event) -> bytes:
        key = event.pc, event.step
        if key not in self._static and self._stepper.places.inserted(event.pc):
            self._static[key] = self._out.annotations({"pc": event.pc, "ptx": "a jump that is not in the PTX"})
        elif key not in self._static:
            place = {"line": f"{event.source.file}:{event.source.line}", "calls": _calls(event.path)} if event.source.line else {}
            self._static[key] = self._out.annotations({"ptx": self._stepper.places.text(event.pc), "pc": event.pc, **place})
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
            waits = "goes on" if event.arrival.operation == "arrive" else "waits"
            varying["barrier"] = f"{event.arrival.operation} {event.arrival.number}: {'opens' if event.arrival.opened else waits}"
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

    def _follow_copies(self, event: Event) -> None:
        arrived = self._copies.note(event, self._stepper.state)
        ends: dict[str, Value] = {}
        if arrived:
            wait = self._stepper.places.text(event.pc)
            ends = {"waited for at": event.position, "wait": wait, "wait line": self._lines.name(event.path)}
        for group in arrived:
            self._write_group(group, group.end, ends)
        if event.kind == "cp_async":
            for group in self._copies:
                if (group.warp, group.number) not in self._slots:
                    self._slots[group.warp, group.number] = self._free_slot(group.warp)

    def _free_slot(self, warp: int) -> int:
        taken = {slot for (other, _), slot in self._slots.items() if other == warp}
        return next(slot for slot in range(1, _TRACKS_PER_WARP) if slot not in taken)

    def _write_group(self, group: TracedGroup, end: int, ends: dict[str, Value]) -> None:
        """Write a group that is complete, if it was on its way at anything that is wanted."""
        warp, first, slot = group.warp, group.copies[0], self._slots.pop((group.warp, group.number))
        if end <= self._selection.first or first.position > self._selection.last:
            return
        while self._declared.get(warp, 0) < slot:
            self._declared[warp] = self._declared.get(warp, 0) + 1
            self._declare(warp, self._declared[warp])
        ranges = joined_ranges([span for copy in group.copies for span in copy.ranges])
        values: dict[str, Value] = {
            "group": group.number,
            "bytes": sum(copy.size_bytes for copy in group.copies),
            "cp.async instructions": len(group.copies),
            "into shared memory": ", ".join(f"{start:#x} to {last - 1:#x}" for start, last in ranges),
            "issued in": " ".join(filter(None, (first.step, self._lines.name(first.path)))),
            "issued at": first.position,
            "committed at": group.committed if group.committed >= 0 else "never",
            **ends,
        }
        track = self._warp_track(warp, slot)
        self._slice_begin(track, first.position, f"copy group {group.number}", values)
        self._out.event(SLICE_END, _time(end), track)

    # --- the end -------------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Close all slices; the stepper stands where the kernel ends."""
        for warp, opened in self._open.items():
            self._close(opened, self._warp_track(warp), 0)
        self._set_costs(self._last + 1, 0, 0)
        fault = fault_record(self._stepper)
        for group in self._copies:
            self._write_group(group, self._stepper.position, {"waited for at": "never: the kernel faults before" if fault else "never"})
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
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(str(_plain(item)) for item in value)
    return str(value)
