"""Simulation and GPU side by side: what ptxas makes of real kernels, totals and noise, the printed form, JSON and the figure."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fasim.errors import UsageError
from fasim.report.bits import compare_bits
from fasim.report.match import ADDED, CHANGED, EQUAL, MERGED, MISMATCH, MOVED, NOT_COUNTED, PREDICATED, REMOVED, SPLIT
from fasim.report.match_totals import EXPLAINED, NOISE
from fasim.report.measured import MachineInstruction, Profile
from fasim.report.records import to_json
from fasim.report.side_by_side import Origin, compare_launch, compare_report, ctas_share_sm
from fasim.report.side_by_side_figure import points, save_comparison
from fasim.report.side_by_side_text import View, print_report
from tests.report.machine_code import ATOMICS, WARPS, launched, operations_of, profile

LD = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"
ST = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"
LD_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"

#: body of the kernel, and the verdict on its loads by the loads that ptxas made of them
PTXAS = {
    "two neighbours": (
        "float2 a = lds2(p);\nfloat2 b = lds2(p + 8);\no[t] = a.x * b.y + a.y * b.x;",
        {("LDS.128",): MERGED, ("LDS.64", "LDS.64"): EQUAL},
    ),
    "four on a line": (
        "o[t] = lds(p) + lds(p + 4) * lds(p + 8) - lds(p + 12);",
        {("LDS.128",): MERGED, ("LDS.64", "LDS.64"): MERGED, ("LDS.32",) * 4: EQUAL},
    ),
    "an unused value": ("float2 a = lds2(p); lds(p ^ 64); o[t] = a.x + a.y;", {("LDS.64",): REMOVED, ("LDS.64", "LDS.32"): EQUAL}),
    "the same value twice": ("o[t] = lds(p) *\nlds(p);", {("LDS.32",): REMOVED, ("LDS.32", "LDS.32"): EQUAL}),
    "two of four": ("float4 a = lds4(p); o[t] = a.x + a.z;", {("LDS.32", "LDS.32"): SPLIT, ("LDS.128",): EQUAL}),
    "the lower half": ("float4 a = lds4(p); o[t] = a.x + a.y;", {("LDS.64",): REMOVED, ("LDS.128",): EQUAL}),
    "the same in a loop": (
        "float v = 0;\n#pragma unroll 1\nfor (int i = 0; i < 16; i++) { v = v * 1.5f + lds(p); o[t] = v; }",
        {("LDS.32",): MOVED},
    ),
}


@pytest.mark.parametrize("case", PTXAS)
def test_what_ptxas_makes_of_loads(case):
    body, verdicts = PTXAS[case]
    result, code = launched(body)
    found = compare_launch(Origin(case), result, (), profile(code))
    expected = verdicts[tuple(operations_of(code, "shared load"))]
    loads = {row.verdict for row in found.accesses if row.kind == "shared load"}
    assert loads - {EQUAL} == ({expected} - {EQUAL})
    assert [row.verdict for row in found.accesses if row.kind == "shared store"] == [EQUAL]
    # the rows that ptxas changed account for the whole difference
    assert {total.verdict for total in found.totals} <= {EQUAL, EXPLAINED} and all(total.rest == 0 for total in found.totals)
    assert (found.verdict, found.exit_code) == (EXPLAINED if expected != EQUAL or _changed_others(found) else EQUAL, 0)


def _changed_others(found):
    return any(row.verdict != EQUAL for row in found.instructions)


def test_each_row_keeps_its_own_figures_and_names_the_other_line():
    result, code = launched("float2 a = lds2(p);\nfloat2 b = lds2(p + 8);\no[t] = a.x * b.y + a.y * b.x;")
    if operations_of(code, "shared load") != ["LDS.128"]:
        pytest.skip("this compiler does not merge these loads")
    first, second = (row for row in compare_launch(Origin(""), result, (), profile(code)).accesses if row.verdict == MERGED)
    assert {first.simulated.executions, second.simulated.executions} == {WARPS}
    assert first.measured.executions + second.measured.executions == WARPS
    assert (first.path[0][1] + 1, first.others, second.others) == (
        second.path[0][1],
        (f"{second.path[0][1]} > {second.line}",),
        (f"{first.path[0][1]} > {first.line}",),
    )
    assert "2 LDS.64 became 1 LDS.128" in first.why and first.why.endswith(f"(with line {first.others[0]})")


def test_a_predicate_instead_of_a_branch():
    result, code = launched("float v = 0; if (t < n) v = lds(p); o[t] = v;")
    if not any(line.text.startswith("@") and " LDS" in line.text for line in code):
        pytest.skip("this compiler branches")

    def compared(warps_on):
        found = compare_launch(Origin(""), result, (), profile(code, lambda text: warps_on if text.startswith("@") else WARPS))
        return next(row for row in found.accesses if row.kind == "shared load")

    row = compared(1)  # of 32 threads, as n says
    assert (row.verdict, row.simulated.executions, row.measured.executions) == (PREDICATED, 1, WARPS)
    assert row.simulated.wavefronts == row.measured.wavefronts


PREDICATED_STORE = """\
asm volatile("{ .reg .pred q; setp.lt.s32 q, %1, %2; @q st.shared.f32 [%0], 0f3F800000; }" :: "r"(p), "r"(t), "r"(n - OFF) : "memory");
__syncthreads();
o[t] = lds(p);
"""


@pytest.mark.parametrize("on", [0, 1])
def test_executions_with_a_false_predicate_count_on_both_sides(on):
    # threads below 32, that is one warp, or none
    result, code = launched(PREDICATED_STORE.replace("OFF", "0" if on else "32"))
    if not any(line.text.startswith("@") and " STS " in line.text for line in code):
        pytest.skip("this compiler branches")
    found = compare_launch(Origin(""), result, (), profile(code, lambda text: on if text.startswith("@") else WARPS))
    (row,) = (row for row in found.accesses if row.simulated_op == "STS.32")
    assert (row.verdict, row.simulated, row.measured.executions) == (EQUAL, row.measured, WARPS)
    assert row.measured.wavefronts == on * 4


def test_a_generic_access_that_meets_shared_memory():
    result, code = launched('float v; asm volatile("ld.f32 %0, [%1];" : "=f"(v) : "l"(&s[4 * t])); o[t] = v;')
    found = compare_launch(Origin(""), result, (), profile(code))
    (row,) = (row for row in found.accesses if row.kind == "shared load")
    assert row.simulated_op == "LD.32" and row.measured_op in ("LD.32", "LDS.32")
    assert row.verdict == (EQUAL if row.measured_op == "LD.32" else CHANGED)
    assert not [row for row in found.instructions if row.kind == "global load"]


@pytest.mark.parametrize("with_lines", [True, False])
def test_atomics(with_lines):
    result, code = launched(ATOMICS)
    found = compare_launch(Origin(""), result, (), profile(code, with_lines=with_lines))
    by_line = {row.line: row for row in found.accesses if row.kind == "shared atomic"}
    assert by_line[3].verdict == NOT_COUNTED and by_line[3].simulated_op.endswith("atom.shared.add.f32") and by_line[3].measured_op
    # one lane adds for the warp, if ptxas guards the atomic with a predicate
    guarded = any(line.text.startswith("@") and "ATOMS.ADD" in line.text for line in code)
    assert by_line[4].verdict == (MERGED if guarded else MISMATCH)
    assert not [row for row in found.accesses if row.kind == "shared load" and row.verdict != EQUAL and row.line == 3]


@pytest.fixture(scope="module")
def straight():
    """A launch without changes by ptxas: the result, its machine code, counters that fit."""
    result, code = launched("o[t] = lds(p) + n;")
    return result, code, {name: float(count) for name, count in result.totals.items() if "_op_" in name}


def _judged(straight, change=lambda x: x, grid=(1, 1, 1), launch=None, sms=132, with_lines=True, **more):
    result, code, counters = straight
    found = profile(code, counters=counters | more, with_lines=with_lines)
    instructions = tuple(change(instruction) for instruction in found.instructions)
    return compare_launch(
        Origin("straight", "k"), replace(result, grid=grid), (), replace(found, instructions=instructions, launch=launch or {}), sms=sms
    )


@pytest.mark.parametrize("with_lines", [True, False])
def test_all_equal(straight, with_lines):
    found = _judged(straight, with_lines=with_lines)
    assert (found.verdict, found.exit_code, set(found.comparisons)) == (EQUAL, 0, {EQUAL})
    assert {row.kind for row in found.accesses} == {"shared load", "shared store"} and found.instructions


def test_a_wavefront_more_is_a_mismatch(straight):
    def worse(x: MachineInstruction) -> MachineInstruction:
        return replace(x, wavefronts_shared=x.wavefronts_shared + 1) if x.opcode.startswith("LDS") else x

    found = _judged(straight, worse)
    assert [row.kind for row in found.accesses if row.verdict == MISMATCH] == ["shared load"] and found.exit_code == 1
    (total,) = (total for total in found.totals if total.verdict == MISMATCH)
    assert (total.name, total.rest) == ("memory_l1_wavefronts_shared", 1)


def test_noise_needs_several_ctas_an_sm_and_only_adds(straight):
    counters = straight[2]
    shared = {"grid": (500, 1, 1), "launch": {"launch__occupancy_limit_registers": 2.0, "launch__occupancy_limit_warps": 16.0}}
    noise = {LD: counters[LD] + 3, LD_CONFLICTS: counters[LD_CONFLICTS] + 3}
    found = _judged(straight, **shared, **noise)
    (total,) = (total for total in found.totals if total.name == LD)
    assert (total.verdict, total.rest, found.noise, found.exit_code) == (NOISE, 3, 3, 0) and "other CTAs on the SM adds 3" in total.why
    assert _judged(straight, **shared, **{LD: counters[LD] - 3, LD_CONFLICTS: counters[LD_CONFLICTS] - 3}).verdict == MISMATCH
    # noise adds to wavefronts and conflicts alike
    assert _judged(straight, **shared, **{LD: counters[LD] + 3}).verdict == MISMATCH
    much = {LD: 2 * counters[LD], LD_CONFLICTS: counters[LD_CONFLICTS] + counters[LD]}
    for alone in ({"grid": (100, 1, 1)}, {"grid": (500, 1, 1), "launch": {"launch__occupancy_limit_shared_mem": 1.0}}):
        found = _judged(straight, **alone, **much)
        assert (found.verdict, found.noise, found.ctas_share_sm) == (MISMATCH, 0, False)
        # the warps of one CTA meet, too, though not often
        found = _judged(straight, **alone, **noise)
        assert (found.noise, found.exit_code) == (3, 0) and any("warps of the same CTA" in total.why for total in found.totals)


def test_noise_of_spilled_registers(straight):
    result, code, counters = straight
    spills = MachineInstruction(1 << 20, "STL [R1], R2", 0, (), WARPS, 32 * WARPS, 32 * WARPS)
    noisy = {**counters, LD: counters[LD] + 3, LD_CONFLICTS: counters[LD_CONFLICTS] + 3}
    found = profile(code, counters=noisy)
    compared = compare_launch(
        Origin(""), result, (), replace(found, instructions=(*found.instructions, spills, replace(spills, offset=1 << 21)))
    )
    assert {total.name: total.verdict for total in compared.totals if total.rest} == {LD: NOISE, LD_CONFLICTS: NOISE}
    assert all("spilled registers" in total.why for total in compared.totals if total.rest)
    (row,) = (row for row in compared.instructions if row.verdict != EQUAL)
    assert (row.kind, row.verdict, row.measured.executions, row.offsets) == ("local store", ADDED, 2 * WARPS, (1 << 20, 1 << 21))


@pytest.mark.parametrize(
    "grid, sms, limits, share",
    [
        ((1, 1, 1), 0, {}, False),
        ((132, 1, 1), 132, {}, False),
        ((133, 1, 1), 132, {}, True),
        ((12, 12, 1), 132, {"launch__occupancy_limit_warps": 1.0, "launch__waves_per_multiprocessor": 0.5}, False),
        ((12, 12, 1), 132, {"launch__occupancy_limit_warps": 2.0, "launch__occupancy_limit_blocks": 32.0}, True),
        ((2, 1, 1), 0, {}, True),
        ((100, 1, 1), 0, {"launch__sm_count": 132.0, "launch__occupancy_limit_warps": 2.0}, False),
    ],
)
def test_whether_ctas_share_an_sm(grid, sms, limits, share):
    assert ctas_share_sm(limits, grid, sms) == share


def test_hardware_counters_of_changed_accesses():
    result, code = launched("float4 a = lds4(p); o[t] = a.x + a.z;")
    if operations_of(code, "shared load") != ["LDS.32", "LDS.32"]:
        pytest.skip("this compiler does not split this load")
    # two loads of 4 bytes, 16 bytes apart: 4 wavefronts each, one of them ideal
    counters = {LD: 8.0 * WARPS, LD_CONFLICTS: 6.0 * WARPS}
    found = {total.name: total for total in compare_launch(Origin(""), result, (), profile(code, counters=counters)).totals}
    simulated = result.totals[LD]
    assert (found[LD].explained, found[LD].rest, found[LD].verdict) == (8 * WARPS - simulated, 0, EXPLAINED)
    assert (found[LD_CONFLICTS].rest, found[LD_CONFLICTS].verdict, found[LD_CONFLICTS].lines) == (0, EXPLAINED, 1)
    wrong = compare_launch(Origin(""), result, (), profile(code, counters={LD: 8.0 * WARPS + 1}))
    assert wrong.totals[0].verdict == MISMATCH and wrong.totals[0].rest == 1


def test_each_counter_has_its_own_changes():
    stores = 'asm volatile("st.shared.v2.f32 [%0], {%1, %1};" :: "r"(p + OFF), "f"(1.0f) : "memory");'
    result, code = launched("\n".join([stores.replace("OFF", "0"), stores.replace("OFF", "8"), "__syncthreads();", "o[t] = lds(p);"]))
    if "STS.64" in operations_of(code, "shared store"):
        pytest.skip("this compiler does not merge these stores")
    counters = {LD: float(result.totals[LD]), ST: 8.0 * WARPS}
    found = {total.name: total for total in compare_launch(Origin(""), result, (), profile(code, counters=counters)).totals}
    assert (found[LD].verdict, found[LD].explained) == (EQUAL, 0)
    assert (found[ST].verdict, found[ST].explained, found[ST].rest) == (EXPLAINED, 8 * WARPS - result.totals[ST], 0)


def test_idle_accesses_of_ptxas(straight):
    result, code, counters = straight
    found = profile(code, counters=counters)
    idle = MachineInstruction(1 << 20, "@!PT LDS RZ, [RZ]", 0, (), WARPS, 32 * WARPS, 0)
    compared = compare_launch(Origin(""), result, (), replace(found, instructions=(*found.instructions, idle)))
    (row,) = (row for row in compared.accesses if row.verdict != EQUAL)
    assert (row.verdict, row.measured.executions, row.simulated.executions) == (ADDED, WARPS, 0) and "no wavefronts" in row.why


def test_bits_alone():
    result, _ = launched("o[t] = lds(p);")
    a = np.arange(8, dtype=np.float32)
    right, wrong = compare_bits("o", "f32", a, a), compare_bits("o", "f32", a, a + 1)
    assert compare_launch(Origin(""), result, (right,), None).verdict == EQUAL
    assert compare_launch(Origin(""), result, (right, wrong), None).exit_code == 1
    # counters without instructions: only totals can be compared
    profiled = compare_launch(Origin(""), result, (right,), Profile("", {LD: float(result.totals[LD])}, {}))
    assert (profiled.accesses, [total.verdict for total in profiled.totals]) == ((), [EQUAL])


def _several(straight):
    result, code = launched("float2 a = lds2(p);\nfloat2 b = lds2(p + 8);\no[t] = a.x * b.y + a.y * b.x;")
    a = np.arange(8, dtype=np.float16)
    b = a.copy()
    b[3], b[0] = 3.5, -0.0
    merged = compare_launch(Origin("merged", "k", card="NVIDIA H200"), result, (compare_bits("O", "f16", a, a),), profile(code))
    wrong = compare_launch(Origin("wrong", "k2"), result, (compare_bits("O", "f16", a, b),), profile(code))
    share = {"grid": (500, 1, 1), LD: straight[2][LD] + 1, LD_CONFLICTS: straight[2][LD_CONFLICTS] + 1}
    return merged, wrong, _judged(straight), _judged(straight, **share)


@pytest.mark.parametrize("columns", [100, 160])
def test_printed_form(straight, columns, capsys):
    merged, wrong, equal, noisy = _several(straight)
    print_report(compare_report([equal], "0"), View(columns))
    text = capsys.readouterr().out
    assert "accesses to shared memory: 2 of 2 lines equal\n" in text and "LDS.32" not in text and "\x1b" not in text
    assert text.rstrip().endswith("verdict        equal, without a tolerance")
    print_report(compare_report([equal], "0"), View(columns, everything=True, color=True))
    text = capsys.readouterr().out
    assert "LDS.32" in text and "\x1b[32mequal" in text
    print_report(compare_report([wrong], "0"), View(columns))
    text = capsys.readouterr().out
    assert "DIFFERENT in 2 of 8 elements, at most 256 ulp, 1 in the sign of zero" in text
    assert "[3]: simulated 3 (0x4200), GPU 3.5 (0x4300)" in text and "MISMATCH: 1 of " in text
    print_report(compare_report([merged, wrong, equal, noisy], "0", "f.svg"), View(columns))
    lines = capsys.readouterr().out.splitlines()
    rows = {line.split()[0]: line.split() for line in lines[2:6]}
    assert [rows[name][-1] for name in ("merged", "wrong", "straight")] == [EXPLAINED, MISMATCH, EXPLAINED]
    assert rows["wrong"][1] == "DIFFERENT" and lines[-1].endswith("f.svg")
    # as many numbers as there are heads
    assert rows["wrong"][2:-3].count("-") == lines[1].split().count("GPU") * 2 == (6 if columns == 160 else 4)
    assert any(line.startswith("1 of 4 launches with a mismatch: 1 of 2 outputs equal bit for bit") for line in lines)
    assert all(len(line.rstrip()) <= max(columns, 130) for line in lines)


def test_json(straight):
    found = json.loads(to_json(compare_report(_several(straight), "0")))
    assert (found["schema"], found["verdict"], found["exit_code"]) == ("fasim.compare/1", MISMATCH, 1)
    assert [launch["verdict"] for launch in found["launches"]] == [EXPLAINED, MISMATCH, EQUAL, EXPLAINED]
    assert found["launches"][1]["outputs"][0]["first"][0]["measured_bits"] == "0x8000"
    assert {row["verdict"] for row in found["launches"][2]["accesses"]} == {EQUAL}


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_figure_is_the_same_every_time(straight, tmp_path, suffix):
    launches = _several(straight)[2:]
    first, second = tmp_path / f"1.{suffix}", tmp_path / f"2.{suffix}"
    save_comparison(first, launches)
    save_comparison(second, launches)
    assert first.read_bytes() == second.read_bytes() and len(first.read_bytes()) > 1000
    if suffix == "svg":
        text = first.read_text()
        assert "wavefronts of shared ld and st: 1 of 2 equal" in text and "several CTAs an SM" in text and "dc:date" not in text


def test_points_of_the_figure(straight, tmp_path):
    equal, noisy = _several(straight)[2:]
    found = points([equal, noisy])["wavefronts"]
    assert [(point.cause, point.ctas_share_sm, point.measured - point.simulated) for point in found] == [
        (EQUAL, False, 0),
        (NOISE, True, 1),
    ]
    assert found[1].percent == 100 / found[1].measured and found[0].percent == 0
    with pytest.raises(UsageError, match="counters"):
        save_comparison(tmp_path / "a.svg", [replace(equal, totals=())])
    with pytest.raises(UsageError, match="No such file"):
        save_comparison(tmp_path / "nowhere" / "a.svg", [equal])


def test_merging_loads_leave_the_hardware_counter_open_within_bounds():
    result, code = launched("float2 a = lds2(p);\nfloat2 b = lds2(p + 8);\no[t] = a.x * b.y + a.y * b.x;")
    if operations_of(code, "shared load") != ["LDS.128"]:
        pytest.skip("this compiler does not merge these loads")

    def judged(wavefronts):
        return compare_launch(Origin(""), result, (), profile(code, counters={LD: float(wavefronts)})).totals[0]

    # the source page has 4 wavefronts a warp: the hardware may join groups of lanes
    assert (judged(4 * WARPS).verdict, judged(4 * WARPS).rest) == (EXPLAINED, 0)
    assert (judged(2 * WARPS).verdict, judged(2 * WARPS).rest) == (EXPLAINED, -2 * WARPS) and "to within" in judged(2 * WARPS).why
    assert judged(8 * WARPS + 1).verdict == MISMATCH


def test_an_unknown_access_to_shared_memory_has_a_row(straight):
    result, code, counters = straight
    found = profile(code, counters=counters)
    unknown = MachineInstruction(1 << 20, "SYNCS.ARRIVE.TRANS64 RZ, [UR4], R0", 0, (), WARPS, WARPS, WARPS, WARPS, WARPS)
    compared = compare_launch(Origin(""), result, (), replace(found, instructions=(*found.instructions, unknown)))
    (row,) = (row for row in compared.accesses if row.verdict != EQUAL)
    assert (row.verdict, row.measured.wavefronts, row.offsets) == (ADDED, WARPS, (1 << 20,))
    assert {total.verdict for total in compared.totals if total.name.startswith("memory")} == {EXPLAINED}


def test_names_may_look_like_markup(straight, capsys):
    print_report(compare_report([replace(_judged(straight), name="k[bold]"), _judged(straight)], "0"), View(100))
    assert "k[bold]" in capsys.readouterr().out
