"""Every cvt with a float on one side, against exact rationals."""

import math
import random
from fractions import Fraction

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.isa.instructions import convert
from fasim.isa.table import ROWS
from tests.harness import run_row
from tests.rounding import F16, F32, FORMATS, Format, corner_patterns, is_special, random_pattern

INTEGERS = [f"{letter}{n}" for n in (8, 16, 32, 64) for letter in "us"]
INTEGRAL = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}
BACKENDS = ("jit", "reference")
WARPS = {"jit": 8, "reference": 1}
NAMES = [n for n in ROWS if n.startswith("cvt.") and (ROWS[n].semantics or len).__module__ == convert.__name__]


def split(name):
    """(modifiers, target, source) of a row's name."""
    *modifiers, target, source = name.split(".")[1:]
    return modifiers, target, source


def limits(type_):
    n = int(type_[1:])
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if type_[0] == "s" else (0, (1 << n) - 1)


def float_patterns(rng, type_, target, count):
    f = FORMATS[type_]
    found = list(corner_patterns(f))
    while len(found) < count:
        kind = rng.randrange(4)
        if target in INTEGERS and kind < 2:  # around the limits and half-integers
            value = Fraction(rng.choice((*limits(target), rng.randint(-9, 9), rng.randint(*limits(target)))))
            found.append(f.round(value + rng.choice((0, Fraction(1, 2), Fraction(-1, 2), 1, -1, Fraction(1, 1 << 20)))))
        elif target in FORMATS and kind < 3:  # around the target's values, ties and limits
            g = FORMATS[target]
            value = g.decode(rng.choice((random_pattern(rng, g), rng.choice(corner_patterns(g)))))
            if is_special(value) or not value:
                continue
            value *= 1 + Fraction(rng.choice((0, 1, 1, -1)), 1 << (g.fraction_bits + 1)) if abs(value) >= g.least_normal else 1
            value += rng.choice((0, 0, g.least / 2, -g.least / 2))
            found.append(f.round(value) + rng.choice((0, 0, 1, -1)) if value else 0)
        else:
            found.append(random_pattern(rng, f))
    return [x & ((1 << f.bits) - 1) for x in found[:count]]


def integer_patterns(rng, type_, count):
    n, found = int(type_[1:]), [0, 1, *(x & ((1 << int(type_[1:])) - 1) for x in limits(type_))]
    while len(found) < count:
        size = rng.randint(1, n)
        value = rng.choice((rng.getrandbits(size), (1 << size) - 1, (1 << (size - 1)) + rng.randint(-2, 2)))
        if rng.getrandbits(1):  # a tie in the 24th, 53rd, 11th or 8th place, and its neighbours
            low = max(size - rng.choice((24, 53, 11, 8)) - 1, 0)
            value = value >> low << low | rng.choice((0, 1, 1 << max(low - 1, 0)))
        found.append((value if rng.getrandbits(1) else -value) & ((1 << n) - 1))
    return found[:count]


def flush_f32(type_, pattern):
    return F32.flush(pattern) if type_ == "f32" else pattern


def finish(f: Format, pattern, modifiers):
    if "sat" in modifiers:
        one = f.bias << f.fraction_bits
        return 0 if pattern & f.sign or pattern > f.infinity else min(pattern, one)
    magnitude = pattern & (f.sign - 1)
    if "satfinite" in modifiers and magnitude == f.infinity:
        pattern -= 1
    if "relu" in modifiers:
        return f.nan if magnitude > f.infinity else 0 if pattern & f.sign else pattern
    return pattern


def float_result(name, pattern):
    modifiers, target, source = split(name)
    f, g = FORMATS[source], FORMATS[target]
    ftz = "ftz" in modifiers
    mode = modifiers[0] if modifiers and modifiers[0] in ("rn", "rz", "rm", "rp", *INTEGRAL) else "rn"
    if source == target and mode not in INTEGRAL and source in ("f32", "f64") and not ftz and "sat" not in modifiers:
        return pattern
    if (source, target) == ("bf16", "f32") and not ftz:
        return pattern << 16
    if source == "f64" != target and is_nan(f, pattern) and "sat" not in modifiers:  # sign and leading payload bits stay
        payload = (pattern | 1 << 51) >> (52 - g.fraction_bits) & ((1 << g.fraction_bits) - 1)
        return (g.sign if pattern & f.sign else 0) | g.infinity | payload
    # ptxas leaves .ftz out where the target is f16
    value = f.decode(flush_f32(source, pattern) if ftz and target != "f16" else pattern)
    if mode in INTEGRAL and not is_special(value) and value:
        whole = INTEGRAL[mode](value)
        value = Fraction(whole) if whole else (-0.0 if value < 0 else Fraction(0))
    if ftz and (source, target) == ("f64", "f32"):
        return finish(g, g.round_flushed(value, mode), modifiers)
    result = g.round(value, "rn" if mode in INTEGRAL else mode)
    return finish(g, F32.flush(result) if ftz and target == "f32" else result, modifiers)


def integer_result(name, pattern):
    modifiers, target, source = split(name)
    n, (low, high) = int(target[1:]), limits(target)
    value = FORMATS[source].decode(flush_f32(source, pattern) if "ftz" in modifiers else pattern)
    if value != value:
        result = 1 << (n - 1) if source == "f64" or n == 64 else 0
        result -= 1 << n if target[0] == "s" and result >> (n - 1) else 0
    elif is_special(value):
        result = high if value > 0 else low
    else:
        result = min(max(INTEGRAL[modifiers[0]](Fraction(value)), low), high)
    return result & ((1 << n) - 1)


def from_integer_result(name, pattern):
    modifiers, target, source = split(name)
    n = int(source[1:])
    pattern &= (1 << n) - 1
    value = Fraction(pattern - (1 << n) if source[0] == "s" and pattern >> (n - 1) else pattern)
    return finish(FORMATS[target], FORMATS[target].round(value, modifiers[0]), modifiers)


def is_nan(f, pattern):
    return pattern & (f.sign - 1) > f.infinity


@pytest.mark.parametrize("backend", BACKENDS)
def test_scalar_conversions(backend):
    tried, rng, cache = 0, random.Random(backend), {}
    for name in NAMES:
        _, target, source = split(name)
        if target not in (*FORMATS, *INTEGERS) or source not in (*FORMATS, *INTEGERS):
            continue
        if backend == "reference" and rng.random() > 0.25:
            continue
        key, count = (source, target), 32 * WARPS[backend]
        if key not in cache:
            cache[key] = integer_patterns(rng, source, count) if source in INTEGERS else float_patterns(rng, source, target, count)
        oracle = from_integer_result if source in INTEGERS else integer_result if target in INTEGERS else float_result
        for start in range(0, count, 32):
            patterns = cache[key][start : start + 32]
            (got,) = run_row(name, [np.array(patterns, np.uint64)], backend=backend)
            for p, value in zip(patterns, got):
                want = oracle(name, p)
                if target == "f64" and is_nan(FORMATS["f64"], want):  # NaN payloads of f64 depend on the source
                    assert is_nan(FORMATS["f64"], int(value)), name
                else:
                    assert int(value) == want, f"{name} {p:#x}: {int(value):#x} instead of {want:#x}"
        tried += 1
    assert tried > (600 if backend == "jit" else 100)


@pytest.mark.parametrize("backend", BACKENDS)
def test_packed_conversions(backend):
    rng = random.Random(7)
    for half in ("f16", "bf16"):
        patterns = float_patterns(rng, "f32", half, 64 * WARPS[backend])
        for name in NAMES:
            modifiers, target, source = split(name)
            if target != half + "x2" or source != "f32":
                continue
            for start in range(0, len(patterns), 64):
                high, low = patterns[start : start + 32], patterns[start + 32 : start + 64]
                (got,) = run_row(name, [np.array(high, np.uint32), np.array(low, np.uint32)], backend=backend)
                for h, x, value in zip(high, low, got):
                    parts = [finish(FORMATS[half], FORMATS[half].round(F32.decode(p), modifiers[0]), modifiers) for p in (h, x)]
                    assert int(value) == parts[0] << 16 | parts[1], (name, hex(h), hex(x), hex(value))


@pytest.mark.parametrize("backend", BACKENDS)
def test_tf32(backend):
    tf32 = Format(19, 10, 0x3FFFF)
    rng = random.Random(11)
    ties = [p & ~0x1FFF | rng.choice((0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF)) for p in float_patterns(rng, "f32", "f32", 128)]
    for mode in ("rna", "rn", "rz"):
        for start in range(0, 128, 32):
            patterns = ties[start : start + 32]
            (got,) = run_row(f"cvt.{mode}.tf32.f32", [np.array(patterns, np.uint32)], backend=backend)
            for p, value in zip(patterns, got):
                x = F32.decode(p)
                if is_special(x):
                    want = p & ~0x1FFF if mode == "rna" or x == x else F32.nan & ~0x1FFF
                else:
                    want = tf32.round(x, mode) << 13
                assert int(value) == want, (mode, hex(p), hex(value))


def decode_fp8(code, fraction_bits, bias):
    """Values of fp8 written out independently of the format tables: None for NaN."""
    sign, field, fraction = -1 if code & 0x80 else 1, (code & 0x7F) >> fraction_bits, code & ((1 << fraction_bits) - 1)
    if (fraction_bits == 3 and code & 0x7F == 0x7F) or (fraction_bits == 2 and field == 31 and fraction):
        return None
    if fraction_bits == 2 and field == 31:
        return sign * math.inf
    scale = Fraction(2) ** (max(field, 1) - bias - fraction_bits)
    return sign * scale * (fraction + ((1 << fraction_bits) if field else 0))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("type_, fraction_bits, bias", (("e4m3x2", 3, 7), ("e5m2x2", 2, 15)))
def test_fp8(type_, fraction_bits, bias, backend):
    codes = [c for c in range(128) if isinstance(decode_fp8(c, fraction_bits, bias), Fraction | int)]
    values = [decode_fp8(c, fraction_bits, bias) for c in codes]
    # to f16: all 256 codes, two at a time
    for start in range(0, 256, 32):
        pairs = [c | (255 - c) << 8 for c in range(start, start + 32)]
        (got,) = run_row(f"cvt.rn.f16x2.{type_}", [np.array(pairs, np.uint32)], backend=backend)
        for pair, value in zip(pairs, got):
            for code, half in ((pair & 0xFF, int(value) & 0xFFFF), (pair >> 8, int(value) >> 16)):
                exact = decode_fp8(code, fraction_bits, bias)
                want = 0x7FFF if exact is None else F16.round(exact) if exact else (code & 0x80) << 8
                assert half == want, (hex(code), hex(half))
    # from f32: every value, every tie and the neighbours of both
    inputs = []
    for i, value in enumerate(values):
        above = values[i + 1] if i + 1 < len(values) else value * 2
        for exact in (value, (value + above) / 2):
            middle = F32.round(exact) if exact else 0
            inputs += [x for x in (middle - 1, middle, middle + 1) if x >= 0]
    inputs += [0x7F800000, 0x7F7FFFFF, 0x7FC00000, 1]
    inputs += [x | 0x80000000 for x in inputs]
    inputs += [0] * (-len(inputs) % 64)
    for start in range(0, len(inputs) if backend == "jit" else 256, 64):
        high, low = inputs[start : start + 32], inputs[start + 32 : start + 64]
        for relu in ("", ".relu"):
            (got,) = run_row(f"cvt.rn.satfinite{relu}.{type_}.f32", [np.array(high, np.uint32), np.array(low, np.uint32)], backend=backend)
            for h, x, value in zip(high, low, got):
                assert int(value) == nearest_code(h, codes, values, relu) << 8 | nearest_code(x, codes, values, relu), (
                    hex(h),
                    hex(x),
                    hex(value),
                )
    halves = [F16.round(v) if v else 0 for v in values]
    halves += [h + 1 for h in halves] + [h | 0x8000 for h in halves] + [0x7C00, 0xFC00, 0x7E00]
    for start in range(0, len(halves) - 32, 32):
        part = np.array(halves[start : start + 32], np.uint32)
        (got,) = run_row(f"cvt.rn.satfinite.{type_}.f16x2", [part | part[::-1] << 16], backend=backend)
        want = [nearest_code(F32.round(F16.decode(int(h))), codes, values, "") for h in part]
        assert [int(v) & 0xFF for v in got] == want and [int(v) >> 8 for v in got] == want[::-1]


def nearest_code(pattern, codes, values, relu):
    x = F32.decode(pattern)
    if x != x:
        return 0x7F
    sign = 0x80 if pattern >> 31 else 0
    if sign and relu:
        return 0
    if is_special(x) or abs(x) >= values[-1]:
        return codes[-1] | sign
    best = min(range(len(values)), key=lambda i: (abs(values[i] - abs(Fraction(x))), codes[i] & 1))
    return codes[best] | sign


def test_every_case_belongs_to_a_row():
    assert all(f"cvt.{name}" in ROWS for name in convert.CASES)
