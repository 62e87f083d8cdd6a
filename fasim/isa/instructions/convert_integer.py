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


# --- cvt.pack ------------------------------------------------------------------------------------------------------------------


def packing(letter: str, size: int) -> Callable[..., Lanes]:
    """a and b saturated to `size` bits side by side, b below; what room is left above holds the low bits of c."""
    low, high = limits(f"{letter}{size}")

    def semantics(a: Lanes, b: Lanes, *c: Lanes) -> Lanes:
        upper, lower = (bits(where(x < low, low, where(x > high, high, x)), "u32") & ((1 << size) - 1) for x in (a, b))
        packed = (upper << size) | lower
        return packed | (c[0] << 2 * size) if c else packed

    return semantics


for _letter in "us":
    for _size in (2, 4, 8, 16):
        _low, _high = (x & ((1 << _size) - 1) for x in limits(f"{_letter}{_size}"))
        _rest = (0x5A5A5A5A,) if _size < 16 else ()
        op(
            f"cvt.pack.sat.{_letter}{_size}.s32" + (".b32" if _rest else ""),
            "d:b32 = a:s32, b:s32" + (", c:b32" if _rest else ""),
            doc="data-movement-and-conversion-instructions-cvt-pack",
            min_arch=72 if _size >= 8 else 75,
            cases=[
                ((2**31 - 1, 2**31, *_rest), sum(_rest) << 2 * _size | _high << _size | _low),
                ((1, 0, *_rest), sum(_rest) << 2 * _size | 1 << _size),
            ],
        )(packing(_letter, _size))
