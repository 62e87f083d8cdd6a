"""Between syntax tree and machine code: operations on virtual registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from fasim.isa.program import HandlerUse, SourceInstruction


@dataclass(eq=False, slots=True)
class VReg:
    """A virtual register: `bank` is 32, 64 or 1 (predicate); `value` the constants of a fixed row, `special` what the machine fills in.

    A fixed register is the same for all functions and never allocated over; the machine's template gives it its value.
    """

    name: str
    bank: int
    fixed: bool = False
    value: tuple[int, ...] | None = None
    special: int | None = None
    slot: int = -1
    function: str = ""


@dataclass(frozen=True, slots=True)
class Ref:
    """A register in the operand pool: read, written or both; `negated` for a predicate read as its complement."""

    reg: VReg
    reads: bool = True
    writes: bool = False
    negated: bool = False


@dataclass(frozen=True, slots=True)
class LabelRef:
    """A pc in the operand pool, known once the code is laid out: a label, a function's entry, or the operation's own (label "")."""

    label: str
    is_function: bool = False


@dataclass(frozen=True, slots=True)
class RegionRef:
    """`SavedRows` in the pool: the register rows of `caller`, for it to save if `callee` ("": any) can reach it again, else none."""

    caller: str
    callee: str


@dataclass(frozen=True, slots=True)
class FrameRef:
    """The frame size of a function, in bytes, known once it is lowered; of the largest that a call can reach for ""."""

    function: str


PoolItem = int | Ref | LabelRef | RegionRef | FrameRef


@dataclass(slots=True)
class Op:
    """One machine operation; `labels` are the places it may go to besides the next operation, `falls` whether it may go on there."""

    kind: int
    pool: Sequence[PoolItem] = ()
    guard: Ref | None = None
    handler: HandlerUse | None = None
    aux: int = 0
    target: str = ""
    member: VReg | None = None
    source: SourceInstruction | None = None
    labels: list[str] = field(default_factory=list)
    falls: bool = True
    keeps_sources: bool = False

    def reads(self) -> list[VReg]:
        """Registers whose old value matters."""
        found = [item.reg for item in self.pool if isinstance(item, Ref) and item.reads]
        if self.guard is not None:
            found.append(self.guard.reg)
        if self.member is not None:
            found.append(self.member)
        return found

    def writes(self) -> list[VReg]:
        """Registers that get a new value."""
        return [item.reg for item in self.pool if isinstance(item, Ref) and item.writes]


@dataclass(slots=True)
class Block:
    """Operations that run from first to last; `next` is the block after it in program order, taken when the last one falls through."""

    labels: list[str]
    ops: list[Op]
    successors: list[int] = field(default_factory=list)
    next: int = -1


@dataclass(slots=True)
class LoweredFunction:
    """A function as blocks in layout order, and how much of each register bank it uses."""

    name: str
    blocks: list[Block]
    slots: dict[int, int] = field(default_factory=dict)
    frame_bytes: int = 0
