"""`fasim run --trace` and `--trace-out`: a launch in the stepper, or what it does as a file."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import fasim
from fasim.cli.job import Job
from fasim.cli.launching import Call
from fasim.cli.target import prepare
from fasim.cli.trace_out import check_trace_path, save_trace, stepper_of, trace_filters
from fasim.errors import UsageError
from fasim.report.records import TracedReport, to_json
from fasim.trace.cta import parse_cta
from fasim.trace.stepper import Stepper
from fasim.tui.session import Session


@dataclass(frozen=True)
class TraceOptions:
    """The options of a trace. show: in the terminal; out: the file to write; tile, steps: what of it is written."""

    show: bool = False
    out: Path | None = None
    cta: str | None = None
    warp: int | None = None
    tile: int | None = None
    steps: str | None = None


def trace(call: Call, chosen: TraceOptions) -> int:
    """Carry out `fasim run --trace` or `--trace-out`.

    Returns: 0. Raises: FasimError; UsageError without a terminal, or for options that do not go together.
    """
    if not chosen.show and chosen.out is None:
        raise UsageError("--cta, --warp, --tile and --steps choose what is traced: add --trace, or --trace-out FILE.json")
    if chosen.show and chosen.out is not None:
        raise UsageError("--trace shows the stepper, --trace-out writes a file: give one of the two")
    if chosen.show and (chosen.tile is not None or chosen.steps is not None):
        raise UsageError("--tile and --steps are for --trace-out; in the stepper t goes to the next tile and s to the next step")
    _refuse_results(call, "--trace-out" if chosen.out is not None else "--trace")
    call = _unjudged(call, "while stepping" if chosen.show else "in a trace")
    return _write(call, chosen) if chosen.out is not None else _show(call, chosen.cta, chosen.warp)


def _refuse_results(call: Call, option: str) -> None:
    """What shows or saves what a whole launch leaves behind means nothing where one CTA is traced.

    Raises: UsageError.
    """
    o = call.options
    given = {"--print": o.prints, "--save": o.save is not None, "--counts": o.counts}
    if those := _those(given):
        them = "them" if those.endswith("are") else "it"
        raise UsageError(
            f"{option} follows one CTA, {those} for the results of a launch: leave {them} out, or run without {option} for {them}"
        )


def _unjudged(call: Call, where: str) -> Call:
    """The call without what judges results, which standard error names: the command that found a wrong one is often given again."""
    o = call.options
    if those := _those({"--expect": o.expect, "--rtol": o.rtol is not None, "--atol": o.atol is not None}):
        print(f"{those} for the results of a launch: not looked at {where}", file=sys.stderr, flush=True)
    return replace(call, options=replace(o, expect=(), rtol=None, atol=None))


def _those(given: Mapping[str, object]) -> str:
    """The options that are given, with their verb: `--expect and --rtol are`."""
    names = [name for name, value in given.items() if value]
    if not names:
        return ""
    return f"{' and '.join([', '.join(names[:-1])] * (len(names) > 1) + names[-1:])} {'is' if len(names) == 1 else 'are'}"


def _write(call: Call, chosen: TraceOptions) -> int:
    assert chosen.out is not None
    check_trace_path(chosen.out)
    filters, options = trace_filters(chosen.warp, chosen.tile, chosen.steps), call.options
    first = parse_cta(chosen.cta, "--cta") if chosen.cta is not None else (0, 0, 0)
    job = prepare(call.words, options, call.general)
    summary = save_trace(job, chosen.out, filters, cta=first, backend=options.backend, max_instructions=options.max_instructions)
    if not options.json:
        print(f"saved          {chosen.out}: {summary.events:,} events, {summary.size_bytes:,} bytes", flush=True)
    if summary.failure is not None:
        raise summary.failure
    if options.json:
        print(to_json(TracedReport(str(chosen.out), summary.events, summary.size_bytes, fasim.__version__)))
    return 0


def _show(call: Call, cta: str | None, warp: int | None) -> int:
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
    first = parse_cta(cta, "--cta") if cta is not None else (0, 0, 0)

    def make(wanted: tuple[int, int, int]) -> Stepper:
        return stepper_of(job, wanted, call.options.backend, max_instructions=call.options.max_instructions)

    stepper = make(first)
    if warp is not None:
        stepper.state.checked_warp(warp)
    return Session(
        stepper,
        title=job.kernel.name,
        watched=job.watched,
        regions=job.regions,
        make=make,
        warp=warp or 0,
        follow=warp is None,
    )
