"""cvt with a floating-point source or destination; between integers see convert_integer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from fasim.isa.table import op
from fasim.numerics import convert, ieee, narrow
from fasim.numerics.lanes import Lanes, cast, where
from fasim.numerics.narrow import BF16, E4M3, E5M2, F16, FORMATS, Format, Fp8

Semantics = Callable[..., Lanes]

DOC = "data-movement-and-conversion-instructions-cvt"
REGISTER = {"f16": "b16", "bf16": "b16", "f32": "f32", "f64": "f64"}
INTEGERS = [f"{letter}{n}" for n in (8, 16, 32, 64) for letter in "us"]
EXTRA = ("", "relu", "satfinite", "relu.satfinite", "satfinite.relu")

F32_NAN, F32_INF = 0x7FFFFFFF, 0x7F800000
CASES: dict[str, list[tuple[Any, int]]] = {
    "rn.f16.f32": [
        (0x477FEF00, 0x7BFF),
        (0x477FF000, 0x7C00),
        (0x33000000, 0),
        (0x33000001, 1),
        (0xFFC00000, 0x7FFF),
        (0x3F801000, 0x3C00),
    ],
    "rz.f16.f32": [(0x47C35000, 0x7BFF), (0x3F801FFF, 0x3C00), (F32_INF, 0x7C00), (0x80000001, 0x8000)],
    "rm.f16.f32": [(0x80000001, 0x8001), (0x47C35000, 0x7BFF), (0x00000001, 0)],
    "rp.f16.f32": [(0x00000001, 1), (0xC7C35000, 0xFBFF), (0x47C35000, 0x7C00), (0x80000001, 0x8000)],
    "rn.satfinite.f16.f32": [(0x47C35000, 0x7BFF), (0xFF800000, 0xFBFF), (F32_NAN, 0x7FFF)],
    "rn.relu.f16.f32": [(0xBF800000, 0), (0x80000000, 0), (F32_NAN, 0x7FFF), (0x3F800000, 0x3C00)],
    "rn.sat.f16.f32": [(0x40000000, 0x3C00), (F32_NAN, 0), (0xBF800000, 0), (0x3F000000, 0x3800)],
    # 2**-11 + 2**-40 above 1 is above the tie, though the nearest f32 is the tie
    "rn.f16.f64": [(0x3FF0020000001000, 0x3C01), (0x3FF0020000000000, 0x3C00), (0x7FF0000000000000, 0x7C00), (0xFFFABCDEF0123456, 0xFEAF)],
    "rn.bf16.f32": [(0x3F808000, 0x3F80), (0x3F818000, 0x3F82), (0x7F7FFFFF, 0x7F80), (0xFFC00000, 0x7FFF), (0x00008001, 1)],
    "rz.bf16.f32": [(0x3F80FFFF, 0x3F80), (0x7F7FFFFF, 0x7F7F), (0x7F800001, 0x7FFF)],
    "rp.bf16.f32": [(0x3F800001, 0x3F81), (0xBF80FFFF, 0xBF80), (1, 1)],
    "rm.bf16.f32": [(0x3F80FFFF, 0x3F80), (0xBF800001, 0xBF81), (0x80000001, 0x8001)],
    "f32.f16": [(0x3C00, 0x3F800000), (1, 0x33800000), (0x8000, 0x80000000), (0x7C01, F32_NAN), (0xFC00, 0xFF800000)],
    "f32.bf16": [(0x3F80, 0x3F800000), (0xFFC1, 0xFFC10000)],
    "f32.f32": [(0x7F800001, 0x7F800001), (1, 1)],
    "ftz.f32.f32": [(0x7F800001, F32_NAN), (0x80000001, 0x80000000)],
    "sat.f32.f32": [(0x40000000, 0x3F800000), (0x80000000, 0), (F32_NAN, 0), (0x3F000000, 0x3F000000)],
    "rni.f32.f32": [(0x3F000000, 0), (0xBF000000, 0x80000000), (0x3FC00000, 0x40000000), (0x40200000, 0x40000000), (0x7F800001, F32_NAN)],
    "rzi.f32.f32": [(0xBFC00000, 0xBF800000), (0xBF000000, 0x80000000)],
    "rmi.f32.f32": [(0xBF000000, 0xBF800000), (0x3F000000, 0)],
    "rpi.f32.f32": [(0x3F000000, 0x3F800000), (0xBF000000, 0x80000000)],
    "rn.f32.f64": [
        (0x3FF0000010000000, 0x3F800000),
        (0x3FF0000010000001, 0x3F800001),
        (0x7FEFFFFFFFFFFFFF, F32_INF),
        (0x3690000000000000, 0),
        (0xFFF0000000000001, 0xFFC00000),
    ],
    "rz.f32.f64": [(0x3FF000001FFFFFFF, 0x3F800000), (0x7FEFFFFFFFFFFFFF, 0x7F7FFFFF)],
    "rp.f32.f64": [(1, 1), (0xFFEFFFFFFFFFFFFF, 0xFF7FFFFF)],
    "rm.f32.f64": [(0x8000000000000001, 0x80000001), (0x7FEFFFFFFFFFFFFF, 0x7F7FFFFF)],
    # 2**-126 - 2**-151 rounds to 2**-126; a little less has 24 bits below it, and is flushed though a subnormal grid rounds it up
    "rn.ftz.f32.f64": [(0x380FFFFFF0000000, 0x00800000), (0x380FFFFFEFFFFFFF, 0), (0xB80FFFFFEFFFFFFF, 0x80000000)],
    "f64.f32": [(0x3F800000, 0x3FF0000000000000), (1, 0x36A0000000000000), (0xFF800000, 0xFFF0000000000000)],
    "rzi.s32.f32": [(0xBFFFFFFF, 0xFFFFFFFF), (0x4F000000, 0x7FFFFFFF), (0xCF000001, 0x80000000), (F32_NAN, 0), (F32_INF, 0x7FFFFFFF)],
    "rni.s32.f32": [(0x3F000000, 0), (0x3FC00000, 2), (0x40200000, 2), (0xBF000001, 0xFFFFFFFF)],
    "rmi.s32.f32": [(0xBE99999A, 0xFFFFFFFF), (0x80000001, 0xFFFFFFFF)],
    "rpi.s32.f32": [(0x3DCCCCCD, 1), (0xBF7FFFFF, 0), (1, 1)],
    "rpi.ftz.s32.f32": [(1, 0)],
    "rzi.u32.f32": [(0xBF800000, 0), (0x4F800000, 0xFFFFFFFF), (0x4F7FFFFF, 0xFFFFFF00), (F32_NAN, 0)],
    "rzi.s64.f32": [(F32_NAN, 1 << 63), (0x5F000000, (1 << 63) - 1), (0xDF000000, 1 << 63), (0xBF800000, (1 << 64) - 1)],
    "rzi.u64.f32": [(F32_NAN, 1 << 63), (0x5F800000, (1 << 64) - 1), (0x5F7FFFFF, 0xFFFFFF0000000000)],
    "rzi.s32.f64": [(0x7FF8000000000000, 0x80000000), (0x41DFFFFFFFFFFFFF, 0x7FFFFFFF), (0xC1E0000000200000, 0x80000000)],
    "rzi.u8.f32": [(0x43960000, 0xFF), (0xBF800000, 0), (0x42480000, 50)],
    "rzi.s8.f32": [(0x43960000, 0x7F), (0xC3960000, 0x80), (0xBF800000, 0xFF)],
    "rn.f32.s32": [(0x01000001, 0x4B800000), (0x01000003, 0x4B800002), (0x80000000, 0xCF000000)],
    "rz.f32.u32": [(0xFFFFFFF0, 0x4F7FFFFF), (0, 0)],
    "rp.f32.u32": [(0xFFFFFF01, 0x4F800000)],
    "rm.f32.s32": [(0xFEFFFFFF, 0xCB800001), (0x01000001, 0x4B800000)],
    # 2**62 + 2**38 + 1: above a tie that the nearest double would hide
    "rn.f32.u64": [(0x4000004000000001, 0x5E800001), (0x4000004000000000, 0x5E800000), ((1 << 64) - 1, 0x5F800000)],
    "rz.f32.u64": [((1 << 64) - 1, 0x5F7FFFFF)],
    "rm.f32.s64": [((1 << 64) - (1 << 62) - 1, 0xDE800001)],
    "rz.f64.u64": [((1 << 64) - 1, 0x43EFFFFFFFFFFFFF)],
    "rp.f64.s64": [((1 << 53) + 1, 0x4340000000000001), ((1 << 64) - (1 << 53) - 1, 0xC340000000000000)],
    "rn.f64.u64": [((1 << 53) + 1, 0x4340000000000000)],
    "rn.f16.s32": [(65519, 0x7BFF), (65520, 0x7C00), (0xFFFFFFFF, 0xBC00)],
    "rz.f16.u64": [((1 << 64) - 1, 0x7BFF), (2049, 0x6800)],
    "rn.bf16.s32": [(257, 0x4380), (0x01010001, 0x4B81), (0x01010000, 0x4B80)],
    "rn.f16x2.f32": [((0x3F800000, 0x40000000), 0x3C004000), ((0x477FF000, F32_NAN), 0x7C007FFF)],
    "rn.relu.f16x2.f32": [((0xBF800000, 0x40000000), 0x00004000)],
    "rn.bf16x2.f32": [((0x3F808000, 0xFFC00000), 0x3F807FFF)],
    # ties go away from zero; infinity and NaN are only cut
    "rna.tf32.f32": [(0x3F801000, 0x3F802000), (0x3F800FFF, 0x3F800000), (0x7F7FFFFF, F32_INF), (F32_NAN, 0x7FFFE000)],
    "rna.satfinite.tf32.f32": [(0x7F7FFFFF, 0x7F7FE000), (0xFF800000, 0xFF7FE000)],
    "rn.tf32.f32": [(0x3F801000, 0x3F800000), (0x3F803000, 0x3F804000), (0xFF800001, 0x7FFFE000)],
    "rz.tf32.f32": [(0x3F801FFF, 0x3F800000)],
    # 448 is 0x7e, 2**-9 is 1, half of it a tie
    "rn.satfinite.e4m3x2.f32": [
        ((0x43E00000, 0x3F800000), 0x7E38),
        ((F32_INF, F32_NAN), 0x7E7F),
        ((0x3A800000, 0x3A800001), 1),
        ((0xC47A0000, 0xBC800000), 0xFE88),
    ],
    "rn.satfinite.e5m2x2.f32": [((0x3F800000, 0x47600000), 0x3C7B), ((0xFF800000, F32_NAN), 0xFB7F), ((0x37000000, 0x37000001), 1)],
    "rn.satfinite.relu.e4m3x2.f32": [((0xBF800000, 0x3F800000), 0x0038)],
    "rn.satfinite.e4m3x2.f16x2": [(0x5F003C00, 0x7E38)],
    "rn.f16x2.e4m3x2": [(0x7E38, 0x5F003C00), (0x7F01, 0x7FFF1800), (0x8880, 0xA4008000)],
    "rn.f16x2.e5m2x2": [(0x3C7C, 0x3C007C00), (0x7D01, 0x7FFF0100)],
    "rn.relu.f16x2.e4m3x2": [(0xB838, 0x00003C00)],
}


def _op(name: str, signature: str, semantics: Semantics, min_arch: int = 0) -> None:
    op(f"cvt.{name}", signature, doc=DOC, cases=CASES.get(name, ()), min_arch=min_arch)(semantics)


def _name(*parts: str) -> str:
    return ".".join(filter(None, parts))


# --- between floats ------------------------------------------------------------------------------------------------------------


def _finish(x: Lanes, type_: str, extra: str) -> Lanes:
    if extra == "sat":
        return convert.saturated(x, type_)
    if extra:
        format_ = FORMATS[type_]
        x = narrow.satfinite(x, format_) if "satfinite" in extra else x
        return narrow.relu(x, format_) if "relu" in extra else x
    return x


def float_to_float(source: str, target: str, rounding: str, ftz: bool, extra: str) -> Semantics:
    """The semantics of cvt{.rounding}{.ftz}{.extra}.target.source for another type, or with an integral rounding for the same."""

    def semantics(a: Lanes) -> Lanes:
        x = convert.widened(a, source)
        if source == "bf16" and target == "f32" and not ftz:
            return x  # the machine code is a shift
        if rounding in convert.INTEGRAL:
            x = ieee.canonical(convert.INTEGRAL[rounding](ieee.flush(x) if ftz else x), x)
            return _finish(convert.narrowed(x, target, "rn"), target, extra)
        if source == "f64" and target == "f32" and ftz:
            return _finish(convert.flush_narrowed(x, rounding), target, extra)
        # .ftz has no effect on the way to f16, whose values end far above
        if ftz and target != "f16":
            x = ieee.canonical(ieee.flush(x))
        x = convert.narrowed(x, target, rounding or "rn")
        return _finish(ieee.canonical(x) if target == "f32" and source != "f64" else x, target, extra)

    return semantics


def same_type(type_: str, ftz: bool, sat: bool) -> Semantics:
    """The semantics of cvt{.ftz}{.sat} of a type to itself, which is a move for f32 and f64 without modifiers."""

    def semantics(a: Lanes) -> Lanes:
        if type_ in FORMATS:
            return narrow.saturate(a, FORMATS[type_]) if sat else narrow.canonical(a, FORMATS[type_])
        x = ieee.canonical(ieee.flush(a)) if ftz else a
        return ieee.saturate(x) if sat else x

    return semantics


def _float_forms(source: str, target: str) -> Iterator[tuple[str, bool, str, int]]:
    """Rounding, `.ftz`, `.sat` and the like, and the least target of every legal spelling."""
    has_bf16 = "bf16" in (source, target)
    base = 90 if has_bf16 else 0
    narrower = FORMATS.get(target) is not None or (target == "f32" and source == "f64")
    if source == target:
        roundings: tuple[str, ...] = tuple(convert.INTEGRAL)
    elif has_bf16 and (source, target) != ("f32", "bf16"):
        roundings = ("", *ieee.ROUNDINGS) if source != "f64" else ieee.ROUNDINGS
    else:
        roundings = ieee.ROUNDINGS if narrower else ("",)
    if (source, target) in (("f32", "bf16"), ("bf16", "f32")):
        base = 80
    for rounding in roundings:
        for ftz in (False, True) if "f32" in (source, target) else (False,):
            for extra in ("",) if has_bf16 else ("", "sat"):
                yield rounding, ftz, extra, 90 if ftz and source == "bf16" else base
        if source == "f32" and target in FORMATS and rounding in ("rn", "rz"):
            for extra in EXTRA[1:]:
                yield rounding, False, extra, 80 if "relu" in extra or has_bf16 else base


for _source in REGISTER:
    for _target in REGISTER:
        _signature = f"d:{REGISTER[_target]} = a:{REGISTER[_source]}"
        for _rounding, _ftz, _extra, _arch in _float_forms(_source, _target):
            _full = _name(_rounding, "ftz" if _ftz else "", _extra, _target, _source)
            _op(_full, _signature, float_to_float(_source, _target, _rounding, _ftz, _extra), _arch)
    for _ftz in (False, True) if _source == "f32" else (False,):
        for _sat in (False, True) if _source != "bf16" else (False,):
            _full = _name("ftz" if _ftz else "", "sat" if _sat else "", _source, _source)
            _op(_full, f"d:{REGISTER[_source]} = a:{REGISTER[_source]}", same_type(_source, _ftz, _sat), 90 if _source == "bf16" else 0)


# --- floats and integers -------------------------------------------------------------------------------------------------------


def float_to_int(source: str, target: str, rounding: str, ftz: bool) -> Semantics:
    """The semantics of cvt.rounding{.ftz}{.sat}.target.source; `.sat` changes nothing."""

    def semantics(a: Lanes) -> Lanes:
        x = convert.widened(a, source)
        return convert.to_integer(ieee.flush(x) if ftz else x, rounding, target, source == "f64")

    return semantics


def int_to_float(target: str, rounding: str, sat: bool) -> Semantics:
    """The semantics of cvt.rounding{.ftz}{.sat}.target from an integer."""

    def semantics(a: Lanes) -> Lanes:
        value = convert.from_integer(a, target, rounding)
        return convert.saturated(value, target) if sat else value

    return semantics


for _float, _register in REGISTER.items():
    for _integer in INTEGERS:
        if _float == "bf16" and _integer in ("u8", "s8"):
            continue
        _arch = 90 if _float == "bf16" else 0
        for _flushing in ("", "ftz") if _float == "f32" else ("",):
            for _clamp in ("", "sat") if _float != "bf16" else ("",):
                for _rounding in convert.INTEGRAL:
                    _full = _name(_rounding, _flushing, _clamp, _integer, _float)
                    _op(_full, f"d:{_integer} = a:{_register}", float_to_int(_float, _integer, _rounding, bool(_flushing)), _arch)
                for _rounding in ieee.ROUNDINGS:
                    _full = _name(_rounding, _flushing, _clamp, _float, _integer)
                    _op(_full, f"d:{_register} = a:{_integer}", int_to_float(_float, _rounding, bool(_clamp)), _arch)


# --- packed formats and tf32 ---------------------------------------------------------------------------------------------------


def packed(format_: Format, rounding: str, extra: str) -> Semantics:
    """Two f32 to a pair, the first source in the upper half."""

    def one(x: Lanes) -> Lanes:
        return _finish(narrow.narrow(x, format_, rounding), format_.name, extra)

    return lambda a, b: narrow.pack(one(a), one(b))


def to_tf32(rounding: str, extra: str) -> Semantics:
    """f32 to tf32.

    Source: for rna, the machine code that ptxas 13.0 makes for sm_90.
    """

    def semantics(a: Lanes) -> Lanes:
        u = narrow.tf32(a, rounding)
        if "satfinite" in extra:
            past = (u & 0x7FFFFFFF) >= 0x7F800000 if rounding == "rna" else (u & 0x7FFFFFFF) == 0x7F800000
            u = where(past, u - 0x2000, u)
        if "relu" in extra:
            u = where((u >= 0x80000000) & (a == a), 0, u)
        return u

    return semantics


def to_fp8_pair(format_: Fp8, from_half: bool, is_relu: bool) -> Semantics:
    """Two f32, or a pair of f16, to a pair of fp8."""

    def one(x: Lanes) -> Lanes:
        code = narrow.to_fp8(x, format_)
        return narrow.fp8_relu(code) if is_relu else code

    def semantics(*operands: Lanes) -> Lanes:
        if from_half:
            halves = (narrow.high_half(operands[0]), narrow.low_half(operands[0]))
            operands = tuple(narrow.widen(h, F16) for h in halves)
        return cast((one(operands[0]) << 8) | one(operands[1]), "u16")

    return semantics


def from_fp8_pair(format_: Fp8, is_relu: bool) -> Semantics:
    """A pair of fp8 to a pair of f16."""

    def one(code: Lanes) -> Lanes:
        h = narrow.from_fp8(code, format_)
        return narrow.relu(h, F16) if is_relu else h

    return lambda a: narrow.pack(one(a >> 8), one(a & 0xFF))


for _type, _format in (("f16x2", F16), ("bf16x2", BF16)):
    for _rounding in ("rn", "rz"):
        for _extra in EXTRA:
            _op(_name(_rounding, _extra, _type, "f32"), "d:b32 = a:f32, b:f32", packed(_format, _rounding, _extra), 80)
for _rounding, _extras in (("rna", ("", "satfinite")), ("rn", EXTRA), ("rz", EXTRA)):
    for _extra in _extras:
        _arch = 80 if _rounding == "rna" else 100 if "satfinite" in _extra else 90
        _op(_name(_rounding, _extra, "tf32.f32"), "d:b32 = a:f32", to_tf32(_rounding, _extra), _arch)
for _type, _fp8 in (("e4m3x2", E4M3), ("e5m2x2", E5M2)):
    for _extra in ("satfinite", "relu.satfinite", "satfinite.relu"):
        _op(_name("rn", _extra, _type, "f32"), "d:b16 = a:f32, b:f32", to_fp8_pair(_fp8, False, "relu" in _extra), 89)
        _op(_name("rn", _extra, _type, "f16x2"), "d:b16 = a:b32", to_fp8_pair(_fp8, True, "relu" in _extra), 89)
    for _extra in ("", "relu"):
        _op(_name("rn", _extra, "f16x2", _type), "d:b32 = a:b16", from_fp8_pair(_fp8, _extra == "relu"), 89)
