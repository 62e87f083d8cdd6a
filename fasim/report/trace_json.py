"""A trace as JSON (the schema is in `fasim.report.trace_record`), written event by event."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from fasim.report.records import encoded, plain_json
from fasim.report.trace_record import EventRecords, fault_record, hazard_record
from fasim.report.trace_select import Chosen, Selection
from fasim.trace.event import Event
from fasim.trace.stepper import Stepper


def _text(value: Any) -> str:
    return json.dumps(plain_json(value), allow_nan=False, ensure_ascii=False)


class JsonTrace:
    """Writes one object whose "events" array has one event a line."""

    further_pcs = None

    def __init__(self, file: BinaryIO, stepper: Stepper, selection: Selection, header: dict[str, Any]) -> None:
        self._file, self._stepper, self._selection, self._first = file, stepper, selection, True
        self._records = EventRecords(stepper)
        self._write("{\n" + "".join(f"{_text(name)}: {_text(value)},\n" for name, value in header.items()) + '"events": [')

    def _write(self, text: str) -> None:
        self._file.write(encoded(text))

    def event(self, event: Event, chosen: Chosen) -> None:
        """Write what the instruction before the stepper's position did."""
        self._write(("\n" if self._first else ",\n") + _text(self._records.record(event, chosen.tile)))
        self._first = False

    def finish(self) -> None:
        """Write the end; the stepper stands where the kernel ends."""
        hazards = [hazard_record(hazard) for hazard in self._selection.hazards]
        self._write(f'\n],\n"fault": {_text(fault_record(self._stepper))},\n"hazards": {_text(hazards)}\n}}\n')
