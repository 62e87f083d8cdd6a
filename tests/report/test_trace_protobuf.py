"""The encoder of the messages agrees with the protobuf package."""

from __future__ import annotations

import io

import pytest

from fasim.report.trace_protobuf import COUNTER, INSTANT, PacketWriter, varint

VARINTS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (2**64 - 1, "ffffffffffffffffff01"),
    (-1, "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "expected"), VARINTS)
def test_varints(value: int, expected: str) -> None:
    assert varint(value).hex() == expected


def test_messages_are_read_by_perfettos_own() -> None:
    protos = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
    file = io.BytesIO()
    writer = PacketWriter(file)
    writer.track(1, "a CTA ü", pid=7, description="said", sorts=True)
    writer.track(2, "costs", parent=1, rank=3, unit="wavefronts")
    notes = writer.annotations({"text": "same", "other": "same", "number": 1 << 40})
    writer.event(INSTANT, 5, 1, "name", notes)
    writer.event(INSTANT, 6, 1, "name", notes)
    writer.event(COUNTER, 7, 2, value=0)
    trace = protos.Trace()
    trace.ParseFromString(file.getvalue())
    process, counter, first, second, value = trace.packet
    assert process.track_descriptor.process.pid == 7 and process.track_descriptor.process.process_name == "a CTA ü"
    assert process.track_descriptor.child_ordering == protos.TrackDescriptor.EXPLICIT and process.track_descriptor.description == "said"
    assert counter.track_descriptor.counter.unit_name == "wavefronts" and counter.track_descriptor.sibling_order_rank == 3
    assert counter.track_descriptor.counter.unit == protos.CounterDescriptor.UNIT_COUNT and counter.track_descriptor.parent_uuid == 1
    assert first.track_event.type == protos.TrackEvent.TYPE_INSTANT and first.timestamp == 5
    assert [entry.name for entry in first.interned_data.event_names] == ["name"]
    assert [entry.name for entry in first.interned_data.debug_annotation_names] == ["text", "other", "number"]
    assert [entry.str for entry in first.interned_data.debug_annotation_string_values] == [b"same"]
    assert first.track_event.debug_annotations[2].int_value == 1 << 40
    assert not second.HasField("interned_data") and second.track_event.name_iid == first.track_event.name_iid
    assert value.track_event.HasField("counter_value") and value.track_event.counter_value == 0
    # nothing that the messages do not know
    unknown = trace.SerializeToString(deterministic=True)
    trace.DiscardUnknownFields()
    assert trace.SerializeToString(deterministic=True) == unknown


def test_bytes_that_are_not_utf8() -> None:
    file = io.BytesIO()
    PacketWriter(file).track(1, "caf\udce9.cu")
    assert b"caf\\udce9.cu" in file.getvalue()
