"""`fasim run --trace`: a launch in the stepper."""

from __future__ import annotations

import sys

from fasim.cli.job import Job
from fasim.cli.launching import Call
from fasim.cli.target import prepare
from fasim.errors import UsageError
from fasim.kernels.spec import KernelSpec
from fasim.sm.limits import triple
from fasim.trace.stepper import Stepper
from fasim.tui.session import Session


def trace(call: Call, cta: str | None, warp: int | None) -> int:
    """Carry out `fasim run --trace`.

    Returns: 0. Raises: FasimError; UsageError without a terminal.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--trace shows the stepper and needs a terminal; --trace-out FILE.json writes the same to a file")
    session = make_session(prepare(call.words, call.options, call.general), call, cta, warp)
    from fasim.tui.app import StepperApp

    StepperApp(session).run()
    return 0


def make_session(job: Job, call: Call, cta: str | None = None, warp: int | None = None) -> Session:
    """A session at the beginning of a CTA of a launch.

    cta: its blockIdx as X,Y,Z, None for the first; warp: the one to watch, None for whichever runs.
    Raises: FasimError.
    """
    spec = _spec(job)
    first = _ctaid(cta) if cta is not None else (0, 0, 0)
    stepper = _stepper(job, call, first)
    if warp is not None and not 0 <= warp < stepper.state.warps:
        raise UsageError(f"--warp {warp}: a CTA has warps 0 to {stepper.state.warps - 1}")
    return Session(
        stepper,
        title=job.kernel.name,
        watched=spec.watched if spec is not None else (),
        regions=spec.regions(job.options) if spec is not None else (),
        make=lambda wanted: _stepper(job, call, wanted),
        warp=warp or 0,
        follow=warp is None,
    )


def _spec(job: Job) -> KernelSpec | None:
    from fasim import kernels

    return kernels.load(job.collection) if job.collection else None


def _stepper(job: Job, call: Call, cta: tuple[int, int, int]) -> Stepper:
    return Stepper(
        job.kernel,
        triple(job.grid, "grid"),
        triple(job.block, "block"),
        [value.value for value in job.args],
        cta=cta,
        dynamic_smem_bytes=job.dynamic_smem_bytes,
        names=[value.name for value in job.args],
        backend=call.options.backend,
    )


def _ctaid(text: str) -> tuple[int, int, int]:
    numbers = text.replace("x", ",").split(",")
    if not 1 <= len(numbers) <= 3 or not all(number.strip().isdigit() for number in numbers):
        raise UsageError(f"--cta {text!r}: give blockIdx as X,Y,Z, for example 1,0")
    x, y, z = [*map(int, numbers), 0, 0][:3]
    return x, y, z
