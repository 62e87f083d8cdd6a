"""`fasim run`: make a job ready, launch it, judge it, report it."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping

import fasim
from fasim.cli.failures import report_error
from fasim.cli.job import Job, check_save, save
from fasim.cli.launching import Call
from fasim.cli.outputs import digests, output_reports
from fasim.cli.progress import progress_bar
from fasim.cli.run_options import RunOptions
from fasim.cli.slices import show_slices
from fasim.cli.target import prepare
from fasim.errors import FasimError
from fasim.report.records import LineCount, RunReport, Seconds
from fasim.report.text import worst_elements
from fasim.sm.result import LaunchResult

#: how long a launch may take on one core for its CTAs to be run once more, to say which of them writes a wrong element
WRITER_SECONDS = 2.0


def run(call: Call) -> int:
    """Carry out `fasim run`.

    Returns: the exit code. Raises: FasimError for what goes wrong before the launch.
    """
    options = call.options
    if options.save is not None:
        check_save(options.save)
    job = prepare(call.words, options, call.general)
    before = digests(job)
    printed: list[str] = []
    try:
        result, load_seconds = launch(job, options, printed)
    except FasimError as error:
        code = report_error(error, json=options.json, output="".join(printed))
        if options.save is not None:
            print(f"nothing was saved to {options.save}", file=sys.stderr)
        return code
    if options.save is not None:
        save(options.save, job.args)
    report = _report(job, options, result, before, load_seconds, call.started)
    if options.json:
        from fasim.report.records import to_json

        print(to_json(report))
    else:
        _print_table(report, options, _writers(call, report))
    return report.exit_code


def _writers(call: Call, report: RunReport) -> dict[str, str]:
    """The CTA that writes the worst element of each wrong output, by name, as for --cta; none if it takes long to find out."""
    wrong = worst_elements(report)
    cost = report.seconds.machine * (1 if report.ordered else report.workers)
    if not wrong or math.prod(report.grid) == 1 or cost > WRITER_SECONDS:
        return {}
    job = prepare(call.words, call.options, call.general)  # the arrays of the launch have changed
    run, _ = job.kernel.prepare(
        job.grid,
        job.block,
        [value.value for value in job.args],
        dynamic_smem_bytes=job.dynamic_smem_bytes,
        backend=call.options.backend,
        names=[value.name for value in job.args],
    )
    if run.program.communicates:
        return {}
    bases = {each.name: each.address for each in run.space.allocations}
    names = [name for name in wrong if name in bases]
    found = run.last_writers([(bases[name] + wrong[name][0], wrong[name][1]) for name in names])
    dimensions = max(i for i, extent in enumerate(report.grid, 1) if extent > 1)
    return {name: ",".join(map(str, run.shape.ctaid(cta)[:dimensions])) for name, cta in zip(names, found) if cta is not None}


def launch(job: Job, options: RunOptions, printed: list[str], *, check: str = "", count: bool = True) -> tuple[LaunchResult, float]:
    """Run a job; what device printf writes is added to `printed`, and printed unless JSON is asked for. check, count: as in launch.

    Returns: what it did, and the seconds until the machine was ready.
    """
    if options.backend == "jit":
        _announce_first_start()

    def output(text: str) -> None:
        printed.append(text)
        if not options.json:
            print(text, end="", flush=True)

    start = time.perf_counter()
    with progress_bar(job.kernel.name) as progress:
        result = job.kernel.launch(
            job.grid,
            job.block,
            [value.value for value in job.args],
            dynamic_smem_bytes=job.dynamic_smem_bytes,
            backend=options.backend,
            workers=options.workers,
            max_instructions=options.max_instructions,
            count=count,
            check=check,
            progress=progress,
            output=output,
            names=[value.name for value in job.args],
        )
    return result, time.perf_counter() - start - result.seconds


def _announce_first_start() -> None:
    """The machine itself is compiled when this version first runs on this kind of processor."""
    from fasim.toolchain.cache import cache_dir, is_cached
    from fasim.warp.jit import machine_key

    if not is_cached(machine_key(), ".machine"):
        print(f"compiling the machine, once: this takes some seconds, and is kept in {cache_dir()}", file=sys.stderr, flush=True)


def _report(
    job: Job, options: RunOptions, result: LaunchResult, before: Mapping[str, str], load_seconds: float, started: float
) -> RunReport:
    start = time.perf_counter()
    outputs = output_reports(job, job.references(), before)
    judged = [output.comparison.ok for output in outputs if output.comparison is not None]
    compiled = job.kernel.module.compiled
    now = time.perf_counter()
    counts = None
    if options.counts:
        counts = [
            LineCount(c.executions, c.source.mnemonic, c.source.text, c.source.file, c.source.line, c.source.ptx_line)
            for c in result.counts
            if c.executions
        ]
    return RunReport(
        kernel=result.kernel,
        source=job.source,
        arch=job.kernel.module.arch.name,
        compiler=compiled.compiler if compiled else "",
        options=job.options,
        defines=job.defines,
        seed=job.seed,
        grid=result.grid,
        block=result.block,
        dynamic_smem_bytes=result.dynamic_smem_bytes,
        smem_bytes=result.smem_bytes,
        isa=job.kernel.isa,
        backend=options.backend,
        workers=result.workers,
        ordered=result.ordered,
        warp_instructions=result.warp_instructions,
        shared_instructions=result.shared_instructions,
        shared_wavefronts=sum(access.wavefronts for access in result.shared_accesses),
        shared_conflicts=sum(access.conflicts for access in result.shared_accesses),
        shared_totals=result.totals,
        shared_uncounted=result.uncounted,
        instruction_mix={name: count for name, count in result.by_mnemonic().items() if count},
        counts=counts,
        outputs=outputs,
        verdict="unchecked" if not judged else "right" if all(judged) else "wrong",
        exit_code=0 if all(judged) else 1,
        seconds=Seconds(job.compile_seconds, load_seconds, result.seconds, now - start, now - started),
        output=result.output,
        saved=str(options.save) if options.save else None,
        version=fasim.__version__,
        prints=show_slices(options.prints, job.args),
    )


def _print_table(report: RunReport, options: RunOptions, writers: Mapping[str, str]) -> None:
    import os

    from fasim.report.text import run_table

    if report.output and not report.output.endswith("\n"):
        print()
    print(run_table(report, counts=options.counts, color=sys.stdout.isatty() and "NO_COLOR" not in os.environ, writers=writers))
