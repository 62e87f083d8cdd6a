"""Floating-point mma against recordings of an H200 and, for every architecture, against a model in plain integers.

Data: data/mma.npz, recorded on an H200 (sm_90), driver 580: arrays `{instruction}_{kind}_{a,b,c,d}`, uint32 [tile, lane, register].
"""

from pathlib import Path

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.errors import NotModelled
from fasim.numerics.fragments import fragment_elements, matrix_size
from fasim.numerics.mma import STEPS, steps_of
from tests.harness import BACKENDS, run_row
from tests.matrices import from_registers, to_registers

PREFIX = "mma.sync.aligned."
RECORDED = {
    "f32_f16": "m16n8k16.row.col.f32.f16.f16.f32",
    "f16_f16": "m16n8k16.row.col.f16.f16.f16.f16",
    "f32_bf16": "m16n8k16.row.col.f32.bf16.bf16.f32",
    "f32_tf32": "m16n8k8.row.col.f32.tf32.tf32.f32",
}
KINDS = ("normal", "wide", "tiny", "bits")
REFERENCE_EVERY = 24  # tiles; all of them take ten seconds and agree


@pytest.fixture(scope="module")
def recordings():
    with np.load(Path(__file__).parent / "data" / "mma.npz") as file:
        return {name: file[name] for name in file}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("instruction", RECORDED)
def test_recordings(recordings, instruction, kind, backend):
    a, b, c, d = (recordings[f"mma_{instruction}_{kind}_{x}"] for x in "abcd")
    wrong = 0
    for tile in range(0, len(d), REFERENCE_EVERY if backend == "reference" else 1):
        sources = [*a[tile].T, *b[tile].T, *c[tile].T]
        got = run_row(PREFIX + RECORDED[instruction], sources, immediates=(90,), backend=backend)
        wrong += int((d[tile] != np.array(got).T).sum())
    assert wrong == 0


# --- the rule itself, in plain integers ----------------------------------------------------------------------------------------
FORMATS = {"f16": (5, 10), "bf16": (8, 7), "tf32": (8, 10), "f32": (8, 23)}
LENGTH = {"f16": (8, 16), "bf16": (8, 16), "tf32": (4, 8)}
INF, NAN = float("inf"), float("nan")


def parts(pattern, type_):
    """(significand, exponent of its lowest bit, exponent of the value) of a finite pattern, or inf or nan."""
    exponent_bits, fraction_bits = FORMATS[type_]
    if type_ == "tf32":
        pattern >>= 13
    sign = -1 if pattern >> (exponent_bits + fraction_bits) & 1 else 1
    field, fraction = pattern >> fraction_bits & ((1 << exponent_bits) - 1), pattern & ((1 << fraction_bits) - 1)
    if field == (1 << exponent_bits) - 1:
        return NAN if fraction else sign * INF
    exponent = max(field, 1) - ((1 << (exponent_bits - 1)) - 1)
    return sign * (fraction | (bool(field) << fraction_bits)), exponent - fraction_bits, exponent


def step(pairs, c, accumulator, type_, hopper):
    """One step on bit patterns; the rule as it is written down, for one element."""
    fraction_bits, floor = 24 + hopper, {"f16": -20, "f32": -132}[accumulator] - hopper
    values = [(parts(x, type_), parts(y, type_)) for x, y in pairs]
    of_c = parts(c, accumulator)
    if any(not isinstance(x, tuple) for pair in values for x in pair) or not isinstance(of_c, tuple):
        as_float = lambda x: x if not isinstance(x, tuple) else float((x[0] > 0) - (x[0] < 0))  # noqa: E731
        total = sum(as_float(x) * as_float(y) for x, y in values) + (of_c if not isinstance(of_c, tuple) else 0.0)
        if total != total:
            return 0x7FFFFFFF if accumulator == "f32" else 0x7FFF
        if abs(total) == INF:
            return (0x7F800000 if accumulator == "f32" else 0x7C00) | (total < 0) << (31 if accumulator == "f32" else 15)
        raise AssertionError("an infinity got lost")
    terms = [(x[0] * y[0], x[1] + y[1], x[2] + y[2]) for x, y in values] + [of_c]
    e_max = max([floor] + [e for n, _, e in terms if n])
    quantum = e_max - fraction_bits
    total = 0
    for n, unit, _ in terms:
        shift = unit - quantum
        magnitude = abs(n) << shift if shift >= 0 else abs(n) >> -shift
        total += magnitude if n > 0 else -magnitude
    return to_format(total, quantum, accumulator)


def to_format(total, unit, accumulator):
    """total * 2^unit, cut to f32 or rounded to f16."""
    exponent_bits, fraction_bits = FORMATS[accumulator]
    bias = (1 << (exponent_bits - 1)) - 1
    magnitude = abs(total)
    exponent = max(magnitude.bit_length() - 1 + unit, 1 - bias)
    shift = exponent - fraction_bits - unit
    kept = magnitude >> shift if shift > 0 else magnitude << -shift
    if accumulator == "f16" and shift > 0:
        rest, half = magnitude & ((1 << shift) - 1), 1 << (shift - 1)
        kept += rest > half or (rest == half and kept & 1)
    pattern = kept + ((exponent + bias - 1) << fraction_bits) if kept else 0
    pattern = min(pattern, ((1 << exponent_bits) - 1) << fraction_bits)
    return pattern | (total < 0 and pattern != 0) << (exponent_bits + fraction_bits)


def model(a, b, c, accumulator, type_, arch):
    """D of matrices of bit patterns."""
    hopper = arch >= 90
    length = LENGTH[type_][hopper]
    d = c.copy()
    for row in range(c.shape[0]):
        for column in range(c.shape[1]):
            value = int(c[row, column])
            for start in range(0, a.shape[1], length):
                pairs = [(int(a[row, k]), int(b[k, column])) for k in range(start, min(start + length, a.shape[1]))]
                value = step(pairs, value, accumulator, type_, hopper)
            d[row, column] = value
    return d


def patterns(rng, shape, type_, kind):
    """Random bit patterns: `bits` anything, `close` exponents near one another, `sparse` with zeros, subnormals and few infinities."""
    exponent_bits, fraction_bits = FORMATS[type_]
    width = 16 if type_ in ("f16", "bf16") else 32
    spare = 13 if type_ == "tf32" else 0
    fraction = rng.integers(0, 1 << fraction_bits, shape)
    sign = rng.integers(0, 2, shape)
    bias = (1 << (exponent_bits - 1)) - 1
    if kind == "bits":
        return rng.integers(0, 1 << width, shape).astype(np.uint64)
    if kind == "close":
        field = rng.integers(bias - 6, bias + 4, shape)
    else:
        field = rng.choice([0, 0, 0, 1, 2, bias, 2 * bias], shape)
        fraction = fraction * rng.integers(0, 2, shape)
        field = np.where(rng.integers(0, 400, shape) == 0, 2 * bias + 1, field)
    return (((sign << exponent_bits | field) << fraction_bits | fraction) << spare).astype(np.uint64)


ROWS = [
    ("m16n8k16", "f16", "f32"),
    ("m16n8k16", "f16", "f16"),
    ("m16n8k8", "f16", "f32"),
    ("m16n8k8", "f16", "f16"),
    ("m16n8k16", "bf16", "f32"),
    ("m16n8k8", "bf16", "f32"),
    ("m16n8k8", "tf32", "f32"),
    ("m16n8k4", "tf32", "f32"),
]


def multiply(shape, type_, accumulator, arch, a, b, c, backend="jit"):
    """D as a matrix of bit patterns, from matrices of bit patterns."""
    of_a, of_b, of_d = (fragment_elements(shape, x, type_) for x in "abd")
    width, of_c = 32 if type_ == "tf32" else 16, int(accumulator[1:])
    sources = to_registers(a, of_a, width) + to_registers(b, of_b, width) + to_registers(c, of_d, of_c)
    name = f"{PREFIX}{shape}.row.col.{accumulator}.{type_}.{type_}.{accumulator}"
    return from_registers(run_row(name, sources, immediates=(arch,), backend=backend), of_d, of_c, matrix_size(shape, "d"))


@pytest.mark.parametrize("kind", ["bits", "close", "sparse"])
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("shape, type_, accumulator", ROWS)
def test_plain_model(shape, type_, accumulator, arch, kind):
    rng = np.random.default_rng(arch)
    for tile in range(3):
        a, b = (patterns(rng, matrix_size(shape, x), type_, kind) for x in "ab")
        c = patterns(rng, matrix_size(shape, "c"), accumulator, kind)
        if tile == 2:  # products of one sign make the largest sums
            a, b = (x & np.uint64(0x7FFF if x.max() < 1 << 16 else 0x7FFFFFFF) for x in (a, b))
        assert (multiply(shape, type_, accumulator, arch, a, b, c) == model(a, b, c, accumulator, type_, arch)).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("sign", [0, 1])
def test_largest_sum_leaves_32_bits(arch, sign, backend):
    """All factors of the largest significand, and an accumulator as large as a product: the sum needs more than 31 bits."""
    a = np.full((16, 16), 0x3FFF | sign << 15, np.uint64)
    b = np.full((16, 8), 0x3FFF, np.uint64)
    c = np.full((16, 8), 0x3FFFFFFF | sign << 31, np.uint64)
    got = multiply("m16n8k16", "f16", "f32", arch, a, b, c, backend)
    assert (got == model(a, b, c, "f32", "f16", arch)).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_architectures_differ(backend):
    """1 + 4 * 2^-25: sm_90 keeps terms of 2^-25 below an exponent of 0, sm_80 cuts them off."""
    a, b = np.zeros((16, 16), np.uint64), np.zeros((16, 8), np.uint64)
    a[:, 0], b[0, :] = 0x3C00, 0x3C00
    a[:, 1:5], b[1:5, :] = 0x0C00, 0x0800  # 2^-12, 2^-13
    c = np.zeros((16, 8), np.uint64)
    assert (multiply("m16n8k16", "f16", "f32", 80, a, b, c, backend) == 0x3F800000).all()
    assert (multiply("m16n8k16", "f16", "f32", 90, a, b, c, backend) == 0x3F800001).all()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("c, d", [(0x80000000, 0), (1, 1), (0x80000001, 0x80000001), (0x7F7FFFFF, 0x7F7FFFFF), (0xFF800000, 0xFF800000)])
def test_accumulator_without_products(c, d, backend):
    a, b = np.zeros((16, 16), np.uint64), np.full((16, 8), 0x8000, np.uint64)
    got = multiply("m16n8k16", "f16", "f32", 90, a, b, np.full((16, 8), c, np.uint64), backend)
    assert (got == d).all()


def test_parameters():
    assert steps_of(90).products["f16"] == 16
    assert steps_of(89) == steps_of(80)
    for arch in (70, 75, 87):
        assert arch not in STEPS
        with pytest.raises(NotModelled, match=f"sm_{arch}.*known: sm_80"):
            steps_of(arch)
