"""The user's own headers that a source file includes: for the cache key, and for setting host code in them aside."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include(?:_next)?[ \t]*(?:"(?P<quoted>[^"\n]+)"|<(?P<angled>[^>\n]+)>|(?P<macro>\w+))', re.MULTILINE)
_NAME_MACRO = re.compile(r'^[ \t]*#[ \t]*define[ \t]+(\w+)[ \t]+(?:"([^"\n]+)"|<([^>\n]+)>)', re.MULTILINE)


@dataclass
class UserHeaders:
    """Headers found in the user's directories: path to text, name as included to path, and names that were not found there.

    aliases: further names of renamed headers, to the path that each leads to.
    """

    texts: dict[Path, str] = field(default_factory=dict)
    by_name: dict[str, Path] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    aliases: dict[str, str] = field(default_factory=dict)


def read_source(path: Path) -> str:
    """The text of a source file; bytes that are not UTF-8 survive, line ends become `\\n`."""
    text = path.read_bytes().decode("utf-8-sig", "surrogateescape")
    return text.replace("\r\n", "\n")


def find_headers(text: str, directory: Path, include_dirs: Sequence[Path], macros: dict[str, str]) -> UserHeaders:
    """All headers that `text` includes, directly or not, out of its own directory and `include_dirs`.

    Conditions are not evaluated, so that this is a superset of what one compilation reads.
    """
    found = UserHeaders()
    names = {name: value.strip('"<>') for name, value in macros.items()}
    pending = [(text, directory)]
    while pending:
        body, base = pending.pop()
        if "#" not in body:
            continue
        for name, quoted, angled in _NAME_MACRO.findall(body):
            names.setdefault(name, quoted or angled)
        for match in INCLUDE.finditer(body):
            name = match["quoted"] or match["angled"] or names.get(match["macro"], "")
            path = search(name, base, directory, include_dirs, angled=bool(match["angled"])) if name else None
            if path is None:
                found.absent.add(name)
                continue
            found.by_name.setdefault(name, path)
            if path not in found.texts:
                found.texts[path] = read_source(path)
                pending.append((found.texts[path], path.parent))
    return found


def search(name: str, base: Path, directory: Path, include_dirs: Sequence[Path], *, angled: bool) -> Path | None:
    """The file that an include in a file of the directory `base` means; `directory` is that of the source file."""
    for place in [*include_dirs, directory] if angled else [base, *include_dirs, directory]:
        path = place / name
        if path.is_file():
            return path
    return None
