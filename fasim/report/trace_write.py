"""Writing the trace of a CTA to a file, event by event: what is written is not kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO, Protocol

import numpy as np

from fasim.errors import ExecutionError
from fasim.gmem import Allocation
from fasim.kernels.spec import Region, WatchedLine
from fasim.report.buffers import BuffersTrace
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
    """A way to write traces."""

    @property
    def further_pcs(self) -> Array | None:
        """Instructions that it has to see also where they are not chosen, a bool for each pc; None for none."""

    def event(self, event: Event, chosen: Chosen) -> None:
        """Write what the instruction before the stepper's position did."""

    def finish(self) -> None:
        """Write the end; the stepper stands where the kernel ends."""


@dataclass(frozen=True)
class FileFormat:
    """What a suffix means: make begins a trace, meaning is for a person."""

    make: Callable[[BinaryIO, Stepper, Selection, dict[str, Any]], TraceFormat]
    meaning: str


#: by suffix
FORMATS = {
    ".html": FileFormat(HtmlTrace, "one page with the stepper's views, for a browser"),
    ".json": FileFormat(JsonTrace, "one event a warp instruction"),
    ".pftrace": FileFormat(PerfettoTrace, "opens in ui.perfetto.dev"),
    ".svg": FileFormat(partial(BuffersTrace, "svg"), "a picture of the buffers in shared memory over time"),
    ".png": FileFormat(partial(BuffersTrace, "png"), "the same"),
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
        "buffers": [_buffer(stepper, each) for each in allocations],
        "regions": [dataclasses.asdict(region) for region in regions],
        "rows": [{"label": each.label, "total": each.total, "pcs": row_result_pcs(stepper.places, each)} for each in watched],
        "filters": {"warp": filters.warp, "tile": filters.tile, "steps": list(selection.steps)},
        "warp_instructions": selection.total,
        "event_count": selection.count,
    }


def _buffer(stepper: Stepper, each: Allocation) -> dict[str, Any]:
    place = {"name": each.name, "address": each.address, "size_bytes": each.size_bytes, "constant": each.constant}
    return {**place, "dtype": stepper.elements.dtype(each.name), "shape": list(each.data.shape)}


def walk(stepper: Stepper, selection: Selection, trace: TraceFormat) -> Iterator[Chosen]:
    """Tell a format all that it has to see; the stepper ends where the kernel does.

    Returns: each position, after the format was told of it.
    """
    for chosen in selection.positions(trace.further_pcs):
        stepper.go_to(chosen.position)
        stepper.step()
        event = stepper.event()
        assert event is not None
        trace.event(event, chosen)
        yield chosen
    stepper.go_to(selection.total)


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
    trace = FORMATS[suffix].make(file, stepper, selection, trace_header(stepper, selection, facts, watched, regions))
    start, written = file.tell(), 0
    for chosen in walk(stepper, selection, trace):
        written += chosen.wanted
        # a picture is written at the end, and is not long
        long = selection.count > LONG_EVENTS and file.tell() > start
        if announce is not None and chosen.wanted and written == MEASURED_EVENTS and long:
            announce(selection.count, start + (file.tell() - start) * selection.count // written)
    trace.finish()
    output = stepper.earlier_output + stepper.output
    return TraceSummary(selection.count, file.tell(), selection.failure, output)
