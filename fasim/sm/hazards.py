"""From the log of a launch to its hazards: alike records become one, with words counted and advice given."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.isa import machine as m
from fasim.isa.program import Program, SourceInstruction
from fasim.sm.findings import describe_lanes, lanes_of, own_places
from fasim.sm.flow import in_one_loop
from fasim.sm.result import Hazard
from fasim.sm.state import LaunchShape
from fasim.sm.watch import Checks, all_records
from fasim.smem import check_state as h
from fasim.smem import cp_async as q
from fasim.warp.taint import COLLECTIVE_SPACE

CHECKS = ("race", "init", "sync")
RACES = {h.F_RAW: "RAW", h.F_WAR: "WAR", h.F_WAW: "WAW"}
#: a source line, and those of the calls that were inlined
Place = tuple[tuple[str, int], ...]
MEANING = {"RAW": "read after write", "WAR": "write after read", "WAW": "write after write"}
UNSYNCHRONISED = {h.F_DIVERGENT_BARRIER: "divergent_barrier", h.F_ABSENT_LANES: "absent_lanes", h.F_UNNAMED_LANES: "unnamed_lanes"}
UNINIT = {m.SHARED: "uninit_shared", m.LOCAL: "uninit_local", COLLECTIVE_SPACE: "uninit_lane"}
#: of any other state space, and copies that nobody waits for
UNINIT_GLOBAL, NOT_WAITED = "uninit_global", "copy_not_waited"


def checks_of(text: str) -> frozenset[str]:
    """The checks that `check=` asks for: "" none, "all", or some of race, init, sync.

    Raises: UsageError.
    """
    if not isinstance(text, str):
        raise UsageError(f'check={text!r}: it is a text, "all", or some of {", ".join(CHECKS)} with commas between')
    names = frozenset(part.strip() for part in text.split(",")) if text else frozenset()
    if names == {"all"}:
        return frozenset(CHECKS)
    if not names <= set(CHECKS):
        raise UsageError(f'check={text!r}: it is "all", or some of {", ".join(CHECKS)} with commas between')
    return names


@dataclass
class _Record:
    """One record of the log."""

    kind: int
    first: int
    second: int
    word: int
    count: int
    cta: int
    first_warp: int
    first_lanes: int
    second_warp: int
    second_lanes: int
    detail: int
    more: int


@dataclass
class _Group:
    """Records about the same pair of source lines."""

    records: list[_Record] = field(default_factory=list)

    def first(self) -> _Record:
        """The occurrence to show: the first CTA's, lowest word."""
        return min(self.records, key=lambda r: (r.cta, r.word, r.first, r.second))

    def words(self) -> set[int]:
        """Distinct words."""
        return {r.word for r in self.records}


def hazards(
    program: Program, shape: LaunchShape, checks: Sequence[Checks], wanted: frozenset[str], buffers: Sequence[str] = ()
) -> list[Hazard]:
    """What the checks found, errors first, then in the order of the source; buffers: names of those that may hold undefined bytes."""
    records = _merged(all_records(checks))
    maker = _Maker(program, shape, buffers)
    races = maker.races([r for r in records if r.kind in RACES])
    found = races if "race" in wanted else []
    if "race" in wanted:
        found = found + maker.copies([r for r in records if r.kind == h.F_COPY_NOT_WAITED], races)
    if "init" in wanted:
        found = found + maker.undefined(records)
    if "sync" in wanted:
        found = found + maker.synchronisation(records)
    order = {"error": 0, "warning": 1, "note": 2}
    return sorted(found, key=lambda x: (order[x.severity], x.first.file, x.first_line, x.second_line or 0, x.kind))


def _merged(rows: Any) -> list[_Record]:
    """Records of all workers: the same finding once, as in the first CTA that has it, with all counts."""
    found: dict[tuple[int, ...], _Record] = {}
    columns = [getattr(h, f"L_{each.name.upper()}") // 8 for each in fields(_Record)]
    for row in np.asarray(rows)[:, columns].tolist() if len(rows) else []:
        record = _Record(*row)
        key = (record.kind, record.first, record.second, record.word, record.detail)
        known = found.get(key)
        if known is None:
            found[key] = record
        else:
            total = known.count + record.count
            found[key] = replace(min(known, record, key=lambda r: r.cta), count=total)
    return list(found.values())


class _Maker:
    """Makes hazards of one launch."""

    def __init__(self, program: Program, shape: LaunchShape, buffers: Sequence[str]) -> None:
        self.program, self.shape, self.buffers = program, shape, buffers

    def source(self, pc: int) -> SourceInstruction:
        """The instruction that a person sees."""
        return self.program.source_at(pc)

    def place(self, pc: int) -> Place:
        """What records are grouped by: the source line and the calls that led there, or the line of the PTX where there is none."""
        return _place(self.source(pc))

    def at(self, pc: int) -> str:
        """file:line, for texts; of what was inlined from the toolkit's headers, the line that asked for it."""
        source = self.source(pc)
        file, line = own_places(((source.file, source.line), *source.inlined_at))[0]
        return f"{Path(file).name}:{line}" if line else f"PTX line {source.ptx_line}"

    def who(self, record: _Record) -> dict[str, Any]:
        """The fields of a hazard that describe one occurrence."""
        return {
            "ctaid": self.shape.ctaid(record.cta),
            "byte_offset": record.word,
            "first_warp": record.first_warp,
            "first_lanes": lanes_of(record.first_lanes),
            "second_warp": record.second_warp,
            "second_lanes": lanes_of(record.second_lanes),
        }

    # --- races ---------------------------------------------------------------------------------------------------------------

    def races(self, records: list[_Record]) -> list[Hazard]:
        """One hazard for each pair of source lines, whichever came first."""
        pairs: dict[frozenset[Place], _Group] = defaultdict(_Group)
        for record in records:
            if not self.seeds_exchange(record):
                pairs[frozenset((self.place(record.first), self.place(record.second)))].records.append(record)
        return [self._race(group) for group in pairs.values()]

    def seeds_exchange(self, record: _Record) -> bool:
        """Whether a plain read and a compare-and-swap of the same address race: the usual way to begin a loop that repeats until it
        succeeds, in which a stale value only costs a round."""
        both = (self.source(record.first), self.source(record.second))
        reads = [s for s in both if s.mnemonic.startswith("ld.")]
        swaps = [s for s in both if s.mnemonic.startswith("atom.") and "cas" in s.mnemonic]
        addresses = {match[0] for s in (*reads, *swaps) if (match := re.search(r"\[[^]]*\]", s.text))}
        return bool(reads and swaps) and len(addresses) == 1

    def _race(self, group: _Group) -> Hazard:
        harmful = [r for r in group.records if not r.detail & h.R_BENIGN]
        records = group.records
        scopes = ["async" if r.detail & h.R_ASYNC else "intra-warp" if r.detail & h.R_SAME_WARP else "inter-warp" for r in records]
        counting = [s for r, s in zip(records, scopes) if not harmful or not r.detail & h.R_BENIGN]
        scope = next(s for s in ("async", "inter-warp", "intra-warp") if s in counting)
        # the order that most records agree on
        votes: dict[tuple[int, Any, Any], set[int]] = defaultdict(set)
        for r in records:
            votes[r.kind, self.place(r.first), self.place(r.second)].add(r.word)
        kind, first, second = max(votes, key=lambda v: (len(votes[v]), -v[0], v[1:]))
        agreeing = [(r, s) for r, s in zip(records, scopes) if (r.kind, self.place(r.first), self.place(r.second)) == (kind, first, second)]
        shown = _Group([r for r, s in agreeing if s == scope] or [r for r, _ in agreeing]).first()
        words = sorted({r.word for r in records})
        severity = "note" if not harmful else "warning" if scope == "intra-warp" else "error"
        name = RACES[kind]
        return Hazard(
            kind=name,
            space="shared",
            scope=scope,
            severity=severity,
            first=self.source(shown.first),
            second=self.source(shown.second),
            words=len(words),
            lanes=(shown.first_lanes.bit_count() + shown.second_lanes.bit_count()),
            text=self._race_text(name, scope, shown, len(words), benign=not harmful),
            word_offsets=tuple(words),
            **self.who(shown),
        )

    def _race_text(self, kind: str, scope: str, record: _Record, words: int, *, benign: bool) -> str:
        first, second = self.at(record.first), self.at(record.second)
        if first == second and record.first != record.second:
            first, second = (f"{self.at(pc)} (`{self.source(pc).text}`)" for pc in (record.first, record.second))
        count = f"{words} word{'s' if words != 1 else ''}"
        lead = f"{kind} ({MEANING[kind]}) on {count} of shared memory: "
        if benign and record.first == record.second:
            return f"{lead}at {first} several threads write the same value, and nothing orders them: harmless"
        if benign:
            return f"{lead}{first} and {second} are not ordered, but what is written is what was there: harmless"
        if record.first == record.second and scope != "async":
            own = "lanes of one instruction store different values" if scope == "intra-warp" else "warps store"
            return f"{lead}at {first} {own} to the same address, and any of them may win; use an atomic, or let one thread store"
        if scope == "async":
            return lead + self._async_text(record, first, second)
        if scope == "intra-warp":
            return (
                f"{lead}lanes of one warp access it at {first} and at {second} with nothing between that orders them; "
                "put __syncwarp() between the two (lanes of a warp need not run in step)"
            )
        comes_again = record.first > record.second and in_one_loop(self.program, record.first, record.second)
        again = ", in the next round of the loop" if comes_again else ""
        advice = "put __syncthreads() between the two"
        if any(self.program.code[pc, m.AT_KIND // 4] == m.ATOM for pc in (record.first, record.second)):
            advice += ", or make the plain access atomic or volatile, too"
        return f"{lead}one warp accesses it at {first}, another one at {second}{again}, with no barrier between; {advice}"

    def _async_text(self, record: _Record, first: str, second: str) -> str:
        reason, groups, wait = record.more & 0xFF, record.more >> 8 & 0xFF, record.more >> 16
        waited = self.at(wait)
        lead = f"{second} accesses what cp.async at {first} has not brought yet: "
        if reason == q.NEVER_COMMITTED:
            return f"{lead}the copy was never committed, so no wait_group waits for it; put cp.async.commit_group behind it"
        if reason == q.COMMITTED_LATE:
            return (
                f"{lead}its group was committed only after the wait at {waited}, which therefore did not wait for it; "
                "commit before you wait"
            )
        if reason == q.WAIT_TOO_SHORT:
            return (
                f"{lead}the wait at {waited} leaves this group pending; at most {groups} may be (cp.async.wait_group {groups}), "
                "or commit an empty group where there is nothing left to copy"
            )
        return f"{lead}nothing waits for it; put cp.async.wait_group {groups} and a barrier between the two"

    def copies(self, records: list[_Record], races: Sequence[Hazard]) -> list[Hazard]:
        """Copies that were on their way when their thread ended; not again those whose words were reported as a race."""
        found = []
        groups: dict[Place, _Group] = defaultdict(_Group)
        for record in records:
            groups[self.place(record.first)].records.append(record)
        raced = _raced_words(races)
        for place, group in groups.items():
            left = _Group([r for r in group.records if r.word not in raced.get(place, set())])
            if left.records:
                shown, words = left.first(), sorted(left.words())
                found.append(
                    Hazard(
                        kind=NOT_WAITED,
                        space="shared",
                        scope="async",
                        severity="warning",
                        first=self.source(shown.first),
                        second=None,
                        words=len(words),
                        lanes=sum(r.count for r in left.records),
                        text=f"copies of cp.async at {self.at(shown.first)} are still on their way when their threads end; "
                        "wait for them (cp.async.wait_all), or do not start them",
                        word_offsets=tuple(words),
                        **self.who(shown),
                    )
                )
        return found

    # --- undefined values ----------------------------------------------------------------------------------------------------

    def undefined(self, records: list[_Record]) -> list[Hazard]:
        """Reads of what was never written, if the value decided something."""
        joined = _joined([(r.first, r.second) for r in records if r.kind == h.F_JOINED])
        sinks: dict[int, list[_Record]] = defaultdict(list)
        for r in records:
            if r.kind == h.F_DECIDED:
                for origin in joined.get(r.first, {r.first}):
                    sinks[origin].append(r)
        reads: dict[tuple[str, Place, int], _Group] = defaultdict(_Group)
        for r in records:
            if r.kind == h.F_READ_UNDEFINED and r.first in sinks:
                space, buffer = r.detail & (1 << h.BUFFER_SHIFT) - 1, r.detail >> h.BUFFER_SHIFT
                reads[UNINIT.get(space, UNINIT_GLOBAL), self.place(r.first), buffer].records.append(r)
        found = []
        for (kind, _, buffer), group in reads.items():
            decided = [sink for pc in {r.first for r in group.records} for sink in sinks[pc]]
            found.append(self._undefined(kind, buffer, group, sorted(decided, key=lambda r: (r.cta, r.second, r.detail))))
        return found

    def _undefined(self, kind: str, buffer: int, group: _Group, sinks: list[_Record]) -> Hazard:
        shown, words = group.first(), sorted(group.words() - {h.FURTHER_WORDS})
        further = sum(r.count for r in group.records if r.word == h.FURTHER_WORDS)
        space = kind.split("_")[1]
        decided = h.DECIDED[sinks[0].detail]
        lanes = sum(r.count for r in group.records)
        places = list(dict.fromkeys(f"{h.DECIDED[r.detail]} at {self.at(r.second)}" for r in sinks))
        many = f", and {len(places) - 1} more" if len(places) > 1 else ""
        if space == "lane":
            source = self.source(shown.first)
            what = f"a value that `{source.mnemonic}` at {self.at(shown.first)} took from a lane that does not execute it"
            advice = "name all lanes that are read in the mask, and let them execute the shuffle"
            words = []
        else:
            count = f"{len(words)} word{'s' if len(words) != 1 else ''}{' and more' if further else ''}"
            where = f"{self.buffers[buffer - 1]} ({space} memory)" if 0 < buffer <= len(self.buffers) else f"{space} memory"
            what = f"{count} of {where} that nobody has written, read at {self.at(shown.first)}"
            advice = {
                "shared": "write it before it is read, or zero-fill the rest of a tile",
                "local": "initialise the variable on every path",
                "global": "initialise the buffer before the launch, or write it in the kernel",
            }[space]
        return Hazard(
            kind=kind,
            space=space,
            scope=decided,
            severity="error",
            first=self.source(shown.first),
            second=self.source(sinks[0].second),
            words=len(words),
            lanes=lanes,
            text=f"uninitialised: {what}, decides the {places[0]}{many} ({lanes} lane{'s' if lanes != 1 else ''}); {advice}",
            word_offsets=tuple(words),
            **self.who(shown),
        )

    # --- barriers and collectives --------------------------------------------------------------------------------------------

    def synchronisation(self, records: list[_Record]) -> list[Hazard]:
        """Lanes that do not come together where they have to."""
        groups: dict[tuple[int, Any, Any], _Group] = defaultdict(_Group)
        for r in records:
            if r.kind in UNSYNCHRONISED:
                groups[r.kind, self.place(r.first), self.place(r.second) if r.second else None].records.append(r)
        return [self._unsynchronised(kind, group) for (kind, _, _), group in groups.items()]

    def _unsynchronised(self, kind: int, group: _Group) -> Hazard:
        shown = group.first()
        here, there = (describe_lanes(lanes_of(mask)) for mask in (shown.first_lanes, shown.second_lanes))
        first, source = self.at(shown.first), self.source(shown.first)
        if kind == h.F_ABSENT_LANES:
            text = (
                f"lanes {here} of warp {shown.first_warp} wait in `{source.mnemonic}` at {first} for lanes {there}, which the mask names "
                "but which go on without it; name only lanes that come, or let all execute it"
            )
        elif kind == h.F_UNNAMED_LANES:
            text = (
                f"lanes {there} of warp {shown.first_warp} execute `{source.mnemonic}` at {first} with a mask that does not name them; "
                "every lane has to be in its own mask"
            )
        elif shown.second:
            text = (
                f"lanes {here} of warp {shown.first_warp} wait at the barrier at {first} while lanes {there} of the same warp wait at "
                f"{self.at(shown.second)}; all lanes of a warp have to reach the same __syncthreads()"
            )
        else:
            text = (
                f"lanes {here} of warp {shown.first_warp} reach the barrier at {first}, lanes {there} go round it; "
                "take __syncthreads() out of the condition"
            )
        return Hazard(
            kind=UNSYNCHRONISED[kind],
            space="",
            scope="",
            severity="error",
            first=source,
            second=self.source(shown.second) if shown.second else None,
            words=0,
            lanes=sum(r.count for r in group.records),
            text=text,
            **self.who(shown),
        )


def _joined(pairs: Sequence[tuple[int, int]]) -> dict[int, set[int]]:
    """The origins that were combined with each other, on whatever way."""
    found: dict[int, set[int]] = {}
    for a, b in pairs:
        both = found.get(a, {a}) | found.get(b, {b})
        for each in both:
            found[each] = both
    return found


def _raced_words(races: Sequence[Hazard]) -> dict[Place, set[int]]:
    """Words by the source lines of the races on them."""
    found: dict[Place, set[int]] = defaultdict(set)
    for race in races:
        for source in (race.first, race.second):
            if source is not None:
                found[_place(source)].update(race.word_offsets)
    return found


def _place(source: SourceInstruction) -> Place:
    return ((source.file, source.line), *source.inlined_at) if source.line else (("", -source.ptx_line),)
