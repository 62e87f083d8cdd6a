"""The app without a terminal: keys in, screen out."""

from __future__ import annotations

import pytest

from fasim.tui.session import VIEWS

MINE = """extern "C" __global__ void mine(float* x) {
  float y = x[threadIdx.x];
  y = y * 2.0f;
  x[threadIdx.x] = y / 0.0f * 0.0f;
}
"""


def test_first_frame(fa_v21, drive):
    lines, picture = drive(fa_v21)
    assert len(lines) == 24 and all(len(line) <= 80 for line in lines)
    assert lines[0].startswith("fa_v21  CTA 0,0,0  warp 0 (any warp)  0  tile -")
    assert any(line.startswith("> 158 fa_v21(const half*") for line in lines) and any(
        "> " in line and "ld.param.u64" in line for line in lines
    )
    assert picture.startswith("<svg")


def test_steps_forward_and_back_give_the_same_screen(fa_v21, drive):
    forth, _ = drive(fa_v21, "s", "s", "s")
    assert fa_v21.stepper.position > 0
    back, _ = drive(fa_v21, "n", "l", "t", "b", "B", "T", "L", "p", "g", f"'{fa_v21.stepper.position}", "enter")
    assert back == forth


def test_registers(fa_v21, drive):
    lines, _ = drive(fa_v21, "slash", "'ex2.approx", "enter", "n")
    head = next(number for number, line in enumerate(lines) if "f32 written" in line)
    assert lines[head + 1].startswith("  0: ") and len(lines[head + 1].split()) in (5, 9)
    lines, _ = drive(fa_v21, "f")
    assert len(next(line for line in lines if line.startswith("  0: ")).split()[1]) == 8


def test_fragments(fa_v21, drive):
    lines, _ = drive(fa_v21, "2", "slash", "'mma.sync", "enter", "n")
    assert any(line.startswith("D: 16 x 8 f32 in %f") for line in lines)
    lines, _ = drive(fa_v21, "o")
    assert any(line.startswith("A: 16 x 16 f16 in %r") for line in lines)


def test_banks_after_a_conflict(session, drive):
    linear = session("fa_v21", "--n", "128", "--heads", "1", "--layout", "linear")
    lines, _ = drive(linear, "3", "x", "'conflict", "enter", "c")
    assert any("wavefronts, " in line and "conflicts" in line for line in lines) and "breakpoint: conflict" in "\n".join(lines)


def test_pipeline_names_the_buffers(fa_v21, drive):
    lines, _ = drive(fa_v21, "4", "slash", "'commit_group", "enter", "n", "n")
    text = "\n".join(lines)
    assert "group 0 committed, on its way: 2,048 B to K[0] (1,024 B), V[0] (1,024 B)" in text


def test_rows(fa_v21, drive):
    lines, _ = drive(fa_v21, "5", "end")
    assert any(line.split()[:4] == ["row", "m", "rescale", "l"] for line in lines)
    assert next(line for line in lines if line.startswith("  0 ")).count(".") >= 2


@pytest.mark.parametrize("key", [str(number) for number in range(1, len(VIEWS) + 1)])
@pytest.mark.parametrize("where", ["home", "s", "end"])
def test_every_view_everywhere(fa_v21, drive, key, where):
    lines, _ = drive(fa_v21, where, key)
    assert len(lines) == 24 and f" {key} {VIEWS[int(key) - 1]} " in "\n".join(lines)


def test_help_and_away(fa_v21, drive):
    lines, _ = drive(fa_v21, "question_mark")
    assert "step of the algorithm" in "\n".join(lines)
    lines, _ = drive(fa_v21, "question_mark", "x", "x", "escape", "n")
    assert "step of the algorithm" not in "\n".join(lines) and fa_v21.stepper.position == 1


def test_prompts_say_what_is_wrong(fa_v21, drive):
    for keys, expected in (
        (("x", "'lines 3", "enter"), "is no breakpoint"),
        (("g", "'x", "enter"), "is no position"),
        (("g", "'" + 20 * "9", "enter"), "is no position"),
        (("k", "'" + 20 * "9", "enter"), "one to three numbers from 0 on"),
        (("k", "'5,5", "enter"), "the grid is 1,1,1, and CTAs count from 0"),
        (("w", "'7", "enter"), "is no warp"),
        (("r", "'%zz", "enter"), "is no register"),
    ):
        lines, _ = drive(fa_v21, *keys)
        assert expected in "\n".join(lines[-4:])


def test_a_file_without_marks(session, drive, tmp_path):
    source = tmp_path / "mine.cu"
    source.write_text(MINE)
    own = session(str(source), grid="1", block="32", args=("x=f32[32]:arange",))
    lines, _ = drive(own, "s", "l", "x", "'nan", "enter", "c")
    assert "breakpoint: nan" in "\n".join(lines) and own.event.nan_lanes and any(line.startswith(">") and "0.0f" in line for line in lines)
    lines, _ = drive(own, "5")
    assert "does not say which lines" in "\n".join(lines)
    lines, _ = drive(own, "t")
    assert "has no loop" in "\n".join(lines)


def matrix(lines):
    """The rows of the fragment that a screen shows."""
    start = next(number for number, line in enumerate(lines) if " in {" in line or "; o: " in line)
    return [line.split()[1:] for line in lines[start + 2 :] if line.strip()[:1].isdigit()]


def test_fragments_show_what_the_instruction_took(fa_v21, drive):
    """The result stands in the accumulator's registers: C is what they held before, D is not known before."""
    size = (120, 90)
    fa_v21.choose_warp("0")
    fa_v21.view = "fragment"
    fa_v21.find("mma.sync")
    while fa_v21.event.source.mnemonic.startswith(("mma", "ldmatrix")):  # those would be shown
        fa_v21.find("mma.sync")
    lines, _ = drive(fa_v21, size=size)
    assert "· is not computed yet" in "\n".join(lines) and all(set(row) == {"·"} for row in matrix(lines))
    before = {operand: matrix(drive(fa_v21, "o", size=size)[0]) for operand in "ABC"}
    fa_v21.operand = 0
    fa_v21.move("instruction")
    after = {operand: matrix(drive(fa_v21, *(["o"] if operand != "D" else []), size=size)[0]) for operand in "DABC"}
    assert {operand: after[operand] for operand in "ABC"} == before
    assert after["D"] != after["C"] and "·" not in str(after)


def test_jumps_that_are_not_in_the_ptx(session, drive):
    """They are executed, so they have positions; nowhere are they taken for the instruction before them."""
    flash = session("fa_v21", "--n", "128", "--heads", "1")
    places = flash.stepper.places
    inserted = [pc for pc in range(len(places.program)) if places.inserted(pc)]
    assert inserted
    while flash.stepper.state.next.pc not in inserted:
        flash.stepper.go_to(flash.stepper.position + 1)
    lines, _ = drive(flash, size=(120, 24))
    pc = flash.stepper.state.next.pc
    assert any(f">  {pc} (inserted jump to " in line for line in lines)
    lines, _ = drive(flash, "6", "n", size=(120, 24))
    assert any(line.startswith("warp 0: (inserted jump to ") for line in lines)
    assert any(line.startswith("jump inserted: it is not in the PTX") for line in lines)


def test_findings_that_may_be_withdrawn(session, drive, tmp_path):
    source = tmp_path / "racy.cu"
    source.write_text(
        'extern "C" __global__ void racy(int* out) {\n  __shared__ int s[64];\n'
        "  if (threadIdx.x < 32) out[s[threadIdx.x + 32] & 31] = 1;\n  else s[threadIdx.x] = threadIdx.x;\n}\n"
    )
    racy = session(str(source), grid="1", block="64", args=("out=i32[64]:zeros",))
    racy.break_at("hazard init")
    racy.move("run")
    assert racy.message == "breakpoint: hazard init"
    there, event = racy.stepper.position, racy.event
    lines, _ = drive(racy, "6")
    assert any(", so far: " in line for line in lines)
    racy.go_to("end")
    racy.go_to(str(there))
    assert racy.stepper.lasting(event.hazards) == ()
    lines, _ = drive(racy, "6")
    assert "so far" not in "\n".join(lines)


def test_sources_with_tabs_and_other_controls(session, drive, tmp_path):
    """What a terminal would obey is shown, not obeyed; lines are those that the compiler counts."""
    source = tmp_path / "controls.cu"
    source.write_bytes(
        b'#include <cstdio>\r\nextern "C" __global__ void controls(int* x) {\r\n\tif (threadIdx.x == 0)\r\n'
        b'\t\tprintf("tab\\there\\x1b[31m [bold]\\n");\r\n\t// page \x0c two\r\n\tx[threadIdx.x] = 1;\r\n}\r\n'
    )
    own = session(str(source), grid="1", block="32", args=("x=i32[32]:zeros",))
    own.find("call")
    lines, _ = drive(own, "6", "n")
    assert len(lines) == 24 and all(len(line) <= 80 for line in lines)
    assert any(" ".join(line.split()) == "printed: tab here\\x1b[31m [bold]" for line in lines)
    own.find("st.global")
    lines, _ = drive(own)
    assert any(line.startswith(">   6     x[threadIdx.x] = 1;") for line in lines)
    assert any(line.startswith("    5     // page \\x0c two") for line in lines)


def test_ptx_without_lines(session, drive, tmp_path):
    source = tmp_path / "own.ptx"
    source.write_text(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry own(.param .u64 p) {\n  .reg .b64 %d<2>;\n"
        "  ld.param.u64 %d1, [p];\n  st.global.u32 [%d1], 7;\n  ret;\n}\n"
    )
    own = session(str(source), grid="1", block="32", args=("p=u32[1]:zeros",))
    for key in "ls":
        lines, _ = drive(own, key)
        assert "the PTX names no source lines: n moves by instruction" in "\n".join(lines) and own.stepper.position == 0
    lines, _ = drive(own, "4", "n")
    assert any(line.startswith("warp 0: ready at instruction 1;") for line in lines)


def test_a_failure_and_its_findings_are_told_in_full(session, drive, tmp_path):
    """The status line has six rows only."""
    source = tmp_path / "dead.cu"
    source.write_text(
        'extern "C" __global__ void dead(int* x) {\n  x[0] = 1;\n  if (threadIdx.x < 40)\n    __syncthreads();\n  else\n'
        '    asm volatile("bar.sync 1;");\n}\n'
    )
    own = session(str(source), grid="1", block="64", args=("x=i32[64]:zeros",))
    lines, _ = drive(own, "6", "end")
    text = " ".join(" ".join(lines).split())
    assert "deadlock in kernel dead" in text and text.count("wait for barrier 0") >= 2 and "lanes 8-31 wait for barrier 1" in text
    assert any(line.startswith("the kernel fails here") for line in lines)
    lines, _ = drive(own, "4")
    assert any(line.startswith("barrier 0: 40 of all 64 threads; warps [0, 1] wait") for line in lines)
    lines, _ = drive(own, "1", size=(40, 10))
    assert len(lines) == 10 and all(len(line) <= 40 for line in lines)
