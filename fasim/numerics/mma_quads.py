"""mma.m8n8k4 of f16: four independent products of 8 x 8 x 4, one for each pair of quads (lanes 4p ... 4p+3 with 4p+16 ... 4p+19).

Since sm_80 no tensor core computes it: ptxas calls functions of its own, `__cuda_sm_8x_mma_*`, made of shuffles and f32 arithmetic. With
f32 results these are a chain of fused multiply-adds from +0 in increasing k, to which C is added; with f16 results C takes the sum of
the first two products, then that of the last two, and is rounded to f16 once.

Source: machine code of ptxas 13.0 for sm_80 to sm_121; PTX ISA, warp-level-matrix-fragment-mma-884-f16 (the fragments).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from fasim.errors import NotModelled
from fasim.numerics import ieee
from fasim.numerics.fragments import LANES, Elements
from fasim.numerics.lanes import Lanes, const, fma, permute, where

SIZE, DEPTH = 8, 4
#: targets for which ptxas calls its functions
ARCHS = (80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121)

Place = tuple[tuple[int, int], ...]  # for each lane the lane and the element that it reads


def quad_pair(lane: int) -> int:
    """Which of the four products a lane takes part in."""
    return lane % 16 // 4


@functools.cache
def quad_fragment(operand: str, form: str) -> Elements:
    """The elements of a fragment; each pair of quads holds a matrix of its own.

    operand: 'a', 'b', 'c' or 'd'. form: the layout 'row' or 'col' of A and B, the type 'f32' or 'f16' of C and D.
    Returns [32 lanes, n elements, 2] of (row, column), in register order, the low half of a register first.
    """
    by_lane, across = {"a": ("row", 0), "b": ("col", 1)}.get(operand, ("", 0))
    lane, i = np.arange(LANES)[:, None], np.arange(DEPTH if by_lane else SIZE)[None, :]
    t, upper = lane % 4, 4 * (lane // 16)
    if form == "f32":
        row, column = lane % 2 + upper + (i & 2), (i & 4) + (lane & 2) + i % 2
    elif form == "f16":
        row, column = t + upper, i
    else:
        outer, inner = (t + upper, i) if form == by_lane else (i + upper, t)
        row, column = (inner, outer) if across else (outer, inner)
    result = np.stack(np.broadcast_arrays(row, column), axis=-1).astype(np.int64)
    result.flags.writeable = False
    return result


@functools.cache
def _holders(operand: str, form: str) -> dict[tuple[int, int, int], tuple[int, int]]:
    """(pair of quads, row, column) to the (lane, element) that holds it."""
    elements = quad_fragment(operand, form)
    return {
        (quad_pair(lane), row, column): (lane, i) for lane, held in enumerate(elements.tolist()) for i, (row, column) in enumerate(held)
    }


@functools.cache
def _factors(a_layout: str, b_layout: str, d_type: str) -> tuple[tuple[tuple[Place, Place], ...], ...]:
    """For each element of D and each k: where its factors of A and B come from."""
    of_a, of_b, d = _holders("a", a_layout), _holders("b", b_layout), quad_fragment("d", d_type)

    def places(number: int, k: int) -> tuple[Place, Place]:
        rows, columns = d[:, number, 0].tolist(), d[:, number, 1].tolist()
        a = tuple(of_a[quad_pair(lane), row, k] for lane, row in enumerate(rows))
        b = tuple(of_b[quad_pair(lane), k, column] for lane, column in enumerate(columns))
        return a, b

    return tuple(tuple(places(number, k) for k in range(DEPTH)) for number in range(d.shape[1]))


class Spread:
    """Elements of a fragment brought to the lanes that need them, each arrangement made once."""

    def __init__(self, elements: Sequence[Lanes]) -> None:
        self.elements = elements
        self._made: dict[Place, Lanes] = {}

    def __getitem__(self, place: Place) -> Lanes:
        if place not in self._made:
            lanes, numbers = zip(*place)
            first, *others = sorted(set(numbers))
            value = permute(self.elements[first], lanes)
            for number in others:
                chosen = const([int(n == number) for n in numbers], like=value, type_="u32") != 0
                value = where(chosen, permute(self.elements[number], lanes), value)
            self._made[place] = value
        return self._made[place]


def quad_multiply(
    layouts: tuple[str, str], types: tuple[str, str], a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes], arch: int
) -> list[Lanes]:
    """The elements of D as f32 values, from those of A, B and C.

    layouts: of A and of B. types: of D and of C; an f16 D is to be rounded by the caller.
    Raises: NotModelled for other targets; before sm_80 tensor cores compute it in their own way.
    """
    if arch not in ARCHS:
        raise NotModelled(f"mma.m8n8k4 of f16 on sm_{arch} is not modelled; known: {', '.join(f'sm_{a}' for a in ARCHS)}")
    d_type, c_type = types
    left, right, of_c = Spread(a), Spread(b), Spread(c)
    held = _holders("c", c_type)
    result = []
    for number, factors in enumerate(_factors(*layouts, d_type)):
        at = quad_fragment("d", d_type)[:, number].tolist()
        value = of_c[tuple(held[quad_pair(lane), row, column] for lane, (row, column) in enumerate(at))]
        pairs = [(left[x], right[y]) for x, y in factors]
        if d_type == "f32":
            sum_ = const(0.0, like=value)
            for x, y in pairs:
                sum_ = fma(x, y, sum_)
            value = value + sum_
        else:
            for (x, y), (x2, y2) in (pairs[:2], pairs[2:]):
                value = value + fma(x2, y2, x * y)
        result.append(ieee.canonical(value))
    return result
