"""mma and wmma on matrices of small integers, against numpy, where every type is exact."""

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.errors import NotModelled
from fasim.isa.table import ROWS
from fasim.numerics.fragments import (
    ELEMENT_BITS,
    MMA_SHAPES,
    WMMA_SHAPES,
    fragment_elements,
    matrix_size,
    wmma_fragment_elements,
)
from fasim.numerics.lanes import width
from tests.harness import BACKENDS, run_row
from tests.matrices import decode, encode, from_registers, to_registers

ACCUMULATORS = {"f16": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",)}
FLOAT = [(s, t, acc) for t, shapes in MMA_SHAPES.items() for s in shapes for acc in ACCUMULATORS.get(t, ())]
INTEGER = [
    (shape, f"{a}{n}", f"{b}{n}", sat)
    for n in (8, 4)
    for shape in MMA_SHAPES[f"s{n}"]
    for a in "su"
    for b in "su"
    for sat in ("", "satfinite.")
]


def execute(name, tables, matrices, types, arch, backend="jit"):
    """D as numbers; tables, matrices: of A, B and C; types: of A, B, C and D."""
    bits = [ELEMENT_BITS[t] for t in types]
    sources = [r for m, e, t, n in zip(matrices, tables, types, bits) for r in to_registers(encode(m, t), e, n)]
    immediates = (arch,) if any(a.name == "arch" for a in ROWS[name].sources) else ()
    got = run_row(name, sources, immediates=immediates, backend=backend)
    return decode(from_registers(got, tables[2], bits[3], matrices[2].shape), types[3])


def limits(type_):
    """Range of the integers of a type."""
    bits = int(type_[1:])
    return (-(1 << (bits - 1)), 1 << (bits - 1)) if type_[0] == "s" else (0, 1 << bits)


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("shape, type_, accumulator", FLOAT)
def test_float_mma_of_integers(shape, type_, accumulator, arch):
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-8, 9, matrix_size(shape, x)) for x in "abc")
    name = f"mma.sync.aligned.{shape}.row.col.{accumulator}.{type_}.{type_}.{accumulator}"
    tables = [fragment_elements(shape, x, type_) for x in "abc"]
    d = execute(name, tables, (a, b, c), (type_, type_, accumulator, accumulator), arch)
    assert (d == a @ b + c).all()


@pytest.mark.parametrize("shape, a_type, b_type, sat", INTEGER)
def test_integer_mma(shape, a_type, b_type, sat):
    rng = np.random.default_rng(2)
    a, b = (rng.integers(*limits(t), matrix_size(shape, x)) for x, t in zip("ab", (a_type, b_type)))
    c = rng.integers(-(2**31), 2**31, matrix_size(shape, "c"))
    c[:3], c[3:6] = 2**31 - 1, -(2**31)
    exact = a @ b + c
    assert (exact > 2**31 - 1).any() or (exact < -(2**31)).any()
    expected = exact.clip(-(2**31), 2**31 - 1) if sat else exact.astype(np.uint64).astype(np.uint32).view(np.int32)
    tables = [fragment_elements(shape, x, a_type) for x in "abc"]
    name = f"mma.sync.aligned.{shape}.row.col.{sat}s32.{a_type}.{b_type}.s32"
    assert (execute(name, tables, (a, b, c), (a_type, b_type, "s32", "s32"), 90) == expected).all()


@pytest.mark.parametrize("operation", ["xor", "and"])
@pytest.mark.parametrize("shape", MMA_SHAPES["b1"])
def test_bit_mma(shape, operation):
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 2, matrix_size(shape, x)) for x in "ab")
    c = rng.integers(-1000, 1000, matrix_size(shape, "c"))
    pairs = a[:, :, None] ^ b[None] if operation == "xor" else a[:, :, None] & b[None]
    tables = [fragment_elements(shape, x, "b1") for x in "abc"]
    name = f"mma.sync.aligned.{shape}.row.col.s32.b1.b1.s32.{operation}.popc"
    assert (execute(name, tables, (a, b, c), ("b1", "b1", "s32", "s32"), 90) == pairs.sum(axis=1) + c).all()


def test_f64_mma_rounds_each_product_in_order():
    """(1 + 2^-53) + 2^-53 is 1 when rounded after every product; the exact sum would give 1 + 2^-52."""
    a, b, c = np.zeros((8, 4)), np.zeros((4, 8)), np.ones((8, 8))
    a[:, :2], b[:2, :] = 2.0**-53, 1.0
    tables = [fragment_elements("m8n8k4", x, "f64") for x in "abc"]
    d = execute("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", tables, (a, b, c), ("f64",) * 4, 80)
    assert (d == 1.0).all()


WMMA = [(s, "f16", f"{d}.{c}", c, d) for s in WMMA_SHAPES["f16"] for d in ("f32", "f16") for c in ("f32", "f16")]
WMMA += [(s, t, f"f32.{t}.{t}.f32", "f32", "f32") for t in ("bf16", "tf32") for s in WMMA_SHAPES[t]]
WMMA += [(s, t, f"s32.{t}.{t}.s32{sat}", "s32", "s32") for t in ("s8", "u8") for s in WMMA_SHAPES[t] for sat in ("", ".satfinite")]


@pytest.mark.parametrize("shape, type_, suffix, c_type, d_type", WMMA)
def test_wmma_of_integers(shape, type_, suffix, c_type, d_type):
    rng = np.random.default_rng(4)
    a, b, c = (rng.integers(0, 9, matrix_size(shape, x)) - (0 if type_ == "u8" and x != "c" else 4) for x in "abc")
    if suffix.endswith("satfinite"):
        c[0] = 2**31 - 1
    expected = (a @ b + c).clip(-(2**31), 2**31 - 1)
    tables = [wmma_fragment_elements(shape, x, type_) for x in "abc"]
    names = [f"wmma.mma.sync.aligned.{x}.{y}.{shape}.{suffix}" for x in ("row", "col") for y in ("row", "col")]
    assert all(ROWS[name].semantics is ROWS[names[0]].semantics for name in names)
    assert (execute(names[0], tables, (a, b, c), (type_, type_, c_type, d_type), 90) == expected).all()


SMALL = [("m8n8k32", t, f"s32.{t}.{t}.s32{sat}", "s32", "") for t in ("s4", "u4") for sat in ("", ".satfinite")]
SMALL += [("m8n8k128", "b1", "s32.b1.b1.s32", "s32", f".{operation}.popc") for operation in ("xor", "and")]
SMALL += [("m8n8k4", "f64", "f64.f64.f64.f64", "f64", ""), ("m8n8k4", "f64", "rz.f64.f64.f64.f64", "f64", "")]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape, type_, suffix, c_type, operation", SMALL)
def test_wmma_of_8_by_8(shape, type_, suffix, c_type, operation, backend):
    rng = np.random.default_rng(4)
    low, high = (0, 2) if type_ == "b1" else (-8, 8) if type_ == "f64" else limits(type_)
    a, b = (rng.integers(low, high, matrix_size(shape, x)) for x in "ab")
    c = rng.integers(-1000, 1000, matrix_size(shape, "c"))
    if suffix.endswith("satfinite"):
        c[0] = 2**31 - 1
    if type_ == "b1":
        expected = (a[:, :, None] ^ b[None] if "xor" in operation else a[:, :, None] & b[None]).sum(axis=1) + c
    else:
        expected = (a @ b + c).clip(-(2**31), 2**31 - 1)
    tables = [wmma_fragment_elements(shape, x, type_) for x in "abc"]
    name = f"wmma.mma{operation}.sync.aligned.row.col.{shape}.{suffix}"
    assert (execute(name, tables, (a, b, c), (type_, type_, c_type, c_type), 90, backend) == expected).all()


@pytest.mark.parametrize("rounding, expected", [("rn", 1.0), ("rz", 1.0), ("rm", 1.0), ("rp", 1 + 2.0**-51)])
@pytest.mark.parametrize(
    "name", ["mma.sync.aligned.m8n8k4.row.col.{}.f64.f64.f64.f64", "wmma.mma.sync.aligned.row.col.m8n8k4.{}.f64.f64.f64.f64"]
)
def test_f64_mma_rounds_each_product_in_its_direction(name, rounding, expected):
    """1 + 2^-60 + 2^-60: upward one place after each product."""
    a, b, c = np.zeros((8, 4)), np.zeros((4, 8)), np.ones((8, 8))
    a[:, :2], b[:2, :] = 2.0**-60, 1.0
    tables = [fragment_elements("m8n8k4", x, "f64") for x in "abc"]
    assert (execute(name.format(rounding), tables, (a, b, c), ("f64",) * 4, 90) == expected).all()


def test_wmma_is_two_mma():
    rng = np.random.default_rng(5)
    registers = [rng.integers(0, 2**32, 32) & 0xBFFFBFFF for _ in range(24)]
    a, b, c = registers[:8], registers[8:16], registers[16:]
    d = run_row("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", registers, immediates=(90,))
    for block in range(2):
        sources = [*a[:4], *b[2 * block : 2 * block + 2], *c[4 * block : 4 * block + 4]]
        half = run_row("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", sources, immediates=(90,))
        assert np.array_equal(half, d[4 * block : 4 * block + 4])


def test_wmma_with_f32_accumulator_rounds_to_f16_once():
    rng = np.random.default_rng(6)
    registers = [rng.integers(0, 2**32, 32) & 0xB7FFB7FF for _ in range(16)]
    registers += [rng.normal(size=32).astype(np.float32) for _ in range(8)]
    wide = run_row("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", registers, immediates=(90,))
    narrow = run_row("wmma.mma.sync.aligned.row.col.m16n16k16.f16.f32", registers, immediates=(90,))
    halves = [x.astype(np.uint32).view(np.float32).astype(np.float16).view(np.uint16).astype(np.uint32) for x in wide]
    assert np.array_equal(narrow, [low | high << 16 for low, high in zip(halves[::2], halves[1::2])])


def test_wmma_tf32_takes_four_products_a_step():
    """1 + 2^-23 after k = 0..3 loses nothing in two steps; in one step of 8 the small products would meet -1 before they are cut."""
    a, b, c = np.zeros((16, 8)), np.zeros((8, 16)), np.zeros((16, 16))
    a[:, 0], a[:, 1], a[:, 4] = 1.0, 2.0**-24, -1.0
    b[:] = 1.0
    wmma = [wmma_fragment_elements("m16n16k8", x, "tf32") for x in "abc"]
    types = ("tf32", "tf32", "f32", "f32")
    in_two = execute("wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", wmma, (a, b, c), types, 90)
    mma = [fragment_elements("m16n8k8", x, "tf32") for x in "abc"]
    in_one = execute("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", mma, (a, b[:, :8], c[:, :8]), types, 90)
    assert (in_two == 0.0).all()
    assert (in_one == 2.0**-24).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_turing_is_refused(backend):
    registers = [0] * 7
    with pytest.raises(NotModelled, match="sm_75"):
        run_row("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", registers, immediates=(75,), backend=backend)


@pytest.mark.parametrize("name", [n for n in ROWS if n.startswith(("wmma.load", "wmma.store"))])
def test_wmma_memory_rows_name_their_matrix(name):
    row = ROWS[name]
    elements = wmma_fragment_elements(row.attributes["shape"], row.attributes["operand"], row.attributes["type"])
    (fragment,) = [a for a in row.dests + row.sources if a.count]
    assert fragment.count * width(fragment.type_) == elements.shape[1] * ELEMENT_BITS[row.attributes["element"]]
    assert f".{row.attributes['layout']}." in name
