"""Who holds what: the elements of a matrix in the lanes and registers of a warp, both ways, as data.

`--json` prints a `LayoutReport`, or for `fasim layout` alone a `LayoutList`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from fasim.errors import UsageError
from fasim.numerics.fragments import LANES, Elements

LAYOUT_SCHEMA = "fasim.layout/1"
LIST_SCHEMA = "fasim.layouts/1"


@dataclass(frozen=True)
class Cell:
    """An element of a matrix, and the lane and register that hold it, from bit `low_bit` on."""

    matrix: int
    row: int
    column: int
    lane: int
    register: int
    low_bit: int


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """The sizes of a fragment.

    operands: as PTX names them, two if they are held alike. prefix: of the names of the registers. type: of the elements.
    matrix_names: what is to be known of each matrix, empty if there is but one. registers: of each lane.
    """

    operands: tuple[str, ...]
    prefix: str
    type: str
    matrices: int
    matrix_names: tuple[str, ...]
    rows: int
    columns: int
    registers: int
    register_bits: int
    element_bits: int

    @property
    def elements_per_register(self) -> int:
        """Elements that stand in one register."""
        return self.register_bits // self.element_bits

    @property
    def label(self) -> str:
        """The operands in words."""
        return " and ".join(self.operands)


@dataclass(frozen=True, kw_only=True)
class Fragment(Geometry):
    """A matrix (or several) in the registers of a warp; cells are in the order of lanes, registers and bits."""

    cells: tuple[Cell, ...]

    @property
    def geometry(self) -> Geometry:
        """The sizes alone."""
        return Geometry(**{each.name: getattr(self, each.name) for each in fields(Geometry)})


@dataclass(frozen=True)
class Move:
    """Where a part of a register comes from in a hand-over: a register of the same lane, of fragment number `block`."""

    register: int
    low_bit: int
    block: int
    from_register: int


@dataclass(frozen=True)
class LayoutReport:
    """Who holds what in one instruction.

    instructions: all spellings with this layout. element, lane, register: what was asked for, null for everything; `fragments` hold
    only cells that fit. moves: of a hand-over from the first fragment to the second.
    """

    name: str
    title: str
    instructions: tuple[str, ...]
    element: tuple[int, ...] | None
    lane: int | None
    register: int | None
    fragments: tuple[Fragment, ...]
    moves: tuple[Move, ...]
    saved: str | None
    version: str
    schema: str = field(default=LAYOUT_SCHEMA, kw_only=True)


@dataclass(frozen=True)
class LayoutSummary:
    """One name that `fasim layout` knows."""

    name: str
    title: str
    fragments: tuple[Geometry, ...]


@dataclass(frozen=True)
class LayoutList:
    """All names that `fasim layout` knows."""

    layouts: tuple[LayoutSummary, ...]
    version: str
    schema: str = field(default=LIST_SCHEMA, kw_only=True)


@dataclass(frozen=True)
class Selection:
    """What is asked for: an element as (row, column) or (matrix, row, column), or a lane, a register, or both."""

    element: tuple[int, ...] | None = None
    lane: int | None = None
    register: int | None = None

    @property
    def everything(self) -> bool:
        """Nothing in particular is asked for."""
        return self.element is None and self.lane is None and self.register is None


def geometry(
    operands: Sequence[str], type_: str, elements: Elements, registers: int, register_bits: int, matrix_names: Sequence[str] = ()
) -> Geometry:
    """Sizes from the elements.

    elements: [32 lanes, n elements, 2 or 3] of (row, column) or (matrix, row, column), in register order, the low bits of a register first.
    """
    *_, rows, columns = (elements.reshape(-1, elements.shape[-1]).max(axis=0) + 1).tolist()
    return Geometry(
        operands=tuple(operands),
        prefix=operands[0].lower(),
        type=type_,
        matrices=max(len(matrix_names), 1),
        matrix_names=tuple(matrix_names),
        rows=rows,
        columns=columns,
        registers=registers,
        register_bits=register_bits,
        element_bits=registers * register_bits // elements.shape[1],
    )


def fragment(sizes: Geometry, elements: Elements) -> Fragment:
    """A fragment from its sizes and its elements, which are as for `geometry`."""
    per_register, bits = sizes.elements_per_register, sizes.element_bits
    cells = [
        Cell(place[0] if len(place) == 3 else 0, place[-2], place[-1], lane, number // per_register, number % per_register * bits)
        for lane, held in enumerate(elements.tolist())
        for number, place in enumerate(held)
    ]
    return Fragment(**{each.name: getattr(sizes, each.name) for each in fields(Geometry)}, cells=tuple(cells))


def parse_element(text: str) -> tuple[int, ...]:
    """`5,3` as (row, column), `1,5,3` as (matrix, row, column).

    Raises: UsageError.
    """
    parts = text.split(",")
    if len(parts) not in (2, 3) or not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        raise UsageError(f"--element {text}: write ROW,COLUMN, for example 5,3, or MATRIX,ROW,COLUMN where there are several matrices")
    return tuple(map(int, parts))


def select(name: str, fragments: Sequence[Fragment], wanted: Selection) -> tuple[Fragment, ...]:
    """The fragments that have what is asked for, with those cells alone.

    Raises: UsageError if none has it.
    """
    if wanted.element is not None and (wanted.lane is not None or wanted.register is not None):
        raise UsageError("--element asks who holds an element, --lane and --reg ask what is held: give one or the other")
    if wanted.lane is not None and not 0 <= wanted.lane < LANES:
        raise UsageError(f"--lane {wanted.lane}: a warp has lanes 0 to {LANES - 1}")
    chosen = []
    for each in fragments:
        cells = tuple(cell for cell in each.cells if _fits(cell, wanted))
        if cells:
            chosen.append(replace(each, cells=cells))
    if chosen:
        return tuple(chosen)
    if wanted.element is not None:
        text = ",".join(map(str, wanted.element))
        raise UsageError(f"--element {text}: {name} has {'; '.join(map(_extent, fragments))}")
    registers = "; ".join(f"{each.label}: {register_range(each)}" for each in fragments)
    raise UsageError(f"--reg {wanted.register}: {name} has no such register; it has {registers}")


def _fits(cell: Cell, wanted: Selection) -> bool:
    place = (cell.matrix, cell.row, cell.column)
    return (
        (wanted.element is None or place[-len(wanted.element) :] == wanted.element)
        and wanted.lane in (None, cell.lane)
        and wanted.register in (None, cell.register)
    )


def register_range(held: Geometry) -> str:
    """The names of the registers, for example `a0 to a3`."""
    first, last = f"{held.prefix}0", f"{held.prefix}{held.registers - 1}"
    return first if held.registers == 1 else f"{first} to {last}"


def _extent(held: Fragment) -> str:
    matrices = f"matrices 0 to {held.matrices - 1}, " if held.matrices > 1 else ""
    return f"in {held.label} {matrices}rows 0 to {held.rows - 1}, columns 0 to {held.columns - 1}"


@dataclass(frozen=True)
class Blocks:
    """A fragment as a grid: a block is what stands in one register, `height` rows by `width` columns.

    holders: (matrix, block row, block column) to the (lane, register) pairs that hold it.
    """

    height: int
    width: int
    rows: int
    columns: int
    holders: dict[tuple[int, int, int], tuple[tuple[int, int], ...]]


def blocks(held: Fragment) -> Blocks:
    """The elements of each register together, if they are neighbours in a row or a column; else each by itself."""
    count = held.elements_per_register
    for height, width in ((1, count), (count, 1)):
        found = _grouped(held, height, width)
        if found is not None:
            return found
    alone = _grouped(held, 1, 1, strict=False)
    assert alone is not None
    return alone


def _grouped(held: Fragment, height: int, width: int, strict: bool = True) -> Blocks | None:
    """Blocks of that size; strict: None if what stands in a register is not one of them, in the order of its bits."""
    holders: dict[tuple[int, int, int], dict[tuple[int, int], None]] = {}
    homes: dict[tuple[int, int], tuple[int, int, int]] = {}
    for cell in held.cells:
        place, holder = (cell.matrix, cell.row // height, cell.column // width), (cell.lane, cell.register)
        along = cell.row % height + cell.column % width
        if strict and (cell.low_bit != along * held.element_bits or homes.setdefault(holder, place) != place):
            return None
        holders.setdefault(place, {})[holder] = None
    found = {place: tuple(sorted(each)) for place, each in holders.items()}
    return Blocks(height, width, held.rows // height, held.columns // width, found)
