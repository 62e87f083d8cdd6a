"""Who holds what, for a terminal: a grid for each fragment, sentences for what was asked for, the list of names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fasim.numerics.fragments import LANES
from fasim.report.console import wide_console
from fasim.report.layout import Blocks, Cell, Fragment, Geometry, LayoutList, LayoutReport, Move, blocks, register_range
from fasim.report.layout_hand_over import HAND_OVER_SOURCE, HAND_OVER_TARGET

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

#: width of what is not a terminal
PLAIN_COLUMNS = 160
#: styles of the lanes 0-3, 4-7, ...: none is alone in telling anything, the lane stands in the cell
_STYLES = ("red", "green", "yellow", "blue", "magenta", "cyan", "bright_red", "bright_blue")
_INDENT = "               "


@dataclass(frozen=True)
class View:
    """How to print: columns, the width; color, whether to use it."""

    columns: int = PLAIN_COLUMNS
    color: bool = False


def print_layout(report: LayoutReport, view: View) -> None:
    """Print grids, or the answer to what was asked for."""
    asked = report.element is not None or report.lane is not None or report.register is not None
    print(f"layout         {report.name}\nwhat           {report.title}")
    if report.instructions:
        more = f" and {len(report.instructions) - 1} more" if len(report.instructions) > 1 else ""
        print(f"instruction    {report.instructions[0]}{more}")
    if not asked:
        print("cells          lane and register")
    console = wide_console(view.color)
    for each in report.fragments:
        if asked:
            print()
            print("\n".join(answer(each, by_element=report.element is not None, moves=_moves_to(report, each))))
        else:
            print(f"\n{heading(each)}")
            _print_grids(each, console, view.columns)
    if report.moves and not asked:
        print("\nNothing changes its lane; in each lane:")
        print("\n".join(f"  {line}" for line in move_lines(report.moves)))
    if report.saved:
        print(f"\nsaved          {report.saved}")


def _moves_to(report: LayoutReport, held: Fragment) -> Sequence[Move]:
    """Moves into this fragment, none if it is the one that they start from."""
    return report.moves if held.operands == (HAND_OVER_TARGET,) else ()


def print_list(found: LayoutList, view: View) -> None:
    """Print all names, those of one instruction and size on a line."""
    print("Who holds what: fasim layout NAME, with --operand A, --element 5,3, --lane 7 --reg 2, --out FILE.svg, --json.\n")
    wide_console(view.color).print(_list_table(found))
    print("\nA name may also be the whole instruction, for example mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")


def _list_table(found: LayoutList) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for head in ("name", "fragments (rows x columns of type: registers of a lane)"):
        table.add_column(head, no_wrap=True)
    for each in found.layouts:
        table.add_row(each.name, ", ".join(map(_in_short, each.fragments)) or each.title)
    return table


def _in_short(sizes: Geometry) -> str:
    operand = {"R": "", "C and D": "C, D "}.get(sizes.label, f"{sizes.label} ")
    many = f"{sizes.matrices} of " if sizes.matrices > 1 else ""
    wide = " x 64 bits" if sizes.register_bits > 32 else ""
    return f"{operand}{many}{sizes.rows} x {sizes.columns} {sizes.type}: {sizes.registers}{wide}"


def heading(held: Geometry) -> str:
    """A fragment in one line."""
    many = f"{held.matrices} matrices of " if held.matrices > 1 else ""
    count = held.elements_per_register
    packed = f", {count} elements in each, the first in the low bits" if count > 1 else ""
    times = held.registers * count * LANES // (held.matrices * held.rows * held.columns)
    often = f", each {times} times" if times > 1 else ""
    size = f"{many}{held.rows} x {held.columns} {held.type}"
    name = "" if held.label == "R" else f"{held.label}: "
    return f"{name}{size} in {register_range(held)} of {held.register_bits} bits{packed}{often}"


def holder_text(holders: Sequence[tuple[int, int]], prefix: str) -> tuple[str, str]:
    """Lanes and registers of a block: `7` and `a2`, or `7` and `a0,4` if several registers have it."""
    lanes = sorted({lane for lane, _ in holders})
    registers = sorted({register for _, register in holders})
    return ",".join(map(str, lanes)), prefix + ",".join(map(str, registers))


def span(start: int, size: int) -> str:
    """The rows or columns of a block: `4`, or `4-5`."""
    first = start * size
    return str(first) if size == 1 else f"{first}-{first + size - 1}"


def _print_grids(held: Fragment, console: Console, columns: int) -> None:
    grid = blocks(held)
    for matrix in range(held.matrices):
        if held.matrix_names:
            print(f"  matrix {matrix}: {held.matrix_names[matrix]}")
        for table in _tables(held, grid, matrix, columns):
            console.print(table)


def _tables(held: Fragment, grid: Blocks, matrix: int, columns: int) -> Iterator[Table]:
    """The grid of one matrix, in parts that are as wide as the terminal."""
    from rich.table import Table

    texts = {place: " ".join(holder_text(found, held.prefix)) for place, found in grid.holders.items() if place[0] == matrix}
    heads = [span(j, grid.width) for j in range(grid.columns)]
    width = max(len(text) for text in [*texts.values(), *heads]) + 2
    side = len(f"row {span(grid.rows - 1, grid.height)}") + 2
    together = max(1, (columns - side) // width)
    for start in range(0, grid.columns, together):
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
        table.add_column("column", style="bold", no_wrap=True, min_width=side - 2)
        shown = range(start, min(start + together, grid.columns))
        for j in shown:
            table.add_column(heads[j], no_wrap=True, min_width=width - 2)
        for i in range(grid.rows):
            cells = []
            for j in shown:
                text = texts[matrix, i, j]
                style = _STYLES[grid.holders[matrix, i, j][0][0] // 4]
                cells.append(f"[{style}]{text}[/]")
            table.add_row(f"row {span(i, grid.height)}", *cells)
        yield table


def answer(held: Fragment, *, by_element: bool, moves: Sequence[Move] = ()) -> list[str]:
    """What was asked for, in sentences; by_element: who holds it, else what is held."""
    if by_element:
        return [f"{_element(held, cell)} is in lane {cell.lane}, {_place(held, cell)}{_origin(moves, cell)}" for cell in held.cells]
    lines: dict[tuple[int, int], list[str]] = {}
    for cell in held.cells:
        bits = f"bits {cell.low_bit}-{cell.low_bit + held.element_bits - 1} " if held.elements_per_register > 1 else ""
        lines.setdefault((cell.lane, cell.register), []).append(f"{bits}{_element(held, cell)}{_origin(moves, cell)}")
    return [f"lane {lane}, {held.prefix}{register}: {_joined(texts)}" for (lane, register), texts in lines.items()]


def _joined(texts: list[str]) -> str:
    return ", ".join(texts) if len(texts) <= 2 else "".join(f"\n{_INDENT}{text}" for text in texts)


def _element(held: Fragment, cell: Cell) -> str:
    name = "" if held.label == "R" else f"{held.label} "
    matrix = f"matrix {cell.matrix} " if held.matrices > 1 else ""
    return f"{name}{matrix}({cell.row}, {cell.column})"


def _place(held: Fragment, cell: Cell) -> str:
    bits = f", bits {cell.low_bit}-{cell.low_bit + held.element_bits - 1}" if held.elements_per_register > 1 else ""
    return f"register {held.prefix}{cell.register}{bits}"


def _origin(moves: Sequence[Move], cell: Cell) -> str:
    for move in moves:
        if (move.register, move.low_bit) == (cell.register, cell.low_bit):
            return f" (from {_source(move)} of {HAND_OVER_SOURCE} matrix {move.block})"
    return ""


def _source(move: Move) -> str:
    return f"c{move.from_register}"


def move_lines(moves: Sequence[Move]) -> list[str]:
    """A hand-over, a register a line."""
    lines = []
    for register in sorted({move.register for move in moves}):
        mine = [move for move in moves if move.register == register]
        matrices = " and ".join(map(str, sorted({move.block for move in mine})))
        parts = ", ".join(map(_source, mine))
        lines.append(f"a{register} of {HAND_OVER_TARGET} = {{{parts}}} of {HAND_OVER_SOURCE} matrix {matrices}, the first in the low bits")
    return lines
