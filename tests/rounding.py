"""Exact arithmetic on floating-point bit patterns by rationals, rounded once to any format in any direction."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from fractions import Fraction

INF, NINF, NAN = math.inf, -math.inf, math.nan
Value = Fraction | float  # float: an infinity, a NaN or -0.0


@dataclass(frozen=True)
class Format:
    bits: int
    fraction_bits: int
    nan: int

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.fraction_bits - 2)) - 1

    @property
    def sign(self) -> int:
        return 1 << (self.bits - 1)

    @property
    def infinity(self) -> int:
        return self.sign - (1 << self.fraction_bits)

    @property
    def least(self) -> Fraction:
        """The least subnormal."""
        return Fraction(2) ** (1 - self.bias - self.fraction_bits)

    @property
    def least_normal(self) -> Fraction:
        return Fraction(2) ** (1 - self.bias)

    def decode(self, pattern: int) -> Value:
        magnitude, negative = pattern & (self.sign - 1), bool(pattern & self.sign)
        if magnitude > self.infinity:
            return NAN
        if magnitude == self.infinity:
            return NINF if negative else INF
        if magnitude == 0:
            return -0.0 if negative else Fraction(0)
        field, fraction = magnitude >> self.fraction_bits, magnitude & ((1 << self.fraction_bits) - 1)
        value = self.least * (fraction if field == 0 else (fraction | 1 << self.fraction_bits) << (field - 1))
        return -value if negative else value

    def round(self, value: Value, mode: str = "rn") -> int:
        """The pattern of a value rounded by rn, rz, rm, rp or rna (ties away)."""
        if isinstance(value, float):
            if math.isnan(value):
                return self.nan
            if math.isinf(value):
                return self.infinity | (self.sign if value < 0 else 0)
            return self.sign if math.copysign(1, value) < 0 else 0
        negative, size = value < 0, abs(value)
        quantum = max(self.least, Fraction(2) ** (log2_floor(size) - self.fraction_bits)) if size else self.least
        count, rest = divmod(size, quantum)
        if goes_up(mode, negative, rest / quantum, count):
            count += 1
        # the patterns of the multiples of the quantum are consecutive
        exponent = log2_floor(quantum / self.least)
        pattern = count if exponent == 0 else count + (exponent << self.fraction_bits)
        if pattern >= self.infinity:
            outward = mode in ("rn", "rna") or mode == ("rm" if negative else "rp")
            pattern = self.infinity if outward else self.infinity - 1
        return int(pattern) | (self.sign if negative else 0)

    def flush(self, pattern: int) -> int:
        return pattern & self.sign if (pattern & (self.sign - 1)) < 1 << self.fraction_bits else pattern

    def round_flushed(self, value: Value, mode: str = "rn") -> int:
        """`round`, but what is below the least normal number after rounding to full precision becomes zero."""
        if isinstance(value, float) or not value:
            return self.round(value, mode)
        shift = Fraction(2) ** 200
        wide = Format(self.bits + 4, self.fraction_bits, 0)
        rounded = wide.decode(wide.round(value * shift, mode))
        if abs(rounded) < self.least_normal * shift:
            return self.sign if value < 0 else 0
        return self.round(value, mode)


F16, BF16, F32, F64 = Format(16, 10, 0x7FFF), Format(16, 7, 0x7FFF), Format(32, 23, 0x7FFFFFFF), Format(64, 52, 0xFFF8 << 48)
FORMATS = {"f16": F16, "bf16": BF16, "f32": F32, "f64": F64}


def log2_floor(x: Fraction) -> int:
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    return exponent if x >= Fraction(2) ** exponent else exponent - 1


def goes_up(mode: str, negative: bool, rest: Fraction, count: int) -> bool:
    if mode == "rn":
        return rest > Fraction(1, 2) or (rest == Fraction(1, 2) and count % 2 == 1)
    if mode == "rna":
        return rest >= Fraction(1, 2)
    return rest > 0 and mode == ("rm" if negative else "rp")


def is_special(x: Value) -> bool:
    return isinstance(x, float) and x != 0


def negative(x: Value) -> bool:
    return math.copysign(1, x) < 0 if isinstance(x, float) else x < 0


def exact(x: Value) -> Fraction:
    return Fraction(0) if isinstance(x, float) else x


def add(a: Value, b: Value, mode: str = "rn") -> Value:
    if is_special(a) or is_special(b):
        return (a if is_special(a) else 0.0) + (b if is_special(b) else 0.0)
    total = exact(a) + exact(b)
    if total == 0:
        if negative(a) == negative(b):
            return -0.0 if negative(a) else Fraction(0)
        return -0.0 if mode == "rm" else Fraction(0)
    return total


def mul(a: Value, b: Value, mode: str = "rn") -> Value:
    sign = -1.0 if negative(a) != negative(b) else 1.0
    if is_special(a) or is_special(b):
        if (a != a or b != b) or exact_zero(a) or exact_zero(b):
            return NAN
        return sign * INF
    product = exact(a) * exact(b)
    return product if product else -0.0 if sign < 0 else Fraction(0)


def exact_zero(x: Value) -> bool:
    return not is_special(x) and exact(x) == 0


def fma(a: Value, b: Value, c: Value, mode: str = "rn") -> Value:
    return add(mul(a, b), c, mode)


def sub(a: Value, b: Value, mode: str = "rn") -> Value:
    return add(a, neg(b), mode)


def neg(x: Value) -> Value:
    if isinstance(x, float):
        return -x if x else Fraction(0)
    return -x if x else -0.0


def div(a: Value, b: Value, mode: str = "rn") -> Value:
    sign = -1.0 if negative(a) != negative(b) else 1.0
    zero: Value = -0.0 if sign < 0 else Fraction(0)
    if a != a or b != b or (is_special(a) and is_special(b)) or (exact_zero(a) and exact_zero(b)):
        return NAN
    if is_special(a) or exact_zero(b):
        return sign * INF
    if is_special(b) or exact_zero(a):
        return zero
    return exact(a) / exact(b)


def rcp(a: Value, mode: str = "rn") -> Value:
    return div(Fraction(1), a)


def sqrt(a: Value, mode: str = "rn") -> Value:
    """Exact where the root is rational with few bits, else a number between the same two neighbours of any format here."""
    if exact_zero(a):
        return a
    if a != a or negative(a):
        return NAN
    if is_special(a):
        return INF
    x = exact(a)
    scale = 1 << 2400  # the numbers of these formats are multiples of 2**-1074
    n = x.numerator * scale // x.denominator
    root = math.isqrt(n)
    return Fraction(2 * root + (root * root != n), 2 << 1200)


OPERATIONS = {"add": (add, 2), "sub": (sub, 2), "mul": (mul, 2), "fma": (fma, 3), "div": (div, 2), "rcp": (rcp, 1), "sqrt": (sqrt, 1)}


def corner_patterns(f: Format) -> list[int]:
    one = f.bias << f.fraction_bits
    sizes = (
        0,
        1,
        2,
        (1 << f.fraction_bits) - 1,
        1 << f.fraction_bits,
        one - 1,
        one,
        one + 1,
        f.infinity - 1,
        f.infinity,
        f.infinity + 1,
        f.nan & (f.sign - 1),
    )
    return [s | sign for s in sizes for sign in (0, f.sign)]


def random_pattern(rng: random.Random, f: Format, near: int | None = None) -> int:
    """A finite pattern with a significand of few, many or random bits; exponent field anywhere or close to that of `near`."""
    top = (1 << (f.bits - f.fraction_bits - 1)) - 2
    if near is None:
        field = rng.choice((0, 1, 2, top, rng.randint(0, top), f.bias + rng.randint(-3, 3)))
    else:
        field = ((near & (f.sign - 1)) >> f.fraction_bits) + rng.choice((0, 1, -1, rng.randint(-f.fraction_bits - 3, f.fraction_bits + 3)))
    full = (1 << f.fraction_bits) - 1
    fraction = rng.choice(
        (
            0,
            1,
            full,
            full - 1,
            1 << rng.randrange(f.fraction_bits),
            full ^ (1 << rng.randrange(f.fraction_bits)),
            rng.getrandbits(f.fraction_bits),
        )
    )
    return rng.getrandbits(1) << (f.bits - 1) | min(max(field, 0), top) << f.fraction_bits | fraction


def operand_sets(rng: random.Random, f: Format, arity: int, count: int) -> list[tuple[int, ...]]:
    """`count` operand tuples for arithmetic: corners, random ones, and sums that cancel or tie."""
    sets: list[tuple[int, ...]] = []
    corners = corner_patterns(f)
    while len(sets) < count:
        kind = rng.randrange(4)
        if kind == 0:
            sets.append(tuple(rng.choice(corners) for _ in range(arity)))
            continue
        first = random_pattern(rng, f)
        second = random_pattern(rng, f, first if kind == 1 or arity == 1 else None)
        if kind == 3:  # a quotient or product next to the ends of the range
            far = (
                (f.bias if rng.getrandbits(1) else 3 * f.bias)
                - (first & (f.sign - 1)) // (1 << f.fraction_bits)
                + rng.randint(-f.fraction_bits - 4, 4)
            )
            second = second & ~f.infinity | min(max(far, 0), 2 * f.bias) << f.fraction_bits
        third = random_pattern(rng, f)
        product = mul(f.decode(first), f.decode(second))
        if arity == 3 and kind != 2 and not is_special(product):
            near = f.round(product) ^ f.sign
            if near & (f.sign - 1) < f.infinity:
                third = (
                    near + rng.randint(-2, 2)
                    if rng.getrandbits(1) and 2 < near & (f.sign - 1) < f.infinity - 2
                    else random_pattern(rng, f, near)
                )
        sets.append((first, second, third)[:arity])
    return sets
