"""What a launch did, as data."""

from __future__ import annotations

from dataclasses import dataclass

from fasim.isa.program import SourceInstruction


@dataclass(frozen=True)
class InstructionCount:
    """How often one instruction was executed, in warp instructions."""

    source: SourceInstruction
    executions: int
    kind: str


@dataclass
class LaunchResult:
    """What a launch did.

    counts: by instruction, in program order. warp_instructions: their sum. shared_instructions: those that access shared memory.
    seconds: time in the machine. ordered: whether CTAs ran one after the other because they (may) communicate; like the time, it can
    differ between runs. output: what printf wrote.
    """

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int
    smem_bytes: int
    counts: list[InstructionCount]
    warp_instructions: int
    shared_instructions: int
    seconds: float
    ordered: bool
    workers: int
    output: str = ""

    def __repr__(self) -> str:
        return (
            f"<LaunchResult of {self.kernel}: grid {self.grid}, block {self.block}, {self.warp_instructions} warp instructions, "
            f"{self.seconds:.3g} s>"
        )

    def by_mnemonic(self) -> dict[str, int]:
        """Executions by PTX mnemonic, most frequent first."""
        totals: dict[str, int] = {}
        for count in self.counts:
            totals[count.source.mnemonic] = totals.get(count.source.mnemonic, 0) + count.executions
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
