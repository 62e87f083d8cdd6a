"""Which warp instructions of a CTA a trace is to hold: by warp, by tile, by step of the algorithm.

The CTA is walked once to its end beforehand, which says how many there are and, of each, the tile that it is in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import ExecutionError, UsageError
from fasim.isa import machine as m
from fasim.sm.result import Hazard
from fasim.trace.places import Places
from fasim.trace.stepper import Stepper

Array = np.ndarray[Any, Any]
_COPY_KINDS = (m.CP_ASYNC, m.CP_COMMIT, m.CP_WAIT)
_COMMENT = re.compile(r"//(?!@)(.*)")


@dataclass(frozen=True, slots=True)
class TraceFilters:
    """What to keep; None and () keep everything.

    tile: counted from 0, -1 for what comes before the first; the last one reaches to the end. steps: each a step's name or its text
    (see `steps_named`).
    """

    warp: int | None = None
    tile: int | None = None
    steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Chosen:
    """A position to look at. wanted: whether it passes the filters, otherwise it only issues, commits or waits for copies.

    tile: as `Stepper.tile` counts, -1 before the first. follows: whether its warp's instruction before it was wanted, too.
    """

    position: int
    wanted: bool
    tile: int
    follows: bool


class Selection:
    """The positions that pass the filters, in order.

    count: how many; first, last: of them, or of all if there are none. total: warp instructions of the CTA. steps: names that are meant.
    failure: what ends the kernel. hazards: all that the checks found by then.
    """

    def __init__(self, stepper: Stepper, filters: TraceFilters) -> None:
        """Walk to the end, and back to the beginning.

        Raises: UsageError for a warp, a tile or a step that does not occur, or if nothing is left.
        """
        self.filters, self.places = filters, stepper.places
        if filters.warp is not None and not 0 <= filters.warp < stepper.state.warps:
            raise UsageError(f"warp {filters.warp}: the CTA has warps 0 to {stepper.state.warps - 1}")
        if filters.tile is not None and stepper.places.tile_loop is None:
            raise UsageError(
                f"tile {filters.tile}: kernel {stepper.kernel.name} has no loop, so there are no tiles; choose by step or warp"
            )
        self.steps = tuple(dict.fromkeys(name for text in filters.steps for name in steps_named(stepper.places, text)))
        try:
            stepper.go_to_end()
        except ExecutionError:
            assert stepper.failure is not None
        end, walker = stepper.end, stepper.walker
        assert end is not None
        self.total, self.failure = end, stepper.failure
        self.hazards: tuple[Hazard, ...] = tuple(stepper.state.hazards if self.failure is None else self.failure.hazards)
        self._true = {(each.kind, each.first, each.second) for each in self.hazards}
        self._pcs: Array = np.array(walker.known_pcs[:end], np.int64)
        self._warps: Array = np.array(walker.known_warps[:end], np.int64)
        self._tiles = self._tiles_by_position()
        self._wanted = self._choose()
        found = np.flatnonzero(self._wanted)
        self.count = len(found)
        self.first, self.last = (int(found[0]), int(found[-1])) if self.count else (0, max(self.total - 1, 0))
        if not self.count and self.failure is None:
            raise UsageError(f"none of the CTA's {self.total} warp instructions is in {self._description()}; leave one of these out")
        stepper.go_to(0)

    def _tiles_by_position(self) -> Array:
        starts = self.places.tile_pcs[self._pcs]
        tiles = np.full(self.total, -1, np.int32)
        for warp in np.unique(self._warps):
            own = self._warps == warp
            tiles[own] = np.cumsum(starts[own]) - 1
        return tiles

    def _choose(self) -> Array:
        filters = self.filters
        wanted = np.ones(self.total, bool) if filters.warp is None else self._warps == filters.warp
        if filters.tile is not None:
            known = np.unique(self._tiles[wanted])
            if filters.tile not in known and self.failure is None:
                last = int(known.max(initial=-1))
                where = "the CTA" if filters.warp is None else f"warp {filters.warp}"
                there = f"goes through tiles 0 to {last}" if last >= 0 else "comes to no tile"
                raise UsageError(f"tile {filters.tile}: {where} {there}; -1 is what comes before the first")
            wanted = wanted & (self._tiles == filters.tile)
        if self.steps:
            meant = np.array([step in self.steps for step in steps_by_pc(self.places)], bool)
            wanted = wanted & meant[self._pcs]
        return wanted

    def _description(self) -> str:
        filters = self.filters
        parts = [f"warp {filters.warp}"] if filters.warp is not None else []
        parts += [f"tile {filters.tile}"] if filters.tile is not None else []
        return ", ".join([*parts, *([f"step {' or '.join(self.steps)}"] if self.steps else [])])

    def lasting(self, hazards: Sequence[Hazard]) -> list[Hazard]:
        """Those findings that nothing later explained in another way."""
        return [each for each in hazards if (each.kind, each.first, each.second) in self._true]

    def positions(self, *, copies: bool = False, also: Array | None = None) -> Iterator[Chosen]:
        """The positions that pass.

        copies: also what the chosen warp, or all, issue, commit and wait for; also: so those of further pcs, as booleans by pc.

        Returns: nothing that grows with their number.
        """
        warps = np.unique(self._warps)
        before = dict.fromkeys(warps.tolist(), False)
        looked = self._wanted
        own = True if self.filters.warp is None else self._warps == self.filters.warp
        for pcs in (np.isin(self.places.kinds, _COPY_KINDS) if copies else None, also):
            if pcs is not None:
                looked = looked | (pcs[self._pcs] & own)
        for position in range(self.total):
            wanted, warp = bool(self._wanted[position]), int(self._warps[position])
            if looked[position]:
                yield Chosen(position, wanted, int(self._tiles[position]), wanted and before[warp])
            before[warp] = wanted


def steps_by_pc(places: Places) -> list[str]:
    """The step of each pc, as events name it."""
    return [places.steps[pc] or places.step(pc) for pc in range(len(places.program))]


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def steps_named(places: Places, text: str) -> tuple[str, ...]:
    """The steps that a text means: one of that name; else those whose name consists of the text's first words; else those that say it.

    "S = QK^T" begins with the words of S_QK. A step says what stands in comments between its mark and its first line of code.
    Raises: UsageError listing the steps.
    """
    known = list(dict.fromkeys(step for step in steps_by_pc(places) if step))
    if text in known:
        return (text,)
    words = _words(text)
    found = [step for step in known if _words(step) == words[: len(_words(step))]]
    if not found and words:
        phrase = f" {' '.join(words)} "
        found = [step for step in known if phrase in f" {' '.join(_words(_comments(places, step)))} "]
    if not found:
        raise UsageError(f"no step {text!r} in what is executed; there are: {', '.join(known) or 'none, the source marks no steps'}")
    return tuple(found)


def _comments(places: Places, step: str) -> str:
    """What the comments below the marks of a step say, up to its first line of code."""
    said = []
    for file in dict.fromkeys(file for pc in range(len(places.program)) for file, _ in places.path(pc)):
        inside = False
        for line in _source_lines(places, file):
            if re.fullmatch(rf"//@\s*{re.escape(step)}", line):
                inside = True
            elif inside and (comment := _COMMENT.fullmatch(line)):
                said.append(comment[1].strip())
            else:
                inside = False
    return " ".join(said)


def _source_lines(places: Places, file: str) -> Iterator[str]:
    """The lines of a source up to the last one that belongs to a step."""
    last = max((line for pc in range(len(places.program)) for name, line in places.path(pc) if name == file), default=0)
    return (places.sources.text(file, number) for number in range(1, last + 1))
