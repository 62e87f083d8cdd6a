"""Wavefronts by source line: bars against the rows of the report, sizes, texts, files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fasim.errors import UsageError
from fasim.report.banks import BanksReport, BanksVariant, tabulate
from fasim.report.lines_figure import MOST_COLUMNS, MOST_ROWS, LineBar, line_rows, lines_figure, save_lines
from fasim.trace.steps import SourceLines
from tests.report.accesses import COLUMN, MATRICES, ROW, access, record, result
from tests.report.figures import overlapping, svg_texts, texts_of

SOURCE = "__global__ void k() {\n    //@ WRITE\n    tile[y][x] = $1 + $2;\n    //@ READ\n    x = tile[x][y];\n    y = tile[y][x];\n}\n"
LINES = SourceLines({"k.cu": SOURCE})
STORE, READ, MATRIX = (("k.cu", 3),), (("k.cu", 5),), (("k.cu", 6),)
PADDED = access("LDS.32", lambda lane: 132 * lane)


def variant(label: str, *records) -> BanksVariant:
    return tabulate(result(*records), LINES, "sm_90", label=label, options={"n": 128, "layout": label})[0]


def report(*variants: BanksVariant) -> BanksReport:
    return BanksReport("k", "k.cu", "sm_90", "NVRTC", 0, list(variants), None, None, "0")


LINEAR = variant("layout=linear", record("st", ROW, STORE, 10), record("ld", COLUMN, READ, 3), record("ld", MATRICES, MATRIX))
BETTER = variant("layout=padded", record("st", ROW, STORE, 10), record("ld", PADDED, READ, 3))


def drawn(axes) -> list[tuple[int, float, float]]:
    """Row, start and length of each bar."""
    return [(round(p.get_y() - 0.25), p.get_x(), p.get_width()) for p in axes.patches]


def test_bars_are_ideal_and_what_is_beyond():
    figure = lines_figure(report(LINEAR, BETTER))
    left, right = figure.axes
    assert [axes.get_label() for axes in figure.axes] == ["layout=linear", "layout=padded"]
    assert [(row.title, row.code) for row in line_rows([LINEAR, BETTER])] == [
        ("READ  5  LDS.32", "x = tile[x][y];"),
        ("READ  6  LDSM.x4", "y = tile[y][x];"),
        ("WRITE  3  STS.32", "tile[y][x] = $1 + $2;"),
    ]
    assert drawn(left) == [(0, 0, 3), (0, 3, 93), (1, 0, 4), (1, 4, 28), (2, 0, 10)]
    assert drawn(right) == [(0, 0, 3), (2, 0, 10)]
    # the same scale, with room for what stands right of the longest bar
    assert left.get_xlim() == right.get_xlim() and left.get_xlim()[1] > 96
    assert all(0 <= tick <= 96 for tick in left.get_xticks())
    hatched = [bool(patch.get_hatch()) for patch in left.patches]
    assert hatched == [False, True, False, True, False]
    texts = texts_of(figure)
    sums = ("source page 138 (+121)", "hardware 138 (+121)", "source page 13", "hardware 13")
    for text in ("96 (+93)", "32 (+28)", *sums, "\N{EN DASH}", "n=128, k.cu, sm_90, NVRTC"):
        assert text in texts
    assert "tile[y][x] = $1 + $2;" in texts


def test_copies_past_l1_are_no_conflicts():
    """As the hardware's counters have it, which stand above the source page's sum."""
    copies = LINEAR.rows[1]
    row = replace(copies, op="LDGSTS.cg16", step="PREFETCH", wavefronts=0, conflicts=0, source_wavefronts=252, source_ideal=96)
    figure = lines_figure(report(replace(BETTER, rows=[*BETTER.rows, row])))
    (axes,) = figure.axes
    first, unseen, *_ = axes.patches  # the longest bar comes first
    assert (first.get_width(), unseen.get_x(), unseen.get_width()) == (96, 96, 156)
    assert not first.get_hatch() and unseen.get_hatch() not in ("", None, "/////")
    (number,) = [text for text in axes.texts if text.get_text() == "252 (+156)"]
    assert number.get_weight() == "normal"
    texts = texts_of(figure)
    assert "hardware 13" in texts and "source page 265 (+156)" in texts
    lengths = [max(bar.wavefronts for bar in row.bars if bar) for row in line_rows([replace(BETTER, rows=[*BETTER.rows, row])])]
    assert lengths == sorted(lengths, reverse=True)


def test_what_cannot_be_counted_is_said():
    assert LineBar(0, 0, counted=False).text == "not counted" and LineBar(1234, 1234).text == "1,234"
    assert LineBar(2, 5).excess == 0


def many(found: BanksVariant, rows: int, label: str) -> BanksVariant:
    """Each row several times, with large numbers."""
    made = [
        replace(row, step=f"STEP_{i}", source_wavefronts=1_234_567 * row.source_wavefronts + i, source_ideal=1_234_567 * row.source_ideal)
        for i in range(-(-rows // len(found.rows)))
        for row in found.rows
    ]
    return replace(found, label=label, rows=made[:rows])


@pytest.mark.parametrize("rows", [1, 3, 40])
@pytest.mark.parametrize("variants", [1, 2, 3, 6, 8])
def test_nothing_overlaps(rows, variants):
    labels = [f"layout=swizzled head_dim=128 causal=true bc={32 * i}" if variants > 1 else "" for i in range(variants)]
    figure = lines_figure(report(*(many(LINEAR, rows, label) for label in labels)))
    assert len(figure.axes) == variants and overlapping(figure) == []
    assert figure.get_figwidth() < 20 and figure.get_figheight() < 0.45 * rows * -(-variants // MOST_COLUMNS) + 4.5


def test_more_rows_than_there_is_room_for_are_added_up():
    big = many(LINEAR, MOST_ROWS + 5, "x")
    rows = line_rows([big, BETTER])
    assert len(rows) == MOST_ROWS and rows[-1].title == f"{len(big.rows) + 2 - (MOST_ROWS - 1)} more"
    for column, each in enumerate((big, BETTER)):
        found = [bar for row in rows if (bar := row.bars[column])]
        assert sum(bar.wavefronts for bar in found) == each.sums[3] and sum(bar.ideal for bar in found) == each.sums[4]


def test_files(tmp_path):
    first, second = tmp_path / "1.svg", tmp_path / "2.svg"
    for path in (first, second):
        save_lines(path, report(LINEAR, BETTER))
    assert first.read_bytes() == second.read_bytes()
    texts = svg_texts(first)
    assert "layout=linear" in texts and "READ  5  LDS.32" in texts and "96 (+93)" in texts
    save_lines(tmp_path / "1.png", report(LINEAR))
    assert (tmp_path / "1.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(UsageError, match=r"--lines-out .*gone.*: No such file"):
        save_lines(tmp_path / "gone" / "1.svg", report(LINEAR))
    with pytest.raises(UsageError, match="kernel k makes no access to shared memory"):
        save_lines(tmp_path / "1.svg", report(replace(LINEAR, rows=[])))
