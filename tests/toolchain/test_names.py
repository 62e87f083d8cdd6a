"""Plain names of mangled entries, and finding an entry by one."""

from __future__ import annotations

import re

import pytest

from fasim.errors import CompileError, UsageError
from fasim.toolchain import compile_cuda, find_entry, plain_name

MANGLED = [
    ("axpy", "axpy"),
    ("_Z4axpyPffi", "axpy"),
    ("_Z4gemmILi128ELi64EEvPKfS1_Pf", "gemm<128, 64>"),
    ("_ZN2ns1kEv", "ns::k"),
    ("_ZN1a1b1kIfLb1EEEvPT_", "a::b::k<float, true>"),
    ("_Z6reduceIfLj128E5MaxOpEvPKT_PS1_j", "reduce<float, 128u, MaxOp>"),
    ("_Z1kILin3EEvv", "k<-3>"),
    ("_Z1kIJifdEEvDpT_", "k<int, float, double>"),
    ("_Z1kIPKfRiEvT_T0_", "k<const float*, int&>"),
    ("_Z1kI4TileILi4EN2ns1SEEEvT_", "k<Tile<4, ns::S>>"),
    ("_Z1kIN2ns1AENS0_1BEEvv", "k<ns::A, ns::B>"),
    ("_Z1kIL4Mode2EEvv", "k<(Mode)2>"),
    ("_ZN36_GLOBAL__N__00000000_4_u_cu_ac54ceaa1mEv", "(anonymous)::m"),
    ("_ZL1kv", "k"),
    ("_Z1kIXadL_Z1fvEEEvv", "_Z1kIXadL_Z1fvEEEvv"),  # an expression: not read, so left alone
    ("_Zgarbage", "_Zgarbage"),
    ("_Z99k", "_Z99k"),
    ("", ""),
    ("_ZN1VC1Ef", "V::V"),
    ("_ZN1VD1Ev", "V::~V"),
    ("_ZN1VclEi", "V::operator()"),
]


@pytest.mark.parametrize(("mangled", "plain"), MANGLED)
def test_plain_name(mangled: str, plain: str) -> None:
    assert plain_name(mangled) == plain


def test_plain_names_of_what_the_compiler_mangles() -> None:
    """NVRTC is the oracle: the name it mangles must come back."""
    source = """
        namespace ns { struct S {}; template <class T> struct Box {}; enum E { A, B };
            template <class T, int N> __global__ void k(T *p) {} }
        template <class... T> __global__ void pack(T... x) {}
        template <unsigned N, bool B, char C, long L> __global__ void values() {}
        template <template <class> class T, class U> __global__ void higher(T<U> x) {}
    """
    wanted = [
        "ns::k<float, 3>",
        "ns::k<ns::S, -1>",
        "ns::k<ns::Box<ns::S>, 0>",
        "ns::k<ns::Box<ns::Box<int>>, 7>",
        "pack<int, ns::S*, const double*>",
        "pack<unsigned long long, signed char, ns::E>",
        "pack<>",
        "values<4u, false, (char)65, 9l>",
        "higher<ns::Box, ns::S>",
    ]
    for expression in wanted:
        module = compile_cuda(source, entry=expression)
        assert plain_name(module.lowered_names[expression]) == expression
        assert find_entry(re.findall(r"\.entry\s+(\w+)", module.ptx), expression) == module.lowered_names[expression]


ENTRIES = [
    "_Z1kPf",
    "_ZN2ns1kEPf",
    "_ZN2ns3subEv",
    "_Z4gemmILi128ELi64EEvPf",
    "_Z4gemmILi64ELi64EEvPf",
    "_Z5scaleILj32EEvPf",
    "_Z3addi",
    "_Z3addf",
    "plain",
    "_ZN2ns4tileILi1EEEvv",
    "_ZN2ns4tileILi2EEEvv",
]


@pytest.mark.parametrize(
    ("wanted", "entry"),
    [
        ("plain", "plain"),
        ("_Z1kPf", "_Z1kPf"),
        ("k", "_Z1kPf"),
        ("ns::k", "_ZN2ns1kEPf"),
        ("::k", "_Z1kPf"),
        ("sub", "_ZN2ns3subEv"),
        ("gemm<128,64>", "_Z4gemmILi128ELi64EEvPf"),
        ("gemm< 64 , 0x40 >", "_Z4gemmILi64ELi64EEvPf"),
        ("tile<2>", "_ZN2ns4tileILi2EEEvv"),
        ("scale", "_Z5scaleILj32EEvPf"),
        ("scale<32>", "_Z5scaleILj32EEvPf"),
        ("add(int)", "_Z3addi"),
        ("add( float )", "_Z3addf"),
        ("gemm<128,64>(float *)", "_Z4gemmILi128ELi64EEvPf"),
        ("ns::sub(void)", "_ZN2ns3subEv"),
    ],
)
def test_find_entry(wanted: str, entry: str) -> None:
    assert find_entry(ENTRIES, wanted) == entry


@pytest.mark.parametrize(
    ("names", "wanted", "message"),
    [
        (ENTRIES, "nothing", r"no kernel 'nothing'.*gemm<128, 64>.*ns::k"),
        (ENTRIES, "gemm", r"Several.*gemm<128, 64>, gemm<64, 64>"),
        (ENTRIES, "add", r"Several.*add\(float\), add\(int\)"),
        (ENTRIES, "add(double)", r"no kernel 'add\(double\)' \(did you mean add"),
        (ENTRIES, "plian", r"did you mean plain"),
        (ENTRIES, None, r"11 kernels.*plain"),
        ([], None, "no kernel"),
        ([], "k", "Kernels: none"),
    ],
)
def test_find_entry_refuses(names: list[str], wanted: str | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_entry(names, wanted)


def test_single_entry_needs_no_name() -> None:
    assert find_entry(["_Z1kPf", "_Z1kPf"], None) == "_Z1kPf"


TEMPLATE = "namespace q { template <int N, class T> __global__ void gemm(T *p) { p[0] = N; } }\n"


@pytest.mark.parametrize("entry", ["gemm<3, float>", "gemm<3, float>(float*)", "q::gemm<3,float>", " gemm<3,float>"])
def test_template_is_instantiated(entry: str) -> None:
    module = compile_cuda(TEMPLATE, entry=entry)
    assert module.lowered_names[entry] == "_ZN1q4gemmILi3EfEEvPT0_"
    assert ".entry _ZN1q4gemmILi3EfEEvPT0_" in module.ptx


@pytest.mark.parametrize(
    ("text", "entry", "error", "message"),
    [
        (TEMPLATE, None, UsageError, r"templates without an instance.*q::gemm \(template <int N, class T>\).*'q::gemm<..., ...>'"),
        (TEMPLATE, "gemm", UsageError, r"'gemm' is a template without an instance.*'q::gemm<..., ...>'"),
        (TEMPLATE, "gemm<3, flt>", CompileError, r"'gemm<3, flt>' cannot be instantiated[\s\S]*\"flt\" is undefined"),
        (TEMPLATE, "gem<3>", UsageError, r"no template 'gem' \(did you mean q::gemm\?\). Templates: q::gemm \(template <int N, class T>\)"),
        (TEMPLATE, "gem", UsageError, r"no kernel 'gem' \(did you mean q::gemm\?\).*q::gemm"),
        ("__device__ int x;\n", "k", UsageError, "source.cu has no kernel 'k': no function in it is marked __global__"),
        ("__global__ void a() {} __global__ void b() {}", "c", UsageError, "no kernel 'c'. Kernels: a, b"),
    ],
)
def test_entry_that_is_not_there(text: str, entry: str | None, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        compile_cuda(text, entry=entry)


def test_launched_instances_are_compiled() -> None:
    text = TEMPLATE + "template <int M> void f() { q::gemm<M, int><<<1, 1>>>(0); }\nint main() { q::gemm<5, double><<<1, 1>>>(0); }\n"
    module = compile_cuda(text, entry="gemm")
    assert module.lowered_names["gemm"] == "_ZN1q4gemmILi5EdEEvPT0_"


@pytest.mark.parametrize("head", ["static __global__", "namespace { __global__"])
def test_kernels_without_linkage_are_found(head: str) -> None:
    text = f"{head} void k(int *p) {{ p[0] = 1; }}" + ("}" if "namespace" in head else "")
    module = compile_cuda(text, entry="k")
    assert f".entry {module.lowered_names['k']}" in module.ptx
    assert "warning" not in module.log
