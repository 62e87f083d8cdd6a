"""Writing the trace of a CTA to a file, event by event: a trace never takes more memory than one event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

from fasim.errors import ExecutionError
from fasim.report.trace_json import JsonTrace
from fasim.report.trace_perfetto import PerfettoTrace
from fasim.report.trace_record import TRACE_SCHEMA
from fasim.report.trace_select import Chosen, Selection, TraceFilters
from fasim.trace.event import Event
from fasim.trace.stepper import Stepper

#: a trace of more events says its size before it starts, by the average of the first ones
LONG_EVENTS, MEASURED_EVENTS = 20_000, 1_000


class TraceFormat(Protocol):
    """A way to write traces. sees_copies: whether it wants to see what issues, commits and waits for copies, also what is not chosen."""

    sees_copies: bool

    def event(self, event: Event, chosen: Chosen) -> None:
        """Write what the instruction before the stepper's position did."""

    def finish(self) -> None:
        """Write the end; the stepper stands where the kernel ends."""


FORMATS: dict[str, Callable[[BinaryIO, Stepper, Selection, dict[str, Any]], TraceFormat]] = {".json": JsonTrace, ".pftrace": PerfettoTrace}


@dataclass(frozen=True)
class TraceSummary:
    """What was written. failure: what ended the kernel; output: what the CTA printed, and those that had to run before it."""

    events: int
    size_bytes: int
    failure: ExecutionError | None
    output: str


def trace_header(stepper: Stepper, selection: Selection, facts: dict[str, Any]) -> dict[str, Any]:
    """What a trace says before its events. facts: of the launch."""
    filters = selection.filters
    allocations = stepper.walker.run.space.allocations
    return {
        "schema": TRACE_SCHEMA,
        **facts,
        "cta": list(stepper.ctaid),
        "warps": stepper.state.warps,
        "buffers": [{"name": a.name, "address": a.address, "size_bytes": a.size_bytes} for a in allocations],
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
) -> TraceSummary:
    """Write the trace of a stepper's CTA.

    suffix: of FORMATS. facts: of the launch, for the header. announce: told the number of events and the expected size in bytes of a long
    trace, after its first events; what it raises ends the writing.
    Returns: what was written. Raises: UsageError if the filters leave nothing.
    """
    selection = Selection(stepper, filters)
    trace = FORMATS[suffix](file, stepper, selection, trace_header(stepper, selection, facts))
    start, written = file.tell(), 0
    for chosen in selection.positions(copies=trace.sees_copies):
        stepper.go_to(chosen.position)
        stepper.step()
        event = stepper.event()
        assert event is not None
        trace.event(event, chosen)
        written += chosen.wanted
        if announce is not None and chosen.wanted and written == MEASURED_EVENTS and selection.count > LONG_EVENTS:
            announce(selection.count, start + (file.tell() - start) * selection.count // written)
    stepper.go_to(selection.total)
    trace.finish()
    output = stepper.earlier_output + stepper.output
    return TraceSummary(selection.count, file.tell(), selection.failure, output)
