"""What does not go together with a trace, what a wrong output says about the way to it, and small slips of the keyboard."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fasim.cli.layout import parse_register
from fasim.errors import UsageError
from fasim.report.output_file import check_output_path
from fasim.report.trace_write import FORMATS

WRITES = """__global__ void writes(float* C, int wrong) {
  int i = blockIdx.y * gridDim.x * 32 + blockIdx.x * 32 + threadIdx.x;
  C[i] = i == wrong ? 7 : 1;
}
__global__ void twice(float* C, int wrong) { C[threadIdx.x] = blockIdx.x == 2 && threadIdx.x == wrong ? 7 : 1; }
__global__ void adds(float* C, int wrong) { atomicAdd(C + blockIdx.x * 32 + threadIdx.x, threadIdx.x == wrong ? 7.0f : 1.0f); }
__global__ void again(float* C, int wrong) { int i = blockIdx.x * 32 + threadIdx.x; C[127 - i] = C[127 - i] + (i == wrong); }
"""
FAULT = "__global__ void fault(int* p) { p[threadIdx.x] = 1; if (threadIdx.x == 3) p[5000] = 2; }\n"


@pytest.mark.parametrize("how", ["--trace-out=t.json", "--trace"])
@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--print", "y"), "--print is"),
        (("--save", "s.npz"), "--save is"),
        (("--counts",), "--counts is"),
        (("--atol", "1", "--save", "s.npz", "--counts"), "--save and --counts are"),
        (("--print", "y", "--save", "s.npz", "--counts"), "--print, --save and --counts are"),
    ],
)
def test_a_trace_leaves_no_results(how, options, named, fasim_command, tmp_path):
    found = fasim_command("run", "axpy.cu", how, *options)
    assert found.code == 2 and found.out == "" and not (tmp_path / "t.json").exists()
    option = how.split("=")[0]
    assert found.err.startswith(f"error: {option} follows one CTA, {named} for the results of a launch: leave ")
    assert f"or run without {option} for " in found.err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--expect", "y=@x.npy"), "--expect is"),
        (("--expect", "nothing=@x.npy"), "--expect is"),
        (("--rtol", "0"), "--rtol is"),
        (("--expect", "y=@x.npy", "--rtol", "1e-3", "--atol", "0"), "--expect, --rtol and --atol are"),
        ((), ""),
    ],
)
def test_a_trace_judges_nothing(options, named, fasim_command, tmp_path):
    """The command that found a wrong output, with --trace or --trace-out after it."""
    args = ("a=f32:1", "x=f32[1024]:zeros", "y=f32[1024]:zeros", "n=1024")
    launch = ("--grid", "8", "--block", "128", *(word for each in args for word in ("--arg", each)))
    found = fasim_command("run", "axpy.cu", *launch, *options, "--trace-out=t.json")
    assert found.code == 0 and json.loads((tmp_path / "t.json").read_text())["events"]
    assert found.err == (f"{named} for the results of a launch: not looked at in a trace\n" if named else "")
    found = fasim_command("run", "axpy.cu", *options, "--trace")
    told, error = found.err.splitlines() if named else ("", found.err.strip())
    assert found.code == 2 and error.startswith("error: --trace shows the stepper and needs a terminal")
    assert told == (f"{named} for the results of a launch: not looked at while stepping" if named else "")


def test_a_trace_with_a_fault_is_saved_and_says_so(fasim_command, tmp_path):
    (tmp_path / "fault.cu").write_text(FAULT)
    words = ("run", "fault.cu", "--grid", "1", "--block", "32", "--arg", "p=i32[32]:zeros", "--trace-out", "t.JSON")
    found = fasim_command(*words)
    trace = json.loads((tmp_path / "t.JSON").read_text())
    assert found.code == 1 and "out of bounds" in found.err and trace["fault"]
    assert found.out == f"saved          t.JSON: {len(trace['events'])} events, {(tmp_path / 't.JSON').stat().st_size:,} bytes\n"
    found = fasim_command(*words, "--json")
    assert found.code == 1 and found.record["type"] == "MemoryAccessError"


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("check", "fa_v21"), "fasim check looks for hazards and does not judge outputs; leave out {}, or use fasim run for it"),
        (("check", "axpy.cu"), "fasim check looks for hazards and does not judge outputs; leave out {}, or use fasim run for it"),
        (("banks", "fa_v21"), "{} is for fasim run, which looks at outputs; leave it out here"),
    ],
)
@pytest.mark.parametrize("option", ["--expect", "--save", "--rtol"])
def test_other_commands_do_not_judge_outputs(command, message, option, fasim_command):
    for words in ((option, "x=1"), (f"{option}=x",)):
        found = fasim_command(*command, *words)
        assert found.code == 2 and found.err == f"error: {message.format(option)}\n"


@pytest.mark.parametrize(
    ("entry", "grid", "wrong", "place"),
    [
        ("writes", "2,2", 3, " --cta 0,0; there press x, type mem C[0,3], Enter, c"),
        ("writes", "2,2", 50, " --cta 1,0; there press x, type mem C[3,2], Enter, c"),
        ("writes", "2,2", 127, " --cta 1,1; there press x, type mem C[7,15], Enter, c"),
        ("writes", "4", 33, " --cta 1; there press x, type mem C[2,1], Enter, c"),
        ("twice", "4", 40, None),
        ("adds", "4", 3, "; there press x, type mem C[0,3], Enter, c (in the CTA that --cta chooses)"),
        ("again", "4", 1, " --cta 0; there press x, type mem C[7,14], Enter, c"),
    ],
)
def test_a_wrong_output_names_the_cta_and_the_element(entry, grid, wrong, place, fasim_command, tmp_path):
    (tmp_path / "writes.cu").write_text(WRITES)
    start = "ones" if entry == "again" else "zeros"
    np.save(tmp_path / "one.npy", np.ones((8, 16), np.float32))
    words = (
        "run",
        "writes.cu",
        "--entry",
        entry,
        "--grid",
        grid,
        "--block",
        "32",
        "--arg",
        f"C=f32[8,16]:{start}",
        "--arg",
        f"wrong={wrong}",
    )
    found = fasim_command(*words, "--expect", "C=@one.npy")
    lines = [line.strip() for line in found.out.splitlines() if "to where it is written" in line]
    if place is None:  # nobody writes the elements from 32 on: all of them are as wrong
        assert found.code == 1 and lines == [
            "to where it is written: the same command with --trace; there press x, type mem C[2,0], Enter, c "
            "(in the CTA that --cta chooses)"
        ]
    else:
        assert found.code == 1 and lines == [f"to where it is written: the same command with --trace{place}"]


@pytest.mark.parametrize(
    ("name", "suffix"),
    [("x.gif", ".png"), ("x.PDF", ".svg"), ("x.htm", ".html"), ("x.jsn", ".json"), ("x.pftrac", ".pftrace"), ("x", ".json")],
)
def test_the_nearest_suffix_is_suggested(name, suffix, tmp_path):
    with pytest.raises(UsageError, match=rf"known; name the file .*/x\{suffix}$"):
        check_output_path("--trace-out", tmp_path / name, "trace.json", FORMATS, "known")
    assert check_output_path("--trace-out", tmp_path / f"x{suffix.upper()}", "trace.json", FORMATS, "known") is None


@pytest.mark.parametrize(
    ("text", "operand", "name", "expected"),
    [
        ("2", None, "mma.m16n8k16.f16", (2, None)),
        ("a1", None, "mma.m16n8k16.f16", (1, "A")),
        ("%a1", "A", "mma.m16n8k16.f16", (1, "A")),
        ("r1", None, "ldmatrix.x4", (1, None)),
        ("c3", None, "hand-over", (3, None)),
    ],
)
def test_registers_as_the_tables_call_them(text, operand, name, expected):
    assert parse_register(text, operand, name) == expected


def test_registers_that_there_are_not(fasim_command):
    for text, message in (
        ("a-1", "a number is expected, or the register as the tables call it"),
        ("b1", "a register of B, and --operand asks"),
    ):
        with pytest.raises(UsageError, match=message):
            parse_register(text, "A", "mma.m16n8k16.f16")
    found = fasim_command("layout", "mma.m16n8k16.f16", "--lane", "7", "--reg", "a1")
    assert found.code == 0 and "lane 7, a1: bits 0-15 A (9, 6)" in found.out and "lane 7, c1" not in found.out
