"""Limits of each architecture.

Source: CUDA C++ Programming Guide, "Compute Capabilities" (documented values); the number of SMs is that of the card named.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fasim.errors import UsageError

KB = 1024


@dataclass(frozen=True, slots=True)
class Architecture:
    """What a launch may ask for.

    smem_opt_in_bytes: most shared memory of a CTA when opted in; smem_default_bytes: without; smem_reserved_bytes: what the system takes
    for each CTA.
    """

    name: str
    number: int
    card: str
    sms: int
    smem_opt_in_bytes: int
    smem_sm_bytes: int
    smem_reserved_bytes: int
    warps_per_sm: int
    ctas_per_sm: int
    smem_default_bytes: int = 48 * KB
    threads_per_cta: int = 1024
    block_limits: tuple[int, int, int] = (1024, 1024, 64)
    grid_limits: tuple[int, int, int] = (2**31 - 1, 65535, 65535)
    registers_per_sm: int = 65536
    registers_granule: int = 256  # a warp's registers are handed out in units of this many

    def cta_registers(self, registers_a_thread: int, warps: int) -> int:
        """Registers that a CTA takes."""
        return warps * -(-32 * registers_a_thread // self.registers_granule) * self.registers_granule

    def resident_ctas(self, warps: int, smem_bytes: int, registers_a_thread: int = 0) -> int:
        """CTAs that the whole GPU holds at once; 0 registers: unknown, and not counted."""
        per_sm = min(self.ctas_per_sm, self.warps_per_sm // warps)
        if smem_bytes:
            per_sm = min(per_sm, self.smem_sm_bytes // (smem_bytes + self.smem_reserved_bytes))
        if registers_a_thread:
            per_sm = min(per_sm, self.registers_per_sm // self.cta_registers(registers_a_thread, warps))
        return max(1, per_sm) * self.sms


def _arch(number: int, card: str, sms: int, opt_in: int, per_sm: int, reserved: int, warps: int, ctas: int) -> Architecture:
    return Architecture(f"sm_{number}", number, card, sms, opt_in * KB, per_sm * KB, reserved, warps, ctas)


ARCHITECTURES: dict[int, Architecture] = {
    a.number: a
    for a in (
        _arch(75, "T4", 40, 64, 64, 0, 32, 16),
        _arch(80, "A100", 108, 163, 164, 1024, 64, 32),
        _arch(86, "RTX 3090", 82, 99, 100, 1024, 48, 16),
        _arch(87, "Jetson AGX Orin", 16, 163, 164, 1024, 48, 16),
        _arch(89, "RTX 4090", 128, 99, 100, 1024, 48, 24),
        _arch(90, "H200", 132, 227, 228, 1024, 64, 32),
        _arch(100, "B200", 148, 227, 228, 1024, 64, 32),
        _arch(103, "B300", 148, 227, 228, 1024, 64, 32),
        _arch(110, "Jetson AGX Thor", 20, 227, 228, 1024, 48, 24),
        _arch(120, "RTX 5080", 84, 99, 100, 1024, 48, 24),
        _arch(121, "GB10", 48, 99, 100, 1024, 48, 24),
    )
}


def architecture(name: str) -> Architecture:
    """The entry for `sm_90`, `sm_90a`, `compute_80`, ...

    Raises: UsageError listing the known ones.
    """
    match = re.fullmatch(r"(?:sm|compute)_(\d+)[af]?", name)
    number = int(match[1]) if match else 0
    if number not in ARCHITECTURES:
        known = ", ".join(a.name for a in ARCHITECTURES.values())
        digits = re.search(r"\d+", name)
        near = ARCHITECTURES.get(int(digits[0])) if digits else None
        hint = f" (did you mean {near.name}?)" if near else ""
        raise UsageError(f"fasim does not know the architecture {name!r}{hint}; known: {known}")
    return ARCHITECTURES[number]
