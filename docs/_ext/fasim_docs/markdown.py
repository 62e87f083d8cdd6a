"""Markdown from text that is none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_CODE = re.compile(r"(`[^`]+`)")
_SPECIAL = re.compile(r"([\\*_<>\[\]{}$#~|])")


def prose(text: str) -> str:
    """A sentence, with its code in backticks kept."""
    parts = _CODE.split(text)
    return "".join(code(part[1:-1]) if _CODE.fullmatch(part) else _SPECIAL.sub(r"\\\1", part) for part in parts)


def code(text: str) -> str:
    """A code span, also within a table."""
    return "`" + text.replace("|", r"\|") + "`"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown on one line."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"
