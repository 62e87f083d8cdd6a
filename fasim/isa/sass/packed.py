"""Instructions of machine code on two halves of a register: HADD2, HMUL2, HFMA2, HMNMX2, HSETP2, HSET2, HADD2.F32.

An operand's signs are those of `declare`, but for the two higher bits: LOWER and UPPER take one half for both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.instructions.compare import BOOLEAN, FLOAT
from fasim.isa.instructions.compare_half import half_comparison
from fasim.isa.instructions.half import _TINY, modified
from fasim.isa.sass.declare import ABSOLUTE, NEGATED, SIGN_BITS, sass
from fasim.numerics import ieee, narrow
from fasim.numerics.lanes import Lanes, const, where

LOWER, UPPER = 4, 8
ONES = 0x3C003C00


def halves(value: Lanes, sign: int) -> tuple[Lanes, Lanes]:
    """Upper and lower half of an operand as its signs and its selection say."""
    if sign & ABSOLUTE:
        value = value & 0x7FFF7FFF
    if sign & NEGATED:
        value = value ^ 0x80008000
    high, low = narrow.high_half(value), narrow.low_half(value)
    return (low, low) if sign & LOWER else (high, high) if sign & UPPER else (high, low)


def _both(function: Callable[..., Lanes]) -> Callable[..., Lanes]:
    def semantics(*values: Any) -> Lanes:
        *operands, signs = values
        parts = [halves(value, signs >> SIGN_BITS * i & 15) for i, value in enumerate(operands)]
        return narrow.pack(function(*(high for high, _ in parts)), function(*(low for _, low in parts)))

    return semantics


def _of(function: Callable[..., Lanes], format_: narrow.Format) -> Callable[..., Lanes]:
    return lambda *operands: function(*operands, format_)


for _name, _key, _function, _count in (("HADD2", "add", narrow.add, 2), ("HMUL2", "mul", narrow.mul, 2), ("HFMA2", "fma", narrow.fma, 3)):
    _sources = ", ".join(f"{x}:b32" for x in "abc"[:_count])
    for _unit in ("", ".MMA") if _name == "HFMA2" else ("",):
        for _ftz in ("", ".FTZ"):
            for _mode in ("", ".SAT", ".RELU"):
                _semantics = modified(
                    _of(_function, narrow.F16), narrow.F16, bool(_ftz), _mode == ".SAT", _mode == ".RELU", _TINY.get(_key)
                )
                sass(f"{_name}{_unit}{_ftz}{_mode}", f"d:b32 = {_sources}", raw=True)(_both(_semantics))
        for _mode in ("", ".RELU"):
            _semantics = modified(_of(_function, narrow.BF16), narrow.BF16, relu=bool(_mode))
            sass(f"{_name}{_unit}.BF16_V2{_mode}", f"d:b32 = {_sources}", raw=True)(_both(_semantics))


def _f32_sum(format_: narrow.Format) -> Callable[..., Lanes]:
    def semantics(a: Lanes, b: Lanes, signs: int) -> Lanes:
        x, y = (narrow.widen(halves(value, signs >> SIGN_BITS * i & 15)[1], format_) for i, value in enumerate((a, b)))
        return ieee.add(x, y)

    return semantics


sass("HADD2.F32", "d:f32 = a:b32, b:b32", raw=True, cases=[((0x80008000, ONES), 0x3F800000)])(_f32_sum(narrow.F16))


def _hmnmx(format_: narrow.Format, nan: bool) -> Callable[..., Lanes]:
    def semantics(a: Lanes, b: Lanes, least: Lanes, signs: int) -> Lanes:
        parts = [halves(value, signs >> SIGN_BITS * i & 15) for i, value in enumerate((a, b))]
        made = []
        for half in (0, 1):
            x, y = parts[0][half], parts[1][half]
            low, high = (narrow.extreme(x, y, format_, largest=largest, nan=nan) for largest in (False, True))
            made.append(where(least, low, high))
        return narrow.pack(*made)

    return semantics


for _suffix, _format in (("", narrow.F16), (".BF16_V2", narrow.BF16)):
    for _nan in ("", ".NAN"):
        sass(f"HMNMX2{_suffix}{_nan}", "d:b32 = a:b32, b:b32, least:pred", raw=True)(_hmnmx(_format, bool(_nan)))


def _hsetp(name: str, boolean: str, format_: str) -> Callable[..., Any]:
    compare, combine = half_comparison(name, format_, False), BOOLEAN[boolean]

    def semantics(a: Lanes, b: Lanes, c: Lanes, signs: int) -> tuple[Lanes, Lanes]:
        parts = [halves(value, signs >> SIGN_BITS * i & 15) for i, value in enumerate((a, b))]
        return combine(compare(parts[0][1], parts[1][1]), c), combine(compare(parts[0][0], parts[1][0]), c)

    return semantics


for _name in FLOAT:
    for _boolean in BOOLEAN:
        for _suffix, _format_name in (("", "f16"), (".BF16_V2", "bf16")):
            sass(f"HSETP2{_suffix}.{_name.upper()}.{_boolean.upper()}", "p:pred, q:pred = a:b32, b:b32, c:pred", raw=True)(
                _hsetp(_name, _boolean, _format_name)
            )


def _hset(name: str, boolean: str, format_: str, true: int) -> Callable[..., Any]:
    both = _hsetp(name, boolean, format_)

    def semantics(a: Lanes, b: Lanes, c: Lanes, signs: int) -> Lanes:
        low, high = (where(found, const(true, like=a), 0) for found in both(a, b, c, signs))
        return low | (high << 16)

    return semantics


_SET_CASES = {"GT": [((0x3C00BC00, 0, 1), 0x3C000000)], "LE": [((0x3C00BC00, 0, 1), 0x00003C00), ((0x3C00BC00, 0, 0), 0)]}
for _name in FLOAT:
    for _suffix, _format_name, _one in (("", "f16", 0x3C00), (".BF16_V2", "bf16", 0x3F80)):
        for _boolean in BOOLEAN:
            for _result, _true in ((".BF", _one), ("", 0xFFFF)):
                _cases = _SET_CASES.get(_name.upper(), []) if (_suffix, _result, _boolean) == ("", ".BF", "and") else []
                sass(f"HSET2{_suffix}{_result}.{_name.upper()}.{_boolean.upper()}", "d:b32 = a:b32, b:b32, c:pred", raw=True, cases=_cases)(
                    _hset(_name, _boolean, _format_name, _true)
                )
