"""Constant expressions against bytes that ptxas 13.0 wrote into a cubin, and against an independent evaluation of random trees."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fasim.errors import PtxError
from fasim.ptx.constants import parse_constant
from fasim.ptx.lexer import Cursor, Source
from fasim.ptx.tree import FloatImmediate, Immediate

from .samples import operand

# `.visible .global .u64 x = EXPRESSION;` assembled with ptxas 13.0 for sm_90: the eight bytes in the cubin as a signed number.
PTXAS = [
    ("5 % 3", 2),
    ("-5 % 3", 2),
    ("(-5 % 3 - 3) >> 1", 9223372036854775807),
    ("(5 % 3 - 9) >> 1", 9223372036854775804),
    ("(-7) % 2U", 1),
    ("-5 / 2", -2),
    ("-7 / 2U", 9223372036854775804),
    ("-7 * 3", -21),
    ("-1 > 0", 0),
    ("-1 > 0U", 1),
    ("~0 > 0", 1),
    ("~0 >> 1", 9223372036854775807),
    ("-8 >> 1", -4),
    ("-8 >> 65", -4),
    ("1 << 64", 1),
    ("1 << 63", -9223372036854775808),
    ("1 << -1", -9223372036854775808),
    ("(1<<63) >> 3", -1152921504606846976),
    ("(1 << 63U) >> 1", -4611686018427387904),
    ("(1U << 63) >> 1", 4611686018427387904),
    ("!3", 0),
    ("!0", 1),
    ("!!7", 1),
    ("~~7", 7),
    ("-(3)", -3),
    ("- - 3", 3),
    ("5 - -3", 8),
    ("(.u64)(-8) >> 1", 9223372036854775804),
    ("(.s64)-8 >> 1", -4),
    ("(.s64)(0xFFFFFFFFFFFFFFFF) > 0", 0),
    ("0xFFFFFFFFFFFFFFFF > 0", 1),
    ("0xFFFFFFFFFFFFFFFF / 2", 9223372036854775807),
    ("0xffffffffffffffff + 1", 0),
    ("0x7fffffffffffffff + 1", -9223372036854775808),
    ("-8 & 0xFF > 0", 0),
    ("(-8 & -1) >> 1", -4),
    ("(-8 & 0xFFFFFFFFFFFFFFFFU) >> 1", 9223372036854775804),
    ("(-8 | 1) >> 1", -4),
    ("(-8 | 1U) >> 1", 9223372036854775804),
    ("1 ? -1 : 2U", -1),
    ("(0 ? 1U : -8) >> 1", -4),
    ("1 ? 2 : 0 ? 3 : 4", 2),
    ("5 && 0 || 3", 1),
    ("1 || 0 && 0", 1),
    ("1.5 > 1.0", 1),
    ("(1.5 < 2.5) + 1", 2),
    ("07 + 0b11", 10),
    ("0777U", 511),
    ("-0x8000000000000000 / -1", 0),
    ("9223372036854775808", -9223372036854775808),
    ("-9223372036854775808 >> 1", 4611686018427387904),
    ("-9223372036854775807 - 1", -9223372036854775808),
    ("7 - 2 - 1", 4),
    ("2 + 3 * 4 ^ 1", 15),
    ("2 * 3 % 4", 2),
    ("1 << 2 + 1", 8),
    ("3 & 1 == 1", 1),
    ("1 ^ 3 | 4", 6),
    ("5 > 3 > 1", 0),
    ("1 == 1 != 0", 1),
]


def constant(text: str) -> Immediate | FloatImmediate:
    cursor = Cursor(Source(text))
    value = parse_constant(cursor)
    assert cursor.kind == "end"
    return value


@pytest.mark.parametrize(("text", "expected"), PTXAS)
def test_value_equals_what_ptxas_stores(text: str, expected: int) -> None:
    value = constant(text)
    assert isinstance(value, Immediate)
    assert (value.value - expected) % (1 << 64) == 0


@dataclass(frozen=True)
class Tree:
    """An expression as text with its value and signedness, computed beside the text."""

    text: str
    value: int
    unsigned: bool


def wrap(value: int, unsigned: bool) -> int:
    value %= 1 << 64
    return value if unsigned or value < 1 << 63 else value - (1 << 64)


def combine(operator: str, left: Tree, right: Tree) -> Tree:
    text = f"({left.text}) {operator} ({right.text})"
    if operator in ("<<", ">>"):
        count = right.value % 64
        shifted = left.value * 2**count if operator == "<<" else left.value // 2**count
        return Tree(text, wrap(shifted, left.unsigned), left.unsigned)
    unsigned = left.unsigned or right.unsigned or operator == "%"
    a, b = wrap(left.value, unsigned), wrap(right.value, unsigned)
    if operator in ("/", "%"):
        if b == 0:
            return left
        magnitude = abs(a) // abs(b)
        quotient = magnitude if a * b >= 0 else -magnitude
        return Tree(text, wrap(quotient if operator == "/" else a - b * quotient, unsigned), unsigned)
    results = {"+": a + b, "-": a - b, "*": a * b, "&": a & b, "|": a | b, "^": a ^ b}
    if operator in results:
        return Tree(text, wrap(results[operator], unsigned), unsigned)
    truths = {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b, "&&": a and b, "||": a or b}
    return Tree(text, 1 if truths[operator] else 0, False)


def literal(value: int, form: str) -> Tree:
    text = {"d": f"{value}", "x": f"0x{value:x}", "b": f"0b{value:b}", "o": f"0{value:o}", "u": f"{value}U"}[form]
    return Tree(text, wrap(value, form == "u" or value >= 1 << 63), form == "u" or value >= 1 << 63)


LITERALS = st.builds(literal, st.integers(0, 70) | st.integers(0, 2**64 - 1), st.sampled_from("dxbou"))
OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "&&", "||"])
UNARY = {
    "-": lambda tree: Tree(f"-({tree.text})", wrap(-tree.value, tree.unsigned), tree.unsigned),
    "~": lambda tree: Tree(f"~({tree.text})", wrap(~tree.value, True), True),
    "!": lambda tree: Tree(f"!({tree.text})", int(tree.value == 0), False),
    "s": lambda tree: Tree(f"(.s64)({tree.text})", wrap(tree.value, False), False),
    "u": lambda tree: Tree(f"(.u64)({tree.text})", wrap(tree.value, True), True),
}
TREES = st.recursive(
    LITERALS,
    lambda inner: (
        st.builds(combine, OPERATORS, inner, inner) | st.builds(lambda name, tree: UNARY[name](tree), st.sampled_from("-~!su"), inner)
    ),
    max_leaves=12,
)


@given(TREES)
def test_random_integer_expressions(tree: Tree) -> None:
    assert constant(tree.text) == Immediate(tree.value, "u64" if tree.unsigned else "s64")


LEVEL = {"*": 0, "/": 0, "+": 1, "-": 1, "<<": 2, ">>": 2, "<": 3, "==": 4, "&": 5, "^": 6, "|": 7, "&&": 8, "||": 9}


@given(st.lists(st.tuples(st.sampled_from(sorted(LEVEL)), st.integers(1, 9)), min_size=1, max_size=7), st.integers(1, 9))
def test_precedence_is_that_of_c(rest: list[tuple[str, int]], first: int) -> None:
    text = " ".join([str(first), *(f"{operator} {value}" for operator, value in rest)])
    values = [Tree(str(first), first, False), *(Tree(str(value), value, False) for _, value in rest)]
    operators = [operator for operator, _ in rest]
    for level in range(10):
        position = 0
        while position < len(operators):
            if LEVEL[operators[position]] == level:
                values[position : position + 2] = [combine(operators.pop(position), values[position], values[position + 1])]
            else:
                position += 1
    # combine leaves a division by zero out; the parser refuses it.
    try:
        found = constant(text)
    except PtxError as error:
        assert "divides by zero" in str(error)
        return
    assert found == Immediate(values[0].value, "s64")


@pytest.mark.parametrize(
    ("text", "bits", "type_"),
    [
        ("0f3f800000", 0x3F800000, "f32"),
        ("0F7FC00001", 0x7FC00001, "f32"),
        ("0fFFFFFFFF", 0xFFFFFFFF, "f32"),
        ("0d3ff0000000000000", 0x3FF0000000000000, "f64"),
        ("0D7ff4000000000001", 0x7FF4000000000001, "f64"),
        ("1.5", 0x3FF8000000000000, "f64"),
        ("-1.5", 0xBFF8000000000000, "f64"),
        ("-0.0", 0x8000000000000000, "f64"),
        (".5", 0x3FE0000000000000, "f64"),
        ("5.", 0x4014000000000000, "f64"),
        ("1e3", 0x408F400000000000, "f64"),
        ("1.5E-3", struct.unpack("<Q", struct.pack("<d", 1.5e-3))[0], "f64"),
        ("1.5+2.0*3.0", 0x401E000000000000, "f64"),
        ("1.0 / 4.0 - 1.0", 0xBFE8000000000000, "f64"),
    ],
)
def test_floating_point_bits(text: str, bits: int, type_: str) -> None:
    assert operand(text) == FloatImmediate(bits, type_)


def test_value_of_floats() -> None:
    assert FloatImmediate(0x3FC00000, "f32").value == 1.5
    assert FloatImmediate(0x3FF8000000000000, "f64").value == 1.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5 / 0", "1:3: the constant expression divides by zero"),
        ("5 % 0", "1:3: the constant expression divides by zero"),
        ("1.0 / 0.0", "1:5: the constant expression divides by zero"),
        ("1.5 + 2", "1:5: '+' cannot combine f64 and s64"),
        ("1.5 % 2.0", "1:5: '%' cannot combine f64 and f64"),
        ("-0f3f800000", "1:2: a 0f constant stands alone"),
        ("~1.5", "1:2: '~' takes an integer"),
        ("1.5 ? 2 : 3", "1:1: '?:' takes an integer"),
        ("1 ? 2 : 3.0", "1:1: both values of ?:"),
        ("1 ? 2", "1:6: found the end of the file, expected ':'"),
        ("(1 + 2", "1:7: found the end of the file, expected ')'"),
        ("1 +", "1:4: found the end of the file, expected a constant"),
        ("0x1FFFFFFFFFFFFFFFF", "1:1: 0x1FFFFFFFFFFFFFFFF does not fit into 64 bits"),
        ("18446744073709551616", "does not fit into 64 bits"),
        ("08", "1:1: found '08', expected a constant"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(PtxError) as caught:
        constant(text)
    assert message in str(caught.value)
