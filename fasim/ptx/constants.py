"""Constant expressions, evaluated as ptxas does: 64-bit integers, signed or unsigned, and f64.

Source: PTX ISA, "Constants" and "Constant Expressions"; where the manual's summary and ptxas 13.0 differ (`&`, `|` and `^` keep
a signed type, `?:` does not convert the chosen value, shift counts wrap at 64), ptxas's output bytes decide.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

from fasim.ptx.lexer import Cursor, Token, int_literal
from fasim.ptx.tree import FloatImmediate, Immediate

WARP_SIZE = 32
_LEVELS: tuple[tuple[str, ...], ...] = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!="),
    ("<", "<=", ">", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
)
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
_BITWISE: dict[str, Callable[[int, int], int]] = {"&": lambda a, b: a & b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b}


@dataclass(frozen=True, slots=True)
class _Value:
    """An integer (s64, u64), a float (f64) or a lone 0f literal (f32, its bits in `integer`)."""

    type: str
    integer: int = 0
    real: float = 0.0


def _integer(value: int, type_: str) -> _Value:
    value &= (1 << 64) - 1
    return _Value(type_, value - (1 << 64) if type_ == "s64" and value >> 63 else value)


def starts_constant(cursor: Cursor) -> bool:
    """Whether a constant expression can begin at the cursor."""
    return cursor.kind in ("int", "float") or cursor.at("(", "-", "+", "!", "~", "WARP_SZ")


def parse_constant(cursor: Cursor) -> Immediate | FloatImmediate:
    """Read and evaluate a constant expression.

    Raises: PtxError.
    """
    value = _ternary(cursor)
    if value.type == "f64":
        return FloatImmediate(int.from_bytes(struct.pack("<d", value.real), "little"), "f64")
    if value.type == "f32":
        return FloatImmediate(value.integer, "f32")
    return Immediate(value.integer, value.type)


def parse_integer(cursor: Cursor, what: str) -> int:
    """Read a constant expression that has to be an integer.

    Raises: PtxError.
    """
    token = cursor.token
    value = _ternary(cursor)
    if value.type not in ("s64", "u64"):
        cursor.source.fail(token.offset, f"found a floating-point constant, expected an integer {what}")
    return value.integer


def _ternary(cursor: Cursor) -> _Value:
    start = cursor.token
    condition = _binary(cursor, 0)
    if not cursor.at("?"):
        return condition
    _require_integer(cursor, start, condition, "?:")
    cursor.next()
    first = _ternary(cursor)
    cursor.expect(":", "of the conditional constant expression")
    second = _ternary(cursor)
    if (first.type[0] == "f") != (second.type[0] == "f"):
        cursor.source.fail(start.offset, "both values of ?: have to be integers or both floating-point")
    return first if condition.integer else second


def _binary(cursor: Cursor, level: int) -> _Value:
    if level == len(_LEVELS):
        return _unary(cursor)
    start = cursor.token
    left = _binary(cursor, level + 1)
    while cursor.kind == "op" and cursor.text in _LEVELS[level]:
        operator = cursor.next()
        right = _binary(cursor, level + 1)
        left = _apply(cursor, start, operator, left, right)
    return left


def _apply(cursor: Cursor, start: Token, operator: Token, left: _Value, right: _Value) -> _Value:
    name = operator.text
    if "f" in left.type[0] + right.type[0]:
        if left.type != "f64" or right.type != "f64" or name not in {*_COMPARE, "+", "-", "*", "/"}:
            cursor.source.fail(operator.offset, f"{name!r} cannot combine {left.type} and {right.type} in a constant expression")
        if name in _COMPARE:
            return _Value("s64", int(_COMPARE[name](left.real, right.real)))
        return _Value("f64", real=_float_result(cursor, operator, left.real, right.real))
    converted = "u64" if "u64" in (left.type, right.type) else "s64"
    if name in ("<<", ">>"):
        count = right.integer & 63
        return _integer(left.integer << count if name == "<<" else left.integer >> count, left.type)
    if name in ("&&", "||"):
        truth = (left.integer and right.integer) if name == "&&" else (left.integer or right.integer)
        return _Value("s64", int(bool(truth)))
    if name == "%":
        converted = "u64"
    a, b = _integer(left.integer, converted).integer, _integer(right.integer, converted).integer
    if name in _COMPARE:
        return _Value("s64", int(_COMPARE[name](a, b)))
    if name in _BITWISE:
        return _integer(_BITWISE[name](a, b), converted)
    if name in "/%":
        if b == 0:
            cursor.source.fail(operator.offset, "the constant expression divides by zero")
        if name == "%":
            return _integer(a % b, "u64")
        quotient = abs(a) // abs(b)
        return _integer(quotient if (a < 0) == (b < 0) else -quotient, converted)
    return _integer({"+": a + b, "-": a - b, "*": a * b}[name], converted)


def _float_result(cursor: Cursor, operator: Token, a: float, b: float) -> float:
    if operator.text == "/":
        if b == 0.0:
            cursor.source.fail(operator.offset, "the constant expression divides by zero")
        return a / b
    return {"+": a + b, "-": a - b, "*": a * b}[operator.text]


def _unary(cursor: Cursor) -> _Value:
    if not cursor.at("+", "-", "!", "~"):
        return _primary(cursor)
    operator = cursor.next()
    start = cursor.token
    value = _unary(cursor)
    if value.type == "f32":
        cursor.source.fail(start.offset, "a 0f constant stands alone; write the sign into its bits or use 0d")
    if operator.text == "+":
        return value
    if operator.text == "-":
        return _Value("f64", real=-value.real) if value.type == "f64" else _integer(-value.integer, value.type)
    _require_integer(cursor, start, value, operator.text)
    return _Value("s64", int(not value.integer)) if operator.text == "!" else _integer(~value.integer, "u64")


def _require_integer(cursor: Cursor, start: Token, value: _Value, operator: str) -> None:
    if value.type[0] == "f":
        cursor.source.fail(start.offset, f"{operator!r} takes an integer constant, found a floating-point one")


def _primary(cursor: Cursor) -> _Value:
    token = cursor.token
    if cursor.accept("("):
        if cursor.at(".s64", ".u64"):
            type_ = cursor.next().text[1:]
            cursor.expect(")", "after the type of the cast")
            start = cursor.token
            value = _unary(cursor)
            _require_integer(cursor, start, value, "cast")
            return _integer(value.integer, type_)
        value = _ternary(cursor)
        cursor.expect(")", "in the constant expression")
        return value
    if token.kind == "int":
        cursor.next()
        literal = int_literal(token.text)
        if literal >> 64:
            cursor.source.fail(token.offset, f"{token.text} does not fit into 64 bits")
        return _Value("u64" if literal >> 63 or token.text.endswith("U") else "s64", literal)
    if token.kind == "float":
        cursor.next()
        return _float_literal(token.text)
    if cursor.accept("WARP_SZ"):
        return _Value("s64", WARP_SIZE)
    cursor.unexpected("a constant")


def _float_literal(text: str) -> _Value:
    if text[:2] in ("0f", "0F"):
        return _Value("f32", int(text[2:], 16))
    if text[:2] in ("0d", "0D"):
        number: float = struct.unpack("<d", int(text[2:], 16).to_bytes(8, "little"))[0]
        return _Value("f64", real=number)
    return _Value("f64", real=float(text))
