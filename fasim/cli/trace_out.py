"""`--trace-out`: the trace of one CTA of a launch as a file."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import fasim
from fasim.cli.job import Job
from fasim.cli.progress import progress_bar
from fasim.errors import UsageError
from fasim.report.output_file import check_output_path, replaced_file
from fasim.report.trace_select import TraceFilters
from fasim.report.trace_write import FORMATS, TraceSummary, stream_trace
from fasim.sm.limits import triple
from fasim.trace.stepper import Stepper
from fasim.trace.walker import MAX_INSTRUCTIONS


def trace_filters(warp: int | None, tile: int | None, steps: str | None) -> TraceFilters:
    """The filters of --warp, --tile and --steps (several steps are separated by commas).

    Raises: UsageError.
    """
    texts = tuple(text.strip() for text in steps.split(",")) if steps is not None else ()
    if not all(texts):
        raise UsageError(f"--steps {steps!r}: names or texts of steps are expected, separated by commas, for example --steps S_QK,O_PV")
    return TraceFilters(warp, tile, texts)


def check_trace_path(path: Path) -> None:
    """Find out before the launch whether the trace can be written.

    Raises: UsageError.
    """
    known = ", ".join(f"{suffix} ({each.meaning})" for suffix, each in FORMATS.items())
    check_output_path("--trace-out", path, "trace.json", FORMATS, f"the suffix says what is written, known are {known}")


def stepper_of(
    job: Job, cta: Sequence[int], backend: str, *, args: Sequence[Any] | None = None, max_instructions: int | None = None, **how: Any
) -> Stepper:
    """A stepper on a job's launch. args: in place of the job's own; max_instructions: None for that of `Stepper`; how: further options.

    Raises: as `Stepper`.
    """
    return Stepper(
        job.kernel,
        job.grid,
        job.block,
        [value.value for value in job.args] if args is None else args,
        cta=cta,
        dynamic_smem_bytes=job.dynamic_smem_bytes,
        names=[value.name for value in job.args],
        dtypes={value.name: value.dtype for value in job.args if value.is_array and value.dtype == "bf16"},
        backend=backend,
        max_instructions=MAX_INSTRUCTIONS if max_instructions is None else max_instructions,
        **how,
    )


def size_text(size_bytes: float) -> str:
    """A size as a person reads it."""
    for unit in ("bytes", "KB", "MB"):
        if size_bytes < 1000:
            return f"{size_bytes:.3g} {unit}" if size_bytes < 100 else f"{size_bytes:.0f} {unit}"
        size_bytes /= 1000
    return f"{size_bytes:.3g} GB"


def write_trace(job: Job, path: Path, filters: TraceFilters, **how: Any) -> TraceSummary:
    """`save_trace` for whom a trace that ends with a fault is no success.

    Raises: as there, and what ends the kernel, after the file is complete.
    """
    summary = save_trace(job, path, filters, **how)
    if summary.failure is not None:
        raise summary.failure
    return summary


def save_trace(
    job: Job,
    path: Path,
    filters: TraceFilters,
    *,
    cta: Sequence[int] = (0, 0, 0),
    backend: str = "jit",
    max_instructions: int | None = None,
    check: bool = True,
) -> TraceSummary:
    """Execute a CTA of a job step by step and write what it does; the job's arrays stay as they are.

    check: whether hazards are looked for. An older file stays whole until the new one is; the size of a long trace is printed on stderr
    before it is written.
    Returns: what was written, and what ended the kernel. Raises: UsageError for a file that cannot be written, or a CTA, warp, tile or step
    that there is not; LaunchError.
    """
    check_trace_path(path)

    try:
        with progress_bar(f"tracing {job.kernel.name}", "warp instructions") as progress, replaced_file(path) as file:
            stepper = stepper_of(
                job,
                cta,
                backend,
                args=[value.value.copy() if isinstance(value.value, np.ndarray) else value.value for value in job.args],
                check=check,
                # nobody goes back but to the beginning
                interval=1 << 62,
                max_instructions=max_instructions,
                progress=progress,
            )
            summary = stream_trace(
                stepper,
                file,
                path.suffix.lower(),
                filters,
                _facts(job, check),
                partial(_announce, path),
                watched=job.watched,
                regions=job.regions,
            )
    except OSError as error:
        raise UsageError(f"cannot write the trace {path}: {error.strerror}") from error
    return summary


def _announce(path: Path, events: int, size_bytes: int) -> None:
    """Say how large a trace will be. Raises: UsageError if there is no room for it."""
    print(f"trace of {events:,} warp instructions: about {size_text(size_bytes)} in {path}", file=sys.stderr, flush=True)
    free = shutil.disk_usage(path.parent).free
    if size_bytes > free:
        shorter = "choose less with --warp, --tile or --steps, or another place"
        raise UsageError(f"--trace-out {path}: the trace takes about {size_text(size_bytes)}, {size_text(free)} are free; {shorter}")


def _facts(job: Job, check: bool) -> dict[str, Any]:
    compiled = job.kernel.module.compiled
    return {
        "version": fasim.__version__,
        "kernel": job.kernel.name,
        "source": job.source,
        "arch": job.kernel.module.arch.name,
        "compiler": compiled.compiler if compiled else "",
        "isa": job.kernel.isa,
        "options": job.options,
        "defines": job.defines,
        "seed": job.seed,
        "grid": list(triple(job.grid, "grid")),
        "block": list(triple(job.block, "block")),
        "dynamic_smem_bytes": job.dynamic_smem_bytes,
        "checked": check,
    }
