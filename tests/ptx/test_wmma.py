"""CUDA's <mma.h> from source to result: every shape, type and layout, in global, shared and generic memory, against integer matrices."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass

import numpy as np
import pytest

import fasim
from fasim.isa.rows import ROWS
from fasim.numerics.fragments import ELEMENT_BITS, sizes
from tests.matrices import encode

CPP = {
    "f16": ("half", "half"),
    "bf16": ("__nv_bfloat16", "__nv_bfloat16"),
    "tf32": ("precision::tf32", "float"),
    "f64": ("double", "double"),
    "s8": ("signed char", "signed char"),
    "u8": ("unsigned char", "unsigned char"),
    "s4": ("experimental::precision::s4", "unsigned"),
    "u4": ("experimental::precision::u4", "unsigned"),
    "b1": ("experimental::precision::b1", "unsigned"),
    "f32": ("float", "float"),
    "s32": ("int", "int"),
}
HEAD = """#include <mma.h>
using namespace nvcuda::wmma;
template <class F, class X> __device__ void finish(F& d, X factor) { for (int i = 0; i < d.num_elements; i++) d.x[i] = d.x[i] * factor; }
"""
PADDING = 64  # elements after each row, and before the first: keeps the alignment that wmma asks for


@dataclass(frozen=True)
class Wmma:
    shape: str
    type_: str
    acc: str
    a: str
    b: str
    d: str
    variant: str = ""

    @property
    def name(self) -> str:
        return "_".join(filter(None, (self.shape, self.type_, self.acc, self.a, self.b, self.d, self.variant)))

    def extent(self, operand: str) -> tuple[int, int, int]:
        """Lines of a matrix in memory, their length, and their distance, in elements."""
        m, n, k = sizes(self.shape)
        rows, columns, layout = {"a": (m, k, self.a), "b": (k, n, self.b), "c": (m, n, self.d)}[operand]
        lines, length = (rows, columns) if layout == "row" else (columns, rows)
        wide = 128 if self.type_ == "b1" and operand != "c" else PADDING
        return lines, length, length + wide

    def stored(self, operand: str) -> int:
        """Size of a matrix in memory, in elements of its C++ type."""
        lines, _, stride = self.extent(operand)
        bits = ELEMENT_BITS[self.acc if operand == "c" else self.type_]
        return stride * (lines + 1) * bits // max(bits, 32 if bits < 8 else bits)

    def source(self) -> str:
        m, n, k = sizes(self.shape)
        (t, s), (acc, _) = CPP[self.type_], CPP[self.acc]
        a, b, c = (self.extent(x) for x in "abc")
        size_a, size_b, size_c = (self.stored(x) for x in "abc")
        first = {x: self.extent(x)[2] * self.stored(x) // (self.extent(x)[2] * (self.extent(x)[0] + 1)) for x in "abc"}
        mma = "mma_sync(d, a, b, c" + (", true)" if self.variant == "satfinite" else ")")
        if self.type_ == "b1":
            mma = f"bmma_sync(d, a, b, c, experimental::bmmaBitOp{self.variant.upper()}, experimental::bmmaAccumulateOpPOPC)"

        def product(pointers: str, target: str) -> str:
            pa, pb, pc = pointers.split()
            return f"""load_matrix_sync(a, {pa} + {first["a"]}, {a[2]}); load_matrix_sync(b, {pb} + {first["b"]}, {b[2]});
    load_matrix_sync(c, {pc} + {first["c"]}, {c[2]}, mem_{self.d}_major); {mma}; finish(d, ({acc})2.0f);
    store_matrix_sync({target} + {first["c"]}, d, {c[2]}, mem_{self.d}_major);"""

        return f"""extern "C" __global__ void {self.name}(const {s}* A, const {s}* B, const {acc}* C, {acc}* D, int which) {{
    __shared__ __align__(32) {s} sa[{size_a}], sb[{size_b}];
    __shared__ __align__(32) {acc} sc[{size_c}], sd[{size_c}];
    for (int i = threadIdx.x; i < {size_a}; i += 32) sa[i] = A[i];
    for (int i = threadIdx.x; i < {size_b}; i += 32) sb[i] = B[i];
    for (int i = threadIdx.x; i < {size_c}; i += 32) sc[i] = C[i], sd[i] = D[i];
    __syncthreads();
    fragment<matrix_a, {m}, {n}, {k}, {t}, {self.a}_major> a;
    fragment<matrix_b, {m}, {n}, {k}, {t}, {self.b}_major> b;
    fragment<accumulator, {m}, {n}, {k}, {acc}> c, d;
    {product("A B C", "D")}
    {product("sa sb sc", "sd")}
    __syncthreads();
    for (int i = threadIdx.x; i < {size_c}; i += 32) D[{size_c} + i] = sd[i];
    __syncthreads();
#pragma unroll 1
    for (int w = 0; w < 2; w++) {{
        const {s} *pa = w == which ? A : sa, *pb = w != which ? B : sb;
        const {acc}* pc = w == which ? C : sc;
        {acc}* pd = w == which ? D + {2 * size_c} : sd;
        {product("pa pb pc", "pd")}
    }}
    __syncthreads();
    for (int i = threadIdx.x; i < {size_c}; i += 32) D[{3 * size_c} + i] = sd[i];
}}
"""


LAYOUTS = ("row", "col")
BOTH = list(itertools.product(LAYOUTS, repeat=2))
SHAPES = ("m16n16k16", "m32n8k16", "m8n32k16")


def _cases() -> list[Wmma]:
    found = []
    turn = itertools.cycle(LAYOUTS)
    for type_, acc in (("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("s8", "s32"), ("u8", "s32")):
        found += [Wmma(shape, type_, acc, a, b, d) for shape, d in zip(SHAPES, ("row", "col", "row")) for a, b in BOTH]
    found += [Wmma("m16n16k8", "tf32", "f32", a, b, next(turn)) for a, b in BOTH]
    found += [Wmma("m8n8k4", "f64", "f64", a, b, next(turn)) for a, b in BOTH]
    found += [Wmma("m16n16k16", t, "s32", "row", "col", "col", "satfinite") for t in ("s8", "u8")]
    found += [Wmma("m8n8k32", t, "s32", "row", "col", d) for t in ("s4", "u4") for d in LAYOUTS]
    found += [Wmma("m8n8k32", "s4", "s32", "row", "col", "row", "satfinite")]
    found += [Wmma("m8n8k128", "b1", "s32", "row", "col", d, v) for d, v in zip(LAYOUTS, ("xor", "and"))]
    return found


CASES = _cases()


@functools.cache
def module(type_: str, acc: str) -> fasim.Module:
    """The kernels of one pair of types: a module is parsed once for each kernel that is lowered."""
    return fasim.compile(HEAD + "".join(case.source() for case in CASES if (case.type_, case.acc) == (type_, acc)), arch="sm_90")


def limits(type_: str) -> tuple[int, int]:
    """The range of numbers to draw: what the type holds, or small integers."""
    if type_[0] in "su" or type_ == "b1":
        bits = ELEMENT_BITS[type_]
        return (-(1 << (bits - 1)), 1 << (bits - 1)) if type_[0] == "s" else (0, 1 << bits)
    return -4, 5


def laid_out(case: Wmma, operand: str, matrix: np.ndarray, fill: int) -> np.ndarray:
    """A matrix as it lies in memory, one element after a line of padding."""
    layout = {"a": case.a, "b": case.b, "c": case.d}[operand]
    type_ = case.acc if operand == "c" else case.type_
    lines, length, stride = case.extent(operand)
    elements = np.full((lines + 1, stride), fill, np.uint64)
    elements[1:, :length] = encode(matrix if layout == "row" else matrix.T, type_)
    bits, flat = ELEMENT_BITS[type_], elements.ravel()
    if bits < 8:
        per_word = 32 // bits
        shifts = np.arange(per_word, dtype=np.uint64) * np.uint64(bits)
        words = (flat.reshape(-1, per_word) & np.uint64((1 << bits) - 1)) << shifts
        return words.sum(axis=1, dtype=np.uint64).astype(np.uint32)
    return flat.astype(f"u{bits // 8}")


@pytest.mark.parametrize("backend", ["reference", "jit"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wmma(case: Wmma, backend: str) -> None:
    rng = np.random.default_rng(len(case.name))
    m, n, k = sizes(case.shape)
    low, high = limits(case.type_)
    a, b = rng.integers(low, high, (m, k)), rng.integers(low, high, (k, n))
    c = rng.integers(-50, 50, (m, n))
    pairs = a[:, :, None] ^ b[None] if case.variant == "xor" else a[:, :, None] * b[None]
    d = pairs.sum(axis=1) + c
    if case.variant == "satfinite":
        c[0], c[1] = 2**31 - 1, -(2**31)
        d = (a @ b + c).clip(-(2**31), 2**31 - 1)
        assert (d[0] == 2**31 - 1).any()
    expected = (2 * d).astype(np.int32).astype(np.int64)
    memory = [laid_out(case, x, matrix, 3) for x, matrix in (("a", a), ("b", b), ("c", c))]
    untouched = laid_out(case, "c", np.zeros((m, n), np.int64), 7)
    results = np.tile(untouched, 4)
    kernel = module(case.type_, case.acc).kernel(case.name)
    kernel.launch(1, 32, [*memory, results, 1], backend=backend)
    want = laid_out(case, "c", expected, 7)
    for copy, got in zip(("global", "shared", "generic, global", "generic, shared"), results.reshape(4, -1)):
        assert np.array_equal(got, want), copy


def test_every_shape_and_type_of_wmma_is_here() -> None:
    ptx = "".join(module(*types).ptx for types in dict.fromkeys((case.type_, case.acc) for case in CASES))
    used = set(re.findall(r"\bwmma\.mma\.[\w.]+", ptx))
    mixed = ("f32.f16", "f16.f32")  # C and D of two types: <mma.h> has them, tests.isa.test_mma checks them
    rounded = re.compile(r"\.r[nzmp]\b")  # <mma.h> writes .f64.rn
    missing = {
        name
        for name in ROWS
        if name.startswith("wmma.mma")
        and name not in used
        and not name.endswith(mixed)
        and not name.endswith("satfinite")
        and not rounded.search(name)
    }
    assert {rounded.sub("", name) for name in missing} <= {rounded.sub("", name) for name in used}
    assert {".global.", ".shared."} <= {x for x in (".global.", ".shared.") if f"{x}f16" in ptx}


# --- what CUDA C++ does not write --------------------------------------------------------------------------------------------------
PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q)
{{
    .reg .b64 %rd<4>; .reg .b32 %r<12>; .reg .pred %p<2>;
    .shared .align 32 .b8 tile[1024];
    ld.param.u64 %rd1, [p];
    ld.param.u64 %rd2, [q];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r9, tile;
{body}
    ret;
}}
"""
FILL = """    mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 32; add.u64 %rd3, %rd3, %rd1; mad.lo.u32 %r2, %r1, 32, %r9;
    ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd3]; st.shared.v4.b32 [%r2], {%r3, %r4, %r5, %r6};
    ld.global.v4.b32 {%r3, %r4, %r5, %r6}, [%rd3+16]; st.shared.v4.b32 [%r2+16], {%r3, %r4, %r5, %r6};
    bar.sync 0;
"""
REGISTERS = "{%r1, %r2, %r3, %r4, %r5, %r6, %r7, %r8}"
BODIES = {
    "no_stride": f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {REGISTERS}, [%rd1];",
    "stride_in_a_destination": f"mov.u32 %r1, 16; wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {REGISTERS}, [%rd1], %r1;",
    "immediate_stride": f"wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {REGISTERS}, [%rd1], 16;",
    "shared_32_bit_address": f"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {REGISTERS}, [%r9], 16;",
    "shared_address_in_a_destination": f"mov.u32 %r5, %r9; wmma.load.c.sync.aligned.row.m16n16k16.shared::cta.f32 {REGISTERS}, [%r5], 16;",
    "shared_symbol": f"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {REGISTERS}, [tile], 16;",
    "offset": f"add.u64 %rd1, %rd1, -64; wmma.load.c.sync.aligned.row.m16n16k16.global.f32 {REGISTERS}, [%rd1+64], 16;",
}


@pytest.mark.parametrize("backend", ["reference", "jit"])
@pytest.mark.parametrize("body", BODIES)
def test_forms_of_addresses(body: str, backend: str) -> None:
    """A matrix through registers and back, transposed."""
    store = f"wmma.store.d.sync.aligned.col.m16n16k16.global.f32 [%rd2], {REGISTERS};"
    text = PTX.format(body=f"{FILL}    {BODIES[body]}\n    {store}")
    matrix, result = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32)
    fasim.compile(text, arch="sm_90").kernel("k").launch(1, 32, [matrix, result], backend=backend)
    assert np.array_equal(result, matrix.T)
