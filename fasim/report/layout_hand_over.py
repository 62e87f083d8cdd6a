"""The register hand-over: the result of one mma becomes the multiplicand A of the next without leaving its lane."""

from __future__ import annotations

from dataclasses import replace

from fasim.errors import UsageError
from fasim.report.layout import Cell, Fragment, Move

#: the name that `fasim layout` gives to what fa_v21 does, and the mma on both sides of it
HAND_OVER = "hand-over"
HAND_OVER_MMA = "mma.m16n8k16.f16"
HAND_OVER_SOURCE, HAND_OVER_TARGET = "S", "P"
HAND_OVER_TITLE = "S -> P in fa_v21: C fragments of S = QK^T become the A fragment of O += PV, in the registers of each lane"


def side_by_side(c: Fragment, a: Fragment) -> Fragment:
    """As many results C beside each other as have the columns of A, as matrices 0, 1, ...

    Raises: UsageError if their rows are not those of A, or they do not fill it.
    """
    if c.rows != a.rows or a.columns % c.columns:
        raise UsageError(f"{c.rows} x {c.columns} results do not make up {a.rows} x {a.columns} elements of A")
    count = a.columns // c.columns
    names = tuple(f"columns {i * c.columns} to {(i + 1) * c.columns - 1}" for i in range(count)) if count > 1 else ()
    cells = tuple(replace(cell, matrix=i) for i in range(count) for cell in c.cells)
    return replace(c, matrices=count, matrix_names=names, cells=cells)


def hand_over(c: Fragment, a: Fragment) -> tuple[Move, ...]:
    """Where each part of each register of A comes from, among results C beside each other (see `side_by_side`).

    Raises: UsageError if an element would have to change its lane, or lanes would have to do different things.
    """
    held = {(cell.matrix * c.columns + cell.column, cell.row): cell for cell in c.cells}
    moves: dict[tuple[int, int], Move] = {}
    for cell in a.cells:
        origin: Cell = held[cell.column, cell.row]
        if origin.lane != cell.lane:
            raise UsageError(
                f"no hand-over in registers: element ({cell.row}, {cell.column}) is in lane {origin.lane} as a result "
                f"and in lane {cell.lane} as an element of A; shuffles or shared memory have to move it"
            )
        move = Move(cell.register, cell.low_bit, origin.matrix, origin.register)
        if moves.setdefault((cell.register, cell.low_bit), move) != move:
            raise UsageError(f"no hand-over in registers: a{cell.register} comes from different registers in different lanes")
    return tuple(moves[key] for key in sorted(moves))
