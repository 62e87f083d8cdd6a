"""cvt between integer types."""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, bits, cast, where

DOC = "data-movement-and-conversion-instructions-cvt"
TYPES = [f"{letter}{n}" for n in (8, 16, 32, 64) for letter in "us"]


def limits(type_: str) -> tuple[int, int]:
    """Least and greatest value of an integer type."""
    n = int(type_[1:])
    return (-(1 << (n - 1)), (1 << (n - 1)) - 1) if type_[0] == "s" else (0, (1 << n) - 1)


def saturate(a: Lanes, type_: str) -> Lanes:
    """The nearest value of `type_`, still as the source's type."""
    (low, high), (source_low, source_high) = limits(type_), limits(a.type)
    if low > source_low:
        a = where(a < low, low, a)
    return where(a > high, high, a) if high < source_high else a


def conversion(source: str, target: str, sat: bool, dest_bits: int) -> Callable[[Lanes], Lanes]:
    """The semantics of cvt.target.source into a register of `dest_bits`; the operand may come in a wider type."""

    def semantics(a: Lanes) -> Lanes:
        a = cast(a, source)
        value = cast(saturate(a, target) if sat else a, target)
        return bits(cast(value, f"{target[0]}{dest_bits}"), f"u{dest_bits}")

    return semantics


def _value(pattern: int, type_: str) -> int:
    n = int(type_[1:])
    pattern &= 2**n - 1
    return pattern - 2**n if type_[0] == "s" and pattern >> (n - 1) else pattern


def _cases(source: str, target: str, sat: bool, dest_bits: int) -> list[tuple[int, int]]:
    n, result = int(source[1:]), []
    for pattern in (0, 1, 0x7F, 0x80, 0xFF, 2**n - 1, 2 ** (n - 1), 2 ** (n - 1) - 1):
        value = _value(pattern, source)
        if sat:
            low, high = limits(target)
            value = min(max(value, low), high)
        result.append((pattern, _value(value, target) & (2**dest_bits - 1)))
    return result


for _source in TYPES:
    for _target in TYPES:
        _n = int(_target[1:])
        _inside = limits(_target)[0] <= limits(_source)[0] and limits(_source)[1] <= limits(_target)[1]
        for _sat in (False,) if _inside else (False, True):
            for _dest in (n for n in (8, 16, 32, 64) if n >= _n):
                for _a64 in (False,) if _source[1:] == "64" else (False, True):
                    _shape = (f"d{_dest}" if _dest > _n else "") + ("a64" if _a64 else "")
                    op(
                        f"cvt{'.sat' if _sat else ''}.{_target}.{_source}" + (":" + _shape if _shape else ""),
                        f"d:u{_dest} = a:{'b64' if _a64 else _source}",
                        doc=DOC,
                        cases=_cases(_source, _target, _sat, _dest),
                    )(conversion(_source, _target, _sat, _dest))
