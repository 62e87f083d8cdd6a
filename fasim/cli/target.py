"""What a command line names: a kernel of the collection, a file, or a recording, in one or several variants."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from fasim.cli import collection, ownfile
from fasim.cli.job import Job
from fasim.cli.run_options import RunOptions
from fasim.errors import UsageError
from fasim.report.option_text import value_text

SOURCE_SUFFIXES = (".cu", ".ptx", ".cuh", ".cpp", ".cc", ".cxx", ".c", ".h", ".hpp")
RECORDING_SUFFIX = ".zip"
_SUFFIXES = (*SOURCE_SUFFIXES, RECORDING_SUFFIX)
_OPENING, _CLOSING = "([{<", ")]}>"


@dataclass(frozen=True)
class Target:
    """The first word that names something to run, whether it is a kernel of the collection, and the other words."""

    name: str
    of_collection: bool
    words: list[str]

    @property
    def is_recording(self) -> bool:
        """Whether it is a recording."""
        return not self.of_collection and self.name.endswith(RECORDING_SUFFIX)


@dataclass(frozen=True)
class Variant:
    """One way to compile and launch the kernel: what distinguishes it from the others, and how to make it ready."""

    label: str
    prepare: Callable[[], Job]


def split_target(words: Sequence[str]) -> Target:
    """What a command is to work on.

    Raises: UsageError for a file that fasim does not read.
    """
    from fasim import kernels

    known = kernels.names()
    for i, word in enumerate(words):
        if word in known or (not word.startswith("-") and word.endswith(_SUFFIXES)):
            return Target(word, word in known, [*words[:i], *words[i + 1 :]])
    if words and not words[0].startswith("-"):
        if Path(words[0]).exists():
            raise UsageError(f"{words[0]!r} is neither a kernel of the collection nor a file that ends in {', '.join(_SUFFIXES)}")
        return Target(words[0], True, list(words[1:]))
    return Target(collection.DEFAULT_KERNEL, True, list(words))


def prepare(words: Sequence[str], options: RunOptions, general: Sequence[str]) -> Job:
    """Make one launch ready.

    Raises: UsageError, CompileError, NotModelled, ToolMissing.
    """
    target = split_target(words)
    if target.is_recording:
        return _recorded(target, options)
    make = collection.prepare if target.of_collection else ownfile.prepare
    return make(target.name, target.words, options, general)


def variants(words: Sequence[str], options: RunOptions, general: Sequence[str]) -> Iterator[Variant]:
    """All variants that lists in options or macros ask for, the last list changes fastest.

    Raises: UsageError.
    """
    target = split_target(words)
    if target.is_recording:
        return iter([Variant("", partial(_recorded, target, options))])
    each = _of_collection if target.of_collection else _of_file
    return each(target.name, target.words, options, general)


def _recorded(target: Target, options: RunOptions) -> Job:
    from fasim.cli.recorded import prepare as prepare_recorded

    if target.words:
        raise UsageError(f"unexpected argument {target.words[0]!r}: recording {target.name} brings all that the launch needs")
    return prepare_recorded(Path(target.name), options)


def _of_collection(name: str, words: Sequence[str], options: RunOptions, general: Sequence[str]) -> Iterator[Variant]:
    from fasim import kernels

    spec = kernels.load(name)
    chosen = collection.parse_variants(spec, words, general)
    for label, each in zip(labels(chosen), chosen):
        yield Variant(label, partial(collection.prepare_variant, spec, each, options))


def _of_file(path: str, words: Sequence[str], options: RunOptions, general: Sequence[str]) -> Iterator[Variant]:
    given = dict(map(ownfile.parse_define, options.defines))
    lists = [split_values(value) if value else [value] for value in given.values()]
    chosen = [dict(zip(given, values)) for values in itertools.product(*lists)]
    for label, defines in zip(labels(chosen), chosen):
        texts = tuple(name if value is None else f"{name}={value}" for name, value in defines.items())
        yield Variant(label, partial(ownfile.prepare, path, words, replace(options, defines=texts), general))


def split_values(text: str) -> list[str]:
    """The values of a macro: separated by commas outside of brackets and quotes, repeated ones once."""
    parts, depth = [""], 0
    for token in re.findall(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|<<|.', text, re.DOTALL):
        depth += (token in _OPENING) - (token in _CLOSING)
        if token == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += token
    return list(dict.fromkeys(part.strip() for part in parts))


def labels(chosen: Sequence[dict[str, Any]]) -> list[str]:
    """What distinguishes the variants: names and values of the options that differ."""
    varying = [name for name in chosen[0] if len({str(each[name]) for each in chosen}) > 1]
    return [" ".join(f"{name}={value_text(each[name])}" for name in varying) for each in chosen]
