"""The public call: options, targets, headers that nvcc brings, the cache."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fasim.errors import CompileError, ToolMissing, UsageError
from fasim.toolchain import cache, cache_dir, cached, compile_cuda, driver, nvrtc, wheels

KERNEL = "__global__ void k(float *p) { p[0] = 1; }\n"

HEADERS = re.findall(
    r"\S+",
    """
    algorithm array atomic bit cassert cfloat chrono cinttypes climits cmath complex condition_variable cstdarg cstdbool cstddef
    cstdint cstdio cstdlib cstring ctime deque exception filesystem fstream functional future initializer_list iomanip iostream
    istream iterator limits list map memory mutex new numeric optional ostream queue random ratio regex set span sstream stack
    stdexcept string string_view thread tuple type_traits typeinfo unordered_map unordered_set utility valarray variant vector
    assert.h ctype.h errno.h float.h inttypes.h limits.h math.h stdarg.h stdbool.h stddef.h stdint.h stdio.h stdlib.h string.h
    time.h sys/time.h sys/types.h sys/stat.h unistd.h getopt.h pthread.h omp.h cuda.h cuda_runtime.h cuda_runtime_api.h cuda_fp16.h
    cuda_bf16.h cuda_fp8.h cuda_pipeline.h device_launch_parameters.h mma.h cooperative_groups.h cooperative_groups/reduce.h
    cooperative_groups/memcpy_async.h cuComplex.h math_constants.h vector_types.h cuda/pipeline cuda/barrier cuda/atomic
    cuda/std/limits cub/cub.cuh cublas_v2.h thrust/device_vector.h nvtx3/nvToolsExt.h
    """,
)

# expression, its type, and what must be in the PTX when it is stored
EXPRESSIONS = [
    ("INFINITY", "float", "2139095040|0f7F800000|0x7F800000"),
    ("-INFINITY", "double", "-4503599627370496|0dFFF0000000000000"),
    ("NAN", "float", "2143289344|0f7FC00000|0f7FFFFFFF"),
    ("FLT_MAX", "float", "2139095039|0f7F7FFFFF"),
    ("DBL_MAX", "double", "9218868437227405311|0d7FEFFFFFFFFFFFFF"),
    ("(float)M_PI", "float", "1078530011|0f40490FDB"),
    ("INT_MAX", "int", "2147483647"),
    ("INT32_MIN", "int", "-2147483648"),
    ("UINT_MAX", "uint", "-1"),
    ("CHAR_BIT", "unsigned short", "8"),
    ("(int)offsetof(float4, z)", "int", " 8;"),
    ("(int)sizeof(uint64_t)", "int", " 8;"),
    ("std::numeric_limits<int>::max()", "int", "2147483647"),
    ("std::numeric_limits<float>::infinity()", "float", "2139095040|0f7F800000"),
    ("std::numeric_limits<double>::lowest()", "double", "-4503599627370497|0dFFEFFFFFFFFFFFFF"),
    ("(int)std::is_same<int, float>::value + 5", "int", " 5;"),
    ("std::sqrt(p[1])", "float", "sqrt.rn.f32"),
    ("std::sqrt(p[1])", "double", "sqrt.rn.f64"),
    ("std::abs(p[1])", "float", "abs.f32"),
    ("max(min(p[1], 3), 2)", "int", "max.s32"),
    ("std::max(p[1], p[2])", "int", "max.s32|selp|setp"),
    ("(ushort)p[1] + (u_char)p[2]", "uint", "cvt|and|prmt"),
    ("__CUDA_ARCH__", "int", " 900;"),
]


@pytest.mark.parametrize("header", HEADERS)
def test_header_compiles(header: str) -> None:
    module = compile_cuda(f"#include <{header}>\n{KERNEL}")
    assert ".entry _Z1kPf" in module.ptx
    assert "warning" not in module.log


def test_all_headers_together() -> None:
    text = "".join(f"#include <{header}>\n" for header in HEADERS) + "using namespace std;\n" + KERNEL
    assert ".entry _Z1kPf" in compile_cuda(text).ptx


@pytest.mark.parametrize(("expression", "kind", "expected"), EXPRESSIONS, ids=[f"{e} {k}" for e, k, _ in EXPRESSIONS])
def test_what_nvcc_predefines(expression: str, kind: str, expected: str) -> None:
    module = compile_cuda(f'#include <cfloat>\n#include <stdint.h>\nextern "C" __global__ void k({kind} *p) {{ p[0] = {expression}; }}')
    assert re.search(expected, module.ptx), module.ptx


@pytest.mark.parametrize(
    ("define", "calls"),
    [("", True), ("#define NDEBUG\n", False), ("#include <assert.h>\n#define NDEBUG\n", False)],
    ids=["on", "off", "again"],
)
def test_assert_follows_ndebug(define: str, calls: bool) -> None:
    ptx = compile_cuda(f"{define}#include <cassert>\n__global__ void k(int *p) {{ assert(p[0] == 1); p[1] = 2; }}").ptx
    assert ("__assertfail" in ptx) == calls


def test_fixed_width_types_are_those_of_nvcc() -> None:
    """int64_t is long, so that mangled names and overloads are the same."""
    text = "#include <cstdint>\n__device__ int f(int64_t x) { return 1; }\n__device__ int f(long long x) { return 2; }\n"
    module = compile_cuda(text + "__global__ void k(int64_t *p, uintptr_t q, uint32_t r) { p[0] = f(p[1]); }")
    assert ".entry _Z1kPlmj" in module.ptx


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"])
def test_targets(arch: str) -> None:
    module = compile_cuda(KERNEL, arch=arch)
    assert f".target {arch}" in module.ptx
    assert module.arch == arch
    assert module.cubin[:4] == b"\x7fELF"


@pytest.mark.parametrize("arch", ["sm_33", "sm_80a", "sm_9", "compute_90", "90", "", "sm_90b"])
def test_unknown_target_lists_the_known(arch: str) -> None:
    with pytest.raises(UsageError, match=r"sm_80.*sm_90.*sm_120"):
        compile_cuda(KERNEL, arch=arch)


def test_defines() -> None:
    text = "#ifdef OFF\n#error off\n#endif\n#if FLAG != 1\n#error flag\n#endif\n__global__ void k(int *p) { p[0] = N + F(2); }"
    module = compile_cuda(text, defines={"N": 40, "FLAG": True, "OFF": False, "F(x)": "(x * 3)"})
    assert " 46;" in module.ptx
    with pytest.raises(CompileError, match=r"source.cu\(5\).*flag"):
        compile_cuda(text, defines={"N": 1, "FLAG": 2})
    with pytest.raises(UsageError, match="'1N' cannot be the name"):
        compile_cuda(text, defines={"1N": 1})


def test_options_of_nvcc_and_nvrtc() -> None:
    text = "__global__ void k(float *p) { p[0] = p[1] / p[2]; }"
    assert "div.rn.f32" in compile_cuda(text).ptx
    assert "div.rn.f32" not in compile_cuda(text, options=["--use_fast_math", "-O3", "--expt-relaxed-constexpr", "-Xcompiler=-Wall"]).ptx
    assert ".loc" in compile_cuda(text).ptx
    assert ".loc" not in compile_cuda(text, lineinfo=False).ptx
    with pytest.raises(UsageError, match="unrecognized option -nonsense"):
        compile_cuda(text, options=["-nonsense"])


def test_warnings_and_registers() -> None:
    module = compile_cuda("__global__ void k(float *p) {\n  int unused = 3;\n  p[0] = 1;\n}")
    assert 'source.cu(2): warning #177-D: variable "unused"' in module.log
    assert module.log.count("Used") == 1
    assert module.registers["_Z1kPf"] > 0
    assert re.fullmatch(r"NVRTC \d+\.\d+", module.compiler)


def test_source_that_is_not_there() -> None:
    with pytest.raises(UsageError, match=r"no source file 'nowhere\.cu'"):
        compile_cuda("nowhere.cu")
    with pytest.raises(UsageError, match="does not exist"):
        compile_cuda(KERNEL, include_dirs=["nowhere"])


def test_module_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        compile_cuda(KERNEL).ptx = ""  # type: ignore[misc]


# -- the cache ------------------------------------------------------------------------------------------------------------------------


def count_compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    real = driver.compile_request

    def counting(request):
        calls.append(request.name)
        return real(request)

    monkeypatch.setattr(driver, "compile_request", counting)
    return calls


def test_cache_answers_and_every_input_counts(fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_compilations(monkeypatch)
    (tmp_path / "inc").mkdir()
    header, deep, source = tmp_path / "x.h", tmp_path / "inc" / "deep.h", tmp_path / "k.cu"
    header.write_text("#include <deep.h>\n")
    deep.write_text("#define V 1\n")
    source.write_text('#include "x.h"\n__global__ void k(int *p) { p[0] = V; }\n')

    def run(**options):
        return compile_cuda(source, include_dirs=[tmp_path / "inc"], **options)

    first = run()
    assert run() == first and len(calls) == 1
    deep.write_text("#define V 77\n")
    assert " 77;" in run().ptx and len(calls) == 2
    (tmp_path / "deep.h").write_text("#define V 78\n")
    run()
    assert run(arch="sm_80").arch == "sm_80" and len(calls) == 3
    run(defines={"W": 1}), run(options=["-w"]), run(lineinfo=False), run(entry="k")
    assert len(calls) == 7
    header.write_text("#define V 3\n")
    assert " 3;" in run().ptx and len(calls) == 8
    deep.write_text("#define V 1\n")
    header.write_text("#include <deep.h>\n")
    assert run() == first and len(calls) == 8, "an old state is answered from the cache"


def test_files_of_the_same_name_keep_their_own_path(fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "same.cu").write_text('extern "C" __global__ void k(int *o) { *o = 1; }\n')
        monkeypatch.chdir(tmp_path / folder)
        assert str(tmp_path / folder / "same.cu") in compile_cuda("same.cu").ptx


def test_a_crash_of_the_compiler_is_an_error(fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash = tmp_path / "python"
    crash.write_text("#!/bin/sh\nkill -FPE $$\n")
    crash.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(crash))
    with pytest.raises(CompileError, match=r"source.cu: NVIDIA's compiler crashed \(SIGFPE\)"):
        compile_cuda("__global__ void k(int *o) { *o = 1; }\n")


def test_damaged_entry_is_made_again(fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = count_compilations(monkeypatch)
    first = compile_cuda(KERNEL)
    (entry,) = [path for path in fresh_cache.rglob("*") if path.is_file()]
    whole = entry.read_bytes()
    for damaged in (b"", whole[:40], whole[:-1], whole[:100] + b"?" + whole[101:]):
        entry.write_bytes(damaged)
        assert compile_cuda(KERNEL) == first
        assert entry.read_bytes() == whole
    assert len(calls) == 5


def test_failures_are_not_kept(fresh_cache: Path) -> None:
    with pytest.raises(CompileError, match="expected a"):
        compile_cuda("__global__ void k( {")
    assert not [path for path in fresh_cache.rglob("*") if path.is_file()]


def test_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path / "file"))
    failures: list[OSError] = []
    monkeypatch.setattr(cache, "write_failures", failures)
    assert cached("ab" * 32, ".x", lambda: b"made") == b"made"
    assert len(failures) == 1


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"FASIM_CACHE_DIR": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/fasim"),
        ({"HOME": "/h"}, "/h/.cache/fasim"),
    ],
)
def test_cache_dir(environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FASIM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache_dir() == Path(expected)


def test_warm_start_is_fast_and_loads_no_compiler(fresh_cache: Path) -> None:
    compile_cuda(KERNEL)
    code = (
        "import sys, time\n"
        "import fasim.toolchain as t\n"
        "assert not {'ctypes', 'numpy', 'numba', 'fasim.toolchain.driver'} & set(sys.modules), 'import must stay cheap'\n"
        f"source = {KERNEL!r}\n"
        "t.compile_cuda(source)\n"
        "assert 'fasim.toolchain.nvrtc' not in sys.modules\n"
        "best = 1\n"
        "for _ in range(20):\n"
        "    start = time.perf_counter(); t.compile_cuda(source); best = min(best, time.perf_counter() - start)\n"
        "print(best)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ)
    assert float(done.stdout) < 0.005


def test_two_processes_share_a_cache(fresh_cache: Path) -> None:
    code = f"import fasim.toolchain as t; print(len(t.compile_cuda({KERNEL!r}).ptx))"
    running = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert len({process.communicate(timeout=60)[0] for process in running}) == 1
    assert len([path for path in fresh_cache.rglob("*") if path.is_file()]) == 1


# -- missing tools --------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def no_wheels(monkeypatch: pytest.MonkeyPatch):
    functions = (nvrtc.library, nvrtc.supported_archs, nvrtc.nvrtc_version, wheels.cuda_include_directories, wheels.installed_versions)
    for function in functions:
        function.cache_clear()
    monkeypatch.setattr(wheels, "nvidia_directories", lambda: ())
    monkeypatch.setattr(wheels, "toolkit_directories", lambda: ())
    yield
    for function in functions:
        function.cache_clear()


def test_missing_wheels_say_how_to_install(no_wheels: None, fresh_cache: Path) -> None:
    command = "pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"
    with pytest.raises(ToolMissing, match=command):
        compile_cuda(KERNEL)
    with pytest.raises(ToolMissing, match=f"nvidia-cuda-cccl.*{command}"):
        wheels.cuda_include_directories()


def test_compiling_is_not_slow() -> None:
    start = time.perf_counter()
    compile_cuda("#include <vector>\n#include <iostream>\n#include <algorithm>\n" + KERNEL + "int main() { std::cout << 1; }")
    assert time.perf_counter() - start < 2
