"""The text of instructions as opcode, guard and operands, and their control bits."""

from __future__ import annotations

import pytest

from fasim.errors import FasimError
from fasim.sass.control import Control, control
from fasim.sass.listing import SassLine
from fasim.sass.syntax import PT, RZ, URZ, Address, Constant, Label, Name, Number, Predicate, Register, parse

ONE = 0x3F800000 << 32
TABLE = [
    (
        "@!P0 FADD R1, -R2.reuse, |R3|",
        Predicate(0, negated=True),
        [Register(1), Register(2, negated=True, parts=("reuse",)), Register(3, absolute=True)],
    ),
    (
        "@UP1 UIADD3 UR6, UR5, -UR7, URZ",
        Predicate(1, True),
        [Register(6, True), Register(5, True), Register(7, True, negated=True), Register(URZ, True)],
    ),
    ("IADD3 R4, P0, R4, 0x10, RZ", None, [Register(4), Predicate(0), Register(4), Number(16), Register(RZ)]),
    (
        "IADD3.X R5, ~R5, -0x1, RZ, P1, !PT",
        None,
        [Register(5), Register(5, inverted=True), Number(-1), Register(RZ), Predicate(1), Predicate(PT, negated=True)],
    ),
    ("FMUL R0, R1, 1", None, [Register(0), Register(1), Number(0x3F800000, True)]),
    ("FSEL R0, R1, -INF , P4", None, [Register(0), Register(1), Number(0x3F800000, True), Predicate(4)]),
    ("HFMA2.MMA R3, -RZ, RZ, 1.5, -0.25", None, [Register(3), Register(RZ, negated=True), Register(RZ), Number(0x3F800000, True)]),
    ("HADD2.F32 R10, -RZ, R4.H0_H0", None, [Register(10), Register(RZ, negated=True), Register(4, parts=("H0_H0",))]),
    ("LDC.64 R2, c[0x4][R0]", None, [Register(2), Constant(4, 0, Register(0))]),
    ("FADD R0, -|c[0x0][0x210]|, R1", None, [Register(0), Constant(0, 0x210, None, True, True), Register(1)]),
    ("LDG.E R0, desc[UR4][R2.64+-0x8]", None, [Register(0), Address(Register(2, parts=("64",)), None, -8, 4)]),
    ("LDSM.16.MT88.4 R20, [R2+UR4+0x100]", None, [Register(20), Address(Register(2), Register(4, True), 0x100)]),
    ("@!PT LDS RZ, [RZ]", Predicate(PT, negated=True), [Register(RZ), Address(Register(RZ), None, 0)]),
    ("STS [UR7], R3", None, [Address(None, Register(7, True), 0), Register(3)]),
    ("RET.REL.NODEC R4 `(kernel)", None, [Register(4), Label("kernel")]),
    ("BSSY B0, `(.L_x_3)", None, [Name("B0"), Label(".L_x_3")]),
    ("S2R R0, SR_TID.X", None, [Register(0), Name("SR_TID.X")]),
    ("DEPBAR.LE SB0, 0x1", None, [Name("SB0"), Number(1)]),
    ("DEPBAR.LE SB0, 0x0, {2,1}", None, [Name("SB0"), Number(0), Name("{2,1}")]),
    ("P2R R9, PR, RZ, 0x8", None, [Register(9), Name("PR"), Register(RZ), Number(8)]),
    ("EXIT", None, []),
]


@pytest.mark.parametrize(("text", "guard", "operands"), TABLE, ids=[text for text, _, _ in TABLE])
def test_operands(text, guard, operands):
    found = parse(SassLine(0x40, text, encoding=ONE))
    assert (found.guard, list(found.operands)) == (guard, operands)
    assert found.mnemonic == text.split("@")[-1].split(" ", 1)[-1 if guard else 0].split(" ")[0]


def test_what_is_not_understood_says_where():
    with pytest.raises(FasimError, match=r"machine code at 0x40: 'FADD R1, R2, \?3': the operand '\?3' is not understood"):
        parse(SassLine(0x40, "FADD R1, R2, ?3"))


def test_control_bits():
    # HMMA.16816.F32 R12, R4, R8, RZ as ptxas 13.0 spaces it: waits for scoreboard 0, stalls 8 cycles, keeps its first operand
    encoding = 8 << 105 | 1 << 109 | 7 << 110 | 7 << 113 | 1 << 116 | 1 << 122
    assert control(encoding) == Control(8, False, -1, -1, 1, 1)
    assert control(2 << 105 | 3 << 110 | 5 << 113 | 0x21 << 116) == Control(2, True, 3, 5, 0x21, 0)
