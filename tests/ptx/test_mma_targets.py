"""mma and wmma by target: what a target does not have, or does in a way that is not known, is refused before anything runs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fasim
from fasim.errors import NotModelled, UnsupportedInstruction
from fasim.isa.rows import ROWS
from fasim.numerics.mma import STEPS

UNKNOWN = ("sm_87", "sm_103", "sm_110", "sm_121")
F16 = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};"
BF16 = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};"
TF32 = "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r3}, {%f1, %f2, %f3, %f4};"
K16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r1, %r2}, {%r3, %r3}, {%f1, %f2, %f3, %f4};"
QUADS = "mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16 {%r4, %r5, %r6, %r7}, {%r1, %r2}, {%r3, %r3}, {%r4, %r5, %r6, %r7};"
INTEGER = "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r4, %r5}, {%r1}, {%r3}, {%r4, %r5};"
F = ", ".join(f"%f{i}" for i in range(1, 9))
WMMA = f"wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32 {{{F}}}, {{%r1, %r2, %r1, %r2}}, {{%r3, %r3, %r3, %r3}}, {{{F}}};"


def module(statement: str, arch: str) -> fasim.Module:
    text = f""".version 8.8
.target {arch}
.address_size 64
.visible .entry k(.param .u64 p)
{{
    .reg .b64 %rd<3>; .reg .b32 %r<8>; .reg .f32 %f<9>;
    ld.param.u64 %rd1, [p];
    mov.b32 %r1, 0x01010101; mov.b32 %r2, %r1; mov.b32 %r3, %r1; mov.b32 %r4, 5; mov.b32 %r5, 5; mov.b32 %r6, 5; mov.b32 %r7, 5;
    {" ".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(1, 9))}
    {statement}
    st.global.b32 [%rd1], %r4;
    ret;
}}
"""
    return fasim.compile(text, arch=arch)


@pytest.mark.parametrize("arch", UNKNOWN)
@pytest.mark.parametrize("statement", [F16, BF16, TF32, K16, WMMA], ids=lambda text: text.split()[0])
def test_unknown_arithmetic(statement: str, arch: str) -> None:
    with pytest.raises(UnsupportedInstruction) as caught:
        module(statement, arch).kernel("k")
    text = str(caught.value)
    assert re.match(r"<ptx>:10\b", text)
    assert statement.split()[0] in text
    assert text.endswith(f"its arithmetic on {arch} is not modelled; known: sm_80, sm_86, sm_89, sm_90, sm_100, sm_120")


@pytest.mark.parametrize("statement", [BF16, TF32, K16, WMMA], ids=lambda text: text.split()[0])
def test_too_new_for_turing(statement: str) -> None:
    with pytest.raises(UnsupportedInstruction) as caught:
        module(statement, "sm_75").kernel("k")
    assert str(caught.value).endswith(f"{statement.split()[0]} needs sm_80, the target is sm_75")


@pytest.mark.parametrize("statement", [F16, QUADS], ids=lambda text: text.split()[0])
def test_tensor_cores_of_turing(statement: str) -> None:
    with pytest.raises(NotModelled, match="its arithmetic on sm_75 is not modelled; known: sm_80"):
        module(statement, "sm_75").kernel("k")


@pytest.mark.parametrize("backend", ["reference", "jit"])
@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", *UNKNOWN])
def test_integers_are_the_same_everywhere(arch: str, backend: str) -> None:
    result = np.zeros(1, np.uint32)
    module(INTEGER, arch).kernel("k").launch(1, 32, [result], backend=backend)
    assert result[0] == 16 + 5


@pytest.mark.parametrize("arch", ["sm_80", "sm_90", "sm_120", *UNKNOWN])
def test_quad_pairs_are_the_same_since_ampere(arch: str) -> None:
    """0x0101 is 257 * 2^-24: four squares vanish beside the accumulator, which comes back."""
    result = np.zeros(1, np.uint32)
    module(QUADS, arch).kernel("k").launch(1, 32, [result])
    assert result[0] == 5


def test_every_row_that_depends_on_the_target_says_which_it_knows() -> None:
    rows = [row for row in ROWS.values() if any(arg.name == "arch" for arg in row.sources)]
    assert rows
    for row in rows:
        assert set(row.attributes["archs"]) >= set(STEPS), row.name
