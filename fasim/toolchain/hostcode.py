"""Split a CUDA file into declarations, tell host code from device code, and blank host code without moving a line."""

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
        tokens = self.tokens
        i, head_end = first, first
        template_text = ""
        class_at = name_at = -1
        assigned = init_list = False
        children: list[Unit] = []
        kind, is_definition, name, body = "other", False, "", -1
        specialises = False
        while i < end:
            token = tokens[i]
            text = token.text
            if text == "template" and i + 1 < end and tokens[i + 1].text == "<":
                after = self.skip_angles(i + 1, end)
                template_text = self.text[tokens[i + 1].start : tokens[after - 1].end]
                i = after
                continue
            if text == ";":
                head_end = head_end if is_definition else i
                i += 1
                break
            if text == "operator" and not assigned:
                # operator() and operator{symbols}: the name ends at the parameter list
                name_at = i
                i += 3 if i + 2 < end and tokens[i + 1].text == "(" else 1
                while i < end and tokens[i].text != "(":
                    i += 1
                continue
            if text == "=":
                assigned = True
            elif text == ":" and name_at >= 0 and class_at < 0:
                init_list = True
                body = token.start
            elif text in _CLASS_WORDS and class_at < 0 and name_at < 0 and not assigned:
                class_at = i
            elif text == "(":
                before = tokens[i - 1] if i > first else None
                if name_at < 0 and not assigned and before and before.kind == "word" and before.text not in _ATTRIBUTE_WORDS:
                    name_at = i - 1
                i = self.match.get(i, i) + 1
                if self.ends_macro_call(first, i):
                    head_end = i
                    break
                continue
            elif text == "[":
                i = self.match.get(i, i) + 1
                continue
            elif text == "{":
                close = self.match.get(i, i)
                if is_definition or assigned:
                    i = close + 1
                    continue
                previous = tokens[i - 1] if i > first else None
                leading = [t.text for t in tokens[first:i]]
                if "namespace" in leading[:2] or (leading[:1] == ["extern"] and len(leading) == 2):
                    inner = "".join(leading[leading.index("namespace") + 1 :]) if "namespace" in leading else ""
                    anonymous = "namespace" in leading and not inner
                    head_end = i
                    children = self.scope(i + 1, close, (*path, "(anonymous)" if anonymous else inner), False)
                    kind, i = "scope", close + 1
                    break
                if name_at >= 0:
                    if init_list and previous and (previous.kind == "word" or previous.text == ">"):
                        i = close + 1
                        continue
                    kind, is_definition, head_end = "function", True, i
                    body = body if init_list else token.start
                    i = close + 1
                    break
                if class_at >= 0:
                    kind, is_definition, head_end = "class", True, i
                    not_names = _CLASS_WORDS | _ATTRIBUTE_WORDS
                    name = next((t.text for t in tokens[class_at + 1 : i] if t.kind == "word" and t.text not in not_names), "")
                    specialises = "<" in (t.text for t in tokens[class_at + 1 : i])
                    if tokens[class_at].text != "enum":
                        children = self.scope(i + 1, close, (*path, name), True)
                i = close + 1
                continue
            i += 1
        else:
            head_end = head_end or i
        if not head_end or head_end == first:
            head_end = i
        words = self.words(first, head_end)
        if kind == "other" and name_at >= 0 and not words & _NOT_A_DECLARATOR:
            kind = "function"
        if kind == "function":
            name = tokens[name_at].text
        elif kind == "other":
            name = next((t.text for t in reversed(tokens[first:i]) if t.kind == "word"), "")
            name = self.variable_name(first, i) or name
        unit = Unit(kind, name, tokens[first].start, tokens[i - 1].end, words, body, is_definition, in_class, specialises, path, children)
        unit.template_parameters = template_text
        return unit, i

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


def obvious_host_code(units: list[Unit], device_names: frozenset[str]) -> list[Unit]:
    """Functions outside classes that carry no device mark, which is host code by the rules of CUDA C++.

    Constexpr functions stay (constant expressions of device code may use them), and so do names that also have a device declaration.
    """
    return [
        unit
        for unit in flatten(units)
        if unit.kind == "function"
        and not unit.in_class
        and not unit.is_device
        and not unit.is_constant
        and unit.name not in device_names
        and (unit.is_definition or "const" not in unit.words)  # `const int n(3);` looks like a declaration of a function
    ]


def device_function_names(units: Iterable[Unit]) -> frozenset[str]:
    """Names of all functions that have a device mark on one of their declarations."""
    return frozenset(unit.name for unit in flatten(units) if unit.kind == "function" and unit.words & DEVICE_MARKS)


def blank(text: str, whole: Iterable[Unit], bodies: Iterable[Unit], lexed: Lexed) -> str:
    """Replace declarations by spaces, and the bodies of others by `;`; line ends and the preprocessor lines inside stay, pragmas go."""
    spans = sorted([(unit.start, unit.end, "") for unit in whole] + [(unit.body, unit.end, ";") for unit in bodies])
    kept = [(d.start, d.end) for d in lexed.directives if d.name != "pragma"]
    out: list[str] = []
    position = 0
    for start, end, instead in spans:
        if start < position:
            continue
        out += [text[position:start], instead]
        cursor = start + len(instead)
        for keep_start, keep_end in kept:
            if start <= keep_start < end:
                out += [_spaces(text[cursor:keep_start]), text[keep_start:keep_end]]
                cursor = keep_end
        out.append(_spaces(text[cursor:end]))
        position = end
    out.append(text[position:])
    return "".join(out)


def _spaces(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def launch_expressions(tokens: list[Token], text: str) -> list[str]:
    """The kernels that a file launches, as written before `<<<`: `axpy` or `gemm<128, 64>`."""
    found = []
    for i, token in enumerate(tokens):
        if token.text != "<<<" or i == 0:
            continue
        j = i - 1
        if tokens[j].text == ">":
            depth = 0
            while j >= 0:
                depth += {">": 1, "<": -1}.get(tokens[j].text, 0)
                if depth == 0:
                    break
                j -= 1
            j -= 1
        while j >= 2 and tokens[j - 1].text == "::":
            j -= 2
        if j >= 0 and tokens[j].kind == "word":
            found.append(text[tokens[j].start : tokens[i - 1].end])
    return list(dict.fromkeys(found))
