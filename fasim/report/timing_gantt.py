"""A Gantt chart of a simulated SM: issue slot and pipes of each sub-partition over some cycles, by warp."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from fasim.errors import UsageError
from fasim.report.figure_style import (
    BLUE,
    GREEN,
    GREY,
    GRID,
    INK,
    ORANGE,
    PURPLE,
    SKY,
    SMALL,
    TEXT,
    TITLE,
    VERMILION,
    save_figure,
    text_style,
)
from fasim.report.timing import TimedLaunch
from fasim.report.timing_spans import ISSUE, LSU, SUB_PARTITIONS, Span, logged_cycles, pipe_spans, used_pipes
from fasim.report.timing_text import labels_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from fasim.sm.timing.predict import Prediction

#: cycles that are drawn unless others are asked for, and at most
WINDOW_CYCLES, MOST_CYCLES = 300, 5000
#: launches in one picture
MOST_LAUNCHES = 4
#: warps of a sub-partition have these colours in turn
_COLORS = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION, INK, "#999933")
_ROW_INCHES, _WIDTH_INCHES, _LEFT_INCHES, _HEAD_INCHES, _AXIS_INCHES, _FOOT_INCHES = 0.15, 13.0, 1.5, 0.45, 0.55, 0.4
_BAR, _GAP_ROWS = 0.8, 0.8


def save_gantt(path: Path, launches: Sequence[tuple[TimedLaunch, Prediction]], window: tuple[int, int] | None = None) -> None:
    """Draw some cycles of each launch; window: first and last cycle, None: from the middle.

    Raises: UsageError if there are too many launches, nothing was logged of these cycles, or the file cannot be written.
    """
    save_figure(gantt_figure(launches, window, f"--out {path}"), path)


def gantt_figure(
    launches: Sequence[tuple[TimedLaunch, Prediction]], window: tuple[int, int] | None = None, what: str = "the chart"
) -> Figure:
    """The same as a figure; what: what an error speaks of."""
    from matplotlib.figure import Figure

    if len(launches) > MOST_LAUNCHES:
        raise UsageError(f"{what}: {len(launches)} launches do not fit into one Gantt chart; give at most {MOST_LAUNCHES}")
    charts = [(row, *chosen_spans(found, window, what)) for row, found in launches]
    pipes = [used_pipes(spans) for _, spans, _ in charts]
    heights = [_ROW_INCHES * SUB_PARTITIONS * (len(each) + _GAP_ROWS) for each in pipes]
    total = sum(heights) + len(charts) * (_HEAD_INCHES + _AXIS_INCHES) + _FOOT_INCHES
    figure = Figure(figsize=(_WIDTH_INCHES, total))
    top = 0.0
    most = 1
    for (row, spans, cycles), names, height in zip(charts, pipes, heights, strict=True):
        top += _HEAD_INCHES
        axes = figure.add_axes(
            (_LEFT_INCHES / _WIDTH_INCHES, 1 - (top + height) / total, 1 - (_LEFT_INCHES + 0.2) / _WIDTH_INCHES, height / total)
        )
        axes.set_label(row.title)
        title = f"{labels_of([row])[0]} on {row.card}: one SM, cycles {cycles[0]:,} to {cycles[1]:,}"
        figure.text(0.2 / _WIDTH_INCHES, 1 - (top - 0.16) / total, title, **text_style(TITLE, "bold"))
        _draw(axes, spans, names, cycles)
        most = max([most, *(span.warp // SUB_PARTITIONS + 1 for span in spans)])
        top += height + _AXIS_INCHES
    _legend(figure, most, total)
    return figure


def chosen_spans(found: Prediction, window: tuple[int, int] | None, what: str = "the chart") -> tuple[list[Span], tuple[int, int]]:
    """The spans in some cycles, cut to them, and these cycles.

    Raises: UsageError if the log does not reach there.
    """
    end = logged_cycles(found)
    if window is None:
        first = max((end - WINDOW_CYCLES) // 2, 0)
        window = first, min(first + WINDOW_CYCLES, end)
    first, last = window
    if last - first > MOST_CYCLES:
        raise UsageError(f"{what}: {last - first:,} cycles are too many to be seen; draw at most {MOST_CYCLES:,}, or write a .pftrace")
    if first >= end:
        raise UsageError(f"{what}: there is nothing in cycles {first:,} to {last:,}; the simulated SM's log ends at {end:,}")
    inside = [span for span in pipe_spans(found) if span.end > first and span.start < last]
    cut = [Span(max(s.start, first), min(s.end, last), s.sub_partition, s.pipe, s.warp, s.instruction, s.cta) for s in inside]
    return cut, (first, last)


def _draw(axes: Axes, spans: Sequence[Span], pipes: Sequence[str], cycles: tuple[int, int]) -> None:
    places = {}
    ticks, labels = [], []
    for sub in range(SUB_PARTITIONS):
        for i, pipe in enumerate(pipes):
            y = sub * (len(pipes) + _GAP_ROWS) + i
            places[sub, pipe] = y
            ticks.append(y + 0.5)
            labels.append(pipe.replace("_", " ") if pipe != LSU else "to lsu")
            if i % 2 == 0:
                axes.axhspan(y, y + 1, color=GRID, alpha=0.25, linewidth=0, zorder=0)
    bars: dict[tuple[float, int], list[tuple[float, float]]] = {}
    for span in spans:
        key = places[span.sub_partition, span.pipe], span.warp // SUB_PARTITIONS % len(_COLORS)
        bars.setdefault(key, []).append((span.start, span.end - span.start))
    narrow = cycles[1] - cycles[0] <= 2 * WINDOW_CYCLES
    for (y, color), ranges in sorted(bars.items()):
        edge = {"edgecolor": "white", "linewidth": 0.4} if narrow else {"linewidth": 0}
        axes.broken_barh(ranges, (y + (1 - _BAR) / 2, _BAR), facecolors=_COLORS[color], zorder=2, **edge)
    axes.set_xlim(*cycles)
    axes.set_ylim(SUB_PARTITIONS * (len(pipes) + _GAP_ROWS) - _GAP_ROWS, 0)
    axes.set_yticks(ticks, labels, fontsize=SMALL)
    for sub in range(SUB_PARTITIONS):
        y = sub * (len(pipes) + _GAP_ROWS) + len(pipes) / 2
        axes.text(
            -0.105, y, f"sub-\npartition\n{sub}", transform=axes.get_yaxis_transform(), fontsize=SMALL, color=INK, va="center", ha="left"
        )
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=SMALL, color=GREY)
    axes.set_xlabel("cycle", fontsize=TEXT, labelpad=2)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _legend(figure: Figure, most: int, height: float) -> None:
    from matplotlib.patches import Rectangle

    x, y = 0.2, 0.15
    shown = min(most, len(_COLORS))
    for number in range(shown):
        figure.add_artist(Rectangle((x / _WIDTH_INCHES, (y - 0.05) / height), 0.18 / _WIDTH_INCHES, 0.11 / height, color=_COLORS[number]))
        others = " and so on" if number == shown - 1 and most > shown else ""
        figure.text((x + 0.25) / _WIDTH_INCHES, y / height, f"warp {number}{others}", **text_style(SMALL))
        x += 0.75 + 0.5 * bool(others)
    note = f"warps as each sub-partition counts them; {ISSUE}: its issue slot; to lsu: into the queue of the load-store unit"
    figure.text((x + 0.1) / _WIDTH_INCHES, y / height, note, **(text_style(SMALL) | {"color": GREY}))
