"""Layouts of the operand pool: the offsets by which the machine reads are where the fields' values end up."""

from __future__ import annotations

from dataclasses import fields

import pytest

from fasim.isa import operands as o

MEMORY = o.Memory(*range(100, 108))
PART = o.Part(201, 202, 203)
SAMPLES = {
    "transfer": (
        o.Transfer(MEMORY, (o.DataRegister(1, 4), o.DataRegister(2, 8))),
        {o.P_SPACE: 100, o.P_BYTES: 101, o.P_OFFSET_HIGH: 107, o.P_REGISTERS + o.R_STRIDE: 2, o.P_REGISTERS + o.R_STRIDE + o.R_BYTES: 8},
    ),
    "atom": (
        o.Atom(MEMORY, (o.AtomElement(1, 2, 3, 4, 5, 6), o.AtomElement(11, 12, 13, 14, 15, 16, 17))),
        {o.A_ELEMENTS + o.A_OLD: 2, o.A_ELEMENTS + o.A_HANDLER: 4, o.A_ELEMENTS + o.A_STRIDE + o.A_DEST: 11},
    ),
    "matrix": (o.Matrix(MEMORY, 1, 2, (31, 32)), {o.M_TRANSPOSED: 1, o.M_COUNT: 2, o.M_REGISTERS + 4: 32}),
    "cp_async": (o.AsyncCopy(MEMORY, MEMORY, 5, -1), {o.Q_SOURCE + o.P_BYTES: 101, o.Q_SOURCE_SIZE: 5, o.Q_IGNORE: -1}),
    "brx": (o.IndexedBranch(7, 2, (8, 9)), {o.X_INDEX: 7, o.X_COUNT: 2, o.X_TARGETS + 4: 9}),
    "bar": (o.Barrier(0, 1, 2, 3, 4, 5, 6), {o.BAR_OP: 0, o.BAR_COUNT: 2, o.BAR_PREDICATE: 3, o.BAR_PC: 5, o.BAR_ALIGNED: 6}),
    "warp_sync": (o.WarpSync(6), {o.Y_MEMBERS: 6}),
    "clock": (o.Clock(1, 8, 32, 0), {o.T_DEST: 1, o.T_BYTES: 8, o.T_SHIFT: 32, o.T_LAUNCH_WIDE: 0}),
    "service": (o.Service(1, 1, 40, (16, 24)), {o.V_RETURNS: 1, o.V_ARGUMENTS: 1, o.V_FRAME: 40, o.V_SLOTS + 4: 24}),
    "call": (
        o.CallOperands(-1, 1, 2, 3, o.SavedRows(*range(50, 56)), 4, 5, (o.Parts(1, (PART,)), o.Parts(0, ()))),
        {
            **{o.K_FRAME: 2, o.K_SAVE32: 50, o.K_SAVE64: 52, o.K_COUNT_PREDICATES: 55, o.K_CALLEE_BYTES: 4, o.K_FORMAL_BYTES: 5},
            **{o.K_ARGUMENTS: 1, o.K_ARGUMENTS + o.PARTS_FIRST + o.PART_TARGET: 202, o.K_ARGUMENTS + o.PARTS_FIRST + o.PART_STRIDE: 0},
        },
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_machine_reads_what_lowering_wrote(name):
    block, expected = SAMPLES[name]
    pool = block.items()
    assert {at: pool[at // 4] for at in expected} == expected


@pytest.mark.parametrize("name", SAMPLES)
def test_a_block_inside_of_another_takes_the_words_that_the_layout_says(name):
    block, _ = SAMPLES[name]
    for each in fields(block):
        value = getattr(block, each.name)
        if isinstance(value, o.Operands):
            assert len(value.items()) == each.metadata["words"]
