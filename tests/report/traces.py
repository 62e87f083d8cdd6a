"""Traces of small launches, and reading them back."""

from __future__ import annotations

import io
import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from fasim.report.trace_select import TraceFilters
from fasim.report.trace_write import TraceSummary, stream_trace
from tests.trace.launches import Launch

FACTS = {"kernel": "name", "grid": [1, 1, 1], "block": [128, 1, 1]}


def traced(launch: Launch, suffix: str, filters: TraceFilters | None = None, **options: Any) -> tuple[TraceSummary, bytes]:
    """The trace of a launch's first CTA."""
    file = io.BytesIO()
    summary = stream_trace(launch.stepper(**options), file, suffix, filters or TraceFilters(), FACTS)
    assert summary.size_bytes == len(file.getvalue())
    return summary, file.getvalue()


def json_trace(launch: Launch, filters: TraceFilters | None = None, **options: Any) -> Any:
    """The same as JSON, read."""
    return json.loads(traced(launch, ".json", filters, **options)[1])


@dataclass
class Slice:
    """A slice with the slices in it, times in units of one instruction. args: by name."""

    name: str
    start: int
    args: dict[str, Any]
    end: int = -1
    inside: list[Slice] = field(default_factory=list)


@dataclass
class Track:
    """What a track has. values: a counter's, by time."""

    name: str
    parent: int
    slices: list[Slice] = field(default_factory=list)
    instants: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    values: dict[int, int] = field(default_factory=dict)


def perfetto_tracks(raw: bytes) -> list[Track]:
    """The tracks of a Perfetto trace, read with Perfetto's own messages."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as protos

    trace = protos.Trace()
    trace.ParseFromString(raw)
    texts: dict[str, dict[int, str]] = defaultdict(dict)
    tracks: dict[int, Track] = {}
    events = []
    for index, packet in enumerate(trace.packet):
        assert packet.trusted_packet_sequence_id == 1
        assert packet.sequence_flags == (3 if index == 0 else 2)
        for entry in packet.interned_data.event_names:
            texts["names"][entry.iid] = entry.name
        for entry in packet.interned_data.debug_annotation_names:
            texts["keys"][entry.iid] = entry.name
        for entry in packet.interned_data.debug_annotation_string_values:
            texts["strings"][entry.iid] = entry.str.decode()
        if packet.HasField("track_descriptor"):
            descriptor = packet.track_descriptor
            assert descriptor.uuid not in tracks and (not descriptor.parent_uuid or descriptor.parent_uuid in tracks)
            tracks[descriptor.uuid] = Track(descriptor.name or descriptor.process.process_name, descriptor.parent_uuid)
        elif packet.HasField("track_event"):
            event = packet.track_event
            args = {}
            for note in event.debug_annotations:
                given = note.WhichOneof("value")
                args[texts["keys"][note.name_iid]] = (
                    texts["strings"][note.string_value_iid] if given == "string_value_iid" else note.int_value
                )
            assert packet.timestamp % 1000 == 0
            name = texts["names"][event.name_iid] if event.name_iid else ""
            events.append((packet.timestamp // 1000, event, name, args))
    opened: dict[int, list[Slice]] = defaultdict(list)
    # a reader sorts by time, and leaves alone what has the same
    for time, event, name, args in sorted(events, key=lambda entry: entry[0]):
        track, stack = tracks[event.track_uuid], opened[event.track_uuid]
        if event.type == protos.TrackEvent.TYPE_SLICE_BEGIN:
            slice_ = Slice(name, time, args)
            (stack[-1].inside if stack else track.slices).append(slice_)
            stack.append(slice_)
        elif event.type == protos.TrackEvent.TYPE_SLICE_END:
            stack.pop().end = time
        elif event.type == protos.TrackEvent.TYPE_INSTANT:
            track.instants.append((time, name, args))
        else:
            assert event.type == protos.TrackEvent.TYPE_COUNTER
            track.values[time] = event.counter_value
    assert not any(opened.values())
    return list(tracks.values())
