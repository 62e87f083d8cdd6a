"""Bits and bytes of a register: prmt, bfe, bfi, bfind, brev, popc, clz, fns, szext, bmsk."""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, bits, brev, cast, clz, const, popc, where, width

DOC = "integer-arithmetic-instructions-"

# --- prmt ----------------------------------------------------------------------------------------------------------------------

#: selectors by mode and value of c[1:0], as the general form of prmt writes them
MODES = {
    "f4e": (0x3210, 0x4321, 0x5432, 0x6543),
    "b4e": (0x5670, 0x6701, 0x7012, 0x0123),
    "rc8": (0x0000, 0x1111, 0x2222, 0x3333),
    "ecl": (0x3210, 0x3211, 0x3222, 0x3333),
    "ecr": (0x0000, 0x1110, 0x2210, 0x3210),
    "rc16": (0x1010, 0x3232, 0x1010, 0x3232),
}


def prmt(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    both = cast(a, "u64") | (cast(b, "u64") << 32)
    result = const(0, like=a)
    for i in range(4):
        selector = c >> 4 * i
        byte = cast(both >> ((selector & 7) << 3), "u32")
        sign = cast(bits(byte << 24, "s32") >> 31, "u32")
        result = result | ((where((selector & 8) != 0, sign, byte) & 0xFF) << 8 * i)
    return result


def prmt_immediate(a: Lanes, b: Lanes, c: int) -> Lanes:
    result = const(0, like=a)
    for i in range(4):
        selector = c >> 4 * i & 15
        byte = (b if selector & 4 else a) >> 8 * (selector & 3)
        if selector & 8:
            byte = bits(bits(byte << 24, "s32") >> 31, "u32")
        result = result | ((byte & 0xFF) << 8 * i)
    return result


def _prmt_mode(selectors: tuple[int, ...]) -> Callable[[Lanes, Lanes, Lanes], Lanes]:
    def semantics(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        results = [prmt_immediate(a, b, selector) for selector in selectors]
        odd, upper = (c & 1) != 0, (c & 2) != 0
        return where(upper, where(odd, results[3], results[2]), where(odd, results[1], results[0]))

    return semantics


_A, _B = 0x83828180, 0x07060504
_PRMT_CASES = [
    ((_A, _B, 0x3210), _A),
    ((_A, _B, 0x7654), _B),
    ((_A, _B, 0x0246), 0x80820406),
    ((_A, _B, 0xC8BA), 0x00FFFFFF),
    ((_A, _B, 0xFFFF5410), 0x05048180),
]
op("prmt.b32", "d:b32 = a:b32, b:b32, c:u32", doc="data-movement-and-conversion-instructions-prmt", cases=_PRMT_CASES)(prmt)
op("prmt.b32:imm", "d:b32 = a:b32, b:b32, c:imm", doc="data-movement-and-conversion-instructions-prmt", cases=_PRMT_CASES)(prmt_immediate)
for _mode, _selectors in MODES.items():
    _cases = []
    for _c, _selector in enumerate(_selectors):
        _bytes = (_B << 32 | _A).to_bytes(8, "little")
        _result = sum(_bytes[_selector >> 4 * i & 7] << 8 * i for i in range(4))
        _cases += [((_A, _B, _c), _result), ((_A, _B, _c + 0xFFFFFFFC), _result)]
    op(f"prmt.b32.{_mode}", "d:b32 = a:b32, b:b32, c:u32", doc="data-movement-and-conversion-instructions-prmt", cases=_cases)(
        _prmt_mode(_selectors)
    )


# --- bfe, bfi ------------------------------------------------------------------------------------------------------------------


def _limited(x: Lanes, n: int) -> Lanes:
    """A position or length, no more than the width: the low 8 bits, as PTX says, but for 64 bits ptxas takes all of them.

    Source: nvdisasm of bfe.u64, bfe.s64 and bfi.b64 for sm_90 (CUDA 13.0), checked on an H200.
    """
    x = x if n == 64 else x & 0xFF
    return where(x < n, x, n)


def _bfe(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    n = width(a.type)
    # the sign is the field's last bit, or the value's own where the field reaches beyond it: shifting up and down does both
    length = _limited(c, n)
    rest = n - length
    field = (a >> _limited(b, n)) << rest
    return where(length == 0, 0, field >> rest)


def _bfi(a: Lanes, b: Lanes, c: Lanes, d: Lanes) -> Lanes:
    n = width(a.type)
    position, one = _limited(c, n), const(1, like=a)
    mask = ((one << _limited(d, n)) - 1) << position
    return (b & ~mask) | ((a << position) & mask)


for _n in (32, 64):
    _top = 1 << (_n - 1)
    op(
        f"bfe.u{_n}",
        f"d:u{_n} = a:u{_n}, b:u32, c:u32",
        doc=DOC + "bfe",
        cases=[
            ((0xABCD, 4, 8), 0xBC),
            ((_top, _n - 1, 9), 1),
            ((5, 0, 255), 5),
            ((5, 255, 5), 0),
            ((5, 256, 0), 0),
            ((0xABCD, 0x104, 0x208), 0xBC if _n == 32 else 0),
        ],
    )(_bfe)
    op(
        f"bfe.s{_n}",
        f"d:s{_n} = a:s{_n}, b:u32, c:u32",
        doc=DOC + "bfe",
        cases=[
            ((0xABCD, 4, 8), -0x44),
            ((0xABCD, 0, 4), -3),
            ((_top, _n - 1, 9), -1),
            ((_top, 255, 5), -1),
            ((5, 255, 5), 0),
            ((_top, 200, 0), 0),
        ],
    )(_bfe)
    op(
        f"bfi.b{_n}",
        f"f:b{_n} = a:b{_n}, b:b{_n}, c:u32, d:u32",
        doc=DOC + "bfi",
        cases=[((0xFF, 0, 4, 4), 0xF0), ((0, _top | 0xFF, 4, 255), 0xF), ((7, 9, 0, 0), 9), ((7, 9, 0, 255), 7), ((7, 9, 255, 8), 9)],
    )(_bfi)


# --- counting ------------------------------------------------------------------------------------------------------------------


def _popc(a: Lanes) -> Lanes:
    return cast(popc(a), "u32")


def _clz(a: Lanes) -> Lanes:
    return cast(clz(a), "u32")


def _bfind(shift_amount: bool) -> Callable[[Lanes], Lanes]:
    def bfind(a: Lanes) -> Lanes:
        n = width(a.type)
        if a.type[0] == "s":
            a = a ^ (a >> (n - 1))
        leading = cast(clz(a), "u32")
        return where(leading == n, 0xFFFFFFFF, leading) if shift_amount else (n - 1) - leading

    return bfind


for _n in (32, 64):
    _top, _ones = 1 << (_n - 1), 2**_n - 1
    op(f"popc.b{_n}", f"d:u32 = a:b{_n}", doc=DOC + "popc", cases=[(0, 0), (_ones, _n), (_top | 5, 3)])(_popc)
    op(f"clz.b{_n}", f"d:u32 = a:b{_n}", doc=DOC + "clz", cases=[(0, _n), (1, _n - 1), (_top, 0)])(_clz)
    op(f"brev.b{_n}", f"d:b{_n} = a:b{_n}", doc=DOC + "brev", cases=[(1, _top), (_top | 2, (1 << (_n - 2)) | 1)])(brev)
    op(f"bfind.u{_n}", f"d:u32 = a:u{_n}", doc=DOC + "bfind", cases=[(0, -1), (1, 0), (_ones, _n - 1)])(_bfind(False))
    op(f"bfind.s{_n}", f"d:u32 = a:s{_n}", doc=DOC + "bfind", cases=[(0, -1), (_ones, -1), (1, 0), (_top, _n - 2), (_ones - 4, 2)])(
        _bfind(False)
    )
    op(f"bfind.shiftamt.u{_n}", f"d:u32 = a:u{_n}", doc=DOC + "bfind", cases=[(0, -1), (1, _n - 1), (_ones, 0)])(_bfind(True))
    op(f"bfind.shiftamt.s{_n}", f"d:u32 = a:s{_n}", doc=DOC + "bfind", cases=[(0, -1), (_ones, -1), (1, _n - 1), (_top, 1)])(_bfind(True))


def _nth_set(x: Lanes, n: Lanes) -> Lanes:
    """Position of the n-th set bit (from 1, from below), or all ones: halving, by the count of the lower half."""
    position, found = const(0, like=x), bits(popc(x), "s32") >= bits(n, "s32")
    for size in (16, 8, 4, 2, 1):
        below = popc(x & ((1 << size) - 1))
        upper = n > below
        n = where(upper, n - below, n)
        x = where(upper, x >> size, x)
        position = where(upper, position + size, position)
    return where(found, position, 0xFFFFFFFF)


@op(
    "fns.b32",
    "d:b32 = mask:b32, base:b32, offset:s32",
    doc=DOC + "fns",
    min_arch=30,
    cases=[
        ((0xAAAAAAAA, 3, 0), 3),
        ((0xAAAAAAAA, 2, 0), -1),
        ((0xAAAAAAAA, 3, 1), 3),
        ((0xAAAAAAAA, 3, 2), 5),
        ((0xAAAAAAAA, 3, -1), 3),
        ((0xAAAAAAAA, 3, -2), 1),
        ((0xAAAAAAAA, 3, -3), -1),
        ((0x80000000, 0, 1), 31),
        ((0x80000000, 0, 2), -1),
        ((1, 31, -1), 0),
        ((1, 31, -(2**31)), 0),  # ptxas compares the count, which stays negative, with its sign
    ],
)
def fns(mask: Lanes, base: Lanes, offset: Lanes) -> Lanes:
    ones = const(0xFFFFFFFF, like=mask)
    count = bits(where(offset < 0, -offset, offset), "u32")
    up = _nth_set(mask & (ones << base), count)
    down = _nth_set(brev(mask) & (ones << (31 - base)), count)
    down = where(down == 0xFFFFFFFF, down, 31 - down)
    at = where(((mask >> base) & 1) != 0, base, 0xFFFFFFFF)
    return where(offset == 0, at, where(offset > 0, up, down))


# --- szext, bmsk ---------------------------------------------------------------------------------------------------------------


def _szext(clamp: bool) -> Callable[[Lanes, Lanes], Lanes]:
    def szext(a: Lanes, b: Lanes) -> Lanes:
        n = b & 31
        rest = bits(32 - n, a.type)  # of 0 bits there is no sign: the shift by 32 leaves 0
        extended = (a << rest) >> rest if a.type == "u32" else where(n == 0, 0, (a << rest) >> rest)
        return where(b < 32, extended, a) if clamp else extended

    return szext


for _t, _of_5 in (("u32", 5), ("s32", -3)):
    _ext = f"d:{_t} = a:{_t}, b:u32"
    _doc = DOC + "szext"
    op(
        f"szext.clamp.{_t}", _ext, doc=_doc, min_arch=70, cases=[((0xFD, 3), _of_5), ((0xFD, 32), 0xFD), ((0xFD, 99), 0xFD), ((0xFD, 0), 0)]
    )(_szext(True))
    op(f"szext.wrap.{_t}", _ext, doc=_doc, min_arch=70, cases=[((0xFD, 3), _of_5), ((0xFD, 35), _of_5), ((0xFD, 32), 0)])(_szext(False))


@op(
    "bmsk.clamp.b32",
    "d:b32 = a:u32, b:u32",
    doc=DOC + "bmsk",
    min_arch=70,
    cases=[((4, 4), 0xF0), ((0, 32), -1), ((28, 9), 0xF0000000), ((32, 4), 0), ((5, 0), 0), ((0, 99), -1)],
)
def bmsk_clamp(a: Lanes, b: Lanes) -> Lanes:
    ones = const(0xFFFFFFFF, like=a)
    length = where(b < 32, b, 32)
    return ~(ones << length) << a


@op(
    "bmsk.wrap.b32",
    "d:b32 = a:u32, b:u32",
    doc=DOC + "bmsk",
    min_arch=70,
    cases=[((4, 4), 0xF0), ((36, 36), 0xF0), ((0, 32), 0), ((28, 9), 0xF0000000)],
)
def bmsk_wrap(a: Lanes, b: Lanes) -> Lanes:
    return bmsk_clamp(a & 31, b & 31)
