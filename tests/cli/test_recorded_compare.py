"""`fasim compare` with and without a GPU."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fasim.gpu import profiling
from fasim.gpu.recording_file import load, save
from fasim.report.bits import sha256_of
from fasim.sass.listing import listing
from tests.cli import gpu_launches as launches
from tests.cli.gpu_launches import AXPY, LAUNCHES
from tests.gpu import conftest as fixtures

gpu, ncu, sample_report = fixtures.gpu, fixtures.ncu, fixtures.sample_report
no_gpu, recorded, run = launches.no_gpu, launches.recorded, launches.run


def test_another_output_is_a_mismatch(run, recorded):
    recording = load(recorded)
    (output,) = recording.outputs
    values = output.values.copy()
    values[7] = np.nextafter(values[7], np.float32(np.inf))
    save(recorded, replace(recording, outputs=(replace(output, values=values, sha256=sha256_of(values)),)))
    outcome = run("compare r.zip --json")
    assert (outcome.code, outcome.record["verdict"]) == (1, "MISMATCH")
    (found,) = outcome.record["launches"][0]["outputs"]
    assert (found["differing"], found["largest_distance"], found["equal"]) == (1, 1, False)
    assert run("compare r.zip").code == 1
    save(recorded, replace(recording, outputs=(replace(output, values=values, sha256="0" * 64),)))
    outcome = run("compare r.zip")
    assert (outcome.code, "output y does not have the recorded hash" in outcome.err) == (2, True)


def test_other_printed_text_is_a_mismatch(run, gpu):
    assert run(f"gpu record {LAUNCHES['printed']} --no-profile --no-time -o r.zip").code == 0
    recording = load(Path("r.zip"))
    for text, differing in (("lane 1\nlane 0\n", 0), ("lane 0\n", 1), ("", 2), ("lane 0\nlane 0\nlane 7\n", 2)):
        save(Path("r.zip"), replace(recording, printed=text))
        outcome = run("compare r.zip")
        assert outcome.code == bool(differing)
        assert not differing or f"DIFFERENT in {differing} of " in outcome.out


def test_what_only_the_simulation_changed(run, recorded):
    save(recorded, replace(load(recorded), outputs=()))
    assert run("compare r.zip --json").record["launches"][0]["outputs"][0]["name"] == "y"
    assert run("compare r.zip").code == 1


@pytest.mark.parametrize("case", ["collection", "file", "variables", "ptx"])
def test_compare_with_the_gpu(run, gpu, case):
    outcome = run(f"compare {LAUNCHES[case]} --no-counters --json")
    assert (outcome.code, outcome.record["verdict"]) == (0, "equal"), outcome.err
    assert gpu.launches == 1
    assert outcome.record["launches"][0]["card"] == "NVIDIA H200"
    assert not list(Path().glob("*.zip"))


def test_a_gpu_that_computes_something_else(run, gpu, monkeypatch):
    launch = gpu.launch

    def wrong(function, *rest):
        launch(function, *rest)
        for memory in gpu.memory.values():
            if memory.size_bytes == 400:
                memory.data[0] ^= 1

    monkeypatch.setattr(gpu, "launch", wrong)
    outcome = run("compare axpy --n 100 --no-counters --json")
    assert (outcome.code, outcome.record["verdict"]) == (1, "MISMATCH")


def counters_of(run, ncu, monkeypatch, layout, which):
    ncu.chosen[:] = [which]
    monkeypatch.setattr(profiling, "listing", lambda cubin, kernel: listing(ncu.cubins[which], kernel))
    outcome = run(f"compare fa_v21 --heads 1 --n 128 --layout {layout} --json")
    (launch,) = outcome.record["launches"]
    assert outcome.code == launch["exit_code"]
    assert (launch["tool"], launch["kernel"]) == ("2025.3.1.0", "fa_v21")
    assert all(output["equal"] for output in launch["outputs"])
    return launch


@pytest.mark.parametrize(("layout", "which"), [("linear", 0), ("padded", 2)])
def test_compare_with_the_gpu_and_its_counters(run, gpu, ncu, monkeypatch, layout, which):
    """The counters are those that a real H200 had for this launch."""
    launch = counters_of(run, ncu, monkeypatch, layout, which)
    assert (launch["verdict"], launch["exit_code"]) == ("explained", 0)
    assert len(launch["totals"]) == 7
    assert {total["verdict"] for total in launch["totals"]} == {"equal"}
    verdicts = [access["verdict"] for access in launch["accesses"]]
    assert verdicts.count("equal") >= 8
    assert set(verdicts) == {"equal", "added"}


def test_counters_of_another_layout_are_a_mismatch(run, gpu, ncu, monkeypatch):
    launch = counters_of(run, ncu, monkeypatch, "linear", 2)
    assert (launch["verdict"], launch["exit_code"]) == ("MISMATCH", 1)
    assert "MISMATCH" in {total["verdict"] for total in launch["totals"]}


def test_a_recording_of_the_same_launch_where_there_is_no_gpu(run, gpu, no_gpu):
    assert run("gpu record axpy --n 50,60 --no-profile --no-time -o recordings/mine").code == 0
    assert run(f"gpu record {AXPY} --no-profile --no-time -o recordings/mine").code == 0
    no_gpu()
    for line, name in (("axpy --n 60", "axpy-n60"), (AXPY, "axpy-grid8x1x1")):
        outcome = run(f"compare {line} --no-counters --json")
        assert outcome.code == 0, outcome.err
        assert "comparing with recordings/mine/" in outcome.err
        assert len(outcome.record["launches"]) == 1
        assert outcome.record["launches"][0]["name"].startswith(name.split("-")[0])
    for line in ("axpy --n 61", "axpy --n 60 --seed 1", AXPY.replace("n=1000", "n=999"), AXPY.replace("--grid 8", "--grid 9")):
        outcome = run(f"compare {line} --no-counters")
        assert outcome.code == 4
        assert "There is no recording of this launch in recordings either" in outcome.err


def test_a_gpu_without_ncu_is_not_replaced_by_recordings(run, gpu, monkeypatch):
    assert run("gpu record axpy --n 60 --no-profile --no-time -o recordings/mine").code == 0
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("fasim.toolchain.tools.toolkit_directories", tuple)
    outcome = run("compare axpy --n 60")
    assert (outcome.code, outcome.out) == (4, "")
    assert "Nsight Compute" in outcome.err
    assert "--no-counters compares the output bits alone" in outcome.err
    assert run("compare axpy --n 60 --no-counters").code == 0


def test_recordings_of_one_name_in_two_folders(run, gpu):
    for folder in ("a", "b"):
        assert run(f"gpu record axpy --n 50 --no-profile --no-time -o both/{folder}").code == 0
    paths = [each["path"] for each in run("gpu record both -o anew --no-profile --no-time --json").record["recordings"]]
    assert paths == [str(Path("anew", folder, "axpy-n50.zip")) for folder in ("a", "b")]


def test_neither_gpu_nor_recordings(run, gpu, no_gpu):
    no_gpu()
    outcome = run("compare axpy --n 10 --no-counters")
    assert (outcome.code, outcome.out) == (4, "")
    assert "no GPU that it can use" in outcome.err
    assert "no folder 'recordings' here either" in outcome.err


def test_alone_it_takes_the_folder(run, gpu, no_gpu):
    assert run("gpu record axpy --n 50,60 --no-profile --no-time -o recordings/mine").code == 0
    no_gpu()
    assert len(run("compare --json").record["launches"]) == 2


def test_quick_leaves_large_ones_out(run, recorded):
    save(Path("large.zip"), replace(load(recorded), flops=10**11))
    assert len(run("compare r.zip large.zip --quick --json").record["launches"]) == 1
    outcome = run("compare large.zip --quick")
    assert outcome.code == 2
    assert "1 of 1 recordings take long to simulate" in outcome.err


def test_one_that_cannot_be_compared_does_not_stop_the_others(run, recorded, tmp_path):
    folder = tmp_path / "several"
    folder.mkdir()
    for name in ("a", "c"):
        (folder / f"{name}.zip").write_bytes(recorded.read_bytes())
    (folder / "b.zip").write_bytes(b"no archive")
    outcome = run(f"compare {folder} --json")
    assert outcome.code == 2 and len(outcome.record["launches"]) == 2
    (problem,) = outcome.record["problems"]
    assert "b.zip is not a recording, or is damaged" in problem and "not compared: " in outcome.err
    outcome = run(f"compare {folder}/a.zip --grid 3")
    assert outcome.code == 2 and "--grid is for files" in outcome.err


FIELDS = [
    ("entry", 1e30), ("defines", None), ("collection", [1]), ("profile", {"launch": 0}), ("seed", {}), ("kernel", 1.5), ("date", 1.5),
    ("grid", [1, 2]), ("block", "x"), ("options", [1]), ("card", {"sms": "x"}), ("arguments", []), ("outputs", [{}]),
    ("timings", {"warm": 3}),
    ("ptx_sha256", "0"), ("dynamic_smem_bytes", "many"), ("flops", True),
]  # fmt: skip


@pytest.mark.parametrize(("name", "value"), FIELDS, ids=[name for name, _ in FIELDS])
def test_changed_facts_are_one_clear_error(run, recorded, name, value):
    with zipfile.ZipFile(recorded) as archive:
        members = {each: archive.read(each) for each in archive.namelist()}
    members["run.json"] = json.dumps({**json.loads(members["run.json"]), name: value}).encode()
    with zipfile.ZipFile(recorded, "w") as archive:
        for each, data in members.items():
            archive.writestr(each, data)
    outcome = run("compare r.zip")
    assert outcome.code == 2 and "Traceback" not in outcome.err and "r.zip" in outcome.err, outcome.err
