"""The lane language on numpy arrays of 32 values: the slow, plain definition that the fast machine is tested against."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from fasim.numerics.lanes.core import LANES, Lanes, width

Array = np.ndarray[Any, Any]

DTYPES: dict[str, Any] = {
    "pred": np.bool_,
    "u8": np.uint8,
    "s8": np.int8,
    "u16": np.uint16,
    "s16": np.int16,
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "fdiv": np.divide,
}
_COMPARE = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FLOAT_UNARY = {"sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "rint": np.rint}


def _wrap(value: int, type_: str) -> int:
    bits = width(type_)
    value &= (1 << bits) - 1
    return value - (1 << bits) if type_[0] == "s" and value >> (bits - 1) else value


def _array(values: Sequence[Any], type_: str) -> Array:
    if type_[0] in "us":
        values = [_wrap(int(v), type_) for v in values]
    return np.array(values, dtype=DTYPES[type_])


class NumpyBackend:
    """Evaluates at once; every method takes and returns arrays of 32."""

    def const(self, value: Any, type_: str) -> Array:
        values = list(value) if isinstance(value, (range, list, tuple, np.ndarray)) else [value] * LANES
        return _array(values, type_)

    def binary(self, op: str, type_: str, a: Array, b: Array) -> Array:
        with np.errstate(all="ignore"):
            if op in _BINARY:
                return np.asarray(_BINARY[op](a, b), DTYPES[type_])
            pairs = [(int(x), int(y)) for x, y in zip(a, b)]
        if op == "mulhi":
            return _array([(x * y) >> width(type_) for x, y in pairs], type_)
        quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x, y in pairs]
        if op == "idiv":
            return _array(quotients, type_)
        return _array([x - y * q for (x, y), q in zip(pairs, quotients)], type_)

    def shift(self, op: str, type_: str, a: Array, amount: Any) -> Array:
        n = width(type_)
        amounts = [int(s) % (1 << n) for s in amount] if isinstance(amount, np.ndarray) else [amount] * LANES
        if op == "shl":
            return _array([int(x) << s if s < n else 0 for x, s in zip(a, amounts)], type_)
        return _array([int(x) >> min(s, n) for x, s in zip(a, amounts)], type_)

    def compare(self, op: str, type_: str, a: Array, b: Array) -> Array:
        return np.asarray(_COMPARE[op](a, b), np.bool_)

    def select(self, condition: Array, a: Array, b: Array, type_: str) -> Array:
        return np.where(condition, a, b)

    def cast(self, raw: Array, source: str, target: str) -> Array:
        with np.errstate(all="ignore"):
            if source[0] == "f" and target[0] in "us":
                return _array([int(x) if np.isfinite(x) else 0 for x in raw], target)
            if source == "pred" or source[0] == "f" or target[0] == "f":
                return raw.astype(DTYPES[target])
            if target == "pred":
                return (raw & 1).astype(np.bool_)
            return _array(list(raw), target)

    def bits(self, raw: Array, source: str, target: str) -> Array:
        return np.ascontiguousarray(raw).view(DTYPES[target])

    def unary(self, op: str, type_: str, raw: Array) -> Array:
        if op in _FLOAT_UNARY:
            with np.errstate(all="ignore"):
                return np.asarray(_FLOAT_UNARY[op](raw), DTYPES[type_])
        n = width(type_)
        values = [int(x) & ((1 << n) - 1) for x in raw]
        if op == "clz":
            return _array([n - x.bit_length() for x in values], type_)
        if op == "popc":
            return _array([x.bit_count() for x in values], type_)
        return _array([int(f"{x:0{n}b}"[::-1], 2) for x in values], type_)

    def fma(self, type_: str, a: Array, b: Array, c: Array) -> Array:
        return np.array([_fma(x, y, z, DTYPES[type_]) for x, y, z in zip(a, b, c)], DTYPES[type_])

    def permute(self, raw: Array, type_: str, source_lanes: Sequence[int]) -> Array:
        return raw[list(source_lanes)]

    def gather(self, raw: Array, type_: str, index: Array) -> Array:
        return raw[index.astype(np.int64)]

    def ballot(self, raw: Array) -> Array:
        return self.const(sum(1 << i for i, x in enumerate(raw) if x), "u32")

    def table(self, values: Array, type_: str, index: Array) -> Array:
        return values[index.astype(np.int64)]

    def packed(self, op: str, type_: str, a: Array, b: Array) -> Array:
        halves = [np.ascontiguousarray(x).view(DTYPES[type_]) for x in (a, b)]
        operate = {"add": np.add, "sub": np.subtract, "min": np.minimum, "max": np.maximum}[op]
        return np.asarray(operate(*halves), DTYPES[type_]).view(a.dtype)

    def if_any(self, condition: Array, slow: Callable[[], Sequence[Array]], fast: Sequence[Array]) -> Sequence[Array]:
        return slow() if condition.any() else fast


def _fma(a: Any, b: Any, c: Any, dtype: Any) -> Any:
    """Exact a * b + c with one rounding, by rationals; anything not finite goes the IEEE way."""
    with np.errstate(all="ignore"):
        plain = a * b + c
        if np.isinf(c) and np.isfinite(a) and np.isfinite(b):
            return c  # though a * b may overflow to the other infinity
        if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
            return plain
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    if exact == 0:
        product_sign = bool(np.signbit(a)) != bool(np.signbit(b))
        zero_product = a == 0 or b == 0
        negative = product_sign and bool(np.signbit(c)) if zero_product else False
        return dtype(-0.0) if negative else dtype(0.0)
    return dtype(round_fraction(exact, 24 if dtype is np.float32 else 53, -149 if dtype is np.float32 else -1074))


def round_fraction(x: Fraction, precision: int, least_exponent: int) -> float:
    """`x` rounded to nearest even to `precision` bits and no finer than 2**least_exponent; inf where a double cannot hold it.

    The result is exact in a double as long as the target format is no wider than one.
    """
    sign, x = (-1 if x < 0 else 1), abs(x)
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    if x < Fraction(2) ** exponent:
        exponent -= 1
    quantum = max(exponent - precision + 1, least_exponent)
    scaled = x / Fraction(2) ** quantum
    n, rest = divmod(scaled.numerator, scaled.denominator)
    twice = 2 * rest - scaled.denominator
    if twice > 0 or (twice == 0 and n & 1):
        n += 1
    largest = (2**precision - 1) * 2 ** (127 - 23 if precision == 24 else 1023 - 52)
    value = Fraction(n) * Fraction(2) ** quantum
    return sign * (float("inf") if value > largest else float(value))


def lanes(values: Any, type_: str) -> Lanes:
    """A `Lanes` value on the numpy backend from one number or 32."""
    return Lanes(BACKEND, BACKEND.const(values, type_), type_)


BACKEND = NumpyBackend()
