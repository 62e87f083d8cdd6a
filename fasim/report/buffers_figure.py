"""The buffers in shared memory over time: a row for each, what is copied or stored there above, what is read below."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from fasim.report.buffers import AreaRow, BarrierBar, BuffersOverTime, CopyBar
from fasim.report.figure_style import (
    BOLD_INCHES,
    CHARACTER_INCHES,
    GREEN,
    GREY,
    GRID,
    INK,
    PALE,
    SKY,
    SMALL,
    TEXT,
    TITLE,
    VERMILION,
    shortened,
    text_style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARGIN, _LABEL_INCHES, _TIME_INCHES = 0.25, 1.75, 9.0
_HEAD_INCHES, _TILES_INCHES, _AXIS_INCHES, _LEGEND_INCHES, _STRIP_INCHES = 0.58, 0.25, 0.5, 0.32, 0.24
#: a copy and a store, a read, and the space around a row
_BAR_INCHES, _READ_INCHES, _ROW_GAP_INCHES = 0.2, 0.13, 0.12
_NOTE_POINTS = 6.5
#: lines through all rows are drawn as long as there are no more of them
_MOST_LINES = 60
_ISSUED: dict[str, Any] = {"facecolor": PALE, "edgecolor": INK, "linewidth": 0.5, "hatch": "//////"}
_PENDING: dict[str, Any] = {"facecolor": SKY, "edgecolor": INK, "linewidth": 0.5}
_NEVER: dict[str, Any] = {"facecolor": "white", "edgecolor": VERMILION, "linewidth": 1.2, "hatch": "xxxx"}
_STORED: dict[str, Any] = {"facecolor": "white", "edgecolor": INK, "linewidth": 0.6, "hatch": "-----"}
_READ: dict[str, Any] = {"facecolor": INK, "edgecolor": INK, "linewidth": 0.3}
_BARRIER: dict[str, Any] = {"facecolor": GREY, "edgecolor": INK, "linewidth": 0.4}
_WAIT: dict[str, Any] = {"markersize": 4, "color": VERMILION, "markeredgecolor": INK, "markeredgewidth": 0.4}
_LEGEND = (
    ("cp.async being issued", _ISSUED),
    ("group committed, on its way", _PENDING),
    ("never waited for", _NEVER),
    ("stored", _STORED),
    ("read", _READ),
)


def buffers_figure(shown: BuffersOverTime) -> Figure:
    """The picture as a figure."""
    from matplotlib.figure import Figure

    slots = [_slots(row.copies, row.stores) for row in shown.rows]
    heights = [_ROW_GAP_INCHES + _BAR_INCHES * (max(slot) + 1) + _READ_INCHES for slot in slots]
    numbers = sorted({bar.number for bar in shown.barriers})
    strips = _STRIP_INCHES * (bool(shown.waits) + len(numbers))
    body = sum(heights) + strips + (0.08 if strips else 0) + (0 if shown.rows else 0.4)
    width = 2 * _MARGIN + _LABEL_INCHES + _TIME_INCHES
    tiles = _TILES_INCHES if shown.tiles else 0
    height = _HEAD_INCHES + tiles + body + _AXIS_INCHES + _LEGEND_INCHES
    figure = Figure(figsize=(width, height))
    figure.text(_MARGIN / width, 1 - 0.2 / height, shown.title, **text_style(TITLE, "bold"))
    figure.text(_MARGIN / width, 1 - 0.39 / height, shortened(shown.about, width - 2 * _MARGIN, TEXT), **text_style(TEXT))
    bottom = 1 - (_HEAD_INCHES + tiles + body) / height
    ax = figure.add_axes(((_MARGIN + _LABEL_INCHES) / width, bottom, _TIME_INCHES / width, body / height))
    ax.set_label("time")
    ax.set_xlim(shown.first, shown.end)
    ax.set_ylim(body, 0)
    _axis(ax, shown)
    y = 0.0
    for row, slot, inches in zip(shown.rows, slots, heights, strict=True):
        _draw_row(ax, shown, row, slot, y, inches)
        y += inches
    y += 0.08
    if shown.waits:
        _draw_waits(ax, shown, y)
        y += _STRIP_INCHES
    for number in numbers:
        _draw_barrier(ax, number, [bar for bar in shown.barriers if bar.number == number], y)
        y += _STRIP_INCHES
    _draw_tiles(ax, shown, body)
    opens = _draw_lines(ax, shown, body)
    _draw_legend(figure, shown, width, height, opens=opens)
    return figure


def _slots(copies: Sequence[CopyBar], stores: Sequence[tuple[int, int]]) -> list[int]:
    """The line of each copy's bar and, last, that of the stores: bars that overlap in time stand below each other."""
    ends: list[int] = []
    found = []
    for bar in copies:
        slot = next((i for i, end in enumerate(ends) if end <= bar.first), len(ends))
        ends[slot:] = [bar.end, *ends[slot + 1 :]]
        found.append(slot)
    first = [bar for bar, slot in zip(copies, found) if slot == 0]
    meets = any(start < bar.end and bar.first < end for start, end in stores for bar in first)
    return [*found, (len(ends) if meets else 0)]


def _axis(ax: Axes, shown: BuffersOverTime) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_yticks([])
    steps = MaxNLocator(10, integer=True, steps=[1, 2, 5, 10]).tick_values(shown.first, shown.end)
    ticks = [tick for tick in steps if shown.first <= tick <= shown.end]
    ax.set_xticks(ticks, [f"{tick:,.0f}" for tick in ticks], fontsize=SMALL)
    ax.tick_params(length=3, color=GREY, labelcolor=INK)
    ax.set_xlabel("warp instructions of the CTA, in the order of their execution (not real time)", fontsize=TEXT, color=INK)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.spines["bottom"].set_color(GREY)


def _add(ax: Axes, start: float, end: float, y: float, inches: float, style: dict[str, Any], name: str) -> None:
    """A bar; name: what finds it again in the SVG and in tests."""
    from matplotlib.patches import Rectangle

    ax.add_patch(Rectangle((start, y), end - start, inches, zorder=3, gid=name, **style))


def _label(ax: Axes, y: float, name: str, note: str = "") -> None:
    """The name of a row, left of it; below it a remark."""
    at: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points", "annotation_clip": False}
    room = _LABEL_INCHES - 0.1
    left = -72 * _LABEL_INCHES
    ax.annotate(shortened(name, room, TEXT, BOLD_INCHES), (0, y), (left, 4 if note else 0), **at, **text_style(TEXT, "bold"))
    if note:
        ax.annotate(shortened(note, room, _NOTE_POINTS), (0, y), (left, -5), **at, **(text_style(_NOTE_POINTS) | {"color": GREY}))


def _draw_row(ax: Axes, shown: BuffersOverTime, row: AreaRow, slots: Sequence[int], y: float, inches: float) -> None:
    ax.axhline(y, color=GRID, linewidth=0.5, zorder=0)
    note = ", ".join(part for part in (f"{row.area.size_bytes:,} bytes", row.area.note) if part)
    _label(ax, y + inches / 2, row.area.name, note)
    top = y + _ROW_GAP_INCHES / 2
    name = row.area.name
    bars = [*zip(row.copies, slots)]
    for (bar, slot), until in zip(bars, _following(bars, shown.end)):
        _draw_copy(ax, shown, bar, top + slot * _BAR_INCHES, name, until)
    for start, end in row.stores:
        _add(ax, start, end, top + slots[-1] * _BAR_INCHES, _BAR_INCHES, _STORED, f"{name} stored")
    for start, end in row.reads:
        _add(ax, start, end, y + inches - _ROW_GAP_INCHES / 2 - _READ_INCHES, _READ_INCHES, _READ, f"{name} read")


def _following(bars: Sequence[tuple[CopyBar, int]], end: int) -> list[int]:
    """Of bars with their lines: where the next bar of the same line begins."""
    next_of: dict[int, int] = {}
    found = []
    for bar, slot in reversed(bars):
        found.append(next_of.get(slot, end))
        next_of[slot] = bar.first
    return found[::-1]


def _draw_copy(ax: Axes, shown: BuffersOverTime, bar: CopyBar, y: float, name: str, until: float) -> None:
    """Hatched until all warps have committed, plain until the copies are there. until: where the next bar of the line begins."""
    issued = bar.first
    if not bar.arrived:
        _add(ax, bar.first, bar.end, y, _BAR_INCHES, _NEVER, f"{name} copy {bar.group} never")
    else:
        issued = bar.end if bar.committed is None else min(bar.committed + 1, bar.end)
        _add(ax, bar.first, issued, y, _BAR_INCHES, _ISSUED, f"{name} copy {bar.group} issued")
        if issued < bar.end:
            _add(ax, issued, bar.end, y, _BAR_INCHES, _PENDING, f"{name} copy {bar.group} on its way")
    _number(ax, shown, bar, issued, until, y + _BAR_INCHES / 2)


def _number(ax: Axes, shown: BuffersOverTime, bar: CopyBar, plain: float, until: float, y: float) -> None:
    """The group's number: on the part of the bar that is plain, else on a label of its own, else right of the bar; where there is room."""
    per_inch = (shown.end - shown.first) / _TIME_INCHES
    character = SMALL * CHARACTER_INCHES * per_inch
    first, plain, end = max(bar.first, shown.first), max(plain, shown.first), min(bar.end, shown.end)
    at: dict[str, Any] = {"zorder": 5, "clip_on": True, **text_style(SMALL, "bold")}
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
    for text in (f"group {bar.group}", str(bar.group)):
        wide = len(text) * character
        if bar.arrived and wide + 0.02 * per_inch < end - plain:
            ax.text((plain + end) / 2, y, text, ha="center", **at)
            return
        if wide + 0.12 * per_inch < end - first:
            ax.text((first + end) / 2, y, text, ha="center", bbox=box, **at)
            return
    if wide + 0.06 * per_inch < until - end:
        ax.text(end + 0.03 * per_inch, y, text, **at)


def _draw_waits(ax: Axes, shown: BuffersOverTime, y: float) -> None:
    _label(ax, y + _STRIP_INCHES / 2, "cp.async.wait")
    middle = y + _STRIP_INCHES / 2
    positions = [position + 0.5 for position in shown.waits]
    ax.plot(positions, [middle] * len(positions), "v", zorder=4, gid="waits", **_WAIT)


def _draw_barrier(ax: Axes, number: int, bars: Sequence[BarrierBar], y: float) -> None:
    _label(ax, y + _STRIP_INCHES / 2, f"barrier {number}")
    for bar in bars:
        _add(ax, bar.first, bar.end, y + 0.06, _STRIP_INCHES - 0.12, _BARRIER, f"barrier {number}")


def together(positions: Iterable[int], near: float) -> list[int]:
    """The last of positions that are near to each other."""
    found: list[int] = []
    previous: int | None = None
    for position in sorted(positions):
        if previous is not None and position - previous <= near:
            found[-1] = position
        else:
            found.append(position)
        previous = position
    return found


def _draw_lines(ax: Axes, shown: BuffersOverTime, body: float) -> bool:
    """Through all rows: where barriers open, if there are not too many, and where the kernel fails; returns whether any opens."""
    per_inch = (shown.end - shown.first) / _TIME_INCHES
    opened = together((bar.end for bar in shown.barriers if bar.opened), 0.02 * per_inch)
    drawn = opened if len(opened) <= _MOST_LINES else []
    for position in drawn:
        ax.axvline(position, color=GREY, linewidth=0.7, zorder=1, gid="barrier opens")
    if shown.fault is not None and shown.first <= shown.fault <= shown.end:
        ax.plot([shown.fault] * 2, [-0.2, body], color=VERMILION, linewidth=2, zorder=6, gid="fault", clip_on=False)
        ax.text(shown.fault - 0.05 * per_inch, -0.12, "fault", ha="right", clip_on=False, **text_style(TEXT, "bold"))
    return bool(drawn)


def _draw_tiles(ax: Axes, shown: BuffersOverTime, body: float) -> None:
    """Where tiles begin; their numbers, as far as there is room."""
    per_inch = (shown.end - shown.first) / _TIME_INCHES
    character = TEXT * CHARACTER_INCHES * per_inch
    starts = [position for _, position in shown.tiles]
    gaps = [b - a for a, b in zip(starts, [*starts[1:], shown.end + 4 * character])]
    wordy = all(gap > 9 * character for gap in gaps)
    stop = shown.end + 0.3 * per_inch if shown.fault is None else shown.fault - 0.5 * per_inch
    line: dict[str, Any] = {"color": GREEN, "linewidth": 0.9, "linestyle": (0, (4, 2)), "clip_on": False}
    right = -1.0
    for tile, position in shown.tiles:
        ax.plot([position, position], [-0.2, body], zorder=2, gid=f"tile {tile}", **line)
        text = f"tile {tile}" if wordy else str(tile)
        wide = (len(text) + 1.5) * character
        if position >= right and position + wide < stop:
            ax.text(position + 0.05 * per_inch, -0.12, text, clip_on=False, **text_style(TEXT))
            right = position + wide
    if shown.tiles and not wordy:
        _label(ax, -0.12, "tile")


def _draw_legend(figure: Figure, shown: BuffersOverTime, width: float, height: float, *, opens: bool) -> None:
    """What occurs in the picture."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    bars = [bar for row in shown.rows for bar in row.copies]
    met = {
        "cp.async being issued": any(bar.arrived for bar in bars),
        "group committed, on its way": any(bar.arrived and bar.committed is not None for bar in bars),
        "never waited for": any(not bar.arrived for bar in bars),
        "stored": any(row.stores for row in shown.rows),
        "read": any(row.reads for row in shown.rows),
    }
    handles: list[Any] = [Patch(label=name, **style) for name, style in _LEGEND if met[name]]
    if shown.barriers:
        handles.append(Patch(label="warps at a barrier", **_BARRIER))
    if opens:
        handles.append(Line2D([], [], color=GREY, linewidth=0.9, label="the barrier opens"))
    if shown.tiles:
        handles.append(Line2D([], [], color=GREEN, linewidth=0.9, linestyle=(0, (4, 2)), label="the first warp begins a tile"))
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(_MARGIN / width, 0.06 / height),
        borderaxespad=0,
        ncols=len(handles),
        fontsize=SMALL,
        frameon=False,
        handlelength=2.4,
        handleheight=1.0,
        columnspacing=1.6,
    )
