"""Commands and their output in the pages: run again, compared, and written anew.

A `console` block holds commands (`$ `, continued by `> `) and what they print. In what a page shows

* a line `...` stands for any number of lines, `...` within a line for any text;
* `/home/me` is the directory in which the page's commands run; blocks with a caption are files in it, as are `recordings` and `tests`;
* figures do not count in lines that begin with `time`, `instructions` or `grid x block`, or with a count and a share in percent, nor
  where they are the compiler's version, seconds, or numbers of PTX registers and lines.

`python docs/_ext/fasim_docs/examples.py PAGE...` writes the output of all blocks anew that no longer agree.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2]
ROOT = DOCS.parent
SHOWN_HOME = "/home/me"
COLUMNS = 100

_BLOCK = re.compile(r"^```(\{[\w-]+\} )?(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CAPTION = re.compile(r"(?::\w+: .*\n)*?:caption: (\S+)\n(?::\w+: .*\n)*\n?")
_END = "@@@ end of a command"
_BUG = "This is a bug in fasim."
_FIRST_START = "compiling the machine, once: "
_ANY_FIGURES = re.compile(r"(time|instructions|grid x block|saved) | *[\d,]+ +\d+\.\d% ")
_FIGURES = re.compile(r"\d[\d,]*(\.\d+)?")
_LOOSE = (
    (re.compile(r"NVRTC \d+\.\d+"), "NVRTC"),
    (re.compile(r"%([a-z]+)\d+"), r"%\1"),
    (re.compile(r"\.ptx:\d+"), ".ptx"),
    (re.compile(r"\b\d+(\.\d+)? ?s\b"), "s"),
    (re.compile(r"\bworkers?\b"), "workers"),
    (re.compile(r"[ \t]+"), " "),
)


@dataclass(frozen=True)
class Command:
    """A command as bash gets it, as the page shows it, and what the page says that it prints."""

    text: str
    shown: str
    output: str


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, its caption if that names a file, its text, and where it stands."""

    language: str
    file: str
    text: str
    start: int
    end: int
    line: int


def blocks(page: str) -> list[Block]:
    """All fenced blocks of a page."""
    found = []
    for match in _BLOCK.finditer(page):
        text, file = match[3], ""
        caption = _CAPTION.match(text)
        if match[1] and caption:
            text, file = text[caption.end() :], caption[1]
        found.append(Block(match[2], file, text, match.start(3), match.end(3), page[: match.start()].count("\n") + 1))
    return found


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
    shown: list[str] = []
    output: list[str] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if shown:
                yield _command(shown, output)
            shown, output = [line], []
        elif line.startswith("> ") and not output:
            shown.append(line)
        else:
            output.append(line)
    if shown:
        yield _command(shown, output)


def _command(shown: list[str], output: list[str]) -> Command:
    return Command("\n".join(line[2:] for line in shown), "\n".join(shown), "\n".join(output))


def prepare(page: str, home: Path) -> None:
    """Put the files of a page into the directory in which its commands run."""
    for name in ("recordings", "tests"):
        (home / name).symlink_to(ROOT / name)
    for block in blocks(page):
        if block.file:
            path = home / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)


def run(block: Block, home: Path) -> list[tuple[Command, str]]:
    """Run the commands of a block in one shell.

    Returns: each with what it printed, stdout and stderr together.
    """
    listed = list(commands(block))
    script = "".join(f"{command.text}\n__code=$?; echo; echo '{_END}'; (exit $__code)\n" for command in listed)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    # PWD, so that bash and what it starts call the directory as we do
    environment = {**os.environ, "PATH": path, "COLUMNS": str(COLUMNS), "PWD": str(home), "NO_COLOR": "1", "PY_COLORS": "0"}
    for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_CURRENT_TEST"):
        environment.pop(name, None)
    done = subprocess.run(
        ["bash", "-c", "exec 2>&1\n" + script], cwd=home, env=environment, stdout=subprocess.PIPE, text=True, timeout=300, check=False
    )
    outputs = done.stdout.replace(str(home), SHOWN_HOME).split(f"\n{_END}\n")
    return [(command, _tidy(output)) for command, output in zip(listed, outputs, strict=False)]


def _tidy(output: str) -> str:
    """Without blanks at ends of lines, and without what the first start of all says."""
    lines = [line.rstrip() for line in output.splitlines() if not line.startswith(_FIRST_START)]
    return "\n".join(lines).strip("\n")


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what a command printed."""
    pattern = []
    for line in _tidy(shown).splitlines():
        if line == "...":
            pattern.append(r"(?:.*\n)*?")
        else:
            pattern.append(".*".join(re.escape(part) for part in _loose(line).split("...")) + r"\n")
    text = "".join(_loose(line) + "\n" for line in _tidy(printed).splitlines())
    return re.fullmatch("".join(pattern), text) is not None


def _loose(line: str) -> str:
    if _ANY_FIGURES.match(line):
        line = _FIGURES.sub("#", line)
    for pattern, replacement in _LOOSE:
        line = pattern.sub(replacement, line)
    return line.rstrip()


def rewrite(path: Path) -> int:
    """Write the output of the commands of a page anew where it does not agree.

    Returns: how many blocks changed. Raises: RuntimeError for a command that shows a bug in fasim.
    """
    page, changed = path.read_text(), 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve()
        prepare(page, home)
        replaced = []
        for block in blocks(page):
            if block.language == "console":
                results = run(block, home)
                for command, printed in results:
                    if _BUG in printed:
                        raise RuntimeError(f"{path}:{block.line}: {command.text}\n{printed}")
                if not all(agrees(command.output, printed) for command, printed in results):
                    parts = [part for command, printed in results for part in (command.shown, printed) if part]
                    replaced.append((block, "\n".join(parts) + "\n"))
        for block, text in reversed(replaced):
            page, changed = page[: block.start] + text + page[block.end :], changed + 1
    path.write_text(page)
    return changed


if __name__ == "__main__":
    for each in map(Path, sys.argv[1:]):
        print(each, rewrite(each))
