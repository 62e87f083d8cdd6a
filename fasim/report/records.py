"""What a run found, as data, and its JSON form.

`fasim run --json` writes one object, the fields of `RunReport` by name. Numbers that JSON cannot hold are the strings "NaN", "Infinity"
and "-Infinity"; tuples are lists; absent values are null. A run that ends in an error writes an `ErrorReport` instead. `schema` is the
first field of both: its number goes up when a field changes its meaning or goes away, not when one is added.
"""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import Any

from fasim.errors import ExecutionError, FasimError
from fasim.report.compare import Comparison, Statistics

RUN_SCHEMA = "fasim.run/1"
TRACED_SCHEMA = "fasim.traced/1"
ERROR_SCHEMA = "fasim.error/1"


@dataclass(frozen=True)
class OutputReport:
    """One array argument that the kernel changed, or that was to be checked.

    dtype: short name (f16, bf16, i32, ...). sha256: of the bytes after the launch, in C order.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    changed: bool
    sha256: str
    statistics: Statistics
    comparison: Comparison | None


@dataclass(frozen=True)
class LineCount:
    """Executions of one PTX instruction, in warp instructions; `line` is 0 where the compiler gave none."""

    executions: int
    mnemonic: str
    text: str
    file: str
    line: int
    ptx_line: int


@dataclass(frozen=True)
class Seconds:
    """Wall-clock time.

    compile: source to program. load: machine code of the simulator. machine: execution. check: reference and comparison.
    total: the whole process, without the start of Python.
    """

    compile: float
    load: float
    machine: float
    check: float
    total: float


@dataclass(frozen=True)
class RunReport:
    """One run of one kernel.

    verdict: "right", "wrong", or "unchecked" where there is no reference. exit_code: 0, or 1 for a wrong output.
    options: a collection kernel's options; defines: the macros it was compiled with. sizes are (x, y, z).
    isa: ptx, or sass for machine code.
    warp_instructions: executed instructions, each counted once a warp; shared_instructions: those of them that access shared memory.
    shared_wavefronts, shared_conflicts: what those cost, copies (which have no counter of their own in ncu) included; shared_totals: by
    the names of ncu's counters; shared_uncounted: those of which that is not known.
    instruction_mix: warp instructions by mnemonic, most frequent first. counts: by instruction, only if asked for.
    Neither has entries for what was not executed.
    ordered: CTAs ran one after the other, because they communicate. output: what device printf wrote.
    prints: the parts of buffers that were asked for, as text.
    """

    kernel: str
    source: str
    arch: str
    compiler: str
    options: dict[str, int | str | bool]
    defines: dict[str, int | str | None]
    seed: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int
    smem_bytes: int
    isa: str
    backend: str
    workers: int
    ordered: bool
    warp_instructions: int
    shared_instructions: int
    shared_wavefronts: int
    shared_conflicts: int
    shared_totals: dict[str, int]
    shared_uncounted: int
    instruction_mix: dict[str, int]
    counts: list[LineCount] | None
    outputs: list[OutputReport]
    verdict: str
    exit_code: int
    seconds: Seconds
    output: str
    saved: str | None
    version: str
    prints: list[str] = field(default_factory=list, kw_only=True)
    schema: str = field(default=RUN_SCHEMA, kw_only=True)


@dataclass(frozen=True)
class TracedReport:
    """A trace file that was written. saved: its path; events: warp instructions in it."""

    saved: str
    events: int
    size_bytes: int
    version: str
    schema: str = field(default=TRACED_SCHEMA, kw_only=True)


@dataclass(frozen=True)
class ErrorReport:
    """Why there is no result: `type` is the exception's name in fasim.errors, `where` and `details` are those of a finding."""

    type: str
    message: str
    exit_code: int
    where: dict[str, Any] | None
    details: dict[str, Any] | None
    output: str
    version: str
    schema: str = field(default=ERROR_SCHEMA, kw_only=True)


def error_report(error: FasimError, version: str, output: str = "") -> ErrorReport:
    """The record of an exception; `output` is what device printf had written."""
    where, details = (dataclasses.asdict(error.where), dict(error.details)) if isinstance(error, ExecutionError) else (None, None)
    return ErrorReport(type(error).__name__, str(error), error.exit_code, where, details, output, version)


def to_json(record: Any) -> str:
    """A record as JSON text, `schema` first."""
    fields = dataclasses.asdict(record)
    ordered = {"schema": fields.pop("schema"), **fields} if "schema" in fields else fields
    return json.dumps(plain_json(ordered), indent=2, allow_nan=False)


def encoded(text: str) -> bytes:
    """A text as UTF-8; bytes of a source or a path that are none stay escapes, as they are in JSON, such as `\\udce9`."""
    return text.encode(errors="backslashreplace")


def plain_json(value: Any) -> Any:
    """A value in terms that JSON knows: numbers that it cannot hold become strings, tuples lists."""
    if isinstance(value, dict):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return plain_json(value.item()) if hasattr(value, "item") else str(value)
