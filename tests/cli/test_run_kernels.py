"""`fasim run` on kernels of the collection."""

from __future__ import annotations

import numpy as np
import pytest

from fasim import kernels
from tests.kernels.recordings import load_recording


def test_alone_runs_v21(fasim_command):
    done = fasim_command("run")
    assert done.code == 0, done.err
    assert done.out.startswith("kernel         fa_v21 n=256 batch=1 heads=2 head_dim=64 bc=32 layout=padded causal=false\n")
    assert "right: max abs error" in done.out
    assert "shared memory  2,816 accesses" in done.out


@pytest.mark.parametrize("name", kernels.names())
def test_every_kernel_of_the_collection(fasim_command, name):
    done = fasim_command("run", name, "--json", "--seed", "3")
    assert done.code == 0, done.err
    record = done.record
    assert (record["kernel"], record["verdict"], record["exit_code"], record["seed"]) == (name, "right", 0, 3)
    assert all(output["comparison"]["ok"] and output["changed"] for output in record["outputs"])
    assert sum(record["instruction_mix"].values()) == record["warp_instructions"] > 0


def test_bits_are_those_of_the_gpu(fasim_command):
    wanted = {"n": 129, "batch": 1, "heads": 2, "head_dim": 64, "bc": 32, "causal": True}
    recorded = next(r for r in load_recording("h200_fa_v21")["records"] if r["options"].items() >= wanted.items())
    words = ["--n", "129", "--causal", "--layout", "swizzled", "--seed", str(recorded["seed"])]
    record = fasim_command("run", *words, "--json", "fa_v21").record
    assert record["options"] == {**wanted, "layout": "swizzled"}
    assert {output["name"]: output["sha256"] for output in record["outputs"]} == recorded["outputs_sha256"]


def test_options_in_every_spelling(fasim_command):
    first, second = (
        fasim_command("run", *words, "--json").record["options"]
        for words in (
            ["fa_v21", "--n=64", "--head-dim=128", "--causal=true"],
            ["--n", "64", "--no-causal", "fa_v21", "--causal", "--head-dim", "128"],
        )
    )
    assert first == second


def test_wrong_output_is_exit_code_1(fasim_command):
    done = fasim_command("run", "axpy", "--n", "100", "--rtol", "0", "--atol", "0")
    assert done.code == 1
    assert "WRONG: max abs error" in done.out and "worst element [" in done.out
    record = fasim_command("run", "axpy", "--n", "100", "--rtol", "0", "--json").record
    assert (record["verdict"], record["exit_code"]) == ("wrong", 1)
    comparison = record["outputs"][0]["comparison"]
    assert 0 < comparison["wrong_elements"] <= 100 and not comparison["ok"]
    worst = comparison["worst"]
    assert worst["abs_error"] == abs(worst["got"] - worst["expected"]) == comparison["max_abs_error"]


def test_no_check_and_counts(fasim_command):
    record = fasim_command("run", "reduce", "--no-check", "--counts", "--json").record
    assert record["verdict"] == "unchecked" and record["outputs"][0]["comparison"] is None
    assert sum(row["executions"] for row in record["counts"]) == record["warp_instructions"]
    assert any(row["line"] and row["file"].endswith("03_reduce.cu") for row in record["counts"])


def test_machines_and_workers_agree(fasim_command):
    def bits(*words):
        record = fasim_command("run", "softmax_rows", "--rows", "2", "--columns", "40", "--json", *words).record
        return record["outputs"][0]["sha256"], record["warp_instructions"]

    assert bits() == bits("--backend", "reference") == bits("--workers", "1")


def test_saved_arrays(fasim_command, tmp_path):
    assert fasim_command("run", "axpy", "--n", "50", "--save", "out.npz").code == 0
    spec = kernels.load("axpy")
    inputs = spec.inputs({"n": 50}, 0)
    with np.load(tmp_path / "out.npz") as saved:
        assert sorted(saved) == ["x", "y"]
        assert saved["x"].tobytes() == inputs[1].value.tobytes()
        assert np.allclose(saved["y"], spec.reference({"n": 50}, inputs)["y"], rtol=1e-6)
    assert list(tmp_path.glob(".*")) == []


REFUSED = [
    (["fa_v21", "--hed", "3"], "no option --hed; did you mean --heads?"),
    (["fa_v21", "--head_dim", "64"], "did you mean --head-dim?"),
    (["fa_v21", "--sed", "1"], "did you mean --seed?"),
    (["fa_v21", "--bc", "48"], "choose one of 32, 64, 128"),
    (["fa_v21", "--n"], "--n needs a value: sequence length"),
    (["fa_v21", "--n", "many"], "a whole number expected"),
    (["fa_v21", "extra"], "unexpected argument 'extra'"),
    (["fa_v12"], "no kernel 'fa_v12' in the collection; known: fa_v21"),
    (["x.npy"], "neither a kernel of the collection nor a file that ends in .cu"),
    (["axpy", "--grid", "8"], "--grid is for files; axpy brings its own"),
    (["axpy", "-D", "N=3"], "-D is for files"),
    (["axpy", "--arch", "sm_13"], "does not know the architecture 'sm_13'"),
    (["axpy", "--seed", "x"], "--seed"),
    (["axpy", "--workers", "0"], "--workers"),
    (["axpy", "--backend", "gpu"], "there are jit and reference"),
    (["axpy", "--save", "include"], "this is a directory; name a file in it, for example include/out.npz"),
    (["axpy", "--save", "absent/out.npz"], "there is no directory 'absent'"),
    (["axpy", "--save", "out.bin"], "name the file out.npz"),
    (["axpy", "--expect", "y=@two.npz:second"], "y: the array has shape [1000], what is expected has shape [2, 3]"),
    (["axpy", "--expect", "z=@x.npy"], "no array argument is called 'z'; there are: x, y"),
    (["axpy", "--expect", "y=x.npy"], "write NAME=@FILE.npy"),
    (["fa_v21", "--bc", "128", "--head-dim", "128", "--arch", "sm_120"], "sm_120 allows 101376 a CTA"),
]


@pytest.mark.parametrize(("words", "message"), REFUSED, ids=[" ".join(words) for words, _ in REFUSED])
def test_refused(fasim_command, words, message):
    done = fasim_command("run", *words)
    assert done.code == 2
    assert message in done.err and done.err.startswith("error: ")
    assert "Traceback" not in done.err and done.out == ""
    again = fasim_command("run", *words, "--json")
    assert (again.code, again.record["type"] in ("UsageError", "LaunchError")) == (2, True)
    assert message in again.record["message"]
