"""Reading NVRTC's log: where each message points, and which messages concern the user."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

_HEAD = re.compile(
    r"^(?:(?P<file>.+?)\((?P<line>\d+)\)|At end of source): (?P<severity>catastrophic error|error|warning|remark|note)"
    r"(?: #(?P<number>\d+)-D)?: (?P<text>.*)$"
)
_BACKTRACE = re.compile(r'at line (\d+)(?: of "?([^"\n]+?)"?)?$', re.MULTILINE)
_TRAILER = re.compile(
    r"^(\d+ (catastrophic )?errors? .*detected in the compilation of .*|Compilation terminated\."
    r"|Remark: The warnings can be suppressed.*)$"
)
# declared but never referenced; macro redefined
_UNREFERENCED, _REDEFINED = "177", "47"


@dataclass(frozen=True)
class Diagnostic:
    """One message with its source line and caret; `column` counts from 0, -1 if unknown."""

    file: str
    line: int
    column: int
    severity: str
    number: str
    text: str
    block: str

    @property
    def is_error(self) -> bool:
        """Whether the message stops the compilation."""
        return "error" in self.severity

    def places(self) -> list[tuple[str, int, int]]:
        """(file, line, column) of the message, then of the instantiations that led there."""
        found = [(self.file, self.line, self.column)]
        for line, file in _BACKTRACE.findall(self.block):
            found.append((file or self.file, int(line), -1))
        return found


def read_log(log: str) -> list[Diagnostic]:
    """The messages of a log, in order; anything that is not a message (ptxas output) is left out."""
    blocks: list[list[str]] = []
    for line in log.splitlines():
        if _HEAD.match(line):
            blocks.append([line])
        elif _TRAILER.match(line) or line.startswith("ptxas "):
            blocks.append([])
        elif blocks and blocks[-1]:
            blocks[-1].append(line)
    return [_diagnostic(block) for block in blocks if block]


def _diagnostic(block: list[str]) -> Diagnostic:
    head = _HEAD.match(block[0])
    assert head is not None
    column = -1
    for above, line in pairwise(block[1:]):
        if line.strip() == "^" and above.startswith("  "):
            column = line.index("^") - 2
            break
    text = "\n".join(block).rstrip()
    return Diagnostic(head["file"] or "", int(head["line"] or 0), column, head["severity"], head["number"] or "", head["text"], text)


def user_warnings(log: str, own_directories: tuple[str, ...], host_code_set_aside: bool) -> list[Diagnostic]:
    """The warnings that nvcc would give too.

    Left out: those inside NVIDIA's and fasim's headers, and, where host code was set aside, complaints that nothing refers to a name.
    """
    kept = []
    for diagnostic in read_log(log):
        ours = diagnostic.file.startswith(own_directories)
        hidden = diagnostic.number == _UNREFERENCED and (host_code_set_aside or diagnostic.text.startswith("function "))
        redefines = diagnostic.number == _REDEFINED and any(directory in diagnostic.text for directory in (*own_directories, "__nv_nvrtc"))
        if not (ours or hidden or redefines or diagnostic.is_error):
            kept.append(diagnostic)
    return kept


def ptxas_lines(log: str) -> list[str]:
    """The lines of ptxas -v, without its own running time, which would differ from run to run."""
    return [line for line in log.splitlines() if line.startswith("ptxas ") and "Compile time" not in line]


def registers(lines: list[str]) -> dict[str, int]:
    """Registers a thread by entry, out of ptxas -v."""
    found: dict[str, int] = {}
    entry = ""
    for line in lines:
        if match := re.search(r"Compiling entry function '([^']+)'", line):
            entry = match[1]
        elif (match := re.search(r"Used (\d+) registers", line)) and entry:
            found[entry] = int(match[1])
    return found
