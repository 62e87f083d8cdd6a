"""What the timing model says of launches, as data: time, what bounds it, stalls by source line and step, the place under the roofline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim import kernels
from fasim.isa.program import SourceInstruction
from fasim.report.timing_bounds import Resource, Roofline, resources, roofline
from fasim.trace.steps import SourceLines, call_path

if TYPE_CHECKING:
    from fasim.arch.cards import Card
    from fasim.report.measured import Timing
    from fasim.sass.syntax import Instruction
    from fasim.sm.module import Kernel
    from fasim.sm.timing.predict import Prediction

Array = np.ndarray[Any, Any]
Place = tuple[tuple[str, int], ...]
TIME_SCHEMA = "fasim.time/1"
#: where no resource is this busy, in percent, warps wait for latencies; ncu draws the line there, too
BUSY_PERCENT = 60.0
#: grids of up to so many CTAs are small
SMALL_CTAS = 8
#: what a launch is bound by if this part of its time is no execution
LAUNCH, _MOST_LAUNCH = "launch overhead", 0.5
#: reasons that are no waiting
ISSUING = ("selected", "not_selected")


@dataclass(frozen=True)
class Held:
    """What an SM holds at once.

    ctas, warps: of this kernel. most_warps: that any kernel may have. limits: CTAs an SM by what limits them, by the end of ncu's names
    (launch__occupancy_limit_*). binding: the limits that bind. ctas_present: CTAs of this grid that an SM gets at most at once.
    """

    ctas: int
    warps: int
    most_warps: int
    limits: dict[str, int]
    binding: tuple[str, ...]
    ctas_present: int


@dataclass(frozen=True)
class StalledLine:
    """A source line, or a step, with the warp cycles that its instructions cost.

    path: from the line in the kernel inwards, as (file, line); empty where there is none. executions: warp instructions of the simulated
    CTAs. percent: of all warp cycles. stalls: percent of all warp cycles by reason, most first, without those that are 0.
    """

    step: str
    path: Place
    code: str
    executions: int
    percent: float
    stalls: dict[str, float]


@dataclass(frozen=True)
class Sampled:
    """How much of the launch was simulated, the SM that ends last.

    ctas: simulated, of sm_ctas that this SM gets, of grid_ctas in all. warp_instructions: simulated, of grid_warp_instructions.
    simulated_cycles: of the cycles that are predicted. work_error_percent: how far walked CTAs were, at most, from what was inferred.
    stagger_spread_percent: between the shortest and the longest time of this SM if its first CTAs begin together or apart.
    """

    ctas: int
    sm_ctas: int
    grid_ctas: int
    warp_instructions: int
    grid_warp_instructions: int
    simulated_cycles: float
    work_error_percent: float
    stagger_spread_percent: float

    @property
    def complete(self) -> bool:
        """Whether all CTAs of that SM were simulated."""
        return self.ctas >= self.sm_ctas


@dataclass(frozen=True)
class Accuracy:
    """How far predictions for a card were from recordings made on it, in percent of the measured time.

    mean_percent: of the magnitudes; worst_percent: the largest. launches: how many were measured, 0 if unknown.
    """

    mean_percent: float
    worst_percent: float | None
    launches: int


@dataclass(frozen=True)
class MeasuredTime:
    """What a GPU of the same name took for the recorded launch; error_percent: of the prediction, in percent of the median."""

    median_us: float
    low_us: float
    high_us: float
    sm_clock_mhz: float
    error_percent: float


@dataclass(frozen=True)
class TimedLaunch:
    """The prediction for one launch on one GPU.

    label: what distinguishes it from other launches of the same command. gpu: the name of its data, card: the GPU's. options, defines: of
    the kernel. warm: whether an earlier launch left the buffers in the L2, as far as they fit. time_us: between two events around the
    launch, of which launch_us are no execution. cycles: from the first CTA's start to the last one's end. flops: operations of the
    problem; from_code: they are those that the machine code executes, since nobody said how many the problem has. tflops: by time_us.
    bound: the busiest resource, "launch overhead", or "latency" with the reason why most warp cycles are lost. resources: how busy each
    is, in percent, busiest first. stalls: percent of warp cycles by ncu's names of reasons, most first. lines, steps: those that cost most
    first. error: of predictions for this card; None: not measured. data_source: where the card's figures come from; taken_over: how many of
    them are another card's, since nobody has published its own. measured: only for recordings made on such a card.
    """

    label: str
    gpu: str
    card: str
    arch: str
    kernel: str
    source: str
    options: dict[str, int | str | bool]
    defines: dict[str, int | str | None]
    seed: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int
    registers: int
    warm: bool
    time_us: float
    launch_us: float
    cycles: float
    clock_mhz: float
    flops: int
    from_code: bool
    tflops: float
    held: Held
    bound: str
    resources: list[Resource]
    stalls: dict[str, float]
    lines: list[StalledLine]
    steps: list[StalledLine]
    roofline: Roofline
    sampled: Sampled
    error: Accuracy | None
    data_source: str
    taken_over: int
    measured: MeasuredTime | None = None

    @property
    def title(self) -> str:
        """What it is called among others: its label, or the kernel."""
        return self.label or self.kernel


@dataclass(frozen=True)
class TimeReport:
    """Predictions side by side. problems: launches that could not be predicted, and why. saved: the file of the figure or trace."""

    launches: list[TimedLaunch]
    problems: list[str]
    saved: str | None
    version: str
    schema: str = field(default=TIME_SCHEMA, kw_only=True)


@dataclass(frozen=True)
class About:
    """What is known of a launch besides its prediction; see TimedLaunch. flops: 0 if unknown. sources: texts by path."""

    label: str = ""
    source: str = ""
    options: Mapping[str, int | str | bool] = field(default_factory=dict)
    defines: Mapping[str, int | str | None] = field(default_factory=dict)
    seed: int = 0
    flops: int = 0
    buffer_bytes: int = 0
    dynamic_smem_bytes: int = 0
    warm: bool = True
    measured: Timing | None = None


def predict_time(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    *,
    gpu: str = "h200",
    dynamic_smem_bytes: int = 0,
    warm: bool = True,
    flops: int = 0,
) -> TimedLaunch:
    """Predict how long a launch takes on a GPU; arrays stay as they are.

    kernel: compiled for the GPU's architecture. gpu: a card that comes with fasim, or the file that `fasim gpu calibrate` wrote.
    warm: whether an earlier launch left the buffers in the L2. flops: of the problem, 0 for those that the machine code executes.
    Raises: UsageError, LaunchError; NotModelled for kernels whose CTAs wait for each other.
    """
    from fasim.arch.cards import card
    from fasim.sm.timing.predict import predict

    found = predict(kernel, grid, block, args, card(gpu), dynamic_smem_bytes=dynamic_smem_bytes, warm=warm)
    size = sum(each.nbytes for each in args if isinstance(each, np.ndarray) and each.ndim)
    return timed_launch(
        found, About(source=kernel.module.path, flops=flops, buffer_bytes=size, dynamic_smem_bytes=dynamic_smem_bytes, warm=warm)
    )


def timed_launch(found: Prediction, about: About) -> TimedLaunch:
    """The record of a prediction."""
    kernel, card = found.kernel.kernel, found.card
    busy, stalls = resources(found), _by_reason(found.sm.stalls.sum(axis=0), found.sm.stalls.sum())
    roof = roofline(found, about.flops, about.buffer_bytes)
    lines = _lines(found, _sources(kernel))
    microseconds = found.seconds * 1e6
    return TimedLaunch(
        label=about.label,
        gpu=card.key,
        card=card.name,
        arch=kernel.module.arch.name,
        kernel=kernel.name,
        source=about.source,
        options=dict(about.options),
        defines=dict(about.defines),
        seed=about.seed,
        grid=found.grid,
        block=found.block,
        dynamic_smem_bytes=about.dynamic_smem_bytes,
        registers=kernel.registers,
        warm=about.warm,
        time_us=microseconds,
        launch_us=found.launch_seconds * 1e6,
        cycles=found.cycles,
        clock_mhz=found.clock_mhz,
        flops=roof.flops,
        from_code=not about.flops,
        tflops=roof.tflops,
        held=_held(found),
        bound=bound(busy, stalls, found.launch_seconds / found.seconds),
        resources=busy,
        stalls=stalls,
        lines=lines,
        steps=_steps(lines),
        roofline=roof,
        sampled=_sampled(found),
        error=accuracy(card, kernel.name, int(np.prod(found.grid)), kernel.module.path),
        data_source=card.source,
        taken_over=len(card.taken_over),
        measured=_measured(about.measured, microseconds),
    )


def accuracy(card: Card, kernel: str = "", ctas: int = 0, source: str = "") -> Accuracy | None:
    """How far predictions for a card are from measurements, as its data say in [accuracy]; None if nobody measured it.

    What is nearest counts. Of v2.1 small_mean_percent for grids of up to SMALL_CTAS, then fa_v21_mean_percent; of the other kernels that
    come with fasim others_mean_percent; of all others, by the name of the source, unseen_mean_percent, which is of kernels that the model
    did not know; then mean_percent, which is of all recordings but the cases. The same with worst_percent and launches.
    """
    ours = kernel in kernels.names() and kernels.load(kernel).path.name == Path(source).name.removesuffix(".ptx")
    if not ours:
        nearest = ["unseen_"]
    elif kernel != "fa_v21":
        nearest = ["others_"]
    else:
        nearest = ["small_", "fa_v21_"] if 0 < ctas <= SMALL_CTAS else ["fa_v21_"]
    for of in (*nearest, ""):
        mean, worst = card.get(f"accuracy.{of}mean_percent"), card.get(f"accuracy.{of}worst_percent")
        if mean is not None:
            return Accuracy(float(mean), None if worst is None else float(worst), int(card.get(f"accuracy.{of}launches", 0)))
    return None


def bound(busy: Sequence[Resource], stalls: Mapping[str, float], launch_part: float = 0.0) -> str:
    """What keeps a launch from being faster: a resource that is busy most of the time, or else latency.

    launch_part: of the time, which is no execution.
    """
    if launch_part >= _MOST_LAUNCH:
        return LAUNCH
    if busy and busy[0].percent >= BUSY_PERCENT:
        return busy[0].name
    waits = [reason for reason in stalls if reason not in ISSUING]
    return f"latency ({waits[0]})" if waits else "latency"


def _held(found: Prediction) -> Held:
    held, arch = found.occupancy, found.card.arch
    ctas = int(np.prod(found.grid))
    present = min(held.ctas, -(-ctas // found.card.sms))
    return Held(held.ctas, held.active_warps, arch.warps_per_sm, held.limits, held.binding, present)


def _sampled(found: Prediction) -> Sampled:
    return Sampled(
        ctas=len(found.sm.spans),
        sm_ctas=len(found.order),
        grid_ctas=int(np.prod(found.grid)),
        warp_instructions=found.sm.instructions,
        grid_warp_instructions=round(found.warp_instructions),
        simulated_cycles=float(found.sm.cycles),
        work_error_percent=100 * found.work_error,
        stagger_spread_percent=100 * found.stagger_spread,
    )


def _measured(timing: Timing | None, microseconds: float) -> MeasuredTime | None:
    if timing is None or not timing.median_us:
        return None
    error = 100 * (microseconds / timing.median_us - 1)
    return MeasuredTime(timing.median_us, timing.low_us, timing.high_us, timing.sm_clock_mhz, error)


def _by_reason(cycles: Array, total: int) -> dict[str, float]:
    """Percent of warp cycles by reason, most first."""
    from fasim.sm.timing.state import STALLS

    shares = {reason: 100 * int(count) / max(int(total), 1) for reason, count in zip(STALLS, cycles, strict=True) if count}
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def _sources(kernel: Kernel) -> SourceLines:
    compiled = kernel.module.compiled
    return SourceLines({compiled.source_path: compiled.source_text} if compiled and compiled.source_text else {})


def source_of(ins: Instruction) -> SourceInstruction:
    """A machine instruction as other reports know instructions."""
    line = ins.line
    (file, number), calls = (line.place[0], line.place[1:]) if line.place else (("", 0), ())
    return SourceInstruction(line.text, ins.opcode, line.ptx_line, file, number, tuple(calls), line.offset)


def _lines(found: Prediction, sources: SourceLines) -> list[StalledLine]:
    """Warp cycles by source line, most first."""
    stalls, total = found.sm.stalls, int(found.sm.stalls.sum())
    groups: dict[tuple[str, Place], list[int]] = {}
    for number, ins in enumerate(found.kernel.instructions):
        if stalls[number].any():
            source = source_of(ins)
            groups.setdefault((sources.step_of(source), call_path(source)), []).append(number)
    lines = []
    for (step, path), numbers in groups.items():
        cycles = stalls[numbers].sum(axis=0)
        code = sources.text(*path[-1]) if path else ""
        lines.append(StalledLine(step, path, code, int(cycles[0]), 100 * int(cycles.sum()) / max(total, 1), _by_reason(cycles, total)))
    return sorted(lines, key=lambda line: (-line.percent, line.path))


def _steps(lines: Iterable[StalledLine]) -> list[StalledLine]:
    """The same by step, empty if the source marks none."""
    found: dict[str, list[StalledLine]] = {}
    for line in lines:
        found.setdefault(line.step, []).append(line)
    if set(found) <= {""}:
        return []
    steps = []
    for step, rows in found.items():
        stalls: dict[str, float] = {}
        for row in rows:
            for reason, percent in row.stalls.items():
                stalls[reason] = stalls.get(reason, 0.0) + percent
        ordered = dict(sorted(stalls.items(), key=lambda item: -item[1]))
        steps.append(StalledLine(step, (), "", sum(row.executions for row in rows), sum(row.percent for row in rows), ordered))
    return sorted(steps, key=lambda step: -step.percent)
