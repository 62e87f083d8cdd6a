"""Floating-point instructions of machine code: FADD, FMUL, FFMA, their f64 forms, MUFU, comparisons, conversions.

Source: what ptxas makes of PTX whose meaning is known; the semantics are those of the PTX instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fasim.isa.instructions import approximate as _approximate  # noqa: F401  fills ROWS
from fasim.isa.instructions import convert as _convert  # noqa: F401
from fasim.isa.instructions import convert_integer as _convert_integer  # noqa: F401
from fasim.isa.instructions.compare import BOOLEAN, FLOAT, flushed
from fasim.isa.instructions.float32 import _larger, modified
from fasim.isa.sass.declare import sass
from fasim.isa.table import ROWS
from fasim.numerics import ieee, mufu, mufu_trig
from fasim.numerics.lanes import Lanes, bits, const, where

ONE, TWO, NAN = 0x3F800000, 0x40000000, 0x7FFFFFFF
ROUNDINGS = {"": "rn", ".RM": "rm", ".RP": "rp", ".RZ": "rz"}
_SOURCES = {1: "a", 2: "ab", 3: "abc"}


def _rounded(function: Callable[..., Lanes], rounding: str) -> Callable[..., Lanes]:
    return lambda *operands: function(*operands, rounding)


# --- f32 -------------------------------------------------------------------------------------------------------------------------

for _name, _key, _function, _count in (("FADD", "add", ieee.add, 2), ("FMUL", "mul", ieee.mul, 2), ("FFMA", "fma", ieee.fma_rounded, 3)):
    for _suffix, _rounding in ROUNDINGS.items():
        for _ftz in ("", ".FTZ"):
            for _sat in ("", ".SAT"):
                _semantics = modified(_rounded(_function, _rounding), bool(_ftz), bool(_sat), _larger(_key, _rounding))
                sass(f"{_name}{_ftz}{_suffix}{_sat}", "d:f32 = " + ", ".join(f"{x}:f32" for x in _SOURCES[_count]))(_semantics)

#: FMUL with a power of two
SCALES = {".D2": 0.5, ".D4": 0.25, ".D8": 0.125, ".M2": 2.0, ".M4": 4.0, ".M8": 8.0}
for _suffix, _scale in SCALES.items():
    sass(f"FMUL{_suffix}", "d:f32 = a:f32, b:f32", cases=[((ONE, ONE), int(np.float32(_scale).view(np.uint32)))])(
        lambda a, b, scale=_scale: ieee.mul(a * scale, b, "rn")
    )


@sass("FSEL", "d:f32 = a:f32, b:f32, p:pred", cases=[((ONE, TWO, 1), ONE), ((0x7F800001, TWO, 1), 0x7F800001)])
@sass("FSEL.FTZ", "d:f32 = a:f32, b:f32, p:pred", cases=[((ONE, TWO, 1), ONE)])
def fsel(a: Lanes, b: Lanes, p: Lanes) -> Lanes:
    return where(p, a, b)


def _fmnmx(ftz: bool, nan: bool) -> Callable[..., Lanes]:
    def semantics(a: Lanes, b: Lanes, least: Lanes) -> Lanes:
        if ftz:
            a, b = ieee.flush(a), ieee.flush(b)
        return where(least, ieee.minimum(a, b, nan=nan), ieee.maximum(a, b, nan=nan))

    return semantics


for _ftz in ("", ".FTZ"):
    for _nan in ("", ".NAN"):
        sass(f"FMNMX{_ftz}{_nan}", "d:f32 = a:f32, b:f32, least:pred", cases=[((ONE, TWO, 1), ONE), ((ONE, TWO, 0), TWO)])(
            _fmnmx(bool(_ftz), bool(_nan))
        )


def _setp(compare: Callable[..., Lanes], boolean: str) -> Callable[..., Any]:
    combine = BOOLEAN[boolean]

    def semantics(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
        found = compare(a, b)
        return combine(found, c), combine(~found, c)

    return semantics


for _name, _compare in FLOAT.items():
    for _boolean in BOOLEAN:
        _ending = f".{_boolean.upper()}"
        sass(f"FSETP.{_name.upper()}{_ending}", "p:pred, q:pred = a:f32, b:f32, c:pred")(_setp(_compare, _boolean))
        sass(f"FSETP.{_name.upper()}.FTZ{_ending}", "p:pred, q:pred = a:f32, b:f32, c:pred")(_setp(flushed(_compare), _boolean))
        sass(f"DSETP.{_name.upper()}{_ending}", "p:pred, q:pred = a:f64, b:f64, c:pred")(_setp(_compare, _boolean))


def _set(compare: Callable[..., Lanes], boolean: str, true: int) -> Callable[..., Lanes]:
    combine = BOOLEAN[boolean]
    return lambda a, b, c: where(combine(compare(a, b), c), const(true, like=c, type_="u32"), 0)


for _name, _compare in FLOAT.items():
    for _boolean in BOOLEAN:
        for _result, _true in ((".BF", ONE), ("", 0xFFFFFFFF)):
            for _ftz in ("", ".FTZ"):
                _cases = [((TWO, ONE, 1), ONE), ((ONE, TWO, 1), 0)] if (_name, _boolean, _result) == ("gt", "and", ".BF") else []
                sass(f"FSET{_result}.{_name.upper()}{_ftz}.{_boolean.upper()}", "d:b32 = a:f32, b:f32, c:pred", cases=_cases)(
                    _set(flushed(_compare) if _ftz else _compare, _boolean, _true)
                )


def _chooses(least: bool) -> Callable[..., tuple[Lanes, Lanes]]:
    """Whether a is the smaller or larger of a and b, and whether both are NaN."""

    def semantics(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes]:
        nan_a, nan_b = a != a, b != b
        chosen = ieee.minimum(a, b) if least else ieee.maximum(a, b)
        return ~nan_a & (nan_b | (bits(chosen, "u64") == bits(a, "u64"))) & c, nan_a & nan_b & c

    return semantics


_ONE_64, _TWO_64, _NAN_64 = 0x3FF0000000000000, 0x4000000000000000, 0x7FF8000000000000
for _name, _least in (("MIN", True), ("MAX", False)):
    _min_cases: list[Any] = [
        ((_ONE_64, _TWO_64, 1), (int(_least), 0)),
        ((_TWO_64, _ONE_64, 1), (int(not _least), 0)),
        ((_NAN_64, _ONE_64, 1), (0, 0)),
        ((_ONE_64, _NAN_64, 1), (1, 0)),
        ((_NAN_64, _NAN_64, 1), (0, 1)),
        ((1 << 63, 0, 1), (int(_least), 0)),
    ]
    sass(f"DSETP.{_name}.AND", "p:pred, q:pred = a:f64, b:f64, c:pred", cases=_min_cases)(_chooses(_least))


# --- the MUFU unit ---------------------------------------------------------------------------------------------------------------


def _of_bits(function: Callable[[Any], Any]) -> Callable[[Lanes], Lanes]:
    return lambda x: bits(function(bits(x, "u32")), "f32")


MUFU: dict[str, Callable[[Any], Any]] = {
    "EX2": mufu.ex2_approx_ftz,
    "LG2": mufu.lg2_approx_ftz,
    "RCP": mufu.rcp_approx_ftz,
    "RSQ": mufu.rsqrt_approx_ftz,
    "SQRT": mufu.sqrt_approx_ftz,
    "SIN": mufu_trig.mufu_sin,
    "COS": mufu_trig.mufu_cos,
    "TANH": mufu_trig.tanh_approx,
}
for _name, _unit in MUFU.items():
    sass(f"MUFU.{_name}", "d:f32 = a:f32")(_of_bits(_unit))
# these see the upper word of an f64; its sign is the top bit, as of an f32
sass("MUFU.RCP64H", "d:f32 = a:f32", cases=[(0x3FF00000, 0x3FF00000)])(_of_bits(mufu.rcp64h))
sass("MUFU.RSQ64H", "d:f32 = a:f32", cases=[(0x3FF00000, 0x3FF00000)])(_of_bits(mufu.rsq64h))


# --- f64 -------------------------------------------------------------------------------------------------------------------------

for _name, _function, _count in (("DADD", ieee.add, 2), ("DMUL", ieee.mul, 2), ("DFMA", ieee.fma_rounded, 3)):
    for _suffix, _rounding in ROUNDINGS.items():
        sass(f"{_name}{_suffix}", "d:f64 = " + ", ".join(f"{x}:f64" for x in _SOURCES[_count]))(_rounded(_function, _rounding))


@sass("DMNMX", "d:f64 = a:f64, b:f64, least:pred")
def dmnmx(a: Lanes, b: Lanes, least: Lanes) -> Lanes:
    return where(least, ieee.minimum(a, b), ieee.maximum(a, b))


# --- conversions: rows of PTX by another name --------------------------------------------------------------------------------------

_ROUND_INTEGER = {"": "rni", ".TRUNC": "rzi", ".FLOOR": "rmi", ".CEIL": "rpi"}
_INTEGERS = (
    *(("", "s32"), (".U32", "u32"), (".S64", "s64"), (".U64", "u64")),
    *((".S16", "s16"), (".U16", "u16"), (".S8", "s8"), (".U8", "u8")),
)


def _like(name: str, ptx: str, ending: str = "") -> None:
    """A row with the semantics of one of PTX, if there is one."""
    row = ROWS.get(ptx)
    if row is not None and row.semantics is not None:
        dests = ", ".join(f"{a.name}:{a.type_}" for a in row.dests)
        sources = ", ".join(f"{a.name}:{a.type_}" for a in row.sources)
        sass(name + ending, f"{dests} = {sources}")(row.semantics)


for _direction, _mode in _ROUND_INTEGER.items():
    for _ftz in ("", ".FTZ"):
        _flush = ".ftz" if _ftz else ""
        _like(f"FRND{_ftz}{_direction}", f"cvt.{_mode}{_flush}.f32.f32")
        for _type, _word in _INTEGERS[:4]:
            _like(f"F2I{_ftz}{_type}{_direction}", f"cvt.{_mode}{_flush}.{_word}.f32")
            _like(f"F2I{_ftz}{_type}{_direction}.NTZ", f"cvt.{_mode}{_flush}.{_word}.f32")
    _like(f"FRND.F64{_direction}", f"cvt.{_mode}.f64.f64")
    for _type, _word in _INTEGERS[:4]:
        _like(f"F2I{_type}.F64{_direction}", f"cvt.{_mode}.{_word}.f64")
for _suffix, _rounding in ROUNDINGS.items():
    for _type, _word in _INTEGERS:
        _like(f"I2F{_type}{_suffix}", f"cvt.{_rounding}.f32.{_word}")
        _like(f"I2F.F64{_type}{_suffix}", f"cvt.{_rounding}.f64.{_word}")
        _like(f"I2F.F16{_type}{_suffix}", f"cvt.{_rounding}.f16.{_word}")
        _like(f"I2F.BF16{_type}{_suffix}", f"cvt.{_rounding}.bf16.{_word}")
    for _type, _word in ((".S32", "s32"), (".U32", "u32")):
        _like(f"I2FP.F32{_type}{_suffix}", f"cvt.{_rounding}.f32.{_word}")
    _like(f"F2F.F32.F64{_suffix}", f"cvt.{_rounding}.f32.f64")
    _like(f"F2F.F16.F32{_suffix}", f"cvt.{_rounding}.f16.f32")
    _like(f"F2F.BF16.F32{_suffix}", f"cvt.{_rounding}.bf16.f32")
    for _half in ("F16", "BF16"):
        _like(f"F2FP.{_half}.F32.PACK_AB{_suffix}", f"cvt.{_rounding}.{_half.lower()}x2.f32")
        _like(f"F2FP.RELU.{_half}.F32.PACK_AB{_suffix}", f"cvt.{_rounding}.relu.{_half.lower()}x2.f32")
_like("F2F.F64.F32", "cvt.f64.f32")
_like("F2F.FTZ.F64.F32", "cvt.ftz.f64.f32")


@sass("FCHK", "p:pred = a:f32, b:f32", cases=[((ONE, TWO), 0), ((ONE, 1), 1), ((NAN, ONE), 1)])
def fchk(a: Lanes, b: Lanes) -> Lanes:
    """Whether a / b needs the long way: only the exponents matter.

    Source: an H200 over all pairs of exponents, in machine code changed so that the answer can be seen.
    """
    x, y = (bits(bits(value, "u32") >> 23 & 255, "s32") for value in (a, b))
    quotient = x - y
    return (x <= 24) | (x == 255) | (y <= 1) | (y >= 252) | (quotient >= 127) | (quotient <= -125)
