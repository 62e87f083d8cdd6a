"""Which PTX instructions became which machine instructions, and what ptxas changed on the way.

Both sides of one class of instructions (`machine_classes`) are matched by PTX line, which the debug information gives for every machine
instruction; what is left over by source place; and what is left over then by the bytes that are lost on one line and gained on another.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fasim.report import ncu_conditions
from fasim.report.machine_classes import BY_NAME, MULTIPLE, PURE, REUSED

Place = tuple[tuple[str, int], ...]

EQUAL, MISMATCH, NOT_COUNTED = "equal", "MISMATCH", "not counted"
MERGED, SPLIT, REMOVED, ADDED = "merged", "split", "removed", "added"
MOVED, PREDICATED, CHANGED = "moved", "predicated", "changed"
#: ncu's source page does not see which lanes of a copy fill with zeros
FILLS = "fills"
#: warps and lanes take turns at an atomic that is repeated until it succeeds, each time in another order
TURNS = "turns"
#: what ptxas did, so that there is nothing to compare
BY_PTXAS = frozenset({MERGED, SPLIT, REMOVED, ADDED, MOVED, PREDICATED, CHANGED, NOT_COUNTED})
#: differences that are accounted for
KNOWN = BY_PTXAS | {FILLS, TURNS}


@dataclass(frozen=True)
class Item:
    """One instruction with its executions, of the PTX or of the machine code.

    name: the class. op: the operation, by which both sides are compared; empty if the machine does it in a loop. lane_bytes: what a lane
    moves in one execution, 1 where only executions are compared. place: from the line in the kernel inwards. wavefronts, ideal: of the
    source page. guarded: it has a predicate.
    Of the simulation: hardware, wavefronts and conflicts of the hardware counters. Of machine code: offset; all_lanes, whether 32 threads
    took part in every execution, one_lane, whether no more than one did; origin, the mnemonic on its PTX line; branched_around, no warp
    executed that, though it is of this class.
    counted_in: the part of the hardware counters' names (ld, st, atom), empty if none counts it.
    Of copies: as_if as in SharedAccess; taken_for, which of these ncu has for an instruction of the machine, -1 for none of them;
    guard_as, what it takes the predicate before it for if it does not read that: "true" or "false".
    """

    name: str
    op: str
    lane_bytes: int
    executions: int
    ptx_line: int
    place: Place
    text: str
    wavefronts: int = 0
    ideal: int = 0
    guarded: bool = False
    hardware: tuple[int, int] = (0, 0)
    offset: int = -1
    all_lanes: bool = True
    one_lane: bool = False
    origin: str = ""
    branched_around: bool = False
    counted_in: str = ""
    as_if: tuple[tuple[int, int], ...] = ()
    taken_for: int = ncu_conditions.NOT_TAKEN
    guard_as: str = ""

    @property
    def key(self) -> Place:
        """The place without directories, which differ between machines."""
        return tuple((os.path.basename(file), line) for file, line in self.place)


Items = tuple[Item, ...]


@dataclass(frozen=True)
class Match:
    """Instructions of the simulation and those of the machine code that do the same work, with a verdict and its reason."""

    simulated: Items
    measured: Items
    verdict: str
    why: str

    @property
    def places(self) -> tuple[Place, ...]:
        """Where they stand, in the order of the PTX."""
        items = sorted(self.simulated + self.measured, key=lambda item: item.ptx_line)
        return tuple(dict.fromkeys(item.key for item in items))


def operations(items: Iterable[Item]) -> Counter[str]:
    """Executions by operation."""
    found: Counter[str] = Counter()
    for item in items:
        found[item.op] += item.executions
    return found


def moved_bytes(items: Iterable[Item]) -> int:
    """Bytes a lane over all executions."""
    return sum(item.lane_bytes * item.executions for item in items)


def match_class(simulated: Iterable[Item], measured: Iterable[Item], *, by_line: bool = True) -> list[Match]:
    """Match the instructions of one class; what was never executed is left out.

    by_line: the PTX lines of machine instructions are known, except of what ptxas put in.
    """
    ours, theirs = tuple(x for x in simulated if x.executions), tuple(x for x in measured if x.executions)
    units = _units(ours, theirs, by_line)
    settled = [unit for unit in units if _alike(*unit)]
    rest = _by_place([unit for unit in units if not _alike(*unit)])
    settled += [unit for unit in rest if _alike(*unit)]
    settled += _join([unit for unit in rest if not _alike(*unit)])
    return _coalesce([(decide(*unit), *unit) for unit in settled])


_Unit = tuple[Items, Items]


def _alike(ours: Items, theirs: Items) -> bool:
    return operations(ours) == operations(theirs)


def _units(ours: Items, theirs: Items, by_line: bool) -> list[_Unit]:
    """By PTX line, else by place."""
    found: dict[object, tuple[list[Item], list[Item]]] = {}
    for side, items in enumerate((ours, theirs)):
        for item in items:
            found.setdefault(item.ptx_line if by_line else item.key, ([], []))[side].append(item)
    return [part for p, m in found.values() for part in _without_equals(tuple(p), tuple(m))]


def _without_equals(ours: Items, theirs: Items) -> list[_Unit]:
    """Operations that are equal on both sides in all figures apart from the others of their line or place."""
    by_op = {op: (_only(ours, op), _only(theirs, op)) for op in operations(ours)}
    equal = {op: unit for op, unit in by_op.items() if _alike(*unit) and _costs(unit[0]) == _costs(unit[1])}
    rest = tuple(x for x in ours if x.op not in equal), tuple(x for x in theirs if x.op not in equal)
    return [*equal.values(), *([rest] if any(rest) else [])]


def _only(items: Items, op: str) -> Items:
    return tuple(item for item in items if item.op == op)


def _by_place(units: Sequence[_Unit]) -> list[_Unit]:
    """Units of one place as one, where that makes both sides alike: copies of one source line."""
    places: dict[Place, list[_Unit]] = {}
    for unit in units:
        places.setdefault(_anchor(unit).key, []).append(unit)
    found: list[_Unit] = []
    for alike in places.values():
        whole = _sum(alike)
        found += [whole] if _alike(*whole) else alike
    return found


def _anchor(unit: _Unit) -> Item:
    return (unit[0] or unit[1])[0]


def _sum(units: Iterable[_Unit]) -> _Unit:
    parts = list(units)
    return tuple(x for p, _ in parts for x in p), tuple(x for _, m in parts for x in m)


def _gain(unit: _Unit) -> int:
    return moved_bytes(unit[1]) - moved_bytes(unit[0])


def _join(units: list[_Unit]) -> list[_Unit]:
    """Join what gained bytes with what lost as many: merged accesses stand on the line of one of them."""
    rest, found = list(units), []
    for unit in units:
        if _gain(unit) <= 0 or not _can_absorb(unit):
            continue
        givers = _givers(unit, [other for other in rest if _gain(other) < 0])
        whole = _sum([unit, *givers])
        if givers and (not _alike(*whole) or _costs(whole[0]) == _costs(whole[1])):
            rest = [other for other in rest if other is not unit and not any(other is giver for giver in givers)]
            found.append(whole)
    return rest + found


def _can_absorb(unit: _Unit) -> bool:
    """Whether bytes may have come from other lines, or something else explains them alone."""
    ours, theirs = unit
    if not ours:
        # on a PTX line without such an instruction ptxas put it in; without PTX lines it may be one from elsewhere
        return bool(theirs[0].place) and not any(item.ptx_line for item in theirs) and _works(theirs)
    # a predicate instead of a branch
    return set(operations(ours)) != set(operations(theirs)) or not any(item.guarded for item in theirs)


def _works(items: Items) -> bool:
    """Whether it is more than what ptxas puts in without an effect."""
    return not BY_NAME[items[0].name].shared or any(item.wavefronts for item in items)


def _givers(taker: _Unit, losers: Sequence[_Unit]) -> list[_Unit]:
    """The nearest units that together lost as many bytes as this one gained, none if no such ones are found; better one than several."""
    anchor, needed = _anchor(taker), _gain(taker)
    near = sorted(losers, key=lambda unit: (_anchor(unit).key != anchor.key, abs(_anchor(unit).ptx_line - anchor.ptx_line)))
    alike = [unit for unit in near if set(operations(unit[0])) == set(operations(taker[0]))]
    exact = next((unit for unit in [*alike, *near] if -_gain(unit) == needed), None)
    return [exact] if exact else _filled(alike, needed) or _filled(near, needed)


def _filled(losers: Sequence[_Unit], needed: int) -> list[_Unit]:
    """The first units that lost as many bytes as needed, without those that lost too many."""
    chosen = []
    for unit in losers:
        if -_gain(unit) <= needed:
            chosen.append(unit)
            needed += _gain(unit)
        if not needed:
            return chosen
    return []


def _costs(items: Iterable[Item]) -> tuple[int, int]:
    rows = [(item.wavefronts, item.ideal) for item in items]
    return sum(row[0] for row in rows), sum(row[1] for row in rows)


def _coalesce(found: Sequence[tuple[str, Items, Items]]) -> list[Match]:
    """One match for what happened alike at the same places."""
    groups: dict[tuple[str, object], list[_Unit]] = {}
    for verdict, ours, theirs in found:
        places = frozenset(item.key for item in ours + theirs)
        groups.setdefault((verdict, (places, frozenset(operations(ours)), frozenset(operations(theirs)))), []).append((ours, theirs))
    matches = []
    for (verdict, _), units in groups.items():
        ours, theirs = _sum(units)
        matches.append(Match(ours, theirs, verdict, explain(verdict, ours, theirs)))
    return matches


def decide(ours: Items, theirs: Items) -> str:
    """The verdict on instructions that do the same work."""
    before, after = operations(ours), operations(theirs)
    if "" in before:
        return NOT_COUNTED
    if before == after:
        if _costs(ours) == _costs(theirs):
            return EQUAL if _by_key(ours) == _by_key(theirs) else MOVED
        if ncu_conditions.explains(ours, theirs):
            return FILLS
        return MERGED if _aggregated(ours, theirs) else MISMATCH
    if not after:
        return REMOVED
    if not before:
        return PREDICATED if all(x.branched_around for x in theirs) else ADDED
    if set(before) == set(after):
        return _same_operations(ours, theirs)
    if _is_atomic(ours) and before.total() == after.total():
        return EQUAL if _costs(ours) == _costs(theirs) else CHANGED
    return _other_operations(ours, theirs)


def _aggregated(ours: Items, theirs: Items) -> bool:
    """Whether one lane works for the others, which ptxas does of atomics alone."""
    if not _is_atomic(ours) or any(x.guarded for x in ours):
        return False
    if all(x.guarded and x.one_lane and x.wavefronts <= x.executions for x in theirs):
        return True
    return any(x.guarded and x.one_lane for x in theirs) and _costs(theirs)[0] < _costs(ours)[0]


def _by_key(items: Items) -> Counter[Place]:
    found: Counter[Place] = Counter()
    for item in items:
        found[item.key] += item.executions
    return found


def _is_atomic(items: Items) -> bool:
    return items[0].name == "shared atomic"


def _same_operations(ours: Items, theirs: Items) -> str:
    before, after, name = operations(ours).total(), operations(theirs).total(), ours[0].name
    if _aggregated(ours, theirs):
        return MERGED
    if after > before and any(item.guarded for item in theirs) and _predicate_costs_nothing(ours, theirs):
        return PREDICATED
    if name in MULTIPLE and after % before == 0 and len(theirs) == len(ours) * (after // before) > len(ours):
        return SPLIT
    if _may_spin(ours):
        return MOVED
    if after < before:
        return MOVED if name in REUSED else MISMATCH
    # a warp whose lanes went different ways may meet again later than it does in PTX; a warp that is whole cannot
    return MISMATCH if name not in PURE and all(item.all_lanes for item in theirs) else MOVED


def _predicate_costs_nothing(ours: Items, theirs: Items) -> bool:
    """Whether lanes that took part cost the same, whatever the predicate did to executions; what was loaded may be kept."""
    (cost, ideal), (cost_now, ideal_now) = _costs(ours), _costs(theirs)
    reused = ours[0].name in REUSED and ideal_now < ideal
    return (cost, ideal) == (cost_now, ideal_now) or reused or ncu_conditions.explains(ours, theirs)


def _may_spin(items: Items) -> bool:
    """Whether it can wait for others, so that how often it is executed depends on who wins."""
    waits = (".volatile", ".relaxed", ".acquire", ".cas", ".exch")
    return items[0].name == "global atomic" or any(word in item.text or word in item.op for item in items for word in waits)


def _other_operations(ours: Items, theirs: Items) -> str:
    widest, now = max(x.lane_bytes for x in ours), max(x.lane_bytes for x in theirs)
    before, after = operations(ours).total(), operations(theirs).total()
    if now > widest or (now == widest and after < before):
        return MERGED
    if after > before:
        return SPLIT
    return REMOVED if now < widest else CHANGED


def explain(verdict: str, ours: Items, theirs: Items) -> str:
    """The reason of a verdict in words, empty for `equal`."""
    if verdict == EQUAL:
        return ""
    before, after = operations(ours), operations(theirs)
    if verdict == MISMATCH:
        return _mismatch(before, after, theirs)
    if verdict == FILLS:
        return ncu_conditions.reason(theirs[0])
    if verdict == NOT_COUNTED:
        return "a loop in the machine code, whose length depends on who wins"
    if verdict == REMOVED and not after:
        return f"{_listed(before)} not in the machine code: unused or known"
    if verdict == PREDICATED:
        return _predicated(before, after)
    if verdict == ADDED:
        if not _works(theirs):
            return f"{_listed(after)} that ptxas put in, no wavefronts"
        return f"{_listed(after)} {_made_for(theirs)}"
    if verdict == MERGED and set(before) == set(after):
        return "one lane of the warp does it for all"
    if before == after:
        return "counted on another line"
    if verdict == MOVED or (verdict == SPLIT and set(before) == set(after)):
        copies = f": {len(ours)} became {len(theirs)}" if verdict == SPLIT else _loop_note(before.total(), after.total())
        return f"executed {after.total():,} times instead of {before.total():,}{copies}"
    return _became(before, after, moved_bytes(ours) - moved_bytes(theirs))


def _mismatch(before: Counter[str], after: Counter[str], theirs: Items) -> str:
    if before == after:
        return "the same accesses, as often, cost other wavefronts"
    if after.total() > before.total() and any(item.guarded for item in theirs):
        return "the same accesses, with a predicate, cost other wavefronts"
    return f"executed {after.total():,} times instead of {before.total():,}, which ptxas does not explain"


def _made_for(theirs: Items) -> str:
    """For which PTX instructions of another class ptxas put something in."""
    origins = dict.fromkeys(item.origin for item in theirs if item.origin)
    return f"that ptxas made for {', '.join(origins)}" if origins else "that ptxas put in"


def _predicated(before: Counter[str], after: Counter[str]) -> str:
    if not before:
        return f"executed {after.total():,} times with a false predicate: PTX branches around it"
    return f"executed {after.total():,} times instead of {before.total():,}: predicate, not branch"


def _loop_note(before: int, after: int) -> str:
    return ": hoisted or reused" if after < before and before % after == 0 else ""


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count:,} {op}" for op, count in sorted(counts.items()))


def _became(before: Counter[str], after: Counter[str], lost_bytes: int) -> str:
    """`2 LDS.64 became 1 LDS.128`, in the smallest numbers that say it."""
    divisor = math.gcd(*before.values(), *after.values())
    small = [Counter({op: count // divisor for op, count in side.items()}) for side in (before, after)]
    lost = abs(lost_bytes) // divisor
    note = f", {lost:,} bytes a lane {'less' if lost_bytes > 0 else 'more'}" if lost else ""
    return f"{_listed(small[0])} became {_listed(small[1])}{note}{f' ({divisor:,} times)' if divisor > 1 else ''}"
