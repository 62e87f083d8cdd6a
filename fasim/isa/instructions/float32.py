"""Single-precision arithmetic: add, sub, mul, fma, mad, div, rcp, sqrt, min, max, neg, abs, copysign, testp and pairs of f32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fasim.isa.table import op
from fasim.numerics import ieee
from fasim.numerics.lanes import Lanes, bits, cast, const, where

_DOC = "floating-point-instructions-"
NAN, INF, ONE, TWO, MINUS_ONE, MAX = 0x7FFFFFFF, 0x7F800000, 0x3F800000, 0x40000000, 0xBF800000, 0x7F7FFFFF
TINY, MINUS_TINY, MINUS_ZERO, LEAST_NORMAL = 1, 0x80000001, 0x80000000, 0x00800000
ULP_HALF = 0x33800000  # 2**-24: half of the last place of 1.0

Semantics = Callable[..., Lanes]


def modified(function: Semantics, ftz: bool, sat: bool, larger: Semantics | None = None) -> Semantics:
    """A semantics with its f32 arguments and result flushed (`.ftz`), then clamped (`.sat`).

    larger: the function's result times 2**48, if the result can be subnormal and inexact.
    """

    def semantics(*operands: Lanes) -> Lanes:
        if not ftz:
            result = function(*operands)
        else:
            flushed = [ieee.flush(x) for x in operands]
            result = function(*flushed)
            result = ieee.flush_underflow(result, larger(*flushed)) if larger else ieee.flush(result)
        return ieee.saturate(result) if sat else result

    return semantics


SCALE = 2.0**48


def _larger(name: str, rounding: str) -> Semantics | None:
    """The function `name`, 2**48 times larger; arguments that this makes overflow do not belong to small results."""
    if name == "mul":
        return lambda a, b: ieee.mul(a * SCALE, b, rounding)
    if name == "fma":
        return lambda a, b, c: ieee.fma_rounded(a * SCALE, b, c * SCALE, rounding)
    if name == "div":
        return lambda a, b: ieee.div(a * SCALE, b, rounding)
    if name == "rcp":
        return lambda a: ieee.div(const(SCALE, like=a), a, rounding)
    return None


def _rounded(function: Callable[..., Lanes], rounding: str) -> Semantics:
    return lambda *operands: function(*operands, rounding)


_CASES: dict[str, dict[str, Sequence[Any]]] = {
    "add": {
        "rn": [((ONE, ULP_HALF), ONE), ((ONE, MINUS_ONE), 0), ((MAX, MAX), INF), ((INF, 0xFF800000), NAN), ((0x7F800001, ONE), NAN)],
        "rz": [((MAX, MAX), MAX), ((ONE, MINUS_TINY), 0x3F7FFFFF), ((MINUS_ONE, TINY), 0xBF7FFFFF), ((MINUS_ZERO, 0), 0)],
        "rm": [
            ((ONE, MINUS_ONE), MINUS_ZERO),
            ((MAX, MAX), MAX),
            ((ONE, MINUS_TINY), 0x3F7FFFFF),
            ((0, 0), 0),
            ((0, MINUS_ZERO), MINUS_ZERO),
        ],
        "rp": [((ONE, TINY), 0x3F800001), ((ONE, MINUS_ONE), 0), ((0xFF7FFFFF, 0xFF7FFFFF), 0xFF7FFFFF)],
    },
    "sub": {
        "rn": [((ONE, ONE), 0), ((MINUS_ZERO, 0), MINUS_ZERO), ((INF, INF), NAN)],
        "rz": [((ONE, TINY), 0x3F7FFFFF)],
        "rm": [((ONE, ONE), MINUS_ZERO)],
        "rp": [((ONE, MINUS_TINY), 0x3F800001)],
    },
    "mul": {
        "rn": [((0x3F800001, 0x3F800001), 0x3F800002), ((0, INF), NAN), ((TINY, 0x3F000000), 0), ((MINUS_TINY, 0x3F000000), MINUS_ZERO)],
        "rz": [((MAX, TWO), MAX), ((0x007FFFFF, 0x3F7FFFFF), 0x007FFFFE)],
        "rm": [((MINUS_TINY, 0x3F000000), MINUS_TINY), ((MAX, TWO), MAX)],
        "rp": [((TINY, 0x3F000000), TINY), ((0xFF7FFFFF, TWO), 0xFF7FFFFF)],
    },
    "fma": {
        # (1 + 2**-23)**2 - (1 + 2**-22) is 2**-46: lost if the product were rounded
        "rn": [((0x3F800001, 0x3F800001, 0xBF800002), 0x28800000), ((MAX, TWO, 0xFF7FFFFF), MAX), ((INF, 0, ONE), NAN)],
        "rz": [((ONE, ONE, MINUS_TINY), 0x3F7FFFFF), ((MAX, MAX, 0), MAX)],
        "rm": [((ONE, ONE, MINUS_ONE), MINUS_ZERO), ((TINY, 0x80000001, 0), MINUS_TINY), ((ONE, MINUS_ZERO, 0), MINUS_ZERO)],
        "rp": [((TINY, TINY, ONE), 0x3F800001), ((TINY, TINY, 0), TINY)],
    },
    "div": {
        "rn": [((ONE, 0x40400000), 0x3EAAAAAB), ((ONE, 0), INF), ((0, 0), NAN), ((INF, INF), NAN), ((ONE, 0xFF800000), MINUS_ZERO)],
        "rz": [((ONE, 0x40400000), 0x3EAAAAAA), ((MAX, 0x3F000000), MAX), ((ONE, MINUS_ZERO), 0xFF800000)],
        "rm": [((MINUS_ONE, 0x40400000), 0xBEAAAAAB), ((MINUS_TINY, TWO), MINUS_TINY)],
        "rp": [((ONE, 0x40400000), 0x3EAAAAAB), ((TINY, TWO), TINY), ((MINUS_TINY, TWO), MINUS_ZERO)],
    },
    "rcp": {
        "rn": [(0x40400000, 0x3EAAAAAB), (0, INF), (MINUS_ZERO, 0xFF800000), (TINY, INF)],
        "rz": [(0x40400000, 0x3EAAAAAA), (TINY, MAX)],
        "rm": [(0xC0400000, 0xBEAAAAAB)],
        "rp": [(0x40400000, 0x3EAAAAAB), (MINUS_TINY, 0xFF7FFFFF)],
    },
    "sqrt": {
        "rn": [(TWO, 0x3FB504F3), (0x40800000, TWO), (MINUS_ONE, NAN), (MINUS_ZERO, MINUS_ZERO), (INF, INF), (TINY, 0x1A3504F3)],
        "rz": [(TWO, 0x3FB504F3), (0x40400000, 0x3FDDB3D7)],
        "rm": [(TWO, 0x3FB504F3)],
        "rp": [(TWO, 0x3FB504F4), (0x40800000, TWO)],
    },
}
_OPERATIONS: dict[str, tuple[Callable[..., Lanes], str, bool]] = {
    # name: function, sources, .sat is legal
    "add": (ieee.add, "a:f32, b:f32", True),
    "sub": (ieee.sub, "a:f32, b:f32", True),
    "mul": (ieee.mul, "a:f32, b:f32", True),
    "fma": (ieee.fma_rounded, "a:f32, b:f32, c:f32", True),
    "div": (ieee.div, "a:f32, b:f32", False),
    "rcp": (ieee.rcp, "a:f32", False),
    "sqrt": (ieee.square_root, "a:f32", False),
}
_FTZ_CASES: dict[str, Sequence[Any]] = {
    "add": [((TINY, LEAST_NORMAL), LEAST_NORMAL), ((MINUS_TINY, MINUS_ZERO), MINUS_ZERO), ((0x00800001, 0x80800000), 0)],
    # 2**-126 (1 - 2**-24) is no subnormal, which would round it up, but is below 2**-126
    "mul": [((0x80800000, 0x3F000000), MINUS_ZERO), ((TINY, MAX), 0), ((LEAST_NORMAL, 0x3F7FFFFF), 0), ((MAX, MAX), INF)],
    "fma": [((ONE, TINY, ONE), ONE), ((LEAST_NORMAL, 0x3F000000, 0), 0)],
    "rcp": [(TINY, INF), (0x7F000000, 0)],
    "sqrt": [(MINUS_TINY, MINUS_ZERO)],
}
_SAT_CASES: dict[str, Sequence[Any]] = {
    "add": [((ONE, ONE), ONE), ((MINUS_ONE, 0), 0), ((NAN, ONE), 0), ((MINUS_ZERO, MINUS_ZERO), 0)],
    "fma": [((TWO, TWO, 0), ONE), ((INF, 0, 0), 0)],
}

for _name, (_function, _sources, _has_sat) in _OPERATIONS.items():
    for _rounding in ieee.ROUNDINGS:
        for _ftz in ("", ".ftz"):
            for _sat in ("", ".sat") if _has_sat else ("",):
                _names = [f"{_name}.{_rounding}{_ftz}{_sat}.f32"]
                if _name in ("add", "sub", "mul") and _rounding == "rn":
                    _names.append(f"{_name}{_ftz}{_sat}.f32")
                _cases: Sequence[Any] = ()
                if not _ftz and not _sat:
                    _cases = _CASES[_name][_rounding]
                elif _rounding == "rn" and not (_ftz and _sat):
                    _cases = (_FTZ_CASES if _ftz else _SAT_CASES).get(_name, ())
                _semantics = modified(_rounded(_function, _rounding), bool(_ftz), bool(_sat), _larger(_name, _rounding))
                op(_names, f"d:f32 = {_sources}", doc=f"{_DOC}{_name}", cases=_cases)(_semantics)
                if _name == "fma":
                    op(f"mad.{_rounding}{_ftz}{_sat}.f32", f"d:f32 = {_sources}", doc=f"{_DOC}mad")(_semantics)


@op("neg.f32", "d:f32 = a:f32", doc=f"{_DOC}neg", cases=[(ONE, MINUS_ONE), (0, MINUS_ZERO), (0xFFC00000, NAN), (TINY, MINUS_TINY)])
def neg(a: Lanes) -> Lanes:
    return ieee.canonical(-a)


@op("neg.ftz.f32", "d:f32 = a:f32", doc=f"{_DOC}neg", cases=[(TINY, MINUS_ZERO), (MINUS_TINY, 0), (ONE, MINUS_ONE)])
def neg_ftz(a: Lanes) -> Lanes:
    return neg(ieee.flush(a))


@op("abs.f32", "d:f32 = a:f32", doc=f"{_DOC}abs", cases=[(MINUS_ONE, ONE), (MINUS_ZERO, 0), (0xFFC00000, NAN), (MINUS_TINY, TINY)])
def absolute(a: Lanes) -> Lanes:
    return ieee.canonical(ieee.magnitude(a))


@op("abs.ftz.f32", "d:f32 = a:f32", doc=f"{_DOC}abs", cases=[(MINUS_TINY, 0), (MINUS_ONE, ONE)])
def absolute_ftz(a: Lanes) -> Lanes:
    return absolute(ieee.flush(a))


def extreme(name: str, nan: bool, xorsign: bool) -> Semantics:
    """`min` or `max` with the modifiers `.NaN` and `.xorsign.abs`."""
    function = ieee.minimum if name == "min" else ieee.maximum

    def semantics(a: Lanes, b: Lanes) -> Lanes:
        if not xorsign:
            return function(a, b, nan=nan)
        result = function(ieee.magnitude(a), ieee.magnitude(b), nan=nan)
        sign = (bits(a, "u32") ^ bits(b, "u32")) & 0x80000000
        return where(ieee.is_nan(result), result, bits(bits(result, "u32") | sign, "f32"))

    return semantics


_EXTREME_CASES: dict[tuple[str, bool, bool], Sequence[Any]] = {
    ("min", False, False): [((ONE, TWO), ONE), ((0, MINUS_ZERO), MINUS_ZERO), ((MINUS_ZERO, 0), MINUS_ZERO), ((0x7F800001, ONE), ONE)],
    ("max", False, False): [
        ((ONE, TWO), TWO),
        ((0, MINUS_ZERO), 0),
        ((MINUS_ZERO, 0), 0),
        ((ONE, 0xFFC00000), ONE),
        ((0xFFC00000, 0xFFC00000), NAN),
    ],
    ("min", True, False): [((ONE, 0xFFC00000), NAN), ((0xFFC00000, ONE), NAN), ((ONE, TWO), ONE)],
    ("max", True, False): [((ONE, 0xFFC00000), NAN), ((0xFFC00000, ONE), NAN), ((MINUS_ZERO, 0), 0)],
    ("min", False, True): [((MINUS_ONE, TWO), MINUS_ONE), ((0xC0000000, MINUS_ONE), ONE)],
    ("max", False, True): [((MINUS_ONE, TWO), 0xC0000000), ((NAN, MINUS_ONE), MINUS_ONE), ((NAN, 0xFFFFFFFF), NAN)],
}

for _name in ("min", "max"):
    for _ftz in ("", ".ftz"):
        for _nan in ("", ".NaN"):
            for _xor in ("", ".xorsign.abs"):
                op(
                    f"{_name}{_ftz}{_nan}{_xor}.f32",
                    "d:f32 = a:f32, b:f32",
                    doc=f"{_DOC}{_name}",
                    cases=() if _ftz else _EXTREME_CASES.get((_name, bool(_nan), bool(_xor)), ()),
                    min_arch=86 if _xor else 80 if _nan else 0,
                )(modified(extreme(_name, bool(_nan), bool(_xor)), bool(_ftz), False))


@op(["copysign.f32"], "d:f32 = a:f32, b:f32", doc=f"{_DOC}copysign", cases=[((MINUS_ONE, TWO), 0xC0000000), ((ONE, MINUS_TINY), TINY)])
@op(["copysign.f64"], "d:f64 = a:f64, b:f64", doc=f"{_DOC}copysign", cases=[((1 << 63, 1), 1 << 63 | 1)])
def copysign(a: Lanes, b: Lanes) -> Lanes:
    return ieee.copy_sign(b, a)


def _least_normal(x: Lanes) -> float:
    return float.fromhex("0x1p-126") if x.type == "f32" else float.fromhex("0x1p-1022")


_PROPERTIES: dict[str, Callable[[Lanes], Lanes]] = {
    "finite": ieee.is_finite,
    "infinite": lambda x: ieee.magnitude(x) == float("inf"),
    "number": lambda x: ~ieee.is_nan(x),
    "notanumber": ieee.is_nan,
    "normal": lambda x: ieee.is_finite(x) & ((ieee.magnitude(x) >= _least_normal(x)) | (x == 0.0)),  # zero counts as normal
    "subnormal": lambda x: (ieee.magnitude(x) < _least_normal(x)) & (x != 0.0),
}
_PROPERTY_CASES = {
    "finite": [(INF, False), (NAN, False), (TINY, True), (0, True)],
    "infinite": [(0xFF800000, True), (NAN, False), (MAX, False)],
    "number": [(INF, True), (NAN, False)],
    "notanumber": [(0x7F800001, True), (INF, False)],
    "normal": [(LEAST_NORMAL, True), (0x007FFFFF, False), (MINUS_ZERO, True), (INF, False)],
    "subnormal": [(TINY, True), (0x807FFFFF, True), (0, False), (LEAST_NORMAL, False), (NAN, False)],
}
for _name, _test in _PROPERTIES.items():
    op(f"testp.{_name}.f32", "p:pred = a:f32", doc=f"{_DOC}testp", cases=_PROPERTY_CASES[_name])(_test)
    op(f"testp.{_name}.f64", "p:pred = a:f64", doc=f"{_DOC}testp")(_test)


def _halves(x: Lanes) -> tuple[Lanes, Lanes]:
    return bits(cast(x, "u32"), "f32"), bits(cast(x >> 32, "u32"), "f32")


def _paired(function: Semantics) -> Semantics:
    def semantics(*operands: Lanes) -> Lanes:
        low, high = (bits(function(*half), "u32") for half in zip(*(_halves(x) for x in operands)))
        return cast(low, "u64") | (cast(high, "u64") << 32)

    return semantics


for _name in ("add", "sub", "mul", "fma"):
    _function, _sources, _ = _OPERATIONS[_name]
    for _rounding in ieee.ROUNDINGS:
        for _ftz in ("", ".ftz"):
            _names = [f"{_name}.{_rounding}{_ftz}.f32x2"]
            if _name != "fma" and _rounding == "rn":
                _names.append(f"{_name}{_ftz}.f32x2")
            _cases = [((ONE << 32 | TWO, TWO << 32 | ONE), 0x40400000_40400000)] if _name == "add" and not _ftz else ()
            op(_names, f"d:b64 = {_sources.replace('f32', 'b64')}", doc=f"{_DOC}{_name}", cases=_cases, min_arch=100)(
                _paired(modified(_rounded(_function, _rounding), bool(_ftz), False, _larger(_name, _rounding)))
            )
