"""The kernels of this repository, simulated: the bits that an H200 gave, and within the tolerance of the float64 reference."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim.kernels import load
from tests.kernels.recordings import RECORDINGS, case_id, digest, load_recording

#: larger runs belong to bench/: the bits are the same code paths
LARGEST = 2 * 1024**2 * 8


def work(options):
    return options.get("batch", 1) * options.get("heads", 1) * options.get("n", 1) ** (2 if "head_dim" in options else 1)


RECORDS = [record for name in RECORDINGS for record in load_recording(name)["records"] if work(record["options"]) <= LARGEST]


def launch(spec, options, seed, **keywords):
    kernel = fasim.compile(spec.path, defines=spec.defines(options), arch="sm_90").kernel(spec.entry)
    shape, arguments = spec.launch(options), spec.inputs(options, seed)
    values = [argument.value for argument in arguments]
    kernel.launch(shape.grid, shape.block, values, dynamic_smem_bytes=shape.dynamic_smem_bytes, **keywords)
    return {argument.name: argument.value for argument in arguments if argument.direction != "in"}


@pytest.mark.parametrize("record", RECORDS, ids=case_id)
def test_bits_equal_the_recording(record):
    spec = load(record["kernel"])
    for layout in record.get("layouts", [None]):
        options = {**record["options"], **({"layout": layout} if layout else {})}
        outputs = launch(spec, options, record["seed"])
        assert {name: digest(array) for name, array in outputs.items()} == record["outputs_sha256"], f"layout {layout}"
    rtol, atol = spec.tolerance(options)
    for name, expected in spec.reference(options, spec.inputs(options, record["seed"])).items():
        assert (np.abs(outputs[name].astype(np.float64) - expected) <= atol + rtol * np.abs(expected)).all()


SMALL = [
    ("fa_v21", {"n": 5, "heads": 1, "bc": 32}),
    ("fa_v21", {"n": 33, "heads": 1, "bc": 32, "causal": True, "layout": "swizzled"}),
    ("gemm_mma", {"m": 64, "n": 64, "k": 32}),
    ("reduce", {"n": 300}),
    ("histogram", {"n": 300}),
    ("softmax_rows", {}),
]


@pytest.mark.parametrize("name, options", SMALL, ids=[f"{n}-{i}" for i, (n, _) in enumerate(SMALL)])
def test_both_machines_agree(name, options):
    spec = load(name)
    known = {option.name for option in spec.options}
    options = spec.resolve({key: value for key, value in options.items() if key in known})
    results = [launch(spec, options, 3, backend=backend) for backend in ("jit", "reference")]
    for key, value in results[0].items():
        assert value.tobytes() == results[1][key].tobytes()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_results_do_not_depend_on_the_number_of_workers(workers):
    spec = load("fa_v21")
    options = spec.resolve({"n": 300, "heads": 3, "batch": 1})
    assert digest(launch(spec, options, 0, workers=workers)["o"]) == digest(launch(spec, options, 0, workers=1)["o"])
