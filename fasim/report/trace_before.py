"""What an event overwrites, for the page of a trace: an event itself says what there is after it.

An event of the page may have, beside the fields of `fasim.report.trace_page`,

    fresh             of `changed`: lanes that hold their first value, one mask for each
    held              of `access.stored`: what global memory held before, in the same runs; only where the page has all events
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.report.trace_record import mask_text
from fasim.trace.event import Event
from fasim.trace.stepper import Stepper

Array = np.ndarray[Any, Any]


class Overwritten:
    """Adds it to the records of events, in their order. complete: whether they are all events; those left out write memory as well."""

    def __init__(self, stepper: Stepper, *, complete: bool) -> None:
        """The stepper goes to the beginning."""
        self._stepper = stepper
        self._known: dict[str, Array] = {}
        if complete:
            stepper.go_to(0)
            constant = {each.name for each in stepper.walker.run.space.allocations if each.constant}
            self._known = {name: _bytes(data).copy() for name, data in stepper.state.buffers.items() if name not in constant}

    def add(self, record: dict[str, Any], event: Event) -> None:
        """Add to the record of an event; the stepper stands after it."""
        if event.executed and any(change.fresh for change in event.registers):
            record["fresh"] = [mask_text(change.fresh) for change in event.registers]
        runs = record.get("access", {}).get("stored", ())
        if runs and self._known:
            record["held"] = [[start, self._taken(start, len(data) // 2)] for start, data in runs]

    def _taken(self, address: int, size: int) -> str:
        """What some bytes held, which are known from now on as what they are."""
        state = self._stepper.state
        place = state.buffer_at(address)
        if place is None or place[0] not in self._known:
            return ""
        name, first = place
        known = self._known[name][first : first + size]
        held = known.tobytes().hex()
        known[:] = _bytes(state.buffers[name])[first : first + size]
        return held


def _bytes(data: Array) -> Array:
    return data.reshape(-1).view(np.uint8)
