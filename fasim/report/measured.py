"""What a GPU did with a kernel, as data: outputs, counters by instruction, times, and the card and tools that they come from."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Card:
    """The GPU and its driver; sizes in bytes, clocks in kHz as the driver states them (what the card may reach, not what it ran at)."""

    name: str
    compute_capability: str
    driver: str
    sms: int
    memory_bytes: int
    l2_bytes: int
    sm_clock_khz: int
    memory_clock_khz: int

    @property
    def arch(self) -> str:
        """The target that its machine code is compiled for, for example `sm_90`."""
        return "sm_" + self.compute_capability.replace(".", "")


@dataclass(frozen=True)
class MachineInstruction:
    """One instruction of the machine code, with what ncu's source page counted for it over the grid.

    offset: bytes from the beginning of the kernel. text: as nvdisasm prints it. ptx_line: line of the PTX that it was made from, or 0.
    place: source line, then the calls that were inlined, innermost first; empty if unknown.
    executions: warps that executed it, also with a false predicate; threads: executions by threads, threads_on: with a true predicate.
    wavefronts_shared, wavefronts_shared_ideal: the source page's, 0 for what does not access shared memory.
    samples: warps found at it by the sampler; stalls: the same by reason, without those that are 0.
    """

    offset: int
    text: str
    ptx_line: int
    place: tuple[tuple[str, int], ...]
    executions: int = 0
    threads: int = 0
    threads_on: int = 0
    wavefronts_shared: int = 0
    wavefronts_shared_ideal: int = 0
    samples: int = 0
    stalls: dict[str, int] = field(default_factory=dict)

    @property
    def line(self) -> int:
        """The innermost source line, as ncu shows it; 0 if unknown."""
        return self.place[0][1] if self.place else 0

    @property
    def opcode(self) -> str:
        """The opcode with its modifiers, without predicate and operands: `LDS.U.128`."""
        words = self.text.split()
        return next((word.rstrip(";") for word in words if not word.startswith(("@", "{"))), "")


@dataclass(frozen=True)
class Profile:
    """What ncu measured of one launch.

    tool: ncu's version. counters: metrics by ncu's names, sums over the GPU where a name ends in .sum. launch: launch statistics and
    occupancy. instructions: in the order of the machine code.
    """

    tool: str
    counters: dict[str, float]
    launch: dict[str, float]
    instructions: tuple[MachineInstruction, ...] = ()


@dataclass(frozen=True)
class Timing:
    """Times of one launch in microseconds by events, over `repetitions` launches after `warm_up`.

    input_sets: copies of the buffers that were used in turn. low_us, high_us: the 5th and 95th percentile. flops: floating-point operations
    of the problem, 0 if unknown. sm_clock_mhz: cycles of the SMs over the time of all launches, 0 if it could not be measured. l2_flushed:
    whether the L2 cache was overwritten before each launch, as it is for copies that it would hold all at once.
    """

    median_us: float
    low_us: float
    high_us: float
    least_us: float
    most_us: float
    warm_up: int
    repetitions: int
    input_sets: int
    flops: int = 0
    sm_clock_mhz: float = 0.0
    l2_flushed: bool = False

    @property
    def tflops(self) -> float:
        """Floating-point operations of the problem in 10^12 a second, by the median."""
        return self.flops / self.median_us / 1e6 if self.flops and self.median_us else 0.0


@dataclass(frozen=True)
class Output:
    """An array after the launch: its bits, or above a size only their SHA-256 (C order, little-endian)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    sha256: str
    values: Array | None = None
