"""f32 and f64 rows beyond rounding: saturation, minima, properties, pairs, approximations."""

import random

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.numerics import mufu, mufu_trig
from tests.harness import BACKENDS, run_row
from tests.rounding import F32, FORMATS, OPERATIONS, corner_patterns, operand_sets

CORNERS = corner_patterns(F32)
WARPS = {"jit": 20, "reference": 2}


def columns(sets, start):
    return [np.array(c, np.uint64) for c in zip(*sets[start : start + 32])]


def check(name, sets, expected, backend):
    missing = -len(sets) % 32
    sets, expected = sets + sets[:1] * missing, expected + expected[:1] * missing
    for start in range(0, len(sets), 32):
        (got,) = run_row(name, columns(sets, start), backend=backend)
        for operands, value, want in zip(sets[start : start + 32], got, expected[start : start + 32], strict=True):
            assert int(value) == want, f"{name} {[hex(x) for x in operands]}: {int(value):#x} instead of {want:#x}"


def sat(pattern):
    return 0 if pattern & F32.sign or pattern > F32.infinity else min(pattern, 0x3F800000)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("operation", ("add", "sub", "mul", "fma"))
def test_saturation(operation, backend):
    exact, arity = OPERATIONS[operation]
    sets = operand_sets(random.Random(operation), F32, arity, 32 * WARPS[backend])
    values = [tuple(F32.decode(x) for x in s) for s in sets]
    for mode in ("rn", "rz", "rm", "rp"):
        check(f"{operation}.{mode}.sat.f32", sets, [sat(F32.round(exact(*v, mode), mode)) for v in values], backend)
    flushed = [sat(F32.round_flushed(exact(*(F32.decode(F32.flush(x)) for x in s)))) for s in sets]
    check(f"{operation}.rn.ftz.sat.f32", sets, flushed, backend)


def extreme(f, a, b, largest, nan):
    x, y = f.decode(a), f.decode(b)
    if x != x or y != y:
        return f.nan if nan or (x != x and y != y) else (b if x != x else a)
    key = lambda p: -(p & (f.sign - 1)) - 1 if p & f.sign else p & (f.sign - 1)  # noqa: E731
    return (max if largest else min)((a, b), key=key)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("largest", (False, True))
def test_min_max(largest, backend):
    name = "max" if largest else "min"
    sets = [(a, b) for a in CORNERS for b in CORNERS] + operand_sets(random.Random(name), F32, 2, 64)
    for nan in ("", ".NaN"):
        check(f"{name}{nan}.f32", sets, [extreme(F32, a, b, largest, nan) for a, b in sets], backend)
        flushed = [extreme(F32, F32.flush(a), F32.flush(b), largest, nan) for a, b in sets]
        check(f"{name}.ftz{nan}.f32", sets, flushed, backend)
        signed = []
        for a, b in sets:
            value = extreme(F32, a & 0x7FFFFFFF, b & 0x7FFFFFFF, largest, nan)
            signed.append(value if value > F32.infinity else value | (a ^ b) & F32.sign)
        check(f"{name}{nan}.xorsign.abs.f32", sets, signed, backend)
    f = FORMATS["f64"]
    wide = [
        (a, b) for a in corner_patterns(f) for b in corner_patterns(f) if not (f.decode(a) != f.decode(a) and f.decode(b) != f.decode(b))
    ]
    check(f"{name}.f64", wide, [extreme(f, a, b, largest, False) for a, b in wide], backend)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("type_", ("f32", "f64"))
def test_properties(type_, backend):
    f = FORMATS[type_]
    patterns = corner_patterns(f)
    kinds = []
    for p in patterns:
        size = p & (f.sign - 1)
        kind = "notanumber" if size > f.infinity else "infinite" if size == f.infinity else "zero" if size == 0 else "subnormal"
        kinds.append("normal" if kind == "subnormal" and size >> f.fraction_bits else kind)
    truth = {
        "finite": ("zero", "subnormal", "normal"),
        "infinite": ("infinite",),
        "number": ("zero", "subnormal", "normal", "infinite"),
        "notanumber": ("notanumber",),
        "normal": ("zero", "normal"),  # as the PTX ISA says
        "subnormal": ("subnormal",),
    }
    padded = patterns + [0] * (32 - len(patterns))
    for name, accepted in truth.items():
        (got,) = run_row(f"testp.{name}.{type_}", [np.array(padded, np.uint64)], backend=backend)
        assert list(got[: len(patterns)]) == [k in accepted for k in kinds], name


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("operation", ("add", "mul", "fma"))
def test_pairs(operation, backend):
    arity = OPERATIONS[operation][1]
    sets = operand_sets(random.Random("x2" + operation), F32, arity, 64)
    (low,) = run_row(f"{operation}.rm.f32", columns(sets[:32], 0), backend=backend)
    (high,) = run_row(f"{operation}.rm.f32", columns(sets[32:], 0), backend=backend)
    packed = [x | y << 32 for x, y in zip(columns(sets[:32], 0), columns(sets[32:], 0))]
    (got,) = run_row(f"{operation}.rm.f32x2", packed, backend=backend)
    assert (got == low | high.astype(np.uint64) << 32).all()


# --- approximations --------------------------------------------------------------------------------------------------------------


def f32(bits):
    return bits.view(np.float32)


def bits(values):
    return np.where(np.isnan(values), np.uint32(0x7FFFFFFF), values.view(np.uint32))


def approx_inputs(count=4096):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 1 << 32, count, np.uint32)
    x[: len(CORNERS)] = CORNERS
    near = (rng.standard_normal(count // 4) * 150).astype(np.float32)
    x[-count // 4 :] = near.view(np.uint32)
    x[count // 4 : count // 2] &= 0x80FFFFFF  # small and subnormal
    return x


def run_all(name, *arrays, backend):
    step = 32
    parts = [run_row(name, [a[i : i + step] for a in arrays], backend=backend)[0] for i in range(0, len(arrays[0]), step)]
    return np.concatenate(parts)


FORMULAS = {
    "ex2": mufu.ex2_approx_ftz,
    "lg2": mufu.lg2_approx_ftz,
    "rcp": mufu.rcp_approx_ftz,
    "rsqrt": mufu.rsqrt_approx_ftz,
    "sqrt": mufu.sqrt_approx_ftz,
    "sin": mufu_trig.sin_approx_ftz,
    "cos": mufu_trig.cos_approx_ftz,
}
LEAST = np.float32(2.0**-126)


def around(name, x):
    """The instructions around MUFU in `.approx.f32` without .ftz, as ptxas writes them."""
    formula = lambda v: f32(FORMULAS[name](v.view(np.uint32)))  # noqa: E731
    tiny = ~(np.abs(x) >= LEAST) & ~np.isnan(x)
    if name == "ex2":
        low = x < -126
        y = formula(np.where(low, x * np.float32(0.5), x))
        return np.where(low, y * y, y)
    if name == "rcp":
        scale = np.where(np.abs(x) > 2.0**126, np.float32(0.25), np.where(tiny, np.float32(2**24), np.float32(1)))
        return scale * formula(x * scale)
    if name in ("sin", "cos"):
        return formula(x)
    y = formula(np.where(tiny, x * np.float32(2**24), x))
    after = {"lg2": y - np.float32(24), "rsqrt": y * np.float32(2**12), "sqrt": y * np.float32(2**-12)}[name]
    return np.where(tiny, after, y)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FORMULAS)
def test_approximations(name, backend):
    x = approx_inputs(8192 if backend == "jit" else 128)
    assert (run_all(f"{name}.approx.ftz.f32", x, backend=backend) == FORMULAS[name](x)).all()
    with np.errstate(all="ignore"):
        want = bits(around(name, f32(x)))
    got = run_all(f"{name}.approx.f32", x, backend=backend)
    assert (got == want).all(), [hex(v) for v in x[got != want][:5]]


@pytest.mark.parametrize("backend", BACKENDS)
def test_tanh(backend):
    x = approx_inputs(8192 if backend == "jit" else 128)
    assert (run_all("tanh.approx.f32", x, backend=backend) == mufu_trig.tanh_approx(x)).all()


def flushed(x):
    return np.where(np.abs(x) < LEAST, x * np.float32(0), x)


@pytest.mark.parametrize("backend", BACKENDS)
def test_approximate_division(backend):
    x = approx_inputs(8192 if backend == "jit" else 128)
    y = np.random.default_rng(9).permutation(x)
    a, b = f32(x), f32(y)
    with np.errstate(all="ignore"):
        rcp = lambda v: f32(mufu.rcp_approx_ftz(v.view(np.uint32)))  # noqa: E731
        up = np.where(np.abs(b) < LEAST, np.float32(2**24), np.float32(1))
        down = np.where(np.abs(b) > 2.0**126, np.float32(0.25), np.float32(1))
        want = {
            "approx": (a * up) * rcp(b * up),
            "full": (a * up * down) * rcp(b * up * down),
            "approx.ftz": flushed(flushed(a) * rcp(b)),
            "full.ftz": flushed(flushed(flushed(a) * down) * rcp(flushed(b) * down)),
        }
    for name, values in want.items():
        got = run_all(f"div.{name}.f32", x, y, backend=backend)
        assert (got == bits(values)).all(), (name, [(hex(p), hex(q)) for p, q in zip(x[got != bits(values)], y[got != bits(values)])][:4])
