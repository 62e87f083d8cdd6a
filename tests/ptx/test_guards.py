"""Guards on what lowering turns into several operations: the lanes that do not take part keep what they have."""

from __future__ import annotations

import numpy as np
import pytest

import fasim

HEAD = ".version 8.1\n.target sm_90\n.address_size 64\n"
CALL = """
.func (.reg .u32 r) f (.reg .u32 a)
{
    .reg .u32 t;
    add.u32 r, a, 1;
    ret;
}
.visible .entry k(.param .u64 o)
{
    .reg .pred p; .reg .u32 t, x; .reg .u64 a, b;
    ld.param.u64 a, [o];
    mov.u32 t, %tid.x;
    mov.u32 x, 777;
    setp.lt.u32 p, t, 4;
    @p call (x), f, (t);
    mul.wide.u32 b, t, 4;
    add.u64 a, a, b;
    st.global.u32 [a], x;
    ret;
}
"""
CONVERT = """
.visible .entry k(.param .u64 o)
{
    .reg .pred p; .reg .u32 t, x; .reg .f32 f; .reg .u64 a, b;
    ld.param.u64 a, [o];
    mov.u32 t, %tid.x;
    mov.u32 x, 777;
    mov.f32 f, 0fC0A00000;
    setp.lt.u32 p, t, 4;
    @p cvt.rzi.s8.f32 x, f;
    mul.wide.u32 b, t, 4;
    add.u64 a, a, b;
    st.global.u32 [a], x;
    ret;
}
"""
VECTOR_ATOMIC = """
.visible .entry k(.param .u64 o)
{
    .reg .f32 a, b; .reg .u64 x;
    ld.param.u64 x, [o];
    mov.f32 a, 0f3F800000;
    mov.f32 b, 0f40000000;
    atom.global.add.v2.f32 {a, b}, [x], {b, a};
    st.global.v2.f32 [x + 8], {a, b};
    ret;
}
"""


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize("body, expected", [(CALL, [1, 2, 3, 4, 777, 777, 777, 777]), (CONVERT, [2**32 - 5] * 4 + [777] * 4)])
def test_lanes_without_the_guard_keep_their_value(body, expected, backend):
    out = np.zeros(8, np.uint32)
    fasim.compile(HEAD + body).kernel("k").launch(1, 8, [out], backend=backend)
    assert out.tolist() == expected


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_a_vector_atomic_whose_destinations_are_its_sources(backend):
    out = np.array([10, 20, 0, 0], np.float32)
    fasim.compile(HEAD + VECTOR_ATOMIC).kernel("k").launch(1, 1, [out], backend=backend)
    assert out.tolist() == [12, 21, 10, 20]
