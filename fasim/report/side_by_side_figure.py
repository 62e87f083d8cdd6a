"""The figure of many launches: simulated against measured wavefronts and conflicts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fasim.errors import UsageError
from fasim.report.figure_style import BLUE, GREEN, ORANGE, PURPLE, TEXT, VERMILION, save_figure
from fasim.report.match import EQUAL, MISMATCH, TURNS
from fasim.report.match_totals import EXPLAINED, NOISE
from fasim.report.side_by_side import ComparedLaunch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: what a verdict is called, colours from the palette of Okabe and Ito, and a form each, so that they differ without colour, too
_CAUSES = {
    EQUAL: ("equal", BLUE, "o"),
    EXPLAINED: ("ptxas changed accesses", GREEN, "^"),
    NOISE: ("arbitration noise", ORANGE, "D"),
    TURNS: ("warps took other turns", PURPLE, "s"),
    MISMATCH: ("MISMATCH", VERMILION, "X"),
}
_GRID, _DIAGONAL = "#D0D0D0", "#808080"
_INCHES, _DOTS_PER_INCH = (10.0, 7.2), 150
#: what fills and hollow marks mean
_SHARING = {False: "at most one CTA an SM", True: "several CTAs an SM"}
_METRICS = (("wavefronts", "wavefronts_mem_shared_op_"), ("bank conflicts", "bank_conflicts_pipe_lsu_mem_shared_op_"))
#: relative differences below this, in percent, are drawn on a linear scale
_LINEAR_PERCENT = 0.01


@dataclass(frozen=True)
class Point:
    """One launch in one panel: sums of the hardware counters over ld and st, and over both sides of wavefronts to relate them to.

    cause: the verdict on them, the worst of their counters' verdicts.
    """

    cause: str
    simulated: int
    measured: int
    wavefronts: int
    ctas_share_sm: bool

    @property
    def percent(self) -> float:
        """Measured minus simulated as a part of the measured wavefronts."""
        return 100 * (self.measured - self.simulated) / self.wavefronts if self.wavefronts else 0.0


def points(launches: Iterable[ComparedLaunch]) -> dict[str, list[Point]]:
    """By metric; launches without counters have no points."""
    found: dict[str, list[Point]] = {name: [] for name, _ in _METRICS}
    for launch in launches:
        wavefronts = _sum(launch, _METRICS[0][1])
        for name, part in _METRICS:
            sums = _sum(launch, part)
            if sums is not None and wavefronts is not None:
                found[name].append(Point(_cause(launch, part), *sums, wavefronts[1], launch.ctas_share_sm))
    return found


def _cause(launch: ComparedLaunch, part: str) -> str:
    met = {total.verdict for total in launch.totals if part + "ld" in total.name or part + "st" in total.name}
    return next(cause for cause in reversed(list(_CAUSES)) if cause in met)


def _sum(launch: ComparedLaunch, part: str) -> tuple[int, int] | None:
    totals = [total for total in launch.totals if part + "ld" in total.name or part + "st" in total.name]
    return (sum(total.simulated for total in totals), sum(total.measured for total in totals)) if totals else None


def save_comparison(path: Path, launches: Sequence[ComparedLaunch]) -> None:
    """Draw simulated against measured, and below it the relative difference; the same launches give the same file.

    Raises: UsageError if there are no counters to draw, or the file cannot be written.
    """
    from matplotlib.figure import Figure

    found = points(launches)
    if not any(found.values()):
        raise UsageError(f"--out {path}: none of these launches has counters of a GPU to draw")
    figure = Figure(figsize=_INCHES, layout="constrained")
    axes = figure.subplots(2, len(_METRICS), height_ratios=(3, 1.3), squeeze=False)
    for column, (name, _) in enumerate(_METRICS):
        _draw_against(axes[0, column], found[name], name)
        _draw_difference(axes[1, column], found[name], name)
    _add_legend(figure, {point.cause for each in found.values() for point in each})
    save_figure(figure, path, dots_per_inch=_DOTS_PER_INCH)


def _scatter(ax: Axes, found: Sequence[Point], heights: Sequence[float]) -> None:
    """A series for each cause; filled where at most one CTA is on an SM, hollow where several share one."""
    for cause, (_, color, marker) in _CAUSES.items():
        for share in (False, True):
            chosen = [i for i, point in enumerate(found) if point.cause == cause and point.ctas_share_sm == share]
            if not chosen:
                continue
            ax.scatter(
                [found[i].simulated for i in chosen],
                [heights[i] for i in chosen],
                s=34,
                marker=marker,
                facecolors="none" if share else color,
                edgecolors=color,
                linewidths=1.2,
                zorder=3,
                clip_on=False,
            )


def _add_legend(figure: Figure, met: Collection[str]) -> None:
    from matplotlib.lines import Line2D

    def entry(label: str, color: str, marker: str, *, hollow: bool = False) -> Line2D:
        fill = "none" if hollow else color
        return Line2D([], [], linestyle="none", marker=marker, markeredgecolor=color, markerfacecolor=fill, label=label)

    handles = [entry(*style) for cause, style in _CAUSES.items() if cause in met]
    handles += [entry(label, _DIAGONAL, "o", hollow=hollow) for hollow, label in _SHARING.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=TEXT, frameon=False)


def _scale(ax: Axes, found: Sequence[Point]) -> float:
    """Logarithmic, with room for 0; returns the upper end."""
    most = max((max(point.simulated, point.measured) for point in found), default=1)
    end = 10.0 ** len(str(most))
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xlim(-0.3, end)
    ax.grid(True, color=_GRID, linewidth=0.5, zorder=0)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return end


def _draw_against(ax: Axes, found: Sequence[Point], name: str) -> None:
    end = _scale(ax, found)
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(-0.3, end)
    ax.plot([0, end], [0, end], color=_DIAGONAL, linewidth=1, zorder=1)
    _scatter(ax, found, [point.measured for point in found])
    exact = sum(point.simulated == point.measured for point in found)
    ax.set_title(f"{name} of shared ld and st: {exact} of {len(found)} equal", fontsize=9, loc="left")
    ax.set_ylabel("measured on the GPU", fontsize=9)
    ax.tick_params(labelsize=TEXT)


def _draw_difference(ax: Axes, found: Sequence[Point], name: str) -> None:
    _scale(ax, found)
    heights = [point.percent for point in found]
    ax.axhline(0, color=_DIAGONAL, linewidth=1, zorder=1)
    ax.set_yscale("symlog", linthresh=_LINEAR_PERCENT)
    bound = max((abs(height) for height in heights), default=0) * 2 or 2 * _LINEAR_PERCENT
    ax.set_ylim(-max(bound, 2 * _LINEAR_PERCENT), max(bound, 2 * _LINEAR_PERCENT))
    _scatter(ax, found, heights)
    ax.set_xlabel(f"simulated {name}", fontsize=9)
    ax.set_ylabel("measured - simulated,\n% of wavefronts", fontsize=9)
    ax.tick_params(labelsize=TEXT)
