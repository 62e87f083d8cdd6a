"""What a launch did, as data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fasim.isa.program import SourceInstruction


@dataclass(frozen=True)
class InstructionCount:
    """How often one instruction was executed, in warp instructions."""

    source: SourceInstruction
    executions: int
    kind: str


@dataclass(frozen=True)
class AccessPattern:
    """One execution of a shared access: the byte offset in shared memory of each of 32 lanes (0 where inactive).

    source_addresses: where cp.async reads from, in global memory; empty for other accesses.
    """

    ctaid: tuple[int, int, int]
    warp: int
    active_mask: int
    byte_offsets: tuple[int, ...]
    source_addresses: tuple[int, ...] = ()


@dataclass(frozen=True)
class SharedAccess:
    """All executions of one instruction that accesses shared memory, over the grid.

    kind: the PTX opcode (ld, st, ldmatrix, stmatrix, cp.async, atom, red). op: the machine operation as `count_wavefronts` names it, "" for
    an atomic that machine code does in a loop of unknown length, whose wavefronts are not counted.
    wavefronts, conflicts: as the hardware counters have them; source_wavefronts, source_ideal: as ncu's source page has them.
    pattern: the execution with the most conflicts, the first of them.
    as_if: of cp.async.cg, wavefronts and ideal that the source page has in other cases, in the order of `AS_COPIES` and so on
    (fasim.smem.wavefront_rule): if all lanes copied, if all filled with zeros, of LDGSTS.ZFILL, and of that if all lanes copied.
    """

    source: SourceInstruction
    kind: str
    op: str
    executions: int
    wavefronts: int
    conflicts: int
    source_wavefronts: int
    source_ideal: int
    pattern: AccessPattern | None = None
    as_if: tuple[tuple[int, int], ...] = ()

    @property
    def file(self) -> str:
        """The source file."""
        return self.source.file

    @property
    def line(self) -> int:
        """The source line, 0 where the compiler gave none."""
        return self.source.line

    @property
    def text(self) -> str:
        """The PTX instruction."""
        return self.source.text


@dataclass(frozen=True)
class Hazard:
    """Something that is wrong, or may be, though it did not stop the kernel; alike findings are one record.

    kind: RAW, WAR, WAW; uninit_shared, uninit_global, uninit_local, uninit_lane (shfl from an absent lane);
    copy_not_waited; divergent_barrier; absent_lanes; unnamed_lanes. scope: inter-warp, intra-warp or async for races, what was decided
    (address, branch, mma, output) for uninitialised values, else empty. severity: error, warning or note (benign).
    first, second: the instructions, in the order of execution; for an uninitialised value where it was read and what it decided.
    words: distinct 4-byte words of the space. lanes: lane executions concerned, of races the lanes in the first occurrence, which the
    rest describes.
    """

    kind: str
    space: str
    scope: str
    severity: str
    first: SourceInstruction
    second: SourceInstruction | None
    words: int
    lanes: int
    text: str
    ctaid: tuple[int, int, int] = (0, 0, 0)
    byte_offset: int = 0
    first_warp: int = 0
    first_lanes: tuple[int, ...] = ()
    second_warp: int = 0
    second_lanes: tuple[int, ...] = ()
    word_offsets: tuple[int, ...] = ()

    @property
    def first_line(self) -> int:
        """Source line of the first instruction."""
        return self.first.line

    @property
    def second_line(self) -> int | None:
        """Source line of the second instruction, None where there is one only."""
        return None if self.second is None else self.second.line

    @property
    def benign(self) -> bool:
        """Whether it cannot change the result, as a write of the same value."""
        return self.severity == "note"


@dataclass
class LaunchResult:
    """What a launch did.

    counts: by instruction, in program order. warp_instructions: their sum. shared_instructions: those that access shared memory.
    shared_accesses: what they cost, by instruction (empty with count=False). hazards: what the checks found.
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
    shared_accesses: Sequence[SharedAccess] = ()
    hazards: Sequence[Hazard] = ()
    totals: dict[str, int] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"<LaunchResult of {self.kernel}: grid {self.grid}, block {self.block}, {self.warp_instructions} warp instructions, "
            f"{self.seconds:.3g} s>"
        )

    @property
    def uncounted(self) -> int:
        """Executions of accesses to shared memory whose wavefronts are not counted."""
        return sum(access.executions for access in self.shared_accesses if not access.op)

    def by_mnemonic(self) -> dict[str, int]:
        """Executions by PTX mnemonic, most frequent first."""
        totals: dict[str, int] = {}
        for count in self.counts:
            totals[count.source.mnemonic] = totals.get(count.source.mnemonic, 0) + count.executions
        return dict(sorted(totals.items(), key=lambda item: (-item[1], item[0])))
