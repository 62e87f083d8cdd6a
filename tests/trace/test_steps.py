"""Which step of the algorithm a line belongs to."""

from __future__ import annotations

from pathlib import Path

import pytest

from fasim import kernels
from fasim.isa.program import SourceInstruction
from fasim.trace.steps import SourceLines, call_path, steps_by_line

SOURCE = """\
// A line "//@ NAME" names a step.
__device__ int helper(int x) {
    //@ IN_HELPER
    return x + 1;
}
template <int N> __device__ int plain(int x) { return x + N; }

extern "C" __global__ void first(int* p) {
    int x = p[0];
    //@ LOAD
    if (x) {
        x = helper(x);
        //@   INNER
        x = plain<2>(x);
    }
    p[0] = x;  // "}"
    /* } */ p[1] = '}';
}

namespace mine {
__global__ void second(int* p) {
    p[2] = 0;
    //@ LAST
}
int after;
}
"""
STEPS = {
    **dict.fromkeys((3, 4, 5), "IN_HELPER"),
    **dict.fromkeys((10, 11, 12), "LOAD"),
    **dict.fromkeys((13, 14, 15, 16, 17, 18), "INNER"),
    **dict.fromkeys((23, 24), "LAST"),
}


def test_a_step_reaches_to_the_next_mark_or_the_end_of_the_function():
    assert steps_by_line(SOURCE) == [STEPS.get(number, "") for number in range(1, SOURCE.count("\n") + 1)]


def test_no_marks_no_steps():
    assert steps_by_line("int a;\nint b;\n") == ["", ""]
    assert steps_by_line("") == []


def instruction(line: int, *sites: tuple[str, int], file: str = "k.cu") -> SourceInstruction:
    return SourceInstruction("ld.shared.b32 %r1, [%r2];", "ld.shared.b32", 7, file, line, sites)


@pytest.mark.parametrize(
    ("source", "step"),
    [
        (instruction(9), ""),
        (instruction(11), "LOAD"),
        # the call site in the kernel goes before marks of the function
        (instruction(4, ("k.cu", 12)), "LOAD"),
        (instruction(4, ("k.cu", 9)), "IN_HELPER"),
        (instruction(6, ("k.cu", 14)), "INNER"),
        (instruction(40, ("missing.cuh", 3), ("k.cu", 16), file="missing.cuh"), "INNER"),
        (instruction(0), ""),
    ],
)
def test_step_of_an_instruction(source, step):
    assert SourceLines({"k.cu": SOURCE}).step_of(source) == step


def test_call_path_goes_inwards():
    assert call_path(instruction(4, ("k.cu", 6), ("k.cu", 12))) == (("k.cu", 12), ("k.cu", 6), ("k.cu", 4))
    assert call_path(instruction(0)) == ()


def test_lines_of_a_file_on_disk(tmp_path):
    path = tmp_path / "k.cu"
    path.write_text(SOURCE)
    lines = SourceLines()
    assert lines.text(str(path), 12) == "x = helper(x);"
    assert (lines.text(str(path), 0), lines.text(str(path), 99), lines.text("nowhere.cu", 1)) == ("", "", "")
    assert lines.step(str(path), 12) == "LOAD"


def test_steps_of_v21():
    text = (kernels.load("fa_v21").path).read_text()
    steps = steps_by_line(text)
    by_code = {line.strip(): step for line, step in zip(text.splitlines(), steps)}
    assert by_code["ldmatrix_x4(q_frag[mi][km], smem + Q_BYTES + chunk_offset_bytes(row, chunk));"] == "Q_FRAGMENTS"
    assert by_code["copy_tile_async(smem, 0, k, v, 0, n);"] == "PROLOGUE"
    assert by_code["mma_m16n8k16(s[mi][ni + 1], q_frag[mi][km], b[2], b[3]);"] == "S_QK"
    assert by_code["const u32 k_tile = smem + K_BYTES + buffer * TILE_BYTES;"] == ""


def test_sources_that_are_not_utf8_and_paths_that_are_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compilers give whole paths; bytes that are no UTF-8 do not make a file unreadable."""
    file = tmp_path / "k.cu"
    file.write_bytes(b"// caf\xe9\r\n__global__ void k() {\r\n    //@ ONE\r\n    f(); // \xe9\r\n}\r\n")
    lines = SourceLines()
    assert lines.lines(str(file))[0] == "// caf\udce9" and lines.text(str(file), 4) == "f(); // \udce9"
    assert lines.step(str(file), 4) == "ONE"
    assert lines.lines(str(tmp_path / "absent.cu")) == lines.lines("\0") == []
    monkeypatch.chdir(tmp_path)
    given = SourceLines({"k.cu": "//@ TWO\n"})
    assert given.lines(str(file)) == given.lines("k.cu") == ["//@ TWO"]
