"""Panes that show matrices: fragments of ldmatrix and mma with their values, and values by row of a tile."""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.text import Text

from fasim.kernels.spec import WatchedLine
from fasim.report.matrices import HeldFragment, fragments_at, row_result_pcs, row_values_of
from fasim.tui.numbers import element_text, short
from fasim.tui.session import Session

Array = np.ndarray[Any, Any]
_QUIET, _HEAD = "dim", "bold cyan"
#: an element that is not known
UNKNOWN = "\N{MIDDLE DOT}"


def shown_fragments(session: Session) -> tuple[int, list[HeldFragment]]:
    """The pc of the last or next instruction with matrices, and its fragments; -1 and none where neither has any."""
    event, stepper = session.event, session.stepper
    last = event.pc if event is not None and event.warp == session.shown_warp else None
    for pc in (last, session.pc):
        found = fragments_at(stepper.places, stepper.names, pc) if pc is not None else ()
        if pc is not None and found:
            return pc, list(found)
    return -1, []


def fragment(session: Session, width: int) -> Text:
    """A matrix with its values: each cell is an element, rows down, columns across."""
    pc, found = shown_fragments(session)
    if not found:
        return Text("no ldmatrix, stmatrix or mma was last or is next; / mma.sync finds one", style=_QUIET)
    chosen = found[session.operand % len(found)]
    source, each = session.stepper.places.source(pc), chosen.fragment
    text = Text(no_wrap=True)
    text.append(f"{source.mnemonic}\n", "bold")
    text.append(f"{chosen.operand}: {each.rows} x {each.columns} {each.type}", _HEAD)
    text.append(f" in {', '.join(chosen.registers)}; o: {', '.join(other.operand for other in found)}\n", _QUIET)
    values, why = _held(session, pc, chosen)
    cells = _cells(chosen, values)
    longest = max([len(cell) for row in cells for cell in row] or [1])
    columns = max(1, (width - 5) // (longest + 1))
    for first in range(0, len(cells[0]), columns):
        shown = range(first, min(first + columns, len(cells[0])))
        text.append("     " + " ".join(str(column).rjust(longest) for column in shown) + "\n", _QUIET)
        for number, row in enumerate(cells):
            text.append(f"{number:>4} ", _QUIET)
            for column in shown:
                style = "bold red" if "nan" in row[column] else _QUIET if row[column] == UNKNOWN else ""
                text.append(row[column].rjust(longest) + " ", style)
            text.append("\n")
    if why:
        text.append(f"{UNKNOWN} {why}\n", _QUIET)
    return text


def _held(session: Session, pc: int, chosen: HeldFragment) -> tuple[list[Array | None], str]:
    """What each register of a fragment held when the instruction took or wrote it, None where that is not known; and why it is not."""
    event, state, operands = session.event, session.stepper.state, session.stepper.names.operands[pc]
    done = event is not None and event.pc == pc and event.warp == session.shown_warp
    if chosen.result and not (done and event is not None and event.executed):
        return [None] * len(chosen.registers), "is not computed yet"
    rows = {each.name: each for each in operands if each.writes == chosen.result}
    # results may stand where operands stood
    before = {(each.operand.bank, each.operand.row): each.old for each in event.registers} if done and event is not None else {}
    found: list[Array | None] = []
    for name in chosen.registers:
        place = (rows[name].bank, rows[name].row) if name in rows else None
        taken = before.get(place) if place is not None and not chosen.result else None
        found.append(state.row(session.shown_warp, *place) if place is not None and taken is None else taken)
    unknown = [name for name, values in zip(chosen.registers, found) if values is None]
    return found, f"is not known: {', '.join(unknown)}" if unknown else ""


def _cells(chosen: HeldFragment, values: list[Array | None]) -> list[list[str]]:
    """The elements as text; several matrices one below the other."""
    each = chosen.fragment
    cells = [[UNKNOWN] * each.columns for _ in range(each.rows * each.matrices)]
    for cell in each.cells:
        held = values[cell.register]
        if held is not None:
            bits = int(held[cell.lane]) >> cell.low_bit & ((1 << each.element_bits) - 1)
            cells[cell.matrix * each.rows + cell.row][cell.column] = element_text(bits, each.type)
    return cells


def rows(session: Session) -> Text:
    """Values by row of the warp's tile: of the lines that the kernel's description names, such as m, l and the rescale factor."""
    if not session.watched:
        return Text("this kernel does not say which lines hold values of rows; r pins a register", style=_QUIET)
    columns = [(each.label, _values(session, each)) for each in session.watched]
    count = max((len(values) for _, values in columns), default=0)
    if not count:
        return Text(f"not computed yet: {', '.join(each.label for each in session.watched)}", style=_QUIET)
    text = Text(no_wrap=True)
    halves = 2 if count > 8 else 1
    per_half = -(-count // halves)
    head = "row " + "".join(label.rjust(10) for label, _ in columns)
    text.append("    ".join([head] * halves) + "\n", _HEAD)
    for first in range(per_half):
        parts = []
        for half in range(halves):
            row = first + half * per_half
            parts.append(f"{row:>3} " + "".join((short(values[row]) if row < len(values) else "-").rjust(10) for _, values in columns))
        text.append("    ".join(parts) + "\n")
    return text


def _values(session: Session, watched: WatchedLine) -> list[float]:
    """The values that a line gave last, by row of the tile: each of its results holds row lane / 4 of eight."""
    stepper, warp = session.stepper, session.shown_warp
    pcs, warps = stepper.trail
    found: list[float] = []
    for pc in row_result_pcs(stepper.places, watched):
        at = np.flatnonzero((pcs[: stepper.position] == pc) & (warps[: stepper.position] == warp))
        event = stepper.event(int(at[-1])) if at.size else None
        if event is None or not event.registers:
            return []
        found += row_values_of(event.registers[0].new, total=watched.total)
    return found
