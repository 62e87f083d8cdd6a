"""What the checks find in small kernels, each with one mistake, and that they find nothing in the same kernels without it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

import fasim
from fasim import errors
from fasim.isa.machine import C_SMEM
from fasim.isa.program import SourceInstruction
from fasim.numerics.native import first_bit, lanes_equal, peek_i64
from fasim.sm.result import Hazard
from fasim.smem import races
from fasim.smem.check_state import H_SHIFT
from fasim.warp import observe
from tests.hazards.corpus import ANY_RACE, RACES, ROWS, Expected, Row, arguments, marks, path

#: enough for every kernel that ends, and for the watch over those that do not
MAX_INSTRUCTIONS = 50_000_000


@functools.cache
def module(file: str) -> fasim.Module:
    return fasim.compile(path(file))


def launch(row: Row, **options: Any) -> Any:
    args = [fasim.empty(64, "int32") if value is None else value for _, value in arguments(row)]
    kernel = module(row.file).kernel(row.entry)
    return kernel.launch(1, row.block, args, check="all", max_instructions=MAX_INSTRUCTIONS, **options)


def line_in(source: SourceInstruction | None, file: str) -> int:
    """The line of an instruction in a file (given by its path), that of the call where it stands in a header."""
    if source is None:
        return 0
    places = [(source.file, source.line), *source.inlined_at]
    return next((line for name, line in places if name == file), -1)


class Group:
    """All findings about one pair of lines, whichever of them came first."""

    def __init__(self) -> None:
        self.words: set[int] = set()
        self.count = 0

    def add(self, hazard: Hazard) -> None:
        self.words |= set(hazard.word_offsets)
        self.count += hazard.words


def groups(hazards: Iterable[Hazard], file: str) -> dict[tuple[str, tuple[int, ...], str, bool], Group]:
    found: dict[tuple[str, tuple[int, ...], str, bool], Group] = {}
    for hazard in hazards:
        kind = "RAW" if hazard.kind == "WAR" else hazard.kind
        lines = (line_in(hazard.first, file), line_in(hazard.second, file))
        key = (kind, tuple(sorted(lines)) if hazard.kind in RACES else lines, hazard.scope, hazard.benign)
        found.setdefault(key, Group()).add(hazard)
    return found


def meets(key: tuple[str, tuple[int, ...], str, bool], wanted: Expected, lines: Mapping[str, int]) -> bool:
    """Whether findings of this kind at these lines are what is expected, words apart."""
    kind, places, scope, note = key
    kinds = RACES if wanted.kind == ANY_RACE else wanted.kind.replace("WAR", "RAW").split("|")

    def named(mark: str) -> set[int]:
        return set(places) | {0} if mark == "?" else {lines[name] for name in mark.split("|")} if mark else {0}

    first, second = places
    pairs = [(first, second), (second, first)] if kind in RACES else [(first, second)]
    at = any(a in named(wanted.first) and b in named(wanted.second) for a, b in pairs)
    return kind in kinds and at and wanted.scope in (None, scope) and note == wanted.note


def describe(hazards: Iterable[Hazard], file: str) -> str:
    return "\n".join(
        f"  {h.kind} {h.scope} {h.severity} lines {line_in(h.first, file)} and {line_in(h.second, file)}, {h.words} words" for h in hazards
    )


def complaints(row: Row, hazards: Iterable[Hazard]) -> list[str]:
    """What is missing, wrong or too much."""
    found, lines = groups(hazards, str(path(row.file))), marks(row.file)[row.entry]
    left, wrong = dict(found), []
    for wanted in row.expected:
        met = [key for key in left if meets(key, wanted, lines)]
        if not met:
            wrong.append(f"missing: {wanted}")
            continue
        parts = [left.pop(key) for key in met]
        words = len(set().union(*(part.words for part in parts))) or sum(part.count for part in parts)
        if wanted.words not in (None, words):
            wrong.append(f"{wanted}: {words} words")
    for key in left:
        if not any(meets(key, may, lines) for may in row.may) and not (row.more and key[0] in RACES):
            wrong.append(f"false: {key}")
    return wrong


@pytest.mark.parametrize("row", ROWS, ids=[row.entry for row in ROWS])
def test_findings(row):
    if row.error:
        with pytest.raises(getattr(errors, row.error)) as caught:
            launch(row)
        lines = {marks(row.file)[row.entry][name] for name in row.error_marks.split("|")}
        assert (caught.value.details["kind"], caught.value.where.line in lines) == (row.error_kind, True), str(caught.value)
        return
    result = launch(row)
    wrong = complaints(row, result.hazards)
    assert not wrong, "\n".join([*wrong, "found:", describe(result.hazards, str(path(row.file)))])


def test_every_kernel_is_in_the_table():
    """No kernel is written and forgotten, no mark is left without a use."""
    for file in sorted({row.file for row in ROWS}):
        rows = {row.entry: row for row in ROWS if row.file == file}
        assert set(rows) == set(marks(file))
        for entry, row in rows.items():
            named = {m for e in (*row.expected, *row.may) for text in (e.first, e.second) for m in text.split("|")}
            named |= set(row.error_marks.split("|"))
            assert named - {"", "?"} == set(marks(file)[entry]), entry


FAULTY = [row for row in ROWS if row.expected and not row.more]


@pytest.mark.parametrize("row", FAULTY[::4], ids=[row.entry for row in FAULTY[::4]])
def test_the_reference_machine_finds_the_same(row):
    assert launch(row, backend="reference").hazards == launch(row).hazards


def slow_reads(ctx: int, block: int, hosts: int, mask: int, size: int, tag: int, distinct: bool) -> None:
    """What `races.read_lanes` abbreviates."""
    smem, shift = peek_i64(ctx + C_SMEM), peek_i64(block + H_SHIFT)
    while mask:
        host = peek_i64(hosts + 8 * first_bit(mask))
        lanes = lanes_equal(hosts, host) & mask
        mask &= ~lanes
        for granule in range((host - smem) >> shift, (host - smem + size) >> shift):
            races.access(ctx, block, granule, tag, lanes)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.error][::3], ids=lambda row: row.entry)
def test_short_cuts_find_what_the_long_way_finds(row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    short = launch(row, backend="reference").hazards
    assert short == launch(row).hazards
    monkeypatch.setattr(observe, "access_row", lambda *arguments: False)
    monkeypatch.setattr(observe, "read_lanes", slow_reads)
    assert launch(row, backend="reference").hazards == short
