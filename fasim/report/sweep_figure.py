"""Figures of a ranked space: a bar a launch, or a map of the best time over two of the swept options."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fasim.errors import UsageError
from fasim.report.figure_style import BLUE, CHARACTER_INCHES, GREY, GRID, INK, SKY, SMALL, TEXT, TITLE, save_figure, shortened, text_style
from fasim.report.sweep import SweepReport, SweptLaunch
from fasim.report.sweep_text import title
from fasim.report.timing_text import microseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: launches with a bar each, and values of an option on a map
MOST_BARS, MOST_CELLS = 40, 40
_BAR_INCHES, _PLOT_INCHES, _MOST_LABEL_INCHES = 0.22, 4.2, 4.0
_CELL_INCHES = (0.85, 0.42)
#: ratios from which on a cell is as dark as it gets
_DARKEST = 3.0


def save_sweep(path: Path, report: SweepReport, over: Sequence[str] = (), top: int = 0) -> None:
    """Draw a sweep: a map over two options if two are named or swept, else bars of the fastest.

    Raises: UsageError if the file cannot be written.
    """
    axes = list(over) or list(report.axes)
    save_figure(map_figure(report, axes[0], axes[1]) if len(axes) == 2 else bar_figure(report, top), path)


def check_over(axes: dict[str, list[str]], over: Sequence[str]) -> None:
    """Find out whether a map over these options can be drawn.

    Raises: UsageError.
    """
    if len(over) != 2 or over[0] == over[1] or any(name not in axes for name in over):
        known = ", ".join(axes) or "none"
        raise UsageError(f"--over {','.join(over)!r}: name two of what is swept, with a comma between; swept: {known}")
    for name in over:
        if len(axes[name]) > MOST_CELLS:
            raise UsageError(f"--over {','.join(over)}: {name} has {len(axes[name])} values, more than the {MOST_CELLS} that a map shows")


# --- bars ------------------------------------------------------------------------------------------------------------------------


def bar_figure(report: SweepReport, top: int = 0) -> Figure:
    """A bar a launch, the fastest above. top: how many, 0 for as many as can be seen."""
    from matplotlib.figure import Figure

    shown = report.launches[: min(top or MOST_BARS, MOST_BARS)]
    names = [row.label or row.kernel for row in shown]
    label_inches = min(max(map(len, names)) * TEXT * CHARACTER_INCHES + 0.2, _MOST_LABEL_INCHES)
    width, height = label_inches + _PLOT_INCHES + 0.9, len(shown) * _BAR_INCHES + 1.15
    figure = Figure(figsize=(width, height))
    _head(figure, report, width, height)
    axes = figure.add_axes((label_inches / width, 0.5 / height, _PLOT_INCHES / width, (height - 1.15) / height))
    launch = [row.time_us - row.cycles / row.clock_mhz for row in shown]
    positions = list(range(len(shown)))
    axes.barh(positions, launch, height=0.72, color=SKY, label="launch overhead")
    axes.barh(positions, [row.time_us - each for row, each in zip(shown, launch)], left=launch, height=0.72, color=BLUE, label="execution")
    most = max(row.time_us for row in shown)
    for position, row in zip(positions, shown):
        axes.text(row.time_us + 0.01 * most, position, f"{microseconds(row.time_us)}  {row.ratio:.2f} x", **text_style(SMALL))
    axes.set_yticks(positions, [])
    for position, name in zip(positions, names):
        cut = shortened(name, label_inches - 0.15, TEXT)
        axes.text(-0.08 / _PLOT_INCHES, position, cut, transform=axes.get_yaxis_transform(), **text_style(TEXT), ha="right")
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.set_xlim(0, most * 1.02)
    axes.set_xlabel("predicted time (us)", fontsize=TEXT)
    axes.tick_params(labelsize=SMALL, left=False)
    axes.grid(True, axis="x", color=GRID, linewidth=0.5)
    axes.set_axisbelow(True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, fontsize=SMALL, frameon=False, borderaxespad=0.1)
    if len(shown) < len(report.launches):
        note = f"the fastest {len(shown)} of {len(report.launches):,}"
        figure.text((width - 0.15) / width, 0.15 / height, note, **(text_style(SMALL) | {"color": GREY}), ha="right")
    return figure


def _head(figure: Figure, report: SweepReport, width: float, height: float) -> None:
    cards = ", ".join(gpu.card for gpu in report.gpus)
    figure.text(0.12 / width, 1 - 0.18 / height, shortened(title(report), width - 0.3, TITLE, 0.00885), **text_style(TITLE, "bold"))
    figure.text(0.12 / width, 1 - 0.38 / height, cards, **text_style(SMALL))


# --- map -------------------------------------------------------------------------------------------------------------------------


def best_by(report: SweepReport, rows: str, columns: str) -> dict[tuple[str, str], SweptLaunch]:
    """The fastest launch for each pair of values."""
    found: dict[tuple[str, str], SweptLaunch] = {}
    for launch in report.launches:
        found.setdefault((launch.values[rows], launch.values[columns]), launch)
    return found


def map_figure(report: SweepReport, rows: str, columns: str) -> Figure:
    """A cell for each pair of values of two options: time, and ratio to the fastest; crossed out where nothing was predicted."""
    from matplotlib.figure import Figure

    downwards, across = report.axes[rows], report.axes[columns]
    label_inches = min(max(map(len, downwards)) * TEXT * CHARACTER_INCHES + 0.45, _MOST_LABEL_INCHES)
    cell = (max(_CELL_INCHES[0], max(map(len, across)) * TEXT * CHARACTER_INCHES + 0.1), _CELL_INCHES[1])
    grid = (cell[0] * len(across), cell[1] * len(downwards))
    width, height = max(label_inches + grid[0] + 0.3, 4.6), grid[1] + 1.35
    figure = Figure(figsize=(width, height))
    _head(figure, report, width, height)
    axes = figure.add_axes((label_inches / width, 0.75 / height, grid[0] / width, grid[1] / height))
    _draw_cells(axes, report, rows, columns)
    axes.set_xlim(0, len(across))
    axes.set_ylim(len(downwards), 0)
    axes.set_xticks([i + 0.5 for i in range(len(across))], across, fontsize=TEXT, parse_math=False)
    axes.set_yticks([i + 0.5 for i in range(len(downwards))], downwards, fontsize=TEXT, parse_math=False)
    axes.set_xlabel(columns, fontsize=TEXT, parse_math=False)
    axes.set_ylabel(rows, fontsize=TEXT, parse_math=False)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    others = [name for name in report.axes if name not in (rows, columns)]
    note = "predicted us, and ratio to the fastest (framed)" + (f"; the best over {', '.join(others)}" if others else "")
    figure.text(0.12 / width, 0.15 / height, shortened(note, width - 0.3, SMALL), **(text_style(SMALL) | {"color": GREY}))
    return figure


def _draw_cells(axes: Axes, report: SweepReport, rows: str, columns: str) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patches import Rectangle

    colors = LinearSegmentedColormap.from_list("times", ["white", SKY, BLUE])
    best = best_by(report, rows, columns)
    for y, row in enumerate(report.axes[rows]):
        for x, column in enumerate(report.axes[columns]):
            launch = best.get((row, column))
            if launch is None:
                axes.add_patch(
                    Rectangle((x, y), 1, 1, facecolor="white", edgecolor=GRID, hatch="xxx", linewidth=0.5, gid=f"none {row} {column}")
                )
                continue
            darkness = min(math.log(launch.ratio) / math.log(_DARKEST), 1.0)
            axes.add_patch(Rectangle((x, y), 1, 1, facecolor=colors(darkness), edgecolor="white", linewidth=1, gid=f"cell {row} {column}"))
            style = text_style(TEXT) | {"ha": "center", "color": "white" if darkness > 0.75 else INK}
            axes.text(x + 0.5, y + 0.35, microseconds(launch.time_us), **style)
            axes.text(x + 0.5, y + 0.72, f"{launch.ratio:.2f} x", **(style | {"fontsize": SMALL}))
            if launch.rank == 1:
                axes.add_patch(Rectangle((x + 0.03, y + 0.03), 0.94, 0.94, fill=False, edgecolor=INK, linewidth=1.2, zorder=3))
