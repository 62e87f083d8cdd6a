"""The float64 references, against plain loops and against what an H200 computed."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fasim import kernels
from tests.kernels.recordings import DATA, RECORDINGS, case_id, digest, load_recording, source_digest


def attention_by_rows(q, k, v, causal):
    """Attention of one head, one query at a time, with exactly rounded sums."""
    result = np.empty(q.shape)
    for i, row in enumerate(q):
        keys = range(i + 1 if causal else len(k))
        s = [math.fsum(float(a) * float(b) for a, b in zip(row, k[j])) / math.sqrt(len(row)) for j in keys]
        e = [math.exp(x - max(s)) for x in s]
        total = math.fsum(e)
        result[i] = [math.fsum(p * float(v[j, d]) for p, j in zip(e, keys)) / total for d in range(v.shape[1])]
    return result


@pytest.mark.parametrize("name", ["attention_naive", "fa_v20", "fa_v21"])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_against_loops(name, causal):
    spec, options = kernels.load(name), {"n": 37, "heads": 2, "causal": causal}
    inputs = spec.inputs(options, 3)
    q, k, v = (argument.value for argument in inputs[:3])
    want = np.stack([attention_by_rows(q[head], k[head], v[head], causal) for head in range(2)])
    assert np.abs(spec.reference(options, inputs)["o"] - want).max() < 1e-13


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("n", [255, 256, 257, 600])
def test_blocks_of_query_rows_make_no_difference(n, causal):
    flash, naive = kernels.load("fa_v21"), kernels.load("attention_naive")
    options = {"n": n, "causal": causal}
    by_blocks = flash.reference(options, flash.inputs(options))["o"]
    whole = naive.reference(options, naive.inputs(options))["o"]
    assert np.abs(by_blocks - whole).max() < 1e-13


def test_small_references_by_hand():
    def reference(name, options, **values):
        spec = kernels.load(name)
        inputs = [a._replace(value=values[a.name]) if a.name in values else a for a in spec.inputs(options)]
        return next(iter(spec.reference(options, inputs).values())).tolist()

    f32 = np.float32
    assert reference("axpy", {"n": 2}, a=f32(2), x=f32([1, 2]), y=f32([10, 20])) == [12, 24]
    assert reference("transpose", {"rows": 2, "columns": 3}, input=f32([[1, 2, 3], [4, 5, 6]])) == [[1, 4], [2, 5], [3, 6]]
    assert reference("reduce", {"n": 1025}, x=np.ones(1025, f32)) == [1024, 1]
    assert reference("softmax_rows", {"rows": 1, "columns": 2}, x=f32([[5, 5]])) == [[0.5, 0.5]]
    assert reference("gemm_tiled", {"m": 1, "n": 1, "k": 2}, a=f32([[1, 2]]), b=f32([[3], [4]])) == [[11]]
    assert reference("gemm_mma", {"m": 1, "n": 8, "k": 8}, a=np.ones((1, 8), np.float16), b=np.eye(8, dtype=np.float16)) == [[1] * 8]
    assert reference("histogram", {"n": 3}, x=np.uint8([7, 255, 7])) == [2 * (i == 7) + (i == 255) for i in range(256)]


@pytest.mark.parametrize("causal", [False, True])
def test_reference_agrees_with_the_gpu(causal):
    """Recorded output bits of an H200 lie within the tolerance, and a missing factor in the scale would not."""
    spec, options = kernels.load("fa_v21"), {"n": 129, "causal": causal}
    with np.load(DATA / "h200_fa_v21_bits.npz") as bits:
        actual = bits["causal" if causal else "dense"].view(np.float16)
    inputs = spec.inputs(options, 0)
    want = spec.reference(options, inputs)["o"]
    rtol, atol = spec.tolerance(options)
    assert (np.abs(actual.astype(np.float64) - want) <= atol + rtol * np.abs(want)).all()
    doubled = [a._replace(value=a.value * np.float16(2)) if a.name == "q" else a for a in inputs]
    wrong = spec.reference(options, doubled)["o"]
    assert (np.abs(actual.astype(np.float64) - wrong) > atol + rtol * np.abs(wrong)).any()
    recorded = [r for r in load_recording("h200_fa_v21")["records"] if r["options"] == dict(r["options"], bc=32, head_dim=64, **options)]
    assert [r["outputs_sha256"]["o"] for r in recorded] == [digest(actual)]


def small(record):
    return math.prod(value for name, value in record["options"].items() if name in ("n", "batch", "heads")) <= 1 << 15


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_inputs_are_reproduced(name):
    """Inputs drawn here are, bit for bit, those that the GPU got."""
    records = [record for record in load_recording(name)["records"] if small(record)]
    assert len(records) > 50
    for record in records:
        inputs = {a.name: a.value for a in kernels.load(record["kernel"]).inputs(record["options"], record["seed"])}
        for argument, sha256 in record["inputs_sha256"].items():
            assert digest(inputs[argument]) == sha256, (case_id(record), argument)


@pytest.mark.parametrize("name", RECORDINGS)
def test_recordings_are_of_these_sources(name):
    recording = load_recording(name)
    assert {record["kernel"] for record in recording["records"]} == set(recording["source_sha256"])
    for kernel, sha256 in recording["source_sha256"].items():
        assert source_digest(kernels.load(kernel).path) == sha256, f"{kernel} changed: record again with tests/kernels/record_gpu.py"


def test_all_kernels_are_recorded():
    assert {kernel for name in RECORDINGS for kernel in load_recording(name)["source_sha256"]} == set(kernels.names())


@pytest.mark.parametrize("name", RECORDINGS)
def test_recorded_outputs_were_right(name):
    assert max(record["error_over_tolerance"] for record in load_recording(name)["records"]) <= 1


def test_recording_covers_every_flash_variant():
    records = load_recording("h200_fa_v21")["records"]
    seen = {
        (*(record["options"][name] for name in ("bc", "head_dim", "causal", "n")), layout)
        for record in records
        for layout in record["layouts"]
        if record["options"]["heads"] == 2
    }
    layouts, lengths = ("linear", "padded", "swizzled"), (1, 64, 127, 128, 129, 200, 1000)
    assert seen == set(itertools.product((32, 64, 128), (64, 128), (False, True), lengths, layouts))
