"""Operands and instructions one by one."""

from __future__ import annotations

import pytest

from fasim.errors import NotModelled, PtxError
from fasim.ptx.tree import Address, Call, FloatImmediate, Immediate, Operand, Pair, Register, Sink, Symbol, Vector

from .samples import instruction, kernel, operand

R1, R2 = Register("%r1", "b32"), Register("%r2", "b32")
RD1 = Register("%rd1", "b64")
V = tuple(Register(f"v.{axis}", "f32") for axis in "xyzw")
TILE, G, OUT = Symbol("tile", 0, "variable"), Symbol("g", 0, "variable"), Symbol("out", 0, "param")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%r1", R1),
        ("b", Register("b", "b32")),
        ("%r007", Register("%r7", "b32")),
        ("%tid.x", Register("%tid.x", "u32", True)),
        ("%cluster_ctaid.z", Register("%cluster_ctaid.z", "u32", True)),
        ("%laneid", Register("%laneid", "u32", True)),
        ("%clock64", Register("%clock64", "u64", True)),
        ("%lanemask_lt", Register("%lanemask_lt", "u32", True)),
        ("%envreg31", Register("%envreg31", "b32", True)),
        ("%tid", Vector(tuple(Register(f"%tid.{axis}", "u32", True) for axis in "xyzw"))),
        ("!%p1", Register("%p1", "pred", negated=True)),
        ("! %p1", Register("%p1", "pred", negated=True)),
        ("v", Vector(V)),
        ("v.x", V[0]),
        ("v.w", V[3]),
        ("v.g", V[1]),
        ("w2.y", Register("w2.y", "b32")),
        ("%r1.b3", Register("%r1", "b32", selector="b3")),
        ("%r1.h1", Register("%r1", "b32", selector="h1")),
        ("0", Immediate(0)),
        ("-4", Immediate(-4)),
        ("0xFF", Immediate(255)),
        ("0XfU", Immediate(15, "u64")),
        ("017", Immediate(15)),
        ("0b101", Immediate(5)),
        ("4294967295U", Immediate(4294967295, "u64")),
        ("0xffffffffffffffff", Immediate(2**64 - 1, "u64")),
        ("123456789012345678901", None),
        ("WARP_SZ", Immediate(32)),
        ("WARP_SZ - 1", Immediate(31)),
        ("(1+2)*4", Immediate(12)),
        ("!0", Immediate(1)),
        ("~1", Immediate(2**64 - 2, "u64")),
        ("0f3f800000", FloatImmediate(0x3F800000, "f32")),
        ("0d4000000000000000", FloatImmediate(0x4000000000000000, "f64")),
        ("_", Sink()),
        ("{%r1, %r2}", Vector((R1, R2))),
        ("{ %r1 , _ , 3 }", Vector((R1, Sink(), Immediate(3)))),
        ("%r1|%p2", Pair(R1, Register("%p2", "pred"))),
        ("%p1 | %p2", Pair(Register("%p1", "pred"), Register("%p2", "pred"))),
        ("_|%p2", Pair(Sink(), Register("%p2", "pred"))),
        ("%p1|_", Pair(Register("%p1", "pred"), Sink())),
        ("g", G),
        ("g+8", Symbol("g", 8, "variable")),
        ("g + -8", Symbol("g", -8, "variable")),
        ("tile", TILE),
        ("out", OUT),
        ("k", Symbol("k", 0, "function")),
        ("[%rd1]", Address(RD1)),
        ("[%rd1+4]", Address(RD1, 4)),
        ("[ %rd1 + 0 ]", Address(RD1, 0)),
        ("[%rd1+-16]", Address(RD1, -16)),
        ("[%rd1+0x10]", Address(RD1, 16)),
        ("[%rd1+(1+3)*4]", Address(RD1, 16)),
        ("[%rd1+4+4]", Address(RD1, 8)),
        ("[tile]", Address(TILE)),
        ("[tile+12]", Address(TILE, 12)),
        ("[g+ 12]", Address(G, 12)),
        ("[out]", Address(OUT)),
        ("[16]", Address(Immediate(16))),
        ("[16+4]", Address(Immediate(20))),
        ("[%rd1, {%r1, %r2}]", Address(RD1, 0, (Vector((R1, R2)),))),
        ("[ %rd1 + 8, { %r1 } ]", Address(RD1, 8, (Vector((R1,)),))),
        ("[%rd1, %r1, %r2]", Address(RD1, 0, (R1, R2))),
    ],
)
def test_operand(text: str, expected: Operand | None) -> None:
    if expected is None:
        with pytest.raises(PtxError, match="does not fit into 64 bits"):
            operand(text)
    else:
        assert operand(text) == expected
        # The second time the operand comes out of the table of operands seen before.
        first, second = kernel(f"mov.b32 a, {text};\nmov.b32 a, {text};", before=".global .u32 g[8];").instructions
        assert first.operands == second.operands


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("%r20", "'%r20' is neither a declared register nor a special register"),
        ("%tid.q", "expected an element of '%tid'"),
        ("%x", "'%x' is neither"),
        ("nothing", "'nothing' is not declared"),
        ("nothing+4", "'nothing' is not declared"),
        ("w0.z", "expected an element of 'w0': .x to .y"),
        ("%r1.x", "'%r1' is not a vector register"),
        ("!%q", "'%q' is neither"),
        ("!tile", "expected a register"),
        ("-%r1", "found '%r1', expected a constant"),
        ("{%r1, %r2", "expected '}' or ',' in the vector"),
        ("{}", "found '}', expected an operand"),
        ("%r1|4", "found '4', expected a register"),
        ("%r1|", "found ';', expected a register"),
        ("[%rd1-4]", "write [%rd1+-4]"),
        ("[g-4]", "write g+-4"),
        ("g-4", "write g+-4"),
        ("[4+%rd1]", "found '%rd1', expected a constant"),
        ("[g+%rd1]", "found '%rd1', expected a constant"),
        ("[%rd1+1.5]", "expected an integer offset"),
        ("[v]", "'v' cannot be the base of an address"),
        ("[%rd1", "found ';', expected ']'"),
        ("[]", "found ']', expected a register, a variable or an integer"),
        ("[%rd1+]", "found ']', expected a constant"),
        ("", "found ';', expected an operand"),
        ("%r1 %r2", "found '%r2', expected ',' or ';'"),
        ("%r1,", "found ';', expected an operand"),
        ("'a'", "expected an operand"),
        ('"a"', "expected an operand"),
        ("08", "found '08', expected an operand"),
        ("12ab", "found '12ab', expected an operand"),
        ("1.5.2", "expected an operand"),
    ],
)
def test_operand_errors(text: str, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        operand(text)
    assert message in str(caught.value)
    assert "t.ptx:" in str(caught.value)


def test_index_behind_a_name_is_named() -> None:
    with pytest.raises(NotModelled, match=r"t\.ptx:\d+:\d+: an index behind a name is not modelled"):
        operand("g[2]")


@pytest.mark.parametrize(
    ("text", "opcode", "modifiers", "operands", "guard"),
    [
        ("ret;", "ret", (), 0, None),
        ("cp.async.commit_group ;", "cp", ("async", "commit_group"), 0, None),
        ("ld.global .v2 \n .f32 {%f0, %f1}, [%rd1];", "ld", ("global", "v2", "f32"), 2, None),
        ("bar.sync 0;", "bar", ("sync",), 1, None),
        ("ld.global.nc.L1::no_allocate.L2::128B.v4.f32 {%f0,%f1,%f2,%f3}, [%rd1];", "ld",
         ("global", "nc", "L1::no_allocate", "L2::128B", "v4", "f32"), 2, None),
        ("@%p1 ld.global.v4.b32 { %r1, %r2, %r3, %r4 }, [ %rd1 + 0 ];", "ld", ("global", "v4", "b32"), 2, ("%p1", False)),
        ("@!%p1\n\tst.global.b32 [%rd1], 0f3f800000;", "st", ("global", "b32"), 2, ("%p1", True)),
        ("@ ! %p1 mov.b32 a, b;", "mov", ("b32",), 2, ("%p1", True)),
        ("setp.eq.and.s32 %p1|%p2, a, b, !%p3;", "setp", ("eq", "and", "s32"), 4, None),
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0,%f1,%f2,%f3}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, {%f0,%f1,%f2,%f3};", "mma",
         ("sync", "aligned", "m16n8k16", "row", "col", "f32", "f16", "f16", "f32"), 4, None),
        ("mbarrier.arrive.expect_tx.shared::cta.b64 _, [tile], 16;", "mbarrier", ("arrive", "expect_tx", "shared::cta", "b64"), 3, None),
        ("tex.2d.v4.f32.s32 {%f0, %f1, %f2, %f3}, [%rd1, {%r1, %r2}];", "tex", ("2d", "v4", "f32", "s32"), 2, None),
        ("add.s32 /* one */ a, // two\n b, (1\n+ 2);", "add", ("s32",), 3, None),
    ],
)  # fmt: skip
def test_instruction(text: str, opcode: str, modifiers: tuple[str, ...], operands: int, guard: tuple[str, bool] | None) -> None:
    found = instruction(text)
    assert (found.opcode, found.modifiers, len(found.operands)) == (opcode, modifiers, operands)
    assert found.mnemonic == ".".join((opcode, *modifiers))
    assert found.guard == (None if guard is None else Register(guard[0], "pred", negated=guard[1]))
    assert "\n" not in found.text and found.text.endswith(";")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("call f;", Call(Symbol("f", 0, "function"))),
        ("call f, (a, 3);", Call(Symbol("f", 0, "function"), (), (Register("a", "b32"), Immediate(3)))),
        ("call.uni (a), f;", Call(Symbol("f", 0, "function"), (Register("a", "b32"),))),
        ("call (a), f, (b);", Call(Symbol("f", 0, "function"), (Register("a", "b32"),), (Register("b", "b32"),))),
        ("call.uni (a), \n f,\n(\nb\n)\n;", Call(Symbol("f", 0, "function"), (Register("a", "b32"),), (Register("b", "b32"),))),
        ("call (a), %rd1, (b), proto;", Call(RD1, (Register("a", "b32"),), (Register("b", "b32"),), Symbol("proto", 0, "label"))),
        ("call %rd1, table;", Call(RD1, (), (), Symbol("table", 0, "label"))),
        ("call %rd1, (), proto;", Call(RD1, (), (), Symbol("proto", 0, "label"))),
    ],
)
def test_call(text: str, expected: Call) -> None:
    before = ".func f();"
    labels = "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\ntable: .calltargets f;\n"
    (found,) = kernel(labels + text, before=before).instructions
    assert found.operands == (expected,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("call %rd1;", "needs a .callprototype or .calltargets"),
        ("call g;", "'g' is not declared"),
        ("call (a) f;", "found 'f', expected ','"),
        ("call f, (a;", "found ';', expected ',' or ')'"),
        ("call v, (a), p;", "'v' cannot be called"),
        ("call f, (a), a;", "'a' does not label"),
    ],
)
def test_call_errors(text: str, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        kernel(text, before=".func f();")
    assert message in str(caught.value)
