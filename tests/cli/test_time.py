"""`fasim time`: kernels of the collection, files, recordings, several GPUs, figures and traces, errors."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

from fasim.arch.cards import _FOLDER
from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.cli.time import parse_window
from fasim.cli.timing_job import FEW_JOBS, carry_out, timing_jobs, timing_row
from fasim.errors import UsageError

RECORDINGS = Path(__file__).parents[2] / "recordings" / "h200"
AXPY = ["axpy.cu", "--grid", "8", "--block", "128", "--arg", "2.0", "--arg", "x=f32[1024]:arange", "--arg", "y=f32[1024]:ones"]
AXPY += ["--arg", "n=1024"]


@pytest.fixture
def time(fasim_command, tmp_path):
    """Returns a function that runs `fasim time` beside data files of two more GPUs."""
    text = (_FOLDER / "h200.toml").read_text()
    for name, arch in (("a100x", 80), ("small", 89)):
        data = re.sub(r'^name = ".*"', f'name = "Card {name}"', re.sub(r"^arch = \d+", f"arch = {arch}", text, flags=re.M), flags=re.M)
        (tmp_path / f"{name}.toml").write_text(data.partition("[accuracy]")[0])
    return lambda *words: fasim_command("time", *words)


def record_of(done):
    assert done.code == 0, done.err
    assert done.record["schema"] == "fasim.time/1" and done.record["problems"] == []
    return done.record["launches"]


def test_v21_in_variants(time):
    rows = record_of(time("fa_v21", "--n", "128", "--heads", "1", "--layout", "padded,linear", "--json"))
    padded, linear = rows
    assert [row["label"] for row in rows] == ["layout=padded", "layout=linear"]
    assert {(row["gpu"], row["arch"], row["kernel"], row["source"]) for row in rows} == {("h200", "sm_90", "fa_v21", "10_fa_v21.cu")}
    assert (padded["grid"], padded["block"], padded["held"]["binding"]) == ([1, 1, 1], [128, 1, 1], ["registers"])
    assert padded["flops"] == 4 * 128 * 128 * 64 and not padded["from_code"]
    # eight rows of a tile in one bank
    assert linear["cycles"] > 1.2 * padded["cycles"]
    assert {"K_FRAGMENTS", "S_QK", "P_EXP2", "O_PV"} <= {step["step"] for step in padded["steps"]}
    assert padded["roofline"]["dram_bytes"] == 4 * 128 * 64 * 2
    assert padded["sampled"]["ctas"] == padded["sampled"]["grid_ctas"] == 1


def test_the_table_of_one_launch(time):
    done = time("fa_v21", "--n", "128", "--heads", "1", "--lines", "3")
    assert done.code == 0, done.err
    lines = [line.rstrip() for line in done.out.splitlines()]
    labels = [line.split("  ")[0] for line in lines[: lines.index("")]]
    assert labels == [
        "kernel", "source", "GPU", "grid x block", "time", "cycles", "occupancy", "bound by", "busy", "roofline", "simulated", "data",
    ]  # fmt: skip
    assert lines[0].endswith("fa_v21 n=128 batch=1 heads=1 head_dim=64 bc=32 layout=padded causal=false")
    assert re.search(r"us predicted, [\d.]+ TFLOPS; error of predictions: ", lines[4])
    assert any(re.match(r" +\d+\.\d %  short_scoreboard$", line) for line in lines)
    assert re.fullmatch(r"and \d+ lines with [\d.]+ % together \(--lines N\)", lines[-1])


def test_two_gpus_side_by_side(time):
    words = ("fa_v21", "--n", "128", "--heads", "1", "--gpu", "h200,a100x.toml", "--bc", "32,64", "--workers", "1")
    rows = record_of(time(*words, "--json"))
    gpus = [("h200", "sm_90"), ("a100x", "sm_80")]
    expected = [(f"bc={bc} {gpu}", gpu, arch) for bc in (32, 64) for gpu, arch in gpus]
    assert [(row["label"], row["gpu"], row["arch"]) for row in rows] == expected
    assert rows[0]["card"] == "NVIDIA H200" and rows[1]["card"] == "Card a100x"
    out = time(*words).out.splitlines()
    assert any(re.fullmatch(r" +a100x: Card a100x \(sm_80\); error of predictions: not measured", line) for line in out)
    table = [line.split()[:3] for line in out if line.startswith("bc=")]
    assert [cells[:2] for cells in table] == [["bc=32", "h200"], ["bc=32", "a100x"], ["bc=64", "h200"], ["bc=64", "a100x"]]
    assert any(re.match(r"us by step", line) for line in out)


def test_a_launch_that_does_not_fit_is_left_out(time):
    words = ("fa_v21", "--n", "128", "--heads", "1", "--head-dim", "128", "--bc", "128", "--json")
    done = time(*words, "--gpu", "h200,small.toml")
    assert done.code == 0 and [row["gpu"] for row in done.record["launches"]] == ["h200"]
    (problem,) = done.record["problems"]
    assert problem.startswith("small: ") and "shared memory" in problem and f"not predicted: {problem}" in done.err
    alone = time(*words, "--gpu", "small.toml")
    assert alone.code == 2 and "shared memory" in alone.err


def test_my_own_file(time):
    (row,) = record_of(time(*AXPY, "--json"))
    assert (row["kernel"], row["source"], row["grid"], row["block"]) == ("axpy", "axpy.cu", [8, 1, 1], [128, 1, 1])
    # a multiplication and an addition in one instruction
    assert row["from_code"] and row["flops"] == 2 * 1024 and row["roofline"]["dram_bytes"] == 8192
    assert row["lines"][0]["code"] == "if (i < n) y[i] = a * x[i] + y[i];" and row["steps"] == []
    assert row["bound"] == "launch overhead" and row["stalls"]["long_scoreboard"] > 30


def test_caches_without_the_buffers(time):
    (warm,), (cold,) = record_of(time(*AXPY, "--json")), record_of(time(*AXPY, "--cold", "--json"))
    assert warm["warm"] and not cold["warm"] and cold["cycles"] > warm["cycles"] + 200
    assert warm["roofline"]["read_bytes"] == 0 < cold["roofline"]["read_bytes"]


def test_ptx_gets_its_registers_from_ptxas(time):
    (row,) = record_of(time("store.ptx", "--grid", "1", "--block", "32", "--arg", "p=u32[1]:zeros", "--arg", "n=7", "--json"))
    from fasim.toolchain.ptxas import assemble

    assert row["registers"] == assemble(Path("store.ptx").read_text(), "store.ptx", "sm_90").registers["store"] > 0


def test_without_a_launch_it_shows_how(time):
    done = time("axpy.cu")
    assert done.code == 2 and "needs --grid and --block" in done.err and "fasim time axpy.cu --entry axpy --grid" in done.err


# --- recordings ------------------------------------------------------------------------------------------------------------------

needs_recordings = pytest.mark.skipif(not RECORDINGS.is_dir(), reason="there are no recordings here")


@needs_recordings
@pytest.mark.parametrize("kind", ["warm", "cold"])
def test_a_recording_with_what_was_measured(time, kind):
    from fasim.gpu.recording_file import load

    path = RECORDINGS / "transpose" / "transpose-rows256-columns256-layoutpadded.zip"
    timing = load(path, counters=False).timings[kind]
    done = time(str(path), *(["--cold"] if kind == "cold" else []), "--json")
    (row,) = record_of(done)
    measured = row["measured"]
    assert (measured["median_us"], measured["low_us"], row["warm"]) == (timing.median_us, timing.low_us, kind == "warm")
    assert measured["error_percent"] == pytest.approx(100 * (row["time_us"] / timing.median_us - 1))


@needs_recordings
def test_recordings_and_folders(time):
    done = time(str(RECORDINGS / "cases" / "votes.zip"), str(RECORDINGS / "cases" / "nested.zip"))
    assert done.code == 0, done.err
    names = [line.split()[0] for line in done.out.splitlines() if line.startswith(("votes ", "nested "))]
    assert "\nOne SM simulated, no cycles extrapolated" in done.out
    assert names == ["votes", "nested"] and "2 measured: mean absolute error " in done.out


def test_cards_that_take_figures_over(time):
    from fasim.arch.cards import card

    rows = record_of(time("axpy", "--n", "64", "--gpu", "h200,a100", "--json"))
    assert [row["data_source"] for row in rows] == [card(name).source for name in ("h200", "a100")]
    assert rows[0]["taken_over"] == 0 < rows[1]["taken_over"] == len(card("a100").taken_over)
    out = time("axpy", "--n", "64", "--gpu", "h200,a100").out
    assert f"data: {card('a100').source}; {rows[1]['taken_over']} figures of another card" in out


@needs_recordings
def test_a_recording_on_another_gpu_is_compiled_anew(time):
    (row,) = record_of(time(str(RECORDINGS / "axpy" / "axpy-n1000.zip"), "--gpu", "a100x.toml", "--json"))
    assert (row["arch"], row["measured"]) == ("sm_80", None)


# --- jobs ------------------------------------------------------------------------------------------------------------------------


def test_jobs_can_be_sent_to_another_process(time):
    call = Call(["transpose", "--rows", "64", "--columns", "64", "--layout", "linear,padded"], RunOptions(), [], 0.0)
    jobs = timing_jobs(call, ["h200"])
    assert [(job.variant, job.label, job.gpu) for job in jobs] == [(0, "layout=linear", "h200"), (1, "layout=padded", "h200")]
    rows = [timing_row(pickle.loads(pickle.dumps(job))) for job in jobs]
    assert [row.options["layout"] for row in rows] == ["linear", "padded"]
    assert pickle.loads(pickle.dumps(rows)) == rows == [carry_out(job).row for job in jobs]


def test_processes_give_the_same_as_one(time):
    words = ("transpose", "--rows", "32,64", "--columns", "32", "--layout", "linear,padded", "--json")
    several, one = time(*words, "--workers", "2"), time(*words, "--workers", "1")
    assert len(several.record["launches"]) == FEW_JOBS and several.code == 0, several.err
    assert several.record == one.record


# --- files -----------------------------------------------------------------------------------------------------------------------

WRITTEN = [
    (("--out", "a.svg"), b"<?xml", "FMA pipe"),
    (("--out", "a.svg", "--figure", "gantt"), b"<?xml", "layout=padded on NVIDIA H200: one SM, cycles "),
    (("--out", "a.svg", "--figure", "gantt", "--window", "100,200"), b"<?xml", "layout=padded on NVIDIA H200: one SM, cycles 100 to 200"),
    (("--out", "a.png", "--figure", "gantt"), b"\x89PNG", ""),
    (("--out", "a.pftrace"), b"\x0a", "sub-partition 3 issue slot"),
]


@pytest.mark.parametrize(("words", "start", "text"), WRITTEN, ids=[" ".join(words) for words, _, _ in WRITTEN])
def test_figures_and_traces(time, tmp_path, words, start, text):
    done = time("softmax_rows", "--rows", "4", "--columns", "64", *words, "--json")
    if "gantt" in words:
        done = time("transpose", "--rows", "32", "--columns", "32", "--layout", "linear,padded", *words, "--json")
    assert done.code == 0, done.err
    assert done.record["saved"] == words[1]
    raw = (tmp_path / words[1]).read_bytes()
    assert raw.startswith(start) and text.encode() in raw


WRONG = [
    (["--gpu", "gtx1080"], "fasim has no timing data of 'gtx1080'; known: "),
    (["--figure", "pie", "--out", "a.svg"], "--figure 'pie': choose one of roofline, gantt, measured"),
    (["--figure", "gantt"], "--figure gantt needs a file: --out gantt.svg"),
    (["--figure", "gantt", "--out", "a.pftrace"], "a.pftrace is a trace"),
    (["--out", "a.pdf"], "figures are .png or .svg, traces .pftrace; name the file a.svg"),
    (["--window", "1,2"], "--window chooses cycles of a Gantt chart or a trace"),
    (["--window", "2,1", "--out", "a.pftrace"], "--window '2,1': write FIRST,LAST in cycles"),
    (["--figure", "measured", "--out", "a.svg"], "there is no measured time to draw"),
    (["--isa", "ptx"], "has no option --isa"),
    (["--arch", "sm_80"], "NVIDIA H200 needs machine code for sm_90, this is for sm_80"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_errors(time, tmp_path, words, message):
    before = set(tmp_path.iterdir())
    done = time("axpy", "--n", "64", *words)
    assert done.code == 2 and message in done.err and not done.out
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("text", ["", "1", "1,2,3", "a,b", "5,5", "-1,4"])
def test_windows_that_are_none(text):
    with pytest.raises(UsageError, match="write FIRST,LAST in cycles"):
        parse_window(text)


def test_a_window():
    assert parse_window("10,20") == (10, 20)
