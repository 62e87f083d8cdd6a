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
    assert lines[0].startswith("fa_v21  CTA 0,0,0  warp 0 (any)  0  tile -")
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
