"""Warp-level matrix multiply-accumulate: `mma.sync`.

Not declared: the fp8 and block-scaled forms, and directed roundings of the larger f64 shapes.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from fasim.isa.table import op
from fasim.numerics.fragments import ELEMENT_BITS, fragment_elements, sizes
from fasim.numerics.ieee import ROUNDINGS
from fasim.numerics.lanes import Lanes
from fasim.numerics.mma import STEPS, matrix_multiply, pack_f16, unpack_f16
from fasim.numerics.mma_f64 import f64_multiply
from fasim.numerics.mma_integer import bit_multiply, integer_multiply
from fasim.numerics.mma_quads import ARCHS, quad_fragment, quad_multiply

Registers = tuple[Lanes, ...]
DOC = "warp-level-matrix-instructions-mma"
ONES = 0x3C003C00  # two f16


def registers(elements: int, type_: str) -> str:
    """The signature type of a fragment of so many elements, for example `b32*4`."""
    if type_ in ("f32", "s32", "f64"):
        return f"{type_}*{elements}"
    return f"b32*{elements * ELEMENT_BITS[type_] // 32}"


def signature(shape: str, types: tuple[str, str, str]) -> str:
    """The signature of an mma; types: of A, of B, of C and D."""
    counts = {x: fragment_elements(shape, x, types[0]).shape[1] for x in "abd"}
    a, b, d = registers(counts["a"], types[0]), registers(counts["b"], types[1]), registers(counts["d"], types[2])
    return f"d:{d} = a:{a}, b:{b}, c:{d}"


def _declare(
    names: list[str],
    shape: str,
    types: tuple[str, str, str],
    min_arch: int,
    mma: Callable[..., list[Lanes]],
    ones: tuple[int, int, int, int],
    arch: bool = False,
) -> None:
    """Rows of one mma. ones: the bits of a register of A, of B and of C full of ones, and of D = A*B + C."""
    text = signature(shape, types) + (", arch:imm" if arch else "")
    a, b, c, d = ((bits,) * count for bits, count in zip(ones, _counts(text)))
    cases = [((a, b, c, target), d) for target in (80, 90)] if arch else [((a, b, c), d)]
    names = [f"mma.sync.aligned.{shape}.row.col.{name}" for name in names]
    archs = tuple(STEPS) if arch else None
    op(names, text, doc=DOC, kind="collective", min_arch=min_arch, cases=cases, member_mask=None, archs=archs)(mma)


def _counts(text: str) -> list[int]:
    """Registers of A, B, C and D in a signature."""
    d, a, b, c = (int(n) for n in re.findall(r"\*(\d+)", text))
    return [a, b, c, d]


def _float(shape: str, type_: str, accumulator: str, min_arch: int) -> None:
    def mma(a: Registers, b: Registers, c: Registers, arch: int) -> list[Lanes]:
        if accumulator == "f32":
            return matrix_multiply(shape, type_, "f32", a, b, c, arch)
        return pack_f16(matrix_multiply(shape, type_, "f16", a, b, unpack_f16(c), arch))

    sums = {4: 0x40A00000, 8: 0x41100000, 16: 0x41880000} if accumulator == "f32" else {8: 0x48804880, 16: 0x4C404C40}
    ones = {"f16": 0x3C003C00, "bf16": 0x3F803F80, "tf32": 0x3F800000, "f32": 0x3F800000}
    name = f"{accumulator}.{type_}.{type_}.{accumulator}"
    of_a, of_c, of_d = ones[type_], ones[accumulator], sums[sizes(shape)[2]]
    _declare([name], shape, (type_, type_, accumulator), min_arch, mma, (of_a, of_a, of_c, of_d), arch=True)


def _integer(shape: str, a_type: str, b_type: str, min_arch: int, satfinite: bool) -> None:
    def mma(a: Registers, b: Registers, c: Registers) -> list[Lanes]:
        return integer_multiply(shape, (a_type, b_type), a, b, c, satfinite)

    name = f"s32.{a_type}.{b_type}.s32"
    # ptxas takes .satfinite in either place
    names = [f"satfinite.{name}", f"{name}.satfinite"] if satfinite else [name]
    one = 0x01010101 if a_type[1:] == "8" else 0x11111111
    _declare(names, shape, (a_type, b_type, "s32"), min_arch, mma, (one, one, 1, sizes(shape)[2] + 1))


def _bits(shape: str, operation: str, min_arch: int) -> None:
    def mma(a: Registers, b: Registers, c: Registers) -> list[Lanes]:
        return bit_multiply(shape, operation, a, b, c)

    every, result = 0xFFFFFFFF, 1 if operation == "xor" else sizes(shape)[2] + 1
    _declare([f"s32.b1.b1.s32.{operation}.popc"], shape, ("b1", "b1", "s32"), min_arch, mma, (every, every, 1, result))


def rounded_f64(rounding: str) -> list[str]:
    """Spellings of the types of an f64 product with a rounding: ptxas takes it in either place, and to nearest may be left out."""
    types = "f64.f64.f64.f64"
    return [f"{rounding}.{types}", f"{types}.{rounding}"] + ([types] if rounding == "rn" else [])


def _f64(shape: str, min_arch: int, rounding: str) -> None:
    def mma(a: Registers, b: Registers, c: Registers) -> list[Lanes]:
        return f64_multiply(shape, a, b, c, rounding)

    one, result = 0x3FF << 52, {4: 0x4014, 8: 0x4022, 16: 0x4031}[sizes(shape)[2]] << 48
    _declare(rounded_f64(rounding), shape, ("f64", "f64", "f64"), min_arch, mma, (one, one, one, result))


def _quads(a_layout: str, b_layout: str, d_type: str, c_type: str) -> None:
    def mma(a: Registers, b: Registers, c: Registers, arch: int) -> list[Lanes]:
        of_c = unpack_f16(c) if c_type == "f16" else list(c)
        d = quad_multiply((a_layout, b_layout), (d_type, c_type), unpack_f16(a), unpack_f16(b), of_c, arch)
        return pack_f16(d) if d_type == "f16" else d

    counts = [quad_fragment(x, form).shape[1] for x, form in (("d", d_type), ("a", a_layout), ("b", b_layout), ("c", c_type))]
    d, a, b, c = (registers(count, type_) for count, type_ in zip(counts, (d_type, "f16", "f16", c_type)))
    name = f"mma.sync.aligned.m8n8k4.{a_layout}.{b_layout}.{d_type}.f16.f16.{c_type}"
    text = f"d:{d} = a:{a}, b:{b}, c:{c}, arch:imm"
    of_c = (0x3F800000,) * 8 if c_type == "f32" else (ONES,) * 4
    of_d = (0x40A00000,) * 8 if d_type == "f32" else (0x45004500,) * 4
    cases = [(((ONES,) * 2, (ONES,) * 2, of_c, target), of_d) for target in (80, 90)]
    op(name, text, doc=DOC, kind="collective", min_arch=70, cases=cases, member_mask=None, archs=ARCHS)(mma)


for _a in ("row", "col"):
    for _b in ("row", "col"):
        for _d, _c in (("f32", "f32"), ("f32", "f16"), ("f16", "f16")):
            _quads(_a, _b, _d, _c)
for _accumulator in ("f32", "f16"):
    _float("m16n8k16", "f16", _accumulator, 80)
    _float("m16n8k8", "f16", _accumulator, 75)
for _shape in ("m16n8k16", "m16n8k8"):
    _float(_shape, "bf16", "f32", 80)
for _shape in ("m16n8k8", "m16n8k4"):
    _float(_shape, "tf32", "f32", 80)
for _width, _shapes in ((8, {"m8n8k16": 75, "m16n8k16": 80, "m16n8k32": 80}), (4, {"m8n8k32": 75, "m16n8k32": 80, "m16n8k64": 80})):
    for _shape, _arch in _shapes.items():
        for _a in "su":
            for _b in "su":
                for _satfinite in (False, True):
                    _integer(_shape, f"{_a}{_width}", f"{_b}{_width}", _arch, _satfinite)
for _shape, _arch in {"m8n8k128": 75, "m16n8k128": 80, "m16n8k256": 80}.items():
    _bits(_shape, "xor", _arch)
    _bits(_shape, "and", 80)
for _shape, _arch in {"m8n8k4": 80, "m16n8k4": 90, "m16n8k8": 90, "m16n8k16": 90}.items():
    for _rounding in ROUNDINGS if _shape == "m8n8k4" else ("rn",):
        _f64(_shape, _arch, _rounding)
