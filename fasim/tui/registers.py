"""The pane of registers: 32 lanes of what the last instruction wrote or took, of pinned registers, and of what the next one takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.text import Text

from fasim.report.bank_picture import lane_ranges
from fasim.sm.findings import lanes_of
from fasim.trace.view import is_made, lanes_array
from fasim.tui.numbers import texts_of
from fasim.tui.session import Session

Array = np.ndarray[Any, Any]
CHANGED, QUIET, BAD = "bold yellow", "dim", "bold red"
#: before the value of a lane that does not take part
IDLE = "\N{MIDDLE DOT}"
ALL_LANES = 0xFFFFFFFF
#: lanes in one line of the register grid, by how wide the values are
_PER_LINE = ((9, 8), (18, 4), (80, 2))


@dataclass(frozen=True)
class Shown:
    """A register with its lanes. what: why it is shown; taking: lanes that execute the instruction; changed: None if nothing says so."""

    name: str
    type_: str
    values: Array
    what: str
    taking: int = ALL_LANES
    changed: Array | None = None


def registers(session: Session, width: int) -> Text:
    """All of them, and how values are shown."""
    text = Text(no_wrap=True)
    found, empty = _shown(session)
    for each in found:
        _grid(text, session, each, width, first=each is found[0])
    for name in empty:
        text.append(f"{name}: holds no value here\n", QUIET)
    nothing = "no instruction comes next" if session.pc is None else "the next instruction reads no register"
    return text if text.plain else Text(f"{nothing}; r shows one always", style=QUIET)


def _shown(session: Session) -> tuple[list[Shown], list[str]]:
    """The registers in their order, and pinned ones that hold nothing."""
    stepper, warp, event, pc = session.stepper, session.shown_warp, session.event, session.pc
    state, found = stepper.state, dict[str, Shown]()
    if event is not None and event.warp == warp:
        for change in event.registers:
            operand = change.operand
            if not is_made(operand.name):
                found[operand.name] = Shown(operand.name, operand.seen_as, change.new, "written", event.active, change.changed)
        if not found:
            for operand in stepper.names.operands[event.pc]:
                if operand.reads and not is_made(operand.name):
                    taking = event.lanes if operand.bank == 1 else event.active
                    values = state.row(warp, operand.bank, operand.row)
                    found[operand.name] = Shown(operand.name, operand.seen_as, values, "was read", taking)
    live, empty = {register.name: register for register in state.registers(warp)}, []
    for name in session.pinned:
        if name in live and name not in found:
            register = live[name]
            found[name] = Shown(name, register.type_, state.row(warp, register.bank, register.row), "pinned")
        elif name not in found:
            empty.append(name)
    lanes, active = stepper.next_lanes(warp)
    for operand in stepper.names.operands[pc] if pc is not None else ():
        known = found.get(operand.name)
        if operand.reads and not is_made(operand.name) and (known is None or known.what == "was read"):
            values = state.row(warp, operand.bank, operand.row)
            what = "is read next" if known is None else "was read, and is next"
            found[operand.name] = Shown(operand.name, operand.seen_as, values, what, lanes if operand.bank == 1 else active)
    return list(found.values()), empty


def _grid(text: Text, session: Session, shown: Shown, width: int, *, first: bool) -> None:
    """A heading, and the lanes in lines of 2, 4, 8 or 32; those that do not take part are marked."""
    values, taking = shown.values, lanes_array(shown.taking)
    by = "" if taking.all() or not taking.any() else f" by lane{'s' * (int(taking.sum()) != 1)} {lane_ranges(lanes_of(shown.taking))}"
    what = f" {shown.what}{by}"
    text.append(f"{shown.name} {shown.type_}", "bold cyan")
    text.append(what, QUIET)
    if first:
        used = len(shown.name) + len(shown.type_) + 1 + len(what)
        text.append(f"as {session.form} (f)".rjust(max(width - used, 0) or 1), QUIET)
    text.append("\n")
    if values.dtype == np.bool_:
        _predicate(text, shown, taking)
        return
    texts = texts_of(values, shown.type_, session.form, session.stepper.elements)
    marked = [lane_text if takes else IDLE + lane_text for lane_text, takes in zip(texts, taking)]
    longest = max(map(len, marked))
    # the mark may stand between two values
    per_line = next((count for room, count in _PER_LINE if max(map(len, texts)) + 1 <= room), 1)
    while per_line > 1 and 4 + per_line * (max(map(len, texts)) + 1) > width:
        per_line //= 2
    cell = longest + 1 if 4 + per_line * (longest + 1) <= width else longest
    for start in range(0, 32, per_line):
        text.append(f"{start:>3}:", QUIET)
        for lane in range(start, start + per_line):
            style = CHANGED if shown.changed is not None and shown.changed[lane] else BAD if "nan" in texts[lane] else ""
            text.append(marked[lane].rjust(max(cell, len(marked[lane]))), style if taking[lane] else QUIET)
        text.append("\n")


def _predicate(text: Text, shown: Shown, taking: Array) -> None:
    """32 digits in groups of eight."""
    text.append("  0:", QUIET)
    for lane, value in enumerate(shown.values):
        style = CHANGED if shown.changed is not None and shown.changed[lane] else ""
        text.append(" " * (lane % 8 == 0))
        text.append(str(int(value)) if taking[lane] else IDLE, style if taking[lane] else QUIET)
    text.append("\n")
