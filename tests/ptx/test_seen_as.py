"""The types that instructions take registers for."""

from __future__ import annotations

import pytest

import fasim

# instruction: the registers that it names, with the types
SEEN = {
    "add.s32 %r1, %r2, %r3;": {"%r1": "s32", "%r2": "s32"},
    "mov.u32 %r1, %tid.x;": {"%r1": "u32"},
    "mov.b32 %r1, %r2;": {"%r1": "b32", "%r2": "b32"},
    "mad.lo.s32 %r1, %r2, %r3, %r4;": {"%r1": "s32", "%r4": "s32"},
    "mul.wide.s32 %d1, %r2, %r3;": {"%d1": "s64", "%r2": "s32"},
    "mad.wide.u32 %d1, %r2, %r3, %d2;": {"%d1": "u64", "%r2": "u32", "%d2": "u64"},
    "setp.lt.s32 %p1, %r1, %r2;": {"%p1": "pred", "%r1": "s32"},
    "cvt.rn.f32.s32 %f1, %r1;": {"%f1": "f32", "%r1": "s32"},
    "cvt.rzi.s32.f32 %r1, %f1;": {"%r1": "s32", "%f1": "f32"},
    "cvt.s64.s32 %d1, %r1;": {"%d1": "s64", "%r1": "s32"},
    "cvt.s32.s8 %r1, %r2;": {"%r1": "s32", "%r2": "s8"},
    "ld.global.u32 %r1, [%d1];": {"%r1": "u32", "%d1": "b64"},
    "ld.shared.u32 %r1, [%r2];": {"%r1": "u32", "%r2": "b32"},
    "ld.global.s8 %h1, [%d1];": {"%h1": "s16"},
    "st.shared.s32 [%r1], %r2;": {"%r1": "b32", "%r2": "s32"},
    "st.global.u8 [%d1], %h1;": {"%h1": "u8"},
    "st.global.v2.f32 [%d1], {%r1, %r2};": {"%r1": "f32", "%r2": "f32"},
    "shr.s64 %d1, %d2, %r1;": {"%d1": "s64", "%d2": "s64", "%r1": "u32"},
    "and.b32 %r1, %r2, %r3;": {"%r1": "b32", "%r2": "b32"},
    "popc.b32 %r1, %r2;": {"%r1": "u32", "%r2": "b32"},
    "cvta.to.global.u64 %d1, %d2;": {"%d1": "b64", "%d2": "b64"},
    "add.f16x2 %r1, %r2, %r3;": {"%r1": "f16x2", "%r2": "f16x2"},
    "set.lt.u32.f32 %r1, %f1, %f2;": {"%r1": "u32", "%f1": "f32"},
    "dp4a.s32.s32 %r1, %r2, %r3, %r4;": {"%r1": "b32", "%r2": "b32"},
}


@pytest.fixture(scope="module")
def seen() -> dict[str, dict[str, str]]:
    body = "\n".join(f"  {text}" for text in SEEN)
    ptx = (
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n  .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .b16 %h<3>; "
        f".reg .f32 %f<3>; .reg .pred %p<2>;\n{body}\n  ret;\n}}\n"
    )
    kernel = fasim.compile(ptx).kernel("k")
    found: dict[str, dict[str, str]] = {}
    for pc, operands in enumerate(kernel.register_names.operands):
        text = " ".join(kernel.program.source_at(pc).text.split())
        found.setdefault(text, {}).update({each.name: each.seen_as for each in operands if not each.name.startswith("~")})
    return found


@pytest.mark.parametrize("text", SEEN)
def test_types(text: str, seen: dict[str, dict[str, str]]) -> None:
    assert SEEN[text].items() <= seen[text].items()
