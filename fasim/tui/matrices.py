"""Panes that show matrices: fragments of ldmatrix and mma with their values, and values by row of a tile."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from rich.text import Text

from fasim.errors import UsageError
from fasim.kernels.spec import WatchedLine
from fasim.report.layout import Fragment
from fasim.report.layout_catalog import find
from fasim.tui.numbers import element_text, short
from fasim.tui.session import Session

_GROUP = re.compile(r"\{([^{}]*)\}")
_QUIET, _HEAD = "dim", "bold cyan"


@dataclass(frozen=True)
class ShownFragment:
    """A fragment of an instruction and the registers that hold it, in order."""

    title: str
    fragment: Fragment
    registers: tuple[str, ...]


def shown_fragments(session: Session) -> tuple[int, list[ShownFragment]]:
    """The pc of the last or next instruction with matrices, and its fragments; -1 and none where neither has any."""
    event, pc = session.event, session.pc
    for at in (event.pc if event is not None and event.warp == session.shown_warp else None, pc):
        if at is not None and (found := _fragments(session, at)):
            return at, found
    return -1, []


def _fragments(session: Session, pc: int) -> list[ShownFragment]:
    source = session.stepper.places.source(pc)
    if not source.mnemonic.startswith(("mma.", "wmma.mma", "ldmatrix", "stmatrix")):
        return []
    try:
        entry, _ = find(source.mnemonic)
    except UsageError:
        return []
    groups = [tuple(name.strip() for name in match[1].split(",")) for match in _GROUP.finditer(source.text)]
    by_operand = dict(zip("DABC", groups)) if "mma" in source.mnemonic else {}
    found = []
    for fragment in entry.fragments():
        for operand in fragment.operands:
            registers = by_operand.get(operand, groups[0] if not by_operand else ())
            if len(registers) == fragment.registers:
                found.append(ShownFragment(operand, fragment, registers))
    return sorted(found, key=lambda each: "DABC".find(each.title[0]))


def fragment(session: Session, width: int) -> Text:
    """A matrix with its values: each cell is an element, rows down, columns across."""
    pc, found = shown_fragments(session)
    if not found:
        return Text("neither the last nor the next instruction is ldmatrix, stmatrix or mma: / mma.sync finds one", style=_QUIET)
    chosen = found[session.operand % len(found)]
    source, each = session.stepper.places.source(pc), chosen.fragment
    text = Text(no_wrap=True)
    text.append(f"{source.mnemonic}\n", "bold")
    text.append(f"{chosen.title}: {each.rows} x {each.columns} {each.type}", _HEAD)
    text.append(f" in {', '.join(chosen.registers)}; o: {', '.join(other.title for other in found)}\n", _QUIET)
    cells, missing = _cells(session, pc, chosen)
    longest = max([len(cell) for row in cells for cell in row] or [1])
    columns = max(1, (width - 5) // (longest + 1))
    for first in range(0, len(cells[0]), columns):
        shown = range(first, min(first + columns, len(cells[0])))
        text.append("     " + " ".join(str(column).rjust(longest) for column in shown) + "\n", _QUIET)
        for number, row in enumerate(cells):
            text.append(f"{number:>4} ", _QUIET)
            for column in shown:
                text.append(row[column].rjust(longest) + " ", "bold red" if "nan" in row[column] else "")
            text.append("\n")
    if missing:
        text.append(f"{', '.join(missing)} no longer hold what the instruction took\n", _QUIET)
    return text


def _cells(session: Session, pc: int, chosen: ShownFragment) -> tuple[list[list[str]], list[str]]:
    """The elements as text; several matrices one below the other. And the registers that are not known."""
    each, state = chosen.fragment, session.stepper.state
    rows = {operand.name: operand for operand in session.stepper.names.operands[pc]}
    values = [state.row(session.shown_warp, rows[name].bank, rows[name].row) if name in rows else None for name in chosen.registers]
    missing = [name for name, value in zip(chosen.registers, values) if value is None and name.startswith("%")]
    cells = [["?"] * each.columns for _ in range(each.rows * each.matrices)]
    for cell in each.cells:
        held = values[cell.register]
        if held is not None:
            bits = int(held[cell.lane]) >> cell.low_bit & ((1 << each.element_bits) - 1)
            cells[cell.matrix * each.rows + cell.row][cell.column] = element_text(bits, each.type)
    return cells, missing


def rows(session: Session) -> Text:
    """Values by row of the warp's tile: of the lines that the kernel's description names, such as m, l and the rescale factor."""
    if not session.watched:
        return Text("this kernel does not say which lines hold values of a row; r pins a register instead", style=_QUIET)
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
    for pc in _results(session, watched):
        at = np.flatnonzero((pcs[: stepper.position] == pc) & (warps[: stepper.position] == warp))
        event = stepper.event(int(at[-1])) if at.size else None
        if event is None or not event.registers:
            return []
        lanes = event.registers[0].new.view(np.float32).astype(np.float64).reshape(8, 4)
        found += (lanes.sum(axis=1) if watched.total else lanes[:, 0]).tolist()
    return found


def _results(session: Session, watched: WatchedLine) -> list[int]:
    """The instructions that compute what a line assigns: those of its operation that belong to the line itself or one call within."""
    places = session.stepper.places
    lines = [(pc, places.path(pc)) for pc in range(len(places.program)) if places.source(pc).mnemonic.startswith(watched.operation)]
    of_line = [(pc, len(path)) for pc, path in lines if path and places.sources.text(*path[0]).startswith(watched.text)]
    own = min((depth for _, depth in of_line), default=0)
    return [pc for pc, depth in of_line if depth == own]
