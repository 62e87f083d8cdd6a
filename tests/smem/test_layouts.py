"""Layouts are bijections, and those of CuTe: the package tensor-layouts is the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import tensor_layouts as cute
from hypothesis import given
from hypothesis import strategies as st

from fasim.errors import UsageError
from fasim.smem.layouts import Layout, Linear, Padded, Swizzle, Swizzled

swizzles = st.integers(0, 5).flatmap(
    lambda bits: st.builds(
        Swizzle, st.just(bits), st.integers(0, 8), st.builds(lambda s, sign: s * sign, st.integers(bits, 9), st.sampled_from((1, -1)))
    )
)


@st.composite
def layouts(draw) -> Layout:
    element_bytes = draw(st.sampled_from((1, 2, 4, 8, 16, 12)))
    rows, row_bytes = draw(st.integers(1, 40)), draw(st.integers(1, 40)) * element_bytes
    kind = draw(st.sampled_from((Linear, Padded, Swizzled)))
    if kind is Linear:
        return Linear(rows, row_bytes, element_bytes)
    if kind is Padded:
        return Padded(rows, row_bytes, element_bytes, draw(st.integers(0, 4)) * element_bytes)
    swizzle = draw(swizzles)
    if swizzle.bits and (1 << swizzle.base) % element_bytes:
        swizzle = Swizzle(swizzle.bits, 4, swizzle.shift)
        element_bytes = 16
        row_bytes = -(-row_bytes // 16) * 16
    return Swizzled(rows, row_bytes, element_bytes, swizzle)


@given(swizzles, st.integers(0, (1 << 24) - 1))
def test_swizzle_is_that_of_the_oracle_and_its_own_inverse(swizzle, offset):
    assert swizzle(offset) == cute.Swizzle(swizzle.bits, swizzle.base, swizzle.shift)(offset)
    assert swizzle(swizzle(offset)) == offset
    assert isinstance(swizzle(offset), int)
    assert swizzle(np.array([offset, 0])).tolist() == [swizzle(offset), 0]


@given(swizzles, st.integers(0, 3))
def test_swizzle_permutes_its_blocks_and_keeps_pieces_whole(swizzle, block):
    size = min(swizzle.block_bytes, 1 << 14)
    if size == swizzle.block_bytes:
        offsets = np.arange(block * size, (block + 1) * size)
        assert np.array_equal(np.sort(swizzle(offsets)), offsets)
    piece = np.arange(1 << swizzle.base) + (block << swizzle.base)
    assert np.array_equal(np.diff(swizzle(piece)), np.ones(len(piece) - 1))
    offsets = np.arange(0, 1 << 16, 4)
    moved = swizzle(offsets + block * swizzle.period_bytes)
    assert np.array_equal(moved, swizzle(offsets) + block * swizzle.period_bytes)


@given(layouts())
def test_layout_is_a_bijection(layout):
    offsets = layout.offsets()
    assert offsets.shape == (layout.rows, layout.columns)
    assert len(np.unique(offsets)) == offsets.size
    assert offsets.min() >= 0 and offsets.max() + layout.element_bytes <= layout.size_bytes
    rows, columns = layout.coordinate(offsets)
    assert np.array_equal(rows, np.indices(offsets.shape)[0]) and np.array_equal(columns, np.indices(offsets.shape)[1])
    last_bytes = layout.coordinate(offsets + layout.element_bytes - 1)
    assert np.array_equal(last_bytes[0], rows) and np.array_equal(last_bytes[1], columns)
    # every other byte of the buffer belongs to no element
    free = np.setdiff1d(np.arange(layout.size_bytes), (offsets[..., None] + np.arange(layout.element_bytes)).ravel())
    assert free.size == layout.extra_bytes
    for offset in free[:3].tolist():
        with pytest.raises(UsageError, match=f"no element is at offset {offset}"):
            layout.coordinate(offset)


@given(layouts())
def test_layout_is_that_of_the_oracle(layout):
    theirs = cute.Layout((layout.rows, layout.columns), (layout.pitch_bytes, layout.element_bytes))
    if isinstance(layout, Swizzled):
        theirs = cute.compose(cute.Swizzle(layout.swizzle.bits, layout.swizzle.base, layout.swizzle.shift), theirs)
    for row in {0, layout.rows // 2, layout.rows - 1}:
        assert [layout.offset(row, column) for column in range(layout.columns)] == [theirs(row, c) for c in range(layout.columns)]


@pytest.mark.parametrize(
    ("layout", "name", "size", "extra", "offset_of_5_3"),
    [
        (Linear(32, 128, 16), "(32,8):(128,16)", 4096, 0, 5 * 128 + 48),
        (Padded(32, 128, 16, 16), "(32,8):(144,16)", 4608, 512, 5 * 144 + 48),
        (Padded(32, 128, 4, 4), "(32,32):(132,4)", 4224, 128, 5 * 132 + 12),
        (Swizzled(32, 128, 16, Swizzle(3, 4, 3)), "Swizzle<3,4,3> o (32,8):(128,16)", 4096, 0, 5 * 128 + (3 ^ 5) * 16),
        (Swizzled(32, 256, 16, Swizzle(3, 4, 4)), "Swizzle<3,4,4> o (32,16):(256,16)", 8192, 0, 5 * 256 + (3 ^ 5) * 16),
        (Swizzled(7, 80, 16, Swizzle(2, 4, 3)), "Swizzle<2,4,3> o (7,5):(80,16)", 576, 16, 448 ^ 48),
        (Swizzled(7, 64, 4, Swizzle(1, 4, -2)), "Swizzle<1,4,-2> o (7,16):(64,4)", 512, 64, 332),
    ],
)
def test_names_sizes_and_places(layout, name, size, extra, offset_of_5_3):
    assert (layout.name, repr(layout), layout.size_bytes, layout.extra_bytes) == (name, name, size, extra)
    assert layout.offset(5, 3) == offset_of_5_3
    assert layout.coordinate(offset_of_5_3) == (5, 3)


@pytest.mark.parametrize("text", ["Swizzle<3,4,3>", " Sw< 3, 4 ,3 > "])
def test_notation_is_read(text):
    assert Swizzle.parse(text) == Swizzle(3, 4, 3) == Swizzle(np.int64(3), 4, 3)
    assert (Swizzle(3, 4, 3).name, Swizzle(3, 4, 3).block_bytes, Swizzle(3, 4, 3).period_bytes) == ("Swizzle<3,4,3>", 128, 1024)
    assert Swizzle.parse("Swizzle<1,2,-3>") == Swizzle(1, 2, -3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Swizzle(3, 4, 2), r"Swizzle<3,4,2>: \|S\| is at least B"),
        (lambda: Swizzle(1, 4, 0), r"\|S\| is at least B"),
        (lambda: Swizzle(2, 4, -1), r"\|S\| is at least B"),
        (lambda: Swizzle(-1, 4, 3), "B and M are at least 0"),
        (lambda: Swizzle(1, -1, 3), "B and M are at least 0"),
        (lambda: Swizzle(1, 2.5, 3), "base is a whole number, got 2.5"),
        (lambda: Swizzle.parse("Swizzle<3,4>"), r"'Swizzle<3,4>' is no swizzle: write Swizzle<B,M,S>"),
        (lambda: Linear(0, 128), "rows is a positive whole number, got 0"),
        (lambda: Linear(4, 130, 4), "rows of 130 bytes are not whole elements of 4 bytes"),
        (lambda: Padded(4, 128, 16, 8), "padding of 8 bytes is not whole elements of 16 bytes"),
        (lambda: Padded(4, 128, 16, -16), "padding of -16 bytes"),
        (lambda: Swizzled(4, 128, 16, Swizzle(3, 2, 3)), "Swizzle<3,2,3> moves pieces of 4 bytes and would tear"),
        (lambda: Swizzled(4, 120, 12, Swizzle(1, 4, 3)), "would tear elements of 12 bytes apart"),
        (lambda: Linear(4, 128, 16).offset(4, 0), r"\(4,8\):\(128,16\): row 4 is outside of 0 to 3"),
        (lambda: Linear(4, 128, 16).offset(np.array([0, 1]), np.array([0, -1])), "column -1 is outside of 0 to 7"),
        (lambda: Linear(4, 128, 16).coordinate(512), "offset 512 is outside of 0 to 511"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


@pytest.mark.parametrize("swizzle", [Swizzle(3, 4, 3), Swizzle(5, 2, 5), Swizzle(2, 4, -3), Swizzle(0, 4, 3)])
def test_the_formula_says_what_it_does(swizzle):
    for offset in (0, 4, 128, 1000, 4095):
        assert eval(swizzle.formula, {"offset": offset}) == swizzle(offset)
