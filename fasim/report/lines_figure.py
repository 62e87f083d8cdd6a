"""Wavefronts by source line, several variants of a kernel side by side, as PNG or SVG.

A row is an operation on a source line, the longest bar first; a column is a variant, all on one scale. A bar is what ncu's source page
counts: what would do (`ideal`), and what comes on top of it. For cp.async past L1 that is no bank conflict: the hardware's counters do not
see it, and it is drawn in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fasim.errors import UsageError
from fasim.report.bank_tables import common_options, line_path
from fasim.report.banks import AccessRow, BanksReport, BanksVariant, aligned_rows
from fasim.report.figure_style import (
    BOLD_INCHES,
    CHARACTER_INCHES,
    GREY,
    GRID,
    INK,
    MONO_INCHES,
    SKY,
    SMALL,
    TEXT,
    TITLE,
    save_figure,
    shortened,
    text_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: rows of a picture; what costs less is added up in one more
MOST_ROWS = 40
#: variants in a line; more go below
MOST_COLUMNS = 6
_MARGIN, _LABEL_INCHES, _GAP_INCHES, _ROW_INCHES = 0.25, 3.5, 0.2, 0.42
#: above all; above the panels, for each line of a variant's name, and for its sum; below them; the legend
_HEAD_INCHES, _NAME_INCHES, _SUM_INCHES, _AXIS_INCHES, _LEGEND_INCHES = 0.6, 0.17, 0.37, 0.5, 0.7
_PANELS_INCHES, _LEAST_INCHES, _MOST_INCHES = 7.2, 0.8, 4.6
_NUMBER_POINTS, _CODE_POINTS = 7.0, 6.5
_BAR = 0.5
_IDEAL: dict[str, Any] = {"facecolor": SKY, "edgecolor": INK, "linewidth": 0.6}
_EXCESS: dict[str, Any] = {"facecolor": "#F6D58A", "edgecolor": INK, "linewidth": 0.6, "hatch": "/////"}
_UNSEEN: dict[str, Any] = {"facecolor": "#FFFFFF", "edgecolor": INK, "linewidth": 0.6, "hatch": "...."}
_NOTES = (
    "bars: wavefronts as ncu's source page counts them, of all CTAs; right of a bar: the sum (and how much of it is beyond the ideal)",
    "hardware: its counters, wavefronts (bank conflicts); cp.async past L1 (LDGSTS.cg) is not in them, so its dotted part is no conflict",
)


@dataclass(frozen=True)
class LineBar:
    """What a line costs in one variant. counted: whether fasim knows a cost for the operation; seen: whether the hardware counts it."""

    wavefronts: int
    ideal: int
    counted: bool = True
    seen: bool = True

    @property
    def excess(self) -> int:
        """Wavefronts beyond the ideal."""
        return max(self.wavefronts - self.ideal, 0)

    @property
    def text(self) -> str:
        """What stands right of the bar."""
        if not self.counted:
            return "not counted"
        return f"{self.wavefronts:,}" + (f" (+{self.excess:,})" if self.excess else "")


@dataclass(frozen=True)
class LineRow:
    """A row of the picture: what it is called, its code, and a bar for each variant, None where the variant has no such access."""

    title: str
    code: str
    bars: tuple[LineBar | None, ...]


def line_rows(variants: Sequence[BanksVariant]) -> list[LineRow]:
    """The rows of the picture, the longest bar first, then as the table of `fasim banks` orders them; those beyond MOST_ROWS as one."""
    rows = sorted((_row(each) for each in aligned_rows(variants)), key=lambda row: -max(bar.wavefronts for bar in row.bars if bar))
    if len(rows) <= MOST_ROWS:
        return rows
    rest = rows[MOST_ROWS - 1 :]
    return [*rows[: MOST_ROWS - 1], LineRow(f"{len(rest)} more", "lines with fewer wavefronts, together", _sums(rest))]


def _row(found: Sequence[AccessRow | None]) -> LineRow:
    row = next(each for each in found if each is not None)
    title = "  ".join(part for part in (row.step, line_path(row), row.op or row.kind) if part)
    bars = [None if each is None else _bar(each) for each in found]
    return LineRow(title, row.code or " ".join(row.text.split()), tuple(bars))


def _bar(row: AccessRow) -> LineBar:
    return LineBar(row.source_wavefronts, row.source_ideal, bool(row.op), not row.op.startswith("LDGSTS.cg"))


def _sums(rows: Sequence[LineRow]) -> tuple[LineBar | None, ...]:
    sums: list[LineBar | None] = []
    for column in zip(*(row.bars for row in rows), strict=True):
        there = [bar for bar in column if bar is not None]
        sums.append(_sum(there) if there else None)
    return tuple(sums)


def _sum(bars: Iterable[LineBar]) -> LineBar:
    found = list(bars)
    return LineBar(sum(bar.wavefronts for bar in found), sum(bar.ideal for bar in found), seen=any(bar.seen for bar in found))


def _hardware_text(variant: BanksVariant) -> str:
    _, wavefronts, conflicts, *_ = variant.sums
    return f"hardware {wavefronts:,}" + (f" (+{conflicts:,})" if conflicts else "")


def save_lines(path: Path, report: BanksReport, option: str = "--lines-out") -> None:
    """Draw the wavefronts of a report by line.

    Raises: UsageError if no variant accesses shared memory, or the file cannot be written.
    """
    save_figure(lines_figure(report, f"{option} {path}"), path, option)


def lines_figure(report: BanksReport, what: str = "the picture") -> Figure:
    """The picture as a figure.

    what: what an error speaks of. Raises: UsageError if no variant accesses shared memory.
    """
    from matplotlib.figure import Figure

    rows, variants = line_rows(report.variants), report.variants
    if not rows:
        raise UsageError(f"{what}: kernel {report.kernel} makes no access to shared memory, so there are no wavefronts to draw")
    columns = min(len(variants), MOST_COLUMNS)
    most = max(1, *(bar.wavefronts for row in rows for bar in row.bars if bar is not None))
    panel = max(min(_PANELS_INCHES / columns, _MOST_INCHES), _LEAST_INCHES + _room(most))
    names = [_wrapped(each.label, panel) if each.label else [] for each in variants]
    name_inches = _NAME_INCHES * max(len(name) for name in names)
    body = _ROW_INCHES * len(rows)
    band = name_inches + _SUM_INCHES + body + _AXIS_INCHES
    bands = -(-len(variants) // columns)
    width = 2 * _MARGIN + _LABEL_INCHES + columns * (panel + _GAP_INCHES)
    height = _HEAD_INCHES + bands * band + _LEGEND_INCHES
    figure = Figure(figsize=(width, height))
    title = f"{report.kernel}: shared-memory wavefronts by source line"
    figure.text(_MARGIN / width, 1 - 0.22 / height, title, **text_style(TITLE, "bold"))
    about = ", ".join(part for part in (common_options(variants), report.source, report.arch, report.compiler) if part)
    figure.text(_MARGIN / width, 1 - 0.41 / height, shortened(about, width - 2 * _MARGIN, TEXT), **text_style(TEXT))
    for number, variant in enumerate(variants):
        line, column = divmod(number, columns)
        top = _HEAD_INCHES + line * band + name_inches + _SUM_INCHES
        left = _MARGIN + _LABEL_INCHES + column * (panel + _GAP_INCHES)
        ax = figure.add_axes((left / width, 1 - (top + body) / height, panel / width, body / height))
        ax.set_label(variant.label or report.kernel)
        _draw(ax, [row.bars[number] for row in rows], most, panel)
        sums = _sum(bar for row in rows if (bar := row.bars[number]) is not None)
        for above, text in ((0.12, f"source page {sums.text}"), (0.24, _hardware_text(variant))):
            ax.text(0, -above / _ROW_INCHES + 0.12, text, fontsize=SMALL, color=INK, va="bottom", clip_on=False)
        for i, name in enumerate(reversed(names[number])):
            # rows are the unit of the vertical axis
            above = (0.27 + _NAME_INCHES * i) / _ROW_INCHES
            ax.text(0, -0.2 - above, name, fontsize=TEXT, weight="bold", color=INK, va="bottom", parse_math=False, clip_on=False)
        if column == 0:
            _label_rows(ax, rows, most, panel)
    _legend(figure, width, height)
    return figure


def _wrapped(label: str, panel: float) -> list[str]:
    """The name of a variant in lines that are not wider than a panel."""
    import textwrap

    return textwrap.wrap(label, max(int(panel / (TEXT * BOLD_INCHES)), 12))


def _room(most: int) -> float:
    """Inches for the longest text right of a bar."""
    longest = max(len(f"{most:,} (+{most:,})"), len("not counted"))
    return 0.1 + longest * _NUMBER_POINTS * 0.0075


def _draw(ax: Axes, bars: Sequence[LineBar | None], most: int, panel: float) -> None:
    """One variant: bars from the top downwards, on a scale that leaves room for the longest number right of the longest bar."""
    from matplotlib.patches import Rectangle
    from matplotlib.ticker import MaxNLocator

    end = most * panel / (panel - _room(most))
    ax.set_xlim(0, end)
    ax.set_ylim(len(bars), 0)
    for y in range(len(bars) + 1):
        ax.axhline(y, color=GRID, linewidth=0.5, zorder=0, clip_on=False)
    count = min(int((panel - _room(most)) / (len(f"{most:,}") * SMALL * CHARACTER_INCHES + 0.1)), 4)
    steps = MaxNLocator(max(count, 1), integer=True, steps=[1, 2, 5, 10]).tick_values(0, most)
    ticks = [tick for tick in steps if 0 <= tick <= most]
    ax.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], fontsize=SMALL)
    ax.xaxis.grid(True, color=GRID, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.set_yticks([])
    ax.tick_params(length=2, color=GREY, labelcolor=INK)
    ax.set_xlabel("wavefronts", fontsize=SMALL, color=INK, loc="left", labelpad=2)
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    for y, bar in enumerate(bars):
        if bar is None:
            ax.text(end * 0.01, y + 0.5, "\N{EN DASH}", fontsize=_NUMBER_POINTS, color=GREY, va="center")
            continue
        # a bar that is too short to be seen is drawn as a line
        parts = ((0, min(bar.ideal, bar.wavefronts), _IDEAL), (bar.ideal, bar.excess, _EXCESS if bar.seen else _UNSEEN))
        for start, length, style in parts:
            if length:
                ax.add_patch(Rectangle((start, y + (1 - _BAR) / 2), length, _BAR, zorder=2, **style))
        weight = "bold" if bar.excess and bar.seen else "normal"
        at = bar.wavefronts + end * 0.05 / panel
        ax.text(at, y + 0.5, bar.text, fontsize=_NUMBER_POINTS, weight=weight, color=INK, va="center", zorder=3)


def _label_rows(ax: Axes, rows: Sequence[LineRow], most: int, panel: float) -> None:
    left = -_LABEL_INCHES / panel * ax.get_xlim()[1]
    room = _LABEL_INCHES - 0.15
    for y, row in enumerate(rows):
        title, code = shortened(row.title, room, TEXT, BOLD_INCHES), shortened(row.code, room, _CODE_POINTS, MONO_INCHES)
        ax.text(left, y + 0.31, title, clip_on=False, **text_style(TEXT, "bold"))
        ax.text(left, y + 0.71, code, clip_on=False, family="monospace", **(text_style(_CODE_POINTS) | {"color": GREY}))


def _legend(figure: Figure, width: float, height: float) -> None:
    from matplotlib.patches import Rectangle

    y, x = 0.51, _MARGIN
    styles = ((_IDEAL, "ideal"), (_EXCESS, "beyond the ideal"), (_UNSEEN, "beyond the ideal of cp.async, no bank conflict"))
    for style, name in styles:
        figure.add_artist(Rectangle((x / width, y / height), 0.3 / width, 0.14 / height, **style))
        figure.text((x + 0.36) / width, (y + 0.07) / height, name, **text_style(TEXT))
        x += 0.36 + 0.3 + len(name) * TEXT * CHARACTER_INCHES
    for i, note in enumerate(_NOTES):
        figure.text(_MARGIN / width, (0.32 - 0.15 * i) / height, shortened(note, width - 2 * _MARGIN, SMALL), **text_style(SMALL))
