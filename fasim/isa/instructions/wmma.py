"""Warp-level matrix multiply-accumulate on opaque fragments: `wmma.load`, `wmma.store`, `wmma.mma`.

Since sm_80 a wmma.mma is two mma of 16 x 8 results, or one of 8 x 8; see fasim.numerics.fragments for the fragments. Loads and stores
touch memory: their rows say which matrix they move, and lowering takes the addresses from `wmma_fragment_elements`.
"""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.instructions.mma import registers, rounded_f64
from fasim.isa.table import op
from fasim.numerics.fragments import ELEMENT_BITS, WMMA_SHAPES, fragment_elements, wmma_blocks, wmma_fragment_elements
from fasim.numerics.ieee import ROUNDINGS
from fasim.numerics.lanes import Lanes
from fasim.numerics.mma import STEPS, matrix_multiply, pack_f16, unpack_f16
from fasim.numerics.mma_f64 import f64_multiply
from fasim.numerics.mma_integer import bit_multiply, integer_multiply

Registers = tuple[Lanes, ...]
DOC = "warp-level-matrix-instructions-wmma-"
LAYOUTS = ("row", "col")
SPACES = ("", ".global", ".shared", ".shared::cta")
MIN_ARCH = {"f16": 70, "s8": 72, "u8": 72, "s4": 75, "u4": 75, "b1": 75, "bf16": 80, "tf32": 80, "f64": 80}
INTEGERS = ("s8", "u8", "s4", "u4")
ACCUMULATORS = {"f16": ("f32", "f16"), "bf16": ("f32",), "tf32": ("f32",), "f64": ("f64",)}  # the others: s32
#: matrices narrower than a byte have one layout each
ONE_LAYOUT = {"a": ("row",), "b": ("col",)}
#: since the machine code multiplies tf32 with k = 4
TF32_STEP = 4


def fragment_registers(shape: str, operand: str, type_: str, element: str) -> str:
    """The signature type of a fragment whose elements are of type `element`."""
    return registers(wmma_fragment_elements(shape, operand, type_).shape[1], element)


def by_blocks(shape: str, type_: str, mma: Callable[..., list[Lanes]], a: Registers, b: Registers, c: list[Lanes]) -> list[Lanes]:
    """D of a wmma from `mma(mma_shape, a, b, c)` on each block; c and the result are elements."""
    mma_shape, swapped, blocks = wmma_blocks(shape)
    rows, columns = (b, a) if swapped else (a, b)
    per_register = max(32 // ELEMENT_BITS[type_], 1)
    row_count, column_count = (fragment_elements(mma_shape, x, type_).shape[1] // per_register for x in "ab")
    d: list[Lanes] = []
    for number, (i, j) in enumerate(blocks):
        block_a = rows[i * row_count : (i + 1) * row_count]
        block_b = columns[j * column_count : (j + 1) * column_count]
        d += mma(mma_shape, block_a, block_b, c[4 * number : 4 * number + 4])
    return d


def _float(shape: str, type_: str, d_type: str, c_type: str) -> Callable[..., list[Lanes]]:
    accumulator = "f16" if d_type == c_type == "f16" else "f32"  # mixed types compute in f32 and convert

    def wmma(a: Registers, b: Registers, c: Registers, arch: int) -> list[Lanes]:
        def mma(mma_shape: str, a: Registers, b: Registers, c: list[Lanes]) -> list[Lanes]:
            return matrix_multiply(mma_shape, type_, accumulator, a, b, c, arch, TF32_STEP if type_ == "tf32" else None)

        d = by_blocks(shape, type_, mma, a, b, unpack_f16(c) if c_type == "f16" else list(c))
        return pack_f16(d) if d_type == "f16" else d

    return wmma


def _integer(shape: str, type_: str, satfinite: bool) -> Callable[..., list[Lanes]]:
    def wmma(a: Registers, b: Registers, c: Registers) -> list[Lanes]:
        def mma(mma_shape: str, a: Registers, b: Registers, c: list[Lanes]) -> list[Lanes]:
            return integer_multiply(mma_shape, (type_, type_), a, b, c, satfinite)

        return by_blocks(shape, type_, mma, a, b, list(c))

    return wmma


def _bits(shape: str, operation: str) -> Callable[..., list[Lanes]]:
    def wmma(a: Registers, b: Registers, c: Registers) -> list[Lanes]:
        return bit_multiply(shape, operation, a, b, c)

    return wmma


def _f64(shape: str, rounding: str) -> Callable[..., list[Lanes]]:
    def wmma(a: Registers, b: Registers, c: Registers) -> list[Lanes]:
        return f64_multiply(shape, a, b, c, rounding)

    return wmma


def layouts(operand: str, type_: str) -> tuple[str, ...]:
    """The layouts that a matrix of this type can have in memory."""
    return ONE_LAYOUT.get(operand, LAYOUTS) if ELEMENT_BITS[type_] < 8 else LAYOUTS


def _declare_mma(shape: str, type_: str) -> None:
    def declare(suffixes: list[str], d: str, c: str, arch: str, semantics: Callable[..., list[Lanes]], operation: str = "") -> None:
        of_d, of_a, of_b, of_c = (fragment_registers(shape, x, type_, e) for x, e in zip("dabc", (d, type_, type_, c)))
        both = [f"{a}.{b}" for a in layouts("a", type_) for b in layouts("b", type_)]
        op(
            [f"wmma.mma{operation}.sync.aligned.{ab}.{shape}.{suffix}" for ab in both for suffix in suffixes],
            f"d:{of_d} = a:{of_a}, b:{of_b}, c:{of_c}{arch}",
            doc=DOC + "mma",
            kind="collective",
            min_arch=80 if operation.startswith(".and") else MIN_ARCH[type_],
            member_mask=None,
            archs=tuple(STEPS) if arch else None,
        )(semantics)

    if type_ == "f16":
        for d in ("f32", "f16"):
            for c in ("f32", "f16"):
                declare([f"{d}.{c}"], d, c, ", arch:imm", _float(shape, type_, d, c))
    elif type_ in INTEGERS:
        name = f"s32.{type_}.{type_}.s32"
        declare([name], "s32", "s32", "", _integer(shape, type_, False))
        declare([f"{name}.satfinite"], "s32", "s32", "", _integer(shape, type_, True))
    elif type_ == "b1":
        for operation in ("xor", "and"):
            declare(["s32.b1.b1.s32"], "s32", "s32", "", _bits(shape, operation), f".{operation}.popc")
    elif type_ == "f64":
        for rounding in ROUNDINGS:
            declare(rounded_f64(rounding), "f64", "f64", "", _f64(shape, rounding))
    else:
        declare([f"f32.{type_}.{type_}.f32"], "f32", "f32", ", arch:imm", _float(shape, type_, "f32", "f32"))


def _declare_memory(shape: str, operand: str, type_: str, element: str) -> None:
    opcode, kind = ("store", "wmma_store") if operand == "d" else ("load", "wmma_load")
    fragment = fragment_registers(shape, operand, type_, element)
    for layout in layouts(operand, element):
        op(
            [f"wmma.{opcode}.{operand}.sync.aligned.{layout}.{shape}{space}.{element}" for space in SPACES],
            f"address:address, d:{fragment}, stride:b32" if operand == "d" else f"r:{fragment} = address:address, stride:b32",
            kind=kind,
            doc=DOC + ("st" if operand == "d" else "ld"),
            min_arch=MIN_ARCH[type_],
            member_mask=None,
            shape=shape,
            operand=operand,
            type=type_,
            element=element,
            layout=layout,
        )(fragment_registers)


_ACCUMULATORS: dict[tuple[str, str], str] = {}  # (shape, element) to a type of multiplicands with such an accumulator
for _type, _shapes in WMMA_SHAPES.items():
    for _shape in _shapes:
        _declare_mma(_shape, _type)
        for _operand in "ab":
            _declare_memory(_shape, _operand, _type, _type)
        for _element in ACCUMULATORS.get(_type, ("s32",)):
            _ACCUMULATORS.setdefault((_shape, _element), _type)
for (_shape, _element), _type in _ACCUMULATORS.items():
    for _operand in "cd":
        _declare_memory(_shape, _operand, _type, _element)
