"""`fasim layout`: which lane and register holds which element of a matrix."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import fasim
from fasim.errors import UsageError
from fasim.report.layout import Fragment, LayoutList, LayoutReport, LayoutSummary, Move, Selection, parse_element, select

if TYPE_CHECKING:
    from fasim.report.layout_text import View


def layout(
    name: str | None, *, operand: str | None, element: str | None, lane: int | None, register: str | None, out: Path | None, json: bool
) -> int:
    """Carry out `fasim layout`.

    Returns: the exit code. Raises: UsageError.
    """
    number, operand = parse_register(register, operand, name) if register is not None else (None, operand)
    wanted = Selection(parse_element(element) if element is not None else None, lane, number)
    if name is None:
        if operand is not None or out is not None or not wanted.everything:
            raise UsageError("name a layout, for example: fasim layout mma.m16n8k16.f16 --operand A; `fasim layout` alone lists them")
        return _list(json=json)
    if out is not None:
        from fasim.report.figure_style import check_figure_path

        check_figure_path(out)
    report, whole = examine(name, operand, wanted, out)
    if out is not None:
        from fasim.report.layout_figure import save_layout

        save_layout(out, report, whole)
    if json:
        from fasim.report.records import to_json

        print(to_json(report))
    else:
        from fasim.report.layout_text import print_layout

        print_layout(report, _view())
    return 0


def parse_register(text: str, operand: str | None, name: str | None = None) -> tuple[int, str | None]:
    """The number of a register, and the operand if its letter says which: `a2` of mma is register 2 of A.

    Raises: UsageError.
    """
    match = re.fullmatch(r"%?(?P<letter>[a-zA-Z]?)(?P<number>[0-9]{1,9})", text.strip())
    if match is None:
        raise UsageError(f"--reg {text!r}: a number is expected, or the register as the tables call it, for example 2 or a2")
    letter = match["letter"].upper()
    if letter and operand is not None and len(operand) == 1 and letter != operand.upper() and letter != "R":
        raise UsageError(f"--reg {text}: this is a register of {letter}, and --operand asks for {operand}")
    if operand is None and letter in ("A", "B", "C", "D") and "mma" in (name or ""):
        operand = letter
    return int(match["number"]), operand


def examine(name: str, operand: str | None, wanted: Selection, out: Path | None = None) -> tuple[LayoutReport, tuple[Fragment, ...]]:
    """The report on a layout, and its fragments with all their cells.

    Raises: UsageError for names, operands, elements, lanes and registers that do not exist.
    """
    from fasim.report.layout_catalog import find
    from fasim.report.layout_hand_over import HAND_OVER, HAND_OVER_TITLE

    moves: tuple[Move, ...] = ()
    mnemonics: tuple[str, ...] = ()
    if name.strip().lower() == HAND_OVER:
        name, title = HAND_OVER, HAND_OVER_TITLE
        whole, moves = _hand_over(operand)
    else:
        entry, said = find(name)
        if operand is not None and said is not None and operand.upper() != said:
            raise UsageError(f"--operand {operand}: {name} moves operand {said}")
        name, title, mnemonics = entry.name, entry.title, tuple(entry.mnemonics)
        whole = entry.fragments(operand or said)
    report = LayoutReport(
        name=name,
        title=title,
        instructions=mnemonics,
        element=wanted.element,
        lane=wanted.lane,
        register=wanted.register,
        fragments=select(name, whole, wanted),
        moves=moves,
        saved=str(out) if out is not None else None,
        version=fasim.__version__,
    )
    return report, whole


def _hand_over(operand: str | None) -> tuple[tuple[Fragment, ...], tuple[Move, ...]]:
    from fasim.report.layout_catalog import find
    from fasim.report.layout_hand_over import HAND_OVER_MMA, HAND_OVER_SOURCE, HAND_OVER_TARGET, hand_over, side_by_side

    entry, _ = find(HAND_OVER_MMA)
    (c,), (a,) = entry.fragments("C"), entry.fragments("A")
    source, target = replace(side_by_side(c, a), operands=(HAND_OVER_SOURCE,)), replace(a, operands=(HAND_OVER_TARGET,))
    whole = tuple(each for each in (source, target) if operand is None or operand.upper() in each.operands)
    if not whole:
        known = f"{HAND_OVER_SOURCE}, {HAND_OVER_TARGET}"
        raise UsageError(f"--operand {operand}: the hand-over has no such operand; known: {known}")
    return whole, hand_over(source, target)


def _list(*, json: bool) -> int:
    from fasim.report.layout_catalog import catalog
    from fasim.report.layout_hand_over import HAND_OVER, HAND_OVER_TITLE

    summaries = [LayoutSummary(entry.name, entry.title, entry.geometries) for entry in catalog().values()]
    whole, _ = _hand_over(None)
    summaries.append(LayoutSummary(HAND_OVER, HAND_OVER_TITLE, tuple(each.geometry for each in whole)))
    found = LayoutList(tuple(summaries), fasim.__version__)
    if json:
        from fasim.report.records import to_json

        print(to_json(found))
    else:
        from fasim.report.layout_text import print_list

        print_list(found, _view())
    return 0


def _view() -> View:
    from fasim.report.layout_text import PLAIN_COLUMNS, View

    terminal = sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns if terminal or "COLUMNS" in os.environ else PLAIN_COLUMNS
    return View(columns, terminal and "NO_COLOR" not in os.environ)
