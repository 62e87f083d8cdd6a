"""Floating-point atomics take the arithmetic of the memory that they hit, by the address where that is generic."""

from __future__ import annotations

import numpy as np
import pytest

import fasim

PTX = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b64 %rd<6>;
    .reg .b32 %r<6>;
    .reg .f32 %f<6>;
    .reg .pred %p<3>;
    .shared .align 4 .b8 s[128];
    ld.param.u64 %rd1, [out];
    cvta.to.global.u64 %rd1, %rd1;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd1, %rd1, %rd2;
    mov.u32 %r2, s;
    cvt.u32.u64 %r3, %rd2;
    add.u32 %r2, %r2, %r3;
    mov.u32 %r4, 1;
    st.shared.b32 [%r2], %r4;
    st.global.b32 [%rd1], %r4;
    cvt.u64.u32 %rd3, %r2;
    cvta.shared.u64 %rd3, %rd3;
    setp.lt.u32 %p1, %r1, 16;
    selp.b64 %rd4, %rd1, %rd3, %p1;
    setp.ne.u32 %p2, %r1, 3;
    mov.f32 %f1, 0f00000002;
    @%p2 OPERATION
    ld.shared.b32 %r5, [%r2];
    @!%p1 st.global.b32 [%rd1], %r5;
    ret;
}
"""


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize(
    "operation", ["red.add.f32 [%rd4], %f1;", "atom.add.f32 %f2, [%rd4], %f1;", "atom.gpu.relaxed.add.f32 %f2, [%rd4], %f1;"]
)
def test_subnormals_are_flushed_in_global_memory_alone(operation, backend):
    out = np.zeros(32, np.uint32)
    text = PTX.replace("OPERATION", operation.replace("atom.gpu.relaxed", "atom.relaxed.gpu"))
    fasim.compile(text).kernel("k").launch(1, 32, [out], backend=backend)
    assert out.tolist() == [0] * 3 + [1] + [0] * 12 + [3] * 16
