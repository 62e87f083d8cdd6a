"""A run of machine code against a recording of the same machine code: executions and shared wavefronts, instruction by instruction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fasim.errors import UsageError
from fasim.report import ncu_conditions
from fasim.report.match import EQUAL, FILLS, MISMATCH, NOT_COUNTED, TURNS, Item, Match, Place
from fasim.report.match_items import Figures, figures_of, machine_pair
from fasim.report.match_totals import EXPLAINED, ComparedTotal
from fasim.report.measured import MachineInstruction, Profile
from fasim.sm.result import LaunchResult, SharedAccess

#: opcodes of atomics, and what makes one that is repeated until it succeeds: compare-and-swap, and an exchange whose result is looked at
_ATOMICS, _SWAPS, _EXCHANGE, _UNUSED = frozenset({"ATOM", "ATOMS", "ATOMG"}), frozenset({"CAS", "CAST"}), "EXCH", " RZ,"
#: loads that see what others write: one may be repeated until somebody wrote
_LOADS, _STRONG = frozenset({"LD", "LDG"}), "STRONG"


@dataclass(frozen=True)
class MachineRow:
    """One machine instruction on both sides.

    pc: bytes from the beginning of the kernel. text: as nvdisasm prints it. place: from the line in the kernel inwards, empty if unknown.
    verdict: `equal`, `MISMATCH`, or what accounts for the difference (`turns`, `fills`, `not counted`); why: in words.
    match: the same with all that is known of it.
    """

    pc: int
    text: str
    opcode: str
    place: Place
    simulated: Figures
    measured: Figures
    verdict: str
    why: str
    match: Match

    @property
    def line(self) -> int:
        """The innermost source line, 0 if unknown."""
        return self.place[-1][1] if self.place else 0


@dataclass(frozen=True)
class ComparedOpcode:
    """Executions of all instructions with an opcode (without modifiers: `LDS`), as `sass__inst_executed_per_opcode` has them."""

    opcode: str
    simulated: int
    measured: int
    verdict: str


def machine_rows(result: LaunchResult, profile: Profile) -> list[MachineRow]:
    """The instructions that either side executed, in the order of the machine code; none if the profile has no instructions.

    result: of a run with isa="sass". Raises: UsageError if the profile is of other machine code.
    """
    if not profile.instructions:
        return []
    _check_same(result, profile.instructions)
    # alike instructions are equal, so they are told apart by identity
    accesses = {id(access.source): access for access in result.shared_accesses}
    take_turns = any(_may_repeat(instruction) for instruction in profile.instructions)
    rows = []
    for count, instruction in zip(result.counts, profile.instructions, strict=True):
        if not count.executions and not instruction.executions:
            continue
        access = accesses.get(id(count.source))
        ours, theirs = machine_pair(count, access, instruction)
        verdict, why = _decide(ours, theirs, access, turns=take_turns and _is_apart(instruction))
        match, sides = Match((ours,), (theirs,), verdict, why), (figures_of((ours,)), figures_of((theirs,)))
        rows.append(MachineRow(instruction.offset, instruction.text, instruction.opcode, ours.place, *sides, verdict, why, match))
    return rows


def executed(rows: Sequence[MachineRow]) -> Iterator[ComparedTotal]:
    """Executions of all instructions, as ncu's `inst_executed` has them; nothing without rows."""
    if not rows:
        return
    ours, theirs = sum(row.simulated.executions for row in rows), sum(row.measured.executions for row in rows)
    changed = [row for row in rows if row.simulated.executions != row.measured.executions]
    known = sum(row.measured.executions - row.simulated.executions for row in changed if row.verdict != MISMATCH)
    rest = theirs - ours - known
    lines = sum(row.verdict != MISMATCH for row in changed)
    verdict = MISMATCH if rest else EXPLAINED if known else EQUAL
    why = f"by {lines} instruction{'s' * (lines != 1)} shown above" if known else ""
    yield ComparedTotal("inst_executed", ours, theirs, known, rest, lines, verdict, why)


def by_opcode(rows: Iterable[MachineRow]) -> list[ComparedOpcode]:
    """Executions by opcode, most frequent first; the verdict is the worst of the instructions where the sums differ."""
    ours, theirs = Counter[str](), Counter[str]()
    verdicts: dict[str, set[str]] = {}
    for row in rows:
        opcode = row.opcode.split(".")[0]
        ours[opcode] += row.simulated.executions
        theirs[opcode] += row.measured.executions
        if row.simulated.executions != row.measured.executions:
            verdicts.setdefault(opcode, set()).add(row.verdict)
    found = []
    for opcode in sorted(theirs, key=lambda each: (-theirs[each], each)):
        different = verdicts.get(opcode, set()) if ours[opcode] != theirs[opcode] else set()
        verdict = MISMATCH if MISMATCH in different else min(different, default=EQUAL)
        found.append(ComparedOpcode(opcode, ours[opcode], theirs[opcode], verdict))
    return found


def _check_same(result: LaunchResult, instructions: Sequence[MachineInstruction]) -> None:
    ours, theirs = [count.source.text for count in result.counts], [instruction.text for instruction in instructions]
    if ours == theirs:
        return
    what = f"the profile is of other machine code than the run of {result.kernel}"
    if len(ours) != len(theirs):
        raise UsageError(f"{what}: it has {len(theirs)} instructions, the run {len(ours)}")
    at = next(number for number, (mine, other) in enumerate(zip(ours, theirs)) if mine != other)
    raise UsageError(f"{what}: at {instructions[at].offset:#x} it has {theirs[at]!r}, the run {ours[at]!r}")


def _may_repeat(instruction: MachineInstruction) -> bool:
    """Whether it was executed, and may wait for others, so that how often depends on who wins."""
    head, *modifiers = instruction.opcode.split(".")
    if not instruction.executions:
        return False
    if head in _LOADS:
        return _STRONG in modifiers
    return head in _ATOMICS and (bool(_SWAPS & set(modifiers)) or (_EXCHANGE in modifiers and _UNUSED not in instruction.text))


def _is_apart(instruction: MachineInstruction) -> bool:
    """Whether lanes of a warp went different ways: a warp that is whole comes by as often whoever wins."""
    return instruction.threads < 32 * instruction.executions


def _decide(ours: Item, theirs: Item, access: SharedAccess | None, *, turns: bool) -> tuple[str, str]:
    """The verdict on one instruction, and its reason; turns: how often it is executed may depend on who wins."""
    costs_equal = (ours.wavefronts, ours.ideal) == (theirs.wavefronts, theirs.ideal)
    if ours.executions == theirs.executions and costs_equal:
        return EQUAL, ""
    if ours.executions == theirs.executions and ncu_conditions.explains((ours,), (theirs,)):
        return FILLS, ncu_conditions.reason(theirs)
    if ours.executions == theirs.executions and access is not None and not access.op:
        return NOT_COUNTED, "fasim does not count what this atomic costs"
    what = f"executed {theirs.executions:,} times instead of {ours.executions:,}"
    if ours.executions == theirs.executions:
        part, mine, other = ("wavefronts", ours.wavefronts, theirs.wavefronts)
        if mine == other:
            part, mine, other = ("ideal wavefronts", ours.ideal, theirs.ideal)
        what = f"executed as often, {other:,} {part} instead of {mine:,}"
    return (TURNS, f"lanes take turns at an atomic that is repeated: {what}") if turns else (MISMATCH, what)
