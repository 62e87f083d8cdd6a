"""`fasim gpu record` and `pack`, recordings as something to run, and `fasim compare` with and without a GPU."""

from __future__ import annotations

import json
import pickle
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fasim.cli import gpu_record
from fasim.gpu import driver as gpu_driver
from fasim.gpu import profiling
from fasim.gpu.recording import BY_KERNEL, STORED
from fasim.gpu.recording_file import load, save
from fasim.report.bits import sha256_of
from fasim.sass.listing import listing
from tests.cli.test_gpu import AXPY, FAULTS, MANY, VARIABLES, recording_of_the_report
from tests.gpu import conftest as fixtures

gpu, ncu, sample_report = fixtures.gpu, fixtures.ncu, fixtures.sample_report

LAUNCHES = {
    "collection": "axpy --n 100",
    "options": "fa_v21 --heads 1 --n 33 --head-dim 64 --causal --seed 3",
    "file": AXPY,
    "variables": f"{VARIABLES} --symbol factor=2.5 --symbol offsets=i32[4]:arange",
    "template": f"{MANY} --entry scale<5,float> --arg p=f32[32]:arange",
    "printed": "faults.cu --entry talk --grid 1 --block 32 --arg p=i32[32]:zeros",
    "stored": "axpy.cu --grid 8 --block 128 --arg a=2.0 --arg x=@x.npy --arg y=f32[1024]:ones --arg n=1000",
    "half": f"{MANY} --entry twice --arg p=bf16[32]:normal",
    "null": f"{MANY} --entry nullable --arg p=null --arg out=i32[32]:zeros",
    "ptx": "store.ptx --grid 1 --block 1 --arg p=u32[4]:zeros --arg n=5",
}


@pytest.fixture
def run(fasim_command, tmp_path):
    (tmp_path / "faults.cu").write_text(FAULTS)
    return lambda line, *more: fasim_command(*line.split(), *more)


@pytest.fixture
def no_gpu(gpu):
    """Call it to take the GPU away."""

    def take():
        gpu.names = ()
        gpu_driver.pycuda_driver.cache_clear()

    return take


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


@pytest.fixture
def recorded(run, gpu):
    assert run(f"gpu record {LAUNCHES['collection']} --no-profile --no-time -o r.zip").code == 0
    return Path("r.zip")


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


# fasim compare


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
