"""Contraction of a multiply and an add as the machine code has it."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim.ptx.contract import MachineLine, contract

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
.reg .f32 %f<9>; .reg .f64 %d<9>; .reg .b16 %h<9>; .reg .pred %p<2>; .reg .b64 %rd<3>;
ld.param.u64 %rd1, [p];
"""
TAIL = "\nret;\n}\n"
FIRST = 7  # the line of the first instruction of a body

# what: body, machine code by line of the body, the line that is written instead (None: nothing is contracted)
CASES = {
    "add": ("mul.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;", {2: ["FFMA R5, R1, R2, R4"]}, "{ fma.rn.f32 %f5, %f1, %f2, %f4; }"),
    "add, second": ("mul.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f4, %f3;", {2: ["FFMA R5, R1, R2, R4"]}, "{ fma.rn.f32 %f5, %f1, %f2, %f4; }"),
    "flushed": (
        "mul.ftz.f32 %f3, %f1, %f2;\nadd.ftz.sat.f32 %f5, %f3, %f4;",
        {2: ["FFMA.FTZ.SAT R5, R1, R2, R4"]},
        "{ fma.rn.ftz.sat.f32 %f5, %f1, %f2, %f4; }",
    ),
    "guard": (
        "mul.f64 %d3, %d1, %d2;\n@%p1 add.f64 %d5, %d3, %d4;",
        {2: ["@P0 DFMA R5, R1, R2, R4"]},
        "{ @%p1 fma.rn.f64 %d5, %d1, %d2, %d4; }",
    ),
    "a b - c": (
        "mul.f16 %h3, %h1, %h2;\nsub.f16 %h5, %h3, %h4;",
        {2: ["HFMA2 R5, R1.H0_H0, R2.H0_H0, -R4.H0_H0"]},
        "{ .reg .b16 %contracted8; neg.f16 %contracted8, %h4; fma.rn.f16 %h5, %h1, %h2, %contracted8; }",
    ),
    "c - a b": (
        "mul.f32 %f3, %f1, %f2;\nsub.f32 %f5, %f4, %f3;",
        {2: ["FFMA R5, -R1, R2, R4"]},
        "{ .reg .f32 %contracted8; neg.f32 %contracted8, %f1; fma.rn.f32 %f5, %contracted8, %f2, %f4; }",
    ),
    "two products, the one that is gone": (
        "mul.f32 %f3, %f1, %f2;\nmul.f32 %f4, %f1, %f1;\nadd.f32 %f5, %f3, %f4;",
        {1: ["FMUL R3, R1, R2"], 3: ["FFMA R5, R1, R1, R3"]},
        "{ fma.rn.f32 %f5, %f1, %f1, %f3; }",
    ),
    "two products, by sign": (
        "mul.f32 %f3, %f1, %f2;\nmul.f32 %f4, %f1, %f1;\nsub.f32 %f5, %f3, %f4;",
        {3: ["FFMA R5, -R1, R1, R3"]},
        "{ .reg .f32 %contracted9; neg.f32 %contracted9, %f1; fma.rn.f32 %f5, %contracted9, %f1, %f3; }",
    ),
    "rounding": ("mul.rn.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;", {2: ["FFMA R5, R1, R2, R4"]}, None),
    "rounded sum": ("mul.f32 %f3, %f1, %f2;\nadd.rn.f32 %f5, %f3, %f4;", {2: ["FFMA R5, R1, R2, R4"]}, None),
    "not fused": ("mul.f32 %f3, %f1, %f2;\nadd.f32 %f5, %f3, %f4;", {1: ["FMUL R3, R1, R2"], 2: ["FADD R5, R3, R4"]}, None),
    "factor overwritten": ("mul.f32 %f3, %f1, %f2;\nmov.f32 %f1, %f4;\nadd.f32 %f5, %f3, %f4;", {3: ["FFMA R5, R1, R2, R4"]}, None),
    "product of another block": (
        "mul.f32 %f3, %f1, %f2;\n$L:\nadd.f32 %f5, %f3, %f4;\nmov.f32 %f3, %f5;",
        {3: ["FFMA R5, R1, R2, R4"]},
        None,
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_one_addition(what):
    body, machine, expected = CASES[what]
    made = [MachineLine(text, FIRST + number - 1) for number, texts in machine.items() for text in texts]
    ptx = HEAD + body + TAIL
    new, found = contract(ptx, made)
    if expected is None:
        assert (new, found) == (ptx, [])
        return
    (one,) = found
    assert new.splitlines()[one.ptx_line - 1] == expected
    changed = [number for number, (old, line) in enumerate(zip(ptx.splitlines(), new.splitlines()), 1) if old != line]
    assert changed == [one.ptx_line] and len(new.splitlines()) == len(ptx.splitlines())


def test_registers_belong_to_their_function():
    other = HEAD.replace("entry k", "entry other") + "mul.f32 %f3, %f8, %f8;\nmul.f32 %f4, %f8, %f8;" + TAIL
    ptx = other + ".visible" + (HEAD + CASES["add"][0] + TAIL).split(".visible")[1]
    line = next(number for number, text in enumerate(ptx.splitlines(), 1) if text.startswith("add"))
    assert len(contract(ptx, [MachineLine("FFMA R5, R1, R2, R4", line)])[1]) == 1


def test_what_is_contracted_rounds_once():
    body = "ld.global.f32 %f1, [%rd1];\nmul.f32 %f3, %f1, %f1;\nsub.f32 %f5, %f3, 0f3F800000;\nst.global.f32 [%rd1+4], %f5;"
    ptx = HEAD + body + TAIL
    x = np.float32(1 + 2.0**-12)
    results = {}
    for name, text in {"apart": ptx, "contracted": contract(ptx, [MachineLine("FFMA R5, R1, R1, -1", FIRST + 2)])[0]}.items():
        values = np.array([x, 0], np.float32)
        fasim.compile(text).kernel("k").launch(1, 1, [values])
        results[name] = values[1]
    exact = float(x) ** 2 - 1
    assert results["contracted"] == np.float32(exact) and results["apart"] == np.float32(x * x) - np.float32(1) != results["contracted"]
