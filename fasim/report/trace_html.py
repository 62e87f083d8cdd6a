"""A trace as one HTML page that needs nothing else: what the stepper shows, with a slider, in any browser.

The page holds the lines of a `PageTrace` compressed, in base64: a browser unpacks them with what it has. Its own parts are the files of
`html/`. Registers and memory are written as what changed, so that the page can go to any position.
"""

from __future__ import annotations

import base64
import html
import json
import zlib
from importlib.resources import files
from typing import Any, BinaryIO

from fasim.report.records import encoded, plain_json
from fasim.report.trace_before import Overwritten
from fasim.report.trace_page import PageEvents, page_facts
from fasim.report.trace_record import fault_record, hazard_record
from fasim.report.trace_select import Chosen, Selection
from fasim.trace.event import Event
from fasim.trace.stepper import Stepper

#: the parts of the page's script, in the order that they are put together
SCRIPTS = (
    *("numbers.js", "dom.js", "store.js", "stops.js", "hits.js"),
    *("memory_panes.js", "panes.js", "code_panes.js", "timeline.js", "page.js"),
)


def _part(name: str) -> str:
    return (files("fasim.report") / "html" / name).read_text(encoding="utf-8")


def _line(value: Any) -> bytes:
    return encoded(json.dumps(plain_json(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))) + b"\n"


class _Packed:
    """Writes what it is given as gzip in base64."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left = file, b""
        self._packer = zlib.compressobj(6, zlib.DEFLATED, 31)

    def write(self, data: bytes) -> None:
        """Write further bytes."""
        self._encode(self._packer.compress(data))

    def finish(self) -> None:
        """Write what is left."""
        self._encode(self._packer.flush())
        self._file.write(base64.b64encode(self._left))

    def _encode(self, packed: bytes) -> None:
        data = self._left + packed
        whole = len(data) // 3 * 3
        self._left = data[whole:]
        self._file.write(base64.b64encode(data[:whole]))


class HtmlTrace:
    """Writes the page: what the views need to know, a line for each event, and how the kernel ended."""

    def __init__(self, file: BinaryIO, stepper: Stepper, selection: Selection, header: dict[str, Any]) -> None:
        self._file, self._stepper, self._selection = file, stepper, selection
        self._events = PageEvents(stepper, header["rows"])
        self._overwritten = Overwritten(stepper, complete=selection.count == selection.total)
        self.further_pcs, self._tile = self._events.row_pcs, -1
        title = html.escape(f"{header['kernel']}: CTA {','.join(map(str, header['cta']))}")
        before, after = _part("page.html").split("{{trace}}")
        self._after = after.replace("{{script}}", "\n".join(_part(name) for name in SCRIPTS))
        # the title last: it may say anything
        file.write(encoded(before.replace("{{style}}", _part("style.css")).replace("{{title}}", title)))
        self._packed = _Packed(file)
        self._packed.write(_line(header | page_facts(stepper)))

    def event(self, event: Event, chosen: Chosen) -> None:
        """Write what the instruction before the stepper's position did."""
        self._tile = chosen.tile
        if chosen.wanted:
            record = self._events.record(event, chosen.tile)
            self._overwritten.add(record, event)
            self._packed.write(_line(record))
        else:
            self._events.pass_by(event)

    def finish(self) -> None:
        """Write the end; the stepper stands where the kernel ends."""
        hazards = [hazard_record(hazard) for hazard in self._selection.hazards]
        end = {"fault": fault_record(self._stepper), "event": self._events.failed(self._tile), "hazards": hazards}
        self._packed.write(_line(end))
        self._packed.finish()
        self._file.write(self._after.encode())
