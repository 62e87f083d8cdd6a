"""Integer arithmetic: add, sub, mul, mad, mul24, mad24, sad, div, rem, abs, neg, min, max, dp4a, dp2a."""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, bits, cast, const, fdiv, idiv, irem, mulhi, where, width

DOC = "integer-arithmetic-instructions-"
SIZES = (16, 32, 64)
Binary = Callable[[Lanes, Lanes], Lanes]


def least(n: int) -> int:
    """-2^(n-1) as a bit pattern."""
    return 1 << (n - 1)


def doubled(type_: str) -> str:
    """The type of twice the width."""
    return type_[0] + str(2 * int(type_[1:]))


def halves(function: Binary, type_: str) -> Binary:
    """The instruction on both halves of 32-bit registers; `type_` is that of a half."""

    def packed(a: Lanes, b: Lanes) -> Lanes:
        low = function(cast(a, type_), cast(b, type_))
        high = function(cast(a >> 16, type_), cast(b >> 16, type_))
        return cast(bits(low, "u16"), "u32") | (cast(bits(high, "u16"), "u32") << 16)

    return packed


# --- add, sub ------------------------------------------------------------------------------------------------------------------


def _add(a: Lanes, b: Lanes) -> Lanes:
    return a + b


def _sub(a: Lanes, b: Lanes) -> Lanes:
    return a - b


for _n in SIZES:
    for _t in (f"u{_n}", f"s{_n}"):
        _signature, _ones = f"d:{_t} = a:{_t}, b:{_t}", 2**_n - 1
        op(f"add.{_t}", _signature, doc=DOC + "add", cases=[((5, 7), 12), ((_ones, 1), 0), ((least(_n), least(_n)), 0)])(_add)
        op(f"sub.{_t}", _signature, doc=DOC + "sub", cases=[((5, 7), _ones - 1), ((0, 1), _ones), ((least(_n), 1), least(_n) - 1)])(_sub)


def limit_s64_to_s32(x: Lanes) -> Lanes:
    """The nearest 32-bit value of an s64 one."""
    return cast(where(x > 2**31 - 1, 2**31 - 1, where(x < -(2**31), -(2**31), x)), "s32")


@op(
    "add.sat.s32",
    "d:s32 = a:s32, b:s32",
    doc=DOC + "add",
    cases=[((2**31 - 1, 1), 2**31 - 1), ((2**31, 2**32 - 1), 2**31), ((5, 2**32 - 9), 2**32 - 4), ((2**31, 2**31), 2**31)],
)
def add_sat(a: Lanes, b: Lanes) -> Lanes:
    total = a + b
    # the sum overflows where both signs differ from the result's
    return where(((a ^ total) & (b ^ total)) < 0, (a >> 31) ^ (2**31 - 1), total)


@op(
    "sub.sat.s32",
    "d:s32 = a:s32, b:s32",
    doc=DOC + "sub",
    cases=[((2**31 - 1, 2**32 - 1), 2**31 - 1), ((2**31, 1), 2**31), ((5, 9), 2**32 - 4), ((0, 2**31), 2**31 - 1)],
)
def sub_sat(a: Lanes, b: Lanes) -> Lanes:
    difference = a - b
    return where(((a ^ b) & (a ^ difference)) < 0, (a >> 31) ^ (2**31 - 1), difference)


op(["add.u16x2", "add.s16x2"], "d:b32 = a:b32, b:b32", doc=DOC + "add", min_arch=90, cases=[((0x0001FFFF, 0x00010001), 0x00020000)])(
    halves(_add, "u16")
)


# --- mul, mad ------------------------------------------------------------------------------------------------------------------


def _mul(a: Lanes, b: Lanes) -> Lanes:
    return a * b


def _mul_wide(a: Lanes, b: Lanes) -> Lanes:
    return cast(a, doubled(a.type)) * cast(b, doubled(a.type))


def _mad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return a * b + c


def _mad_hi(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return mulhi(a, b) + c


def _mad_wide(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return _mul_wide(a, b) + c


for _n in SIZES:
    _ones = 2**_n - 1
    for _t in (f"u{_n}", f"s{_n}"):
        _signed = _t[0] == "s"
        _high = 0 if _signed else _ones - 1  # of the square of the value whose bits are all ones
        _two, _three = f"d:{_t} = a:{_t}, b:{_t}", f"d:{_t} = a:{_t}, b:{_t}, c:{_t}"
        op(f"mul.lo.{_t}", _two, doc=DOC + "mul", cases=[((_ones, _ones), 1), ((3, 7), 21), ((least(_n), 2), 0)])(_mul)
        op(f"mul.hi.{_t}", _two, doc=DOC + "mul", cases=[((_ones, _ones), _high), ((least(_n), least(_n)), least(_n) // 2)])(mulhi)
        op(f"mad.lo.{_t}", _three, doc=DOC + "mad", cases=[((_ones, _ones, 4), 5), ((3, 7, _ones), 20)])(_mad)
        op(f"mad.hi.{_t}", _three, doc=DOC + "mad", cases=[((_ones, _ones, 3), (_high + 3) & _ones)])(_mad_hi)
        if _n < 64:
            _w = doubled(_t)
            _square = 1 if _signed else _ones * _ones
            op(f"mul.wide.{_t}", f"d:{_w} = a:{_t}, b:{_t}", doc=DOC + "mul", cases=[((_ones, _ones), _square), ((3, 7), 21)])(_mul_wide)
            op(
                f"mad.wide.{_t}",
                f"d:{_w} = a:{_t}, b:{_t}, c:{_w}",
                doc=DOC + "mad",
                cases=[((_ones, _ones, 3), _square + 3), ((2, 3, 2 ** (2 * _n) - 6), 0)],
            )(_mad_wide)


@op(
    "mad.hi.sat.s32",
    "d:s32 = a:s32, b:s32, c:s32",
    doc=DOC + "mad",
    cases=[((2**30, 2**30, 2**31 - 1), 2**31 - 1), ((2**31, 2, 2**31), 2**31)],
)
def mad_hi_sat(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return add_sat(mulhi(a, b), c)


def _extend24(a: Lanes) -> Lanes:
    """The low 24 bits, extended by the sign of the type, to 64 bits."""
    return cast((a << 8) >> 8, doubled(a.type))


def _mul24(a: Lanes, b: Lanes, shift: int) -> Lanes:
    return cast((_extend24(a) * _extend24(b)) >> shift, a.type)


for _part, _shift in (("lo", 0), ("hi", 16)):
    for _t in ("u32", "s32"):
        _product = 0xFFFFFF * 0xFFFFFF if _t == "u32" else 1
        _cases = [
            ((0xFFFFFF, 0xAAFFFFFF), _product >> _shift),
            ((0x7FFFFF, 2**32 - 2), (0x7FFFFF * (0xFFFFFE if _t == "u32" else -2)) >> _shift),
        ]
        op(f"mul24.{_part}.{_t}", f"d:{_t} = a:{_t}, b:{_t}", doc=DOC + "mul24", cases=_cases)(
            lambda a, b, shift=_shift: _mul24(a, b, shift)
        )
        op(
            f"mad24.{_part}.{_t}",
            f"d:{_t} = a:{_t}, b:{_t}, c:{_t}",
            doc=DOC + "mad24",
            cases=[((*inputs, 0x80000000), expected + 0x80000000) for inputs, expected in _cases],
        )(lambda a, b, c, shift=_shift: _mul24(a, b, shift) + c)


@op(
    "mad24.hi.sat.s32",
    "d:s32 = a:s32, b:s32, c:s32",
    doc=DOC + "mad24",
    cases=[((0x7FFFFF, 0x7FFFFF, 2**31 - 1), 2**31 - 1), ((1, 1, 7), 7)],
)
def mad24_hi_sat(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return add_sat(_mul24(a, b, 16), c)


def _sad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return c + where(a < b, b - a, a - b)


for _n in SIZES:
    op(f"sad.u{_n}", f"d:u{_n} = a:u{_n}, b:u{_n}, c:u{_n}", doc=DOC + "sad", cases=[((2**_n - 1, 1, 10), 8), ((3, 5, 0), 2)])(_sad)
    op(
        f"sad.s{_n}",
        f"d:u{_n} = a:s{_n}, b:s{_n}, c:u{_n}",
        doc=DOC + "sad",
        cases=[((2**_n - 1, 1, 10), 12), ((least(_n), 1, 0), least(_n) + 1)],
    )(lambda a, b, c: _sad(a, b, bits(c, a.type)))


# --- div, rem ------------------------------------------------------------------------------------------------------------------
# A zero divisor gives all ones, for the quotient as for the remainder: the code that ptxas makes ends in a selection of
# ~divisor (32 bits) or -1 (16 and 64 bits). Likewise -2^(n-1) / -1 is -2^(n-1), by way of the magnitudes.
# Source: nvdisasm of div and rem for sm_90 (CUDA 13.0), checked on an H200.


def _magnitude(a: Lanes) -> Lanes:
    return bits(where(a < 0, -a, a), "u" + a.type[1:])


def _divide(a: Lanes, b: Lanes) -> Lanes:
    """a / b for unsigned values of up to 32 bits and b > 0.

    A float with twice the bits of the quotient and some more cannot round up to the next integer, and vectors have a float division.
    """
    type_ = "f64" if width(a.type) == 32 else "f32"
    return cast(fdiv(cast(a, type_), cast(b, type_)), a.type)


def _div(a: Lanes, b: Lanes) -> Lanes:
    safe = where(b == 0, 1, b)
    if width(a.type) == 64:
        quotient = idiv(a, safe)
    elif a.type[0] == "u":
        quotient = _divide(a, safe)
    else:
        unsigned = bits(_divide(_magnitude(a), _magnitude(safe)), a.type)
        quotient = where((a ^ b) < 0, -unsigned, unsigned)
    return where(b == 0, -1, quotient)


def _rem(a: Lanes, b: Lanes) -> Lanes:
    if width(a.type) == 64:
        return where(b == 0, -1, irem(a, where(b == 0, 1, b)))
    return where(b == 0, -1, a - _div(a, b) * b)


for _n in SIZES:
    _ones, _least = 2**_n - 1, least(_n)
    _u, _s = f"d:u{_n} = a:u{_n}, b:u{_n}", f"d:s{_n} = a:s{_n}, b:s{_n}"
    op(
        f"div.u{_n}",
        _u,
        doc=DOC + "div",
        cases=[((7, 2), 3), ((_ones, _ones - 1), 1), ((_ones, 1), _ones), ((5, 0), _ones), ((0, 0), _ones)],
    )(_div)
    op(f"rem.u{_n}", _u, doc=DOC + "rem", cases=[((7, 2), 1), ((_ones, 10), _ones % 10), ((5, 0), _ones)])(_rem)
    op(
        f"div.s{_n}",
        _s,
        doc=DOC + "div",
        cases=[((-7, 2), _ones - 2), ((7, -2), _ones - 2), ((_least, _ones), _least), ((5, 0), _ones), ((-5, 0), _ones)],
    )(_div)
    op(f"rem.s{_n}", _s, doc=DOC + "rem", cases=[((-7, 2), _ones), ((7, -2), 1), ((_least, _ones), 0), ((5, 0), _ones)])(_rem)


# --- abs, neg, min, max --------------------------------------------------------------------------------------------------------


def _neg(a: Lanes) -> Lanes:
    return -a


def _abs(a: Lanes) -> Lanes:
    return where(a < 0, -a, a)


def _min(a: Lanes, b: Lanes) -> Lanes:
    return where(a < b, a, b)


def _max(a: Lanes, b: Lanes) -> Lanes:
    return where(a > b, a, b)


def _relu(function: Binary) -> Binary:
    return lambda a, b: _max(function(a, b), const(0, like=a))


for _n in SIZES:
    _ones, _least = 2**_n - 1, least(_n)
    op(f"abs.s{_n}", f"d:s{_n} = a:s{_n}", doc=DOC + "abs", cases=[(-5, 5), (5, 5), (_least, _least)])(_abs)
    op(f"neg.s{_n}", f"d:s{_n} = a:s{_n}", doc=DOC + "neg", cases=[(-5, 5), (5, _ones - 4), (_least, _least)])(_neg)
    for _name, _function, _of_signed, _of_unsigned in (("min", _min, _ones, 1), ("max", _max, 1, _ones)):
        op(f"{_name}.s{_n}", f"d:s{_n} = a:s{_n}, b:s{_n}", doc=DOC + _name, cases=[((_ones, 1), _of_signed), ((1, _ones), _of_signed)])(
            _function
        )
        op(
            f"{_name}.u{_n}", f"d:u{_n} = a:u{_n}, b:u{_n}", doc=DOC + _name, cases=[((_ones, 1), _of_unsigned), ((1, _ones), _of_unsigned)]
        )(_function)

for _name, _function, _of_unsigned, _of_signed, _of_relu in (
    ("min", _min, 0x00018000, 0xFFFF8000, 0),
    ("max", _max, 0xFFFF8001, 0x00018001, 0x00010000),
):
    _pair = (0x00018001, 0xFFFF8000)
    _halves = "d:b32 = a:b32, b:b32"
    op(f"{_name}.u16x2", _halves, doc=DOC + _name, min_arch=90, cases=[(_pair, _of_unsigned)])(halves(_function, "u16"))
    op(f"{_name}.s16x2", _halves, doc=DOC + _name, min_arch=90, cases=[(_pair, _of_signed)])(halves(_function, "s16"))
    op([f"{_name}.relu.s16x2", f"{_name}.s16x2.relu"], _halves, doc=DOC + _name, min_arch=90, cases=[(_pair, _of_relu)])(
        halves(_relu(_function), "s16")
    )
    op(
        [f"{_name}.relu.s32", f"{_name}.s32.relu"], "d:s32 = a:s32, b:s32", doc=DOC + _name, min_arch=90, cases=[((-1, -2), 0), ((5, 5), 5)]
    )(_relu(_function))


# --- dot products --------------------------------------------------------------------------------------------------------------


def _element(x: Lanes, letter: str, size: int, index: int) -> Lanes:
    """One packed integer of a register, extended to 32 bits."""
    return cast(cast(x >> size * index, f"{letter}{size}"), letter + "32")


def _dot(a: Lanes, b: Lanes, c: Lanes, letters: str, size: int, first: int) -> Lanes:
    for i in range(32 // size):
        product = bits(_element(a, letters[0], size, i), c.type) * bits(_element(b, letters[1], 8, first + i), c.type)
        c = c + product
    return c


for _a in "us":
    for _b in "us":
        _d = "u32" if _a + _b == "uu" else "s32"
        _signature = f"d:{_d} = a:b32, b:b32, c:{_d}"
        _ones_4 = (255 if _a == "u" else -1) * (255 if _b == "u" else -1)
        op(
            f"dp4a.{_a}32.{_b}32",
            _signature,
            doc=DOC + "dp4a",
            min_arch=61,
            cases=[((0x04030201, 0x01010101, 5), 15), ((2**32 - 1, 2**32 - 1, 0), 4 * _ones_4)],
        )(lambda a, b, c, letters=_a + _b: _dot(a, b, c, letters, 8, 0))
        _ones_2 = (65535 if _a == "u" else -1) * (255 if _b == "u" else -1)
        for _half, _first, _sum in (("lo", 0, 5), ("hi", 2, 11)):
            op(
                f"dp2a.{_half}.{_a}32.{_b}32",
                _signature,
                doc=DOC + "dp2a",
                min_arch=61,
                cases=[((0x00020001, 0x04030201, 0), _sum), ((2**32 - 1, 2**32 - 1, 1), 2 * _ones_2 + 1)],
            )(lambda a, b, c, letters=_a + _b, first=_first: _dot(a, b, c, letters, 16, first))
