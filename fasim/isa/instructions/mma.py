"""Warp-level matrix multiply-accumulate: `mma.sync`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fasim.isa.table import op
from fasim.numerics.fragments import fragment_elements, sizes
from fasim.numerics.lanes import Lanes
from fasim.numerics.mma import matrix_multiply, pack_f16, unpack_f16

Registers = tuple[Lanes, ...]


def registers(shape: str, operand: str, type_: str, element: str) -> str:
    """The signature type of a fragment whose elements are of type `element`, for example `b32*4`."""
    bits = {"f16": 16, "bf16": 16, "s8": 8, "u8": 8}.get(element, 32)
    count = fragment_elements(shape, operand, type_).shape[1] * bits // 32
    one = element if element in ("f32", "s32") else "b32"
    return f"{one}*{count}"


def float_mma(shape: str, type_: str, d_type: str, c_type: str) -> Callable[..., list[Lanes]]:
    """Semantics of one floating-point row."""

    def mma(a: Registers, b: Registers, c: Registers, arch: int) -> list[Lanes]:
        values = list(c) if c_type == "f32" else [x for register in c for x in unpack_f16(register)]
        d = matrix_multiply(shape, type_, d_type, a, b, values, arch)
        return d if d_type == "f32" else [pack_f16(d[i], d[i + 1]) for i in range(0, len(d), 2)]

    return mma


def _declare(shape: str, type_: str, accumulators: Sequence[str], min_arch: int) -> None:
    anchor = f"warp-level-matrix-instructions-mma"
    for accumulator in accumulators:
        signature = (
            f"d:{registers(shape, 'd', type_, accumulator)} = a:{registers(shape, 'a', type_, type_)}, "
            f"b:{registers(shape, 'b', type_, type_)}, c:{registers(shape, 'c', type_, accumulator)}, arch:imm"
        )
        name = f"mma.sync.aligned.{shape}.row.col.{accumulator}.{type_}.{type_}.{accumulator}"
        op(name, signature, doc=anchor, kind="collective", min_arch=min_arch, member_mask=None)(
            float_mma(shape, type_, accumulator, accumulator)
        )


_declare("m16n8k16", "f16", ("f32", "f16"), 80)
_declare("m16n8k8", "f16", ("f32", "f16"), 75)
_declare("m16n8k16", "bf16", ("f32",), 80)
_declare("m16n8k8", "bf16", ("f32",), 80)
_declare("m16n8k8", "tf32", ("f32",), 80)
_declare("m16n8k4", "tf32", ("f32",), 80)
