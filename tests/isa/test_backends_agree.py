"""Both machines give the same bits for every register-only row: corner values, random values, partial masks."""

import random
import zlib

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.isa.table import ROWS, Arg, Row
from fasim.numerics.lanes import width
from fasim.warp.handlers import FULL_MASK, HandlerKey
from fasim.warp.jit import engine
from tests.harness import run_row

#: values of immediates by the name of the operand; others take DEFAULT
IMMEDIATES = {"arch": (80, 90), "lut": (0x96, 0xE8, 0x2C), "mask": (FULL_MASK, 0x0FF0)}
DEFAULT = (0x5410, 31, 0)
#: rows of more source registers (matrix fragments, slow on the reference machine) take only one of the choices
WIDE = 8
MASKS = (FULL_MASK, 0x5A5AFF00, 0x00000400)
FLOATS = {
    32: (
        0,
        0x80000000,
        0x3F800000,
        0xBF800000,
        1,
        0x80000001,
        0x007FFFFF,
        0x00800000,
        0x7F7FFFFF,
        0x7F800000,
        0xFF800000,
        0x7FC00000,
        0xFFC00001,
    ),
    64: (0, 1 << 63, 0x3FF << 52, 0xBFF << 52, 1, 1 << 63 | 1, 0x000F << 48, 1 << 52, 0x7FEF << 48, 0x7FF << 52, 0xFFF << 52, 0x7FF8 << 48),
    16: (0, 0x8000, 0x3C00, 0xBC00, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0x7C00, 0xFC00, 0x7E00, 0xFE01, 0x3F80, 0x7F80, 0xFF80),
}


def register_rows() -> dict[str, list[Row]]:
    """Rows that only touch registers, by the module of their semantics; of rows with one meaning (.u32 and .b32) the first."""
    found: dict[str, list[Row]] = {}
    seen = set()
    for row in ROWS.values():
        if row.kind not in ("lanes", "collective") or row.semantics is None:
            continue
        types = tuple((a.name, a.type_, a.count) for a in row.sources), tuple((a.type_.replace("s", "u"), a.count) for a in row.dests)
        if (row.semantics, types) in seen:
            continue
        seen.add((row.semantics, types))
        found.setdefault(row.semantics.__module__, []).append(row)
    return found


BY_MODULE = register_rows()


def immediates(row: Row) -> list[tuple[int, ...]]:
    """A few choices for all immediates of a row."""
    choices = [IMMEDIATES.get(a.name, DEFAULT) for a in row.sources if a.type_ == "imm"]
    every = [tuple(c[i % len(c)] for c in choices) for i in range(max((len(c) for c in choices), default=1))]
    if sum(max(a.count, 1) for a in row.sources) > WIDE:
        return [every[zlib.crc32(row.name.encode()) % len(every)]]
    return every


def values(arg: Arg, rng: random.Random) -> list[int]:
    """32 patterns: corners of integers and floats, small numbers, powers of two, random bits."""
    if arg.type_ == "pred":
        return [rng.getrandbits(1) for _ in range(32)]
    n = width(arg.type_)
    top = 1 << (n - 1)
    corners = [0, 1, 2, 3, 31, 32, 33, 63, 64, top, top - 1, 2 * top - 1, 2 * top - 2, top | 1]
    if n >= 16:
        corners += FLOATS[n]
    if n == 32:
        corners += [a | b << 16 for a, b in zip(FLOATS[16], reversed(FLOATS[16]))]
    result = []
    for _ in range(32):
        kind = rng.randrange(4)
        if kind < 2:
            result.append(rng.choice(corners) & (2 * top - 1))
        else:
            result.append(rng.getrandbits(n) >> (rng.randrange(n) if kind == 2 else 0))
    return result


def differences(row: Row) -> list[str]:
    """What the two machines disagree on."""
    rng = random.Random(zlib.crc32(row.name.encode()))
    sources = [a for a in row.sources for _ in range(max(a.count, 1)) if a.type_ != "imm" and a.name != "active"]
    before = [rng.getrandbits(1) if d.type_ == "pred" else rng.getrandbits(16) for d in row.dests for _ in range(max(d.count, 1))]
    choices = immediates(row)
    rounds = choices * 2 if len(choices) == 1 and len(sources) <= WIDE else choices
    wrong = []
    for i, choice in enumerate(rounds):
        inputs = [values(a, rng) for a in sources]
        if len(sources) > 1 and i:  # equal operands are rare otherwise
            inputs[1][:6] = [v & ((1 << width(sources[1].type_)) - 1) for v in inputs[0][:6]]
        mask = MASKS[i % len(MASKS)]
        slow, fast = (
            run_row(row.name, [np.array(x, np.uint64) for x in inputs], immediates=choice, mask=mask, backend=backend, dests=before)
            for backend in ("reference", "jit")
        )
        for number, (x, y) in enumerate(zip(slow, fast, strict=True)):
            for lane in np.flatnonzero(x != y)[:1]:
                operands = [hex(v[lane]) for v in inputs]
                wrong.append(f"{row.name} {choice} {operands} lane {lane} dest {number}: reference {x[lane]!r}, jit {y[lane]!r}")
    return wrong


@pytest.mark.parametrize("module", BY_MODULE)
def test_backends_agree(module):
    rows = BY_MODULE[module]
    engine().load(HandlerKey(row.name, choice) for row in rows for choice in immediates(row))
    wrong = [line for row in rows for line in differences(row)]
    assert not wrong, f"{len(wrong)} differences, e.g.\n" + "\n".join(wrong[:20])
