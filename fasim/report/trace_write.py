"""Writing the trace of a CTA to a file, event by event: a trace never takes more memory than one event."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import numpy as np

from fasim.errors import ExecutionError
from fasim.kernels.spec import Region, WatchedLine
from fasim.report.buffers import PNG_BUFFERS, SVG_BUFFERS
from fasim.report.matrices import row_result_pcs
from fasim.report.trace_html import HtmlTrace
from fasim.report.trace_json import JsonTrace
from fasim.report.trace_perfetto import PerfettoTrace
from fasim.report.trace_record import TRACE_SCHEMA
from fasim.report.trace_select import Chosen, Selection, TraceFilters
from fasim.trace.event import Event
from fasim.trace.stepper import Stepper

Array = np.ndarray[Any, Any]
#: a trace of more events says its size before it starts, by the average of the first ones
LONG_EVENTS, MEASURED_EVENTS = 20_000, 1_000


class TraceFormat(Protocol):
    """A way to write traces.

    sees_copies: whether it wants to see what issues, commits and waits for copies, also what is not chosen; also: and which further pcs.
    """

    @property
    def sees_copies(self) -> bool:
        """Whether copies are seen."""

    @property
    def also(self) -> Array | None:
        """Which further instructions are seen, by pc."""

    def event(self, event: Event, chosen: Chosen) -> None:
        """Write what the instruction before the stepper's position did."""

    def finish(self) -> None:
        """Write the end; the stepper stands where the kernel ends."""


FORMATS: dict[str, Callable[[BinaryIO, Stepper, Selection, dict[str, Any]], TraceFormat]] = {
    ".html": HtmlTrace,
    ".json": JsonTrace,
    ".pftrace": PerfettoTrace,
    ".svg": SVG_BUFFERS,
    ".png": PNG_BUFFERS,
}


@dataclass(frozen=True)
class TraceSummary:
    """What was written. failure: what ended the kernel; output: what the CTA printed, and those that had to run before it."""

    events: int
    size_bytes: int
    failure: ExecutionError | None
    output: str


def trace_header(
    stepper: Stepper, selection: Selection, facts: dict[str, Any], watched: Sequence[WatchedLine] = (), regions: Sequence[Region] = ()
) -> dict[str, Any]:
    """What a trace says before its events. facts: of the launch; watched, regions: of the kernel's description."""
    filters = selection.filters
    allocations = stepper.walker.run.space.allocations
    return {
        "schema": TRACE_SCHEMA,
        **facts,
        "cta": list(stepper.ctaid),
        "warps": stepper.state.warps,
        "buffers": [{"name": a.name, "address": a.address, "size_bytes": a.size_bytes} for a in allocations],
        "regions": [dataclasses.asdict(region) for region in regions],
        "rows": [{"label": each.label, "total": each.total, "pcs": row_result_pcs(stepper.places, each)} for each in watched],
        "filters": {"warp": filters.warp, "tile": filters.tile, "steps": list(selection.steps)},
        "warp_instructions": selection.total,
        "event_count": selection.count,
    }


def stream_trace(
    stepper: Stepper,
    file: BinaryIO,
    suffix: str,
    filters: TraceFilters,
    facts: dict[str, Any],
    announce: Callable[[int, int], None] | None = None,
    *,
    watched: Sequence[WatchedLine] = (),
    regions: Sequence[Region] = (),
) -> TraceSummary:
    """Write the trace of a stepper's CTA.

    suffix: of FORMATS. facts: of the launch, for the header; watched, regions: of the kernel's description. announce: told the number of
    events and the expected size in bytes of a long trace, after its first events; what it raises ends the writing.
    Returns: what was written. Raises: UsageError if the filters leave nothing.
    """
    selection = Selection(stepper, filters)
    trace = FORMATS[suffix](file, stepper, selection, trace_header(stepper, selection, facts, watched, regions))
    start, written = file.tell(), 0
    for chosen in selection.positions(copies=trace.sees_copies, also=trace.also):
        stepper.go_to(chosen.position)
        stepper.step()
        event = stepper.event()
        assert event is not None
        trace.event(event, chosen)
        written += chosen.wanted
        # a picture is written at the end, and is not long
        long = selection.count > LONG_EVENTS and file.tell() > start
        if announce is not None and chosen.wanted and written == MEASURED_EVENTS and long:
            announce(selection.count, start + (file.tell() - start) * selection.count // written)
    stepper.go_to(selection.total)
    trace.finish()
    output = stepper.earlier_output + stepper.output
    return TraceSummary(selection.count, file.tell(), selection.failure, output)
