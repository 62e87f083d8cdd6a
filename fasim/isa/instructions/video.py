"""SIMD video instructions on packed halves and bytes: vadd2, vsub4, vavrg4, vabsdiff4, vmin2, vmax4, vset4, ...

Only the forms without element selectors and masks, where the third source takes no part unless it is accumulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fasim.isa.instructions.compare import EQUALITY, ORDER, TRUTH, Compare
from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, bits, cast, const, where

DOC = "simd-video-instructions-"


def elements(x: Lanes, letter: str, count: int) -> list[Lanes]:
    """The packed integers of a register, each extended to s32."""
    size = 32 // count
    return [cast(cast(x >> size * i, f"{letter}{size}"), "s32") for i in range(count)]


def pack(values: Iterable[Lanes], count: int) -> Lanes:
    """The low bits of s32 values side by side."""
    size = 32 // count
    parts = [(bits(v, "u32") & ((1 << size) - 1)) << size * i for i, v in enumerate(values)]
    result = parts[0]
    for part in parts[1:]:
        result = result | part
    return result


def _limit(x: Lanes, letter: str, count: int) -> Lanes:
    size = 32 // count
    low, high = (0, (1 << size) - 1) if letter == "u" else (-(1 << (size - 1)), (1 << (size - 1)) - 1)
    return where(x < low, low, where(x > high, high, x))


def _average(a: Lanes, b: Lanes) -> Lanes:
    total = a + b
    return where(total >= 0, total + 1, total) >> 1


OPERATIONS: dict[str, Callable[[Lanes, Lanes], Lanes]] = {
    "vadd": lambda a, b: a + b,
    "vsub": lambda a, b: a - b,
    "vavrg": _average,
    "vabsdiff": lambda a, b: where(a < b, b - a, a - b),
    "vmin": lambda a, b: where(a < b, a, b),
    "vmax": lambda a, b: where(a > b, a, b),
}


def _packed(operation: Callable[[Lanes, Lanes], Lanes], letters: str, count: int, sat: bool) -> Callable[..., Lanes]:
    def semantics(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        pairs = zip(elements(a, letters[1], count), elements(b, letters[2], count))
        results = (operation(x, y) for x, y in pairs)
        return pack((_limit(r, letters[0], count) if sat else r for r in results), count)

    return semantics


def _difference_sum(count: int) -> Callable[..., Lanes]:
    """c plus the absolute differences of all unsigned elements."""

    def semantics(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        for x, y in zip(elements(a, "u", count), elements(b, "u", count)):
            c = c + bits(OPERATIONS["vabsdiff"](x, y), "u32")
        return c

    return semantics


def _compare(compare: Compare, letters: str, count: int, add: bool) -> Callable[..., Lanes]:
    def semantics(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        one = const(1, like=bits(a, "s32"))
        results = [where(compare(x, y), one, 0) for x, y in zip(elements(a, letters[0], count), elements(b, letters[1], count))]
        if not add:
            return pack(results, count)
        for result in results:
            c = c + bits(result, "u32")
        return c

    return semantics


_SIGNATURE = "d:b32 = a:b32, b:b32, c:b32"
#: results for elements of 0xFF and 1 (4 bytes each), by the letters of d, a, b
_CASES = {
    ("vadd4", "uuu"): 0x00000000,
    ("vadd4.sat", "uuu"): 0xFFFFFFFF,
    ("vadd4.sat", "sss"): 0x00000000,
    ("vsub4.sat", "uss"): 0x00000000,
    ("vsub4", "sss"): 0xFEFEFEFE,
    ("vavrg4", "uuu"): 0x80808080,
    ("vavrg4", "sss"): 0x00000000,
    ("vabsdiff4", "uuu"): 0xFEFEFEFE,
    ("vabsdiff4", "uss"): 0x02020202,
    ("vmin4", "uuu"): 0x01010101,
    ("vmin4", "sss"): 0xFFFFFFFF,
    ("vmax4", "uuu"): 0xFFFFFFFF,
    ("vmax4", "sss"): 0x01010101,
}
for _count in (2, 4):
    for _name, _operation in OPERATIONS.items():
        for _letters in (d + a + b for d in "us" for a in "us" for b in "us"):
            for _sat in ("", ".sat"):
                _key = (f"{_name}{_count}{_sat}", _letters)
                op(
                    f"{_name}{_count}." + ".".join(f"{x}32" for x in _letters) + _sat,
                    _SIGNATURE,
                    doc=f"{DOC}{_name}{_count}",
                    cases=[((0xFFFFFFFF, 0x01010101, 77), _CASES[_key])] if _key in _CASES else [],
                )(_packed(_operation, _letters, _count, bool(_sat)))
    op(
        f"vabsdiff{_count}.u32.u32.u32.add",
        _SIGNATURE,
        doc=f"{DOC}vabsdiff{_count}",
        cases=[((0xFFFFFFFF, 0, 5), 5 + (1020 if _count == 4 else 131070))],
    )(_difference_sum(_count))
    for _letters in ("uu", "us", "su", "ss"):
        for _name, _function in (EQUALITY | ORDER).items():
            for _add in ("", ".add"):
                _true = TRUTH[_name][2 if _letters[0] == "u" else 0] == "1"
                _each = _count if _add else 0x01010101 if _count == 4 else 0x00010001
                op(
                    f"vset{_count}.{_letters[0]}32.{_letters[1]}32.{_name}{_add}",
                    _SIGNATURE,
                    doc=f"{DOC}vset{_count}",
                    cases=[((0xFFFFFFFF, 0, 0), _each * _true)],
                )(_compare(_function, _letters, _count, bool(_add)))
