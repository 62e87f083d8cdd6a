"""`fasim run FILE`: a person's own kernels."""

from __future__ import annotations

import numpy as np
import pytest

from fasim.report.compare import Comparison, Statistics, Worst
from fasim.report.records import OutputReport, RunReport, Seconds

AXPY = ["run", "axpy.cu", "--grid", "8", "--block", "128"]
MANY = ["run", "many.cu", "-I", "include", "-DBIAS=100", "--grid", "1", "--block", "32"]


def fields(record):
    return set(record.__dataclass_fields__)


def test_a_file_with_arrays_expectations_and_a_saved_result(fasim_command, tmp_path):
    x = np.load(tmp_path / "x.npy")
    np.save(tmp_path / "y.npy", 2 * x + 1)
    arguments = ["--arg", "a=f32:2", "--arg", "x=@x.npy", "--arg", "y=f32[1024]:ones", "--arg", "n=i32:1024"]
    done = fasim_command(*AXPY, "--entry", "axpy", *arguments, "--expect", "y=@y.npy", "--save", "out.npz", "--json")
    assert (done.code, done.err) == (0, "")
    record = done.record
    assert set(record) == fields(RunReport)
    assert set(record["seconds"]) == fields(Seconds)
    (output,) = record["outputs"]
    assert set(output) == fields(OutputReport)
    assert set(output["comparison"]) == fields(Comparison) and set(output["comparison"]["worst"]) == fields(Worst)
    assert set(output["statistics"]) == fields(Statistics)
    assert (record["schema"], record["verdict"], record["grid"], record["block"]) == ("fasim.run/1", "right", [8, 1, 1], [128, 1, 1])
    assert (output["name"], output["dtype"], output["shape"], output["changed"]) == ("y", "f32", [1024], True)
    assert record["saved"] == "out.npz"
    with np.load(tmp_path / "out.npz") as saved:
        assert saved["y"].tobytes() == (2 * x + 1).astype(np.float32).tobytes()
    np.save(tmp_path / "y.npy", 2 * x + (np.arange(1024) == 77))
    wrong = fasim_command(*AXPY, *arguments, "--expect", "y=@y.npy")
    assert wrong.code == 1
    assert "WRONG: max abs error 1 against y.npy (exact)" in wrong.out
    assert fasim_command(*AXPY, *arguments, "--expect", "y=@y.npy", "--atol", "1").code == 0
    assert fasim_command(*AXPY, *arguments, "--expect", "y=@y.npy", "--atol", "0.5", "--rtol", "1e-6").code == 1


def test_without_reference_statistics_are_shown(fasim_command):
    arguments = ["--arg", "1", "--arg", "x=f32[1024]:full(nan)", "--arg", "y=f32[1024]:ones", "--arg", "n=1000"]
    done = fasim_command(*AXPY, *arguments)
    assert done.code == 0
    assert "output y       f32[1024]: min 1, max 1, mean 1, 1,000 NaN" in done.out
    assert "output x" not in done.out
    assert fasim_command(*AXPY, *arguments, "--json").record["verdict"] == "unchecked"


# entry, arguments, what the array `p` or `out` holds at the end
KERNELS = [
    ("scale<3,int>", ["p=i32[32]:arange"], "p", 3 * np.arange(32)),
    ("scale<5, float>", ["p=f32[32]:arange"], "p", 5.0 * np.arange(32)),
    ("twice", ["p=bf16[32]:full(1.5)"], "p", np.full(32, 3.0)),
    ("structure", ["pair=u8[8]:zeros", "out=f32[32]:uninit"], "out", np.full(32, 108)),
    ("structure", ["pair=i32[2]:ones", "out=f32[32]:uninit"], "out", np.full(32, 109)),
    ("copy", ["in=i64[32]:full(9007199254740992)", "out=i64[32]:uninit"], "out", np.full(32, 2**53 + 1)),
    ("nullable", ["p=null", "out=i32[32]:zeros"], "out", np.ones(32, np.int32)),
    ("nullable", ["p=i32[1]:zeros", "out=i32[32]:ones"], "out", np.zeros(32, np.int32)),
]


@pytest.mark.parametrize(("entry", "arguments", "name", "want"), KERNELS)
def test_kernels_of_a_file(fasim_command, tmp_path, entry, arguments, name, want):
    np.save(tmp_path / "want.npy", want)
    words = [word for argument in arguments for word in ("--arg", argument)]
    done = fasim_command(*MANY, "--entry", entry, *words, "--expect", f"{name}=@want.npy")
    assert done.code == 0, done.out + done.err
    np.save(tmp_path / "want.npy", want + 1)
    assert fasim_command(*MANY, "--entry", entry, *words, "--expect", f"{name}=@want.npy").code == 1


def test_dynamic_shared_memory(fasim_command):
    words = [*MANY, "--entry", "shared", "--arg", "out=i32[32]:uninit"]
    assert fasim_command(*words, "--smem", "128").code == 0
    done = fasim_command(*words)
    assert done.code == 1
    assert "launch with more dynamic shared memory" in done.err
    assert fasim_command(*words, "--smem", "999999").code == 2


@pytest.mark.parametrize("json", [False, True])
def test_printf(fasim_command, json):
    done = fasim_command(*MANY, "--entry", "talk", "--arg", "p=i32[32]:zeros", *(["--json"] if json else []))
    assert done.code == 0
    if json:
        assert done.record["output"] == "lane 0\nlane 1\n"
    else:
        assert done.out.startswith("lane 0\nlane 1\nkernel ")


def test_ptx(fasim_command):
    words = ["run", "store.ptx", "--grid", "1x1x1", "--block", "1,1"]
    done = fasim_command(*words, "--arg", "p=u32[1]:zeros", "--arg", "n=7", "--json")
    assert done.record["outputs"][0]["statistics"]["maximum"] == 7
    assert "p: u64, a pointer or a 64-bit integer" in fasim_command(*words).err


def test_missing_arguments_show_a_command_that_works(fasim_command):
    done = fasim_command("run", "axpy.cu")
    assert done.code == 2
    assert "For example (adapt the sizes):\n" in done.err
    for line in ("  a: float\n", "  x: const float *\n", "  y: float *\n", "  n: int\n", "--grid and --block and 4 --arg"):
        assert line in done.err
    import shlex

    command = shlex.split(done.err.splitlines()[-1])
    assert command[0] == "fasim"
    assert fasim_command(*command[1:]).code == 0


ARGS = ["--arg", "a=1", "--arg", "x=@x.npy", "--arg", "y=@x.npy", "--arg", "n=1024"]
REFUSED = [
    ([*AXPY, "--arg", "a=1"], 2, "4 --arg, one a parameter in their order (got 1)"),
    ([*AXPY, "--arg", "x=@x.npy", "--arg", "a=1", "--arg", "y=@x.npy", "--arg", "n=1"], 2, "order is a, x, y, n; these come as x, a"),
    ([*AXPY, "--arg", "a=1", "--arg", "x=1", "--arg", "x=2", "--arg", "n=1"], 2, "two arguments are called 'x'"),
    ([*AXPY, *ARGS[:-2], "--arg", "n=2.5"], 2, "argument n of"),
    ([*AXPY, *ARGS, "--entry", "axpi"], 2, "There is no kernel 'axpi' (did you mean axpy?). Kernels: axpy"),
    ([*AXPY, *ARGS, "--blok", "3"], 2, "did you mean --block?"),
    ([*AXPY, *ARGS, "more"], 2, "unexpected argument 'more'"),
    ([*AXPY, *ARGS, "--expect", "y=@two.npz:first"], 2, "what is expected has shape [32]"),
    ([*AXPY, *ARGS, "--expect", "y=@two.npz"], 2, "has 2 arrays"),
    ([*AXPY, *ARGS, "-I", "absent"], 2, "'absent' does not exist"),
    (["run", "axpy.cu", "--grid", "8,2,1,1", "--block", "1"], 2, "--grid '8,2,1,1': one to three whole numbers"),
    (["run", "axpy.cu", "--grid", "8", "--block", "-1"], 2, "--block '-1'"),
    (["run", "axpy.cu", "--grid", "8", "--block", "2048", *ARGS], 2, "sm_90 allows 1 to 1024"),
    (["run", "axpy.cu", "--grid", "0", "--block", "1", *ARGS], 2, "grid.x is 0"),
    (["run", "absent.cu"], 2, "no source file 'absent.cu'"),
    (["run", "absent.ptx"], 2, "cannot read absent.ptx"),
    (["run", "textures.ptx", "--grid", "1", "--block", "1", "--arg", "p=f32[1]:zeros"], 3, "tex.1d.v4.f32.s32"),
    (["run", "broken.cu", "--grid", "1", "--block", "1", "--arg", "p=i32[1]:zeros"], 5, 'broken.cu(1): error: identifier "undeclared"'),
    ([*AXPY[:-3], "9", "--block", "128", *ARGS[:-1], "n=2000"], 1, "past the end of x (4096 bytes)"),
    ([*MANY, "--entry", "structure", "--arg", "pair=u8[9]:zeros", "--arg", "out=f32[32]:zeros"], 2, "of 8 bytes, the array has 9"),
    ([*MANY, "--entry", "forever", "--arg", "p=i32[2]:zeros", "--max-instructions", "100000"], 1, "executed 100000 warp instructions"),
]


@pytest.mark.parametrize(("words", "code", "message"), REFUSED)
def test_exit_codes_and_messages(fasim_command, words, code, message):
    done = fasim_command(*words)
    assert (done.code, done.out) == (code, ""), done.err
    assert message in done.err
    assert "Traceback" not in done.err
    again = fasim_command(*words, "--json")
    assert (again.code, again.record["exit_code"], again.record["schema"]) == (code, code, "fasim.error/1")


def test_a_finding_says_where(fasim_command):
    record = fasim_command(*AXPY[:-3], "9", "--block", "128", *ARGS[:-1], "n=2000", "--json").record
    assert record["type"] == "MemoryAccessError"
    assert (record["where"]["line"], record["where"]["ctaid"], record["details"]["nearest"]) == (4, [8, 0, 0], "x")


def test_a_failed_run_leaves_older_results_alone(fasim_command, tmp_path):
    (tmp_path / "out.npz").write_text("older")
    assert fasim_command(*AXPY[:-3], "9", "--block", "128", *ARGS[:-1], "n=2000", "--save", "out.npz").code == 1
    assert (tmp_path / "out.npz").read_text() == "older"


def test_buffers_of_another_type_are_refused(fasim_command):
    done = fasim_command(*AXPY, *ARGS[:4], "--arg", "y=f64[1024]:zeros", "--arg", "n=4")
    assert (done.code, done.out) == (2, "")
    assert "argument y is f64, and the kernel declares `float *y`: give f32[...]" in done.err
    assert "y=f32@FILE" in done.err and "u32[...] to pass bits" in done.err
    assert fasim_command(*AXPY, *ARGS[:4], "--arg", "y=u32[1024]:zeros", "--arg", "n=4").code == 0


def test_a_run_that_ends_early_says_that_nothing_was_saved(fasim_command):
    done = fasim_command(*AXPY[:-3], "9", "--block", "128", *ARGS[:-1], "n=2000", "--save", "out.npz")
    assert done.code == 1 and "nothing was saved to out.npz" in done.err
