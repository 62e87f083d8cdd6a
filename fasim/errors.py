"""The exceptions of fasim.

FasimError                        everything raised on purpose
├── UsageError                    wrong arguments, shapes, types, names                          exit code 2
│   └── LaunchError               a launch that the driver would refuse                          exit code 2
├── GpuError                      what the driver of a real GPU refused                          exit code 2
├── ToolMissing                   no GPU, no compiler, no package                                exit code 4
├── CompileError                  the compiler's own message                                     exit code 5
│   └── PtxError                  PTX that ptxas would refuse, with line and column              exit code 5
├── NotModelled                   valid, but outside of what fasim models                        exit code 3
│   └── UnsupportedInstruction    an instruction without a row, or too new for the target        exit code 3
└── ExecutionError                a finding while the kernel ran                                 exit code 1
    ├── MemoryAccessError         out of bounds, misaligned, wrong space
    ├── DeadlockError             lanes, warps or CTAs that wait for ever
    ├── InstructionLimit          --max-instructions reached
    ├── KernelAssertion           device assert failed
    ├── KernelTrap                trap or brkpt was executed
    └── GpuFault                  a real GPU ended the kernel
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


class FasimError(Exception):
    """Base of all errors that fasim raises on purpose; `exit_code` is what the command line returns."""

    exit_code = 2


class UsageError(FasimError):
    """The caller's arguments do not fit."""

    exit_code = 2


class LaunchError(UsageError):
    """The launch configuration is one that the driver would refuse."""


class GpuError(FasimError):
    """The driver of a real GPU refused something; the message is the driver's, with what to do."""


class ToolMissing(FasimError):
    """Something outside fasim (a GPU, a compiler, a package) is not there; the message says how to get it."""

    exit_code = 4


class CompileError(FasimError):
    """The source does not compile; the message is the compiler's own log."""

    exit_code = 5


class PtxError(CompileError):
    """PTX text that breaks the language's rules."""


class NotModelled(FasimError):
    """Valid CUDA that fasim does not model."""

    exit_code = 3


class UnsupportedInstruction(NotModelled):
    """An instruction that has no row in the table, or needs a newer architecture."""


@dataclass(frozen=True)
class Where:
    """The place of a finding: source line (and the calls that were inlined, innermost first), PTX text and the lanes concerned."""

    kernel: str = ""
    file: str = ""
    line: int = 0
    ptx_line: int = 0
    text: str = ""
    ctaid: tuple[int, int, int] = (0, 0, 0)
    warp: int = 0
    lanes: tuple[int, ...] = ()
    threads: tuple[tuple[int, int, int], ...] = ()
    inlined_at: tuple[tuple[str, int], ...] = ()


class ExecutionError(FasimError):
    """A finding that ends the kernel; `where` says where, `details` holds the same facts as data.

    hazards: what a checked launch had found until then.
    """

    exit_code = 1

    def __init__(self, message: str, where: Where | None = None, **details: Any) -> None:
        super().__init__(message)
        self.where = where or Where()
        self.details = details
        self.hazards: Sequence[Any] = ()


class MemoryAccessError(ExecutionError):
    """A memory access that is out of bounds, misaligned or in the wrong state space; `details['kind']` names it."""


class DeadlockError(ExecutionError):
    """Lanes, warps or CTAs wait for something that cannot come."""


class InstructionLimit(ExecutionError):
    """The launch executed more warp instructions than it was allowed."""


class KernelAssertion(ExecutionError):
    """A device-side assert failed."""


class KernelTrap(ExecutionError):
    """The kernel executed trap or brkpt."""


class GpuFault(ExecutionError):
    """A real GPU ended the kernel, or would not end it."""
