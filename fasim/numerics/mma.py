"""Matrix multiply-accumulate of f16, bf16 and tf32 fragments, bit for bit as the tensor cores do it.

D = A*B + C is computed in steps of L products along k, in increasing k. In one step products are exact and not renormalised; every
term is truncated toward zero to the quantum 2^(e_max - F), where e_max is the largest exponent among the terms that are not zero, the accumulator
included; the resulting integers are added exactly; the sum is cut to f32 (toward zero) or rounded to f16 (to nearest even).

How it is done on lanes: exponents of two factors are added and compared as packed 16-bit integers; the scaled products become
integers by the truncating conversion of f32 to s32, since a product of two 11-bit significands is exact in f32. Sixteen
products (each below 2^27) fit in 32 bits; the sum with the accumulator (below 2^26) fits as sign and u32 magnitude.

Source: recordings of mma.sync on an H200 for sm_90; published measurements for the others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fasim.errors import NotModelled
from fasim.numerics.fragments import Elements, fragment_elements, locate, sizes
from fasim.numerics.lanes import Lanes, bits, cast, clz, const, if_any, packed, permute, where


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

INFINITY, NAN, EXPONENT, SIGN = 0x7F800000, 0x7FFFFFFF, 0x7F800000, 0x80000000
NEGLIGIBLE = -60  # exponent distance at which any term is truncated to zero
Source = tuple[int, tuple[int, ...]]  # element of a fragment, and the lane that each lane takes it from


@functools.cache
def sources(shape: str, type_: str) -> tuple[tuple[tuple[Source, Source], ...], ...]:
    """For each element of D and each k: where its factors of A and B come from."""
    held = {x: locate(fragment_elements(shape, x, type_)) for x in "ab"}

    def source(operand: str, positions: Elements) -> Source:
        found = [held[operand][int(r), int(c)] for r, c in positions]
        (element,) = {element for _, element in found}
        return element, tuple(lane for lane, _ in found)

    d, k = fragment_elements(shape, "d", type_), sizes(shape)[2]
    result = []
    for number in range(d.shape[1]):
        at_a, at_b = d[:, number].copy(), d[:, number].copy()
        factors = []
        for i in range(k):
            at_a[:, 1], at_b[:, 0] = i, i
            factors.append((source("a", at_a), source("b", at_b)))
        result.append(tuple(factors))
    return tuple(result)


Pair = tuple[tuple[int, int | None], tuple[int, ...]]  # two elements that travel together


def _pairs(factors: Sequence[tuple[Source, Source]]) -> list[tuple[Pair, Pair]]:
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
        """The element as f32; of f16, infinities and NaN become numbers of exponent 16."""
        word = self.registers[element // self.per_register]
        if self.per_register == 1:
            return bits(word & 0xFFFFE000, "f32")
        word = word << 16 if element % 2 == 0 else word & 0xFFFF0000
        if not self.format.narrow:
            return bits(word, "f32")
        word = cast(cast(word, "s32") >> 3, "u32") & 0x8FFFE000
        return bits(word, "f32") * 2.0**112

    def significand(self, element: int) -> Lanes:
        """What the multiplier sees: the value, or for a wide exponent the significand with its sign, in (-2, 2)."""
        x = self.value(element)
        return x if self.format.narrow else significand(x)

    def special(self, element: int) -> Lanes:
        """`significand` with infinities and NaN in their place."""
        x = self.value(element)
        if self.format.narrow:
            return where(bits(x, "u32") & EXPONENT >= 143 << 23, bits(bits(x, "u32") | INFINITY, "f32"), x)
        return where(bits(x, "u32") & EXPONENT == EXPONENT, x, significand(x))

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


def narrow_sums(pairs: Pairs, a: Multiplicand, b: Multiplicand, c: Sequence[Lanes], e_max: Sequence[Lanes], fraction_bits: int) -> list[Lanes]:
    """Integer sums of the products (s32) where the products themselves are exact in f32, and the accumulators' integers."""
    scales = [power(-e, 127 + fraction_bits + a.format.offset) for e in e_max]
    sums: list[Lanes] = [const(0, like=e) for e in e_max]
    for together in zip(*pairs):
        for number, pair in enumerate(together):
            for product in products("significand", pair, a, b):
                sums[number] = sums[number] + cast(product * scales[number], "s32")
    return [*sums, *(cast(x * s, "s32") for x, s in zip(c, scales))]


def wide_sums(pairs: Pairs, a: Multiplicand, b: Multiplicand, c: Sequence[Lanes], e_max: Sequence[Lanes], fraction_bits: int) -> list[Lanes]:
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
        field = larger(cast((bits(x, "u32") >> 23) & 0xFF, "s32"), 1)
        distance = larger(field + (a.format.offset - 127) - e, NEGLIGIBLE)
        sums.append(cast(significand(x) * power(distance, one), "s32"))
    return sums


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
    exponent = bits(value, "u32") & EXPONENT
    shifter = bits(larger(exponent, (127 - 14) << 23) + (13 << 23), "f32")
    rounded = (value + shifter) - shifter
    rounded = where(rounded >= 65536.0, float("inf"), rounded)
    return where(rounded == 0.0, rounded, bits(bits(rounded, "u32") | (cast(sign, "u32") & SIGN), "f32"))


def step(pairs: Pairs, a: Multiplicand, b: Multiplicand, c: list[Lanes], accumulator: str, parameters: Steps) -> list[Lanes]:
    """One step; c: the accumulators as f32 values. Returns the new ones."""
    format_, fraction_bits = a.format, parameters.fraction_bits
    floor = parameters.floors[accumulator] + format_.offset
    found, e_max = largest_exponents(pairs, a, b), []
    untouched = format_.narrow and accumulator == "f32"
    for value, e in zip(c, found):
        u = bits(value, "u32")
        field = cast((u >> 23) & 0xFF, "s32")
        if not untouched:
            least = 1 if accumulator == "f32" else 127 - 14
            field = where(value == 0.0, floor - (format_.offset - 127), larger(field, least))
            e = larger(e, floor)
        e_max.append(larger(e, field + (format_.offset - 127)))
    sums = (narrow_sums if format_.narrow else wide_sums)(pairs, a, b, c, e_max, fraction_bits)
    results = []
    for number, (value, e) in enumerate(zip(c, e_max)):
        sign, magnitude = total(sums[number], sums[number + len(c)])
        result = (to_f32 if accumulator == "f32" else to_f16)(sign, magnitude, e, format_, fraction_bits)
        if untouched:  # without a product the accumulator passes, whatever its exponent: below the floor there is nothing to cut
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
    result = where(u & ~SIGN & 0xFFFFFFFF > INFINITY, NAN, u)
    return bits(where(u & EXPONENT == EXPONENT, result, bits(finite, "u32")), "f32")


def matrix_multiply(
    shape: str, type_: str, accumulator: str, a: Sequence[Lanes], b: Sequence[Lanes], c: Sequence[Lanes], arch: int
) -> list[Lanes]:
    """The elements of D from the registers of A and B (u32) and the elements of C, as f32 values.

    accumulator: 'f32' or 'f16', what D is rounded to after every step.
    """
    parameters, format_ = steps_of(arch), FORMATS[type_]
    length = parameters.products[type_]
    factors = sources(shape, type_)
    left, right, d = Multiplicand(format_, a), Multiplicand(format_, b), list(c)
    for start in range(0, sizes(shape)[2], length):
        d = step([_pairs(x[start : start + length]) for x in factors], left, right, d, accumulator, parameters)
    return d


def unpack_f16(register: Lanes) -> list[Lanes]:
    """The two f16 of a register as f32 values."""
    both = Multiplicand(FORMATS["f16"], [register])
    return [both.special(0), both.special(1)]


def pack_f16(low: Lanes, high: Lanes) -> Lanes:
    """A register of two f16 from f32 values that f16 can hold."""

    def encode(x: Lanes) -> Lanes:
        u = bits(x, "u32")
        magnitude = bits(where(u & EXPONENT == EXPONENT, 65536.0, bits(u & ~SIGN & 0xFFFFFFFF, "f32")) * 2.0**-112, "u32") >> 13
        return where(x != x, 0x7FFF, magnitude | (u & SIGN) >> 16)

    return encode(low) | encode(high) << 16
