"""Double-precision arithmetic: add, sub, mul, fma, mad, div, rcp, sqrt, min, max, neg, abs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.table import op
from fasim.numerics import ieee
from fasim.numerics.lanes import Lanes

_DOC = "floating-point-instructions-"
ONE, TWO, THREE, INF, MAX = 0x3FF << 52, 1 << 62, 0x4008 << 48, 0x7FF << 52, 0x7FEFFFFFFFFFFFFF
SIGN, TINY, LEAST_NORMAL, NAN = 1 << 63, 1, 1 << 52, 0xFFF8 << 48
MINUS_ONE, MINUS_TINY, MINUS_MAX = SIGN | ONE, SIGN | 1, SIGN | MAX
BELOW_ONE, ABOVE_ONE, HALF = ONE - 1, ONE + 1, 0x3FE << 52

_OPERATIONS: dict[str, tuple[Callable[..., Lanes], str, dict[str, list[Any]]]] = {
    "add": (
        ieee.add,
        "a:f64, b:f64",
        {
            "rn": [((ONE, 0x3CA << 52), ONE), ((ABOVE_ONE, 0x3CA << 52), ONE + 2), ((MAX, MAX), INF), ((INF, SIGN | INF), NAN)],
            "rz": [((ONE, MINUS_TINY), BELOW_ONE), ((MAX, MAX), MAX), ((ONE, MINUS_ONE), 0)],
            "rm": [((ONE, MINUS_ONE), SIGN), ((MINUS_ONE, MINUS_TINY), MINUS_ONE + 1), ((0, 0), 0), ((MAX, TINY), MAX)],
            "rp": [((ONE, TINY), ABOVE_ONE), ((MAX, TINY), INF), ((MINUS_MAX, MINUS_MAX), MINUS_MAX)],
        },
    ),
    "sub": (
        ieee.sub,
        "a:f64, b:f64",
        {
            "rn": [((INF, INF), NAN), ((SIGN, 0), SIGN)],
            "rz": [((ONE, TINY), BELOW_ONE)],
            "rm": [((ONE, ONE), SIGN)],
            "rp": [((ONE, ONE), 0)],
        },
    ),
    "mul": (
        ieee.mul,
        "a:f64, b:f64",
        {
            "rn": [((ABOVE_ONE, ABOVE_ONE), ONE + 2), ((0, INF), NAN), ((MAX, TWO), INF)],
            "rz": [((MAX, TWO), MAX), ((ABOVE_ONE, BELOW_ONE), ONE), ((TINY, TINY), 0)],
            "rm": [((TINY, MINUS_TINY), MINUS_TINY), ((0, MINUS_ONE), SIGN), ((INF, TWO), INF)],
            "rp": [((TINY, HALF), TINY), ((MINUS_MAX, TWO), MINUS_MAX), ((TINY, MINUS_TINY), SIGN)],
        },
    ),
    "fma": (
        ieee.fma_rounded,
        "a:f64, b:f64, c:f64",
        {
            # (1 + 2**-52)**2 - (1 + 2**-51) = 2**-104
            "rn": [((ABOVE_ONE, ABOVE_ONE, SIGN | (ONE + 2)), 0x397 << 52), ((MAX, TWO, MINUS_MAX), MAX)],
            "rz": [((ONE, ONE, MINUS_TINY), BELOW_ONE), ((MAX, MAX, 0), MAX), ((TINY, TINY, MINUS_TINY), SIGN)],
            "rm": [((ONE, ONE, MINUS_ONE), SIGN), ((TINY, TINY, MINUS_TINY), MINUS_TINY), ((0, MINUS_ONE, 0), SIGN)],
            "rp": [((TINY, TINY, ONE), ABOVE_ONE), ((TINY, TINY, MINUS_TINY), SIGN), ((TINY, TINY, 0), TINY)],
        },
    ),
    "div": (
        ieee.div,
        "a:f64, b:f64",
        {
            "rn": [((ONE, THREE), 0x3FD5555555555555), ((ONE, 0), INF), ((0, 0), NAN)],
            "rz": [((TWO, THREE), 0x3FE5555555555555), ((MAX, HALF), MAX), ((TINY, MAX), 0)],
            "rm": [((MINUS_ONE, THREE), SIGN | 0x3FD5555555555556), ((MINUS_TINY, MAX), MINUS_TINY), ((ONE, SIGN), SIGN | INF)],
            "rp": [((ONE, THREE), 0x3FD5555555555556), ((TINY, TWO), TINY), ((MAX, TINY), INF)],
        },
    ),
    "rcp": (
        ieee.rcp,
        "a:f64",
        {
            "rn": [(THREE, 0x3FD5555555555555), (SIGN, SIGN | INF)],
            "rz": [(TINY, MAX)],
            "rm": [(MAX, 0x0004 << 48)],
            "rp": [(MAX, 0x0004000000000001)],
        },
    ),
    "sqrt": (
        ieee.square_root,
        "a:f64",
        {
            "rn": [(TWO, 0x3FF6A09E667F3BCD), (MINUS_ONE, NAN), (SIGN, SIGN), (TINY, 0x1E6 << 52)],
            "rz": [(TWO, 0x3FF6A09E667F3BCC), (0x4010 << 48, TWO)],
            "rm": [(TWO, 0x3FF6A09E667F3BCC)],
            "rp": [(TWO, 0x3FF6A09E667F3BCD), (2, 0x1E66A09E667F3BCD)],
        },
    ),
}


def _rounded(function: Callable[..., Lanes], rounding: str) -> Callable[..., Lanes]:
    return lambda *operands: function(*operands, rounding)


for _name, (_function, _sources, _cases) in _OPERATIONS.items():
    for _rounding in ieee.ROUNDINGS:
        _names = [f"{_name}.{_rounding}.f64"]
        if _name in ("add", "sub", "mul") and _rounding == "rn":
            _names.append(f"{_name}.f64")
        _semantics = _rounded(_function, _rounding)
        op(_names, f"d:f64 = {_sources}", doc=_DOC + _name, cases=_cases[_rounding])(_semantics)
        if _name == "fma":
            op(f"mad.{_rounding}.f64", f"d:f64 = {_sources}", doc=_DOC + "mad")(_semantics)


@op("neg.f64", "d:f64 = a:f64", doc=_DOC + "neg", cases=[(ONE, MINUS_ONE), (0, SIGN), (TINY, MINUS_TINY)])
def neg(a: Lanes) -> Lanes:
    return ieee.canonical(-a, a)  # a NaN keeps its sign


@op("abs.f64", "d:f64 = a:f64", doc=_DOC + "abs", cases=[(MINUS_ONE, ONE), (SIGN, 0), (MINUS_TINY, TINY)])
def absolute(a: Lanes) -> Lanes:
    size = ieee.magnitude(a)  # but not of a NaN
    return ieee.canonical(size, a)


@op("min.f64", "d:f64 = a:f64, b:f64", doc=_DOC + "min", cases=[((ONE, TWO), ONE), ((0, SIGN), SIGN), ((SIGN, 0), SIGN), ((NAN, ONE), ONE)])
def minimum(a: Lanes, b: Lanes) -> Lanes:
    return ieee.minimum(a, b)


@op("max.f64", "d:f64 = a:f64, b:f64", doc=_DOC + "max", cases=[((ONE, TWO), TWO), ((0, SIGN), 0), ((SIGN, 0), 0), ((ONE, NAN), ONE)])
def maximum(a: Lanes, b: Lanes) -> Lanes:
    return ieee.maximum(a, b)
