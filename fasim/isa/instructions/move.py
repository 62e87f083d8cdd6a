"""Moves, packing and unpacking of registers, selection, and generic addresses: mov, selp, slct, cvta, isspacep."""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.machine import CONST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW_BYTES
from fasim.isa.table import op
from fasim.numerics.lanes import Lanes, bits, cast, where, width

DOC = "data-movement-and-conversion-instructions-"
SCALARS = [f"{letter}{n}" for n in (16, 32, 64) for letter in "bus"] + ["f32", "f64"]


def _same(a: Lanes) -> Lanes:
    return a


op("mov.pred", "d:pred = a:pred", doc=DOC + "mov", cases=[(1, 1), (0, 0)])(_same)
for _t in SCALARS:
    _top = 1 << (int(_t[1:]) - 1)
    op(f"mov.{_t}", f"d:{_t} = a:{_t}", doc=DOC + "mov", cases=[(_top | 1, _top | 1), (0, 0)])(_same)


def _pack(type_: str) -> Callable[[tuple[Lanes, ...]], Lanes]:
    def pack(parts: tuple[Lanes, ...]) -> Lanes:
        result = cast(parts[0], type_)
        for i, part in enumerate(parts[1:], 1):
            result = result | (cast(part, type_) << i * width(part.type))
        return result

    return pack


def _unpack(type_: str, count: int) -> Callable[[Lanes], tuple[Lanes, ...]]:
    def unpack(a: Lanes) -> tuple[Lanes, ...]:
        return tuple(cast(a >> i * width(type_), type_) for i in range(count))

    return unpack


for _whole, _count in ((16, 2), (32, 2), (32, 4), (64, 2), (64, 4)):
    _n = _whole // _count
    _parts = tuple(range(1, _count + 1))
    _value = sum(part << i * _n for i, part in enumerate(_parts))
    op(f"mov.b{_whole}:pack{_count}", f"d:b{_whole} = a:b{_n}*{_count}", doc=DOC + "mov-2", cases=[((_parts,), _value)])(
        _pack(f"u{_whole}")
    )
    op(f"mov.b{_whole}:unpack{_count}", f"d:b{_n}*{_count} = a:b{_whole}", doc=DOC + "mov-2", cases=[(_value, _parts)])(
        _unpack(f"u{_n}", _count)
    )


# A .b128 register is a pair of 64-bit ones, the low half first, so that these three are the same instruction.
@op(
    ["mov.b128", "mov.b128:pack2", "mov.b128:unpack2"],
    "d:b64*2 = a:b64*2",
    doc=DOC + "mov-2",
    min_arch=70,
    cases=[(((1 << 63, 5),), (1 << 63, 5))],
)
def mov_b128(a: tuple[Lanes, ...]) -> tuple[Lanes, ...]:
    return a


# --- selection -----------------------------------------------------------------------------------------------------------------


def _selp(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return where(c, a, b)


for _t in SCALARS:
    op(
        f"selp.{_t}",
        f"d:{_t} = a:{_t}, b:{_t}, c:pred",
        doc="comparison-and-selection-instructions-selp",
        cases=[((5, 9, 1), 5), ((5, 9, 0), 9)],
    )(_selp)


def _slct_s32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return where(c >= 0, a, b)


def _slct_f32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    return where(c >= 0.0, a, b)


def _slct_ftz_f32(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    # a negative subnormal becomes -0, which is not less than 0
    return where((c >= 0.0) | ((bits(c, "u32") & 0x7F800000) == 0), a, b)


_SLCT_F32 = [((5, 9, 0x80000000), 5), ((5, 9, 0x3F800000), 5), ((5, 9, 0xBF800000), 9), ((5, 9, 0x7FC00000), 9)]
for _t in SCALARS:
    _signature = f"d:{_t} = a:{_t}, b:{_t}, c:"
    _doc = "comparison-and-selection-instructions-slct"
    op(f"slct.{_t}.s32", _signature + "s32", doc=_doc, cases=[((5, 9, 0), 5), ((5, 9, 2**31 - 1), 5), ((5, 9, 2**31), 9)])(_slct_s32)
    op(f"slct.{_t}.f32", _signature + "f32", doc=_doc, cases=[*_SLCT_F32, ((5, 9, 0x80000001), 9)])(_slct_f32)
    op(f"slct.ftz.{_t}.f32", _signature + "f32", doc=_doc, cases=[*_SLCT_F32, ((5, 9, 0x80000001), 5)])(_slct_ftz_f32)


# --- generic addresses ---------------------------------------------------------------------------------------------------------

WINDOWS = {
    "global": 0,
    "const": 0,
    "shared": SHARED_WINDOW,
    "shared::cta": SHARED_WINDOW,
    "shared::cluster": SHARED_WINDOW,
    "local": LOCAL_WINDOW,
    "param": PARAM_WINDOW,
    "param::entry": PARAM_WINDOW,
}


def _inside(a: Lanes, window: int) -> Lanes:
    return (a - window) < WINDOW_BYTES


def _offset(window: int) -> Callable[[Lanes], Lanes]:
    return lambda a: a + window


for _space, _window in WINDOWS.items():
    _here, _arch = _window + 0x120, 90 if "cluster" in _space else 0
    op(f"cvta.{_space}.u64", "d:u64 = a:u64", doc=DOC + "cvta", min_arch=_arch, cases=[(0x120, _here)])(_offset(_window))
    op(f"cvta.to.{_space}.u64", "d:u64 = a:u64", doc=DOC + "cvta", min_arch=_arch, cases=[(_here, 0x120)])(_offset(-_window))
    if _window:
        op(
            f"isspacep.{_space}",
            "p:pred = a:u64",
            doc=DOC + "isspacep",
            min_arch=_arch,
            cases=[(_window, 1), (_window + WINDOW_BYTES - 1, 1), (_window + WINDOW_BYTES, 0), (_window - 1, 0), (0, 0)],
        )(lambda a, window=_window: _inside(a, window))


@op(
    "isspacep.global",
    "p:pred = a:u64",
    doc=DOC + "isspacep",
    cases=[(SHARED_WINDOW, 0), (LOCAL_WINDOW + 8, 0), (PARAM_WINDOW, 0), (0x7000_0000_0000, 1)],
)
def isspacep_global(a: Lanes) -> Lanes:
    return ~(_inside(a, SHARED_WINDOW) | _inside(a, LOCAL_WINDOW) | _inside(a, PARAM_WINDOW) | _inside(a, CONST_WINDOW))


@op(
    "isspacep.const",
    "p:pred = a:u64",
    doc=DOC + "isspacep",
    cases=[(CONST_WINDOW, 1), (CONST_WINDOW - 1, 0), (SHARED_WINDOW, 0), (0x7000_0000_0000, 0)],
)
def isspacep_const(a: Lanes) -> Lanes:
    return _inside(a, CONST_WINDOW)
