"""`fasim sweep`: predict all combinations of options, macros, launch shapes and GPUs, and rank them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import fasim
from fasim.cli.failures import in_options
from fasim.cli.launching import Call
from fasim.cli.progress import progress_bar
from fasim.cli.sweep_space import Point, Space, space
from fasim.cli.timing_job import TimedJob, carry_out, carry_out_all
from fasim.errors import UsageError
from fasim.report.timing import TimedLaunch

CSV_SUFFIX = ".csv"
#: reasons that are named if nothing can be predicted
_NAMED_REASONS = 8


@dataclass(frozen=True)
class SweepOptions:
    """The options of `fasim sweep`. gpu: names with commas between. over: two of what is swept, for the map. top: 0 for all."""

    gpu: str | None = None
    cold: bool = False
    top: int = 20
    limit: int | None = None
    out: Path | None = None
    over: str | None = None
    scheduler: str | None = None
    workers: int | None = None


def sweep(call: Call, chosen: SweepOptions) -> int:
    """Carry out `fasim sweep`.

    Returns: 0. Raises: FasimError if nothing can be predicted, or the cluster fails.
    """
    from fasim.report.sweep import save_csv, sweep_report

    over = [name.strip() for name in chosen.over.split(",")] if chosen.over else []
    _check_out(chosen.out, over)
    found = space(call, [name for name in (chosen.gpu or "").split(",") if name], warm=not chosen.cold, limit=chosen.limit)
    if over:
        from fasim.report.sweep_figure import check_over

        check_over(found.axes, over)
    outcomes = _predict(found, chosen)
    saved = None if chosen.out is None else str(chosen.out)
    report = sweep_report(
        found.axes, [(point.values, point.job.label, row) for point, row in zip(found.points, outcomes)], saved, fasim.__version__
    )
    if chosen.out is not None:
        if chosen.out.suffix.lower() == CSV_SUFFIX:
            save_csv(chosen.out, report)
        else:
            from fasim.report.sweep_figure import save_sweep

            save_sweep(chosen.out, report, over)
    if call.options.json:
        from fasim.report.records import to_json

        print(to_json(report))
    else:
        from fasim.report.sweep_text import print_sweep

        print_sweep(report, top=chosen.top, color=sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    return 0


def _check_out(out: Path | None, over: Sequence[str]) -> None:
    """Raises: UsageError if the file cannot be written."""
    if out is None:
        if over:
            raise UsageError(f"--over {','.join(over)}: a map needs a file: --out sweep.svg")
        return
    from fasim.report.figure_style import SUFFIXES
    from fasim.report.output_file import check_output_path

    check_output_path("--out", out, "sweep.csv", (CSV_SUFFIX, *SUFFIXES), "tables are .csv, figures .png or .svg")
    if over and out.suffix.lower() == CSV_SUFFIX:
        raise UsageError(f"--over {','.join(over)}: {out} is a table; name a figure .png or .svg")


def _predict(found: Space, chosen: SweepOptions) -> list[TimedLaunch | str]:
    """The record of each point, or why there is none, in a line.

    Raises: FasimError if there is no record at all.
    """
    jobs = [point.job for point in found.points]
    workers = chosen.workers or os.cpu_count() or 1
    outcomes: list[TimedLaunch | str]
    with progress_bar("predicting", "launches") as progress:
        if chosen.scheduler is None:
            done = carry_out_all(jobs, workers, progress)
            outcomes = [each.row if isinstance(each, TimedJob) else each for each in done]
        else:
            from fasim.cli.sweep_cluster import LOCAL, carry_out_on

            if chosen.workers is not None and chosen.scheduler != LOCAL:
                raise UsageError("--workers is for processes of this machine; a scheduler uses all workers that it has")
            outcomes = carry_out_on(chosen.scheduler, jobs, workers, progress)
    if all(isinstance(each, str) for each in outcomes):
        _nothing(found.points, [str(each) for each in outcomes], here=chosen.scheduler is None)
    return [_in_a_line(each) if isinstance(each, str) else each for each in outcomes]


def _in_a_line(message: str) -> str:
    return in_options(message).strip().splitlines()[0]


def _nothing(points: Sequence[Point], messages: Sequence[str], *, here: bool) -> None:
    """Raises: the error that all have in common, or UsageError with what there is."""
    if len(set(map(_in_a_line, messages))) == 1 and here:
        carry_out(points[0].job)  # for its error
    listed = [f"\n  {point.job.label}: {_in_a_line(message)}" for point, message in zip(points, messages)]
    rest = f"\n  and {len(listed) - _NAMED_REASONS:,} more" if len(listed) > _NAMED_REASONS else ""
    raise UsageError(f"none of the {len(points):,} combinations can be predicted:{''.join(listed[:_NAMED_REASONS])}{rest}")
