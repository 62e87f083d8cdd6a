"""PTX modules: `parse` gives the tree of a file as nvcc, NVRTC, clang or Triton write it.

Source: PTX ISA, "PTX Module Directives", "Linking Directives", "Debugging Directives".
"""

from __future__ import annotations

import re

from fasim.errors import NotModelled
from fasim.ptx.body import BodyParser
from fasim.ptx.declarations import (
    LINKAGES,
    STATE_SPACES,
    parse_attribute,
    parse_directives,
    parse_parameters,
    parse_strings,
    parse_variables,
    same_name,
)
from fasim.ptx.lexer import Cursor, Source, int_literal
from fasim.ptx.tree import Directive, Function, Module, Pragma, Variable

_VERSION = re.compile(r"\s*(\d+)\.(\d+)(?=\s)")
_TARGET = re.compile(r"\s*([\w]+(?:\s*,\s*\w+)*)")
_BYTE = r"(?:0[xX][0-9a-fA-F]+|[1-9][0-9]*|0[0-7]*)(?!\w)"
_ESCAPE = re.compile(rb'\\([0-3][0-7]{2}|[\\"])')
_DEBUG_ITEM = re.compile(rf"([\w$]+)\s*:|\.b8\s+({_BYTE}(?:\s*,\s*{_BYTE})*)|\"([^\"]*)\"", re.ASCII)


def parse(text: str, path: str = "<ptx>") -> Module:
    """The syntax tree of a PTX module; `path` is what errors name.

    Raises: PtxError with path, line and column; NotModelled for the few valid forms that fasim does not read.
    """
    parser = _ModuleParser(Source(text, path))
    try:
        return parser.parse()
    except RecursionError:
        raise parser.source.error(parser.cursor.token.offset, "constants, vectors or braces are nested too deeply here") from None


def _file_path(text: str) -> str:
    """A path as compilers write it: bytes that are not ASCII in octal, and what would end the string behind a backslash."""

    def byte(match: re.Match[bytes]) -> bytes:
        return match[1] if len(match[1]) == 1 else bytes([int(match[1], 8)])

    return _ESCAPE.sub(byte, text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")


class _ModuleParser:
    """Parses one module, directive by directive."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.cursor = Cursor(source)
        self.version: tuple[int, int] | None = None
        self.target: tuple[str, ...] = ()
        self.address_size = 0
        self.files: dict[int, str] = {}
        self.variables: dict[str, Variable] = {}
        self.functions: dict[str, Function] = {}
        self.aliases: dict[str, str] = {}
        self.pragmas: list[Pragma] = []
        self.debug_labels: dict[str, int] = {}
        self.debug_text = b""
        self.known: dict[str, str] = {}

    def parse(self) -> Module:
        """Parse to the end of the file."""
        cursor = self.cursor
        while cursor.kind != "end":
            if cursor.kind != "directive":
                cursor.unexpected("a module directive such as .entry, .func or .global")
            self._directive()
        if self.version is None:
            self.source.fail(0, "this is not a PTX module: expected .version and .target")
        # Without .address_size a module has 32-bit addresses.
        return Module(
            self.source.path,
            self.version,
            self.target,
            self.address_size or 32,
            self.files,
            self.variables,
            self.functions,
            self.aliases,
            tuple(self.pragmas),
            self.debug_labels,
            self.debug_text,
            tuple(self.source.lines),
        )

    def _directive(self) -> None:
        cursor = self.cursor
        token = cursor.token
        name = token.text
        if name != ".version" and self.version is None:
            cursor.unexpected(".version, which begins a PTX module")
        if name in LINKAGES or name in STATE_SPACES or name in (".entry", ".func"):
            self._linked()
        elif name == ".version":
            match = _VERSION.match(self.source.clean, token.end)
            if match is None:
                self.source.fail(token.offset, "expected .version MAJOR.MINOR")
            self.version = (int(match[1]), int(match[2]))
            cursor.move_to(match.end())
        elif name == ".target":
            match = _TARGET.match(self.source.clean, token.end)
            if match is None:
                self.source.fail(token.offset, "expected .target with a name such as sm_90")
            self.target = tuple(part.strip() for part in match[1].split(","))
            cursor.move_to(match.end())
        elif name == ".section":
            self._section()
        else:
            cursor.next()
            self._plain(name, token.offset)

    def _plain(self, name: str, offset: int) -> None:
        cursor = self.cursor
        line = self.source.position(offset)[0]
        if name == ".address_size":
            self.address_size = cursor.expect_int("32 or 64")
        elif name == ".file":
            index = cursor.expect_int("the index of the file")
            self.files[index] = _file_path(cursor.expect_kind("string", "the path of the file").text[1:-1])
            while cursor.accept(","):
                cursor.expect_kind("int", "the time stamp and size of the file")
        elif name == ".pragma":
            self.pragmas.append(Pragma(parse_strings(cursor), line))
            cursor.expect(";", "after .pragma")
        elif name == ".alias":
            alias = cursor.expect_name("the name of the alias").text
            cursor.expect(",", "in .alias")
            aliased = cursor.expect_name("the function that is aliased")
            if self.known.get(aliased.text) != "function":
                self.source.fail(aliased.offset, f"{aliased.text!r} is not a function declared before")
            self.aliases[alias] = aliased.text
            self.known[alias] = "function"
            cursor.expect(";", "after .alias")
        elif name == ".loc":
            for _ in range(3):
                cursor.expect_int("a number after .loc")
        else:
            self.source.fail(offset, f"{name!r} does not begin a module directive; expected .entry, .func, .global, ...")

    def _linked(self) -> None:
        """A variable or function, after its linkage if it has one."""
        cursor = self.cursor
        linkage = cursor.next().text[1:] if cursor.text in LINKAGES else ""
        if cursor.text in (".entry", ".func"):
            self._function(linkage)
        elif cursor.text in STATE_SPACES:
            parse_variables(cursor, linkage, same_name, self.known, self._declare_variable)
        else:
            cursor.unexpected("'.entry', '.func' or a state space after the linkage")

    def _declare_variable(self, variable: Variable, offset: int) -> None:
        before = self.variables.get(variable.name)
        if variable.name in self.functions or (before is not None and "extern" not in (before.linkage, variable.linkage)):
            self.source.fail(offset, f"{variable.name!r} is declared twice")
        self.known[variable.name] = "variable"
        self.variables[variable.name] = variable

    def _function(self, linkage: str) -> None:
        cursor = self.cursor
        kind = cursor.next().text[1:]
        attributes: list[str] = []
        while cursor.at(".attribute"):
            attributes += parse_attribute(cursor)
        returns = parse_parameters(cursor) if kind == "func" and cursor.at("(") else []
        token = cursor.expect_name(f"the name of the .{kind}")
        params = parse_parameters(cursor) if cursor.at("(") else []
        directives = (*map(Directive, attributes), *parse_directives(cursor))
        line, column = self.source.position(token.offset)
        before = self.functions.get(token.text)
        if token.text in self.variables or (before is not None and before.body is not None):
            self.source.fail(token.offset, f"{token.text!r} is declared twice")
        self.known[token.text] = "function"
        shape = (token.text, kind, linkage, tuple(item for item, _ in returns), tuple(item for item, _ in params), directives)
        declaration = Function(*shape, None, {}, line, column)
        self.functions[token.text] = declaration
        if cursor.accept(";"):
            return
        if not cursor.at("{"):
            cursor.unexpected(f"'{{' or ';' after the head of {token.text!r}")
        body = BodyParser(self.source, token.text, self.known)
        body.add_parameters(returns + params)
        end = body.parse(cursor.token.offset)
        self.functions[token.text] = Function(*shape, tuple(body.statements), body.registers, line, column)
        cursor.move_to(end)

    def _section(self) -> None:
        cursor = self.cursor
        start = cursor.next()
        name = cursor.expect_kind("directive", "the name of the section").text
        if not cursor.at("{"):
            raise NotModelled(str(self.source.error(start.offset, f"section {name} without braces is not modelled")))
        clean = self.source.clean
        end = clean.find("}", cursor.token.end)
        if end < 0:
            self.source.fail(start.offset, f"section {name} does not end: expected '}}'")
        if name == ".debug_str":
            self._debug_strings(clean[cursor.token.end : end])
        cursor.move_to(end + 1)

    def _debug_strings(self, text: str) -> None:
        data = bytearray()
        for label, numbers, string in _DEBUG_ITEM.findall(text):
            if label:
                self.debug_labels[label] = len(data)
            elif numbers:
                data.extend(int_literal(number.strip()) & 0xFF for number in numbers.split(","))
            else:
                data.extend(string.encode() + b"\0")
        self.debug_text = bytes(data)
