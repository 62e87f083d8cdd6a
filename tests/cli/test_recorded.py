"""`fasim gpu record` and `pack`, and recordings as something to run."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fasim.cli import gpu_record
from fasim.gpu import driver as gpu_driver
from fasim.gpu.recording import BY_KERNEL, STORED
from fasim.gpu.recording_file import load
from tests.cli import gpu_launches as launches
from tests.cli.gpu_launches import LAUNCHES, recording_of_the_report
from tests.gpu import conftest as fixtures

gpu, ncu, sample_report = fixtures.gpu, fixtures.ncu, fixtures.sample_report
no_gpu, recorded, run = launches.no_gpu, launches.recorded, launches.run


def comparable(recording):
    """All but the machine code's origin and what measuring changes."""
    return replace(recording, date="", tools={}, timings={}, module=replace(recording.module, log=""))


def fields_of(recording):
    found = {key: value for key, value in vars(comparable(recording)).items() if key not in ("arguments", "outputs")}
    found["arguments"] = [
        (a.name, a.made, a.dtype, a.shape, a.sha256, None if a.value is None else np.asarray(a.value).tobytes())
        for a in recording.arguments
    ]
    found["outputs"] = [(o.name, o.dtype, o.shape, o.sha256, None if o.values is None else o.values.tobytes()) for o in recording.outputs]
    return found


@pytest.mark.parametrize("case", LAUNCHES)
def test_what_is_recorded_is_what_is_simulated(run, gpu, no_gpu, case):
    outcome = run(f"gpu record {LAUNCHES[case]} --no-profile --no-time -o r.zip")
    assert (outcome.code, outcome.out) == (0, "r.zip\n"), outcome.err
    recording = load(Path("r.zip"))
    assert recording.card.name == "NVIDIA H200"
    assert recording.outputs
    assert recording.printed == ("lane 0\nlane 1\n" if case == "printed" else "")
    assert (recording.timings, recording.profile) == ({}, None)
    assert {"fasim", "numpy", "python", "code"} <= set(recording.tools)
    assert [name.startswith("x") for name in recording.tools] == [False] * len(recording.tools)
    no_gpu()
    compared = run("compare r.zip --json")
    assert (compared.code, compared.record["verdict"]) == (0, "equal"), compared.out
    (launch,) = compared.record["launches"]
    assert len([output for output in launch["outputs"] if output["name"] != "printf"]) == len(recording.outputs)
    simulated = run("run r.zip --json").record
    direct = run(f"run {LAUNCHES[case]} --json").record
    assert [(o["name"], o["sha256"]) for o in simulated["outputs"]] == [(o["name"], o["sha256"]) for o in direct["outputs"]]
    hashes = {output.name: output.sha256 for output in recording.outputs}
    assert [hashes[output["name"]] for output in direct["outputs"]] == [output["sha256"] for output in direct["outputs"]]


@pytest.mark.parametrize("case", LAUNCHES)
def test_packed_then_recorded_is_as_recorded_directly(run, gpu, case):
    assert run(f"gpu record {LAUNCHES[case]} --no-profile --no-time -o direct.zip --name k").code == 0
    assert run(f"gpu pack {LAUNCHES[case]} -o packed.zip --name k").code == 0
    packed = load(Path("packed.zip"))
    assert (packed.card, packed.outputs, packed.date, packed.tools) == (None, (), "", {})
    assert run("compare packed.zip").code == 2
    outcome = run("gpu record packed.zip --no-profile --no-time -o again.zip")
    assert outcome.code == 0, outcome.err
    assert fields_of(load(Path("again.zip"))) == fields_of(load(Path("direct.zip")))


def test_packing_needs_no_gpu(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycuda", None)
    gpu_driver.pycuda_driver.cache_clear()
    assert run("gpu pack axpy --n 10 -o x.zip").code == 0
    outcome = run("gpu record x.zip --no-profile -o y.zip")
    assert outcome.code == 4
    assert not Path("y.zip").exists()


def test_how_arguments_are_made_again(run, gpu):
    for case, made in (
        ("collection", {BY_KERNEL}),
        ("stored", {STORED, "2.0", "1000", "f32[1024]:ones"}),
        ("null", {"null", "i32[32]:zeros"}),
    ):
        assert run(f"gpu pack {LAUNCHES[case]} -o x.zip").code == 0
        assert {argument.made for argument in load(Path("x.zip")).arguments} == made


def test_several_recordings(run, gpu):
    outcome = run("gpu record axpy --n 50,60 --no-profile -o folder --share-cubins --json")
    report = outcome.record
    assert (outcome.code, report["schema"], report["card"]["name"]) == (0, "fasim.gpu.record/1", "NVIDIA H200")
    assert [each["name"] for each in report["recordings"]] == ["axpy-n50", "axpy-n60"]
    assert sorted(str(path) for path in Path("folder").rglob("*.zip") if path.parent.name != "cubins") == [
        "folder/axpy-n50.zip",
        "folder/axpy-n60.zip",
    ]
    assert len(list(Path("folder/cubins").iterdir())) == 1
    assert set(load(Path("folder/axpy-n50.zip")).timings) == {"cold", "warm"}
    assert "1 of 2: axpy-n50" in outcome.err
    assert run("gpu record folder -o anew --no-profile --no-time").code == 0
    assert fields_of(load(Path("anew/axpy-n60.zip"))) == fields_of(load(Path("folder/axpy-n60.zip")))
    assert run("gpu record axpy --n 50,60 --no-profile -o one.zip").code == 2
    assert not Path("one.zip").exists()
    assert run("compare folder --json").record["verdict"] == "equal"
    assert len(run("compare folder anew --json").record["launches"]) == 4


def test_one_of_several_fails(run, gpu):
    """The others are recorded, and the report says which one was not."""
    gpu.total_bytes = 1 << 20
    outcome = run("gpu record axpy --n 50,600000,60 --no-profile --no-time -o folder --json")
    assert outcome.code == 1
    assert [bool(each["path"]) for each in outcome.record["recordings"]] == [True, False, True]
    assert "out of memory" in outcome.record["recordings"][1]["problem"]
    assert sorted(path.name for path in Path("folder").iterdir()) == ["axpy-n50.zip", "axpy-n60.zip"]


def test_with_counters(run, gpu, ncu):
    for which, name in enumerate("abcd"):
        recording_of_the_report(run, ncu, which, f"packs/{name}")
    outcome = run("gpu record packs -o done --no-time --json")
    assert outcome.code == 0, outcome.out
    for which, name in enumerate("abcd"):
        recording = load(Path(f"done/{name}.zip"))
        assert recording.tools["ncu"] == recording.profile.tool == "2025.3.1.0"
        assert recording.module.cubin == ncu.cubins[which]
        assert sum(each.executions for each in recording.profile.instructions) == recording.profile.counters["inst_executed"]
    # what ncu runs starts from the same contents as what was recorded
    with ncu.launches.open("rb") as file:
        _, launch = pickle.load(file)
    recording = load(Path("done/a.zip"))
    before = [value.value.tobytes() for value in recording.make_arguments(recording.load_kernel()) if value.is_array]
    assert sorted(buffer.tobytes() for buffer in launch.buffers) == sorted(before)
    # ncu was asked once for all
    assert ncu.arguments.count("fasim.gpu.replay") == 1


def test_counters_that_fail_leave_nothing_of_one(run, gpu, ncu):
    outcome = run("gpu record axpy --n 50 -o x.zip --no-time")
    assert outcome.code == 2
    assert "holds 4 launches (fa_v21), not the 1" in outcome.err
    assert not Path("x.zip").exists()


def test_counters_that_fail_for_several(run, gpu, ncu):
    outcome = run("gpu record axpy --n 50,60 -o folder --no-time --json")
    assert outcome.code == 1
    assert ["without counters" in each["problem"] for each in outcome.record["recordings"]] == [True, True]
    assert load(Path("folder/axpy-n60.zip")).profile is None
    # all together, then each alone to find out which one it is
    assert gpu_record._SESSION > 2


# recordings as something to run


@pytest.mark.parametrize("command", ["run", "banks", "check", "gpu run", "gpu time --repetitions 2"])
@pytest.mark.parametrize("case", ["collection", "file", "variables", "options"])
def test_recordings_as_targets(run, gpu, command, case):
    assert run(f"gpu pack {LAUNCHES[case]} -o r.zip").code == 0
    outcome = run(f"{command} r.zip --json")
    direct = run(f"{command} {LAUNCHES[case]} --json")
    assert (outcome.code, outcome.record["schema"]) == (direct.code, direct.record["schema"]), outcome.err
    if command.endswith("run"):
        assert outcome.record["outputs"] == direct.record["outputs"]
    if command == "banks":
        # recordings are compiled under a name without folders
        files = ("source", "file", "path", "seed")
        assert _without(outcome.record, *files) == _without(direct.record, *files)


def _without(value, *names):
    """A record without what tells files, wherever it is, and without times."""
    if isinstance(value, dict):
        return {key: _without(each, *names) for key, each in value.items() if key not in names and "seconds" not in key}
    return [_without(each, *names) for each in value] if isinstance(value, list) else value


OPTIONS = ["--entry k", "--grid 1", "--block 1", "--smem 1", "--arg n=1", "--symbol a=1", "-D A=1", "-I include", "--seed 5"]


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("command", ["run", "gpu run", "banks", "check"])
def test_what_a_recording_brings_itself(run, recorded, command, option):
    outcome = run(f"{command} r.zip {option}")
    assert outcome.code == 2
    assert outcome.err.startswith(f"error: {option.split()[0]} is for ")
    assert "files; recording r.zip brings all that the launch needs" in outcome.err


def test_an_option_of_a_kernel(run, recorded):
    outcome = run("run r.zip --n 5")
    assert outcome.code == 2
    assert "unexpected argument '--n': recording r.zip" in outcome.err


def test_for_another_architecture(run, recorded):
    report = run("run r.zip --arch sm_80 --json").record
    assert (report["arch"], report["verdict"]) == ("sm_80", "right")
    assert run("gpu run r.zip --arch sm_80").code == 2


def test_ptx_alone_cannot_go_back(run, gpu):
    assert run(f"gpu pack {LAUNCHES['ptx']} -o r.zip").code == 0
    outcome = run("run r.zip --arch sm_80")
    assert outcome.code == 2
    assert "holds PTX for sm_90 and no source: it cannot run on sm_80" in outcome.err


def test_expectations(run, recorded):
    np.save("zeros.npy", np.zeros(100, np.float32))
    assert run("run r.zip --expect y=@zeros.npy").code == 1
    assert run("run r.zip --expect y=@zeros.npy --atol 1000").code == 0


@pytest.mark.parametrize("command", ["run", "compare", "gpu run", "gpu record --no-profile", "banks", "check"])
def test_no_recording(run, gpu, command):
    Path("bad.zip").write_bytes(b"nothing")
    assert run(f"{command} x.zip").code == 2
    outcome = run(f"{command} bad.zip")
    assert outcome.code == 2
    assert "bad.zip is not a recording, or is damaged" in outcome.err
