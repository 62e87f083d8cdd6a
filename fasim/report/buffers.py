"""What happens to the buffers in shared memory while a CTA runs, gathered event by event.

Time is counted in warp instructions of the CTA, as the stepper counts positions. A copy group of `cp.async` is on its way from its first
copy to after the wait that makes it valid; what belongs to the same number in several warps at the same time is one bar.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np

from fasim.errors import UsageError
from fasim.report.buffer_areas import Area, Range, Target, declared_areas, find_areas
from fasim.report.option_text import options_text
from fasim.report.trace_copies import Copy, TracedCopies, TracedGroup
from fasim.report.trace_record import fault_record
from fasim.report.trace_select import Chosen, Selection
from fasim.trace.event import Event
from fasim.trace.stepper import Stepper
from fasim.trace.view import joined_ranges

#: accesses are kept apart in so many parts of the time that is shown; further apart than a part of NEAR they are two bars
MOST_MOMENTS, NEAR = 1000, 200


@dataclass(frozen=True)
class CopyBar:
    """Copies of one group into one area: positions of the first copy, of the last commit and after the wait.

    committed: None if the group is never closed. end: where the trace ends if nobody waits for it, then `arrived` is False.
    """

    group: int
    first: int
    committed: int | None
    end: int
    arrived: bool
    warps: tuple[int, ...]


@dataclass(frozen=True)
class AreaRow:
    """What happens to an area. stores, reads: from position to position, ends excluded."""

    area: Area
    copies: tuple[CopyBar, ...]
    stores: tuple[Range, ...]
    reads: tuple[Range, ...]


@dataclass(frozen=True)
class BarrierBar:
    """A barrier from the first arrival to after the last; opened: whether the last one was seen."""

    number: int
    first: int
    end: int
    opened: bool


@dataclass(frozen=True)
class BuffersOverTime:
    """All that the picture shows: title and what it is of, first position and the one after the last, a row for each area.

    waits: positions of cp.async.wait. tiles: number and where the first warp begins it. fault: where the kernel fails.
    """

    title: str
    about: str
    first: int
    end: int
    rows: tuple[AreaRow, ...]
    waits: tuple[int, ...]
    barriers: tuple[BarrierBar, ...]
    tiles: tuple[tuple[int, int], ...]
    fault: int | None


class BuffersTrace:
    """Gathers what happens, and draws it at the end, as "svg" or "png".

    What is kept: the copies, and for each of MOST_MOMENTS parts of the time which bytes of shared memory are read and stored.
    """

    def __init__(self, format_: str, file: BinaryIO, stepper: Stepper, selection: Selection, header: dict[str, Any]) -> None:
        self._format, self._file, self._stepper, self._selection, self._header = format_, file, stepper, selection, header
        if not len(stepper.state.shared_memory):
            raise UsageError(
                f"kernel {header['kernel']} has no shared memory, so there are no buffers to draw; "
                "traces with another suffix show what it does"
            )
        self._moment = -(-(selection.last + 1 - selection.first) // MOST_MOMENTS)
        self._touched: dict[str, dict[int, int]] = {"reads": {}, "stores": {}}
        self.further_pcs = stepper.places.copy_pcs
        self._copies = TracedCopies()
        self._arrived: list[TracedGroup] = []
        self._waits: list[int] = []
        self._barriers: list[BarrierBar] = []
        self._waiting: dict[int, tuple[int, dict[int, int]]] = {}

    def event(self, event: Event, chosen: Chosen) -> None:
        """Note what the instruction before the stepper's position did to shared memory."""
        self._arrived += self._copies.note(event, self._stepper.state)
        if event.kind == "cp_wait" and event.executed and self._selection.first <= event.position <= self._selection.last:
            self._waits.append(event.position)
        if not chosen.wanted:
            return
        access = event.access
        if access is not None and event.kind != "cp_async" and event.executed:
            spans = access.ranges("shared")
            if access.reads:
                self._touch("reads", event.position, spans)
            if access.writes:
                self._touch("stores", event.position, spans)
        if event.arrival is not None:
            self._arrive(event)

    def _touch(self, how: str, position: int, spans: Sequence[Range]) -> None:
        """A bit of a number stands for a byte of shared memory."""
        moments, moment = self._touched[how], (position - self._selection.first) // self._moment
        moments[moment] = moments.get(moment, 0) | _bits(spans)

    def _arrive(self, event: Event) -> None:
        arrival = event.arrival
        assert arrival is not None
        number = arrival.number
        first, there = self._waiting.pop(number, (event.position, {}))
        if there.get(event.warp, 0) & event.active:
            # the same lanes again: the rest came where nobody looks
            self._barriers.append(BarrierBar(number, first, first + 1, False))
            first, there = event.position, {}
        there[event.warp] = there.get(event.warp, 0) | event.active
        if arrival.opened:
            self._barriers.append(BarrierBar(number, first, event.position + 1, True))
        else:
            self._waiting[number] = first, there

    # --- the picture ---------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Draw; the stepper stands where the kernel ends.

        Raises: UsageError if nothing that was chosen touches shared memory.
        """
        from fasim.report.buffers_figure import buffers_figure
        from fasim.report.figure_style import write_figure

        write_figure(buffers_figure(self.picture()), self._file, self._format)

    def picture(self) -> BuffersOverTime:
        """What was gathered.

        Raises: as `finish`.
        """
        selection, header, end = self._selection, self._header, self._selection.last + 1
        every = sorted([*self._arrived, *self._copies], key=lambda group: group.first)
        groups = [group for group in every if group.first < end and not 0 <= group.end <= selection.first]
        rows = [row for area in self._areas(groups) if (row := self._row(area, groups)) is not None]
        fault = fault_record(self._stepper)
        if not rows and fault is None:
            raise UsageError(
                f"none of the {selection.count:,} chosen warp instructions of kernel {header['kernel']} accesses shared memory, "
                "so there are no buffers to draw; choose other warps, tiles or steps"
            )
        barriers = [*self._barriers, *(BarrierBar(n, first, first + 1, False) for n, (first, _) in self._waiting.items())]
        filters = header["filters"]
        chosen = [f"{name} {filters[name]}" for name in ("warp", "tile") if filters[name] is not None] + filters["steps"]
        macros = {name: 1 if value is None else value for name, value in header.get("defines", {}).items()}
        options = options_text(header.get("options") or macros).strip()
        tool = ", ".join(str(header[name]) for name in ("source", "arch") if header.get(name))
        return BuffersOverTime(
            title=f"{header['kernel']}, CTA {','.join(map(str, header['cta']))}: buffers in shared memory over time",
            about=", ".join(part for part in (options, tool, f"only {', '.join(chosen)}" if chosen else "") if part),
            first=selection.first,
            end=end,
            rows=tuple(rows),
            waits=tuple(self._waits),
            barriers=tuple(sorted(barriers, key=lambda bar: bar.first)),
            tiles=selection.tile_starts,
            fault=None if fault is None else fault["position"],
        )

    def _areas(self, groups: Sequence[TracedGroup]) -> list[Area]:
        named = [Area(each["name"], ((each["start"], each["end"]),)) for each in self._header.get("regions", ())]
        targets: dict[Any, list[Copy]] = {}
        for group in groups:
            for copy in group.copies:
                targets.setdefault((group.number, copy.path), []).append(copy)
        touched = 0
        for moments in self._touched.values():
            for bits in moments.values():
                touched |= bits
        found = [
            Target(joined_ranges([span for copy in copies for span in copy.ranges]), frozenset(copy.source for copy in copies) - {""})
            for copies in targets.values()
        ]
        declared = [] if named else declared_areas(self._stepper.kernel)
        copied = [span for target in found for span in target.ranges]
        return find_areas(named, declared, found, joined_ranges([*_ranges(touched), *copied]))

    def _row(self, area: Area, groups: Sequence[TracedGroup]) -> AreaRow | None:
        met = [(first, group) for group in groups if (first := _first_into(area, group)) is not None]
        stores, reads = (self._spans(how, area) for how in ("stores", "reads"))
        if not met and not stores and not reads:
            return None
        return AreaRow(area, self._bars(met), stores, reads)

    def _spans(self, how: str, area: Area) -> tuple[Range, ...]:
        """When an area is accessed; what is near to each other is one."""
        bits, size, first = _bits(area.ranges), self._moment, self._selection.first
        near = (self._selection.last + 1 - first) // NEAR
        found: list[Range] = []
        for moment in sorted(moment for moment, touched in self._touched[how].items() if touched & bits):
            start, end = first + moment * size, min(first + (moment + 1) * size, self._selection.last + 1)
            if found and start - found[-1][1] <= near:
                found[-1] = (found[-1][0], end)
            else:
                found.append((start, end))
        return tuple(found)

    def _bars(self, groups: Sequence[tuple[int, TracedGroup]]) -> tuple[CopyBar, ...]:
        """Groups, each with its first copy, as bars; those of the same number in several warps are one as long as they overlap."""
        found: list[CopyBar] = []
        for first, group in sorted(groups, key=lambda each: (each[1].number, each[0])):
            end = group.end if group.end >= 0 else self._selection.total
            committed = group.committed if group.committed >= 0 else None
            last = found[-1] if found else None
            if last is not None and last.group == group.number and first < last.end:
                both = None if committed is None or last.committed is None else max(committed, last.committed)
                arrived = last.arrived and group.end >= 0
                found[-1] = CopyBar(group.number, last.first, both, max(end, last.end), arrived, (*last.warps, group.warp))
            else:
                found.append(CopyBar(group.number, first, committed, end, group.end >= 0, (group.warp,)))
        return tuple(sorted(found, key=lambda bar: (bar.first, bar.group)))


def _first_into(area: Area, group: TracedGroup) -> int | None:
    """The position of the first copy of a group that goes to an area."""
    return next((copy.position for copy in group.copies if area.meets(copy.ranges)), None)


def _bits(ranges: Sequence[Range]) -> int:
    bits = 0
    for start, end in ranges:
        bits |= (1 << end - start) - 1 << start
    return bits


def _ranges(bits: int) -> list[Range]:
    """The ranges that a number's bits stand for."""
    raw = np.frombuffer(bits.to_bytes(bits.bit_length() // 8 + 1, "little"), np.uint8)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], np.unpackbits(raw, bitorder="little"), [0]]).astype(np.int8)))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]
