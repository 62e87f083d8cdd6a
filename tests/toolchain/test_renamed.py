"""Compiling under a given name: the same bytes wherever the files lie."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from fasim.errors import CompileError, UsageError
from fasim.toolchain import CompiledModule, compile_cuda, wheels
from fasim.toolchain.includes import find_headers
from fasim.toolchain.renamed import neutral_directories, rename

NAME = "/kernels/k.cu"
FILES = {
    "k.cu": """
#include "near.h"
#include "deep/deep.h"
#include <far.h>
#include "deep/../near.h"
#define CHOSEN "chosen.h"
#include CHOSEN
#include <cassert>
int main() { return 0; }
__global__ void k(float *o) {
  assert(o[9] > 0);
  o[0] = near(o[1]) + deep(o[2]) + same_deep(o[3]) + same(o[4]) + far(o[5]) + up(o[6]) + chosen(o[7]);
}
""",
    "near.h": '#pragma once\n#include "same.h"\n#include "deep/deep.h"\nFUNCTION(near, 2)\n',
    "same.h": "#pragma once\n#define FUNCTION(name, factor) \\\n"
    "  __device__ __forceinline__ float name(float x) { if (x > factor) x *= x; return x * factor; }\nFUNCTION(same, 3)\n",
    "deep/deep.h": '#pragma once\n#include "same.h"\n#include "../same.h"\n#include "../../up.h"\n'
    "FUNCTION(deep, 5)\nFUNCTION(same_deep, SAME_DEEP)\n",
    "deep/same.h": "#define SAME_DEEP 7\n",
    "chosen.h": "FUNCTION(chosen, 11)\n",
    "inc/far.h": "#include <iostream>\nvoid host() { std::cout << 1; }\nFUNCTION(far, 13)\n",
    "../up.h": "#pragma once\n#ifdef FUNCTION\nFUNCTION(up, 17)\n#endif\n",
}
NVIDIA = {
    "cuda_fp16": "#include <cuda_fp16.h>\n__global__ void k(__half *p) { p[0] = p[1] * p[2] + hexp(p[3]); }",
    "cooperative_groups": "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n__global__ void k(int *p) {\n"
    "  auto tile = cg::tiled_partition<32>(cg::this_thread_block());\n  p[tile.thread_rank()] = tile.shfl_down(p[0], 1);\n}",
    "mma": "#include <mma.h>\nusing namespace nvcuda::wmma;\n__global__ void k(const half *a, float *d) {\n"
    "  fragment<matrix_a, 16, 16, 16, half, row_major> x;\n  fragment<matrix_b, 16, 16, 16, half, col_major> y;\n"
    "  fragment<accumulator, 16, 16, 16, float> z;\n  fill_fragment(z, 0.f);\n  load_matrix_sync(x, a, 16);\n"
    "  load_matrix_sync(y, a, 16);\n  mma_sync(z, x, y, z);\n  store_matrix_sync(d, z, 16, mem_row_major);\n}",
    "cccl": "#include <cuda/std/array>\n#include <cuda/atomic>\n__global__ void k(int *p) {\n  cuda::std::array<int, 2> a{1, p[1]};\n"
    "  cuda::atomic_ref<int>(p[0]).fetch_add(a[p[2]]);\n}",
}


def lay(root: Path, files: dict[str, str] = FILES) -> Path:
    for name, text in files.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root / "src"


def files_of(module: CompiledModule) -> list[str]:
    return re.findall(r'^\s*\.file\s+\d+\s+"([^"]+)"', module.ptx, re.MULTILINE)


def test_the_same_cubin_from_two_directories(fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modules = []
    for folder in ("one", "two/longer"):
        source = lay(tmp_path / folder)
        monkeypatch.chdir(source)
        monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path / folder / "cache"))
        modules.append(compile_cuda(source / "k.cu", include_dirs=["inc"], name=NAME))
    first, second = modules
    assert (first.cubin, first.ptx, first.source_path) == (second.cubin, second.ptx, NAME)
    assert not second.from_cache and first.source_text == FILES["k.cu"]
    assert str(tmp_path).encode() not in first.cubin + first.ptx.encode()
    names = {"k.cu", "near.h", "same.h", "deep/deep.h", "chosen.h", "far.h", "up.h"}
    assert {os.path.relpath(name, "/kernels") for name in files_of(first)} == {"inc/far.h" if n == "far.h" else n for n in names}


def test_without_a_name_the_own_path_counts(tmp_path: Path) -> None:
    modules = [compile_cuda(lay(tmp_path / folder) / "k.cu", include_dirs=[tmp_path / folder / "src/inc"]) for folder in ("one", "two")]
    assert modules[0].cubin != modules[1].cubin
    assert str(tmp_path / "one/src/near.h") in files_of(modules[0])


def test_renamed_code_is_the_same_code(tmp_path: Path) -> None:
    source = lay(tmp_path)
    plain, renamed = (
        compile_cuda(source / "k.cu", include_dirs=[source / "inc"], lineinfo=False, **options) for options in ({}, {"name": NAME})
    )
    plain_body, renamed_body = (re.sub(r"(\$str\w*)?\[\d+\] = \{[^}]*\}", "", module.ptx) for module in (plain, renamed))
    assert plain_body == renamed_body, "they differ in what assert calls the file"


@pytest.mark.parametrize("text", NVIDIA.values(), ids=NVIDIA)
@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="paths of NVIDIA's headers are neutral on Linux only")
def test_nvidia_headers_do_not_tell_where_they_lie(text: str) -> None:
    module = compile_cuda(text, name=NAME)
    for root in [*wheels.cuda_include_directories(), Path.cwd()]:
        assert str(root).encode() not in module.cubin + module.ptx.encode()
    assert files_of(module)[0] == NAME
    assert all(name.startswith(("/kernels/", "/proc/self/fd/")) for name in files_of(module))


def test_messages_speak_of_the_name(tmp_path: Path) -> None:
    source = lay(
        tmp_path,
        {"k.cu": '#include "x.h"\n__global__ void k(int *p) { p[0] = f() + wrong; }\n', "x.h": "__device__ int f() { return bad; }\n"},
    )
    with pytest.raises(CompileError, match=r'(?s)/kernels/x\.h\(1\): error: .*"bad".*/kernels/k\.cu\(2\): error: .*"wrong"'):
        compile_cuda(source / "k.cu", name=NAME)
    with pytest.raises(UsageError, match=r"'k\.cu' of the source must be an absolute path, for example '/kernels/k\.cu'"):
        compile_cuda(source / "k.cu", name="k.cu")


def test_messages_in_nvidia_headers_name_the_real_file() -> None:
    text = "#include <cuda/std/array>\n__global__ void k(int *p) { cuda::std::array<int, 2> a{}; p[0] = cuda::std::get<5>(a); }"
    with pytest.raises(CompileError) as caught:
        compile_cuda(text, name=NAME)
    assert "/proc/self" not in str(caught.value) and "cuda/std/" in str(caught.value)


def test_an_include_that_only_the_preprocessor_can_name(tmp_path: Path) -> None:
    text = "#define TEXT(x) #x\n#define NAME(x) TEXT(x.h)\n#include NAME(value)\n__global__ void k(int *p) { p[0] = VALUE; }\n"
    source = lay(tmp_path, {"k.cu": text, "value.h": "#define VALUE 4711\n"})
    assert " 4711;" in compile_cuda(source / "k.cu", name=NAME).ptx


def test_the_name_counts_in_the_cache(fresh_cache: Path) -> None:
    text = "__global__ void k(int *p) { p[0] = 1; }\n"
    assert not compile_cuda(text, name="/a/k.cu").from_cache
    assert not compile_cuda(text, name="/b/k.cu").from_cache
    assert not compile_cuda(text).from_cache
    assert compile_cuda(text, name="/a/k.cu").from_cache


def test_headers_that_would_coincide_get_folders(tmp_path: Path) -> None:
    text = '#include "x.h"\n#include <y.h>\n#include "b/y.h"\n#include_next <x.h>\n#include <absent.h>\n'
    source = lay(tmp_path, {"k.cu": text, "x.h": '#include "y.h"\n', "y.h": "", "a/y.h": "", "b/y.h": ""})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "y.h").write_text("1")
    headers = find_headers(text, source, [outside], {})
    edited, renamed = rename(text, headers, source, [outside], NAME)
    lines = edited.splitlines()
    assert lines[0] == '#include "/kernels/x.h"' and lines[2:] == [
        '#include "/kernels/b/y.h"',
        "#include_next <x.h>",
        "#include <absent.h>",
    ]
    inner = renamed.texts[Path("/kernels/x.h")]
    shown = {re.findall('"(.*)"', line)[0] for line in (lines[1], inner)}
    assert shown == {"/kernels/y.h", "/kernels/1/y.h"}
    assert renamed.texts[Path(re.findall('"(.*)"', lines[1])[0])] == "1"


def test_neutral_directories_are_the_directories(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("here")
    with neutral_directories({"label": tmp_path}) as (path,):
        assert (path / "f").read_text() == "here"
        with neutral_directories({"label": tmp_path}) as (inner,):
            assert inner == tmp_path, "taken: no name but its own"
    assert not path.exists() or path == tmp_path
