"""A simulated SM for ui.perfetto.dev: what its pipes do, and where its warps wait.

A microsecond stands for one cycle. A launch is a process; its tracks are "launch", for each sub-partition its issue slot and each of its
pipes with a slice an instruction, and for each warp slot of the SM the CTAs that are in it, in them steps where the source marks some,
and in them instructions: a slice lasts from an instruction's issue to the warp's next one, so long slices are where a warp waits.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from fasim.errors import UsageError
from fasim.report.output_file import replaced_file
from fasim.report.timing import TimedLaunch, source_of
from fasim.report.timing_spans import ISSUE, SUB_PARTITIONS, Issue, Span, logged_cycles, pipe_spans, used_pipes, warp_issues
from fasim.report.timing_text import labels_of, place_text, reasons
from fasim.report.trace_protobuf import SLICE_BEGIN, SLICE_END, PacketWriter, Value
from fasim.trace.steps import SourceLines, call_path

if TYPE_CHECKING:
    from fasim.sm.timing.predict import Prediction

CYCLE_NS = 1000
NOTE = "1 us = 1 cycle of the SM; a model's estimate"
OUTSIDE = "(outside of steps)"
#: tracks of a process: itself, "launch", those of pipes, those of warps
_PROCESS, _LAUNCH, _FIRST_PIPE, _FIRST_WARP, _TRACKS = 1, 2, 16, 1024, 1 << 16


def save_trace(path: Path, launches: Sequence[tuple[TimedLaunch, Prediction]], window: tuple[int, int] | None = None) -> None:
    """Write the trace; window: first and last cycle, None: from the beginning as far as the log reaches.

    Raises: UsageError if nothing was logged of these cycles, or the file cannot be written.
    """
    try:
        with replaced_file(path) as file:
            write_trace(file, launches, window)
    except OSError as error:
        raise UsageError(f"--out {path}: {error.strerror}") from error


def write_trace(file: BinaryIO, launches: Sequence[tuple[TimedLaunch, Prediction]], window: tuple[int, int] | None = None) -> None:
    """The same into an open file."""
    out = PacketWriter(file)
    for number, (row, found) in enumerate(launches):
        end = logged_cycles(found)
        first, last = window or (0, end)
        if first >= end:
            raise UsageError(f"there is nothing in cycles {first:,} to {last:,}; the simulated SM's log ends at {end:,}")
        spans = list(pipe_spans(found))
        # pipes are taken for some cycles longer than there are instructions
        last = min(last, end) if window else max(end, *(math.ceil(span.end) for span in spans))
        _Launch(out, number, row, found, spans, (first, last)).write()


class _Launch:
    """Writes one launch as a process."""

    def __init__(
        self, out: PacketWriter, number: int, row: TimedLaunch, found: Prediction, spans: Sequence[Span], window: tuple[int, int]
    ) -> None:
        self._out, self._number, self._row, self._found, self._spans = out, number, row, found, spans
        self._first, self._last = window
        compiled = found.kernel.kernel.module.compiled
        self._sources = SourceLines({compiled.source_path: compiled.source_text} if compiled and compiled.source_text else {})
        self._notes: dict[int, bytes] = {}
        self._steps: dict[int, str] = {}
        self._has_steps = bool(row.steps)

    def _uuid(self, track: int) -> int:
        return self._number * _TRACKS + track

    def _slice(self, track: int, start: float, end: float, name: str, notes: bytes = b"") -> None:
        start, end = max(start, self._first), min(end, self._last)
        if start < end:
            self._out.event(SLICE_BEGIN, round(start * CYCLE_NS), self._uuid(track), name, notes)
            self._out.event(SLICE_END, round(end * CYCLE_NS), self._uuid(track))

    def write(self) -> None:
        """Tracks and slices."""
        row, parent = self._row, self._uuid(_PROCESS)
        self._out.track(parent, f"{labels_of([row])[0]} on {row.card}", pid=self._number + 1, sorts=True, description=NOTE)
        self._out.track(self._uuid(_LAUNCH), "launch", parent=parent, rank=1, description=NOTE)
        facts: dict[str, Value] = {
            "time": NOTE,
            "kernel": row.kernel,
            "predicted us": f"{row.time_us:.3f}",
            "cycles": round(row.cycles),
            "clock MHz": round(row.clock_mhz),
            "bound by": row.bound,
            "stalls": reasons(row.stalls),
            "CTAs of this SM": ", ".join(map(str, self._found.order[: len(self._found.sm.spans)])),
        }
        self._slice(_LAUNCH, self._first, self._last, row.kernel, self._out.annotations(facts))
        self._write_pipes(parent)
        self._write_warps(parent)

    def _instruction(self, number: int) -> tuple[str, bytes]:
        """Name and arguments of an instruction, which are made once."""
        ins = self._found.kernel.instructions[number]
        if number not in self._notes:
            source = source_of(ins)
            place = place_text(call_path(source))
            self._steps[number] = self._sources.step_of(source)
            values: dict[str, Value] = {"sass": source.text, "line": place, "code": self._sources.text(source.file, source.line)}
            self._notes[number] = self._out.annotations({**values, "step": self._steps[number], "pc": source.offset})
        return ".".join((ins.opcode, *ins.modifiers)), self._notes[number]

    def _write_pipes(self, parent: int) -> None:
        pipes = used_pipes(self._spans)
        for sub in range(SUB_PARTITIONS):
            for i, pipe in enumerate(pipes):
                name = f"sub-partition {sub} {'issue slot' if pipe == ISSUE else pipe.replace('_', ' ')}"
                track = _FIRST_PIPE + sub * len(pipes) + i
                self._out.track(self._uuid(track), name, parent=parent, rank=track)
        for span in self._spans:
            name, notes = self._instruction(span.instruction)
            track = _FIRST_PIPE + span.sub_partition * len(pipes) + pipes.index(span.pipe)
            self._slice(track, span.start, span.end, name, notes + self._out.annotations({"warp": span.warp}))

    def _write_warps(self, parent: int) -> None:
        by_warp: dict[int, list[Issue]] = {}
        for issue in warp_issues(self._found):
            if issue.end > self._first and issue.start < self._last:
                by_warp.setdefault(issue.warp, []).append(issue)
        for warp in sorted(by_warp):
            track = _FIRST_WARP + warp
            self._out.track(self._uuid(track), f"warp {warp} (sub-partition {warp % SUB_PARTITIONS})", parent=parent, rank=track)
            self._write_warp(track, by_warp[warp])

    def _write_warp(self, track: int, issues: Sequence[Issue]) -> None:
        """Slices nested as CTA, step, instruction."""
        opened: list[tuple[int, str]] = []
        end = 0
        for issue in issues:
            name, notes = self._instruction(issue.instruction)
            levels = [(issue.cta, f"CTA {self._found.order[issue.cta]}")]
            levels += [(issue.cta, self._steps[issue.instruction] or OUTSIDE)] if self._has_steps else []
            same = next((i for i, (a, b) in enumerate(zip(levels, opened)) if a != b), len(opened))
            for _ in opened[same:]:
                self._out.event(SLICE_END, end * CYCLE_NS, self._uuid(track))
            for _, title in levels[same:]:
                self._out.event(SLICE_BEGIN, max(issue.start, self._first) * CYCLE_NS, self._uuid(track), title)
            opened, end = levels, min(issue.end, self._last)
            self._slice(track, issue.start, issue.end, name, notes)
        for _ in opened:
            self._out.event(SLICE_END, end * CYCLE_NS, self._uuid(track))
