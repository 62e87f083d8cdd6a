"""A ranked space of launches as data, and as a table for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fasim.errors import UsageError
from fasim.report.output_file import replaced_file
from fasim.report.text import size
from fasim.report.timing import ISSUING, Accuracy, TimedLaunch

SWEEP_SCHEMA = "fasim.sweep/1"


@dataclass(frozen=True)
class SweptGpu:
    """A GPU of a sweep: the name of its data and the card's, where its figures come from, how many of them are another card's, and how
    far predictions for it were from recordings (None: not measured)."""

    gpu: str
    card: str
    arch: str
    data_source: str
    taken_over: int
    error: Accuracy | None


@dataclass(frozen=True)
class SweptLaunch:
    """A combination that could be predicted.

    rank: from 1, the fastest. values: of what is swept, by name. ratio: its time by that of the fastest. options, defines: of the kernel,
    all of them. time_us: between two events around the launch. tflops: of the operations that the problem has, or, with from_code, of those
    that the machine code executes. ctas, warps: that an SM holds at once, of most_warps; limited_by: what limits that. bound: the busiest
    resource, busy by busy_percent, "launch overhead", or "latency" with a reason. waits: percent of warp cycles by ncu's reasons, most
    first, without those in which instructions are issued.
    """

    rank: int
    label: str
    values: dict[str, str]
    ratio: float
    time_us: float
    tflops: float
    from_code: bool
    cycles: float
    clock_mhz: float
    gpu: str
    kernel: str
    source: str
    options: dict[str, int | str | bool]
    defines: dict[str, int | str | None]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int
    registers: int
    ctas: int
    warps: int
    most_warps: int
    limited_by: tuple[str, ...]
    bound: str
    busy_percent: float | None
    waits: dict[str, float]


@dataclass(frozen=True)
class NotPredicted:
    """A combination that does not compile, does not fit, or is not modelled, and why."""

    label: str
    values: dict[str, str]
    reason: str


@dataclass(frozen=True)
class SweepReport:
    """All combinations of a space, ranked by predicted time, and those that could not be predicted.

    axes: what is swept, each with its values. seed: of the inputs; warm: whether an earlier launch left the buffers in the L2. saved: the
    file of the figure or table.
    """

    axes: dict[str, list[str]]
    seed: int
    warm: bool
    gpus: list[SweptGpu]
    launches: list[SweptLaunch]
    not_predicted: list[NotPredicted]
    saved: str | None
    version: str
    schema: str = field(default=SWEEP_SCHEMA, kw_only=True)


def sweep_report(
    axes: Mapping[str, Sequence[str]], outcomes: Sequence[tuple[Mapping[str, str], str, TimedLaunch | str]], saved: str | None, version: str
) -> SweepReport:
    """Rank what was predicted; launches of the same time stay in the order of the space.

    outcomes: values, label, and the record or the reason why there is none, at least one record.
    """
    found = [(values, label, row) for values, label, row in outcomes if not isinstance(row, str)]
    found.sort(key=lambda item: item[2].time_us)
    rows = [row for _, _, row in found]
    best = rows[0].time_us
    cards = {row.gpu: row for _, _, row in outcomes if not isinstance(row, str)}
    gpus = [SweptGpu(name, row.card, row.arch, row.data_source, row.taken_over, row.error) for name, row in cards.items()]
    return SweepReport(
        axes={name: list(values) for name, values in axes.items()},
        seed=rows[0].seed,
        warm=rows[0].warm,
        gpus=gpus,
        launches=[_swept(rank, values, label, row, best) for rank, (values, label, row) in enumerate(found, 1)],
        not_predicted=[NotPredicted(label, dict(values), row) for values, label, row in outcomes if isinstance(row, str)],
        saved=saved,
        version=version,
    )


def _swept(rank: int, values: Mapping[str, str], label: str, row: TimedLaunch, best: float) -> SweptLaunch:
    busiest = row.resources[0] if row.resources else None
    return SweptLaunch(
        rank=rank,
        label=label,
        values=dict(values),
        ratio=row.time_us / best,
        time_us=row.time_us,
        tflops=row.tflops,
        from_code=row.from_code,
        cycles=row.cycles,
        clock_mhz=row.clock_mhz,
        gpu=row.gpu,
        kernel=row.kernel,
        source=row.source,
        options=row.options,
        defines=row.defines,
        grid=row.grid,
        block=row.block,
        dynamic_smem_bytes=row.dynamic_smem_bytes,
        registers=row.registers,
        ctas=row.held.ctas,
        warps=row.held.warps,
        most_warps=row.held.most_warps,
        limited_by=row.held.binding,
        bound=row.bound,
        busy_percent=busiest.percent if busiest is not None and busiest.name == row.bound else None,
        waits={reason: percent for reason, percent in row.stalls.items() if reason not in ISSUING},
    )


# --- CSV -------------------------------------------------------------------------------------------------------------------------

_COLUMNS = (
    "time_us", "ratio", "tflops", "cycles", "clock_mhz", "gpu", "kernel", "grid", "block", "dynamic_smem_bytes", "registers", "ctas",
    "warps", "limited_by", "bound",
)  # fmt: skip
_PLAIN_AXES = ("gpu", "grid", "block")


def csv_text(report: SweepReport) -> str:
    """A line a combination: its rank, its value on each axis, what was predicted; for the others the reason why not."""
    axes = [name for name in report.axes if name not in _PLAIN_AXES]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["rank", *axes, *_COLUMNS, "reason"])
    for row in report.launches:
        writer.writerow([row.rank, *(row.values[name] for name in axes), *(_cell(getattr(row, name)) for name in _COLUMNS), ""])
    for missing in report.not_predicted:
        known = [missing.values.get(name, "") if name in _PLAIN_AXES else "" for name in _COLUMNS]
        writer.writerow(["", *(missing.values[name] for name in axes), *known, missing.reason])
    return file.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, tuple):
        return " ".join(value) if value and isinstance(value[0], str) else size(value).strip("()").replace(", ", "x")
    return value


def save_csv(path: Path, report: SweepReport) -> None:
    """Write `csv_text`.

    Raises: UsageError if the file cannot be written.
    """
    try:
        with replaced_file(path) as file:
            file.write(csv_text(report).encode(errors="backslashreplace"))
    except OSError as error:
        raise UsageError(f"--out {path}: {error.strerror}") from error
