"""Breakpoints as a person writes them."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Mapping

from fasim.errors import UsageError
from fasim.trace.breaks import Breakpoint, ConflictBreak, HazardBreak, LineBreak, MemoryBreak, NanBreak, ReadBreak, RegisterBreak, StepBreak
from fasim.trace.elements import Elements

BREAKPOINT_HELP = (
    "line N [FILE] | step NAME | conflict [N] | hazard [KIND] | nan [any] | reg NAME [= VALUE] [lane N] [warp N|any] | "
    "mem|read BUFFER[I,J] | mem|read shared|BUFFER OFFSET | mem ... = VALUE"
)
_REGISTER = re.compile(
    r"(?P<name>[^\s=]+)(?:\s*=\s*(?P<value>\S+))?(?:\s+lane\s+(?P<lane>\d+))?(?:\s+(?P<any>any)|\s+warp\s+(?P<warp>\d+))?"
)
_PLACE = r"(?P<where>[^\s\[\]]+)(?:\s*\[(?P<index>[^\[\]]*)\]|\s+(?P<offset>0x[0-9a-fA-F]+|\d+))"
_MEMORY = re.compile(rf"{_PLACE}(?:\s*=\s*(?P<value>\S+))?")
_READ = re.compile(_PLACE)


def parse_breakpoint(text: str, elements: Elements | None = None) -> Breakpoint:
    """A breakpoint as a person writes it; elements: what the buffers hold, without which only shared memory and byte offsets are known.

    Raises: UsageError with all forms; or what is wrong with an element.
    """
    what, _, rest = text.strip().partition(" ")
    words = rest.split()
    makers: Mapping[str, Callable[[], Breakpoint]] = {
        "line": lambda: LineBreak(int(words[0]), words[1] if len(words) > 1 else ""),
        "step": lambda: StepBreak(words[0]),
        "conflict": lambda: ConflictBreak(int(words[0]) if words else 1),
        "hazard": lambda: HazardBreak(words[0] if words else ""),
        "nan": lambda: NanBreak(new=not {(): False, ("any",): True}[tuple(words)]),
        "reg": lambda: _register(rest),
        "mem": lambda: _memory(rest, elements),
        "read": lambda: _read(rest, elements),
    }
    try:
        return makers[what]()
    except (KeyError, IndexError, ValueError, OverflowError):
        raise UsageError(f"{text!r} is no breakpoint; they are: {BREAKPOINT_HELP}") from None


def _matched(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    match = pattern.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return match


def _register(text: str) -> RegisterBreak:
    match = _matched(_REGISTER, text)
    value: int | float | None = None
    if (given := match["value"]) is not None:
        value = int(given, 0) if re.fullmatch(r"-?(0x[0-9a-fA-F]+|\d+)", given) else float(given)
    lane, warp = (int(match[each]) if match[each] else None for each in ("lane", "warp"))
    return RegisterBreak(match["name"], value, lane, warp, all_warps=match["any"] is not None)


def _place(match: re.Match[str], elements: Elements | None) -> tuple[str, int, int]:
    """Where, byte offset and size of an element or of what is at an offset."""
    where = match["where"]
    if match["index"] is not None:
        if where == "shared" or elements is None:
            raise UsageError(f"{where}[{match['index']}]: shared memory has no elements by name; give a byte offset: mem shared 0x100")
        return where, *elements.find(where, match["index"])
    offset = int(match["offset"], 0)
    size = elements.size_bytes(where) if elements is not None and where != "shared" else 4
    return where, offset, size - offset % size if size != 4 else 4


def _memory(text: str, elements: Elements | None) -> MemoryBreak:
    match = _matched(_MEMORY, text)
    where, offset, size = _place(match, elements)
    given = match["value"]
    if given is None:
        return MemoryBreak(where, offset, size)
    if elements is not None and where != "shared":
        data = elements.bits(where, given)
    else:
        data = bytes.fromhex(given[2:])[::-1] if given.startswith("0x") else struct.pack("<f", float(given))
    return MemoryBreak(where, offset, len(data), data)


def _read(text: str, elements: Elements | None) -> ReadBreak:
    return ReadBreak(*_place(_matched(_READ, text), elements))
