"""Matrix multiply-accumulate of f16, bf16 and tf32 fragments, bit for bit as the tensor cores do it.

D = A*B + C is computed in steps of L products along k, in increasing k. In one step products are exact and not renormalised; every
term is truncated toward zero to the quantum 2^(e_max - F), where e_max is the largest exponent among the terms that are not zero, the
accumulator included; the resulting integers are added exactly; the sum is cut to f32 (toward zero) or rounded to f16 (to nearest even).

Up to sixteen products (each below 2^27) are summed in 32 bits; their sum with the accumulator (below 2^26) fits as sign and u32 magnitude.

Source: recordings of mma.sync on an H200 for sm_90; published measurements for the others.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from fasim.errors import NotModelled
from fasim.numerics.fragments import sizes, sources
from fasim.numerics.lanes import Lanes, bits, cast, clz, const, if_any, where
from fasim.numerics.mma_terms import (
    EXPONENT,
    FORMATS,
    INFINITY,
    SIGN,
    Format,
    Multiplicand,
    Pair,
    Pairs,
    exponent_field,
    larger,
    largest_exponents,
    narrow_sums,
    paired,
    power,
    products,
    wide_sums,
)
from fasim.numerics.narrow import F16, narrow, pack, widen

NAN = 0x7FFFFFFF


@dataclass(frozen=True, slots=True)
class Steps:
    """How one architecture adds: products a step, fraction bits kept below e_max, and the least e_max by accumulator type."""

    products: dict[str, int]
    fraction_bits: int
    floors: dict[str, int]


_AMPERE = Steps({"f16": 8, "bf16": 8, "tf32": 4}, 24, {"f16": -20, "f32": -132})
_HOPPER = Steps({"f16": 16, "bf16": 16, "tf32": 8}, 25, {"f16": -21, "f32": -133})
STEPS: dict[int, Steps] = {80: _AMPERE, 86: _AMPERE, 89: _AMPERE, 90: _HOPPER, 100: _HOPPER, 120: _HOPPER}


def steps_of(arch: int) -> Steps:
    """The parameters of a target such as 90; raises NotModelled for a target whose arithmetic is not known."""
    if arch not in STEPS:
        raise NotModelled(f"mma arithmetic of sm_{arch} is not modelled; known: {', '.join(f'sm_{a}' for a in STEPS)}")
    return STEPS[arch]


def total(a: Lanes, b: Lanes) -> tuple[Lanes, Lanes]:
    """a + b of s32 as the sign in every bit (s32) and the magnitude (u32), which must fit."""
    wrapped = a + b
    sign = ((a & b) | ((a | b) & wrapped)) >> 31  # the majority: where a + b leaves s32, a and b agree
    return sign, cast((wrapped ^ sign) - sign, "u32")


def leading24(x: Lanes) -> tuple[Lanes, Lanes]:
    """The mask of bits below the first 24 significant ones, and the value without them."""
    below = const(0xFF, like=x) >> clz(x)
    return below, x & ~below


def to_f32(sign: Lanes, magnitude: Lanes, e_max: Lanes, format_: Format, fraction_bits: int) -> Lanes:
    """Cut to f32 toward zero; subnormals stay, overflow gives infinity, zero is +0."""
    unit = -fraction_bits - format_.offset
    if format_.narrow:
        value = cast(leading24(magnitude)[1], "f32") * power(e_max, 127 + unit)
    else:
        # no bit below 2^-149, and a unit that may lie outside of f32's range is applied in two halves
        subnormal = -149 - unit
        magnitude = magnitude >> cast(larger(subnormal - e_max, 0), "u32")
        exponent = larger(e_max, subnormal) + unit
        half = exponent >> 1
        value = cast(leading24(magnitude)[1], "f32") * power(half, 127) * power(exponent - half, 127)
    return bits(bits(value, "u32") | (cast(sign, "u32") & SIGN), "f32")


def to_f16(sign: Lanes, magnitude: Lanes, e_max: Lanes, format_: Format, fraction_bits: int) -> Lanes:
    """Round to f16, nearest even, as an f32 value; overflow gives infinity, zero is +0."""
    below, kept = leading24(magnitude)
    odd = where(magnitude & below != 0, kept | (below + 1), kept)  # the lost bits as one
    value = cast(odd, "f32") * power(e_max, 127 - fraction_bits - format_.offset)
    rounded = cast(cast(value, "f16"), "f32")
    return where(rounded == 0.0, rounded, bits(bits(rounded, "u32") | (cast(sign, "u32") & SIGN), "f32"))


def step(pairs: Pairs, a: Multiplicand, b: Multiplicand, c: list[Lanes], accumulator: str, parameters: Steps) -> list[Lanes]:
    """One step; c: the accumulators as f32 values. Returns the new ones."""
    format_, fraction_bits = a.format, parameters.fraction_bits
    found = largest_exponents(pairs, a, b)
    # without a product, f32 accumulators of any exponent pass uncut, which saves their own treatment of the floor and of zero
    passes = format_.narrow and accumulator == "f32"
    if passes:
        e_max = [larger(e, exponent_field(x) + (format_.offset - 127)) for x, e in zip(c, found)]
    else:
        floor, least = parameters.floors[accumulator] + format_.offset, 1 if accumulator == "f32" else 127 - 14
        e_max = []
        for x, e in zip(c, found):
            of_c = where(x == 0.0, floor, larger(exponent_field(x), least) + (format_.offset - 127))
            e_max.append(larger(larger(e, floor), of_c))
    sums = (narrow_sums if format_.narrow else wide_sums)(pairs, a, b, c, e_max, fraction_bits)
    results = []
    for number, (value, e) in enumerate(zip(c, e_max)):
        sign, magnitude = total(sums[number], sums[number + len(c)])
        result = (to_f32 if accumulator == "f32" else to_f16)(sign, magnitude, e, format_, fraction_bits)
        if passes:
            result = where(found[number] < 2 * format_.marker, value + 0.0, result)
        results.append(result)

    def slow() -> list[Lanes]:
        fresh_a, fresh_b = Multiplicand(format_, a.registers), Multiplicand(format_, b.registers)
        return [_special(pairs[i], fresh_a, fresh_b, c[i], results[i]) for i in range(len(c))]

    special = functools.reduce(lambda x, y: x | y, (bits(x, "u32") & EXPONENT == EXPONENT for x in c))
    return if_any(a.any_special() | b.any_special() | special, slow, results)


def _special(pairs: list[tuple[Pair, Pair]], a: Multiplicand, b: Multiplicand, c: Lanes, finite: Lanes) -> Lanes:
    """`finite`, or what infinities and NaN among the terms make of it."""
    sum_ = where(bits(c, "u32") & EXPONENT == EXPONENT, c, 0.0)
    for pair in pairs:
        for product in products("special", pair, a, b):
            sum_ = sum_ + product
    u = bits(sum_, "u32")
    result = where((u & 0x7FFFFFFF) > INFINITY, NAN, u)
    return bits(where(u & EXPONENT == EXPONENT, result, bits(finite, "u32")), "f32")


def matrix_multiply(
    shape: str,
    type_: str,
    accumulator: str,
    a: Sequence[Lanes],
    b: Sequence[Lanes],
    c: Sequence[Lanes],
    arch: int,
    products_per_step: int | None = None,
) -> list[Lanes]:
    """The elements of D from the registers of A and B (u32) and the elements of C, as f32 values.

    accumulator: 'f32' or 'f16', what D is rounded to after every step. products_per_step: fewer than the architecture would take.
    """
    parameters, format_ = steps_of(arch), FORMATS[type_]
    length = products_per_step or parameters.products[type_]
    factors = sources(shape, type_)
    left, right, d = Multiplicand(format_, a), Multiplicand(format_, b), list(c)
    for start in range(0, sizes(shape)[2], length):
        d = step([paired(x[start : start + length]) for x in factors], left, right, d, accumulator, parameters)
    return d


def unpack_f16(registers: Sequence[Lanes]) -> list[Lanes]:
    """Two f32 values of each register's two f16."""
    return [widen(cast(half, "u16"), F16) for register in registers for half in (register, register >> 16)]


def pack_f16(values: Sequence[Lanes]) -> list[Lanes]:
    """Registers of two f16, rounded from f32 values."""
    halves = [narrow(x, F16) for x in values]
    return [pack(halves[i + 1], halves[i]) for i in range(0, len(halves), 2)]
