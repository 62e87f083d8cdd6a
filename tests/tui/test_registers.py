"""The view of registers and the lines around it, as text."""

from __future__ import annotations

import pytest

SOURCE = """extern "C" __global__ void k(int* a, float* x, int n) {
  int i = threadIdx.x;
  if (i < 3) a[i] = a[i] * n - 40;
  x[i] = i * 0.5f;
}
"""


@pytest.fixture
def k(session, tmp_path):
    source = tmp_path / "k.cu"
    source.write_text(SOURCE)
    return session(str(source), grid="1", block="32", args=("a=i32[4,8]:arange", "x=f32[32]:zeros", "n=2"))


def grid(lines, head):
    """The values below a heading, and the heading."""
    at = next(number for number, line in enumerate(lines) if head in line)
    values = []
    for line in lines[at + 1 :]:
        start, colon, rest = line.partition(":")
        if not (colon and start.strip().isdigit()):
            break
        values += rest.split()
    return values, lines[at]


def test_integers_as_the_instruction_takes_them(k, drive):
    k.find("mad.lo.s32")
    lines, _ = drive(k, "n", size=(80, 40))
    values, head = grid(lines, "s32 written by lanes 0-2")
    assert values[:4] == ["-40", "-38", "-36", values[3]] and all(value.startswith("·") for value in values[3:])
    assert head.rstrip().endswith("as value (f)") and len(values) == 32
    lines, _ = drive(k, "f", size=(80, 40))
    values, head = grid(lines, "s32 written by lanes 0-2")
    assert values[0] == "ffffffd8" and head.rstrip().endswith("as hex (f)")


def test_addresses_are_places_in_buffers(k, drive):
    k.find("ld.global.u32")
    lines, _ = drive(k, size=(80, 40))
    values, _ = grid(lines, "s64 written by lanes 0-2")
    assert values[:3] == ["a+0", "a+4", "a+8"]
    k.break_at("mem a[0,2]")
    k.move("run")
    lines, _ = drive(k, "6", size=(80, 40))
    assert "writes 4 B a lane, global: a + [0, 12) = a[0, 0] to a[0, 2]" in "\n".join(lines)
    assert "lanes 0-2 executed it" in "\n".join(lines)


def test_after_a_store_what_it_took_is_shown(k, drive):
    k.break_at("mem a[0,2]")
    k.move("run")
    lines, _ = drive(k, "1", size=(80, 40))
    values, _ = grid(lines, "u32 was read by lanes 0-2")
    assert values[0] == str(2**32 - 40)
    values, _ = grid(lines, "b64 was read by lanes 0-2")
    assert values[:3] == ["a+0", "a+4", "a+8"]


def test_predicates_in_groups_of_eight(k, drive):
    k.find("setp")
    lines, _ = drive(k, "n", size=(80, 40))
    values, _ = grid(lines, "pred written")
    assert [len(value) for value in values] == [8] * 4 and {*"".join(values)} == {"0", "1"}


@pytest.mark.parametrize(("height", "there"), [(24, True), (16, False)])
def test_the_next_instruction_in_full(fa_v21, drive, height, there):
    fa_v21.find("mma.sync")
    lines, _ = drive(fa_v21, size=(80, height))
    text = fa_v21.stepper.places.text(fa_v21.pc)
    assert (text.split("{")[0] in " ".join(lines) and text[-20:] in " ".join(" ".join(lines).split())) == there


def test_lanes_of_the_next_instruction(k, drive):
    k.find("ld.global.u32")
    lines, _ = drive(k)
    (line,) = [line for line in lines if line.startswith("> ld.global.u32")]
    assert line.rstrip().endswith("lanes 0-2")


def test_help_fills_the_screen_and_ctrl_c_quits(k, drive):
    lines, _ = drive(k, "question_mark")
    text = "\n".join(lines)
    assert (
        "value, hex, signed, f16x2, bf16x2," in text
        and "any key goes back" in text
        and "st.global" not in text
        and "1 registers  2" in text
    )
    lines, _ = drive(k, "x", "ctrl+c")
    assert "Traceback" not in "\n".join(lines)
