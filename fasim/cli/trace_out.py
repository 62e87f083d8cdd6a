"""`--trace-out`: the trace of one CTA of a launch as a file."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import fasim
from fasim.cli.job import Job
from fasim.cli.progress import progress_bar
from fasim.errors import UsageError
from fasim.report.trace_select import TraceFilters
from fasim.report.trace_write import FORMATS, TraceSummary, stream_trace
from fasim.sm.limits import triple
from fasim.trace.stepper import Stepper
from fasim.trace.walker import MAX_INSTRUCTIONS

_MEANINGS = {
    ".html": "one page with the stepper's views, for a browser",
    ".json": "one event a warp instruction",
    ".pftrace": "opens in ui.perfetto.dev",
    ".svg": "a picture of the buffers in shared memory over time",
    ".png": "the same",
}


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
    option = f"--trace-out {path}"
    known = ", ".join(f"{suffix} ({_MEANINGS[suffix]})" for suffix in FORMATS)
    if path.is_dir():
        raise UsageError(f"{option}: this is a directory; name a file in it, for example {path / 'trace.json'}")
    if path.suffix not in FORMATS:
        raise UsageError(f"{option}: the suffix says what is written, known are {known}; name the file {path.with_suffix('.json')}")
    if not path.parent.is_dir():
        raise UsageError(f"{option}: there is no directory {str(path.parent)!r}")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise UsageError(f"{option}: no permission to write there")


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


def write_trace(
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
    Returns: what was written. Raises: what ends the kernel, after the file is complete; UsageError for a file that cannot be written, or a
    CTA, warp, tile or step that there is not; LaunchError.
    """
    check_trace_path(path)

    def announce(events: int, size_bytes: int) -> None:
        print(f"trace of {events:,} warp instructions: about {size_text(size_bytes)} in {path}", file=sys.stderr, flush=True)
        free = shutil.disk_usage(path.parent).free
        if size_bytes > free:
            shorter = "choose less with --warp, --tile or --steps, or another place"
            raise UsageError(f"--trace-out {path}: the trace takes about {size_text(size_bytes)}, {size_text(free)} are free; {shorter}")

    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with progress_bar(f"tracing {job.kernel.name}", "warp instructions") as progress, open(temporary, "wb") as file:
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
                stepper, file, path.suffix, filters, _facts(job, check), announce, watched=job.watched, regions=job.regions
            )
        os.replace(temporary, path)
    except OSError as error:
        raise UsageError(f"cannot write the trace {path}: {error.strerror}") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
    if summary.failure is not None:
        raise summary.failure
    return summary


def _facts(job: Job, check: bool) -> dict[str, Any]:
    compiled = job.kernel.module.compiled
    return {
        "version": fasim.__version__,
        "kernel": job.kernel.name,
        "source": job.source,
        "arch": job.kernel.module.arch.name,
        "compiler": compiled.compiler if compiled else "",
        "options": job.options,
        "defines": job.defines,
        "seed": job.seed,
        "grid": list(triple(job.grid, "grid")),
        "block": list(triple(job.block, "block")),
        "dynamic_smem_bytes": job.dynamic_smem_bytes,
        "checked": check,
    }
