"""Many mnemonics as few patterns: `add.{s16,s32,s64}` stands for three."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable

Pattern = tuple[tuple[str, ...], ...]


def compress(mnemonics: Iterable[str]) -> list[str]:
    """Patterns that stand for exactly these mnemonics, in the order of their first one."""
    names = list(dict.fromkeys(mnemonics))
    order = {name: i for i, name in enumerate(names)}
    patterns: set[Pattern] = {tuple((part,) for part in name.split(".")) for name in names}

    def first(pattern: Pattern) -> int:
        return min(order[name] for name in _names(pattern))

    def merged(position: int) -> set[Pattern]:
        """Patterns that differ at this position only become one."""
        alike: dict[Pattern, list[Pattern]] = defaultdict(list)
        for pattern in patterns:
            if position < len(pattern):
                alike[(*pattern[:position], (), *pattern[position + 1 :])].append(pattern)
        short = {pattern for pattern in patterns if position >= len(pattern)}
        for key, group in alike.items():
            parts = [part for pattern in sorted(group, key=first) for part in pattern[position]]
            short.add((*key[:position], tuple(dict.fromkeys(parts)), *key[position + 1 :]))
        return short

    longest = max((len(pattern) for pattern in patterns), default=0)
    for position in reversed(range(longest)):
        patterns = merged(position)
    return [_text(pattern) for pattern in sorted(patterns, key=first)]


def expand(text: str) -> list[str]:
    """The mnemonics that a pattern stands for."""
    parts = [part[1:-1].split(",") if part.startswith("{") else [part] for part in text.split(".")]
    return [".".join(each) for each in itertools.product(*parts)]


def _names(pattern: Pattern) -> Iterable[str]:
    return (".".join(each) for each in itertools.product(*pattern))


def _text(pattern: Pattern) -> str:
    return ".".join(part[0] if len(part) == 1 else "{" + ",".join(part) + "}" for part in pattern)
