"""Compare rows of the instruction table with plain Python functions of one lane's integers."""

import random
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fasim.isa.table import ROWS
from fasim.numerics.lanes import width
from tests.harness import run_row

Oracle = Callable[..., Any]


def signed(x: int, n: int) -> int:
    """An n-bit pattern as a two's complement number."""
    x &= (1 << n) - 1
    return x - (1 << n) if x >> (n - 1) else x


def number(pattern: int, type_: str) -> int:
    """A pattern as the number that its type (u8 ... s64) makes of it."""
    n = int(type_[1:])
    return signed(pattern, n) if type_[0] == "s" else pattern & ((1 << n) - 1)


def rows_of(*modules: str) -> set[str]:
    """Names of the rows whose instruction module is one of these."""
    found = {name for name, row in ROWS.items() if row.semantics and row.semantics.__module__.rsplit(".", 1)[-1] in modules}
    assert found
    return found


def sample(n: int, rng: random.Random) -> int:
    """A pattern of n bits: often a corner, often small."""
    top = 1 << (n - 1)
    if rng.random() < 0.4:
        return rng.choice((0, 1, 2, top, top - 1, top + 1, 2 * top - 1, 2 * top - 2, n, n - 1, n + 1, 31, 32, 33)) & (2 * top - 1)
    return rng.getrandbits(n) >> rng.choice((0, 0, rng.randrange(n)))


def disagreements(name: str, oracle: Oracle, *, immediates: tuple[int, ...] = (), rounds: int = 4) -> list[str]:
    """Lanes in which the compiled row is not what `oracle(source patterns, immediates)` says (one integer a destination)."""
    row = ROWS[name]
    rng = random.Random(zlib.crc32(name.encode()))
    types = [a.type_ for a in row.sources for _ in range(max(a.count, 1)) if a.type_ != "imm" and a.name != "active"]
    masks = [1 if a.type_ == "pred" else (1 << width(a.type_)) - 1 for a in row.dests for _ in range(max(a.count, 1))]
    wrong = []
    for _ in range(rounds):
        inputs = [[sample(width(t), rng) if t != "pred" else rng.getrandbits(1) for _ in range(32)] for t in types]
        got = run_row(name, [np.array(x, np.uint64) for x in inputs], immediates=immediates)
        for lane in range(32):
            operands = [x[lane] for x in inputs]
            want = oracle(*operands, *immediates)
            for value, target, mask in zip(got, want if isinstance(want, tuple) else (want,), masks, strict=True):
                if int(value[lane]) != int(target) & mask:
                    wrong.append(
                        f"{name} {[hex(x) for x in operands]} {immediates}: {int(value[lane]):#x} instead of {int(target) & mask:#x}"
                    )
    return wrong


def check_all(oracles: dict[str, Oracle], covers: set[str], immediates: dict[str, list[tuple[int, ...]]] | None = None) -> None:
    """Check every oracle; each row of `covers` must have one."""
    assert not covers - set(oracles), f"rows without an oracle: {sorted(covers - set(oracles))[:20]}"
    wrong = []
    for name, oracle in oracles.items():
        for choice in (immediates or {}).get(name, [()]):
            wrong += disagreements(name, oracle, immediates=choice)
    assert not wrong, f"{len(wrong)} differences, e.g.\n" + "\n".join(wrong[:20])
