"""`fasim gpu`: what the commands do on a fake GPU, and what they say when something fails."""

from __future__ import annotations

import gc
import hashlib
import json

import numpy as np
import pytest

from fasim.cli.main import main
from fasim.cli.on_gpu import OnGpu
from fasim.cli.run_options import RunOptions
from fasim.cli.target import prepare
from fasim.errors import ToolMissing
from fasim.gpu.device import Device
from fasim.toolchain import ptxas
from tests.cli import gpu_launches as launches
from tests.cli.gpu_launches import AXPY, MANY, STORE, VARIABLES, recording_of_the_report
from tests.gpu import conftest as fixtures

gpu, ncu, run, sample_report = fixtures.gpu, fixtures.ncu, launches.run, fixtures.sample_report

SAME = [
    "axpy --n 1000",
    "transpose --rows 40 --columns 70 --layout padded",
    "reduce --n 3000",
    "softmax_rows --rows 5 --columns 300",
    "histogram --n 2000",
    "gemm_tiled --m 33 --n 20 --k 40",
    "gemm_mma --m 64 --n 64 --k 64",
    "fa_v20 --heads 1 --n 33 --head-dim 64",
    "fa_v21 --heads 2 --n 70 --head-dim 64 --causal",
    AXPY,
    STORE,
    VARIABLES + " --symbol factor=2.5 --symbol offsets=i32[4]:arange",
    f"{MANY} --entry twice --arg p=bf16[32]:normal",
    f"{MANY} --entry structure --arg pair=@pair.npy --arg out=f32[32]:zeros",
    f"{MANY} --entry shared --smem 60000 --arg out=i32[32]:zeros",
    f"{MANY} --entry nullable --arg p=null --arg out=i32[32]:zeros",
    f"{MANY} --entry copy --arg in=i64[32]:arange --arg out=i64[32]:zeros",
    f"{MANY} --seed 7 --entry twice --arg p=bf16[32]:uniform(-1,1)",
]


@pytest.mark.parametrize("line", SAME)
def test_the_same_outputs_as_fasim_run(run, gpu, tmp_path, line):
    np.save(tmp_path / "pair.npy", np.frombuffer(np.array([3], np.int32).tobytes() + np.array([0.5], np.float32).tobytes(), np.uint8))
    simulated, real = run(f"run {line} --json --save s.npz"), run(f"gpu run {line} --json --save g.npz")
    assert (simulated.code, real.code) == (0, 0), real.err
    ours, theirs = simulated.record, real.record
    assert theirs["schema"] == "fasim.gpu.run/1"
    assert (theirs["outputs"], theirs["verdict"]) == (ours["outputs"], ours["verdict"])
    assert theirs["outputs"]
    assert theirs["launch"]["grid"] == ours["grid"]
    with np.load("s.npz") as s, np.load("g.npz") as g:
        assert {name: s[name].tobytes() for name in s} == {name: g[name].tobytes() for name in g}
    assert gpu.launches == 1


@pytest.mark.parametrize("entry", ["scale<3, int>", "scale<5, float>", "scale<2, long long>"])
def test_templates(run, gpu, entry):
    array = {"int": "i32", "float": "f32", "long long": "i64"}[entry[:-1].split(", ")[1]]
    words = [*MANY.split(), "--entry", entry, "--arg", f"p={array}[32]:arange", "--json"]
    assert run("gpu run", *words).record["outputs"] == run("run", *words).record["outputs"]
    (launched,) = [each for each in gpu.log if each[0] == "launch"]
    assert launched[1].startswith("_Z5scale")


def test_the_machine_code_is_the_simulator_s(run, gpu):
    report = run("gpu run axpy --n 100 --json").record
    assert [hashlib.sha256(code).hexdigest() for code in gpu.loaded] == [report["launch"]["code_sha256"]]
    assert report["launch"]["made_by"].startswith("NVRTC ")
    assert report["launch"]["code_sha256"][:16] in run("gpu run axpy --n 100").out


def test_variables_of_the_module_after_a_launch(run, gpu):
    args = ("o=f32[4]:zeros",)
    job = prepare(["faults.cu"], RunOptions(entry="variables", grid="1", block="4", args=args, symbols=("factor=2.0",)), [])
    with Device() as device:
        OnGpu(device, job).run(1.0)
    assert job.args[0].value.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert job.kernel.module.symbol("factor").read().tobytes() == np.float32(8).tobytes()


def test_a_wrong_output(run, gpu, tmp_path):
    np.save(tmp_path / "y.npy", np.zeros(1024, np.float32))
    outcome = run(f"gpu run {AXPY} --expect y=@y.npy --print y[1000:]")
    assert outcome.code == 1
    assert "y[1000:] = [1., 1.," in outcome.out
    report = run(f"gpu run {AXPY} --expect y=@y.npy --json").record
    assert (report["verdict"], report["exit_code"], report["outputs"][0]["comparison"]["ok"]) == ("wrong", 1, False)
    assert run(f"gpu run {AXPY} --expect y=@y.npy --atol 100").code == 0


def test_printed_text(run, gpu):
    line = "gpu run faults.cu --entry talk --grid 1 --block 32 --arg p=i32[32]:zeros"
    assert run(line).out.startswith("lane 0\nlane 1\n")
    assert run(f"{line} --json").record["output"] == "lane 0\nlane 1\n"


def test_several_variants(run, gpu):
    outcome = run("gpu run transpose --rows 16 --columns 16 --layout linear,padded --json")
    decoder, text, labels = json.JSONDecoder(), outcome.out.strip(), []
    while text:
        report, end = decoder.raw_decode(text)
        labels.append(report["launch"]["label"])
        text = text[end:].strip()
    assert labels == ["layout=linear", "layout=padded"]
    assert run("gpu run transpose --rows 16 --columns 16 --layout linear,padded --save x.npz").code == 2


def test_list(run, gpu):
    gpu.names, gpu.capability = ("NVIDIA H200", "NVIDIA Other"), (7, 0)
    outcome = run("gpu list")
    assert outcome.code == 0
    assert "GPU 1 " in outcome.out
    assert "does not simulate sm_70" in outcome.out
    report = run("gpu list --json").record
    assert report["schema"] == "fasim.gpu.list/1"
    assert [card["name"] for card in report["cards"]] == ["NVIDIA H200", "NVIDIA Other"]
    assert report["limits"][1]["smem_opt_in_bytes"] == 232448


def test_device(run, gpu):
    gpu.names = ("NVIDIA H200", "NVIDIA Other")
    assert run("gpu run axpy --n 10 --device 1 --json").record["card"]["name"] == "NVIDIA Other"
    assert gpu.log[0] == ("context", 1)


def test_time(run, gpu):
    gpu.durations_ns = (20_000,)
    outcome = run("gpu time axpy --n 50,60 --repetitions 7 --warm-up 0 --json")
    report = outcome.record
    assert (outcome.code, report["schema"]) == (0, "fasim.gpu.time/1")
    assert [each["launch"]["label"] for each in report["variants"]] == ["n=50", "n=60"]
    for each, n in zip(report["variants"], (50, 60)):
        assert (each["cold"]["median_us"], each["cold"]["repetitions"], each["warm"]["input_sets"]) == (20.0, 7, 1)
        assert each["cold"]["flops"] == 2 * n
        assert each["cold"]["input_sets"] == 64
        assert each["cold"]["sm_clock_mhz"] == pytest.approx(1755, abs=1)
    report = run("gpu time axpy --n 50 --repetitions 3 --flops 1000000000 --json").record
    assert report["variants"][0]["warm_tflops"] == 50.0
    text = run("gpu time axpy --n 50 --repetitions 3 --flops 1000000000").out
    assert "20.00 us" in text
    assert "1,755 MHz" in text


def test_times_leave_the_buffers_alone(run, gpu, monkeypatch):
    assert run("gpu time faults.cu --entry talk --grid 1 --block 32 --arg p=i32[32]:zeros --repetitions 2").code == 0
    # every launch but the first, which finds out what changes, starts from the same contents
    assert gpu.memory == {} or {each.size_bytes for each in gpu.memory.values()} <= {4, 16}
    assert not gpu.late


def test_profile(run, gpu, ncu, tmp_path):
    ncu.chosen.append(0)
    packed = recording_of_the_report(run, ncu, 0)
    outcome = run(f"gpu profile {packed} --keep kept.ncu-rep --json")
    report = outcome.record
    assert (outcome.code, report["schema"], report["saved"]) == (0, "fasim.gpu.profile/1", "kept.ncu-rep")
    (variant,) = report["variants"]
    assert variant["profile"]["counters"]["inst_executed"] == sum(each["executions"] for each in variant["profile"]["instructions"])
    assert (tmp_path / "kept.ncu-rep").read_bytes() == ncu.report.read_bytes()
    text = run(f"gpu profile {packed}")
    assert text.code == 0
    assert "2025.3.1.0" in text.out


@pytest.mark.parametrize("keep", ["x.txt", "nowhere/x.ncu-rep"])
def test_where_reports_cannot_be_kept(run, gpu, ncu, keep):
    outcome = run(f"gpu profile axpy --n 10 --keep {keep}")
    assert (outcome.code, gpu.launches) == (2, 0)
    assert "name a file that ends in .ncu-rep" in outcome.err


# what is refused and what fails; grid and shared memory are looked at before anything is launched

REFUSED = [
    ("axpy --n 10 --device 3", 2, "there is no GPU 3; there are 0: NVIDIA H200"),
    ("axpy --n 10 --arch sm_80", 2, "the machine code is for sm_80, and NVIDIA H200 is sm_90: compile for sm_90"),
    (f"{MANY} --entry shared --smem 232449 --arg out=i32[32]:zeros", 2, "allows 232448"),
    ("faults.cu --entry talk --grid 1,65536 --block 32 --arg p=i32[32]:zeros", 2, "grid.y is 65536"),
    ("faults.cu --entry talk --grid 1 --block 1025 --arg p=i32[32]:zeros", 2, "block.x is 1025"),
    ("broken.cu --grid 1 --block 1 --arg p=i32[1]:zeros", 5, "undeclared"),
    ("faults.cu --grid 1 --block 1 --entry nobody", 2, "nobody"),
    ("axpy --n 10 --frobnicate", 2, "no option --frobnicate"),
    ("axpy.txt", 2, "axpy.txt"),
]
FAILING = [
    ("outside", 1, "kernel outside on NVIDIA H200: an illegal memory access was encountered. `fasim run` with the same arguments"),
    ("trapped", 1, "kernel trapped on NVIDIA H200: unspecified launch failure"),
    ("forever", 1, "kernel forever on NVIDIA H200 did not end within 0.05 s"),
]


@pytest.mark.parametrize("command", ["run", "time", "record --no-profile -o out.zip"])
@pytest.mark.parametrize(("line", "code", "message"), REFUSED)
def test_refused(run, gpu, tmp_path, command, line, code, message):
    outcome = run(f"gpu {command} {line}")
    assert (outcome.code, gpu.launches) == (code, 0), outcome.err
    assert message in outcome.err
    assert outcome.out == ""
    assert not (tmp_path / "out.zip").exists()
    assert gpu.contexts in ([], ["made", "popped", "detached"])


@pytest.mark.parametrize(
    "command", ["run --save out.npz", "time", "record --no-profile -o out.zip", "record --no-profile --no-time -o out.zip"]
)
@pytest.mark.parametrize(("entry", "code", "message"), FAILING)
def test_kernels_that_fail(run, gpu, tmp_path, command, entry, code, message):
    before = sorted(tmp_path.iterdir())
    outcome = run(f"gpu {command} faults.cu --entry {entry} --grid 1 --block 1 --timeout 0.05 --arg p=i32[2]:zeros")
    assert (outcome.code, outcome.out) == (code, "")
    assert outcome.err.startswith(f"error: {message}")
    # nothing half done, and nothing taken apart after a fault
    assert sorted(tmp_path.iterdir()) == before
    assert gpu.contexts == ["made", "popped"]
    gc.collect()
    assert gpu.late == []


def test_a_failure_as_json(run, gpu):
    report = run("gpu run faults.cu --entry outside --grid 1 --block 1 --arg p=i32[2]:zeros --json").record
    assert report["exit_code"] == 1
    assert "an illegal memory access" in report["message"]


@pytest.mark.parametrize("command", ["run --save out.npz", "time", "record --no-profile -o out.zip"])
def test_out_of_memory(run, gpu, tmp_path, command):
    gpu.total_bytes = 4500
    before = sorted(tmp_path.iterdir())
    outcome = run(f"gpu {command} {AXPY}")
    assert (outcome.code, outcome.out) == (2, "")
    assert "no device memory for y, 4,096 of 8,192 bytes: out of memory. Make the buffers smaller" in outcome.err
    assert sorted(tmp_path.iterdir()) == before
    assert gpu.contexts == ["made", "popped", "detached"]


@pytest.mark.parametrize("save", ["x.txt", "nowhere/x.npz"])
def test_where_results_cannot_be_saved(run, gpu, save):
    outcome = run(f"gpu run axpy --n 10 --save {save}")
    assert (outcome.code, gpu.launches) == (2, 0)
    assert "--save" in outcome.err


# PTX


def without_ptxas(monkeypatch):
    def missing(name):
        raise ToolMissing(f"{name} is not there")

    monkeypatch.setattr(ptxas, "find_tool", missing)


def test_ptx_by_ptxas(run, gpu):
    try:
        ptxas.find_tool("ptxas")
    except ToolMissing:
        pytest.skip("no ptxas")
    report = run(f"gpu run {STORE} --json").record
    assert report["launch"]["made_by"].startswith("ptxas ")
    assert gpu.loaded[0].startswith(b"\x7fELF")


def test_ptx_by_the_driver(run, gpu, monkeypatch, tmp_path):
    without_ptxas(monkeypatch)
    report = run(f"gpu run {STORE} --json").record
    assert report["launch"]["made_by"] == "the driver"
    assert report["outputs"] == run(f"run {STORE} --json").record["outputs"]
    assert gpu.loaded == [(tmp_path / "store.ptx").read_bytes() + b"\0"]


def test_ptx_that_is_too_new_for_the_driver(run, gpu, monkeypatch):
    without_ptxas(monkeypatch)
    gpu.ptx_version = (7, 8)
    outcome = run(f"gpu run {STORE}")
    assert outcome.code == 2
    assert "cannot load the PTX for sm_90: the provided PTX was compiled with an unsupported toolchain" in outcome.err
    assert "pip install nvidia-cuda-nvcc" in outcome.err


def test_help(capsys):
    for command in ("", "run", "time", "profile", "record", "pack", "list"):
        assert main(["gpu", *filter(None, [command]), "--help"]) == 0
    assert "pip install pycuda ncu-report" in " ".join(capsys.readouterr().out.replace("│", " ").split())
