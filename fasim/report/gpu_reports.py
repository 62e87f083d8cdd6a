"""What `fasim gpu` finds, as data."""

from __future__ import annotations

from dataclasses import dataclass, field

from fasim.report.measured import Card, Profile, Timing
from fasim.report.records import OutputReport

GPU_RUN_SCHEMA = "fasim.gpu.run/1"
GPU_TIME_SCHEMA = "fasim.gpu.time/1"
GPU_PROFILE_SCHEMA = "fasim.gpu.profile/1"
GPU_RECORD_SCHEMA = "fasim.gpu.record/1"


@dataclass(frozen=True)
class GpuLaunchFacts:
    """What ran where.

    label: what distinguishes it from other variants of the same command. arch: what the code was made for. made_by: the compiler, or "the
    driver" if that assembled the PTX. code_sha256: of the cubin, or of the PTX that the driver got.
    """

    label: str
    kernel: str
    source: str
    options: dict[str, int | str | bool]
    defines: dict[str, int | str | None]
    seed: int
    arch: str
    made_by: str
    code_sha256: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    static_smem_bytes: int
    dynamic_smem_bytes: int
    registers: int


@dataclass(frozen=True)
class GpuRunReport:
    """One run on a GPU; verdict and exit_code as `fasim run` has them. output: what device printf wrote."""

    card: Card
    launch: GpuLaunchFacts
    outputs: list[OutputReport]
    verdict: str
    exit_code: int
    output: str
    saved: str | None
    version: str
    prints: list[str] = field(default_factory=list)
    schema: str = field(default=GPU_RUN_SCHEMA, kw_only=True)


@dataclass(frozen=True)
class GpuTimed:
    """One variant's times: `cold`, with copies of the buffers in turn, and `warm`, with the same ones each time."""

    launch: GpuLaunchFacts
    cold: Timing
    warm: Timing
    cold_tflops: float
    warm_tflops: float


@dataclass(frozen=True)
class GpuTimeReport:
    """Times of one or several variants on one GPU."""

    card: Card
    variants: list[GpuTimed]
    version: str
    schema: str = field(default=GPU_TIME_SCHEMA, kw_only=True)


@dataclass(frozen=True)
class GpuProfiled:
    """One variant's profile."""

    launch: GpuLaunchFacts
    profile: Profile


@dataclass(frozen=True)
class GpuProfileReport:
    """What ncu measured of one or several variants."""

    card: Card
    variants: list[GpuProfiled]
    version: str
    saved: str | None = None
    schema: str = field(default=GPU_PROFILE_SCHEMA, kw_only=True)


@dataclass(frozen=True)
class GpuRecorded:
    """One recording that was written, or why it was not."""

    name: str
    path: str | None
    problem: str = ""


@dataclass(frozen=True)
class GpuRecordReport:
    """The recordings of one command; card: None if they wait for a GPU."""

    card: Card | None
    recordings: list[GpuRecorded]
    exit_code: int
    version: str
    schema: str = field(default=GPU_RECORD_SCHEMA, kw_only=True)
