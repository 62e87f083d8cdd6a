"""The descriptions of the kernels: registry, options, launches and sources."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest

from fasim import kernels
from fasim.errors import UsageError

NAMES = [
    "axpy",
    "transpose",
    "reduce",
    "softmax_rows",
    "gemm_tiled",
    "gemm_mma",
    "histogram",
    "attention_naive",
    "fa_v20",
    "fa_v21",
]

STEPS = [
    "LOAD_Q",
    "Q_FRAGMENTS",
    "STATE",
    "PROLOGUE",
    "PREFETCH",
    "K_FRAGMENTS",
    "S_QK",
    "MASK",
    "SCALE",
    "ROW_MAX",
    "RESCALE_FACTOR",
    "P_EXP2",
    "ROW_SUM",
    "PACK_P",
    "RESCALE_O",
    "V_FRAGMENTS",
    "O_PV",
    "NEXT_TILE",
    "EPILOGUE",
]


def test_names_in_file_order():
    assert kernels.names() == NAMES


def test_every_source_has_a_description():
    folder = kernels.load("axpy").path.parent
    assert sorted(path.name for path in folder.glob("*.cu")) == [kernels.load(name).source for name in NAMES]


@pytest.mark.parametrize("name", NAMES)
def test_spec_agrees_with_source(name):
    spec = kernels.load(name)
    text = spec.path.read_text()
    assert spec.name == name
    assert spec.source[3:] == f"{name}.cu"
    assert re.findall(r'extern "C" __global__ void (?:__launch_bounds__\([^)]*\)\s*|__launch_bounds__\(.*\)\s*)?(\w+)\(', text) == [
        spec.entry
    ]
    signature = text[text.index(f"{spec.entry}(", text.index("__global__")) :]
    parameters = signature[signature.index("(") + 1 : signature.index(") {")].split(",")
    assert [re.findall(r"\w+", parameter)[-1] for parameter in parameters] == [argument.name for argument in spec.inputs()]
    for macro in spec.defines():
        assert re.search(rf"^#ifndef {macro}\b", text, re.M), f"{macro} has no default in the source"


@pytest.mark.parametrize("name", NAMES)
def test_source_is_a_tutorial(name):
    spec = kernels.load(name)
    text = spec.path.read_text()
    assert text.startswith(f"// {spec.source}: ")
    assert f"{spec.source}\n//   fasim run {name} --" in text
    assert "// What it teaches: " in text
    assert set(re.findall(r"#include (\S+)", text)) <= {"<cuda_fp16.h>"}
    assert len(text.splitlines()) <= 400
    command = re.search(rf"fasim run {name} (.*)", text)
    assert command is not None
    given = {option.split()[0].replace("-", "_"): [*option.split(), "true"][1] for option in command[1].split("--")[1:]}
    spec.resolve({option: spec.option(option).parse(value) for option, value in given.items()})


def test_flash_steps_are_marked_in_order():
    assert re.findall(r"^ +//@ (\w+)$", kernels.load("fa_v21").path.read_text(), re.M) == STEPS


@pytest.mark.parametrize("name", NAMES)
def test_inputs_depend_on_the_seed_alone(name):
    spec = kernels.load(name)
    first, again, other = spec.inputs({}, 7), spec.inputs({}, 7), spec.inputs({}, 8)
    for a, b in zip(first, again):
        assert (a.name, a.direction) == (b.name, b.direction)
        assert np.asarray(a.value).tobytes() == np.asarray(b.value).tobytes()
    drawn = [(a.value, b.value) for a, b in zip(first, other) if a.direction == "in" and isinstance(a.value, np.ndarray)]
    assert drawn
    assert all(a.tobytes() != b.tobytes() for a, b in drawn)
    assert any(a.direction != "in" for a in first)


@pytest.mark.parametrize("name", NAMES)
def test_reference_covers_every_output(name):
    spec = kernels.load(name)
    inputs = spec.inputs()
    reference = spec.reference({}, inputs)
    assert list(reference) == [a.name for a in inputs if a.direction != "in"]
    for argument in inputs:
        if argument.direction != "in":
            assert reference[argument.name].shape == argument.value.shape
            assert reference[argument.name].dtype == np.float64
            assert np.isfinite(reference[argument.name]).all()


FLASH_LAUNCHES = [
    ({"bc": 32, "layout": "padded"}, 36864),
    ({"bc": 64, "layout": "padded"}, 55296),
    ({"bc": 128, "layout": "padded"}, 92160),
    ({"bc": 32, "layout": "linear"}, 32768),
    ({"bc": 32, "layout": "swizzled"}, 32768),
    ({"bc": 128, "layout": "padded", "head_dim": 128}, 174080),
]


@pytest.mark.parametrize(("options", "smem_bytes"), FLASH_LAUNCHES)
def test_flash_shared_memory(options, smem_bytes):
    assert kernels.load("fa_v21").launch(options).dynamic_smem_bytes == smem_bytes


@pytest.mark.parametrize(("n", "ctas"), [(1, 1), (128, 1), (129, 2), (1000, 8)])
def test_flash_grid(n, ctas):
    launch = kernels.load("fa_v21").launch({"n": n, "batch": 4, "heads": 8})
    assert (launch.grid, launch.block) == ((ctas, 32, 1), (128, 1, 1))


def test_flash_fits_every_combination_on_hopper():
    spec = kernels.load("fa_v21")
    for bc, d, layout in itertools.product((32, 64, 128), (64, 128), ("linear", "padded", "swizzled")):
        assert spec.launch({"bc": bc, "head_dim": d, "layout": layout}).dynamic_smem_bytes <= 227 * 1024


def test_flash_defaults_of_source_and_description_agree():
    spec = kernels.load("fa_v21")
    text = spec.path.read_text()
    for d in (64, 128):
        assert f"#define SCALE_LOG2 {spec.defines({'head_dim': d})['SCALE_LOG2']}" in text
    for macro in ("BC", "D", "LAYOUT", "CAUSAL"):
        assert re.search(rf"#define {macro} {spec.defines()[macro]}\b", text)


@pytest.mark.parametrize(("causal", "flops"), [(False, 4 * 64 * 2 * 9), (True, 4 * 64 * 2 * 6)])
def test_flash_flops_count_visible_pairs(causal, flops):
    assert kernels.load("fa_v21").flops({"n": 3, "heads": 2, "causal": causal}) == flops


WRONG = [
    ("fa_v21", {"bc": 48}, "choose one of 32, 64, 128"),
    ("fa_v21", {"n": 0}, "at least 1"),
    ("fa_v21", {"n": "64"}, "int expected"),
    ("fa_v21", {"n": True}, "int expected"),
    ("fa_v21", {"causal": 1}, "bool expected"),
    ("fa_v21", {"layout": "swizled"}, "linear, padded, swizzled"),
    ("fa_v21", {"head_dims": 64}, "known: head_dim"),
    ("gemm_mma", {"k": 20}, "multiple of 8"),
    ("histogram", {"spread": 257}, "at most 256"),
]


@pytest.mark.parametrize(("name", "options", "message"), WRONG)
def test_wrong_options_are_refused(name, options, message):
    with pytest.raises(UsageError, match=message):
        kernels.load(name).launch(options)


def test_unknown_kernel_names_the_nearest():
    with pytest.raises(UsageError, match="fa_v21"):
        kernels.load("fa_v2.1")


@pytest.mark.parametrize(
    ("option", "text", "value"), [("n", "12", 12), ("causal", "true", True), ("causal", "0", False), ("layout", "linear", "linear")]
)
def test_parse(option, text, value):
    assert kernels.load("fa_v21").option(option).parse(text) == value


@pytest.mark.parametrize(("option", "text"), [("n", "1.5"), ("causal", "maybe"), ("layout", "tiled"), ("bc", "33")])
def test_parse_refuses(option, text):
    with pytest.raises(UsageError, match=option):
        kernels.load("fa_v21").option(option).parse(text)
