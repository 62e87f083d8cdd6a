"""Every setp and set against Python's comparisons of decoded numbers."""

import math
import operator
import random
import struct

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.isa.table import ROWS
from tests.harness import run_row
from tests.isa.oracle import number, rows_of

RELATIONS = {"eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge}
UNSIGNED = {"lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge}
BOOLEAN = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}
TRUE = {"u16": 0xFFFF, "s16": 0xFFFF, "u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "f32": 0x3F800000, "f16": 0x3C00, "bf16": 0x3F80}
PATTERNS = {
    "f16": [0, 0x8000, 1, 0x8001, 0x3FF, 0x83FF, 0x400, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0xFC00, 0x7C01, 0x7FFF, 0xFE00],
    "bf16": [0, 0x8000, 1, 0x8001, 0x7F, 0x80, 0x3F80, 0xBF80, 0x7F7F, 0x7F80, 0xFF80, 0x7F81, 0x7FFF, 0xFFC0],
    "f32": [
        0,
        1 << 31,
        1,
        0x80000001,
        0x7FFFFF,
        0x807FFFFF,
        0x800000,
        0x3F800000,
        0xBF800000,
        0x7F800000,
        0xFF800000,
        0x7F800001,
        0xFFC00000,
    ],
    "f64": [0, 1 << 63, 1, 1 << 63 | 1, 0x3FF << 52, 0xBFF << 52, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48, 0xFFF0 << 48 | 1],
}


def decode(pattern, type_, ftz):
    if type_ == "f64":
        return struct.unpack("<d", struct.pack("<Q", pattern))[0]
    if type_ == "f16":
        value, least = struct.unpack("<e", struct.pack("<H", pattern))[0], 2.0**-14
    else:
        value, least = struct.unpack("<f", struct.pack("<I", pattern << 16 if type_ == "bf16" else pattern))[0], 2.0**-126
    return 0.0 if ftz and abs(value) < least else value


def holds(relation, a, b, type_, ftz):
    if type_[0] in "bus" and type_ != "bf16":
        a, b = (number(x, type_.replace("b", "u")) for x in (a, b))
        return (RELATIONS | UNSIGNED)[relation](a, b)
    a, b = decode(a, type_, ftz), decode(b, type_, ftz)
    unordered = math.isnan(a) or math.isnan(b)
    if relation in ("num", "nan"):
        return unordered == (relation == "nan")
    return relation.endswith("u") if unordered else RELATIONS[relation[:2]](a, b)


def operands(type_, rng):
    """32 pairs; a quarter are equal."""
    if type_.endswith("x2"):
        halves = [operands(type_[:-2], rng) for _ in range(2)]
        return [[low | high << 16 for low, high in zip(halves[0][i], halves[1][i])] for i in range(2)]
    n = 16 if type_ == "bf16" else int(type_[1:])
    corners = PATTERNS.get(type_) or [0, 1, (1 << n) - 1, 1 << (n - 1), (1 << (n - 1)) - 1]
    a, b = ([rng.choice(corners) if rng.random() < 0.6 else rng.getrandbits(n) for _ in range(32)] for _ in range(2))
    return [a, [x if rng.random() < 0.25 else y for x, y in zip(a, b)]]


def expected(name, a, b, c):
    """Destinations of one lane, from the text of the mnemonic alone."""
    instruction, relation, *rest = name.split(".")
    combine = BOOLEAN[rest.pop(0)] if rest[0] in BOOLEAN else lambda t, _: t
    ftz = rest[0] == "ftz"
    types = rest[ftz:]
    if types[-1].endswith("x2"):
        stype = types[-1][:-2]
        results = [combine(holds(relation, a >> s & 0xFFFF, b >> s & 0xFFFF, stype, ftz), c) for s in (0, 16)]
        if instruction == "setp":
            return results
        true = 0xFFFF if types[0] in ("u32", "s32") else TRUE[types[0][:-2]]
        return [true * results[0] | true * results[1] << 16]
    t = holds(relation, a, b, types[-1], ftz)
    if instruction == "set":
        return [TRUE[types[0]] * combine(t, c)]
    return [combine(t, c), combine(not t, c)][: 1 if types[0] in ("f16", "bf16") else 2]


@pytest.mark.parametrize("module", ["compare", "compare_half"])
def test_comparisons(module):
    wrong = []
    for name in sorted(rows_of(module)):
        rng = random.Random(name)
        row = ROWS[name]
        a, b = operands(name.rsplit(".", 1)[-1], rng)
        c = [rng.getrandbits(1) == 1 for _ in range(32)]
        sources = [np.array(a, np.uint64), np.array(b, np.uint64)]
        got = run_row(name, [*sources, c] if len(row.sources) == 3 else sources, backend="reference")
        for lane in range(32):
            want = expected(name, a[lane], b[lane], c[lane])
            if [int(x[lane]) for x in got] != [int(x) for x in want]:
                wrong.append(f"{name} {a[lane]:#x} {b[lane]:#x} {c[lane]}: {[int(x[lane]) for x in got]} instead of {want}")
    assert not wrong, f"{len(wrong)} differences, e.g.\n" + "\n".join(wrong[:20])


def test_spellings():
    """Comparisons exist exactly for the types that PTX has them for."""
    names = rows_of("compare", "compare_half")
    assert {n for n in names if n.startswith("setp.") and n.endswith(".b32")} == {
        f"setp.{r}{b}.b32" for r in ("eq", "ne") for b in ("", ".and", ".or", ".xor")
    }
    assert "setp.lo.u16" in names and "setp.lo.s16" not in names
    assert "setp.lt.ftz.f32" in names and "setp.lt.ftz.f64" not in names
    assert "setp.num.bf16x2" in names and "setp.num.ftz.bf16x2" not in names
    assert "set.gtu.xor.ftz.f16x2.f16x2" in names and "set.lt.f32.f16" not in names
