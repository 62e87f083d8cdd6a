"""Integer instructions of machine code on register pairs, as sm_100 and later have them: IADD.64, SEL.64, ISETP.U64, IMNMX.S64.

Source: what ptxas 13.0 makes of 64-bit PTX.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.instructions.compare import BOOLEAN
from fasim.isa.sass.declare import INVERTED, NEGATED, sass
from fasim.isa.sass.integer import COMPARE
from fasim.numerics.lanes import Lanes, bits, cast, where

LOW, ONES, TOP = 0xFFFFFFFF, (1 << 64) - 1, 1 << 63


@sass("MOV.64", "d:b64 = a:b64", cases=[(1 << 40, 1 << 40)])
def mov_64(a: Lanes) -> Lanes:
    return a


@sass("SEL.64", "d:b64 = a:b64, b:b64, p:pred", cases=[((1 << 40, 2, 1), 1 << 40), ((1, ONES, 0), ONES)])
def sel_64(a: Lanes, b: Lanes, p: Lanes) -> Lanes:
    return where(p, a, b)


# --- sums ----------------------------------------------------------------------------------------------------------------------


@sass("IADD.64", "d:b64 = a:b64, b:b64", cases=[((LOW, 1), LOW + 1)])
def iadd_64(a: Lanes, b: Lanes) -> Lanes:
    return a + b


@sass(
    "IADD.64:carry",
    "d:b64, p:pred = a:b64, b:b64, x:pred",
    raw=True,
    cases=[((ONES, 1, 0), (0, 1)), ((ONES, ONES, 1), (ONES, 1)), ((ONES - 1, 1, 0), (ONES, 0)), ((ONES, 0, 1), (0, 1))],
)
def iadd_64_carry(a: Lanes, b: Lanes, x: Lanes, signs: int) -> tuple[Lanes, Lanes]:
    ones = cast(x, "u64")
    operands = []
    for i, value in enumerate((a, b)):
        sign = signs >> 4 * i & 15
        operands.append(~value if sign & (NEGATED | INVERTED) else value)
        ones = ones + 1 if sign & NEGATED else ones
    first = operands[0] + operands[1]
    total = first + ones
    return total, (first < operands[0]) | (total < first)


@sass("IADD3.64", "d:b64, p:pred, q:pred = a:b64, b:b64, c:b64", cases=[((LOW, 1, 1), (LOW + 2, 0, 0)), ((TOP, TOP, 0), (0, 1, 0))])
def iadd3_64(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    first = a + b
    total = first + c
    one, two = first < a, total < first
    return total, one | two, one & two


# --- comparisons -----------------------------------------------------------------------------------------------------------------


def _isetp(name: str, boolean: str, signed: bool) -> Callable[..., Any]:
    combine, compare = BOOLEAN[boolean], COMPARE[name]

    def semantics(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
        found = compare(bits(a, "s64"), bits(b, "s64")) if signed else compare(a, b)
        return combine(found, c), combine(~found, c)

    return semantics


#: results for a pair of which the first is the larger unsigned, the second the larger signed number
_TOP_AND_ONE = {"LT": 0, "LE": 0, "GT": 1, "GE": 1, "EQ": 0, "NE": 1}
for _name in COMPARE:
    for _type, _signed in (("S64", True), ("U64", False)):
        for _boolean in BOOLEAN:
            _found = _TOP_AND_ONE[_name] ^ (_signed and _name not in ("EQ", "NE"))
            _cases = [((TOP, 1, 1), (_found, 1 - _found))] if _boolean == "and" else []
            sass(f"ISETP.{_name}.{_type}.{_boolean.upper()}", "p:pred, q:pred = a:b64, b:b64, c:pred", cases=_cases)(
                _isetp(_name, _boolean, _signed)
            )


def _imnmx(signed: bool) -> Callable[..., Any]:
    def semantics(a: Lanes, b: Lanes, least: Lanes) -> Lanes:
        x, y = (bits(a, "s64"), bits(b, "s64")) if signed else (a, b)
        return bits(where((x < y) ^ ~least, x, y), "u64")

    return semantics


for _type, _signed in (("S64", True), ("U64", False)):
    sass(
        f"IMNMX.{_type}",
        "d:b64 = a:b64, b:b64, least:pred",
        cases=[((TOP, 1, 1), TOP if _signed else 1), ((TOP, 1, 0), 1 if _signed else TOP)],
    )(_imnmx(_signed))
