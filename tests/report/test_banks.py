"""The report by source line and step: rows, their order, several variants, details, JSON and the printed form."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fasim.errors import UsageError
from fasim.report.bank_tables import print_banks
from fasim.report.banks import BanksReport, aligned_rows, choose, look_closer, tabulate
from fasim.report.records import to_json
from fasim.trace.steps import SourceLines
from tests.report.accesses import COLUMN, MATRICES, ROW, access, record, result

SOURCE = """\
__device__ void load(int* p) { }
__global__ void k() {
    //@ WRITE
    tile[y][x] = 1;
    //@ READ
    load(&tile[x][y]);
    load(&tile[y][x]);
}
"""
LINES = SourceLines({"k.cu": SOURCE})
KERNEL_READ, KERNEL_READ_ROW = (("k.cu", 6), ("k.cu", 1)), (("k.cu", 7), ("k.cu", 1))
READ_ROW = access("LDS.32", lambda lane: 4 * lane)
HALF = access("LDS.32", lambda lane: 128 * lane, 0xFFFF)
RECORDS = (
    record("st", ROW, (("k.cu", 4),), 10),
    record("ld", HALF, KERNEL_READ, 2, "first", 30),
    record("ld", COLUMN, KERNEL_READ, 1, "second", 31),
    record("ld", READ_ROW, KERNEL_READ_ROW, 4),
    record("ld", READ_ROW, (("k.cu", 9),), 0),
)
PADDED = (
    record("st", ROW, (("k.cu", 4),), 10),
    record("ld", access("LDS.32", lambda lane: 132 * lane), KERNEL_READ, 3),
    record("st", ROW, (), 1, "st.shared.b32 [%r1], %r2;", 99),
)


def report(*launches, line=None, labels=("",), ideal=False) -> BanksReport:
    found = [tabulate(launch, LINES, "sm_90", label=label) for launch, label in zip(launches, labels)]
    chosen = choose([each for each, _ in found], line, ideal=ideal)
    variants = [look_closer(each, records, rows, "sm_90") for (each, records), rows in zip(found, chosen)]
    return BanksReport("k", "k.cu", "sm_90", "NVRTC", 0, variants, line, None, "0")


def test_rows_by_line_and_step_worst_first():
    variant, worst = tabulate(result(*RECORDS), LINES, "sm_90")
    rows = [
        (r.step, r.path, r.op, r.instructions, r.executions, r.wavefronts, r.conflicts, r.source_wavefronts, r.source_ideal)
        for r in variant.rows
    ]
    assert rows == [
        ("READ", KERNEL_READ, "LDS.32", 2, 3, 64, 61, 64, 3),
        ("WRITE", (("k.cu", 4),), "STS.32", 1, 10, 10, 0, 10, 10),
        ("READ", KERNEL_READ_ROW, "LDS.32", 1, 4, 4, 0, 4, 4),
    ]
    assert variant.sums == (17, 78, 61, 78, 17) and variant.totals == {"counter.sum": 7}
    assert [row.code for row in variant.rows] == ["load(&tile[x][y]);", "tile[y][x] = 1;", "load(&tile[y][x]);"]
    # of the instructions of a line the worst one stands for it
    assert (variant.rows[0].text, variant.rows[0].ptx_line, [each.source.text for each in worst[0]]) == ("second", 31, ["second", "first"])
    assert (variant.rows[0].file, variant.rows[0].line, variant.rows[0].kind) == ("k.cu", 1, "ld")


def test_what_only_the_source_page_sees_comes_after_conflicts():
    copies = record("cp.async", access("LDGSTS.cg16", lambda lane: 144 * (lane // 8) + 16 * (lane % 8)), (("k.cu", 4),), 100)
    two = record("ld", access("LDS.32", lambda lane: 8 * lane), (("k.cu", 6),))
    variant, _ = tabulate(result(copies, two), LINES, "sm_90")
    assert [(row.kind, row.conflicts) for row in variant.rows] == [("ld", 1), ("cp.async", 0)]
    assert variant.rows[1].source_wavefronts > variant.rows[1].source_ideal


def test_variants_side_by_side():
    found = report(result(*RECORDS), result(*PADDED), labels=("linear", "padded"))
    table = [[None if row is None else row.conflicts for row in rows] for rows in aligned_rows(found.variants)]
    assert table == [[61, 0], [0, 0], [0, None], [None, 0]]
    # the worst access of all, and the same one where it is cured
    assert [[(d.row, d.cost.conflicts) for d in each.details] for each in found.variants] == [[(0, 31)], [(1, 0)]]


def test_equal_instructions_without_lines_stay_apart():
    twice = [record("st", ROW, (), n, "st.shared.b32 [%r1], %r2;", n) for n in (1, 2)]
    found = report(result(*twice), result(*twice), labels=("a", "b"))
    assert [[row and row.executions for row in rows] for rows in aligned_rows(found.variants)] == [[2, 2], [1, 1]]


def test_a_chosen_line():
    by_call = report(result(*RECORDS), line=7)
    assert [detail.row for detail in by_call.variants[0].details] == [2]
    # the line inside the function is reached over both calls
    assert [detail.row for detail in report(result(*RECORDS), line=1).variants[0].details] == [0, 2]
    with pytest.raises(UsageError, match=r"no access to shared memory on line 5; there are on: 1, 4, 6, 7"):
        report(result(*RECORDS), line=5)
    with pytest.raises(UsageError, match=r"the kernel does not access shared memory"):
        report(result(), line=5)


def test_details():
    (detail,) = report(result(*RECORDS)).variants[0].details
    assert (detail.row, detail.ctaid, detail.warp, detail.active_mask) == (0, (1, 0, 0), 2, 0xFFFFFFFF)
    assert detail.byte_offsets == COLUMN.byte_offsets and detail.cost == COLUMN.count()
    assert (detail.advice.padding.padding_bytes, detail.advice.padding.others) == (4, 2)
    assert [group.wavefronts for group in detail.groups] == [32]


def test_the_swizzle_cures_all_instructions_of_a_row():
    # two unrolled reads of half a warp: rows 0 to 15, and every other row, which takes one bit more
    every_other = access("LDS.32", lambda lane: 256 * lane, 0xFFFF)
    narrow, wide = (record("ld", found, KERNEL_READ, 1, "", n) for n, found in enumerate((HALF, every_other)))
    swizzles = [report(result(*records)).variants[0].details[0].advice.swizzle.swizzle for records in ((narrow,), (narrow, wide))]
    assert swizzles == ["Swizzle<4,2,5>", "Swizzle<5,2,5>"]


def test_no_details_without_conflicts_unless_asked():
    assert report(result(*PADDED)).variants[0].details == []
    assert len(report(result(*PADDED), ideal=True).variants[0].details) == 1
    assert report(result()).variants[0].rows == [] and report(result(), ideal=True).variants[0].details == []


def test_json():
    text = json.loads(to_json(report(result(*RECORDS))))
    assert next(iter(text)) == "schema" and text["schema"] == "fasim.banks/1"
    (variant,) = text["variants"]
    assert variant["rows"][0]["path"] == [["k.cu", 6], ["k.cu", 1]] and variant["totals"] == {"counter.sum": 7}
    (detail,) = variant["details"]
    assert detail["groups"][0]["words"][1] == {"bank": 0, "byte_offset": 128, "lanes": [1], "collides": True}
    assert detail["advice"]["swizzle"]["swizzle"] == "Swizzle<5,2,5>"
    assert detail["advice"]["padding"]["then"] == {"wavefronts": 1, "conflicts": 0, "source_wavefronts": 1, "source_ideal": 1}


def printed(capsys, found: BanksReport, **how) -> list[str]:
    print_banks(found, columns=how.pop("columns", 160), color=how.pop("color", False), **how)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def table(lines: list[str]) -> list[list[str]]:
    """Cells of the table: what is more than one blank apart."""
    start = next(i for i, line in enumerate(lines) if "operation" in line)
    start -= bool(lines[start - 1])
    rows = [[cell for cell in line.strip().split("  ") if cell.strip()] for line in lines[start:] if line.strip()]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_table(capsys):
    lines = printed(capsys, report(result(*RECORDS)))
    assert lines[:2] == ["kernel         k", "source         k.cu (sm_90, NVRTC)"]
    assert table(lines)[:5] == [
        ["step", "line", "operation", "executions", "wavefronts", "conflicts", "source page", "ideal", "code"],
        ["READ", "6 > 1", "LDS.32", "3", "64", "61", "64", "3", "load(&tile[x][y]);"],
        ["WRITE", "4", "STS.32", "10", "10", "0", "10", "10", "tile[y][x] = 1;"],
        ["READ", "7 > 1", "LDS.32", "4", "4", "0", "4", "4", "load(&tile[y][x]);"],
        ["total", "17", "78", "61", "78", "17"],
    ]
    assert "           7  counter.sum" in lines
    assert "READ, line 6 > 1: LDS.32, 32 wavefronts, 31 conflicts (worst execution: CTA 1,0,0, warp 2)" in lines
    spared = "2 other accesses to these bytes get no additional conflicts"
    assert lines[-6:] == [
        "padding        4 bytes a row (pitch 128 -> 132 bytes): 1 wavefront, 0 conflicts",
        f"               costs 128 bytes for the 32 rows that this access spans; {spared}",
        "swizzle        Swizzle<5,2,5> of byte offsets, offset ^ (offset >> 5 & 0x7c): 1 wavefront, 0 conflicts",
        f"               costs 0 bytes; the buffer starts at a multiple of 4,096 bytes; {spared}",
        "",
        "Another access: --line N",
    ]


def test_a_narrow_terminal_loses_code_not_numbers(capsys):
    lines = printed(capsys, report(result(*RECORDS)), columns=60)
    assert table(lines)[1] == ["READ", "6 > 1", "LDS.32", "3", "64", "61", "64", "3"]


def test_the_table_of_several_variants(capsys):
    lines = printed(capsys, report(result(*RECORDS), result(*PADDED), labels=("linear", "padded")))
    assert table(lines)[:7] == [
        ["linear", "padded"],
        ["step", "line", "operation", "wavefronts", "conflicts", "source page", "wavefronts", "conflicts", "source page"],
        ["READ", "6 > 1", "LDS.32", "64", "61", "64", "3", "0", "3"],
        ["WRITE", "4", "STS.32", "10", "0", "10", "10", "0", "10"],
        ["READ", "7 > 1", "LDS.32", "4", "0", "4", "-", "-", "-"],
        ["PTX 99", "STS.32", "-", "-", "-", "1", "0", "1"],
        ["total", "78", "61", "78", "14", "0", "14"],
    ]
    assert "           7             7  counter.sum" in lines
    # the picture of the worst variant alone
    assert next(line for line in lines if "worst execution" in line).startswith("linear: READ, line 6 > 1: LDS.32, 32 wavefronts")
    assert sum("worst execution" in line for line in lines) == 1


def test_several_variants_on_a_narrow_terminal(capsys):
    lines = printed(capsys, report(result(*RECORDS), result(*PADDED), labels=("linear", "padded")), columns=80)
    assert table(lines)[2] == ["READ", "6 > 1", "LDS.32", "64", "61", "3", "0"]


def test_nothing_to_tell(capsys):
    assert printed(capsys, report(result()))[-1] == "The kernel does not access shared memory."
    assert printed(capsys, report(result(*PADDED)))[-1] == "No bank conflicts."


def test_what_cannot_be_counted_is_said(capsys):
    uncounted = replace(record("atom", ROW, (("k.cu", 4),), 3), op="", wavefronts=0, source_wavefronts=0, source_ideal=0)
    found = report(result(uncounted, uncounted), line=4)
    assert found.variants[0].details == []
    assert table(printed(capsys, found))[1][:6] == ["WRITE", "4", "atom (not counted)", "6", "0", "0"]


def test_harm_is_printed(capsys):
    # rows of 128 bytes, four lanes each: one access in order, one at a chunk that moves with the row
    fragment = access("LDS.32", lambda lane: 128 * (lane // 4) + 4 * (lane % 4))
    skewed = access("LDS.32", lambda lane: 144 * (lane // 4) + 4 * (lane % 4))
    lines = printed(capsys, report(result(record("ld", fragment, (("k.cu", 6),)), record("ld", skewed, KERNEL_READ_ROW))))
    costs = [line for line in lines if line.startswith("               costs")]
    assert costs[0].endswith("costs 128 bytes for the 8 rows that this access spans; BUT line 7 > 1 then has 1 conflict, now 0")


def test_colours_need_a_terminal(capsys):
    assert not any("\x1b" in line for line in printed(capsys, report(result(*RECORDS))))
    assert any("\x1b[31;1m 0!" in line for line in printed(capsys, report(result(*RECORDS)), color=True))


def test_matrices(capsys):
    lines = printed(capsys, report(result(record("ldmatrix", MATRICES, KERNEL_READ))), every_group=True)
    assert sum(line.startswith("group ") for line in lines) == 4
    assert "swizzle        Swizzle<3,4,3> of byte offsets, offset ^ (offset >> 3 & 0x70): 4 wavefronts, 0 conflicts" in lines
