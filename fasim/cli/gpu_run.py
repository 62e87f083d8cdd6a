"""`fasim gpu run`: launch on the GPU and judge the output, as `fasim run` does with the simulation."""

from __future__ import annotations

import os
import sys

import fasim
from fasim.cli.job import check_save, save
from fasim.cli.launching import Call
from fasim.cli.on_gpu import GpuOptions, OnGpu, each_variant
from fasim.cli.outputs import digests, output_reports
from fasim.cli.slices import show_slices
from fasim.errors import UsageError
from fasim.report.gpu_reports import GpuRunReport
from fasim.report.records import to_json


def run(call: Call, gpu: GpuOptions) -> int:
    """Carry out `fasim gpu run`.

    Returns: the exit code, 1 for a wrong output. Raises: FasimError.
    """
    if call.options.save is not None:
        check_save(call.options.save)
    worst = 0
    with each_variant(call, gpu) as (_, variants):
        reports: list[GpuRunReport] = []
        for each in variants:
            if reports and call.options.save is not None:
                raise UsageError("--save goes with one variant; the options have several values")
            report = _run(each, call, gpu)
            reports.append(report)
            worst = max(worst, report.exit_code)
            _show(report, call)
    return worst


def _run(each: OnGpu, call: Call, gpu: GpuOptions) -> GpuRunReport:
    job, options = each.job, call.options
    before = digests(job)
    done = each.run(gpu.timeout_seconds)
    if options.save is not None:
        save(options.save, job.args)
    outputs = output_reports(job, job.references(), before)
    judged = [output.comparison.ok for output in outputs if output.comparison is not None]
    return GpuRunReport(
        card=each.device.card,
        launch=each.facts(),
        outputs=outputs,
        verdict="unchecked" if not judged else "right" if all(judged) else "wrong",
        exit_code=0 if all(judged) else 1,
        output=done.output,
        saved=str(options.save) if options.save else None,
        version=fasim.__version__,
        prints=show_slices(options.prints, job.args),
    )


def _show(report: GpuRunReport, call: Call) -> None:
    if call.options.json:
        print(to_json(report))
        return
    from fasim.report.gpu_text import run_table

    if report.output:
        print(report.output, end="" if report.output.endswith("\n") else "\n")
    print(run_table(report, color=sys.stdout.isatty() and "NO_COLOR" not in os.environ))
