"""`fasim sweep`: the space, the ranking, what cannot be predicted, files, and the same on a Dask cluster."""

from __future__ import annotations

import contextlib
import csv
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fasim.cli import sweep_cluster
from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.cli.sweep_cluster import Installed, carry_out_on, complaint_about, installed, setting_of
from fasim.cli.sweep_space import DEFAULT_LIMIT, sizes, space
from fasim.cli.timing_job import timing_row
from fasim.errors import FasimError, UsageError

#: REPEAT multiplications a thread, of which some do not compile, and shared memory that may be too much
OWN = """
__global__ void own(float* y, int n) {
  __shared__ float tile[KBYTES * 256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? y[i] : 0;
  __syncthreads();
  float x = tile[threadIdx.x ^ 1];
  for (int k = 0; k < REPEAT; k++) x = x * x + 1;
  if (i < n) y[i] = x;
}
"""
ARGS = ("own.cu", "--arg", "y=f32[1024]:ones", "--arg", "n=1024")
SMALL = (*ARGS, "-D", "REPEAT=64,8", "-D", "KBYTES=1", "--block", "128,256", "--grid", "1024/blockDim.x")
WITH_FAILURES = (*ARGS, "-D", "REPEAT=8,bad(", "-D", "KBYTES=1,64", "--block", "128,2048", "--grid", "1024/blockDim.x")


@pytest.fixture
def sweep(fasim_command, tmp_path):
    """Returns a function that runs `fasim sweep` beside the file above, without processes of its own if nothing else is said."""
    (tmp_path / "own.cu").write_text(OWN)

    def run(*words: str):
        alone = () if {"--scheduler", "--workers"} & set(words) else ("--workers", "1")
        return fasim_command("sweep", *words, *alone)

    return run


def record_of(done):
    assert done.code == 0, done.err
    assert done.record["schema"] == "fasim.sweep/1"
    return done.record


# --- the space -------------------------------------------------------------------------------------------------------------------


def call_of(*words: str, **options) -> Call:
    return Call(list(words), RunOptions(**options), [], 0.0)


def test_the_product_of_options_and_gpus():
    found = space(call_of("fa_v21", "--bc", "32,64", "--n", "256", "--layout=padded,linear,padded"), ["h200", "a100", "h200"])
    assert found.axes == {"bc": ["32", "64"], "layout": ["padded", "linear"], "gpu": ["h200", "a100"]}
    labels = [point.job.label for point in found.points]
    assert labels[:3] == ["bc=32 layout=padded h200", "bc=32 layout=padded a100", "bc=32 layout=linear h200"]
    assert len(labels) == len(set(labels)) == 8


def test_the_product_of_macros_and_launch_shapes():
    options = {"defines": ("T=2,4", "F=f(1,2)", "ON"), "block": "32,8x4", "grid": "64/T x 6/blockDim.y, 7"}
    found = space(call_of("a.cu", **options), [])
    assert found.axes == {"T": ["2", "4"], "block": ["32", "8x4"], "grid": ["64/T x 6/blockDim.y", "7"]}
    shapes = [(p.job.call.options.defines, p.job.call.options.block, p.job.call.options.grid) for p in found.points]
    assert shapes[:4] == [
        (("T=2", "F=f(1,2)", "ON"), "32", "32x6"),
        (("T=2", "F=f(1,2)", "ON"), "32", "7"),
        (("T=2", "F=f(1,2)", "ON"), "8x4", "32x2"),
        (("T=2", "F=f(1,2)", "ON"), "8x4", "7"),
    ]
    assert [shape[2] for shape in shapes[4::2]] == ["16x6", "16x2"] and {p.job.gpu for p in found.points} == {"h200"}


def test_macros_that_are_called_as_other_axes():
    found = space(call_of("a.cu", defines=("grid=1,2",), grid="8,9", block="32"), [])
    assert list(found.axes) == ["-D grid", "grid"] and len(found.points) == 4


SIZES = [
    ("8", (8,)), ("8x2", (8, 2)), ("8x2x1", (8, 2, 1)), ("(8,2)", (8, 2)), ("100/T", (34,)), ("4*T x T+1 x (9-T)/2", (12, 4, 3)),
    ("H x blockDim.y", (16, 5)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), SIZES, ids=[text for text, _ in SIZES])
def test_sizes(text, expected):
    assert sizes(text, {"T": "3", "H": "0x10", "blockDim.y": "5"}, "--grid") == expected


NO_SIZES = [
    ("", "write one to three sizes"), ("a b", "write one to three sizes"), ("1,2,3,4", "one to three sizes expected"),
    ("N/2", "N is neither a macro of -D nor blockDim.x"), ("8/Z", "division"), ("T", "T is 'float', no whole number"),
    ("2**3", r"2 \*\* 3 is no size"), ("E", "E is None"), ("1.5", "1.5 is no size"), ("abs(3)", r"abs\(3\) is no size"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), NO_SIZES, ids=[text for text, _ in NO_SIZES])
def test_what_is_no_size(text, message):
    with pytest.raises(UsageError, match=rf"--grid .*{message}"):
        sizes(text, {"T": "float", "Z": "0", "E": None}, "--grid")


def test_large_spaces_have_to_be_asked_for():
    # the product of these would not fit into memory
    many = ",".join(map(str, range(1, 1000)))
    words = ["fa_v21"] + [f"--{name}={many}" for name in ("n", "batch", "heads", "bc")]
    with pytest.raises(UsageError, match=rf"the space has {999**4:,} combinations \(999 --n x .*, more than {DEFAULT_LIMIT:,} .*--limit"):
        space(call_of(*words), [])
    with pytest.raises(UsageError, match=r"the space has 6 combinations \(3 T x 2 GPUs\), more than --limit 5 allows"):
        space(call_of("a.cu", defines=("T=1,2,3",)), ["h200", "a100"], limit=5)
    assert len(space(call_of("a.cu", defines=("T=1,2,3",)), ["h200", "a100"], limit=6).points) == 6


# --- the ranking -----------------------------------------------------------------------------------------------------------------


def test_the_fastest_is_first(sweep):
    words = ("transpose", "--rows", "64", "--columns", "32", "--layout", "linear,padded", "--gpu", "h200,a100")
    record = record_of(sweep(*words, "--workers", "2", "--json"))
    rows = record["launches"]
    times = [row["time_us"] for row in rows]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4] and times == sorted(times) and times[0] < times[-1]
    assert [row["ratio"] for row in rows] == [time / times[0] for time in times] and record["not_predicted"] == []
    # 32 rows of a tile in one bank
    ranks = {(row["values"]["gpu"], row["values"]["layout"]): row["rank"] for row in rows}
    assert all(ranks[gpu, "padded"] < ranks[gpu, "linear"] for gpu in ("h200", "a100"))
    assert record["axes"] == {"layout": ["linear", "padded"], "gpu": ["h200", "a100"]}
    assert [gpu["gpu"] for gpu in record["gpus"]] == [rows[0]["gpu"], next(row["gpu"] for row in rows if row["gpu"] != rows[0]["gpu"])]


def test_rows_are_what_time_predicts(sweep, fasim_command):
    rows = record_of(sweep(*SMALL, "--json"))["launches"]
    assert [row["values"] for row in rows[:2]] != [row["values"] for row in rows[2:]] and len(rows) == 4
    for row in rows:
        repeat, block = row["values"]["REPEAT"], int(row["values"]["block"])
        words = [*ARGS, "-D", f"REPEAT={repeat}", "-D", "KBYTES=1", "--block", str(block), "--grid", str(1024 // block), "--json"]
        (alone,) = fasim_command("time", *words).record["launches"]
        assert {key: row[key] for key in ("time_us", "cycles", "bound", "grid", "block", "registers", "tflops", "defines")} == {
            key: alone[key] for key in ("time_us", "cycles", "bound", "grid", "block", "registers", "tflops", "defines")
        }
        assert (row["ctas"], row["warps"], row["limited_by"]) == tuple(alone["held"][key] for key in ("ctas", "warps", "binding"))
    cycles = {(row["values"]["REPEAT"], row["values"]["block"]): row["cycles"] for row in rows}
    # each multiplication waits for the one before
    assert cycles["64", "128"] >= cycles["8", "128"] + 56 * 4


def test_the_table(sweep):
    done = sweep(*SMALL, "--top", "3")
    assert done.code == 0, done.err
    lines = [line.rstrip() for line in done.out.splitlines()]
    assert lines[0] == "kernel  own -D KBYTES=1" and "swept   REPEAT (2), block (2)" in lines and "tried   4 predicted" in lines
    head = lines.index("") + 1
    columns = ["#", "REPEAT", "block", "grid", "us", "ratio", "TFLOPS", "CTAs", "warps", "limited", "by", "bound", "by", "stalls"]
    assert lines[head].split() == columns
    ranked = [line.split() for line in lines[head + 1 : head + 4]]
    assert [cells[0] for cells in ranked] == ["1", "2", "3"] and ranked[0][5] == "1.000" and ranked[0][1] == "8"
    assert {(cells[2], cells[3]) for cells in ranked} == {("128", "(8)"), ("256", "(4)")}
    assert lines[head + 4] == "and 1 slower ones (--top N)"


def test_what_cannot_be_is_listed_with_its_reason(sweep):
    record = record_of(sweep(*WITH_FAILURES, "--json"))
    assert [row["values"] for row in record["launches"]] == [{"REPEAT": "8", "KBYTES": "1", "block": "128"}]
    reasons = {each["label"]: each["reason"] for each in record["not_predicted"]}
    assert len(reasons) == 7 and all("\n" not in reason for reason in reasons.values())
    assert "1024" in reasons["REPEAT=8 KBYTES=1 block=2048"] and "shared data" in reasons["REPEAT=8 KBYTES=64 block=128"]
    assert "error" in reasons["REPEAT=bad( KBYTES=1 block=128"]
    lines = [line.rstrip() for line in sweep(*WITH_FAILURES).out.splitlines()]
    assert "tried   1 predicted, 7 not" in lines
    at = next(i for i, line in enumerate(lines) if line.startswith("not predicted"))
    assert [line.split("  ")[0] for line in lines[at + 1 : at + 8]] == list(reasons)


def test_nothing_can_be_predicted(sweep):
    done = sweep(*ARGS, "-D", "REPEAT=1", "-D", "KBYTES=1,2", "--block", "2048", "--grid", "1", "--json")
    # the reason that all have in common, as `fasim time` says it
    assert done.code == 2 and done.record["type"] == "LaunchError" and "1024" in done.err
    done = sweep(*ARGS, "-D", "REPEAT=1", "-D", "KBYTES=1,64", "--block", "2048", "--grid", "1")
    assert done.code == 2 and "none of the 2 combinations can be predicted:\n  KBYTES=1: block.x is 2048" in done.err
    assert "  KBYTES=64: ptxas error" in done.err
    done = sweep("own.cu", "-D", "REPEAT=1,2", "-D", "KBYTES=1")
    assert done.code == 2 and "fasim sweep own.cu -D REPEAT=1 -D KBYTES=1 --entry own --grid" in done.err


WRONG = [
    (["--gpu", "gtx1080"], "fasim has no timing data of 'gtx1080'"),
    (["--out", "a.pdf"], "tables are .csv, figures .png or .svg; name the file a.svg"),
    (["--over", "n,seed"], "a map needs a file: --out sweep.svg"),
    (["--over", "n,seed", "--out", "a.csv"], "a.csv is a table; name a figure"),
    (["--over", "n,seed", "--out", "a.svg"], "name two of what is swept, with a comma between; swept: n"),
    (["--over", "n", "--out", "a.svg"], "name two of what is swept"),
    (["--scheduler", "tcp://127.0.0.1:1", "--workers", "2"], "--workers is for processes of this machine"),
    (["--scheduler", "somewhere"], "write tcp://HOST:PORT, or local"),
    (["--grid", "1"], "--grid is for files"),
    (["--limit", "1"], "the space has 2 combinations (2 --n), more than --limit 1 allows"),
]


@pytest.mark.parametrize(("words", "message"), WRONG, ids=[" ".join(words) for words, _ in WRONG])
def test_errors(sweep, tmp_path, words, message):
    pytest.importorskip("distributed")
    before = set(tmp_path.iterdir())
    done = sweep("axpy", "--n", "64,65", *words)
    assert done.code == 2 and message in done.err and not done.out
    assert set(tmp_path.iterdir()) == before


# --- files -----------------------------------------------------------------------------------------------------------------------


def test_csv(sweep, tmp_path):
    record = record_of(sweep(*WITH_FAILURES, "--out", "s.csv", "--json"))
    assert record["saved"] == "s.csv"
    rows = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    (row,) = record["launches"]
    assert [each["rank"] for each in rows] == ["1"] + [""] * 7
    best = rows[0]
    assert float(best["time_us"]) == row["time_us"] and (best["REPEAT"], best["KBYTES"], best["block"]) == ("8", "1", "128")
    assert best["grid"] == "8" and best["bound"] == row["bound"] and best["reason"] == ""
    listed = [(each["REPEAT"], each["KBYTES"], each["block"], each["reason"]) for each in rows[1:]]
    assert listed == [(*each["values"].values(), each["reason"]) for each in record["not_predicted"]]


@pytest.mark.parametrize("words", [["--out", "a.svg"], ["--out", "a.png"], ["--out", "a.svg", "--over", "block,REPEAT"]], ids=" ".join)
def test_figures(sweep, tmp_path, words):
    done = sweep(
        *ARGS, "-D", "REPEAT=8", "-D", "KBYTES=1,2", "--block", "128,256", "--grid", "4", *[w.replace("REPEAT", "KBYTES") for w in words]
    )
    assert done.code == 0, done.err
    raw = (tmp_path / words[1]).read_bytes()
    assert raw.startswith(b"\x89PNG" if words[1].endswith("png") else b"<?xml") and f"saved  {words[1]}" in done.out


# --- Dask ------------------------------------------------------------------------------------------------------------------------


def test_without_dask(sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    done = sweep("axpy", "--n", "64,65", "--scheduler", "tcp://127.0.0.1:1")
    assert done.code == 4 and "pip install 'dask[distributed]'" in done.err


def test_no_scheduler_at_the_address(sweep, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep_cluster, "CONNECT_SECONDS", 0.3)
    done = sweep("axpy", "--n", "64,65", "--scheduler", "tcp://127.0.0.1:1")
    assert done.code == 4 and "no Dask scheduler answers at tcp://127.0.0.1:1: " in done.err


@contextlib.contextmanager
def dask_process(*words: str, ready: str):
    """A process of Dask's own command line, and the line in which it says that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dask", *words], stderr=subprocess.PIPE, text=True, cwd="/", stdout=subprocess.DEVNULL
    )
    try:
        for line in process.stderr:
            if ready in line:
                break
        else:
            raise AssertionError(f"dask {' '.join(words)} ended")
        yield process, line
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def cluster():
    """The address of a scheduler with two workers, all of them processes as a person starts them, in another folder."""
    pytest.importorskip("distributed")
    with contextlib.ExitStack() as stack:
        address = stack.enter_context(scheduler())
        for _ in range(2):
            stack.enter_context(worker(address))
        yield address


@contextlib.contextmanager
def scheduler():
    with dask_process("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0", ready="Scheduler at:") as (
        _,
        line,
    ):
        yield line.split()[-1]


def worker(address: str):
    return dask_process("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard", ready="Registered to:")


def test_a_scheduler_with_two_workers_gives_the_same(sweep, cluster, monkeypatch):
    seen = []
    take = sweep_cluster._outcome
    monkeypatch.setattr(sweep_cluster, "_outcome", lambda *given: seen.append(given) or take(*given))
    words = (*ARGS, "-D", "REPEAT=8,bad(", "-D", "KBYTES=1,64", "--block", "64,128", "--grid", "1024/blockDim.x", "--json")
    there, here = sweep(*words, "--scheduler", cluster), sweep(*words)
    assert there.code == 0 and not there.err, there.err
    assert there.record == here.record
    assert len(here.record["launches"]) == 2 and len(here.record["not_predicted"]) == 6 and len(seen) == 8
    # what was changed since counts
    Path("own.cu").write_text(OWN.replace("x * x + 1", "x * x * x * x + 1"))
    changed, here = sweep(*words, "--scheduler", cluster), sweep(*words)
    assert changed.record == here.record and changed.record != there.record


def test_both_workers_take_part(cluster):
    distributed = pytest.importorskip("distributed")
    jobs = [point.job for point in space(call_of("axpy", "--n", ",".join(map(str, range(64, 80)))), []).points]
    assert carry_out_on(cluster, jobs, 1) == [timing_row(job) for job in jobs]
    with distributed.Client(cluster, set_as_default=False) as client:
        # both have compared what they have with what this process has
        sizes = client.run(lambda: __import__("fasim.cli.sweep_cluster").cli.sweep_cluster.complaint_about.cache_info().currsize)
    assert list(sizes.values()) == [1, 1]


def test_a_cluster_of_its_own(sweep):
    pytest.importorskip("distributed")
    words = ("axpy", "--n", "64,128,256,512", "--json")
    there = sweep(*words, "--scheduler", "local", "--workers", "2")
    assert there.code == 0, there.err
    assert there.record == sweep(*words).record
    assert logging.getLogger("distributed").level <= logging.WARNING


def test_workers_with_another_fasim_are_named(sweep, cluster, monkeypatch):
    monkeypatch.setattr(sweep_cluster, "installed", lambda: replace(installed(), fasim="9.9"))
    done = sweep("axpy", "--n", "64,65", "--scheduler", cluster)
    assert done.code == 2 and f"2 of 2 workers at {cluster} would not predict what this machine does:\n  tcp://" in done.err
    assert done.err.count(": fasim 0.1.0, here 9.9\n") == 2


def test_workers_without_fasim_are_named(sweep, cluster, tmp_path, monkeypatch):
    (tmp_path / "only_here.py").write_text("def complaint_about(setting): return ''\n")
    monkeypatch.syspath_prepend(tmp_path)
    import only_here

    monkeypatch.setattr(sweep_cluster, "complaint_about", only_here.complaint_about)
    done = sweep("axpy", "--n", "64,65", "--scheduler", cluster)
    assert done.code == 2 and done.err.count("fasim cannot be asked there (ModuleNotFoundError(\"No module named 'only_here'\"))") == 2


def test_differences():
    here = Installed("1.0", "a" * 64, "13.0")
    assert here.differences(here) == []
    assert here.differences(Installed("1.1", "b" * 64, "13.1")) == ["fasim 1.1, here 1.0", "NVRTC 13.1, here 13.0"]
    assert here.differences(replace(here, files="b" * 64)) == [
        "fasim 1.0 with other files in its package (digest bbbbbbbbbbbb, here aaaaaaaaaaaa)"
    ]


def test_files_have_to_be_the_same_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.cu").write_text("x")
    Path("x.npz").write_text("y")
    jobs = [point.job for point in space(call_of("a.cu", args=("p=f32@x.npz:p", "n=1"), defines=("T=1,2",)), []).points]
    setting = setting_of(jobs)
    assert [name for name, _ in setting.files] == ["a.cu", "x.npz"] and complaint_about(setting) == ""
    assert "no folder /nowhere: workers have to see" in complaint_about(replace(setting, folder="/nowhere"))
    Path("x.npz").write_text("z")
    complaint_about.cache_clear()
    assert complaint_about(setting) == f"{tmp_path}/x.npz has other contents than where the sweep was started"
    Path("x.npz").unlink()
    complaint_about.cache_clear()
    assert f"no file {tmp_path}/x.npz: workers have to see" in complaint_about(setting)


def test_a_scheduler_without_workers(sweep, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep_cluster, "EMPTY_SECONDS", 0.3)
    with scheduler() as address:
        done = sweep("axpy", "--n", "64,65", "--scheduler", address)
    assert done.code == 2 and f"the Dask scheduler at {address} has no workers; start some: dask worker {address}" in done.err


@pytest.mark.parametrize(
    ("ends", "message"),
    [
        ("worker", "all workers of the Dask scheduler at {} are gone, {} of 300 launches"),
        ("scheduler", "the Dask scheduler at {} went away"),
    ],
)
def test_what_ends_during_a_sweep(ends, message, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(sweep_cluster, "EMPTY_SECONDS", 0.3)
    monkeypatch.setattr(sweep_cluster, "_CHECK_SECONDS", 0.1)
    jobs = [point.job for point in space(call_of("axpy", "--n", ",".join(map(str, range(64, 364)))), []).points]
    words = ("scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    with dask_process(*words, ready="Scheduler at:") as (head, line):
        address = line.split()[-1]
        with worker(address) as (hand, _):
            counts = []

            def progress(done, total):
                counts.append(done)
                (hand if ends == "worker" else head).kill()

            with pytest.raises(FasimError) as caught:
                carry_out_on(address, jobs, 1, progress)
    assert message.format(address, counts[-1]) in str(caught.value) and 0 < counts[-1] < 300
