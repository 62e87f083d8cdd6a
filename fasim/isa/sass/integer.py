"""Integer and logic instructions of machine code, of vector and uniform registers alike.

Source: what ptxas makes of PTX whose meaning is known, and results of an H200.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.instructions.bitfield import MODES, prmt, prmt_immediate
from fasim.isa.instructions.compare import BOOLEAN
from fasim.isa.instructions.logic import look_up
from fasim.isa.sass.declare import INVERTED, NEGATED, sass
from fasim.numerics.lanes import Lanes, bits, brev, cast, clz, const, popc, where

LOW = 0xFFFFFFFF


def _wide(x: Lanes) -> Lanes:
    return cast(x, "u64")


def _low(x: Lanes) -> Lanes:
    return cast(x, "u32")


def _high(x: Lanes) -> Lanes:
    return cast(x >> 32, "u32")


def _pair(low: Lanes, high: Lanes) -> Lanes:
    return _wide(low) | (_wide(high) << 32)


# --- sums ----------------------------------------------------------------------------------------------------------------------


def _summand(x: Lanes, sign: int) -> Lanes:
    """An operand of a sum in 64 bits: minus is the complement and one more, which can carry."""
    if sign & (NEGATED | INVERTED):
        x = ~x
    return _wide(x) + 1 if sign & NEGATED else _wide(x)


@sass(
    "IADD3",
    "d:b32, p:pred, q:pred = a:b32, b:b32, c:b32, x:pred, y:pred",
    raw=True,
    cases=[((LOW, 1, 0, 0, 0), (0, 1, 0)), ((LOW, LOW, LOW, 0, 0), (LOW - 2, 1, 1)), ((1, 2, 3, 1, 0), (7, 0, 0))],
)
def iadd3(a: Lanes, b: Lanes, c: Lanes, x: Lanes, y: Lanes, signs: int) -> tuple[Lanes, Lanes, Lanes]:
    total = _summand(a, signs & 15) + _summand(b, signs >> 4 & 15) + _summand(c, signs >> 8 & 15) + cast(x, "u64") + cast(y, "u64")
    carry = total >> 32
    return _low(total), carry >= 1, carry >= 2


@sass("IADD", "d:b32, p:pred = a:b32, b:b32, x:pred", raw=True, cases=[((LOW, 1, 0), (0, 1)), ((1, 2, 1), (4, 0))])
def iadd(a: Lanes, b: Lanes, x: Lanes, signs: int) -> tuple[Lanes, Lanes]:
    total = _summand(a, signs & 15) + _summand(b, signs >> 4 & 15) + cast(x, "u64")
    return _low(total), (total >> 32) != 0


@sass("VIADD", "d:b32 = a:b32, b:b32", cases=[((LOW, 3), 2)])
def viadd(a: Lanes, b: Lanes) -> Lanes:
    return a + b


@sass("LEA", "d:b32, p:pred = a:b32, b:b32, shift:imm", raw=True, cases=[((3, 5, 2), (17, 0)), ((0x80000001, LOW, 1), (1, 1))])
def lea(a: Lanes, b: Lanes, shift: int, signs: int) -> tuple[Lanes, Lanes]:
    shifted = a << shift
    total = _summand(shifted, signs & 15) + _summand(b, signs >> 4 & 15)
    return _low(total), (total >> 32) != 0


def _lea_hi(a: Lanes, b: Lanes, c: Lanes, x: Lanes, shift: int, signs: int) -> tuple[Lanes, Lanes]:
    both = _pair(a, c)
    if signs & NEGATED:
        both = -both
    total = _wide(_high(both << shift)) + _summand(b, signs >> 4 & 15) + cast(x, "u64")
    return _low(total), (total >> 32) != 0


@sass("LEA.HI", "d:b32, p:pred = a:b32, b:b32, c:b32, x:pred, shift:imm", raw=True, cases=[((0x80, 1, 0, 0, 0x19), (2, 0))])
def lea_hi(a: Lanes, b: Lanes, c: Lanes, x: Lanes, shift: int, signs: int) -> tuple[Lanes, Lanes]:
    return _lea_hi(a, b, c, x, shift, signs)


@sass("LEA.HI.SX32", "d:b32, p:pred = a:b32, b:b32, x:pred, shift:imm", raw=True, cases=[((LOW, 1, 0, 4), (0, 1))])
def lea_hi_sx32(a: Lanes, b: Lanes, x: Lanes, shift: int, signs: int) -> tuple[Lanes, Lanes]:
    return _lea_hi(a, b, bits(bits(a, "s32") >> 31, "u32"), x, shift, signs)


# --- products --------------------------------------------------------------------------------------------------------------------


@sass("IMAD", "d:b32 = a:b32, b:b32, c:b32, x:pred", cases=[((3, LOW, 5, 0), 2), ((3, 4, 5, 1), 18)])
def imad(a: Lanes, b: Lanes, c: Lanes, x: Lanes) -> Lanes:
    return a * b + c + cast(x, "u32")


def _product(a: Lanes, b: Lanes, signed: bool) -> Lanes:
    if not signed:
        return _wide(a) * _wide(b)
    return bits(cast(bits(a, "s32"), "s64") * cast(bits(b, "s32"), "s64"), "u64")


def _imad_wide(signed: bool) -> Callable[..., Any]:
    def semantics(a: Lanes, b: Lanes, low: Lanes, high: Lanes, x: Lanes) -> tuple[Lanes, Lanes, Lanes]:
        product = _product(a, b, signed)
        first = product + _pair(low, high)
        total = first + cast(x, "u64")
        return _low(total), _high(total), (first < product) | (total < first)

    return semantics


for _suffix, _signed in (("", True), (".U32", False)):
    sass(
        f"IMAD.WIDE{_suffix}",
        "d:b32, e:b32, p:pred = a:b32, b:b32, low:b32, high:b32, x:pred",
        cases=[((LOW, 2, 5, 1, 0), (3, 1, 1) if _signed else (3, 3, 0))],
    )(_imad_wide(_signed))


def _imad_hi(signed: bool) -> Callable[..., Any]:
    def semantics(a: Lanes, b: Lanes, low: Lanes, high: Lanes, x: Lanes) -> tuple[Lanes, Lanes]:
        _, d, carry = _imad_wide(signed)(a, b, low, high, x)
        return d, carry

    return semantics


for _suffix, _signed in (("", True), (".U32", False)):
    sass(
        f"IMAD.HI{_suffix}",
        "d:b32, p:pred = a:b32, b:b32, low:b32, high:b32, x:pred",
        cases=[((LOW, LOW, 0, 5, 0), (5, 0) if _signed else (3, 1))],
    )(_imad_hi(_signed))


@sass("IABS", "d:b32 = a:b32", cases=[(LOW, 1), (0x80000000, 0x80000000)])
def iabs(a: Lanes) -> Lanes:
    return where(bits(a, "s32") < 0, -a, a)


# --- comparisons and choices -----------------------------------------------------------------------------------------------------

COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
}


def _isetp(name: str, boolean: str, signed: bool, extended: bool) -> Callable[..., Any]:
    combine = BOOLEAN[boolean]

    def semantics(a: Lanes, b: Lanes, c: Lanes, *low: Lanes) -> tuple[Lanes, Lanes]:
        if signed:
            a, b = bits(a, "s32"), bits(b, "s32")
        if not extended:
            found = COMPARE[name](a, b)
        elif name == "EQ":
            found = (a == b) & low[0]
        elif name == "NE":
            found = (a != b) | low[0]
        else:
            found = COMPARE[name[0] + "T"](a, b) | ((a == b) & low[0])
        return combine(found, c), combine(~found, c)

    return semantics


for _name in COMPARE:
    for _type, _signed in (("", True), (".U32", False)):
        for _boolean in BOOLEAN:
            for _ex in ("", ".EX"):
                _row = f"ISETP.{_name}{_type}.{_boolean.upper()}{_ex}"
                _sources = "a:b32, b:b32, c:pred" + (", x:pred" if _ex else "")
                sass(_row, f"p:pred, q:pred = {_sources}")(_isetp(_name, _boolean, _signed, bool(_ex)))


@sass("SEL", "d:b32 = a:b32, b:b32, p:pred", cases=[((1, 2, 1), 1), ((1, 2, 0), 2)])
def sel(a: Lanes, b: Lanes, p: Lanes) -> Lanes:
    return where(p, a, b)


@sass("MOV", "d:b32 = a:b32", cases=[(7, 7)])
def mov(a: Lanes) -> Lanes:
    return a


# --- logic and shifts --------------------------------------------------------------------------------------------------------------


@sass(
    "LOP3.LUT",
    "d:b32, p:pred = a:b32, b:b32, c:b32, x:pred, lut:imm",
    cases=[((0xF0, 0xCC, 0xAA, 0, 0x96), (0xF0 ^ 0xCC ^ 0xAA, 1)), ((4, 3, 0, 0, 0xC0), (0, 0)), ((4, 3, 0, 1, 0xC0), (0, 1))],
)
def lop3(a: Lanes, b: Lanes, c: Lanes, x: Lanes, lut: int) -> tuple[Lanes, Lanes]:
    found = look_up(lut, (a, b, c))
    d = found if isinstance(found, Lanes) else const(found & LOW, like=a)
    return d, (d != 0) | x


@sass("PLOP3.LUT", "p:pred, q:pred = a:pred, b:pred, c:pred, first:imm, second:imm", cases=[((1, 1, 0, 0xC0, 0x3F), (1, 0))])
def plop3(a: Lanes, b: Lanes, c: Lanes, first: int, second: int) -> tuple[Any, Any]:
    made = []
    for lut in (first, second):
        found = look_up(lut, (a, b, c))
        made.append(found if isinstance(found, Lanes) else const(found != 0, like=a))
    return made[0], made[1]


def _shf(right: bool, type_: str, high: bool, wrap: bool) -> Callable[..., Any]:
    size = 64 if type_.endswith("64") else 32

    def semantics(a: Lanes, amount: Lanes, c: Lanes) -> Lanes:
        both = _pair(a, c)
        count = amount & (size - 1) if wrap else where(amount > size, size, amount)
        # in two steps, since a shift by 64 is one by 0
        half = cast(count >> 1, "u64")
        rest = cast(count, "u64") - half
        if not right:
            result = (both << half) << rest
        elif type_[0] == "S":
            result = bits((bits(both, "s64") >> half) >> rest, "u64")
        else:
            result = (both >> half) >> rest
        return _high(result) if high else _low(result)

    return semantics


for _direction in "LR":
    for _wrap in ("", ".W"):
        for _type in ("U32", "S32", "U64", "S64"):
            for _hi in ("", ".HI"):
                sass(f"SHF.{_direction}{_wrap}.{_type}{_hi}", "d:b32 = a:b32, amount:b32, c:b32")(
                    _shf(_direction == "R", _type, bool(_hi), bool(_wrap))
                )


@sass("PRMT", "d:b32 = a:b32, selector:b32, b:b32", cases=[((0x83828180, 0x0246, 0x07060504), 0x80820406)])
def prmt_(a: Lanes, selector: Lanes, b: Lanes) -> Lanes:
    return prmt(a, b, selector)


@sass("PRMT:imm", "d:b32 = a:b32, b:b32, selector:imm", cases=[((0x83828180, 0x07060504, 0x0246), 0x80820406)])
def prmt_imm(a: Lanes, b: Lanes, selector: int) -> Lanes:
    return prmt_immediate(a, b, selector)


def _prmt_mode(selectors: tuple[int, ...]) -> Callable[..., Any]:
    def semantics(a: Lanes, c: Lanes, b: Lanes) -> Lanes:
        r = [prmt_immediate(a, b, selector) for selector in selectors]
        odd, upper = (c & 1) != 0, (c & 2) != 0
        return where(upper, where(odd, r[3], r[2]), where(odd, r[1], r[0]))

    return semantics


for _mode, _selectors in MODES.items():
    sass(f"PRMT.{_mode.upper()}", "d:b32 = a:b32, selector:b32, b:b32")(_prmt_mode(_selectors))


@sass("SGXT", "d:b32 = a:b32, b:b32", cases=[((0x80, 8), 0xFFFFFF80), ((0x80, 9), 0x80), ((5, 32), 5), ((5, 0), 0)])
def sgxt(a: Lanes, b: Lanes) -> Lanes:
    shift = 32 - where(b > 32, 32, b)
    shifted = where(shift >= 32, 0, a << (shift & 31))
    return bits(bits(shifted, "s32") >> bits(shift & 31, "s32"), "u32")


@sass("SGXT.U32", "d:b32 = a:b32, b:b32", cases=[((0x1FF, 8), 0xFF), ((5, 0), 0), ((5, 40), 5)])
def sgxt_u32(a: Lanes, b: Lanes) -> Lanes:
    mask = where(b >= 32, LOW, (const(1, like=a) << (b & 31)) - 1)
    return a & mask


@sass("BMSK", "d:b32 = a:b32, b:b32", cases=[((4, 8), 0xFF0), ((0, 32), LOW), ((33, 1), 0)])
def bmsk(a: Lanes, b: Lanes) -> Lanes:
    ones = where(b >= 32, LOW, (const(1, like=a) << (b & 31)) - 1)
    return where(a >= 32, 0, ones << (a & 31))


@sass("POPC", "d:b32 = a:b32", cases=[(0xFF, 8)])
def popc_(a: Lanes) -> Lanes:
    return popc(a)


@sass("BREV", "d:b32 = a:b32", cases=[(1, 1 << 31)])
def brev_(a: Lanes) -> Lanes:
    return brev(a)


@sass("FLO.U32", "d:b32 = a:b32", cases=[(0, LOW), (0x10, 4)])
def flo(a: Lanes) -> Lanes:
    return where(a == 0, LOW, 31 - clz(a))


@sass("FLO.U32.SH", "d:b32 = a:b32", cases=[(0, LOW), (0x10, 27)])
def flo_sh(a: Lanes) -> Lanes:
    return where(a == 0, LOW, clz(a))


def _flo_signed(shifted: bool) -> Callable[..., Any]:
    return lambda a: (flo_sh if shifted else flo)(where(bits(a, "s32") < 0, ~a, a))


sass("FLO", "d:b32 = a:b32", cases=[(LOW, LOW), (0x10, 4)])(_flo_signed(False))
sass("FLO.SH", "d:b32 = a:b32", cases=[(LOW, LOW), (0x10, 27)])(_flo_signed(True))


def _vabsdiff(signed: bool) -> Callable[..., Any]:
    def semantics(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        x, y = (bits(a, "s32"), bits(b, "s32")) if signed else (a, b)
        return where(x < y, b - a, a - b) + c

    return semantics


sass("VABSDIFF", "d:b32 = a:b32, b:b32, c:b32", cases=[((LOW, 1, 5), 7)])(_vabsdiff(True))
sass("VABSDIFF.U32", "d:b32 = a:b32, b:b32, c:b32", cases=[((LOW, 1, 5), 3)])(_vabsdiff(False))


def _of_byte(x: Lanes, i: int, signed: bool, size: int = 8) -> Lanes:
    part = x >> size * i & ((1 << size) - 1)
    return bits(bits(part << (32 - size), "s32") >> (32 - size), "u32") if signed else part


def _idp(a_signed: bool, b_signed: bool, parts: tuple[tuple[int, int, int], ...]) -> Callable[..., Any]:
    """parts: element of A, element of B, bits of A's."""

    def semantics(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        for i, k, size in parts:
            c = c + _of_byte(a, i, a_signed, size) * _of_byte(b, k, b_signed)
        return c

    return semantics


for _a in "US":
    for _b in "US":
        sass(f"IDP.4A.{_a}8.{_b}8", "d:b32 = a:b32, b:b32, c:b32")(_idp(_a == "S", _b == "S", tuple((i, i, 8) for i in range(4))))
        for _half, _first in (("LO", 0), ("HI", 2)):
            sass(f"IDP.2A.{_half}.{_a}16.{_b}8", "d:b32 = a:b32, b:b32, c:b32")(
                _idp(_a == "S", _b == "S", tuple((i, _first + i, 16) for i in range(2)))
            )


def _saturated(type_: str) -> Callable[..., Any]:
    size, signed = int(type_[1:]), type_[0] == "S"
    least, most = (-(1 << size - 1), (1 << size - 1) - 1) if signed else (0, (1 << size) - 1)

    def semantics(a: Lanes) -> Lanes:
        x = bits(a, "s32")
        x = where(x < least, least, x)
        return bits(where(x > most, most, x), "u32")

    return semantics


for _type in ("U8", "S8", "U16", "S16"):
    sass(f"I2I.{_type}.S32.SAT", "d:b32 = a:b32")(_saturated(_type))
