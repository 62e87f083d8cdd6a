"""What `fasim run FILE` suggests, sets and prints: names of kernels, example commands, symbols, slices, counts, warnings."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

from fasim.cli.failures import in_options
from fasim.cli.slices import parse_slice
from fasim.errors import UsageError

SOURCE = """
#include <cstdio>
struct Big { double a, b, c; };
__constant__ float factor = 2;
__device__ int total[4] = {1, 2, 3, 4};
namespace ns { template <typename T, int N> __global__ void matmul(const T* a, T* c) { c[threadIdx.x] = a[threadIdx.x] * T(N); } }
__global__ void over(float* x) { x[threadIdx.x] = 1; }
__global__ void over(int* x) { x[threadIdx.x] = 2; }
__global__ void sizes(float4 v, Big big, float* y) {
  extern __shared__ float tile[];
  tile[threadIdx.x] = v.x + float(big.c) + factor + total[1];
  __syncthreads();
  if (threadIdx.x == 0 && blockIdx.x == 0) printf("hello\\n");
  y[blockIdx.x * 64 + threadIdx.x] = tile[63 - threadIdx.x];
}
__global__ void plain(float* y) { y[threadIdx.x] = factor; }
int main() {
  int n = 4;
  sizes<<<n, 32>>>(float4(), Big(), nullptr);
  sizes<<<dim3(2, 3), /* threads */ {64}, 512, 0>>>(float4(), Big(), nullptr);
}
"""
TEMPLATES = "template <typename T, int N> __global__ void matmul(const T* a, T* c) { c[threadIdx.x] = a[threadIdx.x] * T(N); }\n"


@pytest.fixture
def options_file(fasim_command, tmp_path):
    (tmp_path / "options.cu").write_text(SOURCE)
    (tmp_path / "templates.cu").write_text(TEMPLATES)
    (tmp_path / "nothing.cu").write_text("__device__ int x;\n")
    return lambda *words: fasim_command("run", "options.cu", *words)


PLAIN = ["--entry", "plain", "--grid", "1", "--block", "32", "--arg", "y=f32[4,8]:zeros"]


def test_fasim_alone_prints_its_help_only(fasim_command):
    done = fasim_command()
    assert (done.code, done.err) == (2, "") and "Usage: fasim" in done.out


NAMES = [
    ("options.cu", [], "name one of them with --entry. Kernels: over(float*), over(int*), plain, sizes"),
    ("options.cu", ["--entry", "plian"], "no kernel 'plian' (did you mean plain?)"),
    ("options.cu", ["--entry", "over"], "Several kernels are called 'over': over(float*), over(int*)"),
    ("options.cu", ["--entry", "over(double*)"], "no kernel 'over(double*)'"),
    ("options.cu", ["--entry", "matmull<float,3>"], "no template 'matmull' (did you mean ns::matmul?). Templates: ns::matmul (template"),
    ("options.cu", ["--entry", "matmul<flt,3>"], "--entry 'matmul<flt,3>' cannot be instantiated"),
    ("templates.cu", [], "instantiate it with --entry 'matmul<..., ...>'"),
    ("templates.cu", ["--entry", "matmull"], "no kernel 'matmull' (did you mean matmul?)"),
    ("nothing.cu", [], "nothing.cu has no kernel: no function is marked __global__"),
    ("nothing.cu", ["--entry", "k"], "nothing.cu has no kernel 'k': no function in it is marked __global__"),
    ("options.cu", ["--arch", "90"], "(did you mean sm_90?)"),
    ("options.cu", ["--arch", "sm90"], "(did you mean sm_90?)"),
    ("options.cu", ["--arch", "sm_91"], "the architecture 'sm_91'; known: "),
]  # fmt: skip


@pytest.mark.parametrize(("file", "words", "message"), NAMES)
def test_names_that_do_not_fit(fasim_command, options_file, file, words, message):
    done = fasim_command("run", file, *words)
    assert done.code in (2, 5) and message in done.err


@pytest.mark.parametrize(("entry", "dtype", "value"), [("over(float*)", "f32", 1), ("over( int * )", "i32", 2)])
def test_an_overload_is_named_with_its_types(options_file, entry, dtype, value):
    done = options_file("--entry", entry, "--grid", "1", "--block", "32", "--arg", f"x={dtype}[32]:zeros", "--json")
    assert done.record["outputs"][0]["statistics"]["minimum"] == value
    assert shlex.quote(entry.replace(" ", "")) in options_file("--entry", entry).err


def test_the_example_takes_sizes_from_the_file(options_file):
    done = options_file("--entry", "sizes")
    command = shlex.split(done.err.splitlines()[-1])
    assert command[3:] == [
        "--entry", "sizes", "--grid", "2x3", "--block", "64", "--smem", "512",
        "--arg", "v=u8[16]:zeros", "--arg", "big=u8[24]:zeros", "--arg", "y=f32[1024]:zeros",
    ]  # fmt: skip
    assert "Variables that --symbol sets: factor (4 bytes of float32), total (16 bytes of int32)." in done.err
    ran = options_file(*command[3:])
    assert ran.code == 0 and "hello\n" in ran.out


def test_the_example_without_sizes_in_the_file(fasim_command):
    command = shlex.split(fasim_command("run", "many.cu", "-I", "include", "-DBIAS=1", "--entry", "shared").err.splitlines()[-1])
    assert command[3:] == [
        "-D", "BIAS=1", "-I", "include", "--entry", "shared", "--grid", "8", "--block", "128", "--smem", "16384",
        "--arg", "out=i32[1024]:zeros",
    ]  # fmt: skip
    structure = fasim_command("run", "many.cu", "-I", "include", "-DBIAS=1", "--entry", "structure").err
    assert "pair=u8[8]:zeros" in structure and "--smem" not in structure


def test_symbols_are_set_before_the_launch(options_file, tmp_path):
    np.save(tmp_path / "w.npy", np.array([9, 10, 11, 12], np.int32))
    assert options_file(*PLAIN, "--json").record["outputs"][0]["statistics"]["maximum"] == 2
    assert options_file(*PLAIN, "--symbol", "factor=7.5", "--json").record["outputs"][0]["statistics"]["maximum"] == 7.5
    arguments = ["--arg", "u8[16]:zeros", "--arg", "u8[24]:zeros", "--arg", "f32[64]:zeros"]
    words = ["--entry", "sizes", "--grid", "1", "--block", "64", "--smem", "256", *arguments]
    done = options_file(*words, "--symbol", "factor=f32:1", "--symbol", "total=@w.npy", "--json", "--save", "out.npz")
    assert done.record["outputs"][0]["statistics"]["minimum"] == 11
    with np.load(tmp_path / "out.npz") as saved:
        # structures by value are no buffers
        assert set(saved) == {"arg2"}


@pytest.mark.parametrize(
    ("symbol", "message"),
    [
        ("factr=1", "no variable 'factr' (did you mean factor?); there are: factor (4 bytes of float32), total (16 bytes of int32)"),
        ("factor", "write NAME=VALUE; variables of the module: factor"),
        ("factor=null", "takes numbers, not null"),
        ("factor=many", "--symbol 'factor=many': 'many' is neither"),
        ("total=1.5", "takes int32 numbers"),
        ("total=i32[5]:zeros", "holds 16 bytes, got 20"),
        ("total=f64[2]:zeros", "has i32 elements, got float64"),
    ],
)
def test_symbols_refused(options_file, symbol, message):
    done = options_file(*PLAIN, "--symbol", symbol)
    assert (done.code, done.out) == (2, "") and message in done.err


def test_slices_are_printed(options_file, fasim_command):
    done = options_file(*PLAIN, "--print", "y[0,:3]", "--print", "y[-1,::4]", "--print", "y[1,1]")
    assert done.code == 0
    for line in ("y[0,:3] = [2., 2., 2.]\n", "y[-1,::4] = [2., 2.]\n", "y[1,1] = 2."):
        assert line in done.out
    assert options_file(*PLAIN, "--print", "y[0]", "--json").record["prints"] == ["y[0] = [2., 2., 2., 2., 2., 2., 2., 2.]"]
    words = ["run", "many.cu", "-I", "include", "-DBIAS=1", "--entry", "twice", "--grid", "1", "--block", "32"]
    assert "p[:2] = [3., 3.]" in fasim_command(*words, "--arg", "p=bf16[32]:full(1.5)", "--print", "p[:2]").out
    assert "y[:2] = " in fasim_command("run", "axpy", "--n", "64", "--print", "y[:2]").out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("z", "no buffer is called 'z'; there are: y"),
        ("y[9]", "outside of y, whose shape is [4, 8]"),
        ("y[0,0,0]", "y has 2 dimensions"),
        ("y[::0]", "step 0"),
        ("y[a]", "neither an index"),
        ("y[]", "neither an index"),
        ("y[1:2:3:4]", "neither an index"),
        ("y[0", "write NAME or NAME[SLICE, ...]"),
        ("__import__('os')", "write NAME or NAME[SLICE, ...]"),
        ("y[:8].sum()", "write NAME or NAME[SLICE, ...]"),
    ],
)
def test_slices_refused_before_the_run(options_file, text, message):
    done = options_file(*PLAIN, "--print", text)
    assert (done.code, done.out) == (2, "") and message in done.err


def test_parse_slice():
    assert parse_slice(" y [ 1:-1 , ::2, 3 ] ") == ("y", (slice(1, -1), slice(None, None, 2), 3))
    assert parse_slice("y") == ("y", ())
    with pytest.raises(UsageError):
        parse_slice("y[1][2]")


def test_tolerances_need_an_expectation(options_file):
    for flag in ("--rtol", "--atol"):
        done = options_file(*PLAIN, flag, "1e-3")
        assert done.code == 2 and "--expect NAME=@FILE" in done.err


def test_an_unwritable_cache_is_told_once(options_file, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    done = options_file(*PLAIN, "--backend", "reference")
    assert done.code == 0
    assert done.err.count("warning: cannot write to the cache") == 1 and "Not a directory" in done.err


def test_warnings_of_the_compiler_are_shown_once(fasim_command, tmp_path, monkeypatch):
    monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "warn.cu").write_text("__global__ void k(float *p) {\n  int unused = 3;\n  p[0] = 1;\n}")
    words = ["run", "warn.cu", "--grid", "1", "--block", "1", "--arg", "p=f32[1]:zeros", "--backend", "reference"]
    assert [("unused" in fasim_command(*words, *more).err) for more in ([], [], ["--verbose"])] == [True, False, True]


def test_counts_by_source_line(fasim_command, tmp_path):
    body = "".join(f"  p[{i}] = {i};\n" for i in range(30))
    (tmp_path / "lines.cu").write_text(f"__global__ void k(volatile int *p) {{\n{body}  for (int i = 0; i < 50; i++) p[i] += i;\n}}\n")
    words = ["run", "lines.cu", "--grid", "1", "--block", "1", "--arg", "p=i32[64]:zeros", "--counts"]
    lines = fasim_command(*words).out.splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith("source line"))
    shown = lines[start + 1 :]
    assert "lines.cu:32: for (int i = 0; i < 50; i++) p[i] += i;" in shown[0] and str(tmp_path) not in shown[0]
    assert len(shown) == 21 and "more lines (all instructions: --json --counts)" in shown[-1]
    executions = [int(line.split()[0].replace(",", "")) for line in shown[:-1]]
    assert executions == sorted(executions, reverse=True)
    record = fasim_command(*words, "--json").record
    assert all(row["executions"] for row in record["counts"]) and all(record["instruction_mix"].values())
    assert sum(row["executions"] for row in record["counts"]) == record["warp_instructions"]
    at_loop = sum(row["executions"] for row in record["counts"] if row["line"] == 32)
    assert executions[0] == at_loop


def test_messages_of_the_interface_speak_of_options():
    assert in_options("k.cu: name its directory in include_dirs") == "k.cu: name its directory with -I"
    assert in_options("is a structure of 8 bytes: pass a numpy record or 8 bytes as np.uint8").endswith("for example u8[8]:zeros")
    assert in_options("anything else about an entry") == "anything else about an entry"
