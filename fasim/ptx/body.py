"""Function bodies: statements in order, nested blocks flattened, names resolved.

Ordinary instructions take one regular expression and a table of operands seen before in the block; everything else goes by token.

Source: PTX ISA, "Statements", "Debugging Directives" (.loc), "Control Flow Instructions".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fasim.errors import NotModelled
from fasim.ptx.declarations import (
    LINKAGES,
    STATE_SPACES,
    parse_directives,
    parse_parameters,
    parse_registers,
    parse_strings,
    parse_variables,
)
from fasim.ptx.lexer import Cursor, Source
from fasim.ptx.operands import parse_call, parse_operands, simple_operand
from fasim.ptx.scope import Scope, settle
from fasim.ptx.tree import (
    BranchTargets,
    CallPrototype,
    CallTargets,
    Instruction,
    Label,
    Loc,
    Operand,
    Pragma,
    RegDecl,
    Register,
    SourceLoc,
    Statement,
    Symbol,
    Variable,
)

# ptxas takes white space before a modifier: `ld.global.v4 .f32`.
_MNEMONIC = r"[A-Za-z]\w*(?:(?:\.|::|\s+\.(?=[A-Za-z]))\w+)*"
_INSTRUCTION = re.compile(rf"\s*((?:@\s*(!?)\s*([%\w$]+)\s+)?({_MNEMONIC})(?=[\s;({{\[])(?!\s*:)([^;\"]*);)")
_HEAD = re.compile(rf"\s*(?:@\s*(!?)\s*([%\w$]+)\s+)?({_MNEMONIC})(?=[\s;({{\[]|\Z)")
_LOC = re.compile(
    r"\s*(\.loc\s+(\d+)\s+(\d+)\s+(\d+)"
    r"(?:\s*,\s*function_name\s+([\w$.]+)(?:\s*\+\s*(\d+))?\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?)(?=\s)"
)
_NESTED_COMMA = re.compile(r"[{(]|\[[^\]]*,")
_PIECE = re.compile(r"(?:[^,\[{]|\[[^\]]*\]|\{[^}]*\})+")


class BodyParser:
    """Parses one body; `statements` and `registers` hold the result."""

    def __init__(self, source: Source, name: str, known: Mapping[str, str]) -> None:
        self.source = source
        self.name = name
        self.known = known
        self.scope = Scope(source)
        self.statements: list[Statement] = []
        self.registers = self.scope.used
        self._blocks = 0
        self._loc: SourceLoc | None = None
        self._locs: dict[tuple[int, int, int], SourceLoc] = {}
        self._mnemonics: dict[str, tuple[str, str, tuple[str, ...]]] = {}
        self._branches: list[tuple[Instruction, int]] = []

    def add_parameters(self, parameters: list[tuple[Variable | RegDecl, int]]) -> None:
        """Declare the parameters of the function."""
        for parameter, offset in parameters:
            if isinstance(parameter, RegDecl):
                self.scope.declare_register(parameter, offset)
            else:
                self.scope.declare_variable(parameter, offset, "param")

    def parse(self, start: int) -> int:
        """Parse from the opening brace at `start`; return the offset behind the closing one.

        Raises: PtxError.
        """
        clean = self.source.clean
        opened = [start]
        pos = start + 1
        while True:
            match = _INSTRUCTION.match(clean, pos)
            if match is not None:
                self._instruction(match)
                pos = match.end()
                continue
            match = _LOC.match(clean, pos)
            if match is not None:
                self._set_loc(match)
                pos = match.end()
                continue
            cursor = Cursor(self.source, pos)
            if cursor.at("{"):
                opened.append(cursor.token.offset)
                self._blocks += 1
                self.scope = Scope(self.source, self.scope, self._blocks)
                pos = cursor.token.end
            elif cursor.at("}"):
                opened.pop()
                pos = cursor.token.end
                self.scope.close()
                if self.scope.parent is None:
                    self._finish()
                    return pos
                self.scope = self.scope.parent
            elif cursor.kind == "end":
                line = self.source.position(opened[-1])[0]
                cursor.unexpected(f"'}}' to close the block of {self.name!r} that begins on line {line}")
            else:
                pos = self._other(cursor)

    def _instruction(self, match: re.Match[str]) -> None:
        whole, negated, guard_name, mnemonic, text = match.groups()
        scope = self.scope
        offset = match.start(1)
        parts = self._mnemonics.get(mnemonic)
        if parts is None:
            plain = "".join(mnemonic.split())
            opcode, *rest = plain.split(".")
            parts = self._mnemonics[mnemonic] = (plain, opcode, tuple(rest))
        plain, opcode, modifiers = parts
        operands: tuple[Operand, ...] = ()
        if opcode == "call":
            cursor = Cursor(self.source, match.start(5))
            operands = (parse_call(cursor, scope),)
            cursor.expect(";", "or ',' after the call's operand")
        elif text and not text.isspace():
            operands = self._operands(text, match.start(5))
        guard = None if guard_name is None else self._guard(guard_name, bool(negated), match.start(3))
        line, column = self.source.position(offset)
        shown = self.source.text[offset : match.end(1)]
        if "\n" in shown:
            shown = " ".join(whole.split())
        instruction = Instruction(plain, opcode, modifiers, operands, guard, line, column, shown, self._loc)
        self.statements.append(instruction)
        if opcode in ("bra", "brx"):
            self._branches.append((instruction, offset))

    def _operands(self, text: str, offset: int) -> tuple[Operand, ...]:
        cache = self.scope.cache
        pieces = text.split(",") if _NESTED_COMMA.search(text) is None else _PIECE.findall(text)
        operands = []
        for piece in pieces:
            key = piece.strip()
            operand = cache.get(key) or simple_operand(key, self.scope)
            if operand is None:
                break
            cache[key] = operand
            operands.append(operand)
        else:
            if "(" not in text:
                return tuple(operands)
        cursor = Cursor(self.source, offset)
        parsed = parse_operands(cursor, self.scope)
        if len(parsed) == len(pieces):
            cache.update((piece.strip(), operand) for piece, operand in zip(pieces, parsed))
        return parsed

    def _guard(self, name: str, negated: bool, offset: int) -> Register:
        found = self.scope.lookup(name)
        if not isinstance(found, Register):
            self.source.fail(offset, f"{name!r} is not a declared register: expected a predicate after '@'")
        if found.type != "pred":
            self.source.fail(offset, f"{name!r} has type .{found.type}: expected a .pred register after '@'")
        return Register(found.name, "pred", found.special, negated)

    def _set_loc(self, match: re.Match[str]) -> None:
        _, file, line, column, function, function_offset, *inlined = match.groups()
        chain: tuple[SourceLoc, ...] = ()
        if function is not None:
            site = (int(inlined[0]), int(inlined[1]), int(inlined[2]))
            # The call site is itself a place named by an earlier .loc, with its own chain.
            caller = self._locs.get(site) or SourceLoc(*site)
            chain = (caller, *caller.inlined_at)
        loc = SourceLoc(int(file), int(line), int(column), chain, function or "", int(function_offset or 0))
        self._locs[loc.file, loc.line, loc.column] = self._loc = loc
        self.statements.append(Loc(loc, self.source.position(match.start(1))[0]))

    def _other(self, cursor: Cursor) -> int:
        """Any statement that is neither an instruction of the usual form nor a block; returns where it ends."""
        token = cursor.token
        if token.kind == "name":
            following = Cursor(self.source, token.end)
            if following.at(":"):
                following.next()
                return self._labelled(token.text, token.offset, following)
        if token.kind == "directive":
            return self._directive(cursor)
        head = _HEAD.match(self.source.clean, token.offset)
        if head is None and token.text == "@":
            self.source.fail(token.offset, "expected '@' or '@!', a predicate register and an instruction")
        if head is None:
            cursor.unexpected(f"a statement or '}}' in the body of {self.name!r}")
        cursor.move_to(head.end())
        if head[3].split(".")[0] == "call":
            parse_call(cursor, self.scope)
        else:
            parse_operands(cursor, self.scope)
        cursor.expect(";", f"after {head[3]!r}")
        self.source.fail(token.offset, "this is not an instruction")

    def _directive(self, cursor: Cursor) -> int:
        token = cursor.token
        line = self.source.position(token.offset)[0]
        if cursor.at(".reg"):
            for declaration, offset in parse_registers(cursor, self.scope.rename):
                self.scope.declare_register(declaration, offset)
                self.statements.append(declaration)
        elif token.text in STATE_SPACES or token.text in LINKAGES:
            linkage = cursor.next().text[1:] if token.text in LINKAGES else ""
            if cursor.text not in STATE_SPACES:
                cursor.unexpected("a state space: " + ", ".join(sorted(STATE_SPACES)))
            self.statements.extend(
                parse_variables(
                    cursor, linkage, self.scope.rename, self.known, lambda v, offset: self.scope.declare_variable(v, offset, "variable")
                )
            )
        elif cursor.accept(".pragma"):
            self.statements.append(Pragma(parse_strings(cursor), line))
            cursor.expect(";", "after .pragma")
        elif cursor.at(".loc"):
            self.source.fail(token.offset, "expected .loc FILE LINE COLUMN[, function_name LABEL[+N], inlined_at FILE LINE COLUMN]")
        else:
            cursor.unexpected(f"a statement or '}}' in the body of {self.name!r}")
        return cursor.token.offset

    def _labelled(self, name: str, offset: int, cursor: Cursor) -> int:
        line, column = self.source.position(offset)
        self.scope.declare_label(name, offset)
        flat = self.scope.rename(name)
        if cursor.at(".branchtargets", ".calltargets"):
            branch = cursor.next().text == ".branchtargets"
            targets = [self._target(cursor)]
            while cursor.accept(","):
                targets.append(self._target(cursor))
            cursor.expect(";", "or ',' after the target")
            made: Statement = BranchTargets(flat, tuple(targets), line) if branch else CallTargets(flat, tuple(targets), line)
            self.statements.append(made)
        elif cursor.accept(".callprototype"):
            returns = parse_parameters(cursor, prototype=True) if cursor.at("(") else []
            cursor.expect("_", "for the name of the prototype")
            params = parse_parameters(cursor, prototype=True) if cursor.at("(") else []
            directives = parse_directives(cursor)
            cursor.expect(";", "after .callprototype")
            self.statements.append(
                CallPrototype(flat, tuple(item for item, _ in returns), tuple(item for item, _ in params), directives, line)
            )
        else:
            self.statements.append(Label(flat, name, line, column))
        return cursor.token.offset

    def _target(self, cursor: Cursor) -> Symbol:
        token = cursor.expect_name("a label")
        if cursor.at("<"):
            raise NotModelled(str(self.source.error(token.offset, "ranges of labels are not modelled: write the labels out")))
        found = self.scope.lookup(token.text)
        return found if isinstance(found, Symbol) else self.scope.expect_later(token.text, token.offset)

    def _finish(self) -> None:
        """Resolve what no label resolved by the module's names, and check the branches."""
        for pending in self.scope.pending:
            name = pending.symbol.name
            if name not in self.known:
                self.source.fail(pending.offset, f"{name!r} is not declared: no such register, label, variable or function here")
            settle(pending.symbol, name, self.known[name])
        tables = {statement.name for statement in self.statements if isinstance(statement, BranchTargets)}
        for instruction, offset in self._branches:
            target = instruction.operands[-1] if instruction.operands else None
            if not isinstance(target, Symbol) or target.kind != "label":
                self.source.fail(offset, f"the target of {instruction.mnemonic} is not a label")
            if (instruction.opcode == "brx") != (target.name in tables):
                self.source.fail(offset, f"{target.name!r} has to be a label, for brx.idx one of .branchtargets")
