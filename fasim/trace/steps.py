"""Steps of an algorithm: a comment line `//@ NAME` in the source names the step that begins below it."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Mapping
from pathlib import Path

from fasim.isa.program import SourceInstruction
from fasim.toolchain.includes import read_source

_MARK = re.compile(r"[ \t]*//@[ \t]*(\S+)[ \t]*")
_FUNCTION_WORDS = frozenset({"__global__", "__device__"})


def step_mark(line: str) -> str:
    """The step that a line marks, "" if it marks none."""
    match = _MARK.fullmatch(line)
    return match[1] if match else ""


def lines_of(text: str) -> list[str]:
    """The lines of a source as a compiler counts them: it does not take form feeds for their ends."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def steps_by_line(text: str) -> list[str]:
    """The step of each line of a CUDA source, "" where there is none; line 1 is the first.

    A step reaches to the next mark, at most to the end of the function that it is in.
    """
    lines = lines_of(text)
    marks = {number: step for number, line in enumerate(lines, 1) if (step := step_mark(line))}
    if not marks:
        return [""] * len(lines)
    ends = _function_ends(text)
    found, step = [], ""
    for number in range(1, len(lines) + 1):
        step = marks.get(number, step)
        found.append(step)
        if number in ends:
            step = ""
    return found


def _function_ends(text: str) -> set[int]:
    """Lines on which the body of a function closes."""
    from fasim.toolchain.cpplex import lex

    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    depth, outside, ends = 0, 0, set()
    for token in lex(text).tokens:
        if token.kind == "word" and token.text in _FUNCTION_WORDS:
            outside = depth
        elif token.text == "{":
            depth += 1
        elif token.text == "}":
            depth -= 1
            if depth <= outside:
                ends.add(bisect_right(starts, token.start))
    return ends


class SourceLines:
    """Lines of the sources that a kernel was made of, with their steps."""

    def __init__(self, texts: Mapping[str, str] | None = None) -> None:
        """texts: sources that need not be read from disk, by path."""
        given = {path: lines_of(text) for path, text in (texts or {}).items()}
        # compilers name a file by its whole path
        self._lines: dict[str, list[str]] = {os.path.abspath(path): lines for path, lines in given.items()} | given
        self._steps: dict[str, list[str]] = {}

    def text(self, file: str, line: int) -> str:
        """A line without the blanks around it, "" if it cannot be read."""
        lines = self._of(file)
        return lines[line - 1].strip() if 1 <= line <= len(lines) else ""

    def lines(self, file: str) -> list[str]:
        """All lines of a file, none if it cannot be read."""
        return self._of(file)

    def step(self, file: str, line: int) -> str:
        """The step that a line belongs to."""
        if file not in self._steps:
            self._steps[file] = steps_by_line("\n".join(self._of(file)))
        steps = self._steps[file]
        return steps[line - 1] if 1 <= line <= len(steps) else ""

    def step_of(self, source: SourceInstruction) -> str:
        """The step of an instruction: that of the outermost call site which has one."""
        return next((step for file, line in call_path(source) if (step := self.step(file, line))), "")

    def _of(self, file: str) -> list[str]:
        if file not in self._lines:
            try:
                self._lines[file] = lines_of(read_source(Path(file)))
            except (OSError, ValueError):  # a null character in the path
                self._lines[file] = []
        return self._lines[file]


def call_path(source: SourceInstruction) -> tuple[tuple[str, int], ...]:
    """Where an instruction stands, from the line in the kernel inwards over the calls that were inlined; empty without lines."""
    return (*reversed(source.inlined_at), (source.file, source.line)) if source.line else ()
