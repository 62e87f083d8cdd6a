"""Predict the time of every recorded launch, and compare with what the GPU took.

    python recordings/predict.py [FOLDER ...] [--only REGEX] [--json FILE] [--cold] [--gpu NAME] [--workers N]

Prints every launch, then mean absolute and worst error by group, ratios that a model has to know (tile heights, layouts), and the lines
that say so in a card's data file. --gpu: predict for these data instead of the recording's own card of the same name.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.cli.timing_job import TimedJob, carry_out_all, timing_jobs
from fasim.gpu.recording_file import find_recordings
from fasim.report.timing import SMALL_CTAS, TimedLaunch
from fasim.report.timing_text import microseconds

FLASH, SMALL, TALL, OTHERS, CASES = (
    "fa_v21, Bc 32 and 64",
    "fa_v21, up to 8 CTAs",
    "fa_v21, Bc 128",
    "other kernels",
    "cases of the tests",
)
#: options that ratios are formed over, and the values over each other
RATIOS: tuple[tuple[str, Any, Any], ...] = (("bc", 64, 32), ("layout", "linear", "padded"), ("layout", "swizzled", "padded"))
LENGTHS = (1024, 8192)


@dataclass(frozen=True)
class Row:
    """One launch. error_percent: of the prediction, in percent of the measured median."""

    name: str
    group: str
    options: dict[str, Any]
    measured_us: float
    predicted_us: float
    error_percent: float
    work_error_percent: float


@dataclass(frozen=True)
class Group:
    """Errors of a group in percent: mean of the magnitudes, mean, and the one of largest magnitude with its launch."""

    name: str
    launches: int
    mean_percent: float
    bias_percent: float
    worst_percent: float
    worst: str


@dataclass(frozen=True)
class Ratio:
    """The time of one variant over that of another, measured and predicted."""

    what: str
    others: str
    measured: float
    predicted: float


def group_of(launch: TimedLaunch, path: Path) -> str:
    """The group that a launch is in."""
    if path.parent.name == "cases":
        return CASES
    if launch.kernel != "fa_v21":
        return OTHERS
    if prod(launch.grid) <= SMALL_CTAS:
        return SMALL
    return TALL if launch.options.get("bc") == 128 else FLASH


def row_of(launch: TimedLaunch, path: Path) -> Row | None:
    """The row of a prediction, None if nothing was measured."""
    found = launch.measured
    if found is None:
        return None
    times = found.median_us, launch.time_us
    return Row(path.stem, group_of(launch, path), launch.options, *times, found.error_percent, launch.sampled.work_error_percent)


def summary(rows: Sequence[Row]) -> list[Group]:
    """Errors by group, and of all but the cases, whose launches are hardly more than nothing."""
    groups = []
    for name in (FLASH, SMALL, TALL, OTHERS, CASES):
        if own := [row for row in rows if row.group == name]:
            groups.append(_group(name, own))
    kernels = [row for row in rows if row.group != CASES]
    return [*groups, _group("all kernels", kernels)] if kernels else groups


def _group(name: str, rows: Sequence[Row]) -> Group:
    errors = [row.error_percent for row in rows]
    worst = max(rows, key=lambda row: abs(row.error_percent))
    count = len(errors)
    return Group(name, count, sum(map(abs, errors)) / count, sum(errors) / count, worst.error_percent, worst.name)


def ratios(rows: Iterable[Row]) -> list[Ratio]:
    """For launches that differ in one option alone."""
    flash = [row for row in rows if row.group in (FLASH, TALL)]
    by_options = {tuple(sorted(row.options.items())): row for row in flash}
    found = []
    for name, one, other in RATIOS:
        for row in flash:
            if row.options[name] != other or row.options["n"] not in LENGTHS or row.options["bc"] == 128:
                continue
            above = by_options.get(tuple(sorted({**row.options, name: one}.items())))
            if above is not None:
                rest = " ".join(f"{key}={value}" for key, value in row.options.items() if key != name)
                times = above.measured_us / row.measured_us, above.predicted_us / row.predicted_us
                found.append(Ratio(f"{name} {one} over {other}", rest, *times))
    return found


def accuracy_lines(groups: Sequence[Group]) -> list[str]:
    """What a card's data file says of this: `fasim time` shows it beside its predictions."""
    lines = ["[accuracy]                # of predictions: percent of the measured time, python recordings/predict.py"]
    for names, prefix in (((groups[-1].name,), ""), ((FLASH, TALL), "fa_v21_"), ((SMALL,), "small_"), ((OTHERS,), "others_")):
        found = [group for group in groups if group.name in names]
        if found:
            launches = sum(group.launches for group in found)
            mean = sum(group.launches * group.mean_percent for group in found) / launches
            lines.append(f"{prefix}mean_percent = {mean:.1f}")
            lines.append(f"{prefix}worst_percent = {max(abs(group.worst_percent) for group in found):.1f}")
            lines.append(f"{prefix}launches = {launches}")
    return lines


def print_row(row: Row) -> None:
    """One line."""
    times = f"{microseconds(row.measured_us):>9}  {microseconds(row.predicted_us):>9}"
    print(f"{row.error_percent:>+7.1f} %  {times}  {row.name}", flush=True)


def main(words: Sequence[str]) -> None:
    """Predict the launches of some folders."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, default=[Path(__file__).parent / "h200"])
    parser.add_argument("--only", default="", metavar="REGEX")
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--cold", action="store_true")
    parser.add_argument("--gpu", metavar="NAME")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args(words)
    paths = [path for path in find_recordings(given.folders) if re.search(given.only, str(path)) and path.parent.name != "programs"]
    gpus = [given.gpu] if given.gpu else []
    jobs = [timing_jobs(Call([str(path)], RunOptions(), [], 0.0), gpus, warm=not given.cold)[0] for path in paths]
    print(f"{'error':>9}  {'measured':>9}  {'predicted':>9}  us, {'cold' if given.cold else 'warm'}")
    rows: list[Row] = []
    problems: list[str] = []
    cards: dict[str, None] = {}
    for path, outcome in zip(paths, carry_out_all(jobs, given.workers), strict=True):
        if not isinstance(outcome, TimedJob):
            problems.append(f"{path.stem}: {outcome.splitlines()[0]}")
            print(f"not predicted: {problems[-1]}", file=sys.stderr)
        elif (row := row_of(outcome.row, path)) is not None:
            rows.append(row)
            cards[outcome.row.card] = None
            print_row(row)
    groups, found = summary(rows), ratios(rows)
    print(f"\n{'launches':>8}  {'mean abs':>8}  {'mean':>8}  {'worst':>8}")
    for group in groups:
        figures = f"{group.mean_percent:>6.1f} %  {group.bias_percent:>+6.1f} %  {group.worst_percent:>+6.1f} %"
        print(f"{group.launches:>8}  {figures}  {group.name} (worst: {group.worst})")
    if found:
        print(f"\n{'measured':>8}  {'predicted':>9}  ratio of times")
    for ratio in found:
        print(f"{ratio.measured:>8.2f}  {ratio.predicted:>9.2f}  {ratio.what}: {ratio.others}")
    if groups:
        print("\n" + "\n".join(accuracy_lines(groups)))
    if given.json is not None:
        content = {
            "cards": list(cards),
            "cold": given.cold,
            "groups": [asdict(group) for group in groups],
            "ratios": [asdict(ratio) for ratio in found],
            "rows": [asdict(row) for row in rows],
            "problems": problems,
        }
        given.json.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
