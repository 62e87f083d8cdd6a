"""What an H200 did, in recordings/, against the simulation: every output bit, every count, and the differences that are accounted for."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path

import pytest

from fasim.cli.compare import compare_recording, is_large
from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions
from fasim.gpu.recording import RECORDING_SCHEMA
from fasim.gpu.recording_file import CUBINS, find_recordings, load
from fasim.kernels import attention
from fasim.report.match import EQUAL, KNOWN, MISMATCH
from fasim.report.match_totals import NOISE, TURNS

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "recordings"
CALL = Call([], RunOptions(), [], 0.0)
sys.path.insert(0, str(ROOT / "tests" / "cases"))
import caselib  # noqa: E402  the cases import it by this name

ALL = find_recordings([FOLDER])
QUICK = [path for path in ALL if not is_large(load(path, counters=False))]
#: what ptxas contracts so that a bit of an output depends on it
CONTRACTED = {"fft64_sincos", "gauss_jordan_f64"}
#: atomics that are repeated until they succeed
TAKES_TURNS = {"lane_spin_lock", "shared_atomics", "atomics_shared_all", "atomic_float_max_cas"}
SAFE_CASES = [run["id"] for name in caselib.names() for run in caselib.load(name)["runs"] if run["gpu"] == "safe"]


def names(paths):
    return [path.relative_to(FOLDER).as_posix().removesuffix(".zip") for path in paths]


def facts(path):
    with zipfile.ZipFile(path) as archive:
        return json.loads(archive.read("run.json"))


@pytest.mark.parametrize("path", QUICK, ids=names(QUICK))
def test_simulation_gives_what_the_gpu_gave(path):
    recording = load(path)
    compared = compare_recording(recording, CALL, path)
    contracted = {output.name for output in compared.outputs if output.contracted}
    assert recording.outputs and [output.name for output in compared.outputs if not output.equal and output.name not in contracted] == []
    # only kernels of which ptxas makes something else than PTX says, as it may
    assert bool(contracted) == bool(compared.contractions) == (path.stem in CONTRACTED)
    wrong = [(row.line, row.simulated_op, row.simulated, row.measured, row.why) for row in compared.accesses if row.verdict == MISMATCH]
    assert wrong == []
    assert [(total.name, total.simulated, total.measured, total.why) for total in compared.totals if total.verdict == MISMATCH] == []
    assert compared.exit_code == 0
    if recording.profile is None:
        return
    totals = {total.name: total for total in compared.totals}
    for row in compared.accesses:
        # a line that is not equal is one whose access is another in the machine code, or whose condition ncu does not read
        assert row.verdict == EQUAL or row.verdict in KNOWN
    for name in ("memory_l1_wavefronts_shared", "memory_l1_wavefronts_shared_ideal"):
        # the lines account for all of the difference
        changed = sum(
            getattr(row.measured, field) - getattr(row.simulated, field)
            for row in compared.accesses
            for field in (["ideal"] if name.endswith("ideal") else ["wavefronts"])
        )
        assert totals[name].simulated + changed == totals[name].measured
    spilled = any(x.executions and x.opcode.startswith(("LDL", "STL")) for x in recording.profile.instructions)
    if not compared.ctas_share_sm and not spilled:
        for total in (total for total in compared.totals if total.verdict == NOISE):
            assert 0 < total.rest <= max(4, 0.02 * totals[total.name.replace("bank_conflicts_pipe_lsu", "pipe_lsu_wavefronts")].measured)
    if TURNS in compared.comparisons:
        assert path.stem in TAKES_TURNS


def test_recordings_fit_into_the_repository():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*") if path.is_file()) < 20_000_000


@pytest.mark.parametrize("path", ALL, ids=names(ALL))
def test_recordings_describe_themselves(path):
    found = facts(path)
    assert found["schema"] == RECORDING_SCHEMA and found["name"] == path.stem
    for name in (
        "kernel",
        "entry",
        "source",
        "arch",
        "compiler",
        "date",
        "cubin_sha256",
        "ptx_sha256",
        "outputs",
        "arguments",
        "grid",
        "block",
    ):
        assert found[name], name
    assert found["card"]["name"] and found["card"]["driver"] and found["tools"]["pycuda"]
    assert found["profile"] or found["timings"]
    for timing in found["timings"].values():
        assert 0 < timing["least_us"] <= timing["low_us"] <= timing["median_us"] <= timing["high_us"] <= timing["most_us"]
        assert timing["repetitions"] >= 20 and timing["sm_clock_mhz"] > 300
    assert (path.parent / CUBINS / f"{found['cubin_sha256']}.zip").is_file()
    # the sources are called by their names alone
    assert found["module"]["source_path"].startswith(("/kernels/", "/tests/cases/", "/k", "/wmma"))


def test_v21_is_recorded_in_every_configuration():
    found = {tuple(facts(path)["options"].values()) for path in ALL if path.parent.name == "fa_v21" and facts(path)["profile"]}
    spec_order = ("n", "batch", "heads", "head_dim", "bc", "layout", "causal")
    for n in (1, 128, 200, 1024):
        for head_dim in (64, 128):
            for bc in (32, 64, 128):
                for layout in attention.LAYOUTS:
                    for causal in (False, True):
                        options = {"n": n, "batch": 1, "heads": 1, "head_dim": head_dim, "bc": bc, "layout": layout, "causal": causal}
                        assert tuple(options[name] for name in spec_order) in found, options


def test_times_of_the_published_sizes_are_recorded():
    found = [facts(path)["options"] for path in ALL if path.parent.name == "fa_v21" and facts(path)["timings"]]
    for n in (1024, 2048, 4096, 8192):
        for bc in (32, 64, 128):
            for layout in attention.LAYOUTS:
                for causal in (False, True):
                    for head_dim in (64, 128):
                        options = {"n": n, "batch": 4, "heads": 8, "head_dim": head_dim, "bc": bc, "layout": layout, "causal": causal}
                        assert options in found


def test_all_cases_that_a_gpu_may_run_are_recorded():
    recorded = {path.stem for path in ALL if path.parent.name == "cases"}
    assert recorded == set(SAFE_CASES)


@pytest.mark.parametrize(
    "kernel", ["gemm_tiled", "gemm_mma", "transpose", "softmax_rows", "histogram", "reduce", "axpy", "fa_v20", "attention_naive"]
)
def test_other_kernels_are_recorded(kernel):
    assert any(facts(path)["profile"] and facts(path)["timings"] for path in ALL if path.parent.name == kernel)
