"""`fasim layout`: the list, both ways, pictures, JSON, errors."""

from __future__ import annotations

import re

import pytest

import fasim
from fasim.cli.layout import examine
from fasim.report.layout import Selection
from fasim.report.layout_catalog import catalog
from fasim.report.layout_text import View, print_layout

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def layout(fasim_command):
    """Returns a function that runs `fasim layout`."""
    return lambda *words: fasim_command("layout", *words)


def test_list(layout):
    done = layout()
    assert (done.code, done.err) == (0, "")
    listed = [line.split()[0] for line in done.out.splitlines() if re.match(r"(ldmatrix|stmatrix|mma|wmma|hand-over)\b", line)]
    assert listed == [*catalog(), "hand-over"]
    assert re.search(r"^mma\.m16n8k16\.f16 +A 16 x 16 f16: 4, B 16 x 8 f16: 2, C, D 16 x 8 f32: 4 *$", done.out, re.M)
    assert re.search(r"^ldmatrix\.x4\.trans +4 of 8 x 8 b16: 4 *$", done.out, re.M)


def test_list_as_json(layout):
    record = layout("--json").record
    assert list(record) == ["schema", "layouts", "version"] and record["schema"] == "fasim.layouts/1"
    assert [each["name"] for each in record["layouts"]] == [*catalog(), "hand-over"]
    first = record["layouts"][0]
    assert first == {
        "name": "ldmatrix.x1",
        "title": "load 1 matrix of 8 x 8 b16 from shared memory",
        "fragments": [
            {
                "operands": ["R"], "prefix": "r", "type": "b16", "matrices": 1,
                "matrix_names": ["lanes 0-7 give the addresses of its rows"],
                "rows": 8, "columns": 8, "registers": 1, "register_bits": 32, "element_bits": 16,
            }
        ],
    }  # fmt: skip


def grid(text):
    """The rows of the grids in a text: their names and their cells."""
    lines = re.findall(r"^(row [\d-]+) +(.*?) *$", text, re.M)
    return {name: re.split(r"  +", cells) for name, cells in lines}


def test_grid(layout):
    done = layout("mma.m16n8k16.f16", "--operand", "a")
    assert (done.code, done.err) == (0, "")
    assert "instruction    mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32\n" in done.out
    assert "A: 16 x 16 f16 in a0 to a3 of 32 bits, 2 elements in each, the first in the low bits\n" in done.out
    rows = grid(done.out)
    assert list(rows) == [f"row {i}" for i in range(16)]
    assert rows["row 5"] == ["20 a0", "21 a0", "22 a0", "23 a0", "20 a2", "21 a2", "22 a2", "23 a2"]
    assert "\nC and D: 16 x 8 f32 in c0 to c3 of 32 bits\n" in layout("mma.m16n8k16.f16").out


def test_colour_changes_nothing_but_colour(layout, capfd):
    plain = layout("mma.m16n8k16.f16").out
    report, _ = examine("mma.m16n8k16.f16", None, Selection())
    print_layout(report, View(200, color=True))
    coloured = capfd.readouterr().out
    # lanes 0-3: two rows of A, a column of B, two rows of C and D
    assert coloured.count("\x1b[31m") == 16 + 8 + 16 and re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_transposed_and_stored(layout):
    done = layout("ldmatrix.x4.trans")
    assert done.out.count("give the addresses of its rows") == 4 and "matrix 3: lanes 24-31 give" in done.out
    assert grid(done.out)["row 4-5"] == [f"{4 * column + 2} r3" for column in range(8)]
    assert grid(layout("stmatrix.x2").out)["row 7"] == ["28 r1", "29 r1", "30 r1", "31 r1"]


def test_a_narrow_terminal_breaks_grids(layout, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = layout("wmma.m8n32k16.f16", "--operand", "D")
    assert max(map(len, (line.rstrip() for line in done.out.splitlines()))) <= 80
    assert len(re.findall(r"^column", done.out, re.M)) == 4
    cells = [cell for line in re.findall(r"^row 7 +(.*)$", done.out, re.M) for cell in re.split(r"  +", line.strip())]
    assert len(cells) == 32 and cells[-1] == "31 d7"


@pytest.mark.parametrize(
    ("words", "answers"),
    [
        (["mma.m16n8k16.f16", "--operand", "A", "--element", "5,3"], ["A (5, 3) is in lane 21, register a0, bits 16-31"]),
        (
            ["mma.m16n8k16.f16", "--element", "5,3"],
            [
                "A (5, 3) is in lane 21, register a0, bits 16-31",
                "B (5, 3) is in lane 14, register b0, bits 16-31",
                "C and D (5, 3) is in lane 21, register c1",
            ],
        ),
        (["mma.m16n8k16.f16", "--element", "5,9"], ["A (5, 9) is in lane 20, register a2, bits 16-31"]),
        (["mma.m16n8k16.f16", "--operand", "A", "--lane", "7", "--reg", "2"], ["lane 7, a2: bits 0-15 A (1, 14), bits 16-31 A (1, 15)"]),
        (["mma.m16n8k16.f16", "--operand", "D", "--lane", "7", "--reg", "2"], ["lane 7, d2: D (9, 6)"]),
        (["ldmatrix.x4", "--element", "2,5,3"], ["matrix 2 (5, 3) is in lane 21, register r2, bits 16-31"]),
        (["stmatrix.x1.trans", "--lane", "7"], ["lane 7, r0: bits 0-15 (6, 1), bits 16-31 (7, 1)"]),
        (["hand-over", "--element", "5,11"], ["P (5, 11) is in lane 21, register a2, bits 16-31 (from c1 of S matrix 1)"]),
        (["hand-over", "--operand", "s", "--element", "1,5,3"], ["S matrix 1 (5, 3) is in lane 21, register c1"]),
    ],
)
def test_answers(layout, words, answers):
    done = layout(*words)
    assert (done.code, done.err) == (0, "")
    sentences = [line for line in done.out.splitlines() if " is in lane " in line or line.startswith("lane ")]
    assert sentences == answers and not grid(done.out)


def test_many_elements_in_a_register_are_told_one_a_line(layout):
    done = layout("mma.m16n8k32.s8", "--operand", "B", "--lane", "7", "--reg", "1")
    assert re.findall(r"bits (\d+)-\d+ B \((\d+), 1\)\n", done.out) == [("0", "28"), ("8", "29"), ("16", "30"), ("24", "31")]


def test_hand_over(layout):
    done = layout("hand-over")
    assert (done.code, done.err) == (0, "")
    assert "\n  a2 of P = {c0, c1} of S matrix 1, the first in the low bits\n" in done.out
    assert len(re.findall(r"^row ", done.out, re.M)) == 48
    moves = layout("hand-over", "--json").record["moves"]
    assert len(moves) == 8 and moves[5] == {"register": 2, "low_bit": 16, "block": 1, "from_register": 1}


def test_json(layout):
    record = layout("mma.m16n8k16.f16", "--json").record
    assert list(record) == [
        "schema", "name", "title", "instructions", "element", "lane", "register", "fragments", "moves", "saved", "version",
    ]  # fmt: skip
    assert (record["schema"], record["version"], record["saved"]) == ("fasim.layout/1", fasim.__version__, None)
    assert [each["operands"] for each in record["fragments"]] == [["A"], ["B"], ["C", "D"]]
    a = record["fragments"][0]
    assert list(a) == [
        "operands", "prefix", "type", "matrices", "matrix_names", "rows", "columns", "registers", "register_bits", "element_bits", "cells",
    ]  # fmt: skip
    assert len(a["cells"]) == 256 and a["cells"][8 * 7 + 4] == {
        "matrix": 0, "row": 1, "column": 14, "lane": 7, "register": 2, "low_bit": 0,
    }  # fmt: skip


def test_json_of_what_was_asked_for(layout):
    record = layout("mma.m16n8k16.f16", "--operand", "A", "--element", "5,3", "--json").record
    assert record["element"] == [5, 3] and [(cell["lane"], cell["register"]) for cell in record["fragments"][0]["cells"]] == [(21, 0)]
    record = layout("ldmatrix.x2", "--lane", "7", "--reg", "1", "--json").record
    assert (record["lane"], record["register"]) == (7, 1)
    assert [(cell["row"], cell["column"]) for cell in record["fragments"][0]["cells"]] == [(1, 6), (1, 7)]


@pytest.mark.parametrize("words", [["mma.m16n8k16.f16"], ["hand-over"], ["ldmatrix.x4.trans"], ["wmma.m16n16k16.f16", "--operand", "B"]])
def test_pictures(layout, tmp_path, words):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    for path in ("one.png", "one.svg", "two.svg"):
        done = layout(*words, "--out", path)
        assert (done.code, done.err) == (0, "") and done.out.endswith(f"\nsaved          {path}\n")
    assert (tmp_path / "one.png").read_bytes().startswith(PNG) and (tmp_path / "one.png").stat().st_size > 10_000
    text = (tmp_path / "one.svg").read_text()
    assert text == (tmp_path / "two.svg").read_text()
    assert f">{words[0]}</text>" in text and "28-31" in text
    record = layout(*words, "--json").record
    registers = {f">{each['prefix']}{number}" for each in record["fragments"] for number in range(each["registers"])}
    # a register that repeats what another has stands behind that one's name
    assert all(register + "<" in text or words[0].startswith("wmma") for register in registers)


@pytest.mark.parametrize("name", ["ldmatrix.x4", "ldmatrix.x4.trans", "stmatrix.x4"])
def test_four_matrices_are_two_by_two(layout, tmp_path, name):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    layout(name, "--out", "four.svg")
    found = re.findall(r'<text [^>]*x="([\d.]+)" y="([\d.]+)"[^>]*>matrix (\d): ', (tmp_path / "four.svg").read_text())
    assert [matrix for *_, matrix in found] == ["0", "1", "2", "3"]
    (a, top), (b, also_top), (c, below), (d, also_below) = [(float(x), float(y)) for x, y, _ in found]
    assert (a, b) == (c, d) and a < b and (top, below) == (also_top, also_below) and top < below


def test_a_picture_frames_what_was_asked_for(layout, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    layout("mma.m16n8k16.f16", "--operand", "A", "--out", "plain.svg")
    layout("mma.m16n8k16.f16", "--operand", "A", "--lane", "7", "--out", "framed.svg")
    plain, framed = ((tmp_path / name).read_text().count("stroke-width: 2.5") for name in ("plain.svg", "framed.svg"))
    assert (plain, framed) == (0, 4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mma.m16n8k16.f61"], "near names: mma.m16n8k16.f64, mma.m16n8k16.f16"),
        (["mma.m16n8k16"], "write one of: mma.m16n8k16.s8"),
        (["add.f32"], "does not spread a matrix over the lanes"),
        (["mma.m16n8k16.f16", "--operand", "E"], "known: A, B, C, D"),
        (["ldmatrix.x4", "--operand", "A"], "known: R"),
        (["hand-over", "--operand", "A"], "known: S, P"),
        (["wmma.load.a.sync.aligned.row.m16n16k16.f16", "--operand", "B"], "moves operand A"),
        (["mma.m16n8k16.f16", "--element", "5"], "write ROW,COLUMN"),
        (["mma.m16n8k16.f16", "--element", "16,0"], "in A rows 0 to 15"),
        (["mma.m16n8k16.f16", "--lane", "32"], "lanes 0 to 31"),
        (["mma.m16n8k16.f16", "--reg", "4"], "A: a0 to a3"),
        (["mma.m16n8k16.f16", "--element", "0,0", "--reg", "0"], "give one or the other"),
        (["mma.m16n8k16.f16", "--out", "a.pdf"], "pictures are .png or .svg"),
        (["mma.m16n8k16.f16", "--out", "no/such/a.svg"], "there is no directory"),
        (["--operand", "A"], "name a layout"),
        (["--out", "a.svg"], "name a layout"),
    ],
)
def test_errors(layout, words, message):
    done = layout(*words)
    assert (done.code, done.out) == (2, "") and message in done.err
    record = layout(*words, "--json").record
    assert (record["schema"], record["type"]) == ("fasim.error/1", "UsageError") and message in record["message"]
