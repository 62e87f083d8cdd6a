"""A lexer for CUDA C++ that keeps offsets, reads macros, and skips what the preprocessor would skip for certain."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
    (?P<space>(?:\s|\\\n)+)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?\*/)
  | (?P<raw>(?:u8|[uUL])?R"(?P<delimiter>[^()\\\s]{0,16})\(.*?\)(?P=delimiter)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<char>(?:u8|[uUL])?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:'?[\w.]|(?<=[eEpP])[+-])*)
  | (?P<word>[^\W\d]\w*)
  | (?P<punct><<<|>>>|::|->|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"[ \t]*\#[ \t]*(?P<name>\w*)(?P<rest>(?:\\\r?\n|/\*.*?\*/|[^\n])*)", re.DOTALL)
_LINE_COMMENT = re.compile(r"//.*|/\*.*?\*/", re.DOTALL)
_DEFINE = re.compile(r"\s*(?P<name>\w+)(?P<params>\([^)]*\))?(?P<body>.*)", re.DOTALL)

# conditions whose value NVRTC fixes, so that the dead branch need not parse
_KNOWN_CONDITIONS = {
    ("if", "0"): False,
    ("if", "1"): True,
    ("ifdef", "__CUDACC_RTC__"): True,
    ("ifndef", "__CUDACC_RTC__"): False,
    ("ifdef", "__CUDACC__"): True,
    ("ifndef", "__CUDACC__"): False,
    ("if", "!defined(__CUDACC_RTC__)"): False,
    ("if", "defined(__CUDACC_RTC__)"): True,
}


@dataclass(frozen=True)
class Token:
    """A token: `kind` is word, number, string, char or punct; [start, end) are offsets into the text."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Directive:
    """A preprocessor line; `token_index` is the number of tokens before it."""

    name: str
    rest: str
    start: int
    end: int
    token_index: int


@dataclass(frozen=True)
class Lexed:
    """A file cut into tokens and preprocessor lines."""

    tokens: list[Token]
    directives: list[Directive]
    macros: dict[str, str] = field(default_factory=dict)


def _raw_tokens(text: str) -> Iterator[Token | Directive]:
    position, line_start, length = 0, True, len(text)
    while position < length:
        if line_start and (directive := _DIRECTIVE.match(text, position)):
            rest = _LINE_COMMENT.sub(" ", directive["rest"].replace("\\\r\n", " ").replace("\\\n", " "))
            yield Directive(directive["name"], rest.strip(), position, directive.end(), 0)
            position = directive.end()
            continue
        match = _TOKEN.match(text, position)
        if match is None:
            break
        kind = match.lastgroup or "punct"
        if kind == "delimiter":
            kind = "raw"
        if kind == "space":
            line_start = line_start or "\n" in match[0]
        elif kind != "comment":
            line_start = False
            yield Token("string" if kind == "raw" else kind, match[0], position, match.end())
        position = match.end()


def _truth(directive: Directive) -> bool | None:
    return _KNOWN_CONDITIONS.get((directive.name, directive.rest if directive.name != "if" else directive.rest.replace(" ", "")))


def lex(text: str) -> Lexed:
    """Cut CUDA C++ text into tokens, leaving out branches that NVRTC certainly does not see."""
    tokens: list[Token] = []
    directives: list[Directive] = []
    macros: dict[str, str] = {}
    # one entry an open #if: whether the present branch is dead, and whether #else turns that round
    conditions: list[tuple[bool, bool]] = []
    for item in _raw_tokens(text):
        dead = any(is_dead for is_dead, _ in conditions)
        if isinstance(item, Token):
            if not dead:
                tokens.append(item)
            continue
        if item.name in ("if", "ifdef", "ifndef"):
            truth = _truth(item)
            conditions.append((truth is False, truth is not None))
        elif item.name in ("else", "elif") and conditions:
            was_dead, known = conditions[-1]
            conditions[-1] = (known and not was_dead, known) if item.name == "else" or not was_dead else (False, False)
        elif item.name == "endif" and conditions:
            conditions.pop()
        elif item.name == "define" and not dead and (define := _DEFINE.match(item.rest)):
            macros.setdefault(define["name"], define["body"].strip())
        if not dead or item.name in ("if", "ifdef", "ifndef", "else", "elif", "endif"):
            directives.append(Directive(item.name, item.rest, item.start, item.end, len(tokens)))
    return Lexed(tokens, directives, macros)


def macro_words(name: str, macros: Mapping[str, str]) -> frozenset[str]:
    """All words that the macro `name` can expand to, itself included."""
    found: set[str] = set()
    pending = [name]
    while pending:
        word = pending.pop()
        if word in found:
            continue
        found.add(word)
        if word in macros:
            pending.extend(re.findall(r"[^\W\d]\w*", macros[word]))
    return frozenset(found)


def unbalanced(body: str) -> bool:
    """Whether a macro's body opens more braces than it closes, or closes more."""
    return body.count("{") != body.count("}")


def expand_unbalanced(tokens: list[Token], macros: Mapping[str, str]) -> tuple[list[Token], list[int]]:
    """Put the body of macros with unbalanced braces in the place of their names, so that braces can be matched.

    Returns: the tokens, and for each of the old indices (and the end) the new one.
    """
    bodies = {name: list(_raw_tokens(body)) for name, body in macros.items() if unbalanced(body)}
    out: list[Token] = []
    index: list[int] = []
    for token in tokens:
        index.append(len(out))
        if token.kind == "word" and token.text in bodies:
            out.extend(Token(t.kind, t.text, token.start, token.end) for t in bodies[token.text] if isinstance(t, Token))
        else:
            out.append(token)
    index.append(len(out))
    return out, index
