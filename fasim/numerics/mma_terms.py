"""The terms of a matrix multiply-accumulate on lanes: factors, their exponents, and products as aligned integers.

Exponents of two factors are added and compared as packed 16-bit integers. A product of two significands of 11 bits is exact in f32, and the
conversion of the scaled product to s32 truncates toward zero, which is what aligning a term to the largest exponent means.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fasim.numerics.fragments import Source
from fasim.numerics.lanes import Lanes, bits, cast, const, packed, permute, where

SIGN, EXPONENT, INFINITY = 0x80000000, 0x7F800000, 0x7F800000  # of f32
NEGLIGIBLE = -60  # a distance to the largest exponent at which every term is truncated to zero


@dataclass(frozen=True, slots=True)
class Format:
    """A type of the multiplicands. `marker` is added to the exponent of what is not zero, so that products with zero never win."""

    exponent_bits: int
    fraction_bits: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def marker(self) -> int:
        return 2 << self.exponent_bits

    @property
    def offset(self) -> int:
        """Biased sum of two exponents minus the exponent of the product."""
        return 2 * (self.bias + self.marker)

    @property
    def narrow(self) -> bool:
        """Products stay within f32's range, so one scale serves a whole step."""
        return self.exponent_bits == 5


FORMATS = {"f16": Format(5, 10), "bf16": Format(8, 7), "tf32": Format(8, 10)}

Pair = tuple[tuple[int, int | None], tuple[int, ...]]  # two elements that travel together


def paired(factors: Sequence[tuple[Source, Source]]) -> list[tuple[Pair, Pair]]:
    """Products of one step, two by two where both factors come from the same lanes."""
    groups: dict[tuple[tuple[int, ...], tuple[int, ...]], list[tuple[int, int]]] = {}
    for (a, a_lanes), (b, b_lanes) in factors:
        groups.setdefault((a_lanes, b_lanes), []).append((a, b))
    result: list[tuple[Pair, Pair]] = []
    for (a_lanes, b_lanes), elements in groups.items():
        for i in range(0, len(elements), 2):
            (a, b), (a2, b2) = elements[i], elements[i + 1] if i + 1 < len(elements) else (None, None)
            result.append((((a, a2), a_lanes), ((b, b2), b_lanes)))
    return result


class Multiplicand:
    """The registers of A or B: elements as f32, exponents as packed pairs; all are made when first asked for."""

    def __init__(self, format_: Format, registers: Sequence[Lanes]) -> None:
        self.format, self.registers = format_, registers
        self.per_register = 2 if 1 + format_.exponent_bits + format_.fraction_bits == 16 else 1
        self._made: dict[object, Lanes] = {}

    def once(self, key: object, make: Callable[[], Lanes]) -> Lanes:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def moved(self, key: tuple[object, ...], lanes: tuple[int, ...], make: Callable[[], Lanes]) -> Lanes:
        return self.once((*key, lanes), lambda: permute(self.once(key, make), lanes))

    def value(self, element: int) -> Lanes:
        """The element as f32."""
        word = self.registers[element // self.per_register]
        if self.per_register == 1:
            return bits(word & 0xFFFFE000, "f32")
        if self.format.narrow:
            return cast(bits(cast(word if element % 2 == 0 else word >> 16, "u16"), "f16"), "f32")
        return bits(word << 16 if element % 2 == 0 else word & 0xFFFF0000, "f32")

    def significand(self, element: int) -> Lanes:
        """What the multiplier sees: the value, or for a wide exponent the significand with its sign, in (-2, 2)."""
        x = self.value(element)
        return x if self.format.narrow else significand(x)

    def special(self, element: int) -> Lanes:
        """`significand` with infinities and NaN in their place."""
        x = self.value(element)
        return x if self.format.narrow else where(bits(x, "u32") & EXPONENT == EXPONENT, x, significand(x))

    def exponents(self, pair: tuple[int, int | None]) -> Lanes:
        """Packed exponent fields, 1 for a subnormal, with the marker added; 0 for zero."""
        return self.once(("exponents", pair), lambda: self._exponents(*pair))

    def _exponents(self, low: int, high: int | None) -> Lanes:
        f = self.format
        if self.per_register == 2:  # both elements stand in one register
            word = self.registers[low // 2]
            fields = (word >> f.fraction_bits) & ((1 << f.exponent_bits) - 1) * 0x10001
            nonzero = packed("min", "u16", word & 0x7FFF7FFF, 0x00010001)
            return packed("max", "s16", fields, nonzero) + (nonzero << (f.exponent_bits + 1))
        halves = []
        for word in (self.registers[x] & 0x7FFFE000 for x in (low, high) if x is not None):
            halves.append(where(word == 0, 0, larger(word >> 23, 1) + f.marker))
        return halves[0] if len(halves) == 1 else halves[0] | halves[1] << 16

    def any_special(self) -> Lanes:
        """Predicate: the lane holds an infinity or NaN."""
        if self.per_register == 1:
            words = [x & EXPONENT for x in self.registers]
            return functools.reduce(lambda a, b: a | b, (x == EXPONENT for x in words))
        largest = functools.reduce(lambda a, b: packed("max", "s16", a, b), (x & 0x7FFF7FFF for x in self.registers))
        return (largest + (1 << self.format.fraction_bits) * 0x10001) & 0x80008000 != 0


def significand(x: Lanes) -> Lanes:
    """An f32's significand with its sign, raw (below 1) for a subnormal."""
    u = bits(x, "u32")
    return where(u & EXPONENT == 0, x * 2.0**126, bits(u & 0x807FFFFF | 0x3F800000, "f32"))


def exponent_field(x: Lanes) -> Lanes:
    """An f32's exponent bits, as s32."""
    return cast((bits(x, "u32") >> 23) & 0xFF, "s32")


def power(exponent: Lanes, bias: int) -> Lanes:
    """2^(exponent - 127 + bias) as f32, from s32."""
    return bits((exponent + bias) << 23, "f32")


def larger(a: Lanes, b: Lanes | int) -> Lanes:
    return where(a > b, a, b)


Pairs = list[list[tuple[Pair, Pair]]]  # for each element of D, the products of one step


def largest_exponents(pairs: Pairs, a: Multiplicand, b: Multiplicand) -> list[Lanes]:
    """For each element of D the largest biased exponent sum of its products, as s32."""
    best: list[Lanes | None] = [None] * len(pairs)
    for together in zip(*pairs):
        for number, (of_a, of_b) in enumerate(together):
            sum_, old = _exponent_sum(a, of_a, b, of_b), best[number]
            best[number] = sum_ if old is None else packed("max", "s16", old, sum_)
    return [cast(larger(x & 0xFFFF, x >> 16), "s32") for x in best if x is not None]


def _exponent_sum(a: Multiplicand, of_a: Pair, b: Multiplicand, of_b: Pair) -> Lanes:
    x = a.moved(("exponents", of_a[0]), of_a[1], functools.partial(a.exponents, of_a[0]))
    y = b.moved(("exponents", of_b[0]), of_b[1], functools.partial(b.exponents, of_b[0]))
    return packed("add", "s16", x, y)


def products(kind: str, pair: tuple[Pair, Pair], a: Multiplicand, b: Multiplicand) -> list[Lanes]:
    """The one or two products of a pair as f32, exact; kind is `significand` or `special`."""
    (of_a, a_lanes), (of_b, b_lanes) = pair
    result = []
    for i, j in zip(of_a, of_b):
        if i is not None and j is not None:
            x = a.moved((kind, i), a_lanes, functools.partial(getattr(a, kind), i))
            y = b.moved((kind, j), b_lanes, functools.partial(getattr(b, kind), j))
            result.append(x * y)
    return result


def narrow_sums(
    pairs: Pairs, a: Multiplicand, b: Multiplicand, c: Sequence[Lanes], e_max: Sequence[Lanes], fraction_bits: int
) -> list[Lanes]:
    """Integer sums of the products (s32) where the products themselves are exact in f32, and the accumulators' integers."""
    scales = [power(-e, 127 + fraction_bits + a.format.offset) for e in e_max]
    sums: list[Lanes] = [const(0, like=e) for e in e_max]
    for together in zip(*pairs):
        for number, pair in enumerate(together):
            for product in products("significand", pair, a, b):
                sums[number] = sums[number] + cast(product * scales[number], "s32")
    return [*sums, *(cast(x * s, "s32") for x, s in zip(c, scales))]


def wide_sums(
    pairs: Pairs, a: Multiplicand, b: Multiplicand, c: Sequence[Lanes], e_max: Sequence[Lanes], fraction_bits: int
) -> list[Lanes]:
    """The same for wide exponents: every product of significands is scaled by its own distance to e_max."""
    both = [cast(e, "u32") * 0x10001 for e in e_max]
    sums: list[Lanes] = [const(0, like=e) for e in e_max]
    one = 127 + fraction_bits
    for together in zip(*pairs):
        for number, pair in enumerate(together):
            distance = packed("sub", "s16", _exponent_sum(a, pair[0], b, pair[1]), both[number])
            biased = packed("add", "s16", packed("max", "s16", distance, (NEGLIGIBLE & 0xFFFF) * 0x10001), one * 0x10001)
            scales = (biased << 23, (biased >> 16) << 23)
            for product, scale in zip(products("significand", pair, a, b), scales):
                sums[number] = sums[number] + cast(product * bits(scale, "f32"), "s32")
    for x, e in zip(c, e_max):
        distance = larger(larger(exponent_field(x), 1) + (a.format.offset - 127) - e, NEGLIGIBLE)
        sums.append(cast(significand(x) * power(distance, one), "s32"))
    return sums
