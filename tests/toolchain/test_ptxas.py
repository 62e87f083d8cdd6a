"""ptxas: cubins with line information, its messages, and programs that are not as they should be."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fasim.errors import CompileError, FasimError, PtxError, ToolMissing, UsageError
from fasim.toolchain import compile_cuda, ptxas
from fasim.toolchain.ptxas import assemble
from fasim.toolchain.tools import find_tool

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .f32 %f<3>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [p];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.f32 %f1, [%rd2];
  add.f32 %f2, %f1, 0f3F800000;
  st.global.f32 [%rd2], %f2;
  ret;
}
"""
# the same with source lines
LOCATED = (
    PTX.replace("  ld.global", "  .loc 1 70 3\n  ld.global").replace("  st.global", "  .loc 1 71 3\n  st.global")
    + '.file 1 "/kernels/k.cu"\n'
)
WARNED = PTX.replace("(.param .u64 p)", "(.param .u64 p) .minnctapersm 2")


def _missing(name: str) -> str:
    try:
        find_tool(name)
    except ToolMissing as error:
        return str(error)
    return ""


needs_ptxas = pytest.mark.skipif(bool(_missing("ptxas")), reason=_missing("ptxas") or "there")
needs_nvdisasm = pytest.mark.skipif(bool(_missing("nvdisasm")), reason=_missing("nvdisasm") or "there")


def lines_of(cubin: bytes, folder: Path, *options: str) -> dict[str, set[int]]:
    """The lines that nvdisasm gives for the machine instructions whose name starts with LDG, FADD or STG."""
    (folder / "k.cubin").write_bytes(cubin)
    done = subprocess.run([find_tool("nvdisasm"), "-c", *options, str(folder / "k.cubin")], capture_output=True, text=True, check=True)
    found: dict[str, set[int]] = {}
    line = 0
    for text in done.stdout.splitlines():
        if match := re.search(r'//## File ".*", line (\d+)', text):
            line = int(match[1])
        elif match := re.search(r"/\*[0-9a-f]{4,}\*/\s+(LDG|FADD|STG)", text):
            found.setdefault(match[1], set()).add(line)
    return found


@needs_ptxas
def test_a_cubin_and_what_ptxas_says_of_it(fresh_cache: Path) -> None:
    made = assemble(PTX, "k.ptx", "sm_90")
    assert made.cubin[:4] == b"\x7fELF" and made.arch == "sm_90"
    assert re.fullmatch(r"ptxas \d+\.\d+\.\d+", made.assembler)
    assert 4 <= made.registers["k"] <= 16 and f"Used {made.registers['k']} registers" in made.log
    assert "Compile time" not in made.log


@needs_ptxas
@needs_nvdisasm
@pytest.mark.parametrize(
    ("ptx", "ptx_lines", "source_lines"),
    [(PTX, (9, 10, 11), (0, 0, 0)), (LOCATED, (10, 11, 13), (70, 70, 71))],
    ids=["without .loc", "with .loc"],
)
def test_line_information(ptx: str, ptx_lines: tuple[int, ...], source_lines: tuple[int, ...], tmp_path: Path) -> None:
    cubin = assemble(ptx, "k.ptx", "sm_90").cubin
    names = ("LDG", "FADD", "STG")
    assert lines_of(cubin, tmp_path, "-gp") == {name: {line} for name, line in zip(names, ptx_lines, strict=True)}
    assert lines_of(cubin, tmp_path, "-gi") == {name: {line} for name, line in zip(names, source_lines, strict=True)}


@needs_nvdisasm
def test_nvrtc_gives_ptx_lines_too(tmp_path: Path) -> None:
    module = compile_cuda("__global__ void k(float *p) {\n  p[0] = p[1] + 1;\n}\n")
    lines = lines_of(module.cubin, tmp_path, "-gp")
    text = ["", *module.ptx.splitlines()]
    for name, mnemonic in (("LDG", "ld.global"), ("FADD", "add"), ("STG", "st.global")):
        (line,) = lines[name]
        assert mnemonic in text[line]


@needs_ptxas
def test_the_cache_and_the_path(fresh_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = assemble(WARNED, "one.ptx", "sm_90")
    again = assemble(WARNED, "/other/two.ptx", "sm_90")
    assert (first.from_cache, again.from_cache) == (False, True)
    assert "one.ptx:13: warning: .minnctapersm" in first.log and "/other/two.ptx:13: warning: .minnctapersm" in again.log
    assert not assemble(WARNED, "one.ptx", "sm_90a").from_cache and not assemble(PTX, "one.ptx", "sm_90").from_cache
    monkeypatch.setenv("FASIM_CACHE_DIR", str(tmp_path / "another"))
    monkeypatch.chdir(tmp_path)
    anew = assemble(WARNED, "/other/two.ptx", "sm_90")
    assert not anew.from_cache and anew.cubin == first.cubin


@needs_ptxas
@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (("add.f32", "addd.f32"), PtxError, r"^my\.ptx:10: error: Not a name of any known instruction: 'addd'$"),
        (("%f2, %f1, 0f", "%f2, %f9, 0f"), PtxError, r"my\.ptx:10: error: Unknown symbol '%f9'"),
        (("  ret;", "  ret"), PtxError, r"^my\.ptx:13: fatal: Parsing error near '}': syntax error$"),
        (
            (".version 8.0", ".version 99.0"),
            ToolMissing,
            r"my\.ptx is PTX of version 99\.0, and ptxas .* knows versions up to \d+\.\d\. .*upgrade nvidia-",
        ),
        ((".target sm_90", ".target sm_999"), UsageError, r"my\.ptx: ptxas .* does not know the target 'sm_999': my\.ptx:2: fatal"),
        ((".target sm_90", ".target sm_100"), PtxError, r"my\.ptx:2: error: PTX \.version 8\.0 does not support \.target sm_100"),
    ],
)
def test_messages(change: tuple[str, str], kind: type[FasimError], message: str, fresh_cache: Path) -> None:
    with pytest.raises(kind, match=message) as caught:
        assemble(PTX.replace(*change), "my.ptx", "sm_90")
    assert type(caught.value) is kind
    assert not [path for path in fresh_cache.rglob("*") if path.is_file()], "failures are not kept"


@needs_ptxas
def test_targets() -> None:
    with pytest.raises(UsageError, match=r"does not know the target 'sm_33'"):
        assemble(PTX, "k.ptx", "sm_33")
    with pytest.raises(UsageError, match=r"k\.ptx: its \.target is newer than sm_80"):
        assemble(PTX, "k.ptx", "sm_80")


@pytest.mark.parametrize("arch", ["", "90", "compute_90", "sm_90 -o x"])
def test_what_is_no_target(arch: str) -> None:
    with pytest.raises(UsageError, match="is no target for a cubin"):
        assemble(PTX, "k.ptx", arch)


# -- programs made for the test -------------------------------------------------------------------------------------------------------

VERSION = 'if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V{}"; exit 0; fi\n'


@pytest.fixture
def fake(tmp_path: Path, fresh_cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a shell script the ptxas that is found."""
    path = tmp_path / "bin" / "ptxas"
    path.parent.mkdir()
    monkeypatch.setattr(ptxas, "find_tool", lambda name: str(path))

    def make(body: str, version: str = "13.0.1") -> Path:
        path.write_text("#!/bin/sh\n" + (VERSION.format(version) if version else "") + body)
        path.chmod(0o755)
        return path

    return make


@pytest.mark.parametrize(
    ("body", "version", "kind", "message"),
    [
        (
            "kill -SEGV $$",
            "13.0.1",
            CompileError,
            r"k\.ptx: ptxas 13\.0\.1 \(.*/bin/ptxas\) crashed \(SIGSEGV\) while it assembled for sm_90",
        ),
        ("echo 'ptxas fatal   : no memory' >&2; exit 1", "13.0.1", CompileError, r"failed with exit code 1:\nptxas fatal   : no memory"),
        ("exit 0", "13.0.1", CompileError, r"failed with exit code 0:\n\(no message\)"),
        (
            "echo nonsense; exit 3",
            "",
            ToolMissing,
            r"/bin/ptxas is no ptxas that runs: nonsense\. Get another: pip install nvidia-cuda-nvcc",
        ),
        ("exit 3", "", ToolMissing, r"is no ptxas that runs: exit code 3\."),
    ],
)
def test_programs_that_fail(fake: Callable[..., Path], body: str, version: str, kind: type[FasimError], message: str) -> None:
    fake(body + "\n", version)
    with pytest.raises(kind, match=message) as caught:
        assemble(PTX, "k.ptx", "sm_90")
    assert type(caught.value) is kind


def test_a_program_that_may_not_run(fake: Callable[..., Path]) -> None:
    fake("exit 0\n").chmod(0o644)
    with pytest.raises(ToolMissing, match=r"bin/ptxas cannot be run: Permission denied\. Get another: pip install nvidia-cuda-nvcc"):
        assemble(PTX, "k.ptx", "sm_90")


def test_another_version_assembles_anew(fake: Callable[..., Path]) -> None:
    """A script of the same path may call another program, so the version it prints counts."""
    body = 'while [ "$1" != -o ]; do shift; done\nprintf "made by V" > "$2"\n'
    fake(body)
    assert assemble(PTX, "k.ptx", "sm_90").cubin == b"made by V"
    assert assemble(PTX, "k.ptx", "sm_90").from_cache
    fake(body, "13.0.22")
    second = assemble(PTX, "k.ptx", "sm_90")
    assert (second.from_cache, second.assembler) == (False, "ptxas 13.0.22")


def test_no_ptxas_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from fasim.toolchain import tools

    monkeypatch.setattr(tools, "nvidia_directories", lambda: ())
    monkeypatch.setattr(tools, "_in", lambda roots, file: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolMissing, match="pip install nvidia-cuda-nvcc"):
        assemble(PTX, "k.ptx", "sm_90")
