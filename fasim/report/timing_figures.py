"""Figures of predicted times as PNG or SVG: launches under the roofline of their cards, and predicted against measured times."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from fasim.report.timing_text import common_options, error_summary, labels_of, microseconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLORS, _MARKERS = (BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, INK), ("o", "s", "^", "D", "v", "P", "X")
_PANEL_INCHES, _LEGEND_LINE_INCHES = (5.4, 4.2), 0.19
#: launches with an entry in the legend each
MOST_NAMED = 24
_BAND_PERCENT = 10


def _style(number: int) -> dict[str, Any]:
    """Colour and form differ together, so that launches are told apart without colour, too."""
    return {"color": _COLORS[number % len(_COLORS)], "marker": _MARKERS[(number + number // len(_COLORS)) % len(_MARKERS)]}


def _title(launches: Sequence[TimedLaunch]) -> str:
    kernels = list(dict.fromkeys(each.kernel for each in launches))
    return kernels[0] + common_options(launches) if len(kernels) == 1 else f"{len(kernels)} kernels"


# --- roofline --------------------------------------------------------------------------------------------------------------------


def save_roofline(path: Path, launches: Sequence[TimedLaunch]) -> None:
    """Draw the launches under the rooflines of their cards, a panel a card.

    Raises: UsageError if none of them has floating-point operations, or the file cannot be written.
    """
    save_figure(roofline_figure(launches, f"--out {path}"), path)


def roofline_figure(launches: Sequence[TimedLaunch], what: str = "the roofline") -> Figure:
    """The same as a figure; what: what an error speaks of."""
    from matplotlib.figure import Figure

    shown = [each for each in launches if each.roofline.flops and (each.roofline.flops_a_dram_byte or each.roofline.flops_a_l2_byte)]
    if not shown:
        raise UsageError(f"{what}: none of these launches has floating-point operations on memory, so there is no roofline to draw")
    cards = {each.gpu: each for each in shown}
    names = list(dict.fromkeys(_name(each) for each in shown))
    legend = _LEGEND_LINE_INCHES * (min(len(names), MOST_NAMED) + 3)
    width, height = _PANEL_INCHES[0] * len(cards), _PANEL_INCHES[1] + 0.4 + legend
    figure = Figure(figsize=(width, height))
    figure.text(0.12 / width, 1 - 0.2 / height, _title(shown), **text_style(TITLE, "bold"))
    panels = [
        figure.add_axes(
            (
                (i * _PANEL_INCHES[0] + 0.7) / width,
                (legend + 0.45) / height,
                (_PANEL_INCHES[0] - 0.9) / width,
                (_PANEL_INCHES[1] - 0.75) / height,
            )
        )
        for i in range(len(cards))
    ]
    for axes, gpu in zip(panels, cards, strict=True):
        _draw_roofline(axes, [(names.index(_name(each)), each) for each in shown if each.gpu == gpu])
    _roofline_legend(figure, names, width, height)
    return figure


def _name(launch: TimedLaunch) -> str:
    """The launch without its GPU."""
    words = [word for word in labels_of([launch])[0].split(" ") if word != launch.gpu]
    return " ".join(words) or launch.kernel


def _draw_roofline(axes: Axes, launches: Sequence[tuple[int, TimedLaunch]]) -> None:
    first = launches[0][1]
    points = []
    for number, each in launches:
        roof = each.roofline
        for intensity, filled in ((roof.flops_a_l2_byte, True), (roof.flops_a_dram_byte, False)):
            if intensity:
                points.append((number, intensity, roof.tflops, filled))
    rates = {roof.name: roof for _, each in launches for roof in each.roofline.roofs}
    pipes = {name: roof.value for name, roof in rates.items() if roof.unit == "tflops"}
    memories = {name: roof.value for name, roof in rates.items() if roof.unit != "tflops"}
    top = max(pipes.values())
    ridge = [1e3 * top / rate for rate in memories.values()]
    left = min([min(point[1] for point in points) / 3, min(ridge) / 20])
    right = max([max(point[1] for point in points) * 3, max(ridge) * 8])
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(left, right)
    axes.set_ylim(min([*(point[2] / 3 for point in points), *(peak / 2 for peak in pipes.values())]), top * 3)
    for name, peak in pipes.items():
        start = max(1e3 * peak / max(memories.values()), left)
        axes.plot([start, right], [peak, peak], color=INK, linewidth=1.2, zorder=2)
        axes.text(right * 0.93, peak * 1.07, f"{name} {peak:,.0f} TFLOPS", fontsize=SMALL, color=INK, ha="right", va="bottom")
    for (name, rate), dashes in zip(memories.items(), ("-", "--")):
        end = 1e3 * top / rate
        axes.plot(
            [left, end], [left * rate * 1e-3, top], color=GREY, linewidth=1.2, linestyle=dashes, zorder=2, label=f"{name} {rate:,.0f} GB/s"
        )
    for number, intensity, tflops, filled in points:
        style = _style(number)
        axes.scatter(
            [intensity], [tflops], s=36, marker=style["marker"], facecolors=style["color"] if filled else "none",
            edgecolors=style["color"], linewidths=1.2, zorder=3,
        )  # fmt: skip
    axes.grid(True, color=GRID, linewidth=0.5, zorder=0)
    axes.set_title(f"{first.card} at {first.clock_mhz:,.0f} MHz", fontsize=TEXT, loc="left", color=INK)
    axes.set_xlabel("FLOPs a byte", fontsize=TEXT)
    axes.set_ylabel("TFLOPS", fontsize=TEXT)
    axes.tick_params(which="both", labelsize=SMALL)
    axes.legend(loc="lower right", fontsize=SMALL, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _roofline_legend(figure: Figure, names: Sequence[str], width: float, height: float) -> None:
    from matplotlib.lines import Line2D

    notes = (
        "filled: bytes between SMs and L2",
        "hollow: bytes of the buffers, each once, as DRAM gives and takes them if caches are cold",
    )
    shown = [*names[:MOST_NAMED], *([f"and {len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else [])]
    y = 0.12 + _LEGEND_LINE_INCHES * (len(shown) + len(notes) - 1)
    for number, name in enumerate(shown):
        if number < MOST_NAMED:
            mark = Line2D([0.25 / width], [y / height], linestyle="none", markersize=5, transform=figure.transFigure, **_style(number))
            figure.add_artist(mark)
        figure.text(0.4 / width, y / height, name, **text_style(SMALL))
        y -= _LEGEND_LINE_INCHES
    for note in notes:
        figure.text(0.2 / width, y / height, note, **(text_style(SMALL) | {"color": GREY}))
        y -= _LEGEND_LINE_INCHES


# --- predicted against measured ----------------------------------------------------------------------------------------------------


def save_measured(path: Path, launches: Sequence[TimedLaunch]) -> None:
    """Draw predicted against measured times, and the errors below.

    Raises: UsageError if nothing was measured, or the file cannot be written.
    """
    save_figure(measured_figure(launches, f"--out {path}"), path)


def measured_figure(launches: Sequence[TimedLaunch], what: str = "the figure") -> Figure:
    """The same as a figure; what: what an error speaks of."""
    from matplotlib.figure import Figure

    shown = [(each, each.measured) for each in launches if each.measured is not None]
    if not shown:
        raise UsageError(f"{what}: there is no measured time to draw; recordings (.zip) have them: fasim time RECORDING.zip")
    figure = Figure(figsize=(6.0, 6.6), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(3, 1.2), sharex=True)
    times = [value for each, measured in shown for value in (each.time_us, measured.median_us)]
    low, high = min(times) / 1.5, max(times) * 1.5
    above.set_xscale("log")
    above.set_yscale("log")
    above.plot([low, high], [low, high], color=GREY, linewidth=1, zorder=1)
    band = 1 + _BAND_PERCENT / 100
    above.fill_between([low, high], [low / band, high / band], [low * band, high * band], color=GRID, alpha=0.5, linewidth=0, zorder=0)
    above.set_xlim(low, high)
    above.set_ylim(low, high)
    below.axhline(0, color=GREY, linewidth=1)
    kernels = list(dict.fromkeys(each.kernel for each, _ in shown))
    for number, kernel in enumerate(kernels):
        own = [(measured, each.time_us) for each, measured in shown if each.kernel == kernel]
        medians = [measured.median_us for measured, _ in own]
        style = {"s": 30, "linewidths": 0.6, "edgecolors": "white", "zorder": 3, **_style(number)}
        above.scatter(medians, [predicted for _, predicted in own], label=kernel, **style)
        below.scatter(medians, [measured.error_percent for measured, _ in own], **style)
    errors = [measured.error_percent for _, measured in shown]
    reach = 1.15 * max(_BAND_PERCENT, *map(abs, errors))
    below.set_ylim(-reach, reach)
    cards = ", ".join(dict.fromkeys(each.card for each, _ in shown))
    count = f"{len(shown)} launches: " if len(shown) > 1 else f"{microseconds(shown[0][0].time_us)} us predicted: "
    above.set_title(f"{cards}, {count}{error_summary(errors)}", fontsize=TEXT, loc="left")
    above.set_ylabel("predicted (us)", fontsize=TEXT)
    below.set_xlabel(f"measured (us); grey: {_BAND_PERCENT} % either way", fontsize=TEXT)
    below.set_ylabel("error (%)", fontsize=TEXT)
    above.legend(loc="upper left", fontsize=SMALL, frameon=False)
    for axes in (above, below):
        axes.grid(True, color=GRID, linewidth=0.5, zorder=0)
        axes.tick_params(which="both", labelsize=SMALL)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    return figure
