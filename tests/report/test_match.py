"""Matching of PTX and machine instructions: by PTX line, place and bytes, with the verdict that ptxas's change deserves."""

from __future__ import annotations

import pytest

from fasim.report import match as m
from fasim.report.machine_classes import (
    class_of_machine,
    class_of_ptx,
    machine_bytes,
    machine_operation,
    operation_bytes,
    ptx_bytes,
    ptx_operation,
    ptx_shared_operation,
)
from fasim.report.match import Item, match_class
from fasim.smem import wavefront_rule as rule
from fasim.smem.wavefronts import OPERATIONS


def item(op: str, executions: int, ptx_line: int = 1, *, line: int = 10, wavefronts: int | None = None, **more) -> Item:
    """A shared access whose executions cost one wavefront each."""
    cost = executions if wavefronts is None else wavefronts
    name = more.pop("name", "shared atomic" if op.startswith("ATOMS") else "shared store" if op.startswith("STS") else "shared load")
    ideal = more.pop("ideal", min(executions, cost))
    return Item(name, op, operation_bytes(op), executions, ptx_line, (("k.cu", line),), op, cost, ideal, **more)


def copy(executions: int, **more) -> Item:
    """cp.async.cg; in the order of AS_IF: copies, fills, LDGSTS.ZFILL, and that if all copied."""
    return item("LDGSTS.cg16", executions, name="cp.async", as_if=((5, 5), (6, 6), (8, 8), (9, 9)), **more)


def other(executions: int, ptx_line: int = 1, *, line: int = 10, **more) -> Item:
    return Item("mma", "mma", 1, executions, ptx_line, (("k.cu", line),), "mma", **more)


GUARD = {"guarded": True}
#: what: PTX, machine code, verdict, a part of the reason
CASES = {
    "equal": ([item("LDS.32", 4)], [item("LDS.32", 4)], m.EQUAL, ""),
    "unrolled": ([item("LDS.32", 16)], [item("LDS.32", 4), item("LDS.32", 12)], m.EQUAL, ""),
    "mismatch": ([item("LDS.32", 4)], [item("LDS.32", 4, wavefronts=8, ideal=4)], m.MISMATCH, "other wavefronts"),
    "ideal differs": ([item("LDS.64", 4, ideal=4)], [item("LDS.64", 4, ideal=2)], m.MISMATCH, "other wavefronts"),
    "merged": ([item("LDS.64", 4, 1), item("LDS.64", 4, 2)], [item("LDS.128", 4, 2)], m.MERGED, "2 LDS.64 became 1 LDS.128 (4 times)"),
    "merged, partly unused": ([item("LDS.32", 4, 1)], [item("LDS.64", 4, 1)], m.MERGED, "4 bytes a lane more"),
    "split": ([item("STS.128", 3)], [item("STS.64", 3), item("STS.64", 3)], m.SPLIT, "1 STS.128 became 2 STS.64 (3 times)"),
    "split and narrowed": ([item("LDS.128", 3)], [item("LDS.32", 3)] * 2, m.SPLIT, "became 2 LDS.32, 8 bytes a lane less"),
    "narrowed": ([item("LDS.128", 3)], [item("LDS.64", 3)], m.REMOVED, "1 LDS.128 became 1 LDS.64, 8 bytes a lane less (3 times)"),
    "removed": ([item("LDS.64", 1_000)], [], m.REMOVED, "1,000 LDS.64 not in the machine code"),
    "idle": ([], [item("LDS.32", 12, wavefronts=0, guarded=True)], m.ADDED, "put in, no wavefronts"),
    "added": ([], [item("STS.32", 4, origin="div.rn.f64")], m.ADDED, "4 STS.32 that ptxas made for div.rn.f64"),
    "hoisted": ([item("LDS.32", 64)], [item("LDS.32", 4)], m.MOVED, "executed 4 times instead of 64: hoisted or reused"),
    "odd": ([item("LDS.32", 64)], [item("LDS.32", 66, all_lanes=False)], m.MOVED, "executed 66 times instead of 64"),
    "load, more by whole warps": ([item("LDS.32", 64)], [item("LDS.32", 66)], m.MISMATCH, "which ptxas does not explain"),
    "load, twice as often in two": ([item("LDS.32", 8)], [item("LDS.32", 8)] * 2, m.MISMATCH, "executed 16 times instead of 8"),
    "store, more by whole warps": ([item("STS.32", 31)], [item("STS.32", 32)], m.MISMATCH, "executed 32 times instead of 31"),
    "overwritten store": ([item("STS.32", 64)], [item("STS.32", 16)], m.MOVED, "hoisted or reused"),
    "cp.async, less": ([item("LDGSTS.ca4", 8, name="cp.async")], [item("LDGSTS.ca4", 4, name="cp.async")], m.MISMATCH, "4 times instead"),
    "lock": ([item("ATOMS.cas", 64)], [item("ATOMS.cas", 65)], m.MOVED, "executed 65 times instead of 64"),
    "atomic, less": ([item("ATOMS.add", 8)], [item("ATOMS.add", 4)], m.MISMATCH, "executed 4 times instead of 8"),
    "predicated": ([item("LDS.32", 1)], [item("LDS.32", 4, wavefronts=1, **GUARD)], m.PREDICATED, "4 times instead of 1: predicate"),
    "predicated, wrong": ([item("LDS.32", 1)], [item("LDS.32", 4, wavefronts=2, ideal=1, **GUARD)], m.MISMATCH, "other wavefronts"),
    "never on": ([], [item("LDS.32", 4, wavefronts=0, branched_around=True, **GUARD)], m.PREDICATED, "PTX branches around it"),
    "other operation": ([item("LD.32", 4)], [item("LDS.32", 4)], m.CHANGED, "1 LD.32 became 1 LDS.32 (4 times)"),
    "one lane for all": ([item("ATOMS.add", 4, wavefronts=128)], [item("ATOMS.add", 4, one_lane=True, **GUARD)], m.MERGED, "one lane"),
    "predicate on an atomic": ([item("ATOMS.add", 4, wavefronts=128)], [item("ATOMS.add", 4, **GUARD)], m.MISMATCH, "other wavefronts"),
    "one lane costs more": ([item("ATOMS.add", 4)], [item("ATOMS.add", 4, wavefronts=8, one_lane=True, **GUARD)], m.MISMATCH, "other"),
    "predicate, other lanes": ([item("STS.32", 1)], [item("STS.32", 4, wavefronts=2, ideal=2, **GUARD)], m.MISMATCH, "with a predicate"),
    "atomic, wrong": ([item("ATOMS.add", 4, wavefronts=128)], [item("ATOMS.add", 4)], m.MISMATCH, "other wavefronts"),
    "other atomic": ([item("ATOMS.add", 4)], [item("ATOMS.popc.inc", 4)], m.EQUAL, ""),
    "other atomic, cheaper": ([item("ATOMS.add", 4, wavefronts=128)], [item("ATOMS.popc.inc", 4)], m.CHANGED, "became"),
    "loop": ([item("", 4, name="shared atomic")], [item("ATOMS.cas", 9, wavefronts=20)], m.NOT_COUNTED, "who wins"),
    "copies of one line": ([item("LDS.32", 4, 1), item("LDS.32", 8, 2)], [item("LDS.32", 12, 2)], m.EQUAL, ""),
    "one lane for all, warp apart": (
        [item("ATOMS.add", 4, wavefronts=128)],
        [item("ATOMS.add", 9, one_lane=True, **GUARD)],
        m.MERGED,
        "one lane",
    ),
    "zfill": ([copy(4, ideal=4)], [copy(4, wavefronts=8, ideal=8, taken_for=rule.AS_ZFILL)], m.FILLS, "LDGSTS.ZFILL"),
    "condition in P0": ([copy(4, ideal=4)], [copy(4, wavefronts=5, ideal=5, taken_for=rule.AS_COPIES)], m.FILLS, "for copies"),
    "condition in P0, wrong": ([copy(4, ideal=4)], [copy(4, wavefronts=6, ideal=5, taken_for=rule.AS_COPIES)], m.MISMATCH, "other"),
    "predicate in P0": ([copy(4, ideal=4)], [copy(4, wavefronts=40, ideal=16, guard_as="true", **GUARD)], m.FILLS, "for true"),
    "predicate in P0, never": ([copy(4, ideal=4)], [copy(4, wavefronts=0, ideal=0, guard_as="false", **GUARD)], m.FILLS, "for false"),
    "predicate in P0, wrong": ([copy(4, ideal=4)], [copy(4, wavefronts=40, ideal=15, guard_as="true", **GUARD)], m.MISMATCH, "other"),
    "mma": ([other(8)], [other(8), other(8)], m.SPLIT, "executed 16 times instead of 8: 1 became 2"),
    "mma, less": ([other(8)], [other(4)], m.MISMATCH, "executed 4 times instead of 8, which ptxas does not explain"),
    "mma, one more": ([other(8)], [other(9)], m.MISMATCH, "executed 9 times instead of 8"),
    "mma in a loop": ([other(8)], [other(4), other(4)], m.EQUAL, ""),
}


@pytest.mark.parametrize("case", CASES)
def test_one_verdict(case):
    ours, theirs, verdict, why = CASES[case]
    (found,) = match_class(ours, theirs)
    assert found.verdict == verdict and why in found.why and (found.why == "") == (verdict == m.EQUAL)
    assert sorted(found.simulated, key=str) == sorted(ours, key=str) and sorted(found.measured, key=str) == sorted(theirs, key=str)


def test_what_one_line_lost_another_gained():
    ours = [item("LDS.64", 64, 5, line=20), item("LDS.64", 64, 9, line=21), item("LDS.32", 64, 7, line=30)]
    theirs = [item("LDS.128", 64, 9, line=21)]
    merged, removed = sorted(match_class(ours, theirs), key=lambda match: match.verdict)
    assert (merged.verdict, merged.why) == (m.MERGED, "2 LDS.64 became 1 LDS.128 (64 times)")
    assert merged.places == ((("k.cu", 20),), (("k.cu", 21),))
    assert (removed.verdict, removed.simulated) == (m.REMOVED, (ours[2],))


def test_bytes_come_from_several_lines_the_nearest_first():
    ours = [item("LDS.32", 4, line, line=line) for line in (1, 2, 3, 4, 90)]
    found = {match.verdict: match for match in match_class(ours, [item("LDS.128", 4, 1, line=1)])}
    assert [x.ptx_line for x in found[m.MERGED].simulated] == [1, 2, 3, 4] and [x.ptx_line for x in found[m.REMOVED].simulated] == [90]


def test_one_line_that_lost_as_much_rather_than_several_that_do_not_add_up():
    ours = [item("LDS.64", 64, 9, line=9), item("LDS.64", 32, 8, line=8), item("LDS.64", 64, 2, line=2)]
    found = {match.verdict: match for match in match_class(ours, [item("LDS.128", 64, 9, line=9)])}
    assert [x.ptx_line for x in found[m.MERGED].simulated] == [9, 2] and [x.ptx_line for x in found[m.REMOVED].simulated] == [8]


def test_nothing_explains_what_has_an_explanation_of_its_own():
    removed = item("LDS.32", 3, 1, line=11)
    guarded = [item("LDS.32", 4, 2, wavefronts=1, guarded=True)]
    assert {x.verdict for x in match_class([removed, item("LDS.32", 1, 2)], guarded)} == {m.REMOVED, m.PREDICATED}
    wider = item("LDS.64", 1, 1, line=11)
    assert {x.verdict for x in match_class([wider, item("LDS.32", 2, 2)], guarded)} == {m.REMOVED, m.PREDICATED}
    idle = item("LDS.32", 6, 8, wavefronts=0)
    assert {x.verdict for x in match_class([item("LDS.64", 3, 1, line=11)], [idle])} == {m.REMOVED, m.ADDED}


def test_an_access_that_moved_to_another_line():
    ours = [item("STS.32", 4, 1, line=11), item("STS.32", 4, 2, line=12)]
    (found,) = match_class(ours, [item("STS.32", 8, 2, line=12)])
    assert (found.verdict, found.why) == (m.MOVED, "counted on another line")
    # it must cost what it did; else each line is told for itself
    found = match_class(ours, [item("STS.32", 8, 2, line=12, wavefronts=9, ideal=8)])
    assert {match.verdict for match in found} == {m.REMOVED, m.MISMATCH}


def test_without_ptx_lines_places_decide():
    ours = [item("LDS.64", 4, 1), item("LDS.64", 4, 2), item("LDS.32", 4, 3, line=30)]
    theirs = [item("LDS.128", 4, 0), item("LDS.32", 4, 0, line=30)]
    assert [match.verdict for match in match_class(ours, theirs, by_line=False)] == [m.EQUAL, m.MERGED]
    # what is equal of a place is told apart from what ptxas changed there
    ours, theirs = [item("LDS.32", 4, 1), item("LDS.64", 4, 2)], [item("LDS.32", 4, 0), item("LDS.32", 0, 0)]
    assert [match.verdict for match in match_class(ours, theirs, by_line=False)] == [m.EQUAL, m.REMOVED]
    # by lines the subroutines of ptxas, which have none, do not disturb
    ours, theirs = [other(4)], [other(4), Item("mma", "mma", 1, 2, 0, (), "HMMA")]
    assert [match.verdict for match in match_class(ours, theirs)] == [m.EQUAL, m.ADDED]


def test_directories_do_not_matter():
    ours = Item("mma", "mma", 1, 4, 1, (("/a/k.cu", 3),), "mma")
    theirs = Item("mma", "mma", 1, 4, 0, (("/b/c/k.cu", 3),), "HMMA")
    assert [match.verdict for match in match_class([ours], [theirs], by_line=False)] == [m.EQUAL]


@pytest.mark.parametrize(
    "opcode, name, op",
    [
        ("LDS", "shared load", "LDS.32"),
        ("LDS.U.128", "shared load", "LDS.128"),
        ("LDS.S16", "shared load", "LDS.U16"),
        ("STS.U8", "shared store", "STS.8"),
        ("STS.128", "shared store", "STS.128"),
        ("LDSM.16.M88.4", "ldmatrix", "LDSM.x4"),
        ("LDSM.16.MT88", "ldmatrix", "LDSM.x1.T"),
        ("STSM.16.MT88.2", "stmatrix", "STSM.x2.T"),
        ("LDGSTS.E.BYPASS.LTC128B.128", "cp.async", "LDGSTS.cg16"),
        ("LDGSTS.E", "cp.async", "LDGSTS.ca4"),
        ("LDGSTS.E.64", "cp.async", "LDGSTS.ca8"),
        ("ATOMS.MAX.S32", "shared atomic", "ATOMS.max"),
        ("ATOMS.EXCH.64", "shared atomic", "ATOMS.exch.64"),
        ("ATOMS.CAS", "shared atomic", "ATOMS.cas"),
    ],
)
def test_names_of_shared_operations(opcode, name, op):
    each = class_of_machine(opcode)
    assert each is not None and (each.name, machine_operation(opcode)) == (name, op) and op in OPERATIONS
    assert operation_bytes(op) == {"LDSM.x4": 16, "LDSM.x1.T": 4, "STSM.x2.T": 8}.get(op, OPERATIONS[op].lane_bytes)


@pytest.mark.parametrize(
    "ptx, opcode, name",
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "HMMA.16816.F32", "mma"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "DMMA.884", "mma"),
        ("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", "HMMA.16816.F32", "mma"),
        ("shfl.sync.bfly.b32", "SHFL.BFLY", "shfl"),
        ("vote.sync.ballot.b32", "VOTEU.ANY", "vote"),
        ("bar.sync", "BAR.SYNC.DEFER_BLOCKING", "barrier"),
        ("barrier.sync.aligned", "BAR.SYNC", "barrier"),
        ("ld.global.nc.v4.f32", "LDG.E.128.CONSTANT", "global load"),
        ("ld.f32", "LD.E", "global load"),
        ("st.global.v2.f16x2", "STG.E.64", "global store"),
        ("red.global.add.f32", "REDG.E.ADD.F32.FTZ.RN.STRONG.GPU", "global atomic"),
        ("atom.global.cas.b32", "ATOMG.E.CAS.STRONG.GPU", "global atomic"),
        ("ld.local.u8", "LDL.U8", "local load"),
        ("ex2.approx.ftz.f32", "MUFU.EX2", "ex2"),
        ("rsqrt.approx.f32", "MUFU.RSQ", "rsqrt"),
        ("div.full.f32", "MUFU.RCP", "rcp"),
        ("cp.async.commit_group", "LDGDEPBAR", "commit_group"),
    ],
)
def test_classes_of_other_instructions(ptx, opcode, name):
    ours, theirs = class_of_ptx(ptx), class_of_machine(opcode)
    assert ours is theirs is not None and ours.name == name
    if ours.sized:
        assert ptx_bytes(ptx) == machine_bytes(opcode)


@pytest.mark.parametrize("mnemonic", ["ld.param.u64", "add.s32", "bar.warp.sync", "cp.async.wait_group", "ld.const.f32", "div.rn.f32"])
def test_what_is_not_compared(mnemonic):
    assert class_of_ptx(mnemonic) is None


@pytest.mark.parametrize(
    "mnemonic, text, op",
    [
        ("ld.shared.v2.f32", "", "LDS.64"),
        ("ld.shared.s8", "", "LDS.U8"),
        ("st.shared.u16", "", "STS.16"),
        ("cp.async.ca.shared.global", "@p cp.async.ca.shared.global [%r1], [%rd1], 8;", "LDGSTS.ca8"),
        ("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", "", "LDSM.x2.T"),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16", "", "STSM.x1"),
    ],
)
def test_the_operation_of_an_access_that_no_lane_made(mnemonic, text, op):
    each = class_of_ptx(mnemonic)
    assert each is not None and each.shared and ptx_shared_operation(each.name, mnemonic, text) == op and op in OPERATIONS


def test_names_of_the_simulation():
    for op in OPERATIONS:
        assert operation_bytes(ptx_operation(op)) == (4 * int(op[6]) if op[:4] in ("LDSM", "STSM") else max(OPERATIONS[op].lane_bytes, 1))
    assert [ptx_operation(op) for op in ("RED.shared.add", "LDS.S16", "LD.S8", "STS")] == ["ATOMS.add", "LDS.U16", "LD.U8", "STS.32"]
