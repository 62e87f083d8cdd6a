"""The published mistakes in tests/cases: right answers and right errors, from CUDA source and from the PTX of nvcc."""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import fasim
from fasim.errors import ExecutionError, FasimError

CASES = Path(__file__).parent / "cases"
sys.path.insert(0, str(CASES))
import caselib  # noqa: E402  the cases import it by this name

NVCC = shutil.which("nvcc")
RUNS = [(name, run) for name in caselib.names() for run in caselib.load(name)["runs"]]
IDS = [f"{name}-{run['id']}" for name, run in RUNS]


@functools.cache
def module(name: str, compiler: str, folder: Path) -> fasim.Module:
    source, arch = CASES / f"{name}.cu", caselib.load(name).get("arch", "sm_90")
    if compiler == "nvrtc":
        return fasim.compile(source, arch=arch)
    ptx = folder / f"{name}.ptx"
    subprocess.run([NVCC, "-ptx", f"-arch={arch}", "-lineinfo", "-std=c++17", "-o", ptx, source], check=True)
    return fasim.compile(ptx, arch=arch)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("ptx")


def launch(name, run, compiler, folder, backend="jit", **options):
    kernel = module(name, compiler, folder).kernel(run["entry"])
    inputs = caselib.make_inputs(run)
    arguments = {key: value.copy() for key, value in inputs.items()}
    result = kernel.launch(
        run["grid"], run["block"], list(arguments.values()), dynamic_smem_bytes=run["dynamic_smem"], backend=backend, names=list(arguments),
        opt_in=run.get("opt_in", True), max_instructions=50_000_000, **options,
    )  # fmt: skip
    return inputs, arguments, result


def check_outputs(name, run, inputs, outputs):
    expect = run["expect"]["outputs"]
    wanted = caselib.module(name).expected(inputs, run["id"])
    for key in expect["names"]:
        got, want = outputs[key], np.asarray(wanted[key])
        mask = np.broadcast_to(wanted.get(f"{key}__mask", True), got.shape)
        rtol, atol = expect.get("rtol", 0.0), expect.get("atol", 0.0)
        if rtol == atol == 0:
            bits = f"u{got.dtype.itemsize}"
            same = (got.view(bits) == want.astype(got.dtype).reshape(got.shape).view(bits)) | (
                (got == want.reshape(got.shape)) & (got == 0)
            )
            nan = np.isnan(got) & np.isnan(want.reshape(got.shape)) if got.dtype.kind == "f" else False
            wrong = mask & ~(same | nan)
        else:
            wrong = mask & ~np.isclose(
                got.astype(np.float64), want.reshape(got.shape).astype(np.float64), rtol=rtol, atol=atol, equal_nan=True
            )
        assert not wrong.any(), f"{key}: {int(wrong.sum())} of {wrong.size} differ, first at {np.argwhere(wrong)[0]}"


def compilers():
    return ["nvrtc", *(["nvcc"] if NVCC else [])]


def undefined(run):
    """What a run reads without having written it is a finding, not an error."""
    return (run["expect"].get("error") or {}).get("kind") == "uninit_shared"


OUTPUTS = [(n, r) for n, r in RUNS if "outputs" in r["expect"]]
ERRORS = [(n, r) for n, r in RUNS if "error" in r["expect"] and not undefined(r)]
UNDEFINED = [(n, r) for n, r in RUNS if undefined(r)]
RACES = [(n, r) for n, r in RUNS if r["expect"].get("hazards")]
# with whatever else may be wrong with them, nothing may be reported on these
CLEAN = [(n, r) for n, r in RUNS if not (r["expect"].get("hazards") or r["expect"].get("error") or r["id"] == "epilogue_fragments")]
CONFLICTS = [(n, r) for n, r in RUNS if "bank_conflicts" in r["expect"]]


@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("name, run", OUTPUTS, ids=[f"{n}-{r['id']}" for n, r in OUTPUTS])
def test_outputs(name, run, compiler, folder):
    check_outputs(name, run, *launch(name, run, compiler, folder)[:2])


@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("name, run", ERRORS, ids=[f"{n}-{r['id']}" for n, r in ERRORS])
def test_errors(name, run, compiler, folder):
    wanted = run["expect"]["error"]
    if wanted is None:
        launch(name, run, compiler, folder)
        return
    with pytest.raises(FasimError) as caught:
        launch(name, run, compiler, folder)
    error = caught.value
    assert isinstance(error, ExecutionError)
    details = error.details
    assert (details["kind"], error.where.line, details["lanes"]) == (wanted["kind"], wanted["line"], wanted["lanes"])
    assert "`" in str(error) and f"{name}.cu:{wanted['line']}" in str(error)
    first = wanted.get("first", {})
    if "thread" in first:
        assert list(error.where.threads[0]) == first["thread"]
    if "block" in first:
        assert list(error.where.ctaid) == first["block"]
    if "lane" in first:
        assert error.where.lanes[0] == first["lane"]
        assert details["addresses"][0] % 16 == first["address_mod_16"]
    if "byte_offset" in first:
        assert details["byte_offset"] == first["byte_offset"]
    for ours, theirs in (
        ("access", "access"),
        ("space", "space"),
        ("allocated", "allocated"),
        ("nearest", "buffer"),
        ("allocated", "buffer_bytes"),
    ):
        if theirs in wanted:
            assert details[ours] == wanted[theirs]
    if "last" in wanted:
        assert list(error.where.threads[-1]) == wanted["last"]["thread"]
        assert details["byte_offsets"][-1] == wanted["last"]["byte_offset"]


def ids(runs):
    return [f"{n}-{r['id']}" for n, r in runs]


MACHINES = ["jit", "reference"]


@pytest.mark.parametrize("backend", MACHINES)
@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("name, run", RACES, ids=ids(RACES))
def test_races(name, run, compiler, folder, backend):
    _, _, result = launch(name, run, compiler, folder, backend, check="all")
    found = [(h.kind, h.space, h.scope, h.first_line, h.second_line, h.words) for h in result.hazards]
    wanted = [(h["kind"], h["space"], h["scope"], h["first"]["line"], h["second"]["line"], h["words"]) for h in run["expect"]["hazards"]]
    assert sorted(found) == sorted(wanted)
    for hazard, expected in zip(result.hazards, run["expect"]["hazards"]):
        assert hazard.severity == expected.get("severity", "error")


@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("name, run", CLEAN, ids=ids(CLEAN))
def test_clean(name, run, compiler, folder):
    _, _, result = launch(name, run, compiler, folder, check="all")
    assert [h.text for h in result.hazards] == []


@pytest.mark.parametrize("compiler", compilers())
def test_stores_in_one_warp_without_syncwarp(compiler, folder):
    """The case has no expectation of hazards; two of its stores to the same words have no __syncwarp between them."""
    run = next(r for n, r in RUNS if r["id"] == "epilogue_fragments")
    _, _, result = launch("bc_epilogue_fragments", run, compiler, folder, check="all")
    assert [(h.kind, h.scope, h.severity, h.first_line, h.second_line, h.words) for h in result.hazards] == [
        ("WAW", "intra-warp", "warning", 36, 37, 28)
    ]


@pytest.mark.parametrize("backend", MACHINES)
@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("name, run", UNDEFINED, ids=ids(UNDEFINED))
def test_undefined(name, run, compiler, folder, backend):
    _, _, result = launch(name, run, compiler, folder, backend, check="all")
    wanted = run["expect"]["error"]
    [hazard] = result.hazards
    assert (hazard.kind, hazard.first_line) == (wanted["kind"], wanted["line"])
    assert hazard.lanes == wanted.get("lanes", hazard.lanes) and hazard.words == wanted.get("words", hazard.words)


@pytest.mark.parametrize("backend", MACHINES)
@pytest.mark.parametrize("compiler", compilers())
@pytest.mark.parametrize("name, run", CONFLICTS, ids=ids(CONFLICTS))
def test_bank_conflicts(name, run, compiler, folder, backend):
    _, _, result = launch(name, run, compiler, folder, backend)
    for op in run["expect"]["bank_conflicts"]["ops"]:
        kind = "cp.async" if op["ptx"].startswith("cp.async") else op["ptx"].split(".")[0]
        accesses = [a for a in result.shared_accesses if (a.line, a.kind) == (op["line"], kind)]
        executions, wavefronts, ideal = (sum(getattr(a, f) for a in accesses) for f in ("executions", "source_wavefronts", "source_ideal"))
        assert executions == op["execs"]
        assert (wavefronts, ideal) == (op["wavefronts_each"] * executions, op["ideal_each"] * executions)
        assert wavefronts - ideal == op["excess_total"]
