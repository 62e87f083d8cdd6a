"""Split a CUDA C++ file into declarations, without the compiler: enough to tell where each begins, ends, and how it is marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from fasim.toolchain.cpplex import Lexed, Token, expand_unbalanced, lex, macro_words

DEVICE_MARKS = frozenset({"__global__", "__device__", "__constant__", "__shared__", "__managed__"})
_CONSTANT_MARKS = frozenset({"constexpr", "consteval", "constinit"})
_CLASS_WORDS = frozenset({"class", "struct", "union", "enum"})
_ATTRIBUTE_WORDS = frozenset(
    {"__align__", "alignas", "__attribute__", "__launch_bounds__", "__declspec", "noexcept", "decltype", "explicit", "requires"}
)
_NOT_A_DECLARATOR = frozenset({"typedef", "using", "static_assert", "asm", "friend", "namespace", "concept"})
# words of the CUDA and CCCL headers that mark device code; their definitions are not read
_DEVICE_MACRO = re.compile(r"(_CCCL|CUB|THRUST|_CG|_LIBCUDACXX)_\w*(API|DEVICE|QUALIFIER|FORCEINLINE|KERNEL)\w*")
_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = frozenset(_OPEN.values())


class UnbalancedBraces(Exception):
    """Braces do not match, so that declarations cannot be told apart; `offset` is where."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass
class Unit:
    """One declaration: `kind` is function, class, scope or other.

    start, end: offsets into the text; body: where a function's initialiser list or brace starts, -1 without.
    """

    kind: str
    name: str
    start: int
    end: int
    words: frozenset[str]
    body: int = -1
    is_definition: bool = False
    in_class: bool = False
    specialises: bool = False
    scope: tuple[str, ...] = ()
    children: list[Unit] = field(default_factory=list)
    template_parameters: str = ""

    def __iter__(self) -> Iterator[Unit]:
        yield self
        for child in self.children:
            yield from child

    @property
    def is_device(self) -> bool:
        """Whether the declaration, or one inside it, is marked for the device."""
        return bool(self.words & DEVICE_MARKS) or any(child.is_device for child in self.children)

    @property
    def is_kernel(self) -> bool:
        """Whether the declaration defines or declares a kernel."""
        return self.kind == "function" and "__global__" in self.words

    @property
    def is_constant(self) -> bool:
        """Whether the declaration can be used in constant expressions, so that device code may need it."""
        return bool(self.words & _CONSTANT_MARKS)

    @property
    def is_data_member(self) -> bool:
        """Whether the declaration adds to the layout of a class."""
        return self.in_class and self.kind == "other" and not self.words & _NOT_A_DECLARATOR

    @property
    def is_template(self) -> bool:
        """Whether the declaration is a template that something else must instantiate."""
        return self.template_parameters not in ("", "<>")

    @property
    def qualified_name(self) -> str:
        """The name with its namespaces."""
        return "::".join((*(part for part in self.scope if part), self.name))


@dataclass
class _Head:
    """What is known of a declaration while it is read: token indices, -1 before they are seen."""

    first: int
    end: int = -1
    name_at: int = -1
    class_at: int = -1
    assigned: bool = False
    body: int = -1
    kind: str = "other"
    class_name: str = ""
    specialises: bool = False
    template_parameters: str = ""
    children: list[Unit] = field(default_factory=list)

    def see(self, token: Token, index: int) -> None:
        """Take in a token that opens nothing."""
        if token.text == "=":
            self.assigned = True
        elif token.text == ":" and self.name_at >= 0 and self.class_at < 0 and self.body < 0:
            self.body = token.start
        elif token.text in _CLASS_WORDS and self.class_at < 0 and self.name_at < 0 and not self.assigned:
            self.class_at = index


class _Parser:
    def __init__(self, text: str, lexed: Lexed, macros: Mapping[str, str]) -> None:
        self.text = text
        self.macros = macros
        self.tokens, index = expand_unbalanced(lexed.tokens, macros)
        self.match = self._match_brackets([(d.name, index[d.token_index]) for d in lexed.directives])
        self.word_cache: dict[str, frozenset[str]] = {}

    def _match_brackets(self, directives: list[tuple[str, int]]) -> dict[int, int]:
        """Partner of each opening bracket; every branch of an #if starts from the same open brackets."""
        match: dict[int, int] = {}
        stack: list[int] = []
        saved: list[list[int]] = []
        pending = iter([*directives, ("", len(self.tokens) + 1)])
        name, at = next(pending)
        for i, token in enumerate(self.tokens):
            while at <= i:
                if name in ("if", "ifdef", "ifndef"):
                    saved.append(list(stack))
                elif name in ("else", "elif") and saved:
                    stack = list(saved[-1])
                elif name == "endif" and saved:
                    saved.pop()
                name, at = next(pending)
            if token.kind != "punct":
                continue
            if token.text in _OPEN:
                stack.append(i)
            elif token.text in _CLOSE:
                if not stack or _OPEN[self.tokens[stack[-1]].text] != token.text:
                    raise UnbalancedBraces(token.start)
                match[stack.pop()] = i
        if stack:
            raise UnbalancedBraces(self.tokens[stack[-1]].start)
        return match

    def words(self, first: int, last: int) -> frozenset[str]:
        found: set[str] = set()
        for token in self.tokens[first:last]:
            if token.kind == "word":
                if token.text not in self.word_cache:
                    expanded = macro_words(token.text, self.macros)
                    if token.text not in self.macros and _DEVICE_MACRO.fullmatch(token.text):
                        expanded |= {"__device__"}
                    self.word_cache[token.text] = expanded
                found |= self.word_cache[token.text]
        return frozenset(found)

    def skip_angles(self, i: int, end: int) -> int:
        """The index after the `>` that closes the `<` at i."""
        depth = 0
        while i < end:
            text = self.tokens[i].text
            if text in _OPEN and i in self.match:
                i = self.match[i]
            elif text in ("<", "<<<"):
                depth += len(text)
            elif text in (">", ">>>"):
                depth -= len(text)
                if depth <= 0:
                    return i + 1
            i += 1
        return end

    def scope(self, i: int, end: int, path: tuple[str, ...], in_class: bool) -> list[Unit]:
        units: list[Unit] = []
        while i < end:
            text = self.tokens[i].text
            if text == ";":
                i += 1
            elif in_class and text in ("public", "private", "protected") and i + 1 < end and self.tokens[i + 1].text == ":":
                i += 2
            else:
                unit, i = self.declaration(i, end, path, in_class)
                units.append(unit)
        return units

    def declaration(self, first: int, end: int, path: tuple[str, ...], in_class: bool) -> tuple[Unit, int]:
        """Read one declaration; returns it and the index after it."""
        head = _Head(first)
        i = first
        while i < end:
            text = self.tokens[i].text
            if text == ";":
                i += 1
                break
            if text == "{":
                i, ends = self.brace(head, i, path)
                if ends:
                    break
            elif text == "(":
                i = self.parameters(head, i)
                if self.ends_macro_call(first, i):
                    break
            elif text == "[":
                i = self.match.get(i, i) + 1
            elif text == "template" and i + 1 < end and self.tokens[i + 1].text == "<":
                i, start = self.skip_angles(i + 1, end), self.tokens[i + 1].start
                head.template_parameters = self.text[start : self.tokens[i - 1].end]
            elif text == "operator" and not head.assigned:
                i = self.operator(head, i, end)
            else:
                head.see(self.tokens[i], i)
                i += 1
        return self.unit(head, i, path, in_class), i

    def unit(self, head: _Head, last: int, path: tuple[str, ...], in_class: bool) -> Unit:
        """The unit of tokens[head.first:last]."""
        words = self.words(head.first, head.end if head.end > head.first else last)
        kind, name = head.kind, head.class_name
        if kind == "other" and head.name_at >= 0 and not words & _NOT_A_DECLARATOR:
            kind = "function"
        if kind == "function":
            name = self.tokens[head.name_at].text
        elif kind == "other":
            name = self.variable_name(head.first, last)
        return Unit(
            kind,
            name,
            start=self.tokens[head.first].start,
            end=self.tokens[last - 1].end,
            words=words,
            body=head.body,
            is_definition=head.end >= 0,
            in_class=in_class,
            specialises=head.specialises,
            scope=path,
            children=head.children,
            template_parameters=head.template_parameters,
        )

    def brace(self, head: _Head, i: int, path: tuple[str, ...]) -> tuple[int, bool]:
        """Read a brace and what is in it; returns the index after it, and whether the declaration ends there."""
        close = self.match.get(i, i)
        after = close + 1
        if head.end >= 0 or head.assigned:
            return after, False
        leading = [token.text for token in self.tokens[head.first : i]]
        if "namespace" in leading[:2] or (leading[:1] == ["extern"] and len(leading) == 2):
            inner = "".join(leading[leading.index("namespace") + 1 :]) or "(anonymous)" if "namespace" in leading else ""
            head.kind, head.end = "scope", i
            head.children = self.scope(i + 1, close, (*path, inner), False)
            return after, True
        if head.name_at >= 0:
            previous = self.tokens[i - 1]
            if head.body >= 0 and (previous.kind == "word" or previous.text == ">"):
                # a member in the list before the body: `: x{1}`
                return after, False
            head.kind, head.end = "function", i
            head.body = head.body if head.body >= 0 else self.tokens[i].start
            return after, True
        if head.class_at >= 0:
            not_names = _CLASS_WORDS | _ATTRIBUTE_WORDS
            words = self.tokens[head.class_at + 1 : i]
            head.kind, head.end = "class", i
            head.class_name = next((token.text for token in words if token.kind == "word" and token.text not in not_names), "")
            before_bases = words[: next((k for k, token in enumerate(words) if token.text == ":"), len(words))]
            head.specialises = any(token.text == "<" for token in before_bases)
            if self.tokens[head.class_at].text != "enum":
                head.children = self.scope(i + 1, close, (*path, head.class_name), True)
        return after, False

    def parameters(self, head: _Head, i: int) -> int:
        """Read a parenthesis; the first one after a plain word holds the parameters of a function of that name."""
        before = self.tokens[i - 1] if i > head.first else None
        if head.name_at < 0 and not head.assigned and before and before.kind == "word" and before.text not in _ATTRIBUTE_WORDS:
            head.name_at = i - 1
        return self.match.get(i, i) + 1

    def operator(self, head: _Head, i: int, end: int) -> int:
        """Read `operator` and its symbols; returns the index of the parameter list."""
        head.name_at = i
        i += 3 if i + 2 < end and self.tokens[i + 1].text == "(" else 1
        while i < end and self.tokens[i].text != "(":
            i += 1
        return i

    def variable_name(self, first: int, last: int) -> str:
        """The word before the first `=`, `[`, `{` or `;` of a declaration without parameters."""
        for i in range(first + 1, last):
            if self.tokens[i].text in ("=", "[", "{", ";"):
                return self.tokens[i - 1].text if self.tokens[i - 1].kind == "word" else ""
        return ""

    def ends_macro_call(self, first: int, after: int) -> bool:
        """Whether tokens[first:after] is `MACRO(...)` with a body that is complete declarations, so that no `;` follows."""
        name = self.tokens[first].text
        if self.tokens[first + 1].text != "(" or self.match.get(first + 1, -1) != after - 1:
            return False
        return name in self.macros and self.macros[name].rstrip().endswith((";", "}"))


def declarations(text: str, macros: Mapping[str, str] | None = None, lexed: Lexed | None = None) -> list[Unit]:
    """The declarations of a file at namespace level, with those inside namespaces and classes as their children.

    Raises: UnbalancedBraces.
    """
    lexed = lexed or lex(text)
    parser = _Parser(text, lexed, {**(macros or {}), **lexed.macros})
    return parser.scope(0, len(parser.tokens), (), False)


def flatten(units: Iterable[Unit]) -> Iterator[Unit]:
    """All units, parents before children."""
    for unit in units:
        yield from unit
