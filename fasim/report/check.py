"""What the checks found, for a person: each finding with the source lines, who was concerned, and what to do."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fasim.errors import ExecutionError, Where
from fasim.isa.program import SourceInstruction
from fasim.sm.findings import describe_lanes, own_places
from fasim.sm.result import Hazard

if TYPE_CHECKING:
    from rich.console import Console

CHECK_SCHEMA = "fasim.check/1"
SEVERITIES = ("error", "warning", "note")

#: what a kind of finding is called
TITLES = {
    "RAW": "race: read after write",
    "WAR": "race: write after read",
    "WAW": "race: write after write",
    "copy_not_waited": "asynchronous copy never waited for",
    "uninit_shared": "uninitialised shared memory used",
    "uninit_global": "uninitialised global memory used",
    "uninit_local": "uninitialised local memory used",
    "uninit_lane": "value of a lane that does not take part used",
    "divergent_barrier": "barrier that not all lanes reach",
    "absent_lanes": "lanes named in a mask that do not come",
    "unnamed_lanes": "lanes that their own mask does not name",
    "deadlock": "deadlock",
    "instruction_limit": "kernel that does not end",
    "misaligned": "misaligned access",
    "read_only": "write to read-only memory",
    "trap": "trap",
    "assert": "failed assertion",
    "barrier": "barrier that cannot work",
}
_ROLES = {"RAW": ("writes", "reads"), "WAR": ("reads", "writes"), "WAW": ("writes", "writes")}
#: lines of source around those that a finding names; a gap of up to so many lines is shown, too
_AROUND, _GAP = 1, 6
#: findings of one run that are shown in full
_SHOWN = 40


@dataclass(frozen=True)
class Place:
    """A source line that a finding names, and the PTX instruction there; calls: the lines from which it was inlined, innermost first.

    role: what happens there. who: the warp and its lanes in the first occurrence.
    """

    file: str
    line: int
    ptx: str
    ptx_line: int = 0
    calls: tuple[tuple[str, int], ...] = ()
    role: str = ""
    who: str = ""

    @property
    def chain(self) -> tuple[tuple[str, int], ...]:
        """The line and those of the calls, without the toolkit's headers unless there is nothing else."""
        return own_places(((self.file, self.line), *self.calls))

    @property
    def text(self) -> str:
        """The innermost line of the chain without its indentation, "" if the file cannot be read."""
        file, line = self.chain[0]
        return linecache.getline(file, line).strip() if line else ""


@dataclass(frozen=True)
class Finding:
    """One line of the report: a hazard, or the error that ended the run.

    kind: of the hazard or of the error. times: how many alike there were. ctaid: of the first occurrence.
    """

    kind: str
    severity: str
    message: str
    places: tuple[Place, ...]
    space: str = ""
    scope: str = ""
    words: int = 0
    lanes: int = 0
    word_offsets: tuple[int, ...] = ()
    ctaid: tuple[int, int, int] = (0, 0, 0)
    times: int = 1

    @property
    def title(self) -> str:
        """What this kind of finding is called."""
        if self.kind in TITLES:
            return TITLES[self.kind]
        base, _, space = self.kind.partition("_")
        return f"{space} access out of bounds" if base == "oob" else self.kind.replace("_", " ")


@dataclass(frozen=True)
class CheckReport:
    """One checked run. verdict: "clean", "notes" (nothing but benign ones) or "findings"; exit_code: 1 for findings, else 0.

    error: the type of the exception that ended the run, "" if it came to its end; it is the last of the findings.
    """

    kernel: str
    source: str
    arch: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    checks: str
    findings: list[Finding]
    error: str
    output: str
    seconds: float
    version: str
    verdict: str = field(default="", kw_only=True)
    exit_code: int = field(default=0, kw_only=True)
    schema: str = field(default=CHECK_SCHEMA, kw_only=True)

    def __post_init__(self) -> None:
        harmful = any(finding.severity != "note" for finding in self.findings)
        verdict = "findings" if harmful else "notes" if self.findings else "clean"
        object.__setattr__(self, "verdict", verdict)
        object.__setattr__(self, "exit_code", int(harmful))


def _place(source: SourceInstruction, role: str, who: str) -> Place:
    return Place(source.file, source.line, " ".join(source.text.split()), source.ptx_line, tuple(source.inlined_at), role, who)


def _warp(number: int, lanes: tuple[int, ...]) -> str:
    return f"warp {number}, lane{'s' if len(lanes) != 1 else ''} {describe_lanes(lanes)}" if lanes else ""


def _roles(hazard: Hazard) -> tuple[str, str]:
    if hazard.kind in _ROLES:
        first, second = _ROLES[hazard.kind]
        copies = [source is not None and source.mnemonic.startswith("cp.async") for source in (hazard.first, hazard.second)]
        return "copies" if copies[0] else first, "copies" if copies[1] else second
    if hazard.kind.startswith("uninit"):
        return "reads", f"decides: {hazard.scope}"
    return ("copies", "") if hazard.kind == "copy_not_waited" else ("waits", "waits")


def finding_of(hazard: Hazard) -> Finding:
    """A hazard as a line of the report."""
    first, second = _roles(hazard)
    who = _warp(hazard.first_warp, hazard.first_lanes), _warp(hazard.second_warp, hazard.second_lanes)
    places = [_place(hazard.first, first, who[0])]
    if hazard.second is not None:
        places.append(_place(hazard.second, second, who[1]))
    return Finding(
        hazard.kind, hazard.severity, hazard.text, tuple(places), hazard.space, hazard.scope, hazard.words, hazard.lanes,
        hazard.word_offsets, hazard.ctaid,
    )  # fmt: skip


def finding_of_error(error: ExecutionError) -> Finding:
    """The error that ended a run as a line of the report."""
    details, where = error.details, error.where
    kind = str(details.get("kind") or type(error).__name__)
    places = [_waiting(entry) for entry in details.get("waiting", ())] or ([_where(where)] if where.file or where.text else [])
    return Finding(
        kind, "error", str(error), tuple(dict.fromkeys(places)), str(details.get("space", "")), "", 0, int(details.get("lanes", 0) or 0),
        (), where.ctaid,
    )  # fmt: skip


def _waiting(entry: dict[str, Any]) -> Place:
    who = _warp(entry["warp"], tuple(entry["lanes"]))
    return Place(entry["file"], entry["line"], entry["text"], 0, (), f"waits for {entry['for']}", who)


def _where(where: Where) -> Place:
    return Place(
        where.file, where.line, " ".join(where.text.split()), where.ptx_line, where.inlined_at, "stops", _warp(where.warp, where.lanes)
    )


def findings(hazards: Iterable[Hazard], error: ExecutionError | None = None) -> list[Finding]:
    """All findings of a run, errors first; those that name the same lines for the same reason become one."""
    found: dict[tuple[Any, ...], Finding] = {}
    for finding in map(finding_of, hazards):
        key = (finding.kind, finding.severity, finding.scope, *((p.file, p.line or -p.ptx_line, p.calls) for p in finding.places))
        known = found.get(key)
        if known is None:
            found[key] = finding
            continue
        offsets = tuple(sorted({*known.word_offsets, *finding.word_offsets}))
        words = len(offsets) if offsets else known.words + finding.words
        found[key] = replace(known, words=words, word_offsets=offsets, lanes=known.lanes + finding.lanes, times=known.times + finding.times)
    ordered = sorted(found.values(), key=lambda finding: SEVERITIES.index(finding.severity))
    return [*ordered, *([finding_of_error(error)] if error is not None else [])]


# --- the terminal ------------------------------------------------------------------------------------------------------------------


def print_report(report: CheckReport, console: Console) -> None:
    """Print a report on a rich console."""
    from rich.text import Text

    for finding in report.findings[:_SHOWN]:
        for line in _lines(finding):
            console.print(line, soft_wrap=True)
        console.print()
    if len(report.findings) > _SHOWN:
        console.print(f"... and {len(report.findings) - _SHOWN} more (all of them: --json or --sarif)\n")
    console.print(Text(summary(report), "bold green" if report.verdict == "clean" else "bold"), soft_wrap=True)


def summary(report: CheckReport) -> str:
    """The verdict in one line."""
    counts = [(sum(f.severity == severity for f in report.findings), severity) for severity in SEVERITIES]
    parts = [f"{count} {severity}{'s' if count != 1 else ''}" for count, severity in counts if count]
    checks = "" if report.checks == "all" else f" (checked: {report.checks})"
    text = f"{report.kernel}: {', '.join(parts) if parts else 'no hazards'}{checks}"
    return text + (", the run did not come to its end" if report.error else "")


def _lines(finding: Finding) -> list[Any]:
    """A finding as lines of rich text."""
    from rich.text import Text

    style = {"error": "bold red", "warning": "bold yellow", "note": "bold cyan"}[finding.severity]
    lines = [Text.assemble((f"{finding.severity}: ", style), (finding.title, "bold"))]
    lines += [Text(f"  {line}") for line in finding.message.splitlines()]
    lines += _excerpts(finding.places)
    facts = []
    if finding.words:
        facts.append(f"{finding.words} word{'s' if finding.words != 1 else ''} of {finding.space} memory{_offsets(finding.word_offsets)}")
    if finding.lanes and finding.kind not in _ROLES:
        facts.append(f"{finding.lanes} lane execution{'s' if finding.lanes != 1 else ''}")
    if finding.times > 1:
        facts.append(f"{finding.times} pairs of instructions")
    facts.append(f"first in CTA {finding.ctaid}")
    return [*lines, Text("  " + ", ".join(facts), "dim")]


def _offsets(offsets: Sequence[int]) -> str:
    """Byte offsets as ranges of words: ` at byte 0-255, 512`."""
    ranges: list[list[int]] = []
    for offset in offsets:
        if ranges and offset == ranges[-1][1] + 4:
            ranges[-1][1] = offset
        else:
            ranges.append([offset, offset])
    shown = ", ".join(str(a) if a == b else f"{a}-{b + 3}" for a, b in ranges[:4])
    return f" at byte {shown}{', ...' if len(ranges) > 4 else ''}" if shown else ""


def _excerpts(places: Sequence[Place]) -> list[Any]:
    """The source around the lines, each line once; the PTX where there is no source."""
    from rich.text import Text

    lines: list[Any] = []
    marked: dict[str, dict[int, list[str]]] = {}
    for place in places:
        note = " ".join(part for part in (place.role, f"({place.who})" if place.who else "") if part)
        if place.text:
            for i, (file, line) in enumerate(place.chain):
                marked.setdefault(file, {}).setdefault(line, []).append("" if i else note)
        else:
            at = f"{place.file}:{place.line}" if place.line else f"PTX line {place.ptx_line}" if place.ptx_line else place.file
            lines.append(Text(f"    {at}  `{place.ptx}`  {note}"))
    for file, notes in marked.items():
        lines.append(Text(f"  --> {relative(file)}", "blue"))
        lines += _excerpt(file, notes)
    return lines


def _excerpt(file: str, notes: dict[int, list[str]]) -> list[Any]:
    from rich.text import Text

    named = sorted(notes)
    shown: set[int] = set()
    for number, following in zip(named, [*named[1:], named[-1]]):
        shown |= set(range(number - _AROUND, number + _AROUND + 1))
        if following - number <= _GAP:
            shown |= set(range(number, following))
    lines, previous = [], 0
    for number in sorted(shown):
        text = linecache.getline(file, number).rstrip()
        if number < 1 or not linecache.getline(file, number):
            continue
        if previous and number > previous + 1:
            lines.append(Text("       ...", "dim"))
        previous = number
        here = number in notes
        lines.append(Text(f"  {'>' if here else ' '} {number:>4} | {text}", "" if here else "dim"))
        for note in dict.fromkeys(notes.get(number, ())):
            if note:
                indent = len(text) - len(text.lstrip())
                lines.append(Text(f"         | {' ' * indent}^ {note}", "yellow"))
    return lines


def relative(file: str) -> str:
    """A path from the working directory if it is below that."""
    try:
        shown = os.path.relpath(file)
    except ValueError:
        return file
    return file if shown.startswith("..") else shown
