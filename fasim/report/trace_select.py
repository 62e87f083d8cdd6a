"""Which warp instructions of a CTA a trace is to hold: by warp, by tile, by step of the algorithm.

The CTA is walked once to its end beforehand, which says how many there are and, of each, the tile that it is in.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import ExecutionError, UsageError
from fasim.sm.result import Hazard
from fasim.trace.places import Places
from fasim.trace.stepper import Stepper
from fasim.trace.steps import step_mark

Array = np.ndarray[Any, Any]
_COMMENT = re.compile(r"\s*//(?!@)(.*)")


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
    """A position to look at. wanted: whether it passes the filters, otherwise it is there for its pc alone.

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
        if filters.warp is not None:
            stepper.state.checked_warp(filters.warp)
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
        self.hazards: tuple[Hazard, ...] = walker.hazards or ()
        self._pcs: Array = np.array(walker.known_pcs[:end], np.int64)
        self._warps: Array = np.array(walker.known_warps[:end], np.int64)
        self._of_warp: Array = np.ones(end, bool) if filters.warp is None else self._warps == filters.warp
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
        wanted = self._of_warp
        if filters.tile is not None:
            known = np.unique(self._tiles[wanted])
            if filters.tile not in known and self.failure is None:
                last = int(known.max(initial=-1))
                where = "the CTA" if filters.warp is None else f"warp {filters.warp}"
                there = f"goes through tiles 0 to {last}" if last >= 0 else "comes to no tile"
                raise UsageError(f"tile {filters.tile}: {where} {there}; -1 is what comes before the first")
            wanted = wanted & (self._tiles == filters.tile)
        if self.steps:
            meant = np.array([step in self.steps for step in self.places.every_step], bool)
            wanted = wanted & meant[self._pcs]
        return wanted

    def _description(self) -> str:
        filters = self.filters
        parts = [f"warp {filters.warp}"] if filters.warp is not None else []
        parts += [f"tile {filters.tile}"] if filters.tile is not None else []
        return ", ".join([*parts, *([f"step {' or '.join(self.steps)}"] if self.steps else [])])

    @property
    def tile_starts(self) -> tuple[tuple[int, int], ...]:
        """Tiles with the positions at which the first of the chosen warps begins them, as far as these lie within what is chosen."""
        at = np.flatnonzero(self.places.tile_pcs[self._pcs] & self._of_warp)
        tiles, begun = np.unique(self._tiles[at], return_index=True)
        starts = zip(tiles.tolist(), at[begun].tolist())
        return tuple((tile, position) for tile, position in starts if self.first <= position <= self.last)

    def positions(self, further_pcs: Array | None = None) -> Iterator[Chosen]:
        """The positions that pass, and those at which the chosen warp, or any, executes one of `further_pcs` (a bool for each pc)."""
        before = dict.fromkeys(np.unique(self._warps).tolist(), False)
        looked = self._wanted if further_pcs is None else self._wanted | (further_pcs[self._pcs] & self._of_warp)
        for position in range(self.total):
            wanted, warp = bool(self._wanted[position]), int(self._warps[position])
            if looked[position]:
                yield Chosen(position, wanted, int(self._tiles[position]), wanted and before[warp])
            before[warp] = wanted


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def steps_named(places: Places, text: str) -> tuple[str, ...]:
    """The steps that a text means: one of that name; else those whose name consists of the text's first words; else those that say it.

    "S = QK^T" begins with the words of S_QK. A step says what stands in comments between its mark and its first line of code.
    Raises: UsageError listing the steps.
    """
    known = list(dict.fromkeys(step for step in places.every_step if step))
    if text in known:
        return (text,)
    words = _words(text)
    found = [step for step in known if _words(step) == words[: len(_words(step))]]
    if not found and words:
        phrase = f" {' '.join(words)} "
        found = [step for step, said in _comments(places).items() if step in known and phrase in f" {' '.join(_words(said))} "]
    if not found:
        raise UsageError(f"no step {text!r} in what is executed; there are: {', '.join(known) or 'none, the source marks no steps'}")
    return tuple(found)


def _comments(places: Places) -> dict[str, str]:
    """What the comments below the marks of each step say, up to its first line of code."""
    said: dict[str, list[str]] = defaultdict(list)
    for file in dict.fromkeys(file for pc in range(len(places.program)) for file, _ in places.path(pc)):
        step = ""
        for line in places.sources.lines(file):
            if mark := step_mark(line):
                step = mark
            elif step and (comment := _COMMENT.fullmatch(line)):
                said[step].append(comment[1])
            else:
                step = ""
    return {step: " ".join(texts) for step, texts in said.items()}
