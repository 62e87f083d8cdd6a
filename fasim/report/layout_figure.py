"""Who holds what, as PNG or SVG: a grid for each matrix, lane and register in each cell, coloured by groups of four lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fasim.numerics.fragments import LANES
from fasim.report import figure_style
from fasim.report.figure_style import BOLD_INCHES, INK, TEXT, TITLE
from fasim.report.layout import Blocks, Fragment, LayoutReport, blocks
from fasim.report.layout_text import holder_text, move_lines, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: light tints of the palette of Okabe and Ito, for lanes 0-3, 4-7, ...; dark ink stands on each of them
FILLS = ("#FFFFFF", "#F6D58A", "#A9DBF5", "#8FD3BC", "#F5EE9E", "#8DBBDD", "#F0A878", "#E3B4CF")
_GRID, _MARK = "#777777", "#000000"
_CAPTION = "bold: the lane; below it: its register, with the first of several elements in the low bits. Colour: lanes"
#: a cell is as high as it is wide; margins of a panel, of the page, and the page's width
_CELL_INCHES, _PAGE_INCHES = 0.36, 11.2
_LEFT, _TOP, _GAP, _MARGIN, _LEGEND_INCHES, _LINE_INCHES = 0.5, 0.62, 0.2, 0.2, 0.45, 0.19
_HEAD_INCHES = 0.65


@dataclass(frozen=True)
class _Panel:
    """One matrix of one fragment; marked: the blocks that were asked for; x and y: inches from the page's upper left corner."""

    held: Fragment
    grid: Blocks
    matrix: int
    marked: frozenset[tuple[int, int]]
    x: float = 0.0
    y: float = 0.0

    @property
    def titles(self) -> tuple[str, str]:
        """Two lines above the grid."""
        held = self.held
        size = f"{held.rows} x {held.columns} {held.type}"
        if held.matrices > 1:
            name = "matrix" if held.label == "R" else f"{held.label}, matrix"
            return f"{name} {self.matrix}: {size}", held.matrix_names[self.matrix]
        name = "matrix" if held.label == "R" else held.label
        return f"{name}: {size}", f"{held.registers} register{'s' * (held.registers > 1)} of {held.register_bits} bits"

    @property
    def width(self) -> float:
        """Inches, with the labels of the rows; the same for all matrices of a fragment."""
        longest = max(len(title) for matrix in range(self.held.matrices) for title in replace(self, matrix=matrix).titles)
        return max(_LEFT + self.grid.columns * _CELL_INCHES, TEXT * BOLD_INCHES * longest + _LEFT) + _GAP

    @property
    def begins_line(self) -> bool:
        """Whether it stands below the others of its fragment: four matrices are two by two."""
        return self.held.matrices == 4 and self.matrix == 2

    @property
    def height(self) -> float:
        """Inches, with title and labels of the columns."""
        return _TOP + self.grid.rows * _CELL_INCHES + _GAP


def save_layout(path: Path, report: LayoutReport, whole: Sequence[Fragment]) -> None:
    """Draw all cells of the fragments `whole`, with frames around those of the report if it holds only some.

    Raises: UsageError if the file cannot be written.
    """
    from matplotlib.figure import Figure

    panels, width, height = _placed(_panels(report, whole))
    notes = move_lines(report.moves)
    height += _LINE_INCHES * len(notes) + _LEGEND_INCHES + _MARGIN
    figure = Figure(figsize=(width, height))
    figure.text(_MARGIN / width, 1 - 0.22 / height, report.name, fontsize=TITLE, weight="bold", color=INK, va="center")
    figure.text(_MARGIN / width, 1 - 0.42 / height, report.title, fontsize=TEXT, color=INK, va="center")
    for panel in panels:
        _draw(figure, panel, width, height)
    for i, note in enumerate(notes):
        y = _LEGEND_INCHES + _MARGIN + _LINE_INCHES * (len(notes) - i - 0.5)
        figure.text(_MARGIN / width, y / height, note, fontsize=TEXT, color=INK, va="center")
    _legend(figure, width, height)
    figure_style.save_figure(figure, path)


def _panels(report: LayoutReport, whole: Sequence[Fragment]) -> list[_Panel]:
    shown = {each.operands: each for each in report.fragments}
    panels = []
    for held in whole:
        if held.operands not in shown:
            continue
        grid, asked = blocks(held), shown[held.operands].cells
        some = asked if len(asked) < len(held.cells) else ()
        for matrix in range(held.matrices):
            marked = frozenset((cell.row // grid.height, cell.column // grid.width) for cell in some if cell.matrix == matrix)
            panels.append(_Panel(held, grid, matrix, marked))
    return panels


def _placed(panels: Sequence[_Panel]) -> tuple[list[_Panel], float, float]:
    """Panels one after the other in lines; returns them, and width and height of the page in inches."""
    widest = max(_PAGE_INCHES, *(panel.width + 2 * _MARGIN for panel in panels))
    x, y, line = _MARGIN, _HEAD_INCHES, 0.0
    right, placed = 0.0, []
    for panel in panels:
        if x > _MARGIN and (panel.begins_line or x + panel.width > widest - _MARGIN):
            x, y, line = _MARGIN, y + line, 0.0
        placed.append(_Panel(panel.held, panel.grid, panel.matrix, panel.marked, x, y))
        x, line = x + panel.width, max(line, panel.height)
        right = max(right, x)
    return placed, max(right + _MARGIN, 8.0), y + line


def _draw(figure: Figure, panel: _Panel, width: float, height: float) -> None:
    from matplotlib.patches import Rectangle

    grid, held = panel.grid, panel.held
    x, y = panel.x + _LEFT, panel.y + _TOP
    wide, high = grid.columns * _CELL_INCHES, grid.rows * _CELL_INCHES
    ax: Axes = figure.add_axes((x / width, 1 - (y + high) / height, wide / width, high / height))
    ax.set_axis_off()
    ax.set_xlim(0, grid.columns)
    ax.set_ylim(grid.rows, 0)
    centred: dict[str, Any] = {"ha": "center", "va": "center", "color": INK}
    for i in range(grid.rows):
        for j in range(grid.columns):
            holders = grid.holders[panel.matrix, i, j]
            lane, register = holder_text(holders, held.prefix)
            ax.add_patch(Rectangle((j, i), 1, 1, facecolor=FILLS[holders[0][0] // 4], edgecolor=_GRID, linewidth=0.5, clip_on=False))
            ax.text(j + 0.5, i + 0.34, lane, fontsize=TEXT, weight="bold", **centred)
            ax.text(j + 0.5, i + 0.74, register, fontsize=6.5 if len(register) < 4 else 4.5, **centred)
    for i, j in panel.marked:
        ax.add_patch(Rectangle((j, i), 1, 1, fill=False, edgecolor=_MARK, linewidth=2.5, clip_on=False))
    label: dict[str, Any] = {"fontsize": 6.5, "color": INK, "va": "center"}
    for j in range(grid.columns):
        ax.text(j + 0.5, -0.3, span(j, grid.width), ha="center", **label)
    for i in range(grid.rows):
        ax.text(-0.15, i + 0.5, span(i, grid.height), ha="right", **label)
    for at, text, weight in ((-1.3, panel.titles[0], "bold"), (-0.8, panel.titles[1], "normal")):
        ax.text(0, at, text, fontsize=TEXT, weight=weight, color=INK, va="center")


def _legend(figure: Figure, width: float, height: float) -> None:
    from matplotlib.patches import Rectangle

    y = _MARGIN
    text: dict[str, Any] = {"fontsize": TEXT, "color": INK, "va": "center"}
    figure.text(_MARGIN / width, (y + 0.3) / height, _CAPTION, **text)
    for group, fill in enumerate(FILLS):
        x = _MARGIN + group * 0.72
        size = 0.17
        figure.add_artist(Rectangle((x / width, y / height), size / width, size / height, facecolor=fill, edgecolor=_GRID, linewidth=0.5))
        count = LANES // len(FILLS)
        figure.text((x + 0.22) / width, (y + 0.085) / height, f"{group * count}-{group * count + count - 1}", **text)
