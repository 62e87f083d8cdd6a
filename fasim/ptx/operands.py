"""Operands of instructions, as text or by token, with names resolved in a scope.

Source: PTX ISA, "Instruction Operands", "Addresses as Operands", "Vectors as Operands".
"""

from __future__ import annotations

import re

from fasim.errors import NotModelled
from fasim.ptx.constants import parse_constant, parse_integer, starts_constant
from fasim.ptx.lexer import NAME, Cursor
from fasim.ptx.scope import Scope
from fasim.ptx.tree import Address, Call, FloatImmediate, Immediate, Operand, Pair, Register, Sink, Symbol, Vector

_SIMPLE = re.compile(
    rf"""(?P<name>{NAME}(?:\.[xyzw])?)
       | \[\s*(?P<base>{NAME})\s*(?:\+\s*(?P<offset>-?(?:0|[1-9]\d*))\s*)?\]
       | (?P<int>-?(?:0|[1-9]\d{{0,17}}))
       | 0x(?P<hex>[0-9a-fA-F]{{1,15}})
       | 0[fF](?P<float>[0-9a-fA-F]{{8}})
    """,
    re.VERBOSE,
)
_SELECTORS = frozenset({".b0", ".b1", ".b2", ".b3", ".h0", ".h1"})
SINK = Sink()


def simple_operand(text: str, scope: Scope) -> Operand | None:
    """The operand that `text` spells if it is of a common form with names known already, else None."""
    match = _SIMPLE.fullmatch(text)
    if match is None:
        return None
    group = match.lastgroup
    if group == "name":
        return scope.lookup(text)
    if group in ("base", "offset"):
        base = scope.lookup(match["base"])
        if isinstance(base, Vector) or base is None:
            return None
        return Address(base, int(match["offset"] or 0))
    if group == "int":
        return Immediate(int(text))
    if group == "hex":
        return Immediate(int(match["hex"], 16))
    return FloatImmediate(int(match["float"], 16), "f32")


def parse_operands(cursor: Cursor, scope: Scope) -> tuple[Operand, ...]:
    """Read operands up to the semicolon, which stays.

    Raises: PtxError.
    """
    operands: list[Operand] = []
    while not cursor.at(";"):
        if operands:
            cursor.expect(",", "or ';' after the operand")
        operands.append(parse_operand(cursor, scope))
    return tuple(operands)


def parse_operand(cursor: Cursor, scope: Scope) -> Operand:
    """Read one operand.

    Raises: PtxError.
    """
    if cursor.accept("{"):
        items = [parse_operand(cursor, scope)]
        while cursor.accept(","):
            items.append(parse_operand(cursor, scope))
        cursor.expect("}", "or ',' in the vector")
        return Vector(tuple(items))
    if cursor.at("["):
        return _address(cursor, scope)
    if cursor.accept("_"):
        return _pair(cursor, scope, SINK) if cursor.at("|") else SINK
    if cursor.at("!"):
        start = cursor.next()
        if cursor.kind == "name" and not cursor.at("WARP_SZ"):
            register = _register(cursor, scope)
            return Register(register.name, register.type, register.special, True)
        cursor.move_to(start.offset)
    if starts_constant(cursor):
        return parse_constant(cursor)
    if cursor.kind == "name":
        return _named(cursor, scope)
    cursor.unexpected("an operand")


def _named(cursor: Cursor, scope: Scope) -> Operand:
    token = cursor.next()
    found = scope.lookup(token.text)
    if cursor.kind == "directive" and cursor.token.offset == token.end:
        found = _element(cursor, scope, token.text, found)
    if found is None:
        if token.text.startswith("%"):
            cursor.source.fail(token.offset, f"{token.text!r} is neither a declared register nor a special register")
        found = scope.expect_later(token.text, token.offset)
    if isinstance(found, Register) and cursor.at("|"):
        return _pair(cursor, scope, found)
    if isinstance(found, Symbol):
        return _offset_symbol(cursor, scope, found, token.offset)
    return found


def _element(cursor: Cursor, scope: Scope, name: str, found: Register | Vector | Symbol | None) -> Register:
    suffix = cursor.text
    if isinstance(found, Vector):
        element = scope.element(found, suffix[1:])
        if element is None:
            cursor.unexpected(f"an element of {name!r}: .x to .{'xyzw'[len(found.items) - 1]}")
        cursor.next()
        return element
    if isinstance(found, Register) and suffix in _SELECTORS:
        cursor.next()
        return Register(found.name, found.type, found.special, False, suffix[1:])
    cursor.source.fail(cursor.token.offset, f"{name!r} is not a vector register: it has no {suffix!r}")


def _register(cursor: Cursor, scope: Scope) -> Register:
    token = cursor.token
    operand = _named(cursor, scope) if cursor.kind == "name" else None
    if not isinstance(operand, Register):
        cursor.source.fail(token.offset, f"found {token.text!r}, expected a register declared before")
    return operand


def _pair(cursor: Cursor, scope: Scope, first: Register | Sink) -> Pair:
    cursor.expect("|")
    if cursor.accept("_"):
        return Pair(first, SINK)
    return Pair(first, _register(cursor, scope))


def _offset_symbol(cursor: Cursor, scope: Scope, symbol: Symbol, offset: int) -> Symbol:
    if cursor.at("["):
        message = f"an index behind a name is not modelled: write the offset in bytes, {symbol.name}+4"
        raise NotModelled(str(cursor.source.error(cursor.token.offset, message)))
    if not cursor.at("+"):
        if cursor.at("-"):
            cursor.source.fail(cursor.token.offset, f"an offset is added: write {symbol.name}+-4 instead of {symbol.name}-4")
        return symbol
    cursor.next()
    addend = parse_integer(cursor, "offset")
    if symbol.kind:
        return Symbol(symbol.name, symbol.offset + addend, symbol.kind)
    moved = scope.expect_later(symbol.name, offset)
    object.__setattr__(moved, "offset", addend)
    return moved


def _address(cursor: Cursor, scope: Scope) -> Address:
    cursor.expect("[")
    base: Register | Symbol | Immediate
    offset = 0
    if starts_constant(cursor):
        base = Immediate(parse_integer(cursor, "address"))
    else:
        token = cursor.expect_name("a register, a variable or an integer as address")
        cursor.move_to(token.offset)
        found = _named(cursor, scope)
        if not isinstance(found, (Register, Symbol)):
            cursor.source.fail(token.offset, f"{token.text!r} cannot be the base of an address: expected a scalar register or a variable")
        base = found
        if isinstance(base, Symbol):
            offset = base.offset
            base = _without_offset(scope, base, token.offset)
        elif cursor.at("-"):
            cursor.source.fail(cursor.token.offset, f"an offset is added: write [{token.text}+-4] instead of [{token.text}-4]")
        elif cursor.accept("+"):
            offset = parse_integer(cursor, "offset")
    items: list[Operand] = []
    while cursor.accept(","):
        items.append(parse_operand(cursor, scope))
    cursor.expect("]", "at the end of the address")
    return Address(base, offset, tuple(items))


def _without_offset(scope: Scope, symbol: Symbol, offset: int) -> Symbol:
    if not symbol.offset:
        return symbol
    return Symbol(symbol.name, 0, symbol.kind) if symbol.kind else scope.expect_later(symbol.name, offset)


def parse_call(cursor: Cursor, scope: Scope) -> Call:
    """Read `(returns), target, (arguments), prototype` up to the semicolon, which stays.

    Raises: PtxError.
    """
    returns: tuple[Operand, ...] = ()
    if cursor.at("("):
        returns = _parenthesised(cursor, scope)
        cursor.expect(",", "after the return parameters of the call")
    token = cursor.expect_name("the function to call")
    cursor.move_to(token.offset)
    target = _named(cursor, scope)
    if not isinstance(target, (Register, Symbol)):
        cursor.source.fail(token.offset, f"{token.text!r} cannot be called: expected a function or a register")
    arguments: tuple[Operand, ...] = ()
    prototype: Symbol | None = None
    if cursor.accept(","):
        if cursor.at("("):
            arguments = _parenthesised(cursor, scope)
            if cursor.accept(","):
                prototype = _prototype(cursor, scope)
        else:
            prototype = _prototype(cursor, scope)
    if isinstance(target, Register) and prototype is None:
        cursor.source.fail(token.offset, "an indirect call needs a .callprototype or .calltargets label as its last operand")
    return Call(target, returns, arguments, prototype)


def _prototype(cursor: Cursor, scope: Scope) -> Symbol:
    token = cursor.expect_name("the label of a .callprototype or .calltargets")
    found = scope.lookup(token.text)
    if found is None:
        return scope.expect_later(token.text, token.offset)
    if not isinstance(found, Symbol) or found.kind != "label":
        cursor.source.fail(token.offset, f"{token.text!r} does not label a .callprototype or .calltargets")
    return found


def _parenthesised(cursor: Cursor, scope: Scope) -> tuple[Operand, ...]:
    cursor.expect("(")
    items: list[Operand] = []
    while not cursor.at(")"):
        if items:
            cursor.expect(",", "or ')' in the parameter list")
        items.append(parse_operand(cursor, scope))
    cursor.next()
    return tuple(items)
