"""Binary floating point on lanes as the hardware does it: canonical NaN, flush to zero, saturation and all four IEEE roundings.

To nearest even is the native operation. The directed roundings start from it and step one place where the exact result lies on the other
side; that side is known exactly for every input, subnormal and overflowing ones included.
"""

from __future__ import annotations

from fasim.numerics.lanes import Lanes, bits, cast, const, fdiv, fma, sqrt, where, width
from fasim.numerics.softfloat import fma_f64

ROUNDINGS = ("rn", "rz", "rm", "rp")

#: what an arithmetic instruction gives for NaN
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF, "f64": 0xFFF8000000000000}
QUIET_BIT_F64 = 1 << 51
FRACTION_BITS = {"f32": 23, "f64": 52}


def unsigned(x: Lanes) -> Lanes:
    """The bits of a float as an unsigned integer."""
    return bits(x, f"u{width(x.type)}")


def signed(x: Lanes) -> Lanes:
    """The bits of a float as a signed integer."""
    return bits(x, f"s{width(x.type)}")


def pattern(value: int, like: Lanes) -> Lanes:
    """A float constant of the type of `like`, given by its bits."""
    return bits(const(value, like=like, type_=f"u{width(like.type)}"), like.type)


def is_nan(x: Lanes) -> Lanes:
    """Predicate: NaN."""
    return x != x


def is_finite(x: Lanes) -> Lanes:
    """Predicate: neither NaN nor infinite."""
    return magnitude(x) < float("inf")


def is_negative(x: Lanes) -> Lanes:
    """Predicate: the sign bit is set."""
    return signed(x) < 0


def sign_mask(x: Lanes) -> int:
    """The sign bit of the type."""
    return 1 << (width(x.type) - 1)


def magnitude(x: Lanes) -> Lanes:
    """The value without its sign bit."""
    return bits(unsigned(x) & (sign_mask(x) - 1), x.type)


def copy_sign(x: Lanes, sign: Lanes) -> Lanes:
    """The magnitude of `x` with the sign bit of `sign`."""
    return bits(unsigned(magnitude(x)) | (unsigned(sign) & sign_mask(x)), x.type)


def canonical(x: Lanes, *operands: Lanes) -> Lanes:
    """`x`, the result of an operation on `operands`, with its NaN as the hardware writes it.

    f32 knows one NaN. f64 hands on the first of `operands` that is NaN, made quiet, and makes its own NaN where none is. Their order is
    the hardware's: of a + b and a * b it prefers b, of a * b + c first b, then c.
    Source: measured on an H200.
    """
    if x.type == "f32":
        return where(is_nan(x), pattern(NAN["f32"], x), x)
    return where(is_nan(x), _f64_nan(x, *operands), x)


def _f64_nan(x: Lanes, *operands: Lanes) -> Lanes:
    nan = pattern(NAN["f64"], x)
    for operand in reversed(operands):
        nan = where(is_nan(operand), bits(unsigned(operand) | QUIET_BIT_F64, "f64"), nan)
    return nan


def flush(x: Lanes) -> Lanes:
    """`.ftz`: f32 subnormals become zero of the same sign."""
    u = bits(x, "u32")
    return bits(where((u & 0x7F800000) == 0, u & 0x80000000, u), "f32")


def flush_underflow(x: Lanes, scaled: Lanes) -> Lanes:
    """`.ftz` on a result, where `scaled` is the same computed 2**48 times larger.

    What counts is the result rounded as if exponents had no lower end: one that only a subnormal grid rounds up to 2**-126 is flushed too.
    Source: ptxas 13.0 tests for exactly that in cvt.rn.ftz.f32.f64, which is several instructions.
    """
    return where(magnitude(scaled) < 2.0**-78, bits(bits(x, "u32") & 0x80000000, "f32"), x)


def saturate(x: Lanes) -> Lanes:
    """`.sat`: clamp to [0, 1]; NaN and -0 give +0."""
    return where(x > 0.0, where(x < 1.0, x, 1.0), 0.0)


def neighbour(x: Lanes, up: Lanes, down: Lanes) -> Lanes:
    """The next float above `x` where `up`, below where `down`; +-0 count as one value only when stepping away from them is due.

    +0 must not be asked to go down nor -0 to go up: a result rounded to zero keeps the sign of the exact one.
    """
    outward = where(is_negative(x), down, up)
    inward = where(is_negative(x), up, down)
    u = unsigned(x)
    return bits(where(outward, u + 1, where(inward, u - 1, u)), x.type)


def direct(x: Lanes, above: Lanes, below: Lanes, rounding: str) -> Lanes:
    """Turn `x`, rounded to nearest, into another rounding; the exact value is `above` it, `below` it, or equal."""
    if rounding == "rn":
        return x
    never = above & ~above
    if rounding == "rp":
        return neighbour(x, above, never)
    if rounding == "rm":
        return neighbour(x, never, below)
    negative = is_negative(x)
    return neighbour(x, above & negative, below & ~negative)


def to_odd(x: Lanes, above: Lanes, below: Lanes) -> Lanes:
    """`x`, rounded to nearest, rounded to odd instead: a later rounding to at least two bits less is then exact."""
    u = unsigned(x)
    inward = where(is_negative(x), above, below)
    return bits(where(above | below, where(inward, u - 1, u) | 1, u), x.type)


def _zero_sum(result: Lanes, exact_zero: Lanes, a: Lanes, b: Lanes, rounding: str) -> Lanes:
    """An exact zero sum is +0, but rounding down -0, unless both terms are +0."""
    if rounding != "rm":
        return result
    both_plus = (unsigned(a) | unsigned(b)) == 0
    return where(exact_zero & ~both_plus, pattern(sign_mask(result), result), result)


def sum_error(a: Lanes, b: Lanes, s: Lanes) -> Lanes:
    """a + b - s, where s is a + b rounded to nearest; where s overflowed, an infinity of the other sign; NaN where s has no error."""
    swap = magnitude(a) < magnitude(b)
    large, small = where(swap, b, a), where(swap, a, b)
    return small - (s - large)


def add(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """a + b."""
    s = a + b
    if rounding != "rn":
        error = sum_error(a, b, s)
        s = _zero_sum(direct(s, error > 0.0, error < 0.0, rounding), s == 0.0, a, b, rounding)
    return canonical(s, b, a)


def sub(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """a - b."""
    if rounding == "rn":
        return canonical(a - b, b, a)
    return where(is_nan(b), canonical(a - b, b, a), add(a, -b, rounding))


def mul(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """a * b."""
    p = a * b
    if rounding == "rn":
        return canonical(p, b, a)
    if a.type == "f64":
        zero = bits((unsigned(a) ^ unsigned(b)) & sign_mask(a), "f64")
        return canonical(where(is_finite(a) & is_finite(b), fma_f64(a, b, zero, rounding), p), b, a)
    exact, rounded = cast(a, "f64") * cast(b, "f64"), cast(p, "f64")
    return canonical(direct(p, exact > rounded, exact < rounded, rounding))


def mul_ftz(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """a * b in f32 with `.ftz`."""
    a, b = flush(a), flush(b)
    return flush_underflow(mul(a, b, rounding), mul(a * 2.0**48, b, rounding))


def fused(a: Lanes, b: Lanes, c: Lanes) -> tuple[Lanes, Lanes, Lanes]:
    """f32 a * b + c rounded to nearest, and whether the exact value is above or below that."""
    result = fma(a, b, c)
    product, term, rounded = cast(a, "f64") * cast(b, "f64"), cast(c, "f64"), cast(result, "f64")
    s = product + term
    error = sum_error(product, term, s)
    level = s == rounded
    return result, (s > rounded) | (level & (error > 0.0)), (s < rounded) | (level & (error < 0.0))


def fma_rounded(a: Lanes, b: Lanes, c: Lanes, rounding: str = "rn") -> Lanes:
    """a * b + c, rounded once."""
    if rounding == "rn":
        return canonical(fma(a, b, c), b, c, a)
    if a.type == "f64":
        finite = is_finite(a) & is_finite(b) & is_finite(c)
        return canonical(where(finite, fma_f64(a, b, c, rounding), fma(a, b, c)), b, c, a)
    result, above, below = fused(a, b, c)
    product, term = cast(a, "f64") * cast(b, "f64"), cast(c, "f64")
    result = direct(result, above, below, rounding)
    if rounding == "rm":
        both_plus = (unsigned(product) | unsigned(term)) == 0
        result = where((product + term == 0.0) & ~both_plus, pattern(0x80000000, result), result)
    return canonical(result)


def _scaled(x: Lanes, exponent: Lanes) -> Lanes:
    """x * 2**exponent (s64, within +-3000) in steps that a double can hold; exact where the result is a normal number."""
    for _ in range(3):
        low = where(exponent < -1000, -1000, exponent)
        step = where(low > 1000, 1000, low)
        x = x * bits((step + 1023) << 52, "f64")
        exponent = exponent - step
    return x


def _unit(x: Lanes) -> tuple[Lanes, Lanes]:
    """A finite non-zero f64 as a number in [1, 2) of the same sign, and the power of two (s64) that it was divided by."""
    tiny = magnitude(x) < 2.0**-1022
    x = where(tiny, x * 2.0**200, x)
    exponent = (signed(x) >> 52) & 0x7FF
    fraction = (unsigned(x) & 0x800FFFFFFFFFFFFF) | 0x3FF0000000000000
    return bits(fraction, "f64"), exponent - where(tiny, const(1223, like=exponent), const(1023, like=exponent))


def div(a: Lanes, b: Lanes, rounding: str = "rn") -> Lanes:
    """a / b."""
    q = fdiv(a, b)
    if rounding == "rn":
        return canonical(q, a, b)
    if a.type == "f64":
        (unit_a, exponent_a), (unit_b, exponent_b) = _unit(a), _unit(b)
        error = fma(-_scaled(q, exponent_b - exponent_a), unit_b, unit_a)
        ordinary = is_finite(a) & is_finite(b) & (a != 0.0) & (b != 0.0)
        more, less = ordinary & (error > 0.0), ordinary & (error < 0.0)
    else:
        back, target = cast(q, "f64") * cast(b, "f64"), cast(a, "f64")
        more, less = target > back, target < back
    negative = is_negative(b)
    above, below = where(negative, less, more), where(negative, more, less)
    return canonical(direct(q, above, below, rounding), a, b)


def rcp(x: Lanes, rounding: str = "rn") -> Lanes:
    """1 / x."""
    return div(const(1.0, like=x), x, rounding)


def square_root(x: Lanes, rounding: str = "rn") -> Lanes:
    """The square root of x."""
    r = sqrt(x)
    if rounding == "rn":
        # asked as `r != r`, LLVM takes the square root's own NaN, of the other sign, for as good
        u, infinity = unsigned(x), ((1 << width(x.type) - 1) - 1) & ~((1 << FRACTION_BITS[x.type]) - 1)
        nan = pattern(NAN["f32"], x) if x.type == "f32" else _f64_nan(x, x)
        return where((u > infinity) & (u != sign_mask(x)), nan, r)
    if x.type == "f64":
        small = x < 2.0**-500  # the error of the square must not underflow
        scaled_r, scaled_x = where(small, r * 2.0**300, r), where(small, x * 2.0**600, x)
        error = fma(-scaled_r, scaled_r, scaled_x)
        above, below = error > 0.0, error < 0.0
    else:
        back, target = cast(r, "f64") * cast(r, "f64"), cast(x, "f64")
        above, below = target > back, target < back
    return direct(square_root(x), above, below, rounding)


def maximum(a: Lanes, b: Lanes, *, nan: bool = False) -> Lanes:
    """The larger; +0 is above -0. A NaN loses against a number, but with `nan` wins."""
    return _extreme(a, b, where(a > b, a, b), unsigned(a) & unsigned(b), nan)


def minimum(a: Lanes, b: Lanes, *, nan: bool = False) -> Lanes:
    """The smaller; -0 is below +0. A NaN loses against a number, but with `nan` wins."""
    return _extreme(a, b, where(a < b, a, b), unsigned(a) | unsigned(b), nan)


def _extreme(a: Lanes, b: Lanes, chosen: Lanes, if_equal: Lanes, nan: bool) -> Lanes:
    # a comparison with NaN chose b; equal values differ in the sign of zero at most
    chosen = where(a == b, bits(if_equal, a.type), chosen)
    if nan:
        chosen = where(is_nan(a), a, chosen)
    else:
        chosen = where(is_nan(b), a, chosen)
    return canonical(chosen, b, a)  # of two NaN, f64 code keeps the second
