"""How many CTAs of a kernel an SM holds at once, and what limits it, as ncu's launch__occupancy_limit_* say.

Source: "CUDA C++ Programming Guide", Compute Capabilities, for the sizes; recordings of an H200 for how registers, shared memory and
barriers are handed out, and for how much of the L1 the driver makes shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from fasim.arch import Architecture
from fasim.isa.machine import align_up

#: registers and shared memory are handed out in these units
REGISTER_UNIT, SMEM_UNIT_BYTES = 8, 128
#: sub-partitions of an SM, among which its registers are divided
SUB_PARTITIONS = 4
#: barriers of an SM that CTAs share
BARRIERS_PER_SM = 64
#: of an H200: sizes of shared memory in an SM that the driver may choose, in KB
CARVE_OUTS_KB = (8, 16, 32, 64, 100, 132, 164, 196, 228)
#: the driver gives room for twice the CTAs that fit otherwise, as long as this size holds them
GENEROUS_KB = 132
#: and this to kernels without shared memory of their own
WITHOUT_SMEM_KB = 32


@dataclass(frozen=True)
class Occupancy:
    """CTAs an SM by what limits them; smem_config_bytes: shared memory of an SM for this kernel, as the driver is expected to choose."""

    ctas: int
    warps: int
    blocks: int
    registers: int
    shared_mem: int
    barriers: int
    warps_per_cta: int
    smem_config_bytes: int

    @property
    def limits(self) -> dict[str, int]:
        """Each limit by the end of ncu's name for it."""
        names = ("warps", "blocks", "registers", "shared_mem", "barriers")
        return {name: getattr(self, name) for name in names}

    @property
    def binding(self) -> tuple[str, ...]:
        """The limits that bind."""
        return tuple(name for name, limit in self.limits.items() if limit == self.ctas)

    @property
    def active_warps(self) -> int:
        """Warps of an SM when it is full."""
        return self.ctas * self.warps_per_cta


def occupancy(
    arch: Architecture, threads: int, registers: int, smem_bytes: int, barriers: int = 1, *, smem_config_bytes: int = 0
) -> Occupancy:
    """What an SM holds of a kernel.

    threads: of a CTA. registers: of a thread, as ptxas says. smem_bytes: static and dynamic, without what the system keeps. barriers: of
    a CTA. smem_config_bytes: shared memory of an SM if it is known, 0 for what the driver is expected to choose.
    """
    warps = -(-threads // 32)
    by_warps = arch.warps_per_sm // warps
    taken = 32 * align_up(max(registers, 1), REGISTER_UNIT)
    # each sub-partition has its own registers, and warps go round
    by_registers = arch.registers_per_sm // SUB_PARTITIONS // taken * SUB_PARTITIONS // warps
    by_barriers = min(arch.ctas_per_sm, BARRIERS_PER_SM // barriers) if barriers else arch.ctas_per_sm
    smem = align_up(smem_bytes + arch.smem_reserved_bytes, SMEM_UNIT_BYTES)
    others = min(by_warps, arch.ctas_per_sm, by_registers, by_barriers)
    config = smem_config_bytes or _carve_out(arch, smem, others, own=smem_bytes > 0)
    by_smem = config // smem if smem else arch.ctas_per_sm
    return Occupancy(
        ctas=min(others, by_smem),
        warps=by_warps,
        blocks=arch.ctas_per_sm,
        registers=by_registers,
        shared_mem=by_smem,
        barriers=by_barriers,
        warps_per_cta=warps,
        smem_config_bytes=config,
    )


def _carve_out(arch: Architecture, smem: int, ctas: int, *, own: bool) -> int:
    """The shared memory of an SM that the driver is expected to choose for CTAs of so many bytes, of which others limits allow `ctas`.

    Fits 433 of the 437 recordings of an H200; of the other four the driver chose one size less, which holds the CTAs as well.
    """
    sizes = [kb * 1024 for kb in CARVE_OUTS_KB if kb * 1024 <= arch.smem_sm_bytes] or [arch.smem_sm_bytes]
    if sizes[-1] < arch.smem_sm_bytes:
        sizes.append(arch.smem_sm_bytes)
    if not own and WITHOUT_SMEM_KB * 1024 in sizes:
        return WITHOUT_SMEM_KB * 1024

    def least(bytes_: int) -> int:
        return next((size for size in sizes if size >= bytes_), sizes[-1])

    fitting = min(ctas, sizes[-1] // smem)
    generous = least(min(2 * fitting, arch.ctas_per_sm) * smem)
    return max(least(fitting * smem), min(generous, GENEROUS_KB * 1024))
