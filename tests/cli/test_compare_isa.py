"""`fasim compare --isa sass`: the recorded machine code instead of the PTX."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fasim.gpu.recording_file import CUBINS, load, save
from fasim.report.bits import sha256_of
from tests.cli import gpu_launches as launches
from tests.gpu import conftest as fixtures

gpu, recorded, run = fixtures.gpu, launches.recorded, launches.run
RECORDINGS = Path(__file__).parents[2] / "recordings" / "h200"
BLOCK_SUM = RECORDINGS / "cases" / "block_sum.zip"


@pytest.fixture
def changed(run, tmp_path):
    """Call it with what is changed of a recording: a file with the change."""

    def save_changed(**changes):
        path = tmp_path / "changed.zip"
        save(path, replace(load(BLOCK_SUM), **changes))
        return path

    return save_changed


def test_a_recording(run):
    outcome = run(f"compare {BLOCK_SUM} --isa sass --json")
    (launch,) = outcome.record["launches"]
    assert (outcome.code, launch["isa"], launch["verdict"]) == (0, "sass", "equal")
    assert launch["totals"][0]["name"] == "inst_executed" and launch["totals"][0]["simulated"] == 1004
    assert {row["verdict"] for row in (*launch["accesses"], *launch["instructions"])} == {"equal"}
    assert {"STS", "SHFL", "EXIT"} <= {each["opcode"] for each in launch["opcodes"]}
    # the PTX has other instructions
    assert run(f"compare {BLOCK_SUM} --json").record["launches"][0]["opcodes"] == []


def test_one_execution_more_is_a_mismatch(run, changed):
    profile = load(BLOCK_SUM).profile
    assert profile is not None
    first, *rest = profile.instructions
    path = changed(profile=replace(profile, instructions=(replace(first, executions=first.executions + 1), *rest)))
    outcome = run(f"compare {path} --isa sass")
    assert outcome.code == 1 and "45 of 46 instructions equal, 1 MISMATCH" in outcome.out
    assert "MISMATCH: 2 of " in outcome.out  # the instruction, and the sum
    # of the same instructions as PTX nothing is compared
    assert run(f"compare {path}").code == 0


def test_another_bit_is_a_mismatch(run, changed):
    (output,) = load(BLOCK_SUM).outputs
    values = output.values.copy()
    values[1] = np.nextafter(values[1], np.float32(np.inf))
    path = changed(outputs=(replace(output, values=values, sha256=sha256_of(values)),))
    outcome = run(f"compare {path} --isa sass")
    assert outcome.code == 1 and "DIFFERENT in 1 of 4 elements" in outcome.out


def test_counts_of_other_machine_code(run, changed):
    profile = load(BLOCK_SUM).profile
    assert profile is not None
    outcome = run(f"compare {changed(profile=replace(profile, instructions=profile.instructions[1:]))} --isa sass")
    assert outcome.code == 2 and "changed.zip: the profile is of other machine code than the run of block_sum" in outcome.err


def test_a_folder(run, tmp_path):
    folder = tmp_path / "some"
    folder.mkdir()
    shutil.copytree(BLOCK_SUM.parent / CUBINS, folder / CUBINS)
    for name in ("block_sum", "collatz"):
        shutil.copy(BLOCK_SUM.with_name(f"{name}.zip"), folder)
    outcome = run(f"compare {folder} --isa sass --all")
    assert outcome.code == 0 and "instructions" in outcome.out.splitlines()[0]
    assert "by ptxas" not in outcome.out and "0x0 " in outcome.out and "no mismatch in " in outcome.out


def test_with_a_gpu(run, gpu):
    outcome = run("compare axpy --n 100 --no-counters --isa sass --json")
    (launch,) = outcome.record["launches"]
    assert (outcome.code, launch["isa"], launch["instructions"]) == (0, "sass", []), outcome.err
    assert [output["equal"] for output in launch["outputs"]] == [True]


def test_an_unknown_isa(run):
    outcome = run(f"compare {BLOCK_SUM} --isa sas")
    assert outcome.code == 2 and "there are ptx and sass" in outcome.err
