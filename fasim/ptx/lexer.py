"""PTX text as tokens: comments blanked, positions kept, one compiled expression for every token.

Source: PTX ISA, "Syntax" (source format, comments, identifiers, constants).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import NoReturn

from fasim.errors import PtxError

NAME = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)"

_BLANK = re.compile(
    r"""/\*.*?\*/ | /\*                        # a comment; one that never ends
      | //[^\n]*
      | "(?:[^"\\\n]|\\.)*" | "                # a string; one that never ends
      | ^[ \t]*(?:\#|@@DWARF)[^\n]*            # line markers of a C preprocessor, debug data of old compilers
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<float>0[fF][0-9a-fA-F]{{8}}(?![\w$]) | 0[dD][0-9a-fA-F]{{16}}(?![\w$])
              | (?:\d+\.\d*(?:[eE][+-]?\d+)? | \.\d+(?:[eE][+-]?\d+)? | \d+[eE][+-]?\d+)(?![\w$.]))
    | (?P<int>(?:0[xX][0-9a-fA-F]+ | 0[bB][01]+ | 0[0-7]* | [1-9]\d*)U?(?![\w$.]))
    | (?P<directive>\.[A-Za-z]\w*(?:::\w+)*)
    | (?P<name>{NAME} | _)
    | (?P<string>"(?:[^"\\\n]|\\.)*")
    | (?P<op>&& | \|\| | << | >> | <= | >= | == | != | [-+*/%!~&|^?:;,.<>=(){{}}\[\]@])
    | (?P<bad>\S[\w$]*)
    )""",
    re.VERBOSE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token: kind is float, int, directive, name, string, op, bad or end."""

    kind: str
    text: str
    offset: int
    end: int


class Source:
    """PTX text with its path, and the same text with comments blanked (`clean`, equal offsets).

    Raises: PtxError for a comment or a string that does not end.
    """

    def __init__(self, text: str, path: str = "<ptx>") -> None:
        self.path = path
        self.text = text.rstrip("\0")
        self.lines = self.text.split("\n")
        self.line_starts = [0]
        for line in self.lines[:-1]:
            self.line_starts.append(self.line_starts[-1] + len(line) + 1)
        self.clean = _BLANK.sub(self._blank, self.text)

    def _blank(self, match: re.Match[str]) -> str:
        found = match.group()
        if found in ("/*", '"'):
            what = "comment" if found == "/*" else "string"
            self.fail(match.start(), f"this {what} does not end: expected {'*/' if what == 'comment' else 'a closing quote'}")
        if found[0] == '"':
            return found
        return re.sub(r"[^\n]", " ", found) if "\n" in found else " " * len(found)

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column, both from 1, of an offset."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def error(self, offset: int, message: str) -> PtxError:
        """A PtxError that shows path, line, column and the line itself."""
        line, column = self.position(min(offset, len(self.text)))
        shown = self.lines[line - 1].rstrip().expandtabs(1)
        marker = " " * min(column - 1, len(shown)) + "^"
        return PtxError(f"{self.path}:{line}:{column}: {message}\n    {shown}\n    {marker}")

    def fail(self, offset: int, message: str) -> NoReturn:
        """Raise the PtxError of `error`."""
        raise self.error(offset, message)


class Cursor:
    """Reads the tokens of `source.clean` one after the other, with one token of lookahead."""

    def __init__(self, source: Source, offset: int = 0) -> None:
        self.source = source
        self._clean = source.clean
        self.token = Token("op", "", offset, offset)
        self.move_to(offset)

    @property
    def text(self) -> str:
        """The text of the next token, empty at the end of the file."""
        return self.token.text

    @property
    def kind(self) -> str:
        """The kind of the next token."""
        return self.token.kind

    def move_to(self, offset: int) -> None:
        """Make the token at or after `offset` the next one."""
        match = _TOKEN.match(self._clean, offset)
        if match is None or match.lastgroup is None:
            end = len(self._clean.rstrip())
            self.token = Token("end", "", end, end)
            return
        kind = match.lastgroup
        self.token = Token(kind, match.group(kind), match.start(kind), match.end())

    def next(self) -> Token:
        """Take the next token."""
        token = self.token
        self.move_to(token.end)
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of `texts` (a string literal never is)."""
        return self.token.text in texts and self.token.kind not in ("string", "end")

    def accept(self, text: str) -> bool:
        """Take the next token if it is `text`."""
        if self.at(text):
            self.next()
            return True
        return False

    def expect(self, text: str, where: str = "") -> Token:
        """Take the next token, which has to be `text`.

        Raises: PtxError.
        """
        if not self.at(text):
            self.unexpected(f"{text!r}{' ' + where if where else ''}")
        return self.next()

    def expect_kind(self, kind: str, what: str) -> Token:
        """Take the next token, which has to be of `kind`.

        Raises: PtxError.
        """
        if self.token.kind != kind:
            self.unexpected(what)
        return self.next()

    def expect_name(self, what: str) -> Token:
        """Take an identifier."""
        return self.expect_kind("name", what)

    def expect_int(self, what: str) -> int:
        """Take an unsigned integer literal."""
        return int_literal(self.expect_kind("int", what).text)

    def unexpected(self, expected: str) -> NoReturn:
        """Raise the PtxError that says what stands here and what was expected."""
        found = "the end of the file" if self.token.kind == "end" else repr(self.token.text)
        self.source.fail(self.token.offset, f"found {found}, expected {expected}")


def int_literal(text: str) -> int:
    """The value of an integer literal: decimal, 0x, 0b or octal, with or without U."""
    digits = text.rstrip("U")
    if digits[:1] == "0" and digits[1:].isdigit():
        return int(digits, 8)
    return int(digits, 0)
