"""Declarations: variables, registers, parameters, performance directives.

Source: PTX ISA, "State Spaces, Types, and Variables", "Kernel Entry Point and Function Directives",
"Performance-Tuning Directives".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fasim.errors import NotModelled
from fasim.ptx.constants import parse_integer
from fasim.ptx.initializer import parse_initializer
from fasim.ptx.lexer import Cursor
from fasim.ptx.tree import TYPE_BITS, Directive, RegDecl, Variable

STATE_SPACES = frozenset({".param", ".global", ".const", ".shared", ".local"})
LINKAGES = frozenset({".extern", ".visible", ".weak", ".common"})
_INITIALISED = frozenset({"global", "const"})
_VECTORS = {".v2": 2, ".v4": 4, ".v8": 8}
_DIRECTIVES = frozenset(
    {
        *(".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg", ".noreturn", ".pragma"),
        *(".explicitcluster", ".reqnctapercluster", ".maxclusterrank", ".blocksareclusters"),
        *(".abi_preserve", ".abi_preserve_control"),
    }
)
Rename = Callable[[str], str]


def same_name(name: str) -> str:
    """The renaming at module and function level: none."""
    return name


def parse_registers(cursor: Cursor, rename: Rename, *, parameter: bool = False) -> list[tuple[RegDecl, int]]:
    """Read a `.reg` declaration with its semicolon, or one `.reg` parameter without.

    Returns: the registers, each with the offset of its name.
    Raises: PtxError.
    """
    cursor.expect(".reg")
    vector = _vector(cursor)
    type_ = _type(cursor)
    found = []
    while True:
        token = cursor.expect_name("the name of a register")
        count = None
        if not parameter and cursor.accept("<"):
            count = cursor.expect_int("the number of registers")
            cursor.expect(">", "after the number of registers")
        line, column = cursor.source.position(token.offset)
        found.append((RegDecl(rename(token.text), type_, vector, count, token.text, line, column), token.offset))
        if parameter:
            return found
        if not cursor.accept(","):
            cursor.expect(";", "or ',' after the register")
            return found


def _vector(cursor: Cursor) -> int:
    if cursor.text in _VECTORS:
        return _VECTORS[cursor.next().text]
    return 1


def _type(cursor: Cursor) -> str:
    name = cursor.text[1:]
    if cursor.kind != "directive" or name not in TYPE_BITS:
        cursor.unexpected("a type such as .b32, .f32 or .pred")
    cursor.next()
    return name


def parse_variables(
    cursor: Cursor, linkage: str, rename: Rename, known: Mapping[str, str], register: Callable[[Variable, int], None]
) -> list[Variable]:
    """Read a variable declaration from its state space to its semicolon; `register` is told each variable with the offset of its name.

    Raises: PtxError.
    """
    head = _head(cursor)
    found = []
    while True:
        variable, offset = _declarator(cursor, head, linkage, rename)
        if cursor.at("="):
            variable = _initialised(cursor, variable, known)
        register(variable, offset)
        found.append(variable)
        if not cursor.accept(","):
            cursor.expect(";", "or ',' after the variable")
            return found


def _initialised(cursor: Cursor, variable: Variable, known: Mapping[str, str]) -> Variable:
    equals = cursor.next()
    if variable.state_space not in _INITIALISED:
        cursor.source.fail(equals.offset, f"a variable in .{variable.state_space} cannot have an initialiser")
    values, dims = parse_initializer(cursor, variable.type, variable.vector, variable.dims, known)
    return _with(variable, dims=dims, initializer=values)


def _with(variable: Variable, **changes: object) -> Variable:
    names = Variable.__dataclass_fields__
    return Variable(**{name: changes.get(name, getattr(variable, name)) for name in names})  # type: ignore[arg-type]


def parse_parameters(cursor: Cursor, *, prototype: bool = False) -> list[tuple[Variable | RegDecl, int]]:
    """Read `(...)` of a function or call prototype (whose names may be `_`).

    Returns: the parameters, each with the offset of its name.
    Raises: PtxError.
    """
    cursor.expect("(", "of the parameter list")
    found: list[tuple[Variable | RegDecl, int]] = []
    while not cursor.at(")"):
        if found:
            cursor.expect(",", "or ')' after the parameter")
        if cursor.at(".reg"):
            found.extend(parse_registers(cursor, same_name, parameter=True))
            continue
        if not cursor.at(".param"):
            cursor.unexpected("a parameter: .param or .reg")
        found.append(_declarator(cursor, _head(cursor), "", same_name, prototype=prototype))
    cursor.next()
    return found


def _head(cursor: Cursor) -> Variable:
    """What stands before the name: state space, alignment, vector, type, pointer attributes."""
    state_space = cursor.next().text[1:]
    if cursor.at("[") or cursor.at("::"):
        message = f"banks and sub-spaces of .{state_space} variables are not modelled"
        raise NotModelled(str(cursor.source.error(cursor.token.offset, message)))
    align, vector, type_ = 0, 1, ""
    pointer_space: str | None = None
    pointer_align = 0
    attributes: list[str] = []
    while cursor.kind == "directive":
        token = cursor.token
        name = token.text
        if name == ".align":
            cursor.next()
            value = cursor.expect_int("the alignment in bytes")
            if value < 1 or value & (value - 1):
                cursor.source.fail(token.offset, f"the alignment {value} is not a power of two")
            if pointer_space is None:
                align = value
            else:
                pointer_align = value
        elif name in _VECTORS:
            vector = _vector(cursor)
        elif name == ".ptr":
            cursor.next()
            pointer_space = ""
        elif name in STATE_SPACES and pointer_space is not None:
            pointer_space = cursor.next().text[1:]
        elif name == ".attribute":
            attributes.extend(parse_attribute(cursor))
        elif not type_:
            type_ = _type(cursor)
        else:
            cursor.unexpected("the name of the variable")
    if not type_:
        cursor.unexpected(f"the type of the .{state_space} variable")
    return Variable("", state_space, type_, vector, align, (), "", None, pointer_space, pointer_align, tuple(attributes))


def parse_attribute(cursor: Cursor) -> list[str]:
    """Read `.attribute(.managed, .unified(1, 2))`: the names without dot.

    Raises: PtxError.
    """
    cursor.expect(".attribute")
    cursor.expect("(", "after .attribute")
    names = []
    depth = 1
    while depth:
        token = cursor.next()
        if token.kind == "end":
            cursor.unexpected("')' of .attribute")
        depth += (token.text == "(") - (token.text == ")")
        if token.kind == "directive":
            names.append(token.text[1:])
    return names


def _declarator(cursor: Cursor, head: Variable, linkage: str, rename: Rename, *, prototype: bool = False) -> tuple[Variable, int]:
    token = cursor.next() if prototype and cursor.at("_") else cursor.expect_name("the name of the variable")
    dims: list[int | None] = []
    while cursor.accept("["):
        if cursor.accept("]"):
            if dims:
                cursor.source.fail(token.offset, f"only the first dimension of {token.text!r} can be unsized")
            dims.append(None)
            continue
        size = cursor.token
        dims.append(parse_integer(cursor, "dimension"))
        if (dims[-1] or 0) < 0:
            cursor.source.fail(size.offset, f"dimension {dims[-1]} of {token.text!r} is negative")
        cursor.expect("]", "after the dimension")
    line, column = cursor.source.position(token.offset)
    variable = _with(head, name=rename(token.text), dims=tuple(dims), linkage=linkage, text_name=token.text, line=line, column=column)
    return variable, token.offset


def parse_strings(cursor: Cursor) -> tuple[str, ...]:
    """Read string literals separated by commas: their text without quotes.

    Raises: PtxError.
    """
    texts = [cursor.expect_kind("string", "a string").text[1:-1]]
    while cursor.accept(","):
        texts.append(cursor.expect_kind("string", "a string").text[1:-1])
    return tuple(texts)


def parse_directives(cursor: Cursor) -> tuple[Directive, ...]:
    """Read the performance directives between a function's parameters and its body.

    Raises: PtxError.
    """
    found: list[Directive] = []
    while cursor.kind == "directive":
        if cursor.at(".attribute"):
            found.extend(Directive(name) for name in parse_attribute(cursor))
            continue
        if cursor.text not in _DIRECTIVES:
            cursor.unexpected("'{', ';' or a performance directive: " + ", ".join(sorted(_DIRECTIVES)))
        name = cursor.next().text[1:]
        if name == "pragma":
            found.append(Directive(name, (), ", ".join(parse_strings(cursor))))
            cursor.accept(";")
            continue
        values: list[int] = []
        if cursor.kind == "int":
            values.append(cursor.expect_int("a number"))
            while cursor.accept(","):
                values.append(cursor.expect_int("a number"))
        found.append(Directive(name, tuple(values)))
    return tuple(found)
