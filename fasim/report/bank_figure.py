"""The picture of the 32 banks as PNG or SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fasim.report import figure_style
from fasim.report.bank_picture import BankGroup, BankWord, lane_ranges
from fasim.report.figure_style import GRID, INK, PALE, SMALL, VERMILION
from fasim.smem.wavefront_rule import BANKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: what collides is dark, too, so that it shows without colour
_FREE, _COLLIDING = PALE, VERMILION
_WIDTH_INCHES, _ROW_INCHES = 11.0, 0.27
#: margins as parts of the width; rows above a panel (without its title) and below it
_LEFT, _RIGHT, _HEAD_ROWS, _FOOT_ROWS = 0.08, 0.01, 2.2, 1.8


def save_figure(path: Path, panels: Sequence[tuple[str, Sequence[BankGroup]]]) -> None:
    """Draw accesses one below the other, each under its title: a row is a line of 128 bytes, a column a bank, a number a lane.

    Raises: UsageError if the file cannot be written.
    """
    from matplotlib.figure import Figure

    plots = [(title if i == 0 else "", group, len(group.lines())) for title, groups in panels for i, group in enumerate(groups)]
    rows = sum(_HEAD_ROWS + bool(title) + lines + _FOOT_ROWS for title, _, lines in plots) + _FOOT_ROWS
    figure = Figure(figsize=(_WIDTH_INCHES, _ROW_INCHES * rows))
    row = 0.0
    for title, group, lines in plots:
        row += _HEAD_ROWS + bool(title) + lines
        # left, bottom, width, height as parts of the figure
        ax = figure.add_axes((_LEFT, 1 - row / rows, 1 - _LEFT - _RIGHT, lines / rows))
        _draw(ax, group, title)
        row += _FOOT_ROWS
    legend = "columns: banks; below them how often each is asked. Orange: the bank is asked more than once, each costs a wavefront"
    figure.text(_LEFT, 0.5 / rows, legend, fontsize=8, va="center")
    figure_style.save_figure(figure, path)


def _draw(ax: Axes, group: BankGroup, title: str) -> None:
    from matplotlib.patches import Rectangle

    lines = group.lines()
    centred: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": SMALL}
    ax.set_axis_off()
    ax.set_xlim(0, BANKS)
    ax.set_ylim(len(lines), 0)
    ax.vlines(range(BANKS + 1), 0, len(lines), colors=GRID, linewidths=0.6, clip_on=False, zorder=0)
    ax.hlines(range(len(lines) + 1), 0, BANKS, colors=GRID, linewidths=0.6, clip_on=False, zorder=0)
    for y, (offset, words) in enumerate(lines.items()):
        ax.text(-0.2, y + 0.5, f"{offset:,}", ha="right", va="center", fontsize=SMALL, color=INK)
        for bank, word in words.items():
            fill, color, weight = (_COLLIDING, "white", "bold") if word.collides else (_FREE, INK, "normal")
            ax.add_patch(Rectangle((bank, y), 1, 1, facecolor=fill, edgecolor=GRID, linewidth=0.6, clip_on=False))
            ax.text(bank + 0.5, y + 0.5, _label(word), color=color, weight=weight, **centred)
    for bank, asked in enumerate(group.demand):
        ax.text(bank + 0.5, -0.5, str(bank), color=INK, **centred)
        if asked:
            ax.text(bank + 0.5, len(lines) + 0.5, str(asked), color=INK, weight="bold" if asked > 1 else "normal", **centred)
    which = f"lanes {lane_ranges(group.lanes)}: {group.wavefronts} wavefront{'s' * (group.wavefronts != 1)}"
    ax.text(0, -1.5, which, va="center", fontsize=9, color=INK)
    if title:
        ax.text(0, -2.5, title, va="center", fontsize=9, weight="bold", color=INK)
    ax.text(-0.2, -0.5, "offset / bank", ha="right", va="center", fontsize=SMALL, color=INK)


def _label(word: BankWord) -> str:
    """The lane, and a sign if there are more."""
    return str(word.lanes[0]) + "+" * (len(word.lanes) > 1)
