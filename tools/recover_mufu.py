"""Recover the tables of `fasim/numerics/mufu_rom.py` from exhaustive sweeps, and print or check the module.

    python tools/recover_mufu.py [--check] [DIRECTORY of mufu_OP.npz]

For every segment, B and C are tried near the derivatives of the function. Each sample then puts an interval on the rest of the sum,
A and the constant; the intersection over the segment is empty for all (B, C) but one, and holds one A.
The form of the sum was found the same way: without the squarer's missing columns no segment has a solution.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from fasim.numerics.mufu import truncated_square  # noqa: E402

S64 = NDArray[np.int64]
ROM = ROOT / "fasim" / "numerics" / "mufu_rom.py"
WORDS_A_LINE = 8
REACH_B, REACH_C = 8, 12  # how far from the derivatives to look
HEAD = '''"""The coefficient tables of the MUFU unit, one 53-bit word a segment: A in bits 26 and up, B in bits 10 to 25, C in bits 0 to 9.

A segment is chosen by the leading fraction bits; RSQ and SQRT hold a second set for odd exponents. `mufu.py` says how the words are used.

Source: recovered from exhaustive sweeps of an H200 (all 2**23 fractions of a binade) by tools/recover_mufu.py; every word is the only
one that fits its sweep.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def _words(text: str) -> NDArray[np.uint64]:
    return np.array([int(word, 16) for word in text.split()], dtype=np.uint64)

'''


@dataclass(frozen=True)
class Form:
    """One function: sum = (A << a_shift) + constant + b_sign (B << b_shift) r + c_sign (C << c_shift) sq(r), result = sum >> shift."""

    name: str
    sweep: str
    exact: Callable[[Any], Any]
    first: tuple[int, ...]  # first argument of each set of segments
    base: int  # bit pattern of the result whose mantissa is 2**23
    bits: int
    column: int
    shift: int
    a_shift: int
    constant: int
    b_sign: int
    b_shift: tuple[int, ...]
    c_sign: int
    c_shift: int
    exact_first: bool = False  # the first result is exact by another rule
    fixed_bits: int = 0  # fraction bits of sum >> shift where a float with fewer bits is made of it afterwards


FORMS = [
    Form("EX2", "ex2", np.exp2, (0x3F800000,), 0x40000000, 17, 19, 15, 13, 0x17E2, 1, (0,), 1, 0),
    Form("RCP", "rcp", lambda x: 1 / x, (0x3F800000,), 0x3F000000, 16, 17, 15, 13, 0x7E7, -1, (0,), 1, 0),
    Form("RSQ", "rsq", lambda x: 1 / np.sqrt(x), (0x3F800000, 0x40000000), 0x3F000000, 17, 19, 16, 14, 0x3FFF, -1, (0, 0), 1, 2, True),
    Form("SQRT", "sqr", np.sqrt, (0x3F800000, 0x40000000), 0x3F800000, 17, 19, 17, 15, 0x7FFF, 1, (0, 1), -1, 1),
    Form("LG2", "lg2", np.log2, (0x3F800000,), 0, 17, 19, 2, 12, 0x345, 1, (0,), -1, 1, True, 36),
]


@numba.njit(cache=False)
def _intersect(low: S64, high: S64, square: S64, b: int, c: int) -> tuple[int, int]:
    """The interval left for the sum without its terms in r; empty as soon as it is known to be."""
    least, most = -(1 << 62), 1 << 62
    for step in (251, 1):  # a sparse pass first: it settles nearly all
        for r in range(0, low.size, step):
            terms = b * r + c * square[r]
            least = max(least, low[r] - terms)
            most = min(most, high[r] - terms)
            if least > most:
                return least, most
    return least, most


def _results(form: Form, first: int, directory: Path) -> S64:
    """The hardware's results for 2**23 arguments, which are all positive, as bit patterns."""
    with np.load(directory / f"mufu_{form.sweep}.npz") as data:
        distance = data[f"{first:08x}"].astype(np.int64)
    x = np.arange(first, first + (1 << 23), dtype=np.uint32).view(np.float32).astype(np.float64)
    result: S64 = form.exact(x).astype(np.float32).view(np.uint32).astype(np.int64) + distance
    return result


def _intervals(form: Form, result: S64) -> tuple[S64, S64]:
    """Between which sums (both included) each result comes about."""
    if form.fixed_bits:
        mantissa = (result & 0x7FFFFF) | 1 << 23
        cut = (result >> 23) - 127 + form.fixed_bits - 23
        low = np.where(cut > 0, mantissa << np.maximum(cut, 0), mantissa >> np.clip(-cut, 0, 62))
        width = np.left_shift(1, np.maximum(cut, 0))
    else:
        low = result - form.base + (1 << 23)
        width = np.ones_like(low)
    return low << form.shift, ((low + width) << form.shift) - 1


def _estimate(form: Form, first: int, segment: int) -> tuple[int, int]:
    """B and C of the best parabola, in the table's units."""
    binade = float(np.array([first], dtype=np.uint32).view(np.float32)[0])
    r = np.linspace(0, 1, 200)
    value = form.exact(binade * (1 + (segment + r) * 2.0 ** (form.bits - 23)))
    quadratic, linear, _ = np.polyfit(r, value, 2)
    if form.fixed_bits:
        unit_bits = form.fixed_bits + form.shift
    else:
        exponent = (form.base >> 23) - 127
        unit_bits = 23 - exponent + form.shift
    unit = 2.0**unit_bits
    set_ = form.first.index(first)
    b = form.b_sign * linear * unit / 2.0 ** (form.bits + form.b_shift[set_])
    c = form.c_sign * quadratic * unit / 2.0 ** (2 * form.bits - form.column + form.c_shift)
    return round(b), round(c)


def _solve(form: Form, directory: Path) -> list[int]:
    words = []
    square = truncated_square(np.arange(1 << form.bits, dtype=np.uint32), form.bits, form.column).astype(np.int64)
    for set_, first in enumerate(form.first):
        low, high = _intervals(form, _results(form, first, directory))
        if form.exact_first and set_ == 0:
            low[0], high[0] = 0, 1 << 61
        for segment in range(1 << (23 - form.bits)):
            part = slice(segment << form.bits, (segment + 1) << form.bits)
            near_b, near_c = _estimate(form, first, segment)
            found = []
            for b in range(near_b - REACH_B, near_b + REACH_B + 1):
                for c in range(near_c - REACH_C, near_c + REACH_C + 1):
                    signed_b, signed_c = form.b_sign * b << form.b_shift[set_], form.c_sign * c << form.c_shift
                    least, most = _intersect(low[part], high[part], square, signed_b, signed_c)
                    least_a = -((form.constant - least) >> form.a_shift)
                    most_a = (most - form.constant) >> form.a_shift
                    found += [(a, b, c) for a in range(least_a, most_a + 1)] if least <= most else []
            if len(found) != 1:
                raise SystemExit(f"{form.name} set {set_} segment {segment}: {len(found)} solutions: {found[:5]}")
            ((a, b, c),) = found
            words.append(a << 26 | b << 10 | c)
    return words


def _module(directory: Path) -> str:
    text = HEAD
    for form in FORMS:
        words = _solve(form, directory)
        print(f"{form.name}: {len(words)} segments, one solution each", file=sys.stderr)
        rows = [" ".join(f"{w:014x}" for w in words[i : i + WORDS_A_LINE]) for i in range(0, len(words), WORDS_A_LINE)]
        text += f'\n{form.name} = _words(\n    """\n' + "".join(f"    {row}\n" for row in rows) + '    """\n)\n'
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Recover the MUFU tables from exhaustive sweeps.")
    parser.add_argument("directory", type=Path, nargs="?", default=ROOT / "tests" / "numerics" / "data")
    parser.add_argument("--check", action="store_true", help="compare with the module in the repository, print nothing")
    arguments = parser.parse_args()
    text = _module(arguments.directory)
    if not arguments.check:
        print(text, end="")
    elif text != ROM.read_text():
        raise SystemExit(f"{ROM} is not what the sweeps give")


if __name__ == "__main__":
    main()
