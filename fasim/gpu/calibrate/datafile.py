"""Write a data file of the timing model: what was measured, and the rest from the nearest card's, marked as such."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from fasim.errors import UsageError
from fasim.report.measured import Card

_SECTION = re.compile(r"\[(\w+)\]")
_KEY = re.compile(r"(\w+)\s*=\s*(.*)$")
_TAKEN_OVER = "not measured, as"
#: the section that says how far predictions were from recordings
_ACCURACY = "accuracy"
_HEAD = """\
# What the timing model knows of a card. Cycles are SM clock cycles; intervals are cycles a warp instruction and sub-partition.
# Measured on the card by `fasim gpu calibrate`, but for the keys that say whose they are instead.
"""


@dataclass(frozen=True)
class DataFile:
    """A data file that comes with fasim; text: as it is written."""

    text: str

    @property
    def tables(self) -> dict[str, Any]:
        """Its sections."""
        return tomllib.loads(self.text)

    @property
    def name(self) -> str:
        """The card's name."""
        return str(self.tables["card"]["name"])

    def value(self, key: str) -> float | None:
        """A number by `section.key`; None if there is none."""
        section, _, name = key.partition(".")
        found = self.tables.get(section, {}).get(name)
        return found if isinstance(found, int | float) else None


def known() -> list[DataFile]:
    """The data files that come with fasim."""
    folder = files("fasim.arch") / "gpus"
    return [
        DataFile(path.read_text(encoding="utf-8"))
        for path in sorted(folder.iterdir(), key=lambda path: path.name)
        if path.name.endswith(".toml")
    ]


def nearest(card: Card) -> DataFile:
    """The data file of this card, else of one of its architecture, else of the nearest older one, else of the oldest newer one.

    Raises: UsageError if there is none at all.
    """
    number = int(card.arch.removeprefix("sm_"))
    found = known()
    if not found:
        raise UsageError("fasim has no data file of any card")

    def distance(file: DataFile) -> tuple[bool, bool, int]:
        arch = int(file.tables["card"]["arch"])
        return file.name != card.name, arch > number, abs(arch - number)

    return min(found, key=distance)


def written(near: DataFile, values: Mapping[str, object]) -> str:
    """The nearest file's text with other values; values: by `section.key`, numbers and strings.

    Keys that are not among them say whose they are; what the nearest file does not have is added; its accuracy is not that of another card.
    """
    left = dict(values)
    sections: dict[str, list[str]] = {}
    section = ""
    for line in near.text[near.text.index("[card]") :].splitlines():
        if match := _SECTION.match(line):
            section = match[1]
        elif match := _KEY.match(line):
            line = _assignment(match[1], match[2], left.pop(f"{section}.{match[1]}", None), near.name)
        sections.setdefault(section, []).append(line)
    for key, value in left.items():
        section, _, name = key.partition(".")
        lines = sections.setdefault(section, [f"[{section}]"])
        blank = len(lines) - len("\n".join(lines).rstrip().splitlines())
        lines.insert(len(lines) - blank, f"{name} = {_toml(value)}")
    sections.pop(_ACCURACY, None)
    return _HEAD + "\n" + "\n".join(line for lines in sections.values() for line in lines).rstrip() + "\n"


def _assignment(name: str, rest: str, value: object, whose: str) -> str:
    old, comment = _split(rest)
    if value is None:
        note = f"{_TAKEN_OVER} the {whose}'s"
        return f"{name} = {old}  # {note}; {comment}" if comment else f"{name} = {old}  # {note}"
    return f"{name} = {_toml(value)}" + (f"  # {comment}" if comment else "")


def _split(rest: str) -> tuple[str, str]:
    """Value and comment of what follows `=`; a hash in a string is no comment."""
    quoted = False
    for i, letter in enumerate(rest):
        quoted ^= letter == '"'
        if letter == "#" and not quoted:
            return rest[:i].rstrip(), rest[i + 1 :].strip()
    return rest.rstrip(), ""


def _toml(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, int) and abs(value) >= 100_000:
        return f"{value:_}"
    return repr(value)
