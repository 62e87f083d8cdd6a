"""Arithmetic in four roundings against exact rationals."""

import random

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from tests.harness import run_row
from tests.rounding import FORMATS, OPERATIONS, operand_sets

ROUNDINGS = ("rn", "rz", "rm", "rp")
#: warps of operands; the reference is slow
WARPS = {"jit": 40, "reference": 2}


def is_nan(f, pattern):
    return pattern & (f.sign - 1) > f.infinity


def compare(name, f, sets, expected, backend):
    for start in range(0, len(sets), 32):
        columns = [np.array(c, np.uint64) for c in zip(*sets[start : start + 32])]
        (got,) = run_row(name, columns, backend=backend)
        for lane, value in enumerate(got):
            want = expected[start + lane]
            if is_nan(f, want) and f.bits == 64:  # its payload depends on the operands
                assert is_nan(f, int(value)), name
                continue
            assert int(value) == want, f"{name} {[hex(x) for x in sets[start + lane]]}: {int(value):#x} instead of {want:#x}"


@pytest.mark.parametrize("backend", ("jit", "reference"))
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("type_", ("f32", "f64"))
def test_roundings(type_, operation, backend):
    f, (exact, arity) = FORMATS[type_], OPERATIONS[operation]
    rng = random.Random(f"{type_} {operation}")
    sets = operand_sets(rng, f, arity, 32 * WARPS[backend])
    values = [tuple(f.decode(x) for x in s) for s in sets]
    for mode in ROUNDINGS:
        expected = [f.round(exact(*v, mode), mode) for v in values]
        compare(f"{operation}.{mode}.{type_}", f, sets, expected, backend)


@pytest.mark.parametrize("backend", ("jit", "reference"))
@pytest.mark.parametrize("operation", OPERATIONS)
def test_flush_to_zero(operation, backend):
    f, (exact, arity) = FORMATS["f32"], OPERATIONS[operation]
    rng = random.Random(f"ftz {operation}")
    sets = operand_sets(rng, f, arity, 32 * WARPS[backend])
    if operation == "mul":  # products around 2**-126
        sets += [(0x00800000 + rng.randint(0, 3), 0x3F7FFFFF - rng.randint(0, 3)) for _ in range(64)]
    values = [tuple(f.decode(f.flush(x)) for x in s) for s in sets]
    for mode in ROUNDINGS:
        expected = [f.round_flushed(exact(*v, mode), mode) for v in values]
        compare(f"{operation}.{mode}.ftz.f32", f, sets, expected, backend)
