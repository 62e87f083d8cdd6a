"""Names inside a function: nested blocks shadow outer ones and become unique names in the flat body.

Source: PTX ISA, "Identifiers", "Register State Space", "Parameterized Variable Names"; ptxas 13.0 for what counts as a duplicate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fasim.ptx.lexer import Source
from fasim.ptx.special import AXES, SPECIAL_REGISTERS, SPECIAL_VECTORS
from fasim.ptx.tree import Operand, RegDecl, Register, Symbol, Variable, Vector

_NUMBERED = re.compile(r"(.*?)(\d+)\Z", re.DOTALL)
_ELEMENTS = {**{axis: axis for axis in AXES}, "r": "x", "g": "y", "b": "z", "a": "w"}


@dataclass(slots=True)
class Pending:
    """A name that a label or module symbol has to resolve later, and where it was first used."""

    symbol: Symbol
    offset: int


class Scope:
    """The names of one block; `rename` gives what a name declared here is called in the flat body.

    `cache` maps operand texts to operands already resolved here; a declaration empties it.
    """

    def __init__(self, source: Source, parent: Scope | None = None, serial: int = 0) -> None:
        self.source = source
        self.parent = parent
        self.suffix = f"~{serial}" if serial else ""
        self.cache: dict[str, Operand] = {}
        self.pending: list[Pending] = []
        self.used: dict[str, str] = {} if parent is None else parent.used
        self._registers: dict[str, RegDecl] = {}
        self._ranges: dict[str, RegDecl] = {}
        self._symbols: dict[str, Symbol] = {}
        self._declared_at: dict[str, int] = {}

    def rename(self, name: str) -> str:
        """The name in the flat body: as written at function level, with `~block` in a nested block."""
        return name + self.suffix

    def _claim(self, name: str, offset: int, what: str) -> None:
        before = self._declared_at.get(name)
        numbered = self._in_range(name)
        if before is None and numbered is not None and numbered[1] == name:
            before = self._declared_at[f"{numbered[0].text_name}<>"]
        if before is not None:
            self.source.fail(offset, f"{what} {name!r} is declared twice: first on line {self.source.position(before)[0]}")
        self._declared_at[name] = offset
        self.cache.clear()

    def declare_register(self, declaration: RegDecl, offset: int) -> None:
        """Add a register or a range of registers.

        Raises: PtxError for a name declared before in this block.
        """
        name = declaration.text_name
        if declaration.count is None:
            self._claim(name, offset, "register")
            self._registers[name] = declaration
            return
        if name in self._ranges:
            self.source.fail(offset, f"registers '{name}<...>' are declared twice: first on line {self._ranges[name].line}")
        for other in self._declared_at:
            match = _NUMBERED.fullmatch(other)
            if match and other.startswith(name) and other[len(name) :].isdigit() and self._counts(declaration, other[len(name) :]):
                self.source.fail(offset, f"register {other!r} of '{name}<{declaration.count}>' was declared before")
        self._declared_at[f"{name}<>"] = offset
        self._ranges[name] = declaration
        self.cache.clear()

    def declare_variable(self, variable: Variable, offset: int, kind: str) -> None:
        """Add a variable or a parameter (`kind`).

        Raises: PtxError for a name declared before in this block.
        """
        self._claim(variable.text_name, offset, kind)
        self._symbols[variable.text_name] = Symbol(variable.name, 0, kind)

    def declare_label(self, name: str, offset: int) -> None:
        """Add a label.

        Raises: PtxError for a name declared before in this block.
        """
        self._claim(name, offset, "label")
        self._symbols[name] = Symbol(self.rename(name), 0, "label")

    @staticmethod
    def _counts(declaration: RegDecl, digits: str) -> bool:
        return (digits == "0" or digits[0] != "0") and int(digits) < (declaration.count or 0)

    def _in_range(self, name: str) -> tuple[RegDecl, str] | None:
        """The range that `name` belongs to and its name there: r01 is another spelling of r1."""
        match = _NUMBERED.fullmatch(name)
        if match is None or not self._ranges:
            return None
        # The prefix itself may end in digits: %f1<4> declares %f10 to %f13.
        for split in range(match.start(2), len(name)):
            declaration = self._ranges.get(name[:split])
            if declaration is not None and int(name[split:]) < (declaration.count or 0):
                return declaration, f"{name[:split]}{int(name[split:])}"
        return None

    def _declaration(self, name: str) -> tuple[str, RegDecl | Symbol] | None:
        """The innermost declaration of `name` and what it is called in the flat body."""
        scope: Scope | None = self
        while scope is not None:
            found = scope._registers.get(name) or scope._symbols.get(name)
            if found is not None:
                return scope.rename(name), found
            numbered = scope._in_range(name)
            if numbered is not None:
                return scope.rename(numbered[1]), numbered[0]
            scope = scope.parent
        return None

    def lookup(self, name: str) -> Register | Vector | Symbol | None:
        """What `name` stands for in this block; None when nothing here declares it (a label further down may)."""
        found = self._declaration(name)
        if found is None:
            return self._special(name)
        flat, declaration = found
        if isinstance(declaration, Symbol):
            return declaration
        if declaration.vector == 1:
            self.used[flat] = declaration.type
            return Register(flat, declaration.type)
        elements = tuple(Register(f"{flat}.{axis}", declaration.type) for axis in AXES[: declaration.vector])
        self.used.update((element.name, element.type) for element in elements)
        return Vector(elements)

    @staticmethod
    def _special(name: str) -> Register | Vector | None:
        if name in SPECIAL_VECTORS:
            return Vector(tuple(Register(f"{name}.{axis}", "u32", True) for axis in AXES))
        type_ = SPECIAL_REGISTERS.get(name)
        return None if type_ is None else Register(name, type_, True)

    def element(self, vector: Vector, suffix: str) -> Register | None:
        """The element `.x` (or .r, .g, ...) of a vector register, None when it has none."""
        axis = _ELEMENTS.get(suffix)
        index = AXES.index(axis) if axis else len(vector.items)
        item = vector.items[index] if index < len(vector.items) else None
        return item if isinstance(item, Register) else None

    def expect_later(self, name: str, offset: int) -> Symbol:
        """A symbol for a name not declared so far; `close` or the end of the function resolves it."""
        symbol = Symbol(name)
        self.pending.append(Pending(symbol, offset))
        return symbol

    def close(self) -> None:
        """Resolve pending names with the labels of this block and hand the rest to the outer block."""
        left = []
        for pending in self.pending:
            label = self._symbols.get(pending.symbol.name)
            if label is not None and label.kind == "label":
                settle(pending.symbol, label.name, "label")
            else:
                left.append(pending)
        self.pending = [] if self.parent is not None else left
        if self.parent is not None:
            self.parent.pending.extend(left)


def settle(symbol: Symbol, name: str, kind: str) -> None:
    """Complete a symbol in place: operands that were built before the name was known share the object."""
    object.__setattr__(symbol, "name", name)
    object.__setattr__(symbol, "kind", kind)
