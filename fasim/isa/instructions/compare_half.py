"""Comparisons of f16, bf16 and their pairs: setp and set."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from fasim.isa.instructions.compare import BOOLEAN, EQUALITY, FLOAT, ORDER, TRUTH, Compare, set_
from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, bits, cast, const, where

DOC = "half-precision-comparison-instructions-"
ONE = {"f16": 0x3C00, "bf16": 0x3F80}
INFINITY = {"f16": 0x7C00, "bf16": 0x7F80}


def ordered(a: Lanes, infinity: int, ftz: bool) -> tuple[Lanes, Lanes]:
    """(integer that orders as the 16-bit float does, is NaN): sign and magnitude as two's complement, so that both zeros are 0."""
    magnitude = a & 0x7FFF
    unordered = magnitude > infinity
    if ftz:
        magnitude = where(magnitude < 0x400, 0, magnitude)
    signed = bits(magnitude, "s16")
    return where((a & 0x8000) != 0, -signed, signed), unordered


@functools.cache
def half_comparison(name: str, type_: str, ftz: bool) -> Compare:
    """The comparison `name` of two 16-bit floats, given as u16 bits."""

    def compare(a: Lanes, b: Lanes) -> Lanes:
        key_a, nan_a = ordered(a, INFINITY[type_], ftz)
        key_b, nan_b = ordered(b, INFINITY[type_], ftz)
        nan = nan_a | nan_b
        if name == "nan":
            return nan
        if name == "num":
            return ~nan
        if name.endswith("u"):
            return (EQUALITY | ORDER)[name[:2]](key_a, key_b) | nan
        return (EQUALITY | ORDER)[name](key_a, key_b) & ~nan

    return compare


@functools.cache
def setp_one(compare: Compare, combine: Compare | None = None) -> Callable[..., Lanes]:
    """The comparison into one predicate: a scalar setp of 16-bit floats has no second one."""
    return lambda a, b, *c: combine(compare(a, b), c[0]) if combine else compare(a, b)


def both(function: Callable[..., Lanes], a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """`function` on the low and on the high halves."""
    return function(cast(a, "u16"), cast(b, "u16")), function(cast(a >> 16, "u16"), cast(b >> 16, "u16"))


@functools.cache
def setp_pair(compare: Compare, combine: Compare | None = None) -> Callable[..., tuple[Lanes, Lanes]]:
    """p from the low halves, q from the high ones."""

    def semantics(a: Lanes, b: Lanes, *c: Lanes) -> tuple[Lanes, Lanes]:
        low, high = both(compare, a, b)
        return (combine(low, c[0]), combine(high, c[0])) if combine else (low, high)

    return semantics


@functools.cache
def set_pair(compare: Compare, true: int, combine: Compare | None = None) -> Callable[..., Lanes]:
    """`true` in each half where its comparison holds, else 0."""

    def semantics(a: Lanes, b: Lanes, *c: Lanes) -> Lanes:
        low, high = setp_pair(compare, combine)(a, b, *c)
        return where(low, const(true, like=a), 0) | where(high, const(true << 16, like=a), 0)

    return semantics


#: value of "true" by destination type
_INTEGERS = {"u32": 0xFFFFFFFF, "s32": 0xFFFFFFFF, "u16": 0xFFFF, "s16": 0xFFFF}

_FLOATS = {"f16": {"f16": ONE["f16"], "bf16": ONE["bf16"]}, "bf16": {"bf16": ONE["bf16"]}}


def _rows(name: str, type_: str, ftz: bool, combine: Compare | None) -> Iterator[tuple[str, str, str, Callable[..., Any], list[Any]]]:
    """(instruction, types, signature, semantics, cases without a BoolOp) for all rows of one comparison of one type and its pairs."""
    compare = half_comparison(name, type_, ftz)
    one = ONE[type_]
    two = one + (0x400 if type_ == "f16" else 0x80)
    holds = [truth == "1" for truth in TRUTH[name]]
    cases = [((one, two), holds[0]), ((0x8000, 0), holds[1]), ((two, one), holds[2]), ((0x7FFF, one), holds[3])]
    cases.append(((0x0001, 0x8001), holds[1 if ftz else 2]))
    pairs = [((x << 16 | one, y << 16 | two), (holds[0], t)) for (x, y), t in cases]
    yield "setp", type_, "p:pred = a:b16, b:b16", setp_one(compare, combine), cases
    yield "setp", f"{type_}x2", "p:pred, q:pred = a:b32, b:b32", setp_pair(compare, combine), pairs
    for d, true in (_INTEGERS | _FLOATS[type_]).items():
        register = "u32" if d[1:] == "32" else "u16"
        semantics = set_(compare, register, true, combine)
        yield "set", f"{d}.{type_}", f"d:{register} = a:b16, b:b16", semantics, [(i, true * t) for i, t in cases]
    for d, true in (("u32", 0xFFFF), ("s32", 0xFFFF), (f"{type_}x2", one)):
        in_pairs = [(i, true * low | true * high << 16) for i, (low, high) in pairs]
        yield "set", f"{d}.{type_}x2", "d:b32 = a:b32, b:b32", set_pair(compare, true, combine), in_pairs


for _name in FLOAT:
    for _t, _ftz in (("f16", ""), ("f16", ".ftz"), ("bf16", "")):
        for _boolean, _combine in (("", None), *BOOLEAN.items()):
            for _instruction, _types, _signature, _semantics, _cases in _rows(_name, _t, bool(_ftz), _combine):
                _bf16 = "bf16" in _types
                if _bf16 and _ftz:
                    continue
                op(
                    f"{_instruction}.{_name}{_boolean and '.'}{_boolean}{_ftz}.{_types}",
                    _signature + (", c:pred" if _boolean else ""),
                    doc=DOC + _instruction,
                    min_arch=90 if _bf16 else 53,
                    cases=[] if _boolean else _cases,
                )(_semantics)
