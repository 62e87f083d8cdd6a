"""Parameters from the source text and from mangled names."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fasim.toolchain import compile_cuda, find_entry
from fasim.toolchain.names import parameter_types, split_parameters
from fasim.toolchain.signature import Declared, declared, refuses, signature, signed_range, variable_dtype

SOURCE = """
#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdint>
#include <cstddef>
using real = float;
typedef unsigned short bits_t;
struct Box { int a[3]; };
namespace ns { template <typename T, int N> struct Grid { T* data; }; }
__global__ void plain(const float* __restrict__ x, /* a comment, */ double *y, int n, unsigned m, bool b) {}
__global__ void small(half h, const __nv_bfloat16* q, half2 *r, int8_t *s, uint64_t t, size_t u, bits_t* v) {}
__global__ void own(real* x, Box box, Box* boxes, ns::Grid<float, 3> grid, float4* v, void* w, unsigned char* z, std::byte* e, float** p) {}
template <typename T, int N> __global__ void tmpl(const T* x, T scale, ns::Grid<T, N> g) {}
template __global__ void tmpl<double, 4>(const double*, double, ns::Grid<double, 4>);
template <typename... Ts> __global__ void pack(int n, Ts... rest) {}
template __global__ void pack<int*, float>(int, int*, float);
extern "C" __global__ void c_name(const real* x, half *y, bits_t* b, unsigned n) {}
__global__ void over(float* x, int n) {}
__global__ void over(int* values, int n);
__global__ void over(int* values, int n) {}
__global__ void array(float a[], const int b[4]) {}
namespace { __global__ void hidden(long long l, unsigned long long *ull, long k) {} }
"""

F, T = False, True
# name of the entry: name, type, dtype, pointer, const, vector, takes any bytes
WANT = {
    "plain": [("x", "const float *", "f32", T, T, F, F), ("y", "double *", "f64", T, F, F, F), ("n", "int", "i32", F, F, F, F),
              ("m", "unsigned", "u32", F, F, F, F), ("b", "bool", "bool", F, F, F, F)],
    "small": [("h", "half", "f16", F, F, F, F), ("q", "const __nv_bfloat16 *", "bf16", T, T, F, F), ("r", "half2 *", "f16", T, F, T, F),
              ("s", "int8_t *", "i8", T, F, F, F), ("t", "uint64_t", "u64", F, F, F, F), ("u", "size_t", "u64", F, F, F, F),
              ("v", "bits_t *", "u16", T, F, F, F)],
    "own": [("x", "real *", "f32", T, F, F, F), ("box", "Box", "", F, F, F, F), ("boxes", "Box *", "", T, F, F, F),
            ("grid", "ns::Grid<float, 3>", "", F, F, F, F), ("v", "float4 *", "f32", T, F, T, F), ("w", "void *", "", T, F, F, T),
            ("z", "unsigned char *", "u8", T, F, F, T), ("e", "std::byte *", "u8", T, F, F, T), ("p", "float **", "", T, F, F, F)],
    "tmpl<double,4>": [("x", "const double *", "f64", T, T, F, F), ("scale", "double", "f64", F, F, F, F),
                       ("g", "ns::Grid<double, 4>", "", F, F, F, F)],
    "pack": None,
    "c_name": [("x", "const real *", "f32", T, T, F, F), ("y", "half *", "f16", T, F, F, F), ("b", "bits_t *", "u16", T, F, F, F),
               ("n", "unsigned", "u32", F, F, F, F)],
    "over(float*, int)": [("x", "float *", "f32", T, F, F, F), ("n", "int", "i32", F, F, F, F)],
    "over(int *,int)": [("values", "int *", "i32", T, F, F, F), ("n", "int", "i32", F, F, F, F)],
    "array": [("a", "float *", "f32", T, F, F, F), ("b", "const int *", "i32", T, T, F, F)],
    "hidden": [("l", "long long", "i64", F, F, F, F), ("ull", "unsigned long long *", "u64", T, F, F, F), ("k", "long", "i64", F, F, F, F)],
}  # fmt: skip


@pytest.fixture(scope="module")
def ptx():
    return compile_cuda(SOURCE).ptx


def entry_of(ptx: str, name: str) -> tuple[str, int]:
    entry = find_entry(re.findall(r"\.entry\s+([\w$]+)", ptx), name)
    head = re.search(rf"\.entry\s+{re.escape(entry)}\((.*?)\)", ptx, re.DOTALL)
    assert head is not None
    return entry, head[1].count(".param")


@pytest.mark.parametrize("name", WANT)
def test_signature(ptx, name):
    entry, count = entry_of(ptx, name)
    got, want = signature(entry, count, SOURCE), WANT[name]
    assert got == (None if want is None else [Declared(*fields) for fields in want])


@pytest.mark.parametrize("name", ["plain", "small", "own", "tmpl<double,4>", "over(int *,int)", "array", "hidden"])
def test_the_mangled_name_alone_tells_the_same_types(ptx, name):
    entry, count = entry_of(ptx, name)
    got = signature(entry, count, None)
    assert [p.name for p in got] == [""] * count
    assert [(p.dtype, p.is_pointer, p.is_vector, p.takes_bytes) for p in got] == [(w[2], w[3], w[5], w[6]) for w in WANT[name]]


def test_what_cannot_be_known_is_none():
    assert signature("c_name", 1, None) is None
    assert signature("k", 2, 'extern "C" __global__ void k(float* x) {}') is None
    assert parameter_types("_Z4packIJPifEEviDpT_") is None
    assert parameter_types("_Z1kv") == []


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("k", ("k", None)),
        ("over(float*)", ("over", "float*")),
        ("k<(int)3>", ("k<(int)3>", None)),
        ("k<3>( f (*)(int) )", ("k<3>", "f (*)(int)")),
        ("k()", ("k", "")),
    ],
)
def test_split_parameters(text, parts):
    assert split_parameters(text) == parts


# type of a pointer, numpy types that pass, those that do not
POINTERS = [
    ("float*", "f4 u4 c8", "f8 f2 i4 i8 u8 u1 b1 c16"),
    ("const float4 *", "f4 u4", "f8 i4"),
    ("double *", "f8 u8", "f4 i8 u4"),
    ("half*", "f2 u2 i2", "f4 u4 i1"),
    ("__nv_bfloat16*", "u2 i2", "f2 f4"),
    ("unsigned short*", "u2 i2 f2", "f4 u4 i4"),
    ("unsigned*", "u4 i4 f2 u2", "f4 i2 u1 f8 u8"),
    ("const uint4*", "u4 i4 f2 u2", "f4 i2"),
    ("int*", "i4 u4", "f4 i8 u8 i2 f8"),
    ("long long*", "i8 u8", "f8 i4"),
    ("bool*", "b1 u1 i1", "i4 f4"),
    ("int8_t*", "i1 u1 b1", "i4 f4"),
    ("float2*", "f4 u4 c8", "c16"),
    ("void*", "f8 i1 c16", ""),
    ("unsigned char*", "f8 i1 f2", ""),
    ("uchar4*", "u4 f4", ""),
    ("Pair*", "f8 u1", ""),
    ("T*", "f8 u1", ""),
    ("float**", "u8 i8", ""),
]


@pytest.mark.parametrize(("type_", "passes", "fails"), POINTERS)
def test_which_buffers_a_pointer_takes(type_, passes, fails):
    parameter = declared(type_, "p")
    for name, want in [*((n, False) for n in passes.split()), *((n, True) for n in fails.split())]:
        dtype = np.dtype(name)
        assert refuses(parameter, dtype.kind, dtype.itemsize) == want, name


def test_ranges_of_signed_integers():
    assert signed_range(declared("const int", "n")) == (-(2**31), 2**31 - 1)
    assert signed_range(declared("char", "n")) == (-128, 127)
    for type_ in ("unsigned", "int *", "int2", "Index", "float", "bool"):
        assert signed_range(declared(type_, "n")) is None


def test_element_types_of_variables():
    text = """
__constant__ float w[4][2] = {{1}};
__device__ static unsigned int n;
using R = double;
__device__ R r{2};
struct S {};
__device__ S s;
__device__ int* p;
int host;
"""
    assert [variable_dtype(text, name) for name in ("w", "n", "r", "s", "p", "host", "none")] == ["f32", "u32", "f64", "", "", "", ""]
