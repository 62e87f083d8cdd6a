"""Runs of machine code against counts of the same machine code, instruction by instruction."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fasim
from fasim.cli.compare import compare_recording
from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.errors import UsageError
from fasim.gpu.recording_file import load
from fasim.isa.program import SourceInstruction
from fasim.report import ncu_conditions
from fasim.report.machine_counts import by_opcode, machine_rows
from fasim.report.match import EQUAL, FILLS, MISMATCH, NOT_COUNTED, TURNS
from fasim.report.match_totals import EXPLAINED
from fasim.report.measured import MachineInstruction, Profile
from fasim.report.records import to_json
from fasim.report.side_by_side import ComparedLaunch, Origin, compare_launch, compare_report
from fasim.report.side_by_side_text import View, print_report
from fasim.sass.listing import listing
from fasim.sm.accounting import totals
from fasim.sm.result import LaunchResult

WARPS = 2
SOURCE = r"""
extern "C" __global__ void straight(int* o) {
    __shared__ volatile int s[1024];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    int a = s[t ^ 1];
    int b = s[16 * t];
    if (t & 1) a += s[t];
    o[t] = a + b;
}
extern "C" __global__ void lock(int* o) {
    __shared__ int held;
    if (threadIdx.x == 0) held = 0;
    __syncthreads();
    bool done = false;
    while (!done)
        if (atomicCAS(&held, 0, 1) == 0) { o[0] += threadIdx.x; __threadfence_block(); atomicExch(&held, 0); done = true; }
}
"""
Change = Callable[[MachineInstruction], MachineInstruction]


@pytest.fixture(scope="module")
def module() -> fasim.Module:
    return fasim.compile(SOURCE, arch="sm_90")


def ran(module: fasim.Module, name: str) -> tuple[LaunchResult, Profile]:
    """A launch of machine code, and a profile that says of each instruction what the launch did."""
    result = module.kernel(name, isa="sass").launch(1, 32 * WARPS, [np.zeros(64, np.int32)], workers=1)
    assert module.compiled is not None
    accesses = {id(access.source): access for access in result.shared_accesses}
    found = []
    for line, count in zip(listing(module.compiled.cubin, name), result.counts, strict=True):
        access, threads = accesses.get(id(count.source)), 32 * count.executions
        costs = (access.source_wavefronts, access.source_ideal) if access else (0, 0)
        found.append(MachineInstruction(line.offset, line.text, line.ptx_line, line.place, count.executions, threads, threads, *costs))
    counters = {name: float(count) for name, count in result.totals.items() if "_op_" in name}
    return result, Profile("2025.3", counters, {}, tuple(found))


def judged(result: LaunchResult, profile: Profile, change: Change = lambda x: x) -> ComparedLaunch:
    changed = replace(profile, instructions=tuple(change(instruction) for instruction in profile.instructions))
    return compare_launch(Origin("k"), result, (), changed, isa="sass", sms=132)


def of(opcode: str, **more: int) -> Change:
    """Something more of the instructions with this opcode."""
    return lambda x: replace(x, **{name: getattr(x, name) + value for name, value in more.items()}) if x.opcode == opcode else x


def test_all_equal(module: fasim.Module) -> None:
    result, profile = ran(module, "straight")
    found = judged(result, profile)
    assert (found.verdict, found.exit_code, set(found.comparisons)) == (EQUAL, 0, {EQUAL})
    assert [row.kind for row in found.accesses] == ["shared store", "shared load", "shared load", "shared load"]
    # some loads cost more than others, though they are all LDS
    assert {row.simulated.wavefronts for row in found.accesses} == {WARPS, 16 * WARPS}
    assert [row.offsets[0] for row in found.accesses] == sorted(row.offsets[0] for row in found.accesses)
    assert {row.line for row in found.accesses} == {5, 7, 8, 9} and {row.code for row in found.accesses} == {""}
    executed = sum(count.executions for count in result.counts)
    assert found.totals[0].name == "inst_executed" and found.totals[0].simulated == found.totals[0].measured == executed
    assert sum(each.simulated for each in found.opcodes) == executed
    # what neither side executed, as the padding behind the kernel, is left out
    rows = machine_rows(result, profile)
    assert len(rows) == sum(count.executions > 0 for count in result.counts) < len(result.counts)


@pytest.mark.parametrize(
    "change, wrong, why",
    [
        (of("LDS", executions=1), {"LDS"}, "executed 3 times instead of 2"),
        (of("LDS", executions=-2, wavefronts_shared=-999), {"LDS"}, "executed 0 times instead of 2"),
        (of("STS", wavefronts_shared=1), {"STS"}, "executed as often, 3 wavefronts instead of 2"),
        (of("STS", wavefronts_shared_ideal=-1), {"STS"}, "executed as often, 1 ideal wavefronts instead of 2"),
        (of("EXIT", executions=-1), {"EXIT"}, "executed 1 times instead of 2"),
        # whatever lanes did: nothing in this kernel is repeated until it succeeds
        (of("STG.E", executions=5, threads=1), {"STG.E"}, "executed 7 times instead of 2"),
    ],
)
def test_a_mismatch(module: fasim.Module, change: Change, wrong: set[str], why: str) -> None:
    result, profile = ran(module, "straight")
    found = judged(result, profile, change)
    rows = [row for row in (*found.accesses, *found.instructions) if row.verdict == MISMATCH]
    assert {row.text.split()[0] if row.text[0] != "@" else row.text.split()[1] for row in rows} == wrong
    assert why in {row.why for row in rows} and (found.verdict, found.exit_code) == (MISMATCH, 1)
    opcodes = {each.opcode for each in found.opcodes if each.verdict == MISMATCH}
    more = any(row.simulated.executions != row.measured.executions for row in rows)
    assert opcodes == ({next(iter(wrong)).split(".")[0]} if more else set())
    assert (found.totals[0].verdict == MISMATCH) == more


def test_alike_instructions_are_told_apart(module: fasim.Module) -> None:
    result, profile = ran(module, "straight")
    first = next(x for x in profile.instructions if x.opcode == "LDS")
    loads = [replace(x, text=first.text) for x in profile.instructions if x.opcode == "LDS"]
    assert len({x.wavefronts_shared for x in loads}) > 1
    # equal ones, but one for each
    alike = {
        id(count.source): SourceInstruction(first.text, "LDS", 1, "k.cu", 7) if count.source.mnemonic == "LDS" else count.source
        for count in result.counts
    }
    assert len({source for source in alike.values() if source.mnemonic == "LDS"}) == 1
    changed = replace(
        result,
        counts=[replace(count, source=alike[id(count.source)]) for count in result.counts],
        shared_accesses=[replace(access, source=alike[id(access.source)]) for access in result.shared_accesses],
    )
    same = [replace(x, text=first.text) if x.opcode == "LDS" else x for x in profile.instructions]
    assert {row.verdict for row in machine_rows(changed, replace(profile, instructions=tuple(same)))} == {EQUAL}


@pytest.mark.parametrize(
    "apart, verdict", [(True, TURNS), (False, MISMATCH)], ids=["lanes that went different ways", "whole warps are as often there"]
)
def test_turns(module: fasim.Module, apart: bool, verdict: str) -> None:
    result, profile = ran(module, "lock")

    def other(x: MachineInstruction) -> MachineInstruction:
        return replace(of(swap, executions=7, wavefronts_shared=14)(x), threads=32 * (x.executions + 7) - apart) if x.opcode == swap else x

    swap = next(x.opcode for x in profile.instructions if x.opcode.startswith("ATOMS.CAS"))
    found = judged(result, profile, other)
    (row,) = (row for row in found.accesses if row.text.split()[0] == swap)
    assert row.verdict == verdict and f"executed {row.measured.executions} times" in row.why
    assert (found.totals[0].verdict, found.totals[0].rest) == ((EXPLAINED, 0) if apart else (MISMATCH, 7))
    assert found.exit_code == (not apart)
    assert {each.verdict for each in found.opcodes if each.opcode == "ATOMS"} == {verdict}


def test_an_atomic_that_is_not_counted(module: fasim.Module) -> None:
    result, profile = ran(module, "lock")
    nothing = {"op": "", "wavefronts": 0, "conflicts": 0, "source_wavefronts": 0, "source_ideal": 0}
    unknown = [replace(x, **nothing) if x.op.endswith("cas") else x for x in result.shared_accesses]
    found = judged(replace(result, shared_accesses=unknown, totals=totals(unknown)), profile)
    (row,) = (row for row in found.accesses if ".CAS" in row.text)
    assert row.verdict == NOT_COUNTED and found.exit_code == 0 and "does not count" in row.why


def test_other_machine_code(module: fasim.Module) -> None:
    result, profile = ran(module, "straight")
    with pytest.raises(UsageError, match=r"is of other machine code than the run of straight: at 0x0 it has 'NOP'"):
        machine_rows(result, replace(profile, instructions=(replace(profile.instructions[0], text="NOP"), *profile.instructions[1:])))
    with pytest.raises(UsageError, match=r"it has \d+ instructions, the run \d+"):
        machine_rows(result, replace(profile, instructions=profile.instructions[1:]))
    # counters without instructions: only those of the hardware can be compared
    assert machine_rows(result, replace(profile, instructions=())) == [] == by_opcode([])


@pytest.mark.parametrize(
    "text, guard",
    [
        ("@P0 LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]", "false"),
        ("@!P0 LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64]", "true"),
        ("@!P0 LDGSTS.E.BYPASS.128.ZFILL [R1], desc[UR4][R2.64], P1", "false"),
        ("@!P1 LDGSTS.E.BYPASS.128.ZFILL [R1], desc[UR4][R2.64], P0", ""),
        ("@!P0 LDGSTS.E.ZFILL [R1], desc[UR4][R2.64], P1", ""),
        ("LDGSTS.E.BYPASS.128 [R1], desc[UR4][R2.64], !P0", ""),
    ],
)
def test_predicates_that_ncu_does_not_read(text: str, guard: str) -> None:
    assert ncu_conditions.guard_as(MachineInstruction(0, text, 0, ())) == guard


def test_copies_whose_conditions_ncu_does_not_read() -> None:
    recording = load(Path(__file__).parents[2] / "recordings/h200/programs/pipe3_cg16_empty_tiles.zip")
    found = compare_recording(recording, Call([], RunOptions(isa="sass"), [], 0.0))
    rows = [row for row in found.accesses if row.verdict != EQUAL]
    assert [(row.verdict, row.simulated.wavefronts, row.measured.wavefronts) for row in rows] == [(FILLS, 21, 25), (FILLS, 16, 0)]
    assert (found.verdict, found.exit_code) == (EXPLAINED, 0) and {row.verdict for row in found.instructions} == {EQUAL}


def test_printed_form_and_json(module: fasim.Module, capsys: pytest.CaptureFixture[str]) -> None:
    result, profile = ran(module, "straight")
    equal, wrong = judged(result, profile), judged(result, profile, of("LDS", executions=1))
    for columns in (90, 160):
        print_report(compare_report([wrong], "0"), View(columns))
        text = capsys.readouterr().out
        assert "accesses to shared memory: 1 of 4 instructions equal, 3 MISMATCH\n" in text and "BAR" not in text
        assert "executed 3 times instead of 2" in text and "LDS R" in text and "opcodes: executions of" in text
    print_report(compare_report([equal], "0"), View(everything=True))
    text = capsys.readouterr().out
    assert all(x.text in text for x in profile.instructions if x.executions) and "machine code" in text
    print_report(compare_report([equal, wrong], "0"), View())
    text = capsys.readouterr().out
    assert "instructions" in text.splitlines()[0] and "by ptxas" not in text and text.count("MISMATCH") > 1
    found = json.loads(to_json(compare_report([wrong], "0")))["launches"][0]
    assert found["isa"] == "sass" and found["opcodes"][0].keys() == {"opcode", "simulated", "measured", "verdict"}
    (row, *_) = (row for row in found["accesses"] if row["verdict"] == MISMATCH)
    assert row["text"].startswith("LDS") and row["offsets"] and row["simulated"]["executions"] == WARPS
