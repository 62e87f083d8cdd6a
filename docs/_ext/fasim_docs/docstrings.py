"""Reading the docstrings of fasim: some sentences, then `name: what it is` for arguments and fields, `Returns:`, `Raises:`, `Source:`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

_HEADINGS = ("Returns", "Raises", "Source")
_LABEL = re.compile(r"(?:(?<=^)|(?<=[.;:] )|(?<=\n))((?:\w+)(?:, \w+| and \w+)*): ", re.MULTILINE)
_CODE = re.compile(r"(`[^`]+`)")


@dataclass(frozen=True)
class Described:
    """A docstring in its parts: text, what it says of names (one or several together), and the headings that it has."""

    text: str
    names: dict[tuple[str, ...], str]
    headings: dict[str, str]

    def of(self, name: str) -> str:
        """What it says of one name."""
        return next((text for names, text in self.names.items() if name in names), "")


def names_of(item: Any) -> list[str]:
    """The arguments of a function, the fields of a dataclass, the arguments of another class."""
    if dataclasses.is_dataclass(item):
        return [field.name for field in dataclasses.fields(item)] + [name for name, _ in inspect.getmembers(item, _is_property)]
    try:
        return list(inspect.signature(item).parameters)
    except (TypeError, ValueError):
        return []


def describe(docstring: str, names: Iterable[str]) -> Described:
    """Take a docstring apart; only labels that are among `names` count."""
    known, docstring = set(names), inspect.cleandoc(docstring)
    marks = [match for match in _LABEL.finditer(docstring) if _is_label(match[1], known)]
    ends = [*(match.start() for match in marks[1:]), len(docstring)]
    text = docstring[: marks[0].start()] if marks else docstring
    described, headings = {}, {}
    for match, end in zip(marks, ends):
        part = one_line(docstring[match.end() : end]).rstrip(";")
        if match[1] in _HEADINGS:
            headings[match[1]] = part
        else:
            described[tuple(_split(match[1]))] = part
    return Described(text.strip(), described, headings)


def one_line(text: str) -> str:
    """Text without line breaks."""
    return " ".join(text.split())


def fields_to_rst(item: Any) -> list[str]:
    """A dataclass as reStructuredText: what it is, and its fields with their types."""
    found = describe(item.__doc__ or "", names_of(item))
    lines = [found.text, ""]
    for field in dataclasses.fields(item):
        text = found.of(field.name)
        lines.append(f"- `{field.name}`: `{field.type}`" + (f"; {text}" if text else ""))
    return _finished(lines)


def to_rst(docstring: str, names: Iterable[str]) -> list[str]:
    """The lines of a docstring as reStructuredText."""
    found = describe(docstring, names)
    lines = [found.text, ""]
    for labels, text in found.names.items():
        lines.append(f"- {', '.join(f'`{label}`' for label in labels)}: {text}")
    for heading, text in found.headings.items():
        lines += ["", f"{heading}: {text}"]
    return _finished(lines)


def _finished(lines: list[str]) -> list[str]:
    return [*"".join(map(_rst, _CODE.split("\n".join(lines)))).splitlines(), ""]


def _rst(part: str) -> str:
    """What we write as code, reStructuredText writes with two backticks; elsewhere it reads marks that we do not mean."""
    return f"`{part}`" if _CODE.fullmatch(part) else re.sub(r"([*|\\])", r"\\\1", part)


def _split(label: str) -> list[str]:
    return re.split(r", | and ", label)


def _is_label(label: str, known: set[str]) -> bool:
    return label in _HEADINGS or all(name in known for name in _split(label))


def _is_property(item: object) -> bool:
    return isinstance(item, property)
