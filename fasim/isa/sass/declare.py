"""How a row of machine code is declared: as one of PTX, with the signs that every operand may have.

The semantics gets its operands with their signs applied. What is applied to the i-th source stands in bits 4 i of the last
immediate, `signs`, which every row has: NEGATED, ABSOLUTE, INVERTED. Names are those of nvdisasm; a row may leave out modifiers that
lowering reads itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fasim.isa.table import SASS_ROWS, op
from fasim.numerics import ieee
from fasim.numerics.lanes import Lanes, bits, const

NEGATED, ABSOLUTE, INVERTED, SIGN_BITS = 1, 2, 4, 4


def signed_operand(value: Lanes, sign: int) -> Lanes:
    """An operand as its signs say."""
    if value.type in ("f32", "f64"):
        if sign & ABSOLUTE:
            value = ieee.magnitude(value)
        if sign & NEGATED:
            kind = f"u{value.type[1:]}"
            value = bits(bits(value, kind) ^ const(1 << (int(value.type[1:]) - 1), like=value, type_=kind), value.type)
        return value
    if sign & INVERTED:
        value = ~value
    return -value if sign & NEGATED else value


def sass(
    names: str | Iterable[str], signature: str, *, kind: str = "lanes", cases: Sequence[Any] = (), raw: bool = False, **attributes: Any
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare rows of machine code. raw: the semantics takes operands as they are, and `signs` itself; cases: as for `op`, signs left out.

    Predicates and immediates have no signs: a predicate's "not" belongs to its register.
    """

    def declare(semantics: Callable[..., Any]) -> Callable[..., Any]:
        def with_signs(*values: Any) -> Any:
            *operands, signs = values
            made, number = [], 0
            for value in operands:
                if isinstance(value, Lanes) and value.type != "pred":
                    value = signed_operand(value, signs >> SIGN_BITS * number & 15)
                    number += 1
                made.append(value)
            return semantics(*made)

        full = f"{signature}, signs:imm"
        with_zero = [((*(inputs if isinstance(inputs, tuple) else (inputs,)), 0), expected) for inputs, expected in cases]
        op(names, full, doc="", kind=kind, cases=with_zero, table=SASS_ROWS, **attributes)(semantics if raw else with_signs)
        return semantics

    return declare
