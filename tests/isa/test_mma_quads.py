"""mma.m8n8k4 of f16 against the manual's fragments, against exact arithmetic, and against the machine code of ptxas."""

import functools
import itertools
import math
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.errors import NotModelled, ToolMissing
from fasim.numerics.mma_quads import quad_fragment
from fasim.toolchain.nvrtc import compile_program
from fasim.toolchain.wheels import nvidia_directories
from tests.harness import BACKENDS, run_row
from tests.isa.machine_code import MachineCode
from tests.rounding import Format

F16, F32 = Format(16, 10, 0x7FFF), Format(32, 23, 0x7FFFFFFF)
LAYOUTS = list(itertools.product(("row", "col"), repeat=2))
TYPES = [("f32", "f32"), ("f32", "f16"), ("f16", "f16")]
ALL = [(*layouts, *types) for layouts in LAYOUTS for types in TYPES]
KINDS = ("bits", "close", "sparse")


def name_of(a, b, d, c):
    return f"mma.sync.aligned.m8n8k4.{a}.{b}.{d}.f16.f16.{c}"


def halves(rng, kind, count):
    """Registers of two f16: any bits, exponents near each other, or many zeros, subnormals and infinities."""
    if kind == "bits":
        values = rng.integers(0, 1 << 16, (count, 2, 32))
    elif kind == "close":
        values = (
            rng.integers(0, 2, (count, 2, 32)) << 15 | rng.integers(9, 21, (count, 2, 32)) << 10 | rng.integers(0, 1024, (count, 2, 32))
        )
    else:
        values = rng.choice(
            [0, 0x8000, 0, 0x8000, 1, 0x83FF, 0x3C00, 0xBC00, 0x7BFF, 0x7C00],
            (count, 2, 32),
            p=[0.15] * 4 + [0.1] * 3 + [0.08, 0.015, 0.005],
        )
    return [(low | high << 16).astype(np.uint32) for low, high in values]


def inputs(kind, c_type, seed):
    """Registers of A, B and C."""
    rng = np.random.default_rng(seed)
    ab = halves(rng, kind, 4)
    if c_type == "f16":
        return ab + halves(rng, kind, 4)
    words = rng.integers(0, 1 << 32, (8, 32))
    if kind == "close":
        words = words & 0x807FFFFF | rng.integers(118, 134, words.shape) << 23
    elif kind == "sparse":
        words = rng.choice([0, 0x80000000, 1, 0x80000001, 0x007FFFFF, 0x3F800000, 0xFF7FFFFF, 0x7F800000], words.shape)
    return ab + list(words.astype(np.uint32))


# --- the manual's formulas, one lane and element at a time -----------------------------------------------------------------------
def place(operand, form, lane, i):
    """(row, column), in the words of the manual's sections on this shape."""
    low = lane < 16
    if operand == "a" and form == "row":
        return (lane % 4 if low else lane % 4 + 4), i
    if operand == "a":
        return (i if low else i + 4), lane % 4
    if operand == "b" and form == "row":
        return lane % 4, (i if low else i + 4)
    if operand == "b":
        return i, (lane % 4 if low else lane % 4 + 4)
    if form == "f16":
        return (lane % 4 if low else lane % 4 + 4), i
    x = lane & 1 if low else (lane & 1) + 4
    return x + (i & 2), (i & 4) + (lane & 2) + (i & 1)


FRAGMENTS = [
    ("a", "row", 4),
    ("a", "col", 4),
    ("b", "row", 4),
    ("b", "col", 4),
    ("c", "f16", 8),
    ("c", "f32", 8),
    ("d", "f16", 8),
    ("d", "f32", 8),
]


@pytest.mark.parametrize("operand, form, count", FRAGMENTS)
def test_fragments(operand, form, count):
    table = quad_fragment(operand, form)
    assert table.shape == (32, count, 2)
    for lane in range(32):
        for i in range(count):
            assert tuple(table[lane, i]) == place(operand, form, lane, i)


def element(registers, form, lane, i):
    if form == "f32":
        return int(registers[i][lane])
    return int(registers[i // 2][lane]) >> 16 * (i % 2) & 0xFFFF


def multiply_add(a, b, c):
    """a * b + c of values, exactly; +-0 and what is not finite as IEEE says."""
    if all(math.isfinite(x) for x in (a, b, c)) and (sum_ := Fraction(a) * Fraction(b) + Fraction(c)):
        return sum_
    a, b, c = (float(x) for x in (a, b, c))  # no product of these formats overflows f64 or vanishes in it
    return a * b + c


def expected(a_layout, b_layout, d_type, c_type, registers):
    """D as patterns by lane and element, in rationals rounded once an operation."""
    a, b, c = registers[:2], registers[2:4], registers[4:]
    result = {}
    for quads in range(4):
        lanes = [*range(4 * quads, 4 * quads + 4), *range(4 * quads + 16, 4 * quads + 20)]
        matrix_a = {place("a", a_layout, lane, i): element(a, "f16", lane, i) for lane in lanes for i in range(4)}
        matrix_b = {place("b", b_layout, lane, i): element(b, "f16", lane, i) for lane in lanes for i in range(4)}
        matrix_c = {place("c", c_type, lane, i): element(c, c_type, lane, i) for lane in lanes for i in range(8)}
        for lane in lanes:
            for i in range(8):
                row, column = place("d", d_type, lane, i)
                x = [F16.decode(matrix_a[row, k]) for k in range(4)]
                y = [F16.decode(matrix_b[k, column]) for k in range(4)]
                addend = (F16 if c_type == "f16" else F32).decode(matrix_c[row, column])
                result[lane, i] = one_element(x, y, addend, d_type)
    return result


def one_element(x, y, c, d_type):
    def rounded(a, b, c):
        return F32.decode(F32.round(multiply_add(a, b, c)))

    one, zero = Fraction(1), Fraction(0)
    if d_type == "f32":
        sum_ = zero
        for a, b in zip(x, y):
            sum_ = rounded(a, b, sum_)
        return F32.round(multiply_add(one, c, sum_))
    for a, b, a2, b2 in ((x[0], y[0], x[1], y[1]), (x[2], y[2], x[3], y[3])):
        c = rounded(one, c, rounded(a2, b2, rounded(a, b, -0.0)))
    return F16.round(c)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("a, b, d, c", ALL)
def test_exact_arithmetic(a, b, d, c, kind):
    registers = inputs(kind, c, 11)
    want = expected(a, b, d, c, registers)
    for backend in BACKENDS:
        got = run_row(name_of(a, b, d, c), registers, immediates=(90,), backend=backend)
        assert [(key, hex(element(got, d, *key))) for key in want] == [(key, hex(value)) for key, value in want.items()]


# --- what ptxas makes of it --------------------------------------------------------------------------------------------------------
def kernel(a, b, d, c):
    of_d, of_c = (8 if d == "f32" else 4), (8 if c == "f32" else 4)
    operands = [
        "{" + ",".join(f"%{first + i}" for i in range(count)) + "}"
        for first, count in ((0, of_d), (of_d, 2), (of_d + 2, 2), (of_d + 4, of_c))
    ]
    td, tc = ("float" if t == "f32" else "unsigned" for t in (d, c))
    outputs = ",".join(f'"={"f" if d == "f32" else "r"}"(d[{i}])' for i in range(of_d))
    addends = ",".join(f'"{"f" if c == "f32" else "r"}"(c[{i}])' for i in range(of_c))
    return f"""extern "C" __global__ void k_{a}_{b}_{d}_{c}({td}* D, const uint2* A, const uint2* B, const {tc}* C) {{
    uint2 a = A[threadIdx.x], b = B[threadIdx.x]; {tc} c[{of_c}]; {td} d[{of_d}];
    for (int i = 0; i < {of_c}; i++) c[i] = C[threadIdx.x + 32 * i];
    asm volatile("{name_of(a, b, d, c)} {", ".join(operands)};" : {outputs} : "r"(a.x), "r"(a.y), "r"(b.x), "r"(b.y), {addends});
    for (int i = 0; i < {of_d}; i++) D[threadIdx.x + 32 * i] = d[i];
}}
"""


@functools.cache
def listing():
    paths = [str(path) for root in nvidia_directories() for path in root.glob("bin/nvdisasm*")]
    tool = next(iter(paths), shutil.which("nvdisasm"))
    if tool is None:
        pytest.skip("needs nvdisasm")
    try:
        output = compile_program("".join(kernel(*x) for x in ALL), "quads.cu", ["--gpu-architecture=sm_90"])
    except ToolMissing as error:
        pytest.skip(str(error))
    assert output.ok, output.log
    return output.cubin, tool


@pytest.fixture(scope="module")
def machine_code(tmp_path_factory):
    cubin, tool = listing()
    path = Path(tmp_path_factory.mktemp("quads")) / "quads.cubin"
    path.write_bytes(cubin)
    return subprocess.run([tool, "-c", str(path)], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("a, b, d, c", ALL)
def test_machine_code(machine_code, a, b, d, c):
    code = MachineCode(machine_code, f"k_{a}_{b}_{d}_{c}")
    for seed, kind in enumerate(KINDS * 4):
        registers = inputs(kind, c, seed)
        memory = np.zeros(8192, np.uint8)
        words = memory.view(np.uint32)
        for first, pair in ((256, registers[:2]), (320, registers[2:4])):
            words[first : first + 64 : 2], words[first + 1 : first + 64 : 2] = pair
        words[512 : 512 + 32 * len(registers[4:])] = np.concatenate(registers[4:])
        code.run([0, 1024, 1280, 2048], memory)
        got = run_row(name_of(a, b, d, c), registers, immediates=(90,))
        assert np.array_equal(np.concatenate(got).astype(np.uint32), words[: 32 * len(got)]), kind


@pytest.mark.parametrize("backend", BACKENDS)
def test_tensor_cores_of_turing_are_not_modelled(backend):
    with pytest.raises(NotModelled, match=r"m8n8k4 of f16 on sm_75"):
        run_row(name_of("row", "col", "f32", "f32"), [0] * 12, immediates=(75,), backend=backend)
