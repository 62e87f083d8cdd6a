"""Logic and shifts: and, or, xor, not, cnot, lop3, shl, shr, shf."""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, const, where, width

DOC = "logic-and-shift-instructions-"


@op("and.pred", "d:pred = a:pred, b:pred", doc=DOC + "and", cases=[((1, 1), 1), ((1, 0), 0), ((0, 0), 0)])
@op("and.b16", "d:b16 = a:b16, b:b16", doc=DOC + "and", cases=[((0xFF0F, 0x3C3C), 0x3C0C)])
@op("and.b32", "d:b32 = a:b32, b:b32", doc=DOC + "and", cases=[((0xFFFF0000, 0x12345678), 0x12340000)])
@op("and.b64", "d:b64 = a:b64, b:b64", doc=DOC + "and", cases=[((0xF << 60 | 3, 0x9 << 60 | 6), 0x9 << 60 | 2)])
def and_(a: Lanes, b: Lanes) -> Lanes:
    return a & b


@op("or.pred", "d:pred = a:pred, b:pred", doc=DOC + "or", cases=[((1, 1), 1), ((1, 0), 1), ((0, 0), 0)])
@op("or.b16", "d:b16 = a:b16, b:b16", doc=DOC + "or", cases=[((0xF00F, 0x0C30), 0xFC3F)])
@op("or.b32", "d:b32 = a:b32, b:b32", doc=DOC + "or", cases=[((0xFFFF0000, 0x12345678), 0xFFFF5678)])
@op("or.b64", "d:b64 = a:b64, b:b64", doc=DOC + "or", cases=[((1 << 63, 1), 1 << 63 | 1)])
def or_(a: Lanes, b: Lanes) -> Lanes:
    return a | b


@op("xor.pred", "d:pred = a:pred, b:pred", doc=DOC + "xor", cases=[((1, 1), 0), ((1, 0), 1), ((0, 0), 0)])
@op("xor.b16", "d:b16 = a:b16, b:b16", doc=DOC + "xor", cases=[((0xF00F, 0x0C3F), 0xFC30)])
@op("xor.b32", "d:b32 = a:b32, b:b32", doc=DOC + "xor", cases=[((0xFFFF0000, 0x12345678), 0xEDCB5678)])
@op("xor.b64", "d:b64 = a:b64, b:b64", doc=DOC + "xor", cases=[((3 << 62, 1 << 62 | 1), 1 << 63 | 1)])
def xor(a: Lanes, b: Lanes) -> Lanes:
    return a ^ b


@op("not.pred", "d:pred = a:pred", doc=DOC + "not", cases=[(1, 0), (0, 1)])
@op("not.b16", "d:b16 = a:b16", doc=DOC + "not", cases=[(0x00FE, 0xFF01)])
@op("not.b32", "d:b32 = a:b32", doc=DOC + "not", cases=[(0, 0xFFFFFFFF), (0x80000001, 0x7FFFFFFE)])
@op("not.b64", "d:b64 = a:b64", doc=DOC + "not", cases=[(1, 2**64 - 2)])
def not_(a: Lanes) -> Lanes:
    return ~a


@op("cnot.b16", "d:b16 = a:b16", doc=DOC + "cnot", cases=[(0, 1), (0x8000, 0)])
@op("cnot.b32", "d:b32 = a:b32", doc=DOC + "cnot", cases=[(0, 1), (7, 0)])
@op("cnot.b64", "d:b64 = a:b64", doc=DOC + "cnot", cases=[(0, 1), (1 << 63, 0)])
def cnot(a: Lanes) -> Lanes:
    return where(a == 0, const(1, like=a), 0)


# --- lop3 ----------------------------------------------------------------------------------------------------------------------


def look_up(lut: int, sources: tuple[Lanes, ...]) -> Lanes | int:
    """The boolean function with truth table `lut` (bit a*4 + b*2 + c for three sources), or the number 0 or -1.

    By the first source: f = f0 ^ (a & (f0 ^ f1)), where f0 and f1 are the halves of the table.
    """
    size = 1 << len(sources)
    lut &= (1 << size) - 1
    if lut == 0:
        return 0
    if lut == (1 << size) - 1:
        return -1
    half = size // 2
    first, rest = sources[0], sources[1:]
    low, high = lut & ((1 << half) - 1), lut >> half
    changes = look_up(low ^ high, rest)
    base = look_up(low, rest)
    if not isinstance(changes, Lanes):
        taken: Lanes | None = first if changes else None
    else:
        taken = first & changes
    if taken is None:
        return base
    if not isinstance(base, Lanes):
        return ~taken if base else taken
    return base ^ taken


@op(
    "lop3.b32",
    "d:b32 = a:b32, b:b32, c:b32, lut:imm",
    doc=DOC + "lop3",
    cases=[
        ((0xF0, 0xCC, 0xAA, 0x96), 0xF0 ^ 0xCC ^ 0xAA),
        ((0xF0, 0xCC, 0xAA, 0xE8), 0xE8),
        ((0xF0, 0xCC, 0xAA, 0x1A), 0x1A),
        ((0xF0, 0xCC, 0xAA, 0x1D), 0xFFFFFF1D),
        ((1, 2, 4, 0), 0),
        ((1, 2, 4, 0xFF), 0xFFFFFFFF),
    ],
)
def lop3(a: Lanes, b: Lanes, c: Lanes, lut: int) -> Lanes:
    result = look_up(lut, (a, b, c))
    return result if isinstance(result, Lanes) else const(result, like=a)


def _lop3_with_predicate(combine: Callable[[Lanes, Lanes], Lanes]) -> Callable[..., tuple[Lanes, Lanes]]:
    def lop3_with_predicate(a: Lanes, b: Lanes, c: Lanes, lut: int, q: Lanes) -> tuple[Lanes, Lanes]:
        d = lop3(a, b, c, lut)
        return d, combine(d != 0, q)

    return lop3_with_predicate


_LOP3_PREDICATE = "d:b32, p:pred = a:b32, b:b32, c:b32, lut:imm, q:pred"
op("lop3.or.b32", _LOP3_PREDICATE, doc=DOC + "lop3", min_arch=70, cases=[((3, 5, 0, 0xC0, 0), (1, 1)), ((2, 5, 0, 0xC0, 0), (0, 0))])(
    _lop3_with_predicate(or_)
)
op("lop3.and.b32", _LOP3_PREDICATE, doc=DOC + "lop3", min_arch=70, cases=[((3, 5, 0, 0xC0, 1), (1, 1)), ((3, 5, 0, 0xC0, 0), (1, 0))])(
    _lop3_with_predicate(and_)
)


# --- shifts --------------------------------------------------------------------------------------------------------------------


def at_most(n: Lanes, limit: int) -> Lanes:
    """A shift amount, clamped while it still has all its bits."""
    return where(n < limit, n, limit)


def _shl(a: Lanes, n: Lanes) -> Lanes:
    return a << (at_most(n, 16) if width(a.type) == 16 else n)


def _shr(a: Lanes, n: Lanes) -> Lanes:
    return a >> (at_most(n, 16) if width(a.type) == 16 else n)


op("shl.b16", "d:b16 = a:b16, n:u32", doc=DOC + "shl", cases=[((0x8001, 1), 2), ((1, 15), 0x8000), ((1, 16), 0), ((1, 65536), 0)])(_shl)
op("shl.b32", "d:b32 = a:b32, n:u32", doc=DOC + "shl", cases=[((1, 4), 16), ((1, 32), 0), ((1, 64), 0), ((1, 2**32 - 1), 0)])(_shl)
op("shl.b64", "d:b64 = a:b64, n:u32", doc=DOC + "shl", cases=[((1, 63), 1 << 63), ((1, 64), 0), ((1, 2**32 - 1), 0)])(_shl)

_SHR_CASES = {
    16: (
        [((0x8000, 15), 1), ((0x8000, 16), 0), ((0x8000, 65536), 0)],
        [((0x8000, 15), 0xFFFF), ((0x8000, 65536), 0xFFFF), ((0x7FFF, 99), 0)],
    ),
    32: ([((1 << 31, 31), 1), ((1 << 31, 32), 0)], [((1 << 31, 4), 0xF8000000), ((1 << 31, 32), 2**32 - 1), ((5, 2**32 - 1), 0)]),
    64: ([((1 << 63, 63), 1), ((1 << 63, 64), 0)], [((1 << 63, 63), 2**64 - 1), ((1 << 63, 2**32 - 1), 2**64 - 1), ((5, 64), 0)]),
}
for _n, (_unsigned, _signed) in _SHR_CASES.items():
    for _letter in "bu":
        op(f"shr.{_letter}{_n}", f"d:u{_n} = a:u{_n}, n:u32", doc=DOC + "shr", cases=_unsigned)(_shr)
    op(f"shr.s{_n}", f"d:s{_n} = a:s{_n}, n:u32", doc=DOC + "shr", cases=_signed)(_shr)


@op(
    "shf.l.clamp.b32",
    "d:b32 = a:b32, b:b32, c:u32",
    doc=DOC + "shf",
    cases=[((0x80000001, 5, 1), 11), ((7, 5, 32), 7), ((7, 5, 33), 7), ((7, 5, 0), 5)],
)
def shf_l_clamp(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    n = at_most(c, 32)
    return (b << n) | (a >> (32 - n))


@op(
    "shf.l.wrap.b32",
    "d:b32 = a:b32, b:b32, c:u32",
    doc=DOC + "shf",
    cases=[((0x80000001, 5, 1), 11), ((7, 5, 32), 5), ((1 << 31, 5, 33), 11)],
)
def shf_l_wrap(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return shf_l_clamp(a, b, c & 31)


@op(
    "shf.r.clamp.b32",
    "d:b32 = a:b32, b:b32, c:u32",
    doc=DOC + "shf",
    cases=[((4, 3, 1), 0x80000002), ((7, 5, 32), 5), ((7, 5, 99), 5), ((7, 5, 0), 7)],
)
def shf_r_clamp(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    n = at_most(c, 32)
    return (b << (32 - n)) | (a >> n)


@op(
    "shf.r.wrap.b32",
    "d:b32 = a:b32, b:b32, c:u32",
    doc=DOC + "shf",
    cases=[((4, 3, 1), 0x80000002), ((7, 5, 32), 7), ((4, 3, 33), 0x80000002)],
)
def shf_r_wrap(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return shf_r_clamp(a, b, c & 31)
