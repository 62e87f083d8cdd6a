"""The few messages of Perfetto's trace format that a trace needs, encoded field by field; strings that come again are written once.

Source: "Protocol Buffers: Encoding" (protobuf.dev); field numbers from perfetto/trace/*.proto of Perfetto.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import BinaryIO

from fasim.report.records import encoded

#: values of an annotation
Value = int | str
SLICE_BEGIN, SLICE_END, INSTANT, COUNTER = 1, 2, 3, 4
_SEQUENCE = 1
_STATE_CLEARED, _NEEDS_STATE = 1, 2
_NAMES, _KEYS, _TEXTS = 2, 3, 29  # fields of InternedData: event names, annotation names, annotation strings


def varint(value: int) -> bytes:
    """A whole number of 64 bits, seven at a time, the lowest first."""
    value &= 0xFFFFFFFFFFFFFFFF
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def number(field: int, value: int) -> bytes:
    """A field with a number."""
    return varint(field << 3) + varint(value)


def data(field: int, value: bytes | str) -> bytes:
    """A field with a message, bytes or a string."""
    raw = encoded(value) if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(raw)) + raw


class PacketWriter:
    """Writes a Trace as a stream of TracePackets, all of one sequence."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._numbers: dict[tuple[int, str], int] = {}
        self._pending = b""
        self._flags = _STATE_CLEARED

    def _packet(self, content: bytes) -> None:
        packet = number(10, _SEQUENCE) + number(13, self._flags | _NEEDS_STATE) + content
        self._flags = 0
        self._file.write(data(1, packet))

    def _interned(self, kind: int, text: str) -> int:
        """The number that stands for a string from now on."""
        known = self._numbers.get((kind, text))
        if known is None:
            known = self._numbers[kind, text] = len(self._numbers) + 1
            self._pending += data(kind, number(1, known) + data(2, text))
        return known

    def annotations(self, values: Mapping[str, Value]) -> bytes:
        """Arguments of an event, made once for many."""
        found = b""
        for name, value in values.items():
            content = number(1, self._interned(_KEYS, name))
            content += number(17, self._interned(_TEXTS, value)) if isinstance(value, str) else number(4, value)
            found += data(4, content)
        return found

    def track(
        self,
        uuid: int,
        name: str,
        *,
        parent: int = 0,
        rank: int = 0,
        pid: int = 0,
        description: str = "",
        unit: str = "",
        sorts: bool = False,
    ) -> None:
        """Declare a track. pid: of one that stands for a process. unit: of a counter. rank: its place; sorts: whether children have one."""
        content = number(1, uuid)
        if pid:
            content += data(3, number(1, pid) + data(6, name))
        else:
            content += data(2, name)
        content += number(5, parent) if parent else b""
        content += data(8, number(3, 2) + data(6, unit)) if unit else b""
        content += number(11, 3) if sorts else b""
        content += number(12, rank) if rank else b""
        content += data(14, description) if description else b""
        self._packet(data(60, content))

    def event(self, kind: int, time_ns: int, track: int, name: str = "", annotations: bytes = b"", value: int | None = None) -> None:
        """Something on a track: the begin or the end of a slice, an instant, a counter's value."""
        content = number(9, kind) + number(11, track)
        if name:
            content += number(10, self._interned(_NAMES, name))
        if value is not None:
            content += number(30, value)
        body = number(8, time_ns) + data(11, content + annotations)
        if self._pending:
            body += data(12, self._pending)
            self._pending = b""
        self._packet(body)
