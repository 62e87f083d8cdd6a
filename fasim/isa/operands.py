"""Operands of the instructions that the machine's loop does itself: what stands where in the pool, for lowering and machine alike.

A class states the layout: its fields in order, one int32 each, but for those with `words` in their metadata; a tuple comes last
and stands for its items one after the other. Lowering fills in the fields, with register rows and other numbers that are known only
later as items of a type of its own. The machine reads by the byte offsets that are derived from the class below it.

A row is the byte offset of a register row in the warp's file; -1 where an operand is absent; bit 0 of a predicate's row means "not".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Generic, TypeVar

Item = TypeVar("Item", covariant=True)


@dataclass(frozen=True)
class Operands(Generic[Item]):
    """A stretch of the pool."""

    def items(self) -> list[int | Item]:
        """The fields in the order of the pool."""
        flat: list[int | Item] = []
        for each in fields(self):
            value = getattr(self, each.name)
            for part in value if isinstance(value, tuple) else (value,):
                if isinstance(part, Operands):
                    flat += part.items()
                else:
                    flat.append(part)
        return flat


def _offsets(layout: type[Operands[Any]]) -> Iterator[int]:
    """Byte offset of each field."""
    at = 0
    for each in fields(layout):
        yield at
        at += 4 * int(each.metadata.get("words", 1))


def _size_words(layout: type[Operands[Any]]) -> int:
    return sum(int(each.metadata.get("words", 1)) for each in fields(layout))


# --- memory --------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Memory(Operands[Item]):
    """An address and what is there: `vector` elements of `bytes_` in `space`, at the row `address` (`wide`: 64 bits) plus an offset.

    order: whether the access is strong, acquires, releases, leaves nothing of the old value (STRONG, ACQUIRE, RELEASE, OVERWRITES).
    """

    space: int
    bytes_: int
    vector: int
    sign: int
    address: int | Item
    wide: int
    offset_low: int
    offset_high: int
    order: int = 0


P_SPACE, P_BYTES, P_VECTOR, P_SIGN, P_ADDRESS, P_WIDE, P_OFFSET_LOW, P_OFFSET_HIGH, P_ORDER = _offsets(Memory)
STRONG, ACQUIRE, RELEASE, OVERWRITES = 1, 2, 4, 8
_MEMORY = {"words": _size_words(Memory)}


@dataclass(frozen=True)
class DataRegister(Operands[Item]):
    """A register to load or store: its row, and the bytes of a lane there that count (2, 4 or 8)."""

    row: int | Item
    bytes_: int


R_ROW, R_BYTES = _offsets(DataRegister)
R_STRIDE = 4 * _size_words(DataRegister)


@dataclass(frozen=True)
class Transfer(Operands[Item]):
    """ld, st."""

    memory: Memory[Item] = field(metadata=_MEMORY)
    registers: tuple[DataRegister[Item], ...]


_, P_REGISTERS = _offsets(Transfer)


@dataclass(frozen=True)
class AtomElement(Operands[Item]):
    """One element of atom or red: destination row (-1 for red), rows of the old and the new value, then the handler's own operands."""

    dest: int | Item
    old: int | Item
    new: int | Item
    handler_new: int | Item
    handler_old: int | Item
    b: int | Item
    c: int | Item = -1


A_DEST, A_OLD, A_NEW, A_HANDLER, _, A_B, A_C = _offsets(AtomElement)
A_STRIDE = 4 * _size_words(AtomElement)


@dataclass(frozen=True)
class Atom(Operands[Item]):
    """atom, red."""

    memory: Memory[Item] = field(metadata=_MEMORY)
    elements: tuple[AtomElement[Item], ...]


_, A_ELEMENTS = _offsets(Atom)


@dataclass(frozen=True)
class Matrix(Operands[Item]):
    """ldmatrix, stmatrix: `memory` describes the 16 bytes of a matrix row; `transposed`: .trans."""

    memory: Memory[Item] = field(metadata=_MEMORY)
    transposed: int
    count: int
    registers: tuple[Item, ...]


_, M_TRANSPOSED, M_COUNT, M_REGISTERS = _offsets(Matrix)


@dataclass(frozen=True)
class AsyncCopy(Operands[Item]):
    """cp.async: where to and from, row of src-size (-1: all), the ignore-src predicate (-1: none)."""

    target: Memory[Item] = field(metadata=_MEMORY)
    source: Memory[Item] = field(metadata=_MEMORY)
    source_bytes: int | Item
    ignore: int | Item


_, Q_SOURCE, Q_SOURCE_SIZE, Q_IGNORE = _offsets(AsyncCopy)

# --- control -------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class IndexedBranch(Operands[Item]):
    """brx.idx: row of the index, how many targets, the pc of each."""

    index: Item
    count: int
    targets: tuple[Item, ...]


X_INDEX, X_COUNT, X_TARGETS = _offsets(IndexedBranch)


@dataclass(frozen=True)
class Barrier(Operands[Item]):
    """bar: BAR_SYNC to BAR_RED_OR, rows of the barrier's number and the thread count, predicate, row of the result, the bar's own pc.

    aligned: all lanes of a warp have to execute it together.
    """

    operation: int
    number: Item
    count: int | Item
    predicate: int | Item
    dest: int | Item
    pc: Item
    aligned: int


BAR_OP, BAR_NUMBER, BAR_COUNT, BAR_PREDICATE, BAR_DEST, BAR_PC, BAR_ALIGNED = _offsets(Barrier)


@dataclass(frozen=True)
class WarpSync(Operands[Item]):
    """bar.warp.sync: row of the member mask; barrier: of machine code, counted from 1, else 0."""

    members: Item
    barrier: int = 0


Y_MEMBERS, Y_BARRIER = _offsets(WarpSync)


@dataclass(frozen=True)
class Clock(Operands[Item]):
    """A clock: destination row and bytes, the first bit wanted, whether it goes on over all CTAs of the launch."""

    dest: Item
    bytes_: int
    shift: int
    launch_wide: int


T_DEST, T_BYTES, T_SHIFT, T_LAUNCH_WIDE = _offsets(Clock)


@dataclass(frozen=True)
class Service(Operands[Item]):
    """A call of the driver: how many values it returns and takes, row of the frame base, offset of each value in the frame."""

    returns: int
    arguments: int
    frame: Item
    slots: tuple[int, ...]


V_RETURNS, V_ARGUMENTS, V_FRAME, V_SLOTS = _offsets(Service)

# --- calls ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SavedRows(Operands[Item]):
    """Rows that a caller saves: the first one and how many, of 32 bits, of 64, and predicates."""

    first32: int
    count32: int
    first64: int
    count64: int
    first_predicate: int
    predicates: int


_SAVED = {"words": _size_words(SavedRows)}


@dataclass(frozen=True)
class Part(Operands[Item]):
    """Bytes that move between frames: from offset, to offset, how many."""

    source: int
    target: int
    bytes_: int


PART_SOURCE, PART_TARGET, PART_BYTES = _offsets(Part)
PART_STRIDE = 4 * _size_words(Part)


@dataclass(frozen=True)
class Parts(Operands[Item]):
    """A list of what moves."""

    count: int
    parts: tuple[Part[Item], ...]


_, PARTS_FIRST = _offsets(Parts)


@dataclass(frozen=True)
class CallOperands(Operands[Item]):
    """call: the target's pc (-1: indirect) or the row of its address, row of the frame base, bytes of the caller's frame, `SavedRows`.

    callee_bytes: the callee's frame, of the largest one for an indirect call; formal_bytes: its parameters as this call lays them out.
    parts: `Parts` for the arguments, from the caller's frame to the callee's, then for the returned values, back.
    """

    target: int | Item
    address: Item
    frame: Item
    frame_bytes: Item
    saved: Item = field(metadata=_SAVED)
    callee_bytes: Item
    formal_bytes: int
    parts: tuple[Parts[Item], Parts[Item]]


K_TARGET, K_ADDRESS, K_FRAME, K_FRAME_BYTES, K_SAVED, K_CALLEE_BYTES, K_FORMAL_BYTES, K_ARGUMENTS = _offsets(CallOperands)
K_SAVE32, K_COUNT32, K_SAVE64, K_COUNT64, K_SAVE_PREDICATES, K_COUNT_PREDICATES = (K_SAVED + at for at in _offsets(SavedRows))
