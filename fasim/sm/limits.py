"""Whether the driver would accept a launch: sizes of grid and block, registers, shared memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fasim.arch import Architecture
from fasim.errors import LaunchError
from fasim.isa import machine as m
from fasim.isa.program import Program
from fasim.sm.state import LaunchShape

#: where shared memory is that the driver keeps for cooperative groups; kernels that ask for it get some behind their own
RESERVED_SMEM, RESERVED_SMEM_BYTES = "%reserved_smem_offset_1", 1024


def triple(value: int | Sequence[int], what: str) -> tuple[int, int, int]:
    """One to three sizes as three."""
    sizes = tuple(value) if isinstance(value, (Sequence, np.ndarray)) else (value,)
    if not 1 <= len(sizes) <= 3 or not all(isinstance(s, (int, np.integer)) for s in sizes):
        raise LaunchError(f"{what} takes one to three whole numbers, got {value!r}")
    x, y, z = (*(int(s) for s in sizes), 1, 1)[:3]
    return x, y, z


def launch_shape(
    program: Program,
    arch: Architecture,
    registers: int,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    dynamic: int,
    opt_in: bool,
) -> LaunchShape:
    """The shape of a launch, if the driver would accept it; registers: of a thread, 0 if unknown.

    Raises: LaunchError.
    """
    for what, sizes, limits in (("grid", grid, arch.grid_limits), ("block", block, arch.block_limits)):
        for axis, size, limit in zip("xyz", sizes, limits):
            if not 1 <= size <= limit:
                raise LaunchError(f"{what}.{axis} is {size}; {arch.name} allows 1 to {limit}")
    threads = block[0] * block[1] * block[2]
    if threads > arch.threads_per_cta:
        raise LaunchError(f"block {block} has {threads} threads; {arch.name} allows {arch.threads_per_cta}")
    taken = arch.cta_registers(registers, m.align_up(threads, 32) // 32)
    if taken > arch.registers_per_sm:
        raise LaunchError(
            f"kernel {program.title} takes {registers} registers a thread, {taken} for {threads} threads; "
            f"{arch.name} has {arch.registers_per_sm}: use smaller blocks or __launch_bounds__"
        )
    if program.required_block and block != program.required_block:
        raise LaunchError(f"kernel {program.title} requires block {program.required_block} (.reqntid), got {block}")
    if program.max_threads and threads > program.max_threads:
        raise LaunchError(
            f"kernel {program.title} was compiled for at most {program.max_threads} threads (__launch_bounds__), got {threads}"
        )
    if not isinstance(dynamic, (int, np.integer)):
        raise LaunchError(f"dynamic shared memory is a number of bytes, got {dynamic!r}")
    if dynamic < 0:
        raise LaunchError(f"dynamic shared memory cannot be {dynamic} bytes")
    if program.static_smem_bytes > arch.smem_default_bytes:
        raise LaunchError(
            f"kernel {program.title} has {program.static_smem_bytes} bytes of static shared memory; the limit is {arch.smem_default_bytes}"
        )
    total = program.static_smem_bytes + dynamic
    limit = arch.smem_opt_in_bytes if opt_in else arch.smem_default_bytes
    if total > limit:
        advice = "" if opt_in else "; opt_in=True allows up to " + str(arch.smem_opt_in_bytes)
        raise LaunchError(
            f"kernel {program.title} needs {total} bytes of shared memory ({program.static_smem_bytes} static + {dynamic} dynamic); "
            f"{arch.name} allows {limit} a CTA{advice}"
        )
    if RESERVED_SMEM in program.launch_rows:
        total = m.align_up(total, 128) + RESERVED_SMEM_BYTES
    return LaunchShape(grid, block, total, dynamic, arch.sms)
