"""The fragment tables: complete, and as the PTX manual draws them."""

import numpy as np
import pytest

from fasim.errors import UsageError
from fasim.numerics.fragments import (
    ELEMENT_BITS,
    MMA_SHAPES,
    WMMA_SHAPES,
    fragment_elements,
    locate,
    matrix_size,
    sizes,
    sources,
    wmma_fragment_elements,
)

MMA = [(shape, type_) for type_, shapes in MMA_SHAPES.items() for shape in shapes]
WMMA = [(shape, type_) for type_, shapes in WMMA_SHAPES.items() for shape in shapes]


@pytest.mark.parametrize("operand", "abcd")
@pytest.mark.parametrize("shape, type_", MMA)
def test_mma_fragments_are_bijections(shape, type_, operand):
    elements = fragment_elements(shape, operand, type_)
    rows, columns = matrix_size(shape, operand)
    flat = elements[..., 0] * columns + elements[..., 1]
    assert sorted(flat.ravel()) == list(range(rows * columns))


@pytest.mark.parametrize("operand", "abcd")
@pytest.mark.parametrize("shape, type_", WMMA)
def test_wmma_fragments_hold_every_element_equally_often(shape, type_, operand):
    elements = wmma_fragment_elements(shape, operand, type_)
    rows, columns = matrix_size(shape, operand)
    held = np.bincount((elements[..., 0] * columns + elements[..., 1]).ravel(), minlength=rows * columns)
    times = 16 * 32 // (rows * columns) if type_ == "f16" and operand in "ab" else 1
    assert (held == times).all()
    assert elements.shape == (32, rows * columns * times // 32, 2)


# (shape, operand, type, lane, element) to (row, column), read off the figures of the PTX manual
MANUAL = [
    (("m16n8k16", "a", "f16", 0, 0), (0, 0)),
    (("m16n8k16", "a", "f16", 5, 1), (1, 3)),
    (("m16n8k16", "a", "f16", 5, 2), (9, 2)),
    (("m16n8k16", "a", "f16", 31, 7), (15, 15)),
    (("m16n8k16", "a", "f16", 31, 4), (7, 14)),
    (("m16n8k16", "b", "f16", 6, 1), (5, 1)),
    (("m16n8k16", "b", "f16", 6, 2), (12, 1)),
    (("m16n8k16", "d", "f16", 6, 1), (1, 5)),
    (("m16n8k16", "d", "f16", 6, 2), (9, 4)),
    (("m16n8k8", "a", "bf16", 7, 3), (9, 7)),
    (("m16n8k8", "b", "bf16", 7, 1), (7, 1)),
    (("m16n8k4", "a", "tf32", 6, 1), (9, 2)),
    (("m16n8k8", "a", "tf32", 6, 1), (9, 2)),
    (("m16n8k8", "a", "tf32", 6, 2), (1, 6)),
    (("m16n8k8", "b", "tf32", 6, 1), (6, 1)),
    (("m8n8k4", "a", "f64", 6, 0), (1, 2)),
    (("m8n8k4", "b", "f64", 6, 0), (2, 1)),
    (("m8n8k4", "c", "f64", 6, 1), (1, 5)),
    (("m16n8k16", "a", "f64", 6, 3), (9, 6)),
    (("m8n8k16", "a", "s8", 6, 3), (1, 11)),
    (("m8n8k16", "b", "s8", 6, 3), (11, 1)),
    (("m16n8k16", "a", "s8", 6, 5), (9, 9)),
    (("m16n8k32", "a", "s8", 6, 5), (9, 9)),
    (("m16n8k32", "a", "s8", 6, 8), (1, 24)),
    (("m16n8k32", "b", "s8", 6, 7), (27, 1)),
    (("m16n8k64", "a", "s4", 6, 8), (9, 16)),
    (("m16n8k64", "a", "u4", 6, 31), (9, 55)),
    (("m16n8k64", "b", "s4", 6, 8), (48, 1)),
    (("m8n8k128", "a", "b1", 6, 31), (1, 95)),
    (("m16n8k256", "a", "b1", 6, 64), (1, 192)),
    (("m16n8k256", "b", "b1", 6, 33), (193, 1)),
]


@pytest.mark.parametrize("where, expected", MANUAL)
def test_manual(where, expected):
    shape, operand, type_, lane, number = where
    assert tuple(fragment_elements(shape, operand, type_)[lane, number]) == expected


# (shape, operand, type, register, offset of its first element), from the loads that ptxas makes of wmma.load for lane 0
PTXAS = [
    ("m16n16k16", "a", "f16", [(0, 0), (8, 0), (0, 8), (8, 8), (0, 0), (8, 0), (0, 8), (8, 8)]),
    ("m16n16k16", "b", "f16", [(0, 0), (8, 0), (0, 8), (8, 8), (0, 0), (8, 0), (0, 8), (8, 8)]),
    ("m32n8k16", "a", "f16", [(0, 0), (8, 0), (0, 8), (8, 8), (16, 0), (24, 0), (16, 8), (24, 8)]),
    ("m32n8k16", "b", "f16", [(0, 0), (8, 0)] * 4),
    ("m8n32k16", "a", "f16", [(0, 0), (0, 8)] * 4),
    ("m8n32k16", "b", "f16", [(0, 0), (0, 8), (8, 0), (8, 8), (0, 16), (0, 24), (8, 16), (8, 24)]),
    ("m8n32k16", "a", "bf16", [(0, 0), (0, 8)]),
    ("m16n16k16", "b", "s8", [(0, 0), (0, 8)]),
    ("m8n32k16", "b", "s8", [(0, 0), (0, 8), (0, 16), (0, 24)]),
    ("m16n16k8", "a", "tf32", [(0, 0), (8, 0), (0, 4), (8, 4)]),
    ("m16n16k8", "b", "tf32", [(0, 0), (4, 0), (0, 8), (4, 8)]),
]


@pytest.mark.parametrize("shape, operand, type_, first", PTXAS)
def test_wmma_registers_as_ptxas_loads_them(shape, operand, type_, first):
    per_register = 32 // ELEMENT_BITS[type_]
    elements = wmma_fragment_elements(shape, operand, type_)
    assert [tuple(x) for x in elements[0, ::per_register]] == first


def test_wmma_accumulators_as_ptxas_loads_them():
    lane6 = {shape: wmma_fragment_elements(shape, "c", "f16")[6].tolist() for shape in ("m16n16k16", "m8n32k16")}
    assert lane6["m16n16k16"] == [[1, 4], [1, 5], [9, 4], [9, 5], [1, 12], [1, 13], [9, 12], [9, 13]]
    assert lane6["m8n32k16"] == [[4, 1], [5, 1], [4, 9], [5, 9], [4, 17], [5, 17], [4, 25], [5, 25]]


@pytest.mark.parametrize("shape, type_", MMA)
def test_sources_name_the_factors(shape, type_):
    a, b, d = (fragment_elements(shape, x, type_) for x in "abd")
    for number, factors in enumerate(sources(shape, type_)):
        assert len(factors) == sizes(shape)[2]
        for k in (0, 1, len(factors) - 1):
            (of_a, a_lanes), (of_b, b_lanes) = factors[k]
            for lane in range(32):
                row, column = d[lane, number]
                assert tuple(a[a_lanes[lane], of_a]) == (row, k)
                assert tuple(b[b_lanes[lane], of_b]) == (k, column)


def test_locate_is_the_inverse():
    elements = fragment_elements("m16n8k16", "a", "f16")
    for position, (lane, number) in locate(elements).items():
        assert tuple(elements[lane, number]) == position


def test_unknown_shapes_are_named():
    with pytest.raises(UsageError, match="m16n8k8, m16n8k16"):
        fragment_elements("m16n8k32", "a", "f16")
    with pytest.raises(UsageError, match="types are"):
        fragment_elements("m16n8k32", "a", "f8")
    with pytest.raises(UsageError, match="m16n16k8"):
        wmma_fragment_elements("m16n16k16", "a", "tf32")
    with pytest.raises(UsageError, match="not a matrix shape"):
        sizes("16x8x16")
