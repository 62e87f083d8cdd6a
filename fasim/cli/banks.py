"""`fasim banks`: run a kernel in one or several variants and tell its bank conflicts."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import fasim
from fasim.cli.failures import report_error
from fasim.cli.job import Job
from fasim.cli.launching import Call
from fasim.cli.run import launch
from fasim.cli.run_options import RunOptions
from fasim.cli.target import variants
from fasim.errors import FasimError, UsageError
from fasim.report.banks import BanksReport, BanksVariant, choose, look_closer, tabulate
from fasim.sm.result import SharedAccess
from fasim.trace.steps import SourceLines


@dataclass(frozen=True)
class BanksOptions:
    """The options that `fasim banks` has beyond those of `fasim run`."""

    line: int | None = None
    every_group: bool = False
    pitch_bytes: int | None = None
    out: Path | None = None
    lines_out: Path | None = None


def banks(call: Call, view: BanksOptions) -> int:
    """Carry out `fasim banks`.

    Returns: the exit code, 0 with and without conflicts. Raises: FasimError for what goes wrong before a launch.
    """
    options = call.options
    _check_paths(view)
    found: list[tuple[BanksVariant, list[list[SharedAccess]]]] = []
    job = None
    for each in variants(call.words, options, call.general):
        printed: list[str] = []
        job = each.prepare()
        try:
            result, _ = launch(job, options, printed)
        except FasimError as error:
            return report_error(error, json=options.json, output="".join(printed))
        found.append(tabulate(result, _lines(job), job.kernel.module.arch.name, label=each.label, options=job.options, defines=job.defines))
    assert job is not None
    report = _report(job, options, view, found)
    if options.json:
        from fasim.report.records import to_json

        print(to_json(report))
    else:
        from fasim.report.bank_tables import print_banks

        terminal = sys.stdout.isatty()
        columns = shutil.get_terminal_size().columns if terminal or "COLUMNS" in os.environ else None
        print_banks(report, columns=columns, color=terminal and "NO_COLOR" not in os.environ, every_group=view.every_group)
    for path, saved in ((view.out, report.saved), (view.lines_out, report.saved_lines)):
        if path is not None and saved is None:
            print(f"{path} was not written: there is no access to shared memory to draw", file=sys.stderr)
    return 0


def _check_paths(view: BanksOptions) -> None:
    """Find out before the run whether the pictures can be written."""
    if view.out is None and view.lines_out is None:
        return
    from fasim.report.figure_style import check_figure_path

    for option, path in (("--out", view.out), ("--lines-out", view.lines_out)):
        if path is not None:
            check_figure_path(path, option)
    if view.out is not None and view.lines_out is not None and view.out.resolve() == view.lines_out.resolve():
        raise UsageError(f"--out and --lines-out both name {view.out}: they are two pictures, give two names")


def _report(
    job: Job, options: RunOptions, view: BanksOptions, found: Sequence[tuple[BanksVariant, list[list[SharedAccess]]]]
) -> BanksReport:
    """Choose accesses to look at, look at them, and draw them if that is asked for; job: any of the variants."""
    chosen = choose([each for each, _ in found], view.line, ideal=view.out is not None)
    detailed = [
        look_closer(each, records, rows, job.kernel.module.arch.name, view.pitch_bytes)
        for (each, records), rows in zip(found, chosen, strict=True)
    ]
    saved = view.out if view.out is not None and any(each.details for each in detailed) else None
    if saved is not None:
        from fasim.report.bank_figure import save_figure
        from fasim.report.bank_tables import detail_title

        save_figure(saved, [(detail_title(each, detail), detail.groups) for each in detailed for detail in each.details])
    compiled = job.kernel.module.compiled
    report = BanksReport(
        kernel=job.kernel.name,
        source=job.source,
        arch=job.kernel.module.arch.name,
        compiler=compiled.compiler if compiled else "",
        seed=job.seed,
        variants=detailed,
        line=view.line,
        saved=str(saved) if saved else None,
        version=fasim.__version__,
    )
    if view.lines_out is None or not any(each.rows for each in detailed):
        return report
    from fasim.report.lines_figure import save_lines

    save_lines(view.lines_out, report)
    return replace(report, saved_lines=str(view.lines_out))


def _lines(job: Job) -> SourceLines:
    compiled = job.kernel.module.compiled
    return SourceLines({compiled.source_path: compiled.source_text} if compiled else {})
