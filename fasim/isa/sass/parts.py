"""Integer instructions of machine code on the halves or bytes of a register, and those that saturate: VIMNMX, VIMNMX3, VIADD, I2IP.

Source: what ptxas 13.0 makes of PTX whose meaning is known, such as that of CUDA's SIMD and DPX intrinsics.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.instructions.convert_integer import packing
from fasim.isa.sass.declare import NEGATED, SIGN_BITS, sass
from fasim.numerics.lanes import Lanes, bits, cast, const, where

Parts = list[Lanes]


def split(value: Lanes, size: int, signed: bool) -> Parts:
    """The parts of a register as numbers, the lowest first."""
    found = []
    for shift in range(0, 32, size):
        part = bits(value << (32 - size - shift), "s32") if signed else value << (32 - size - shift)
        found.append(part >> (32 - size))
    return found


def join(parts: Parts, size: int) -> Lanes:
    """The parts in a register again; what does not fit a part is cut off."""
    result = bits(parts[-1], "u32") << (32 - size) if size < 32 else bits(parts[0], "u32")
    for i, part in enumerate(parts[:-1]):
        result = result | ((bits(part, "u32") & ((1 << size) - 1)) << size * i)
    return result


def wrapped(value: Lanes, size: int) -> Lanes:
    """A number as `size` bits hold it."""
    return (value << (32 - size)) >> (32 - size) if size < 32 else value


def choose(least: Lanes, a: Lanes, b: Lanes) -> Lanes:
    """The smaller or the larger of two numbers."""
    return where((a < b) ^ ~least, a, b)


def relu(value: Lanes) -> Lanes:
    """Nothing below zero."""
    return where(value < 0, 0, value)


#: how a mnemonic names the parts of a register -> bits of a part, signed
PARTS = {"": (32, True), ".S32": (32, True), ".U32": (32, False)}
PARTS |= {f".{letter}{size}x{32 // size}": (size, letter == "S") for letter in "SU" for size in (16, 8)}


def _in_parts(size: int, signed: bool, function: Callable[..., Lanes]) -> Callable[..., Lanes]:
    """function: of a part of each operand, and of the predicate."""

    def semantics(*operands: Lanes) -> Lanes:
        *values, least = operands
        parts = zip(*(split(value, size, signed) for value in values), strict=True)
        return join([function(least, *part) for part in parts], size)

    return semantics


def _two(least: Lanes, a: Lanes, b: Lanes) -> Lanes:
    return choose(least, a, b)


def _three(least: Lanes, a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return choose(least, choose(least, a, b), c)


def _of_sum(size: int) -> Callable[..., Lanes]:
    return lambda least, a, b, c: choose(least, wrapped(a + b, size), c)


def _not_negative(function: Callable[..., Lanes]) -> Callable[..., Lanes]:
    return lambda *operands: relu(function(*operands))


_TWO_CASES = {
    ".S16x2": [((0xFFFF0001, 0x00010002, 1), 0xFFFF0001)],
    ".U16x2": [((0xFFFF0001, 0x00010002, 1), 0x00010001)],
    ".S8x4": [((0xFF017F80, 0x01020380, 0), 0x01027F80)],
    ".U8x4": [((0xFF017F80, 0x01020380, 0), 0xFF027F80)],
    "": [((0xFFFFFFFF, 1, 1), 0xFFFFFFFF), ((0xFFFFFFFF, 1, 0), 1)],
    ".U32": [((0xFFFFFFFF, 1, 1), 1)],
}
_THREE_CASES = {
    "": [((0xFFFFFFFF, 1, 2, 1), 0xFFFFFFFF), ((0xFFFFFFFF, 1, 2, 0), 2)],
    ".U16x2": [((0xFFFF0001, 0x00010002, 0x00020000, 1), 0x00010000)],
}
_SUM_CASES = {
    "": [((0x7FFFFFFF, 1, 5, 0), 5)],
    ".S16x2": [((0x7FFF0001, 0x00010001, 0x00050001, 0), 0x00050002)],
}
for _part, (_size, _signed) in PARTS.items():
    for _relu in ("", ".RELU") if _signed else ("",):
        _two_, _three_, _sum_ = (_not_negative(each) if _relu else each for each in (_two, _three, _of_sum(_size)))
        sass(f"VIMNMX{_part}{_relu}", "d:b32 = a:b32, b:b32, least:pred", cases=() if _relu else _TWO_CASES.get(_part, ()))(
            _in_parts(_size, _signed, _two_)
        )
        if _size != 8:
            sass(
                f"VIMNMX3{_part}{_relu}",
                "d:b32 = a:b32, b:b32, c:b32, least:pred",
                cases=() if _relu else _THREE_CASES.get(_part, ()),
            )(_in_parts(_size, _signed, _three_))
            sass(
                f"VIADDMNMX{_part}{_relu}",
                "d:b32 = a:b32, b:b32, c:b32, least:pred",
                cases=() if _relu else _SUM_CASES.get(_part, ()),
            )(_in_parts(_size, _signed, _sum_))


def _which(signed: bool) -> Callable[..., Any]:
    """VIMNMX on halves that also says where the first operand is chosen, the lower half first."""

    def semantics(a: Lanes, b: Lanes, least: Lanes) -> tuple[Lanes, Lanes, Lanes]:
        pairs = list(zip(split(a, 16, signed), split(b, 16, signed), strict=True))
        first, second = (((x < y) ^ ~least) | (x == y) for x, y in pairs)
        return join([choose(least, x, y) for x, y in pairs], 16), first, second

    return semantics


for _part, _signed in ((".S16x2", True), (".U16x2", False)):
    sass(
        f"VIMNMX{_part}:which",
        "d:b32, p:pred, q:pred = a:b32, b:b32, least:pred",
        cases=[((0xFFFF0001, 0x00010002, 1), (0xFFFF0001, 1, 1) if _signed else (0x00010001, 1, 0)), ((0, 0, 0), (0, 1, 1))],
    )(_which(_signed))


# --- sums ------------------------------------------------------------------------------------------------------------------------


def _viadd(size: int) -> Callable[..., Lanes]:
    def semantics(a: Lanes, b: Lanes, signs: int) -> Lanes:
        parts = []
        for i, value in enumerate((a, b)):
            negated = signs >> SIGN_BITS * i & NEGATED
            parts.append([-part if negated else part for part in split(value, size, False)])
        return join([x + y for x, y in zip(*parts, strict=True)], size)

    return semantics


sass("VIADD.16x2", "d:b32 = a:b32, b:b32", raw=True, cases=[((0x0001FFFF, 0x00020001), 0x00030000)])(_viadd(16))
sass("VIADD.U8x4", "d:b32 = a:b32, b:b32", raw=True, cases=[((0x01FF02FF, 0x01010101), 0x02000300)])(_viadd(8))


@sass("VIADD.S32.ISAT", "d:b32 = a:b32, b:b32", cases=[((0x7FFFFFFF, 1), 0x7FFFFFFF), ((0x80000000, 0xFFFFFFFF), 0x80000000), ((5, 6), 11)])
def viadd_saturated(a: Lanes, b: Lanes) -> Lanes:
    total = a + b
    overflows = bits((a ^ total) & (b ^ total), "s32") < 0
    return where(overflows, where(bits(a, "s32") < 0, const(0x80000000, like=a), const(0x7FFFFFFF, like=a)), total)


for _type in ("U8", "S8", "U16", "S16", "U4", "S4"):
    _size = int(_type[1:])
    sass(
        f"I2IP.{_type}.S32.SAT",
        "d:b32 = a:s32, b:s32" + (", c:b32" if _size < 16 else ""),
        cases=[((1, 2, 5), 5 << 2 * _size | 1 << _size | 2)] if _size < 16 else [((1, 2), 1 << 16 | 2)],
    )(packing(_type[0].lower(), _size))


@sass("VABSDIFF4.U8", "d:b32 = a:b32, b:b32, c:b32", cases=[((0x01020304, 0x04030201, 5), 0x03010103 + 5)])
def vabsdiff4(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    total = c
    for i, (x, y) in enumerate(zip(split(a, 8, False), split(b, 8, False), strict=True)):
        total = total + (where(x < y, y - x, x - y) << 8 * i)
    return cast(total, "u32")
