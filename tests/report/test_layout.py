"""Layouts as data: every name is complete, both ways agree, names are found, the hand-over of fa_v21 is the kernel's own."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from fasim import kernels
from fasim.errors import UsageError
from fasim.isa.rows import ROWS
from fasim.report.layout import Selection, blocks, parse_element, select
from fasim.report.layout_catalog import catalog, find
from fasim.report.layout_figure import FILLS, INK
from fasim.report.layout_hand_over import HAND_OVER_MMA, hand_over, side_by_side
from tests.report.fragments import elements_of

NAMES = list(catalog())


def fragments(name, operand=None):
    """All fragments of a layout, or one."""
    return find(name)[0].fragments(operand)


def test_every_row_that_spreads_a_matrix_has_one_layout():
    spread = [
        name
        for name, row in ROWS.items()
        if row.kind in ("ldmatrix", "stmatrix") or (row.kind == "collective" and name.startswith(("mma.", "wmma.mma.")))
    ]
    counted = Counter(mnemonic for entry in catalog().values() for mnemonic in entry.mnemonics)
    assert sorted(counted) == sorted(spread) and set(counted.values()) == {1}
    # all that an mma, a wmma, an ldmatrix and a stmatrix may be called, at the time of writing
    assert (len(NAMES), len(spread)) == (89, sum(len(entry.mnemonics) for entry in catalog().values()))


@pytest.mark.parametrize("name", NAMES)
def test_fragments_fill_their_registers_and_hold_everything_equally_often(name):
    row = ROWS[find(name)[0].mnemonics[0]]
    declared = {arg.name.upper(): arg for arg in (*row.sources, *row.dests) if arg.count}
    for each in fragments(name):
        arg = declared.get(each.operands[0]) or next(iter(declared.values()))
        assert (each.registers, each.register_bits) == (arg.count, 64 if arg.type_ == "f64" else 32)
        slots = [(cell.lane, cell.register, cell.low_bit) for cell in each.cells]
        wanted = [
            (lane, reg, bit)
            for lane in range(32)
            for reg in range(each.registers)
            for bit in range(0, each.register_bits, each.element_bits)
        ]
        assert slots == wanted
        held = Counter((cell.matrix, cell.row, cell.column) for cell in each.cells)
        assert len(held) == each.matrices * each.rows * each.columns and len(set(held.values())) == 1


@pytest.mark.parametrize("name", NAMES)
def test_blocks_are_what_stands_in_a_register(name):
    for each in fragments(name):
        grid = blocks(each)
        assert grid.height * grid.width == each.elements_per_register
        assert (grid.rows * grid.height, grid.columns * grid.width) == (each.rows, each.columns)
        assert len(grid.holders) == each.matrices * grid.rows * grid.columns
        for cell in each.cells:
            assert (cell.lane, cell.register) in grid.holders[cell.matrix, cell.row // grid.height, cell.column // grid.width]


def test_elements_that_are_not_neighbours_stand_alone():
    (held,) = fragments("mma.m16n8k16.f16", "A")
    cells = tuple(replace(cell, column=(cell.column * 3) % 16) for cell in held.cells)
    grid = blocks(replace(held, cells=cells))
    assert (grid.height, grid.width, len(grid.holders)) == (1, 1, 256)


# from the figures of the PTX manual: (name, operand, matrix, row, column) to (lane, register, lowest bit)
MANUAL = [
    (("mma.m16n8k16.f16", "A", 0, 5, 3), (21, 0, 16)),
    (("mma.m16n8k16.f16", "A", 0, 1, 14), (7, 2, 0)),
    (("mma.m16n8k16.f16", "B", 0, 12, 1), (6, 1, 0)),
    (("mma.m16n8k16.f16", "D", 0, 9, 4), (6, 2, 0)),
    (("mma.m16n8k16.f16.f16.f16.f16", "D", 0, 9, 5), (6, 1, 16)),
    (("mma.m16n8k32.s8", "A", 0, 9, 19), (4, 3, 24)),
    (("mma.m16n8k8.tf32", "B", 0, 6, 1), (6, 1, 0)),
    (("mma.m8n8k4.f64", "A", 0, 1, 2), (6, 0, 0)),
    (("mma.m16n8k256.b1", "A", 0, 8, 255), (3, 3, 31)),
    (("mma.m8n8k4.row.col.f16", "A", 1, 6, 3), (22, 1, 16)),
    (("mma.m8n8k4.row.col.f16", "D", 3, 5, 7), (31, 5, 0)),
    (("ldmatrix.x4", "R", 2, 5, 3), (21, 2, 16)),
    (("ldmatrix.x4.trans", "R", 2, 5, 3), (14, 2, 16)),
    (("stmatrix.x2", "R", 1, 7, 0), (28, 1, 0)),
    (("stmatrix.x2.trans", "R", 1, 7, 0), (3, 1, 16)),
]


@pytest.mark.parametrize(("where", "holder"), MANUAL)
def test_as_the_manual_draws_it(where, holder):
    name, operand, *element = where
    (held,) = select(name, fragments(name, operand), Selection(element=tuple(element)))
    assert [(cell.lane, cell.register, cell.low_bit) for cell in held.cells] == [holder]
    lane, register, _ = holder
    (back,) = select(name, fragments(name, operand), Selection(lane=lane, register=register))
    assert tuple(element) in [(cell.matrix, cell.row, cell.column) for cell in back.cells]


@pytest.mark.parametrize(
    ("written", "name", "operand"),
    [
        ("MMA.m16n8k16.F16 ", "mma.m16n8k16.f16", None),
        ("mma.m16n8k16.f32.f16.f16.f32", "mma.m16n8k16.f16", None),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma.m16n8k16.f16", None),
        ("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32", "mma.m16n8k32.s32.s8.u8.s32", None),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "ldmatrix.x4.trans", None),
        ("stmatrix.sync.aligned.m8n8.x1.b16", "stmatrix.x1", None),
        ("wmma.load.b.sync.aligned.col.m16n16k16.shared.f16", "wmma.m16n16k16.f16", "B"),
        ("wmma.load.c.sync.aligned.row.m16n16k16.f16", "wmma.m16n16k16.f16.f16.f16.f16", "C"),
        ("wmma.store.d.sync.aligned.row.m16n16k8.f32", "wmma.m16n16k8.tf32", "D"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32", "wmma.m16n16k16.f16.f16.f16.f32", None),
    ],
)
def test_names(written, name, operand):
    entry, said = find(written)
    assert (entry.name, said) == (name, operand)


def test_every_access_of_wmma_has_the_registers_of_its_layout():
    for name, row in ROWS.items():
        if row.kind in ("wmma_load", "wmma_store"):
            entry, operand = find(name)
            (held,) = entry.fragments(operand)
            arg = row.dests[0] if row.kind == "wmma_load" else row.sources[1]
            assert (held.registers, held.type) == (arg.count, row.attributes["element"]), name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mma.m16n8k16.f61", "near names: mma.m16n8k16.f64"),
        ("mma.m16n8k16", "write one of: mma.m16n8k16.s8, "),
        ("add.f32", "does not spread a matrix"),
        ("", "for example mma.m16n8k16.f16"),
    ],
)
def test_names_that_do_not_exist(name, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        find(name)


@pytest.mark.parametrize(("text", "element"), [("5,3", (5, 3)), (" 1, 5,3", (1, 5, 3))])
def test_elements(text, element):
    assert parse_element(text) == element


@pytest.mark.parametrize("text", ["5", "5,", "5,-3", "1,2,3,4", "a,b", "", "5;3", "²,1"])
def test_elements_that_are_none(text):
    with pytest.raises(UsageError, match="write ROW,COLUMN"):
        parse_element(text)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (Selection(element=(16, 0)), "in A rows 0 to 15, columns 0 to 15; in B rows 0 to 15, columns 0 to 7"),
        (Selection(element=(1, 0, 0)), "in A rows"),
        (Selection(register=4), "it has A: a0 to a3; B: b0 to b1; C and D: c0 to c3"),
        (Selection(lane=32), "lanes 0 to 31"),
        (Selection(lane=-1), "lanes 0 to 31"),
        (Selection(element=(0, 0), lane=1), "give one or the other"),
    ],
)
def test_what_is_not_there(wanted, message):
    with pytest.raises(UsageError, match=re.escape(message)):
        select("mma.m16n8k16.f16", fragments("mma.m16n8k16.f16"), wanted)


def test_an_element_of_several_matrices_is_found_in_all_or_in_one():
    whole = fragments("ldmatrix.x4")
    assert [cell.register for cell in select("", whole, Selection(element=(5, 3)))[0].cells].count(2) == 1
    assert {cell.matrix for cell in select("", whole, Selection(element=(5, 3)))[0].cells} == {0, 1, 2, 3}
    assert len(select("", whole, Selection(element=(2, 5, 3)))[0].cells) == 1


def hand_over_of(name):
    (c,), (a,) = fragments(name, "C"), fragments(name, "A")
    return hand_over(side_by_side(c, a), a)


def test_the_hand_over_is_what_fa_v21_writes():
    source = kernels.load("fa_v21").path.read_text()
    pattern = r"p_frag\[mi\]\[kp\]\[(\d)\] = pack_half2\(s\[mi\]\[2 \* kp( \+ 1)?\]\[(\d)\], s\[mi\]\[2 \* kp( \+ 1)?\]\[(\d)\]\);"
    written = set()
    for register, block, low, other, high in re.findall(pattern, source):
        written |= {(int(register), 0, int(bool(block)), int(low)), (int(register), 16, int(bool(other)), int(high))}
    moves = hand_over_of(HAND_OVER_MMA)
    assert len(moves) == 8 and {(move.register, move.low_bit, move.block, move.from_register) for move in moves} == written


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mma.m16n8k32.s8", r"element \(0, 2\) is in lane 1 as a result and in lane 0"),
        ("mma.m16n8k8.tf32", "shuffles"),
        ("mma.m16n8k4.tf32", "do not make up"),
    ],
)
def test_no_hand_over_where_elements_change_lanes(name, message):
    with pytest.raises(UsageError, match=message):
        hand_over_of(name)


def test_hand_over_of_a_smaller_step():
    assert [(m.register, m.low_bit, m.block, m.from_register) for m in hand_over_of("mma.m16n8k8.bf16")] == [
        (0, 0, 0, 0), (0, 16, 0, 1), (1, 0, 0, 2), (1, 16, 0, 3),
    ]  # fmt: skip


def test_elements_come_back():
    (held,) = fragments("mma.m8n8k4.row.col.f16", "A")
    elements = elements_of(held)
    assert elements.shape == (32, 4, 3) and elements[4, 0].tolist() == [1, 0, 0] and elements.dtype == np.int64


def luminance(color):
    """Relative luminance, as WCAG 2 defines it."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear))


def test_text_is_readable_on_every_colour():
    assert len(set(FILLS)) == len(FILLS) == 8
    assert all((luminance(fill) + 0.05) / (luminance(INK) + 0.05) >= 7 for fill in FILLS)
