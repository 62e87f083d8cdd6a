"""Every test case and every realistic program compiles, and nvcc, where there is one, agrees."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from fasim.toolchain import compile_cuda, find_entry, plain_name

TESTS = Path(__file__).parents[1]
CASES = sorted((TESTS / "cases").glob("*.cu"))
PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.cu"))

# entries by plain name, in no order
PROGRAM_ENTRIES = {
    "cub_reduce": {"BlockSum<128, 8>"},
    "gemm_pipeline": {"gemm::tiled<16, 16, 16>", "copy_async"},
    "header_macros": {"square_kernel", "relu_kernel", "row_max"},
    "printf_assert": {"check"},
    "reduce_templates": {"reduce<float, 128u, MaxOp>"},
    "saxpy_main": {"saxpy"},
    "wmma_host_class": {"wmma_gemm"},
}


def entries(ptx: str) -> list[str]:
    return re.findall(r"\.entry\s+(\w+)", ptx)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case_compiles_with_all_its_entries(path: Path) -> None:
    module = compile_cuda(path)
    wanted = {run["entry"] for run in json.loads(path.with_suffix(".json").read_text())["runs"]}
    found = {find_entry(entries(module.ptx), name) for name in wanted}
    assert len(found) == len(wanted)
    assert found <= set(module.registers)
    assert module.cubin[:4] == b"\x7fELF"
    assert not module.ptx.endswith("\0")
    assert f'"{path}"' in module.ptx, ".file names the user's file"


def test_there_are_cases() -> None:
    assert len(CASES) == 21
    assert {path.stem for path in PROGRAMS} == set(PROGRAM_ENTRIES)


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_compiles(path: Path) -> None:
    module = compile_cuda(path)
    assert {plain_name(name) for name in entries(module.ptx)} == PROGRAM_ENTRIES[path.stem]
    assert ".visible .func" not in module.ptx, "host functions must not come back as device functions"


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_lines_are_those_of_the_file(path: Path) -> None:
    """The .loc lines of each program lie in lines that belong to device code, never in main."""
    module = compile_cuda(path)
    number = re.search(rf'\.file\s+(\d+)\s+"{re.escape(str(path))}"', module.ptx)
    assert number is not None
    text = path.read_text().splitlines()
    main = next(i for i, line in enumerate(text, 1) if re.match(r"(int )?main\(", line))
    lines = {int(line) for line in re.findall(rf"\.loc\s+{number[1]} (\d+) ", module.ptx)}
    assert lines and max(lines) < main


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("path", [*CASES[::10], *PROGRAMS], ids=lambda path: path.stem)
def test_nvcc_sees_the_same_entries(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.ptx"
    subprocess.run(["nvcc", "-ptx", "-arch=sm_90", "-w", path, "-o", out], check=True, capture_output=True)
    theirs, ours = set(entries(out.read_text())), set(entries(compile_cuda(path).ptx))
    # nvcc also instantiates what host templates launch
    assert ours <= theirs
    assert {name for name in theirs if "<" not in plain_name(name)} <= ours
