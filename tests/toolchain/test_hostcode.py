"""Host code is set aside; what a kernel needs of it stays, or the compiler's own message comes out."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fasim.errors import CompileError, UsageError
from fasim.toolchain import compile_cuda
from fasim.toolchain.cpplex import lex
from fasim.toolchain.declarations import declarations, flatten
from fasim.toolchain.hostcode import blank, launch_expressions, obvious_host_code

KERNEL = "__global__ void k(float *p) { p[0] = 1; }\n"


def snippets() -> dict[str, tuple[str, bool]]:
    parts = re.split(r"^=== (\w+)( \(not nvcc\))?\n", (Path(__file__).parent / "snippets.txt").read_text(), flags=re.MULTILINE)[1:]
    return {name: (text, not refused) for name, refused, text in zip(parts[::3], parts[1::3], parts[2::3])}


SNIPPETS = snippets()


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet_compiles(name: str) -> None:
    module = compile_cuda(SNIPPETS[name][0])
    assert ".entry" in module.ptx
    assert ".visible .func" not in module.ptx


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("name", list(SNIPPETS)[::6])
def test_nvcc_takes_the_snippet_too(name: str, tmp_path: Path) -> None:
    text, accepted = SNIPPETS[name]
    (tmp_path / "x.cu").write_text(text)
    done = subprocess.run(["nvcc", "-ptx", "-w", "-arch=sm_90", "x.cu", "-o", "x.ptx"], cwd=tmp_path, capture_output=True)
    assert (done.returncode == 0) == accepted


@pytest.mark.parametrize(
    ("text", "gone", "kept"),
    [
        (f"void f() {{ k<<<1, 1>>>(0); }}\n{KERNEL}", ["f"], ["k"]),
        ("constexpr int f(int x) { return x; }\nint g(int x) { return x; }", ["g"], ["f"]),
        ("#define HD __host__ __device__\nHD int f() { return 1; }\nint g();", ["g"], ["f"]),
        ("namespace a { namespace b { void f() {} __device__ void g() {} } }", ["f"], ["g"]),
        ('extern "C" { void f() {} __global__ void g() {} }', ["f"], ["g"]),
        ("__device__ float f(float);\nfloat f(float x) { return x; }", [], ["f"]),
        ("const int n(3);\nconst float *f(int a) { return 0; }", ["f"], ["n"]),
        ("#define BEGIN(n) __global__ void n() { if (1) {\n#define END } }\nBEGIN(a) END\nint main() { }", ["main"], ["BEGIN"]),
        ("template <class T, int N = (3 > 2)> T f(T x) { return x; }\ntemplate <class T> __device__ T g(T x) { return x; }", ["f"], ["g"]),
        ("#if 0\n} broken {\n#endif\nvoid f() { }", ["f"], ["broken"]),
        ("#ifdef A\nvoid f(int a) {\n#else\nvoid f() {\n#endif\n}\n__device__ int z;", ["f"], ["z"]),
        ("struct S { int x; S() : x{3} { } };\nS::operator int() { return 3; }", [], ["S"]),
        ("const char *s = R\"x(void f() {)x\";\nvoid g() { char c = '}'; /* } */ }", ["g"], ["s"]),
        ("auto f(int a) -> decltype(a) { return a; }", ["f"], []),
        ("int a = f(3), b{2};\nint h(int);", ["h"], ["a", "b"]),
    ],
)
def test_which_declarations_are_obviously_host_code(text: str, gone: list[str], kept: list[str]) -> None:
    lexed = lex(text)
    units = declarations(text, {}, lexed)
    device = frozenset(unit.name for unit in flatten(units) if unit.is_device and unit.kind == "function")
    host = obvious_host_code(units, device)
    assert [unit.name for unit in host if not unit.name.startswith("operator")][: len(gone)] == gone
    blanked = blank(text, host, [], lexed)
    assert len(blanked) == len(text) and blanked.count("\n") == text.count("\n")
    assert [i for i, c in enumerate(blanked) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]
    for word in kept:
        assert re.search(rf"\b{word}\b", blanked)
    for word in gone:
        assert not re.search(rf"^(?!#).*\b{word}\s*\(", blanked, re.MULTILINE)


def test_launches_are_read() -> None:
    text = "void f() { a<<<1, 2>>>(); n::b<3, float><<<g, b, 0, s>>>(x); c < d; ns::k<T<int>><<<1, 1>>>(); }"
    assert launch_expressions(lex(text).tokens, text) == ["a", "n::b<3, float>", "ns::k<T<int>>"]


HOST = "#include <iostream>\n#include <vector>\nvoid h() {\n  std::cout << 1;\n}\n"


@pytest.mark.parametrize(
    ("text", "messages", "absent"),
    [
        # a mistake in the kernel: the compiler's message, on the line of the file, and nothing about the host code
        (
            HOST + "__global__ void k(float *p) {\n  p[0] = foo(1);\n}",
            [r'source.cu\(7\): error: identifier "foo" is undefined'],
            ["cout", "host"],
        ),
        (HOST + "__global__ void k(float *p) {\n  int y = 3\n}", [r'source.cu\(8\): error: expected a ";"'], ["cout"]),
        # code without a device mark cannot be called, and the message says so
        (
            "float f(float x) { return x; }\n__global__ void k(float *p) { p[0] = f(p[1]); }",
            [r'"f" is undefined', r"source.cu\(1\): note: .f. is host"],
            [],
        ),
        (
            "struct V { float x; V(float a) : x(a) {} };\n__global__ void k(float *p) { V v(2); p[0] = v.x; }",
            ["Unresolved extern function '_ZN1VC1Ef'", r"source.cu\(1\): note: .V. is host code"],
            [],
        ),
        (
            "int g = 3;\n__global__ void k(int *p) { p[0] = g; }",
            [r"source.cu\(1\): error: A namespace scope variable without memory space"],
            [],
        ),
        # a mistake in a type that a kernel uses: its own message, not only the one that follows from it
        ("struct P { flot x; };\n__global__ void k(P p) { }", [r'source.cu\(1\): error: identifier "flot" is undefined'], []),
        ("constexpr int f(int x) { retrun x; }\n__global__ void k(int *p) { p[0] = f(3); }", [r'\(1\): error: identifier "retrun"'], []),
        ("#include <vector>\n__global__ void k(std::vector<int> *v) { v->push_back(1); }", [r'has no member "push_back"'], []),
        (
            "#include <vector>\nstruct S { std::vector<int> v; int n; __device__ int f() { return v[0]; } };" + KERNEL,
            [r"source.cu\(2\): error"],
            [],
        ),
        (
            '#include "nowhere.h"\n' + KERNEL,
            [r'source.cu\(1\): catastrophic error: cannot open source file "nowhere.h"', "include_dirs"],
            [],
        ),
        ("#include <curand_kernel.h>\n" + KERNEL, ["pip install nvidia-curand"], []),
        ("__device__ void q();\n__global__ void k() { q(); }", ["Unresolved extern function '_Z1qv'"], []),
    ],
)
def test_errors_are_the_compilers_own(text: str, messages: list[str], absent: list[str]) -> None:
    with pytest.raises(CompileError) as caught:
        compile_cuda(text)
    for message in messages:
        assert re.search(message, str(caught.value)), str(caught.value)
    for word in absent:
        assert word not in str(caught.value)


def test_class_layout_survives() -> None:
    """Members of host types keep their place, so that a structure has the size it has on the host."""
    text = """
        #include <string>
        #include <vector>
        struct M { std::vector<float> h; std::string name; float *d; int n;
                   M(int n) : h(n), n(n) { cudaMalloc(&d, 4 * n); }
                   __device__ float at(int i) const { return d[i]; } };
        static_assert(sizeof(M) == 72, "as with libstdc++");
        __global__ void k(M *m, float *p) { p[0] = m->at(2); }
    """
    assert "+56]" in compile_cuda(text).ptx


def test_specialisation_is_never_dropped() -> None:
    """Without its specialisation a trait would silently give another value."""
    text = """
        template <class T> struct N { static const int v = 1; };
        template <> struct N<float> { unknown_type x; static const int v = 2; };
        __global__ void k(int *p) { p[0] = N<float>::v; }
    """
    with pytest.raises(CompileError, match="unknown_type"):
        compile_cuda(text)


def test_mark_from_a_macro_of_a_toolkit_header() -> None:
    text = "#include <vector_types.h>\n__MARK__ float f(float x) { return x; }\n__global__ void k(float *p) { p[0] = f(p[1]); }"
    assert ".entry" in compile_cuda(text, options=["-D__MARK__=__device__"]).ptx


def test_constructor_with_several_mistakes_stays_declared() -> None:
    """Were the constructor gone, the kernel would silently construct without it."""
    text = """
        struct V { float x; int n;
                   V() { cudaFree(0); unknown(1);
                         unknown(2); }
                   __device__ float get() const { return x; } };
        __global__ void k(float *p) { V v; p[0] = v.get(); }
    """
    with pytest.raises(CompileError, match=r"_ZN1VC1Ev[\s\S]*host code"):
        compile_cuda(text)


def test_unmatched_braces_are_the_compilers_message() -> None:
    with pytest.raises(CompileError, match=r'expected a "}"') as caught:
        compile_cuda("__global__ void k(float *p) {\n  if (p) {\n  p[0] = 1;\n}\nint main() {\n  return 0;\n}\n")
    assert "considered a host function" not in str(caught.value)


def test_unclear_host_code_is_refused_with_advice() -> None:
    """Digraphs are braces to the compiler only."""
    with pytest.raises(UsageError, match=r"source.cu\(3\).*__CUDACC_RTC__"):
        compile_cuda(KERNEL + "void f() <% k<<<1, 1>>>(0);\n}\n")


def test_host_code_in_headers(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "inner.h").write_text(
        "#pragma once\n#include <string>\ninline std::string s() {\n  return std::string();\n}\n#define TWO 2\n"
    )
    (tmp_path / "outer.h").write_text(
        '#include "sub/inner.h"\nstatic int count;\n__device__ int two(int *p) { return p[1] * TWO; }\nvoid go() { count++; }\n'
    )
    (tmp_path / "k.cu").write_text('#include "outer.h"\n__global__ void k(int *p) { p[0] = two(p); }\nint main() { go(); }\n')
    module = compile_cuda(tmp_path / "k.cu", entry="k")
    assert f'"{tmp_path}/outer.h"' in module.ptx
    assert "st.global.u32" in module.ptx or "st.global.b32" in module.ptx

    (tmp_path / "outer.h").write_text("inline void go() { }\n__device__ int two(int *p) {\n  return nothing;\n}\n")
    with pytest.raises(CompileError, match=r'outer.h\(3\): error: identifier "nothing" is undefined'):
        compile_cuda(tmp_path / "k.cu")


def test_carriage_returns() -> None:
    text = KERNEL + "int main() {\n  k<<<1, 1>>>(0);\n}\n"
    assert ".entry _Z1kPf" in compile_cuda(text.replace("\n", "\r\n")).ptx
