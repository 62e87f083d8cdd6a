"""`fasim check`: run a kernel under the checks and report what they find."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import fasim
from fasim.cli.collection import OF_RUN
from fasim.cli.job import Job
from fasim.cli.launching import Call
from fasim.cli.run import launch
from fasim.cli.target import prepare
from fasim.errors import ExecutionError, UsageError
from fasim.report.check import CheckReport, findings
from fasim.report.output_file import check_output_path
from fasim.sm.hazards import checks_of
from fasim.sm.result import Hazard


def check(call: Call, checks: str, sarif: Path | None) -> int:
    """Carry out `fasim check`; checks: as in launch. sarif: where to write the findings in that format.

    Returns: the exit code, 1 if there is a finding that is more than a note. Raises: FasimError for what goes wrong before the launch.
    """
    options = call.options
    for word in call.words:
        if (name := word.partition("=")[0]) in OF_RUN:
            raise UsageError(f"fasim check looks for hazards and does not judge outputs; leave out {name}, or use fasim run for it")
    try:
        if not checks_of(checks):
            raise UsageError("nothing to check")
    except UsageError as error:
        raise UsageError(f"--only {checks!r}: some of race, init, sync with commas between, or all") from error
    if sarif is not None:
        check_output_path("--sarif", sarif, "fasim.sarif")
    job = prepare(call.words, options, call.general)
    printed: list[str] = []
    start = time.perf_counter()
    try:
        result, _ = launch(job, options, printed, check=checks, count=False)
        report = _report(job, checks, result.hazards, None, printed, start)
    except ExecutionError as error:
        report = _report(job, checks, error.hazards, error, printed, start)
    if sarif is not None:
        from fasim.report.sarif import write_sarif

        write_sarif(report, sarif)
    if options.json:
        from fasim.report.records import to_json

        print(to_json(report))
    else:
        _print(report)
    return report.exit_code


def _report(
    job: Job, checks: str, hazards: Iterable[Hazard], error: ExecutionError | None, printed: Sequence[str], start: float
) -> CheckReport:
    return CheckReport(
        kernel=job.kernel.name,
        source=job.source,
        arch=job.kernel.module.arch.name,
        grid=tuple(job.grid),
        block=tuple(job.block),
        checks=checks,
        findings=findings(hazards, error),
        error=type(error).__name__ if error is not None else "",
        output="".join(printed),
        seconds=time.perf_counter() - start,
        version=fasim.__version__,
    )


def _print(report: CheckReport) -> None:
    from rich.console import Console

    from fasim.report.check import print_report

    if report.output and not report.output.endswith("\n"):
        print()
    sys.stdout.flush()
    print_report(report, Console(highlight=False, soft_wrap=not sys.stdout.isatty()))
