"""f16 and bf16 arithmetic against exact rationals, one half and pairs, and f16 against numpy."""

import random

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from tests.harness import run_row
from tests.rounding import BF16, F16, FORMATS, OPERATIONS, operand_sets

NAMES = ("add", "sub", "mul", "fma")
WARPS = {"jit": 60, "reference": 2}


def run_pairs(name, sets, backend):
    """Results of a x2 row on operand tuples of one half each, two tuples a lane."""
    results = []
    for start in range(0, len(sets), 64):
        low, high = sets[start : start + 64 : 2], sets[start + 1 : start + 64 : 2]
        columns = [np.array(x, np.uint32) | np.array(y, np.uint32) << 16 for x, y in zip(zip(*low), zip(*high))]
        (got,) = run_row(name, columns, backend=backend)
        results += [int(half) for value in got for half in (value & 0xFFFF, value >> 16)]
    return results


def compare(name, sets, results, expected):
    for operands, got, want in zip(sets, results, expected, strict=True):
        assert got == want, f"{name} {[hex(x) for x in operands]}: {got:#x} instead of {want:#x}"


def sat(f, pattern):
    one = f.bias << f.fraction_bits
    return 0 if pattern & f.sign or pattern > f.infinity else min(pattern, one)


def relu(f, pattern):
    return f.nan if pattern & (f.sign - 1) > f.infinity else 0 if pattern & f.sign else pattern


@pytest.mark.parametrize("backend", ("jit", "reference"))
@pytest.mark.parametrize("type_", ("f16", "bf16"))
@pytest.mark.parametrize("operation", NAMES)
def test_arithmetic(operation, type_, backend):
    f, (exact, arity) = FORMATS[type_], OPERATIONS[operation]
    sets = operand_sets(random.Random(f"{operation} {type_}"), f, arity, 64 * WARPS[backend])
    if operation == "fma":  # a tie that a far smaller product or addend breaks
        rng = random.Random(type_)
        one, half_ulp = f.bias << f.fraction_bits, (f.bias - f.fraction_bits - 1) << f.fraction_bits
        for _ in range(32):
            small = rng.randrange(1 << f.fraction_bits, one // 2) | rng.getrandbits(1) << 15
            sets.append((one | rng.randrange(8) << (f.fraction_bits - 3), half_ulp, one + rng.randrange(16)))
            sets.append((one + rng.randrange(1 << f.fraction_bits), one + rng.randrange(1 << f.fraction_bits), small))
    values = [tuple(f.decode(x) for x in s) for s in sets]
    expected = [f.round(exact(*v)) for v in values]
    compare(operation, sets, run_pairs(f"{operation}.rn.{type_}x2", sets, backend), expected)
    if operation != "fma":
        compare(operation, sets, run_pairs(f"{operation}.{type_}x2", sets, backend), expected)
    else:
        compare(operation, sets, run_pairs(f"fma.rn.relu.{type_}x2", sets, backend), [relu(f, x) for x in expected])
    if type_ == "f16":
        compare(operation, sets, run_pairs(f"{operation}.rn.sat.f16x2", sets, backend), [sat(f, x) for x in expected])
        flushed = [tuple(f.decode(f.flush(x)) for x in s) for s in sets]
        rounded = f.round_flushed if operation in ("mul", "fma") else lambda value: f.flush(f.round(value))
        want = [rounded(exact(*v)) for v in flushed]
        compare(operation, sets, run_pairs(f"{operation}.rn.ftz.f16x2", sets, backend), want)


@pytest.mark.parametrize("operation", ("add", "mul"))
def test_f16_is_numpys(operation):
    rng = np.random.default_rng(5)
    for _ in range(200):
        a, b = rng.integers(0, 1 << 16, (2, 32), np.uint16)
        with np.errstate(all="ignore"):
            want = getattr(np, {"add": "add", "mul": "multiply"}[operation])(a.view(np.float16), b.view(np.float16))
        bits = np.where(np.isnan(want), 0x7FFF, want.view(np.uint16))
        (got,) = run_row(f"{operation}.f16", [a, b])
        assert (got == bits).all()


def extreme(f, a, b, largest, nan):
    x, y = f.decode(a), f.decode(b)
    if x != x or y != y:
        return f.nan if nan or (x != x and y != y) else (b if x != x else a)
    key = lambda p: -(p & (f.sign - 1)) - 1 if p & f.sign else p & (f.sign - 1)  # noqa: E731
    return (max if largest else min)((a, b), key=key)


@pytest.mark.parametrize("backend", ("jit", "reference"))
@pytest.mark.parametrize("f, type_", ((F16, "f16"), (BF16, "bf16")))
def test_min_max(f, type_, backend):
    sets = operand_sets(random.Random("extreme" + type_), f, 2, 64 * WARPS[backend] // 2)
    for largest in (False, True):
        name = "max" if largest else "min"
        for nan in ("", ".NaN"):
            for flush in (False, True) if type_ == "f16" else (False,):
                expected = [extreme(f, *(f.flush(x) if flush else x for x in s), largest, bool(nan)) for s in sets]
                compare(name, sets, run_pairs(f"{name}{'.ftz' if flush else ''}{nan}.{type_}x2", sets, backend), expected)
            expected = []
            for a, b in sets:
                value = extreme(f, a & 0x7FFF, b & 0x7FFF, largest, bool(nan))
                expected.append(value if value > f.infinity else value | (a ^ b) & 0x8000)
            compare(name, sets, run_pairs(f"{name}{nan}.xorsign.abs.{type_}x2", sets, backend), expected)
