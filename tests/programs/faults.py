"""Cases for faults.cu, and what must be refused or stopped: the error, and what its message says."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from fasim import empty
from fasim.errors import (
    DeadlockError,
    ExecutionError,
    FasimError,
    InstructionLimit,
    KernelAssertion,
    KernelTrap,
    LaunchError,
    MemoryAccessError,
    NotModelled,
    UnsupportedInstruction,
)
from tests.programs.harness import Case
from tests.programs.words import I32, T, s, t

F = "faults"


@cache
def start(n: int) -> int:
    """What pointer_recursion computes."""
    return 1 if n <= 0 else s(start(n - 1) * 2 + n + n * 7 * (n ^ 3) + n, 32)


def simple(expected: Any, n: int = T) -> Any:
    """A maker for kernels with one output."""
    return lambda rng: ([empty(n, I32)], {0: expected})


def big_tiles(rng: Any) -> Any:
    v = rng.integers(0, 40, 256).astype(I32)
    w = v.reshape(-1, 64)
    return [empty(256, I32), v], {0: np.repeat(w.sum(1) + w[:, 40] * 1000 + (w == 3).any(1) * 7, 64)}


def grid_phases(rng: Any) -> Any:
    n = 288
    x = np.arange(n)
    for k in range(4):
        x = (x[(np.arange(n) + 33) % n] + k)[::-1] * 2
    return [np.arange(n, dtype=I32), np.zeros(n, I32), 4], {0: x}


def which_space(rng: Any) -> Any:
    return [empty(5, I32)], {0: [2, 1, 0, 1, 5]}


CASES = [
    Case(F, "pointer_recursion", simple([start(i % 96 % 7) for i in range(T)])),
    Case(F, "huge_arguments", simple(t % 96 + 5 + 5999), reference=False),
    Case(F, "big_frame", simple(t % 96 * 100), reference=False),
    Case(F, "exit_while_others_wait", simple(np.where(t % 32 < 16, 1, 2))),
    Case(F, "whole_block_in_two_ways", simple(np.ones(T))),
    Case(F, "last_warp_first", simple(np.arange(1024) // 32 * 2, 1024), grid=1, block=1024, reference=False),
    Case(F, "last_warp_first", simple(t[:96] // 32 * 2, 96), grid=1),
    Case(F, "churn", simple(np.full(8, 780), 8), grid=1, block=8),
    Case(F, "which_space", which_space, grid=1, block=32),
    Case(F, "big_tiles", big_tiles, block=128),
    Case(F, "grid_phases", grid_phases, grid=3),
]


@dataclass(frozen=True)
class Fault:
    """A launch that must fail; `says` are parts of the message."""

    kernel: str
    args: tuple[Any, ...]
    error: type[FasimError]
    says: tuple[str, ...] = ()
    block: Any = 96
    grid: Any = 1
    keywords: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Name of the test."""
        return f"{self.kernel}-{'-'.join('array' if isinstance(a, np.ndarray) else f'{a!r:.14}' for a in self.args)}"


def ints(n: int = 16) -> Any:
    return np.zeros(n, I32)


def read_only() -> Any:
    array = ints()
    array.flags.writeable = False
    return array


OOB, BAD, HUGE, PLACE = "out of bounds", "misaligned", 1 << 62, ("warp 0", "lanes 0-31", "faults.cu:", "CTA (0, 0, 0)")
SCALARS = (1, 2, 3, True, 1.5, 2.5, 4, ints(8))


def scalar(position: int, value: Any) -> tuple[Any, ...]:
    return (*SCALARS[:position], value, *SCALARS[position + 1 :])


_strided = ints(8)
FAULTS = [
    Fault(
        "store_at",
        (ints(), 16),
        MemoryAccessError,
        (OOB, "4-byte global write", "1 byte past the end of a (64 bytes)", "`st.global", *PLACE),
    ),
    Fault("store_at", (ints(), -1), MemoryAccessError, (OOB, "4 bytes before the start")),
    Fault("store_at", (ints(), 64 // 4 + 512), MemoryAccessError, (OOB, "past the end of a")),
    Fault("store_at", (ints(0), 0), MemoryAccessError, (OOB, "(0 bytes)")),
    Fault("store_at", (None, 0), MemoryAccessError, (OOB, "null pointer")),
    Fault("store_at", (5, 0), LaunchError, ("pointer",)),
    Fault("store_at", (read_only(), 3), MemoryAccessError, ("write to read-only memory", "byte 12 of a")),
    Fault("load_at", (ints(1), ints(), 16), MemoryAccessError, (OOB, "4-byte global read", "past the end of b")),
    Fault("load_at", (ints(1), ints(), HUGE // 2 - 1), MemoryAccessError, (OOB,)),
    Fault("load_at", (ints(1), ints(), -HUGE // 2), MemoryAccessError, (OOB,)),
    Fault("store_vector", (ints(), 8), MemoryAccessError, (BAD, "no multiple of 16")),
    Fault("store_vector", (np.zeros(68, np.uint8), 64), MemoryAccessError, (OOB, "whose 68 bytes the access of 16 bytes overruns")),
    Fault("store_const", (1,), MemoryAccessError, ("write to read-only memory", "byte 4 of in_const")),
    Fault("store_const", (3,), MemoryAccessError, (OOB, "past the end of in_const")),
    Fault("store_shared", (ints(), 16), MemoryAccessError, (OOB, "byte offset 64, 64 bytes of shared memory")),
    Fault("store_shared", (ints(), -1), MemoryAccessError, (OOB, "byte offset -4")),
    Fault("store_shared", (ints(), 1 << 29), MemoryAccessError, (OOB,)),
    Fault("store_local", (ints(), 8), MemoryAccessError, (OOB, "32 bytes of local memory")),
    Fault("store_local", (ints(), -1), MemoryAccessError, (OOB,)),
    *(
        Fault("store_generic", (a,), MemoryAccessError, (OOB,))
        for a in (0, 4096, 1 << 40, (1 << 40) - 4, 2 << 40, 1 << 47, 1 << 63, (1 << 64) - 4)
    ),
    Fault("store_generic", (3 << 40,), MemoryAccessError, ("write to read-only memory", "param")),
    Fault("add_at", (ints(), 16), MemoryAccessError, (OOB, "`atom.")),
    Fault("copy_async", (ints(), 128, 0), MemoryAccessError, (OOB, "16-byte shared write")),
    Fault("copy_async", (ints(), 0, 64), MemoryAccessError, (OOB, "16-byte global read")),
    Fault("copy_async", (ints(), 4, 0), MemoryAccessError, (BAD,)),
    Fault("load_matrix", (ints(), 256), MemoryAccessError, (OOB, "lanes 0-15")),
    Fault("load_matrix", (ints(), 8), MemoryAccessError, (BAD,)),
    *(Fault("call_at", (ints(), d), ExecutionError, ("jump to nowhere", "0x")) for d in (1, 1 << 20, 1 << 63, (1 << 64) - (1 << 12))),
    Fault("jump_to", (ints(), 2), ExecutionError, ("jump to nowhere", "0x2 is no")),
    Fault("jump_to", (ints(), -1), ExecutionError, ("jump to nowhere",)),
    Fault("too_deep", (ints(96), 250), ExecutionError, ("stack overflow", "levels of calls")),
    Fault("counts_differ", (ints(96),), ExecutionError, ("barrier 1 for 96 threads, but others wait at it for 64 threads",)),
    *(Fault("barrier_number", a, ExecutionError, ("barrier:", "0-15")) for a in ((16, 96), (-1, 96), (1, 0), (1, 31), (1, 128), (1, -32))),
    Fault("two_barriers", (ints(),), DeadlockError, ("warp 0 lanes 0-31 wait for barrier 0", "warp 1 lanes 0-31 wait for barrier 1")),
    Fault("no_producer", (ints(),), DeadlockError, ("wait for barrier 2",)),
    Fault("lanes_miss", (ints(),), DeadlockError, ("lanes 0 wait for lane 1", "`shfl.sync"), block=32),
    Fault("lanes_spin", (ints(),), DeadlockError, ("livelock", "`bar.warp.sync"), block=32),
    Fault("never_set", (ints(),), DeadlockError, ("livelock", "CTA (1, 0, 0)"), grid=2),
    Fault("for_ever", (ints(),), InstructionLimit, ("1000 warp instructions",), keywords={"max_instructions": 1000}),
    Fault("for_ever", (ints(),), FasimError, ("max_instructions is a whole number from 1 on",), keywords={"max_instructions": 0}),
    Fault("stop", (), FasimError, ("workers is a whole number",), keywords={"workers": 0}),
    Fault("free_twice", (ints(),), MemoryAccessError, ("free:", "freed before", "lane 5")),
    Fault("free_foreign", (ints(),), MemoryAccessError, ("free:", "not what malloc returned")),
    Fault("print_missing", (), MemoryAccessError, ("0x8, which is not allocated",)),
    Fault("print_wide", (1 << 30,), NotModelled, ("field of more than",)),
    Fault("check", (3,), KernelAssertion, ("assert `threadIdx.x != n` failed", "thread (3, 0, 0)")),
    Fault("stop", (), KernelTrap, ("lane 3", "`trap;`")),
    Fault("mbarrier", (ints(),), UnsupportedInstruction, ("mbarrier.init.shared.b64", "faults.cu:")),
    Fault("texture", (ints(), 1), UnsupportedInstruction, ("tex.2d",)),
    Fault("surface", (ints(), 1), UnsupportedInstruction, ("suld.b.1d",)),
    Fault("cluster", (ints(),), UnsupportedInstruction, ("barrier.cluster",)),
    Fault("bulk", (ints(),), UnsupportedInstruction, ("cp.async.bulk.commit_group",)),
    Fault("grid_phases", (ints(), ints(), 1), LaunchError, ("synchronises its grid", "do not fit"), grid=100_000),
    Fault("store_at", (ints(),), LaunchError, ("takes 2 arguments", "got 1")),
    Fault("store_at", (ints().astype(">i4"), 0), LaunchError, ("byte order",)),
    Fault("store_at", (np.zeros(4, object), 0), LaunchError, ("Python objects",)),
    Fault("store_at", ([1, 2], 0), LaunchError, ("list",)),
    Fault("load_at", (_strided[::2], _strided, 0), LaunchError, ("shares memory", "not contiguous")),
    Fault("load_at", (_strided, _strided[::2], 0), LaunchError, ("shares memory", "not contiguous")),
    Fault("load_at", (_strided[:4], _strided[2:], 0), LaunchError, ("overlaps a",)),
    *(
        Fault("scalars", scalar(k, v), LaunchError, (f"argument {'hscbfdqp'[k]} of scalars",))
        for k, v in (
            (1, "x"),
            (4, "x"),
            (4, ints()),
            (0, None),
            (0, 1.5),
            (0, np.float32(1)),
            (2, 1j),
            (6, [1]),
            (0, np.datetime64("2020")),
        )
    ),
    *(
        Fault("scalars", scalar(k, v), LaunchError, ("does not fit",))
        for k, v in ((0, 70000), (1, -40000), (2, 256), (4, 1e39), (4, 10**400), (5, 10**400), (6, 1 << 64))
    ),
    *(Fault("stop", (), LaunchError, ("grid",), grid=g) for g in (0, (1, 2, 3, 4), (1, -1), 2.0, "3", None, (1, 65536))),
    *(Fault("stop", (), LaunchError, ("block",), block=b) for b in (0, 1025, (32, 32, 2), (1, 1, 65), None)),
    *(Fault("stop", (), LaunchError, ("dynamic",), keywords={"dynamic_smem_bytes": d}) for d in (-1, 1.5, 10**9, None)),
]
