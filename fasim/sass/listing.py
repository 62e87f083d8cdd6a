"""The machine code of a kernel as nvdisasm prints it, each instruction with the PTX line and the source lines that it was made from."""

from __future__ import annotations

import functools
import hashlib
import json
import re
import subprocess
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from fasim.errors import FasimError, UsageError
from fasim.toolchain.cache import cached
from fasim.toolchain.tools import find_tool

Place = tuple[tuple[str, int], ...]

#: -ndf: branch targets of jump tables are not worked out, which nvdisasm cannot do for every cubin, and which is not printed here anyway
_OPTIONS = ("-c", "-gi", "-gp", "-ndf", "-hex")
_TIMEOUT_SECONDS = 300
#: the name under which nvdisasm speaks of the PTX inside the cubin
_PTX = ".nv_debug_ptx_txt"

_SECTION = re.compile(r'\s*\.section\s+"?([^",]+)"?')
_FUNCTION = re.compile(r"\s*\.type\s+.*,\s*@function")
_ANNOTATION = re.compile(r'\s*//## File "(.*?)", line (\d+)(?: inlined at "(.*)", line (\d+))?\s*$')
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,})\*/\s*(.*?)\s*;\s*(?:/\* 0x([0-9a-f]{16}) \*/)?\s*$")
_UPPER_HALF = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*$")
_LABEL = re.compile(r"([.$\w]+):\s*$")
_INSTRUCTION_START = re.compile(r"\s*/\*[0-9a-f]{4,}\*/")
_COMMENT = re.compile(r"\(\*.*?\*\)")


@dataclass(frozen=True)
class SassLine:
    """One instruction of the machine code.

    offset: bytes from the beginning of the kernel. text: as nvdisasm prints it, one blank between words, without the semicolon.
    ptx_line: line of the PTX that was compiled together with this cubin, 0 if unknown.
    place: source line, then the calls that were inlined, innermost first; empty if unknown. encoding: its 128 bits, 0 if unknown.
    """

    offset: int
    text: str
    ptx_line: int = 0
    place: Place = ()
    encoding: int = field(default=0, compare=False)


@dataclass
class Section:
    """The instructions of a code section, and the byte offset of each label in it."""

    lines: list[SassLine] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)


def listing(cubin: bytes, entry: str) -> tuple[SassLine, ...]:
    """The instructions of a kernel's section `.text.ENTRY`, with the padding behind its end.

    entry: the mangled name. ptxas puts a copy of each function that is called and not inlined, and its own subroutines (divisions and
    square roots off the fast path), behind the kernel in the same section, so they are in the listing. Outside of it are only functions of
    the driver, such as vprintf.
    Its own subroutines come from no line of the source: they have no place and no PTX line. ncu shows them at the last line before them.
    Raises: ToolMissing if there is no nvdisasm; FasimError if it refuses the cubin; UsageError if the cubin has no such kernel.
    """
    return tuple(section(cubin, entry).lines)


def section(cubin: bytes, entry: str) -> Section:
    """The same with the labels of the section: branch targets, and the functions in it.

    Raises: as `listing`.
    """
    found = json.loads(cached(_key(cubin), ".sass", lambda: _disassembled(cubin)))
    if entry not in found:
        raise UsageError(f"the cubin has no kernel {entry!r}; there are: {', '.join(found) or 'none'}")
    lines = [
        SassLine(offset, text, ptx, tuple((file, line) for file, line in place), int(encoding, 16))
        for offset, text, ptx, place, encoding in found[entry]["lines"]
    ]
    return Section(lines, found[entry]["labels"])


def nvdisasm_version() -> str:
    """The disassembler's own version, for example `V13.0.85`.

    Raises: ToolMissing if there is no nvdisasm; FasimError if it does not run.
    """
    tool = find_tool("nvdisasm")
    return _version(tool, Path(tool).stat().st_size)


@functools.cache
def _version(tool: str, size: int) -> str:
    text = _run([tool, "--version"])
    found = re.search(r"\bV\d[\d.]*", text)
    return found[0] if found else f"{size} bytes"


@functools.cache
def _own_digest() -> str:
    return hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


def _key(cubin: bytes) -> str:
    tool = find_tool("nvdisasm")
    parts = (hashlib.sha256(cubin).hexdigest(), tool, nvdisasm_version(), str(Path(tool).stat().st_size), _own_digest())
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _disassembled(cubin: bytes) -> bytes:
    tool = find_tool("nvdisasm")
    # not NamedTemporaryFile: Windows does not let a second process open that
    with tempfile.TemporaryDirectory(prefix="fasim-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        text = _run([tool, *_OPTIONS, str(path)])
    sections = parse(text.splitlines())
    shown = {
        name: {"lines": [(x.offset, x.text, x.ptx_line, x.place, f"{x.encoding:x}") for x in each.lines], "labels": each.labels}
        for name, each in sections.items()
    }
    return json.dumps(shown).encode()


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="surrogateescape", timeout=_TIMEOUT_SECONDS, check=False)
    except OSError as error:
        raise FasimError(f"{command[0]} cannot be started: {error.strerror}") from error
    except subprocess.TimeoutExpired as error:
        raise FasimError(f"{command[0]} did not end within {_TIMEOUT_SECONDS} s") from error
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise FasimError(f"{command[0]} refused the cubin (exit code {done.returncode}): {said or 'it gives no reason'}")
    return done.stdout


def parse(lines: Iterable[str]) -> dict[str, Section]:
    """What nvdisasm printed with -c -gi -gp -hex, by the names of the code sections without `.text.`.

    An annotation is printed where its value changes and holds until the next one of its kind, the source line and the PTX line each for
    themselves. A place is a run of annotations: each names the call that it was inlined at, the next one is that call.
    """
    found: dict[str, Section] = {}
    section: Section | None = None
    ptx_line, chain = 0, _Chain()
    for line in lines:
        if match := _INSTRUCTION.match(line):
            if section is not None:
                text = " ".join(_COMMENT.sub("", match[2]).split())
                section.lines.append(SassLine(int(match[1], 16), text, ptx_line, chain.place(), int(match[3] or "0", 16)))
        elif match := _UPPER_HALF.match(line):
            if section is not None and section.lines:
                last = section.lines[-1]
                section.lines[-1] = replace(last, encoding=last.encoding | int(match[1], 16) << 64)
        elif _INSTRUCTION_START.match(line):
            raise FasimError(f"this line of nvdisasm's is not understood: {line.strip()!r}")
        elif match := _ANNOTATION.match(line):
            if match[1] == _PTX:
                ptx_line = int(match[2])
            else:
                chain.add((match[1], int(match[2])), (match[3], int(match[4])) if match[3] is not None else None)
        elif match := _SECTION.match(line):
            name = match[1]
            section = found.setdefault(name.removeprefix(".text."), Section()) if name.startswith(".text.") else None
            ptx_line, chain = 0, _Chain()
        elif _FUNCTION.match(line):
            ptx_line, chain = 0, _Chain()
        elif (match := _LABEL.match(line)) and section is not None:
            section.labels[match[1]] = section.lines[-1].offset + 16 if section.lines else 0
    return found


class _Chain:
    """The source line in force and the calls that it was inlined at."""

    def __init__(self) -> None:
        self._links: list[tuple[str, int]] = []
        self._next: tuple[str, int] | None = None

    def add(self, at: tuple[str, int], inlined_at: tuple[str, int] | None) -> None:
        if self._next is None or self._next != at:
            self._links = []
        self._links.append(at)
        self._next = inlined_at

    def place(self) -> Place:
        return (*self._links, self._next) if self._next else tuple(self._links)
