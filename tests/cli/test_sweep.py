"""`fasim sweep`: the space, the ranking, what cannot be predicted, files."""

from __future__ import annotations

import csv

import pytest

from fasim.cli.sweep_space import DEFAULT_LIMIT, sizes, space
from fasim.errors import UsageError
from tests.cli.sweeps import ARGS, call_of

SMALL = (*ARGS, "-D", "REPEAT=64,8", "-D", "KBYTES=1", "--block", "128,256", "--grid", "1024/blockDim.x")
WITH_FAILURES = (*ARGS, "-D", "REPEAT=8,bad(", "-D", "KBYTES=1,64", "--block", "128,2048", "--grid", "1024/blockDim.x")


def record_of(done):
    assert done.code == 0, done.err
    assert done.record["schema"] == "fasim.sweep/1"
    return done.record


# --- the space -------------------------------------------------------------------------------------------------------------------


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
