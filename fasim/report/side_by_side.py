"""A simulated launch against what a GPU did with the identical kernel, as data and in its JSON form.

`fasim compare --json` writes one object, the fields of `CompareReport` by name. See `fasim.report.records` for how values are written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from fasim.ptx.contract import Contraction
from fasim.report.bits import CONTRACTED, BitsComparison
from fasim.report.machine_classes import CLASSES
from fasim.report.machine_counts import ComparedOpcode, MachineRow, by_opcode, executed, machine_rows
from fasim.report.match import ADDED, EQUAL, KNOWN, MISMATCH, Items, Match, match_class, operations
from fasim.report.match_items import Figures, figures_of, machine_items, simulated_items
from fasim.report.match_totals import NOISE, ComparedTotal, compare_totals
from fasim.report.measured import Profile
from fasim.sm.result import LaunchResult
from fasim.trace.steps import SourceLines

COMPARE_SCHEMA = "fasim.compare/1"
EXPLAINED = "explained"


@dataclass(frozen=True)
class ComparedRow:
    """The instructions of one class and operation at one place, on both sides; or, if machine code was run, one machine instruction.

    kind: the class, see `machine_classes`. step: as the source names it. path: the line in the kernel and those of the calls that were
    inlined, the last is the innermost. code: the innermost line. simulated_op, measured_op: operations, several joined by `+`; one is
    empty where that side has none. ptx_lines, offsets: the instructions in the PTX and in the machine code. others: the other places
    that take part in what ptxas did, as `path_text` writes them.
    verdict: `equal`, `MISMATCH`, or what ptxas did (`merged`, `split`, `removed`, `added`, `moved`, `predicated`, `changed`,
    `not counted`), of machine code `turns` and `fills`; why: in words. text: the machine instruction, if one was run.
    """

    kind: str
    step: str
    path: tuple[tuple[str, int], ...]
    code: str
    simulated_op: str
    measured_op: str
    ptx_lines: tuple[int, ...]
    offsets: tuple[int, ...]
    simulated: Figures
    measured: Figures
    verdict: str
    why: str
    others: tuple[str, ...] = ()
    text: str = ""

    @property
    def line(self) -> int:
        """The innermost source line, 0 if unknown."""
        return self.path[-1][1] if self.path else 0

    @property
    def works(self) -> bool:
        """Whether it has wavefronts on any side."""
        return bool(self.simulated.wavefronts or self.measured.wavefronts)


@dataclass(frozen=True)
class ComparedLaunch:
    """One launch on both sides.

    accesses: to shared memory, whose wavefronts are compared; instructions: others, of which executions are. Without counters of the GPU
    both are empty, like totals. contractions: what ptxas made one operation of, where outputs depend on it.
    isa: what was simulated; opcodes: executions by opcode, of machine code.
    verdict: `equal`; `explained`, where all that differs is what ptxas changed and noise; or `MISMATCH`, of bits or counts, which alone
    makes exit_code 1.
    """

    name: str
    kernel: str
    options: dict[str, int | str | bool]
    arch: str
    compiler: str
    card: str
    driver: str
    tool: str
    date: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    ctas_share_sm: bool
    outputs: tuple[BitsComparison, ...]
    accesses: tuple[ComparedRow, ...]
    instructions: tuple[ComparedRow, ...]
    totals: tuple[ComparedTotal, ...]
    verdict: str
    exit_code: int
    contractions: tuple[Contraction, ...] = ()
    isa: str = "ptx"
    opcodes: tuple[ComparedOpcode, ...] = ()

    @property
    def comparisons(self) -> list[str]:
        """The verdicts on outputs, rows and totals."""
        return verdicts(self.outputs, (*self.accesses, *self.instructions), self.totals)

    @property
    def changed_lines(self) -> int:
        """Lines with accesses to shared memory that are not as the PTX has them and cost something."""
        return len({row.path or row.ptx_lines for row in self.accesses if row.verdict in KNOWN and row.works})

    @property
    def noise(self) -> int:
        """What arbitration added to the hardware counters of wavefronts."""
        return sum(total.rest for total in self.totals if total.verdict == NOISE and "wavefronts" in total.name)


def verdicts(outputs: Iterable[BitsComparison], rows: Iterable[ComparedRow], totals: Iterable[ComparedTotal]) -> list[str]:
    """One verdict a comparison, in this order."""
    bits = [EQUAL if output.equal else CONTRACTED if output.contracted else MISMATCH for output in outputs]
    return bits + [row.verdict for row in rows] + [total.verdict for total in totals]


def overall(found: Sequence[str]) -> str:
    """The verdict over several comparisons."""
    if MISMATCH in found:
        return MISMATCH
    return EQUAL if all(verdict == EQUAL for verdict in found) else EXPLAINED


@dataclass(frozen=True)
class CompareReport:
    """Launches side by side. verdict: over all. exit_code: 1 if there is a mismatch, else 2 if a recording could not be compared.

    saved: the file with the figure. problems: why recordings could not be compared.
    """

    launches: tuple[ComparedLaunch, ...]
    verdict: str
    exit_code: int
    version: str
    saved: str | None = None
    problems: tuple[str, ...] = ()
    schema: str = field(default=COMPARE_SCHEMA, kw_only=True)


def compare_report(
    launches: Iterable[ComparedLaunch], version: str, saved: str | None = None, problems: Iterable[str] = ()
) -> CompareReport:
    """Several launches as one report."""
    found = tuple(launches)
    verdict = overall([each.verdict for each in found])
    known = tuple(problems)
    return CompareReport(found, verdict, 1 if verdict == MISMATCH else 2 if known else 0, version, saved, known)


@dataclass(frozen=True)
class Origin:
    """Where the two sides of a comparison come from: the name to show, and facts about kernel, card and tools."""

    name: str
    kernel: str = ""
    options: dict[str, int | str | bool] = field(default_factory=dict)
    arch: str = ""
    compiler: str = ""
    card: str = ""
    driver: str = ""
    date: str = ""


def compare_launch(
    origin: Origin,
    result: LaunchResult,
    outputs: Sequence[BitsComparison],
    profile: Profile | None,
    *,
    sms: int = 0,
    lines: SourceLines | None = None,
    contractions: Sequence[Contraction] = (),
    isa: str = "ptx",
) -> ComparedLaunch:
    """Compare a simulated launch with what a GPU did with the same machine code.

    profile: None if only outputs are known. sms: how many SMs the GPU has, 0 for what the profile says. lines: the
    sources, for their text and steps. contractions: what was contracted where outputs are so. isa: what was simulated, "ptx" or "sass".
    Raises: UsageError if machine code was simulated and the profile is of other machine code.
    """
    lines = lines or SourceLines({})
    machine = machine_rows(result, profile) if profile and isa == "sass" else []
    if isa == "sass":
        matches, rows = [row.match for row in machine], [_machine_row(row, lines) for row in machine]
    else:
        matches = match_launch(result, profile) if profile else []
        rows = [row for match in matches for row in _rows(match, lines)]
        rows.sort(key=lambda row: (row.path, row.ptx_lines, row.kind))
        rows = _without_spills(rows)
    shared = {each.name for each in CLASSES if each.shared}
    share = profile is not None and ctas_share_sm(profile.launch, result.grid, sms)
    totals = tuple(compare_totals(result, profile, matches, ctas_share_sm=share)) if profile else ()
    totals = (*executed(machine), *totals)
    verdict = overall(verdicts(outputs, rows, totals))
    return ComparedLaunch(
        origin.name,
        origin.kernel or result.kernel,
        origin.options,
        origin.arch,
        origin.compiler,
        origin.card,
        origin.driver,
        profile.tool if profile else "",
        origin.date,
        result.grid,
        result.block,
        share,
        tuple(outputs),
        tuple(row for row in rows if row.kind in shared),
        tuple(row for row in rows if row.kind not in shared),
        totals,
        verdict,
        int(verdict == MISMATCH),
        tuple(contractions),
        isa,
        tuple(by_opcode(machine)),
    )


def match_launch(result: LaunchResult, profile: Profile) -> list[Match]:
    """PTX and machine instructions of a launch, matched class by class; no matches if the profile has no instructions."""
    if not profile.instructions:
        return []
    ours, theirs = simulated_items(result), machine_items(profile.instructions, result)
    by_line = any(instruction.ptx_line for instruction in profile.instructions)
    found = []
    for each in CLASSES:
        found += match_class([x for x in ours if x.name == each.name], [x for x in theirs if x.name == each.name], by_line=by_line)
    return found


def ctas_share_sm(launch: dict[str, float], grid: tuple[int, int, int], sms: int = 0) -> bool:
    """Whether several CTAs can have been on one SM at a time: there are more than SMs, and room for two.

    launch: ncu's launch statistics. sms: 0 for what these say. A launch of no more CTAs than SMs has one on each. Unknown figures count
    as "they can".
    """
    sms = sms or int(launch.get("launch__sm_count", 0))
    ctas = grid[0] * grid[1] * grid[2]
    limits = [count for name, count in launch.items() if name.startswith("launch__occupancy_limit_")]
    return ctas > max(sms, 1) and min(limits, default=2) > 1


def _rows(match: Match, lines: SourceLines) -> list[ComparedRow]:
    """One row for each place of a match."""
    rows = []
    for place in match.places:
        ours = tuple(x for x in match.simulated if x.key == place)
        theirs = tuple(x for x in match.measured if x.key == place)
        path = (ours or theirs)[0].place
        others = tuple(path_text(other) for other in match.places if other not in (place, ()))
        why = match.why + (f" (with line {', '.join(others)})" if others else "")
        rows.append(
            ComparedRow(
                (ours or theirs)[0].name,
                next((step for file, line in path if (step := lines.step(file, line))), ""),
                path,
                lines.text(*path[-1]) if path else "",
                _ops(ours),
                _ops(theirs),
                tuple(sorted({x.ptx_line for x in ours + theirs})),
                tuple(sorted(x.offset for x in theirs)),
                figures_of(ours),
                figures_of(theirs),
                match.verdict,
                why,
                others,
            )
        )
    return rows


def _machine_row(row: MachineRow, lines: SourceLines) -> ComparedRow:
    """One machine instruction."""
    (ours,), (theirs,) = row.match.simulated, row.match.measured
    return ComparedRow(
        ours.name,
        next((step for file, line in row.place if (step := lines.step(file, line))), ""),
        row.place,
        lines.text(*row.place[-1]) if row.place else "",
        ours.op,
        theirs.op,
        (ours.ptx_line,),
        (row.pc,),
        row.simulated,
        row.measured,
        row.verdict,
        row.why,
        text=row.text,
    )


def _without_spills(rows: Sequence[ComparedRow]) -> list[ComparedRow]:
    """One row for all the registers that ptxas spilled to local memory, and one for those that it filled again."""
    spills: dict[str, list[ComparedRow]] = {}
    others: list[ComparedRow] = []
    for row in rows:
        spilled = row.verdict == ADDED and row.kind in ("local load", "local store")
        (spills.setdefault(row.kind, []) if spilled else others).append(row)
    return others + [_spills(kind, found) for kind, found in spills.items()]


def _spills(kind: str, rows: Sequence[ComparedRow]) -> ComparedRow:
    executions = sum(row.measured.executions for row in rows)
    offsets = tuple(sorted(offset for row in rows for offset in row.offsets))
    lines = len({row.path for row in rows})
    why = f"registers that ptxas spilled to local memory, at {len(offsets)} instructions of {lines} line{'s' * (lines != 1)}"
    return ComparedRow(kind, "", (), "", "", kind, (), offsets, Figures(0, 0, 0), Figures(executions, 0, 0), ADDED, why)


def path_text(path: Sequence[tuple[str, int]]) -> str:
    """The line in the kernel and those inside calls; files are named where they change."""
    shown, file = [], path[0][0] if path else ""
    for name, line in path:
        shown.append(f"{line}" if name == file else f"{os.path.basename(name)}:{line}")
        file = name
    return " > ".join(shown)


def _ops(items: Items) -> str:
    return " + ".join(sorted(op or items[0].text.split()[0] for op in operations(items)))
