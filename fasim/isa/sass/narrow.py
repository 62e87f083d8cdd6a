"""Instructions of machine code on one half or byte of a register: conversions of 16-bit and 8-bit floats, MUFU of a half, SGXT.W.

Signs of a half are as in `packed`: LOWER and UPPER choose it. Source: what ptxas makes of PTX whose meaning is known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.instructions import approximate as _approximate  # noqa: F401  fills ROWS
from fasim.isa.instructions import bitfield as _bitfield  # noqa: F401
from fasim.isa.instructions import convert as _convert  # noqa: F401
from fasim.isa.sass.declare import sass
from fasim.isa.sass.packed import halves
from fasim.isa.table import ROWS
from fasim.numerics.lanes import Lanes, bits, cast


def _semantics(ptx: str) -> Callable[..., Any]:
    found = ROWS[ptx].semantics
    assert found is not None
    return found


def extended(result: Lanes, name: str) -> Lanes:
    """What a conversion to fewer than 32 bits leaves in the register: of a signed type with its sign.

    Source: ptxas takes such a register for an s32.
    """
    for type_ in ("S16", "S8"):
        if name.startswith("F2I") and type_ in name.split("."):
            return bits(cast(bits(cast(result, f"u{type_[1:]}"), type_.lower()), "s32"), "u32")
    return result


def of_half(name: str, ptx: str, cases: list[Any] | None = None) -> None:
    """A row with the semantics of one of PTX with one 16-bit float as its source."""
    row, semantics = ROWS[ptx], _semantics(ptx)
    dest = row.dests[0].type_

    def made(a: Lanes, signs: int) -> Lanes:
        result: Lanes = semantics(cast(halves(a, signs)[1], "u16"))
        return cast(extended(result, name), "u32") if result.type == "u16" else result

    sass(name, f"d:{'b32' if dest == 'u16' else dest} = a:b32", raw=True, cases=cases or [])(made)


def _narrow_integer(name: str, ptx: str) -> None:
    """A row of F2I with the semantics of a conversion of PTX to a register of 16 bits."""
    semantics, source = _semantics(ptx), ROWS[ptx].sources[0].type_
    cases = [(0xC0200000, -2 & (0xFFFFFFFF if ".S" in name else 0))] if source == "f32" and ".FTZ" not in name and ".TRUNC" in name else []
    sass(name, f"d:b32 = a:{source}", cases=cases)(lambda a: cast(extended(semantics(a), name), "u32"))


ROUND_INTEGER = {"": "rni", ".TRUNC": "rzi", ".FLOOR": "rmi", ".CEIL": "rpi"}
TYPES = {"": "s32", ".U32": "u32", ".S64": "s64", ".U64": "u64", ".S16": "s16", ".U16": "u16", ".S8": "s8", ".U8": "u8"}
#: by mnemonic: 1.5 in the lower half, above it what must not matter
_CASES = {
    "FRND.F16": [(0x55553E00, 0x4000)],
    "FRND.F16.FLOOR": [(0x55553E00, 0x3C00)],
    "F2I.F16": [(0x55553E00, 2)],
    "F2I.F16.TRUNC": [(0x55553E00, 1)],
    "F2I.BF16": [(0x55553FC0, 2)],
}
for _direction, _mode in ROUND_INTEGER.items():
    for _format in ("f16", "bf16"):
        _name = f"FRND.{_format.upper()}{_direction}"
        of_half(_name, f"cvt.{_mode}.{_format}.{_format}", _CASES.get(_name))
        for _type, _word in TYPES.items():
            _ptx = f"cvt.{_mode}.{_word}.{_format}"
            if _ptx in ROWS:
                _name = f"F2I{_type}.{_format.upper()}{_direction}"
                of_half(_name, _ptx, _CASES.get(_name))
                of_half(f"{_name}.NTZ", _ptx)
for _name, _ptx, _of_zero in (
    ("MUFU.EX2.F16", "ex2.approx.f16", 0x3C00),
    ("MUFU.EX2.BF16", "ex2.approx.ftz.bf16", 0x3F80),
    ("MUFU.TANH.F16", "tanh.approx.f16", 0),
    ("MUFU.TANH.BF16", "tanh.approx.bf16", 0),
):
    of_half(_name, _ptx, [(0x55550000, _of_zero)])
for _letter in ("E4M3", "E5M2"):
    for _relu in ("", ".RELU"):
        _ptx = f"cvt.rn{_relu.lower()}.f16x2.{_letter.lower()}x2"
        of_half(f"F2FP{_relu}.F16.{_letter}.UNPACK_B", _ptx, [(0x5555_0000, 0)])
# F2I of fewer than 32 bits, of f32 and f64
for _direction, _mode in ROUND_INTEGER.items():
    for _type, _word in list(TYPES.items())[4:]:
        for _source, _part in (("f32", ""), ("f64", ".F64")):
            for _ftz in ("", ".FTZ") if _source == "f32" else ("",):
                for _ntz in ("", ".NTZ") if _source == "f32" else ("",):
                    _narrow_integer(f"F2I{_ftz}{_type}{_part}{_direction}{_ntz}", f"cvt.{_mode}{_ftz.lower()}.{_word}.{_source}")


# --- to 8-bit floats -----------------------------------------------------------------------------------------------------------


def _merged(semantics: Callable[..., Lanes]) -> Callable[..., Lanes]:
    def made(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        return cast(semantics(a, b), "u32") | (c << 16)

    return made


for _letter in ("E4M3", "E5M2"):
    for _relu in ("", ".RELU"):
        _ptx = f"cvt.rn.satfinite{_relu.lower()}.{_letter.lower()}x2.f32"
        sass(
            f"F2FP.SATFINITE{_relu}.{_letter}.F32.PACK_AB_MERGE_C",
            "d:b32 = a:f32, b:f32, c:b32",
            cases=[((0x3F800000, 0, 0x7777), 0x7777_3800 if _letter == "E4M3" else 0x7777_3C00)],
        )(_merged(_semantics(_ptx)))


def _bytes_of(semantics: Callable[..., Lanes]) -> Callable[..., Lanes]:
    def made(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
        upper, lower = (cast(semantics(value), "u32") & 0xFF for value in (a, b))
        return (upper << 8) | lower | (c << 16)

    return made


for _direction, _mode in ROUND_INTEGER.items():
    for _letter in "US":
        for _ntz in ("", ".NTZ"):
            sass(
                f"F2IP.{_letter}8.F32{_direction}{_ntz}",
                "d:b32 = a:f32, b:f32, c:b32",
                cases=[((0x3F800000, 0x40000000, 5), 5 << 16 | 0x0102)],
            )(_bytes_of(_semantics(f"cvt.{_mode}.{_letter.lower()}8.f32")))


# --- sign extension by so many bits modulo 32 --------------------------------------------------------------------------------------

sass("SGXT.W", "d:s32 = a:s32, b:u32", cases=[((0xFD, 3), -3), ((0xFD, 35), -3), ((0xFD, 32), 0)])(_semantics("szext.wrap.s32"))
sass("SGXT.W.U32", "d:u32 = a:u32, b:u32", cases=[((0xFD, 3), 5), ((0xFD, 32), 0)])(_semantics("szext.wrap.u32"))
