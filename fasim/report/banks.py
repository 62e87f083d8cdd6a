"""What accesses to shared memory cost, by source line and step, as data and in its JSON form.

`fasim banks --json` writes one object, the fields of `BanksReport` by name. See `fasim.report.records` for how values are written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from fasim.errors import UsageError
from fasim.report.bank_access import Access, Cost
from fasim.report.bank_advice import Advice, advise
from fasim.report.bank_picture import BankGroup, bank_groups
from fasim.sm.result import LaunchResult, SharedAccess
from fasim.smem.wavefronts import OPERATIONS
from fasim.trace.steps import SourceLines, call_path

BANKS_SCHEMA = "fasim.banks/1"


@dataclass(frozen=True)
class AccessRow:
    """All executions of one operation on one source line, reached over the same calls.

    step: as the source names it (`//@ NAME`), else empty. line: of the instruction, 0 where the compiler gave none. path: the line in
    the kernel and those of the calls that were inlined, the last is `line`. code: the line in the kernel. text, ptx_line: the PTX
    instruction, the worst of `instructions`. kind: its opcode. op: as `count_wavefronts` names it, empty if that cannot count it.
    executions: warp instructions. wavefronts, conflicts: as the hardware counters have them; source_wavefronts, source_ideal: as ncu's
    source page has them.
    """

    step: str
    file: str
    line: int
    path: tuple[tuple[str, int], ...]
    code: str
    kind: str
    op: str
    text: str
    ptx_line: int
    instructions: int
    executions: int
    wavefronts: int
    conflicts: int
    source_wavefronts: int
    source_ideal: int

    @property
    def key(self) -> tuple[object, ...]:
        """What a row has in common with the same access in another variant of the kernel."""
        return (self.step, self.path or self.text, self.kind, self.op)

    @property
    def badness(self) -> tuple[int, int, int]:
        """By what rows are ranked: conflicts, then what only the source page sees, then wavefronts."""
        return (self.conflicts, self.source_wavefronts - self.source_ideal, self.source_wavefronts)


@dataclass(frozen=True)
class AccessDetail:
    """The execution of a row with the most conflicts: its lanes by bank, and what cures it.

    row: index in the variant's rows. executions of other CTAs and warps may differ. active_mask: bit i says whether lane i takes part.
    """

    row: int
    ctaid: tuple[int, int, int]
    warp: int
    active_mask: int
    byte_offsets: tuple[int, ...]
    source_addresses: tuple[int, ...]
    cost: Cost
    groups: list[BankGroup]
    advice: Advice


@dataclass(frozen=True)
class BanksVariant:
    """One launch: rows worst first, and totals named after ncu's counters. label: the options in which it differs from the others."""

    label: str
    options: dict[str, int | str | bool]
    defines: dict[str, int | str | None]
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem_bytes: int
    rows: list[AccessRow]
    totals: dict[str, int]
    details: list[AccessDetail]

    @property
    def sums(self) -> tuple[int, int, int, int, int]:
        """Executions, wavefronts, conflicts, source wavefronts and source ideal of all rows."""
        columns = [(r.executions, r.wavefronts, r.conflicts, r.source_wavefronts, r.source_ideal) for r in self.rows]
        a, b, c, d, e = (sum(values) for values in zip(*columns)) if columns else (0, 0, 0, 0, 0)
        return a, b, c, d, e


@dataclass(frozen=True)
class BanksReport:
    """Bank conflicts of a kernel in one or several variants.

    line: whose details were asked for. saved: the file with the picture of the banks; saved_lines: that with wavefronts by line.
    """

    kernel: str
    source: str
    arch: str
    compiler: str
    seed: int
    variants: list[BanksVariant]
    line: int | None
    saved: str | None
    version: str
    saved_lines: str | None = None
    schema: str = field(default=BANKS_SCHEMA, kw_only=True)


def access_of(record: SharedAccess, arch: str) -> Access | None:
    """The worst execution of an instruction, None if there is none or no operation of shared memory stands for it."""
    pattern = record.pattern
    if pattern is None or record.op not in OPERATIONS:
        return None
    return Access(record.op, tuple(pattern.byte_offsets), pattern.active_mask, arch, tuple(pattern.source_addresses))


def gather(records: Iterable[SharedAccess], lines: SourceLines, arch: str) -> list[tuple[AccessRow, list[SharedAccess]]]:
    """Rows, worst first, each with its instructions, again worst first; what was never executed has no row."""
    places: dict[tuple[object, ...], list[SharedAccess]] = {}
    for record in records:
        if record.executions:
            places.setdefault((call_path(record.source) or record.source.ptx_line, record.kind, record.op), []).append(record)
    rows = []
    for group in places.values():
        group.sort(key=lambda record: _pattern_badness(record, arch), reverse=True)
        worst = group[0]
        source, path = worst.source, call_path(worst.source)
        rows.append(
            (
                AccessRow(
                    lines.step_of(source),
                    source.file if path else "",
                    source.line,
                    path,
                    lines.text(*path[0]) if path else "",
                    worst.kind,
                    worst.op,
                    source.text,
                    source.ptx_line,
                    len(group),
                    sum(record.executions for record in group),
                    sum(record.wavefronts for record in group),
                    sum(record.conflicts for record in group),
                    sum(record.source_wavefronts for record in group),
                    sum(record.source_ideal for record in group),
                ),
                group,
            )
        )
    return sorted(rows, key=lambda entry: (*(-number for number in entry[0].badness), entry[0].path, entry[0].ptx_line))


def _pattern_badness(record: SharedAccess, arch: str) -> tuple[int, int]:
    access = access_of(record, arch)
    if access is None:
        return (-1, -1)
    cost = access.count()
    return (cost.conflicts, cost.source_wavefronts - cost.source_ideal)


def tabulate(
    result: LaunchResult,
    lines: SourceLines,
    arch: str,
    *,
    label: str = "",
    options: dict[str, int | str | bool] | None = None,
    defines: dict[str, int | str | None] | None = None,
) -> tuple[BanksVariant, list[list[SharedAccess]]]:
    """The report of one launch without details, and for each of its rows the instructions, worst first."""
    gathered = gather(result.shared_accesses, lines, arch)
    rows = [row for row, _ in gathered]
    sizes = (result.grid, result.block, result.smem_bytes)
    return BanksVariant(label, options or {}, defines or {}, *sizes, rows, dict(result.totals), []), [records for _, records in gathered]


def look_closer(
    found: BanksVariant, records: Sequence[Sequence[SharedAccess]], rows: Iterable[int], arch: str, pitch_bytes: int | None = None
) -> BanksVariant:
    """A variant with pictures of rows and advice for them; pitch_bytes: the distance of the rows in shared memory, where it is known."""
    accesses = [[access for record in group if (access := access_of(record, arch))] for group in records]
    details = []
    for i in rows:
        pattern = records[i][0].pattern
        if pattern is None or not accesses[i]:
            continue
        worst, *alike = accesses[i]
        others = {row: group[0] for row, group in enumerate(accesses) if row != i and group}
        advice = advise(worst, pitch_bytes, others, alike)
        place = (pattern.ctaid, pattern.warp, pattern.active_mask, worst.byte_offsets, worst.source_addresses)
        details.append(AccessDetail(i, *place, worst.count(), bank_groups(worst), advice))
    return replace(found, details=details)


def choose(variants: Sequence[BanksVariant], line: int | None, *, ideal: bool = False) -> list[list[int]]:
    """Rows of each variant that deserve a closer look: those of a line, else the worst over all variants and the same in the others.

    ideal: choose one even if there are no conflicts. Raises: UsageError if nothing accesses shared memory on that line.
    """
    if line is not None:
        chosen = [[i for i, row in enumerate(each.rows) if any(number == line for _, number in row.path)] for each in variants]
        if not any(chosen):
            known = sorted({number for each in variants for row in each.rows for _, number in row.path})
            where = f"there are on: {', '.join(map(str, known))}" if known else "the kernel does not access shared memory"
            raise UsageError(f"no access to shared memory on line {line}; {where}")
        return chosen
    worst = max((row for each in variants for row in each.rows), key=lambda row: row.badness, default=None)
    if worst is None or not (worst.conflicts or ideal):
        return [[] for _ in variants]
    return [[i for i, row in enumerate(each.rows) if row.key == worst.key][:1] for each in variants]


def aligned_rows(variants: Sequence[BanksVariant]) -> list[list[AccessRow | None]]:
    """The rows of several variants side by side, None where one has no such row; worst over all variants first."""
    found: dict[tuple[object, ...], list[AccessRow | None]] = {}
    for column, each in enumerate(variants):
        alike: Counter[tuple[object, ...]] = Counter()  # without lines, equal instructions have equal keys
        for row in each.rows:
            found.setdefault((row.key, alike[row.key]), [None] * len(variants))[column] = row
            alike[row.key] += 1

    def badness(rows: list[AccessRow | None]) -> tuple[int, ...]:
        return tuple(-number for number in max(row.badness for row in rows if row))

    return sorted(found.values(), key=badness)
