"""`fasim time`: predict how long launches take, on one or several GPUs, and tell why."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import fasim
from fasim.cli.failures import in_options, warn
from fasim.cli.launching import Call
from fasim.cli.progress import progress_bar
from fasim.cli.target import RECORDING_SUFFIX
from fasim.cli.timing_job import TimedJob, TimingJob, carry_out, carry_out_all, timing_jobs
from fasim.errors import UsageError
from fasim.report.timing import TimeReport

FIGURES = ("roofline", "gantt", "measured")
TRACE_SUFFIX = ".pftrace"
#: instructions of which the time is logged for a trace, and for a figure
TRACED, DRAWN = 1 << 18, 1 << 20


@dataclass(frozen=True)
class TimeOptions:
    """The options of `fasim time`. gpu: names with commas between. window: cycles FIRST,LAST to draw or to trace."""

    gpu: str | None = None
    cold: bool = False
    lines: int = 12
    out: Path | None = None
    figure: str | None = None
    window: str | None = None
    workers: int | None = None


def time(call: Call, chosen: TimeOptions) -> int:
    """Carry out `fasim time`.

    Returns: 0. Raises: FasimError if nothing can be predicted.
    """
    kind = _kind(chosen)
    window = parse_window(chosen.window) if chosen.window else None
    if window is not None and kind not in ("gantt", "trace"):
        raise UsageError("--window chooses cycles of a Gantt chart or a trace: --figure gantt --out FILE.svg, or --out FILE.pftrace")
    events = {"trace": TRACED, "gantt": DRAWN}.get(kind, 0)
    jobs = [
        job
        for each in _calls(call)
        for job in timing_jobs(each, [name for name in (chosen.gpu or "").split(",") if name], warm=not chosen.cold, events=events)
    ]
    done, problems = _predict(jobs, chosen.workers or os.cpu_count() or 1, keep=bool(events))
    saved = None
    if chosen.out is not None:
        saved = str(chosen.out)
        _save(chosen.out, kind, done, window)
    report = TimeReport([each.row for each in done], problems, saved, fasim.__version__)
    if call.options.json:
        from fasim.report.records import to_json

        print(to_json(report))
    else:
        from fasim.report.timing_text import View, print_time

        terminal = sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns if terminal or "COLUMNS" in os.environ else 160
        print_time(report, View(columns, terminal and "NO_COLOR" not in os.environ, chosen.lines))
    return 0


def _kind(chosen: TimeOptions) -> str:
    """What --out writes: "trace", one of FIGURES, or "" without it.

    Raises: UsageError, also if it cannot be written.
    """
    if chosen.figure is not None and chosen.figure not in FIGURES:
        raise UsageError(f"--figure {chosen.figure!r}: choose one of {', '.join(FIGURES)}")
    if chosen.out is None:
        if chosen.figure is not None:
            raise UsageError(f"--figure {chosen.figure} needs a file: --out {chosen.figure}.svg")
        return ""
    from fasim.report.figure_style import SUFFIXES
    from fasim.report.output_file import check_output_path

    known = "figures are .png or .svg, traces .pftrace"
    check_output_path("--out", chosen.out, "time.svg", (*SUFFIXES, TRACE_SUFFIX), known)
    if chosen.out.suffix.lower() == TRACE_SUFFIX:
        if chosen.figure is not None:
            raise UsageError(f"--figure {chosen.figure}: {chosen.out} is a trace; name a figure .png or .svg")
        return "trace"
    return chosen.figure or FIGURES[0]


def parse_window(text: str) -> tuple[int, int]:
    """`FIRST,LAST` in cycles.

    Raises: UsageError.
    """
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts) or int(parts[0]) >= int(parts[1]):
        raise UsageError(f"--window {text!r}: write FIRST,LAST in cycles, for example 2000,2400")
    return int(parts[0]), int(parts[1])


def _calls(call: Call) -> list[Call]:
    """The call; or one for each recording, where recordings and folders of them are named."""
    words = list(call.words)
    if not words or not all(word.endswith(RECORDING_SUFFIX) or Path(word).is_dir() for word in words):
        return [call]
    from fasim.gpu.recording_file import find_recordings

    return [replace(call, words=[str(path)]) for path in find_recordings([Path(word) for word in words])]


def _predict(jobs: Sequence[TimingJob], workers: int, *, keep: bool) -> tuple[list[TimedJob], list[str]]:
    """What could be predicted, and why the rest could not. keep: the predictions, too, which may be large.

    Raises: FasimError if nothing could.
    """
    if len(jobs) == 1:
        done = carry_out(jobs[0])
        return [done if keep else replace(done, prediction=None)], []
    found: list[TimedJob] = []
    problems: list[str] = []
    several_files = len({tuple(job.call.words) for job in jobs}) > 1
    with progress_bar("predicting", "launches") as progress:
        for job, outcome in zip(jobs, carry_out_all(jobs, workers, progress, keep=keep), strict=True):
            label = " ".join(filter(None, [Path(job.call.words[0]).stem if several_files else "", job.label]))
            if isinstance(outcome, TimedJob):
                found.append(replace(outcome, row=replace(outcome.row, label=label)))
                continue
            problems.append(f"{label}: {in_options(outcome).strip().splitlines()[0]}")
            warn(f"not predicted: {problems[-1]}")
    if not found:
        carry_out(jobs[0])  # for its error
    return found, problems


def _save(path: Path, kind: str, done: Sequence[TimedJob], window: tuple[int, int] | None) -> None:
    """Write the figure or trace."""
    rows = [each.row for each in done]
    if kind in ("roofline", "measured"):
        from fasim.report.timing_figures import save_measured, save_roofline

        (save_roofline if kind == "roofline" else save_measured)(path, rows)
        return
    logged = [(each.row, each.prediction) for each in done if each.prediction is not None]
    if kind == "trace":
        from fasim.report.timing_perfetto import save_trace

        save_trace(path, logged, window)
    else:
        from fasim.report.timing_gantt import save_gantt

        save_gantt(path, logged, window)
