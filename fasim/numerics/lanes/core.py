"""`Lanes`, one typed value for each of the 32 lanes of a warp, and the functions that combine them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

LANES = 32
TYPES = {
    "pred": 1,
    "u8": 8,
    "s8": 8,
    "u16": 16,
    "s16": 16,
    "u32": 32,
    "s32": 32,
    "u64": 64,
    "s64": 64,
    "f16": 16,  # only bits() and cast() from and to f32
    "f32": 32,
    "f64": 64,
}
FLOATS = frozenset({"f16", "f32", "f64"})


def width(type_: str) -> int:
    """Bits of one lane's value of a type."""
    return TYPES[type_]


class Backend(Protocol):
    """What a backend has to do; `raw` values are its own (numpy arrays, LLVM values)."""

    def const(self, value: Any, type_: str) -> Any: ...
    def binary(self, op: str, type_: str, a: Any, b: Any) -> Any: ...
    def shift(self, op: str, type_: str, a: Any, amount: Any) -> Any: ...
    def compare(self, op: str, type_: str, a: Any, b: Any) -> Any: ...
    def select(self, condition: Any, a: Any, b: Any, type_: str) -> Any: ...
    def cast(self, raw: Any, source: str, target: str) -> Any: ...
    def bits(self, raw: Any, source: str, target: str) -> Any: ...
    def unary(self, op: str, type_: str, raw: Any) -> Any: ...
    def fma(self, type_: str, a: Any, b: Any, c: Any) -> Any: ...
    def permute(self, raw: Any, type_: str, source_lanes: Sequence[int]) -> Any: ...
    def gather(self, raw: Any, type_: str, index: Any) -> Any: ...
    def ballot(self, raw: Any) -> Any: ...
    def table(self, values: np.ndarray[Any, Any], type_: str, index: Any) -> Any: ...
    def packed(self, op: str, type_: str, a: Any, b: Any) -> Any: ...
    def if_any(self, condition: Any, slow: Callable[[], Sequence[Any]], fast: Sequence[Any]) -> Sequence[Any]: ...


class Lanes:
    """One value of type `type` a lane; arithmetic wraps as the hardware's does, comparisons with NaN are false (`!=`: true).

    Shifts follow PTX: an amount of the width or more gives 0, or the sign for a signed value.
    """

    __slots__ = ("backend", "raw", "type")
    __hash__ = None  # type: ignore[assignment]  # == builds a predicate, so values cannot be keys

    def __init__(self, backend: Backend, raw: Any, type_: str) -> None:
        self.backend, self.raw, self.type = backend, raw, type_

    def _other(self, other: Any) -> Any:
        if isinstance(other, Lanes):
            if other.type != self.type:
                raise TypeError(f"lane types differ: {self.type} and {other.type}; cast one of them")
            return other.raw
        return self.backend.const(other, self.type)

    def _binary(self, op: str, other: Any) -> Lanes:
        return Lanes(self.backend, self.backend.binary(op, self.type, self.raw, self._other(other)), self.type)

    def _reflected(self, op: str, other: Any) -> Lanes:
        return Lanes(self.backend, self.backend.binary(op, self.type, self._other(other), self.raw), self.type)

    def _compare(self, op: str, other: Any) -> Lanes:
        return Lanes(self.backend, self.backend.compare(op, self.type, self.raw, self._other(other)), "pred")

    def _shift(self, op: str, amount: Any) -> Lanes:
        if isinstance(amount, Lanes):
            amount = cast(amount, "u" + self.type[1:]).raw if amount.type[1:] != self.type[1:] else amount.raw
        elif amount >= width(self.type):
            amount = width(self.type) - 1 if op == "shr" and self.type[0] == "s" else amount
            if amount >= width(self.type):
                return const(0, like=self)
        return Lanes(self.backend, self.backend.shift(op, self.type, self.raw, amount), self.type)

    def __add__(self, other: Any) -> Lanes:
        return self._binary("add", other)

    def __radd__(self, other: Any) -> Lanes:
        return self._reflected("add", other)

    def __sub__(self, other: Any) -> Lanes:
        return self._binary("sub", other)

    def __rsub__(self, other: Any) -> Lanes:
        return self._reflected("sub", other)

    def __mul__(self, other: Any) -> Lanes:
        return self._binary("mul", other)

    def __rmul__(self, other: Any) -> Lanes:
        return self._reflected("mul", other)

    def __and__(self, other: Any) -> Lanes:
        return self._binary("and", other)

    def __rand__(self, other: Any) -> Lanes:
        return self._binary("and", other)

    def __or__(self, other: Any) -> Lanes:
        return self._binary("or", other)

    def __ror__(self, other: Any) -> Lanes:
        return self._binary("or", other)

    def __xor__(self, other: Any) -> Lanes:
        return self._binary("xor", other)

    def __rxor__(self, other: Any) -> Lanes:
        return self._binary("xor", other)

    def __lshift__(self, amount: Any) -> Lanes:
        return self._shift("shl", amount)

    def __rshift__(self, amount: Any) -> Lanes:
        return self._shift("shr", amount)

    def __invert__(self) -> Lanes:
        return self._binary("xor", True if self.type == "pred" else -1)

    def __neg__(self) -> Lanes:
        if self.type in FLOATS:
            unsigned = "u" + self.type[1:]
            return bits(bits(self, unsigned) ^ (1 << (width(self.type) - 1)), self.type)
        return self._reflected("sub", 0)

    def __eq__(self, other: object) -> Lanes:  # type: ignore[override]  # lane-wise, as numpy's
        return self._compare("==", other)

    def __ne__(self, other: object) -> Lanes:  # type: ignore[override]  # lane-wise, as numpy's
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> Lanes:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Lanes:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Lanes:
        return self._compare(">=", other)

    def __bool__(self) -> bool:
        raise TypeError("a lane value has no truth of its own: use where(), &, | and ~ instead of if, and, or and not")


def const(value: Any, *, like: Lanes, type_: str | None = None) -> Lanes:
    """A constant (the same in every lane, or a sequence of 32) for the backend of `like`, of its type unless `type_` is given."""
    type_ = type_ or like.type
    return Lanes(like.backend, like.backend.const(value, type_), type_)


def lane_id(like: Lanes) -> Lanes:
    """0 ... 31, as u32."""
    return const(range(LANES), like=like, type_="u32")


def where(condition: Lanes, a: Any, b: Any) -> Lanes:
    """`a` in the lanes where the predicate holds, else `b`; one of them may be a Python number."""
    like = a if isinstance(a, Lanes) else b
    if not isinstance(like, Lanes):
        raise TypeError("where() needs a lane value among its alternatives; use const() for two constants")
    raw_a, raw_b = (x.raw if isinstance(x, Lanes) else like.backend.const(x, like.type) for x in (a, b))
    for x in (a, b):
        if isinstance(x, Lanes) and x.type != like.type:
            raise TypeError(f"where() alternatives differ: {a.type} and {b.type}")
    return Lanes(like.backend, like.backend.select(condition.raw, raw_a, raw_b, like.type), like.type)


def cast(x: Lanes, type_: str) -> Lanes:
    """Value conversion: integers are cut or extended by the source's sign, to float rounds to nearest even, float to integer truncates.

    Float to integer is defined only where the truncated value fits; guard the rest with `where`.
    """
    return x if x.type == type_ else Lanes(x.backend, x.backend.cast(x.raw, x.type, type_), type_)


def bits(x: Lanes, type_: str) -> Lanes:
    """The same bits seen as another type of the same width."""
    if width(x.type) != width(type_):
        raise TypeError(f"bits() cannot change the width: {x.type} to {type_}")
    return x if x.type == type_ else Lanes(x.backend, x.backend.bits(x.raw, x.type, type_), type_)


def _unary(op: str, x: Lanes) -> Lanes:
    return Lanes(x.backend, x.backend.unary(op, x.type, x.raw), x.type)


def sqrt(x: Lanes) -> Lanes:
    """IEEE square root, to nearest even."""
    return _unary("sqrt", x)


def floor(x: Lanes) -> Lanes:
    """Round a float down to an integer value."""
    return _unary("floor", x)


def ceil(x: Lanes) -> Lanes:
    """Round a float up to an integer value."""
    return _unary("ceil", x)


def trunc(x: Lanes) -> Lanes:
    """Round a float toward zero to an integer value."""
    return _unary("trunc", x)


def rint(x: Lanes) -> Lanes:
    """Round a float to the nearest integer value, ties to even."""
    return _unary("rint", x)


def clz(x: Lanes) -> Lanes:
    """Leading zero bits (the width for 0)."""
    return _unary("clz", x)


def popc(x: Lanes) -> Lanes:
    """Bits that are set."""
    return _unary("popc", x)


def brev(x: Lanes) -> Lanes:
    """Bits in reverse order."""
    return _unary("brev", x)


def fma(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a * b + c, rounded once to nearest even."""
    return Lanes(a.backend, a.backend.fma(a.type, a.raw, b.raw, c.raw), a.type)


def fdiv(a: Lanes, b: Any) -> Lanes:
    """IEEE division, to nearest even."""
    return a._binary("fdiv", b)


def idiv(a: Lanes, b: Any) -> Lanes:
    """Integer division toward zero; the divisor must not be 0, and -2^(n-1) / -1 wraps."""
    return a._binary("idiv", b)


def irem(a: Lanes, b: Any) -> Lanes:
    """Remainder of `idiv`, with the sign of the dividend."""
    return a._binary("irem", b)


def mulhi(a: Lanes, b: Any) -> Lanes:
    """The upper half of the full product."""
    return a._binary("mulhi", b)


def permute(x: Lanes, source_lanes: Sequence[int]) -> Lanes:
    """Lane i gets the value of lane source_lanes[i], fixed when the instruction is built."""
    return Lanes(x.backend, x.backend.permute(x.raw, x.type, source_lanes), x.type)


def gather(x: Lanes, index: Lanes) -> Lanes:
    """Lane i gets the value of lane index[i] (u32, below 32)."""
    return Lanes(x.backend, x.backend.gather(x.raw, x.type, index.raw), x.type)


def ballot(x: Lanes) -> Lanes:
    """A predicate as a 32-bit mask, bit i from lane i; every lane gets it."""
    return Lanes(x.backend, x.backend.ballot(x.raw), "u32")


def table(values: np.ndarray[Any, Any], index: Lanes) -> Lanes:
    """values[index] for a constant table; the index must be inside."""
    type_ = {"u": "u", "i": "s", "f": "f"}[values.dtype.kind] + str(values.dtype.itemsize * 8)
    return Lanes(index.backend, index.backend.table(values, type_, index.raw), type_)


def packed(op: str, type_: str, a: Lanes, b: Any) -> Lanes:
    """`add`, `sub`, `min` or `max` on the 16-bit halves (`type_` u16 or s16) of u32 values, each half on its own."""
    return Lanes(a.backend, a.backend.packed(op, type_, a.raw, a._other(b)), a.type)


def if_any(condition: Lanes, slow: Callable[[], Sequence[Lanes]], fast: Sequence[Lanes]) -> list[Lanes]:
    """`slow()` for the whole warp if the predicate holds in any lane, else `fast`; values made inside `slow` must not be used outside."""
    raw = condition.backend.if_any(condition.raw, lambda: [x.raw for x in slow()], [x.raw for x in fast])
    return [Lanes(x.backend, value, x.type) for x, value in zip(fast, raw, strict=True)]
