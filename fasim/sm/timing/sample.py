"""Which CTAs of a grid are walked, and what is inferred of the others: how much each executes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasim.errors import NotModelled
from fasim.isa import machine as m
from fasim.sm.timing.classes import GLOBAL_ATOMIC, GLOBAL_STORE
from fasim.sm.timing.paths import Paths, Walk
from fasim.sm.timing.record import I_KIND, I_LENGTH
from fasim.sm.timing.spread import evenly
from fasim.warp import path as p

Array = np.ndarray[Any, Any]
#: places along an axis of the grid at which CTAs are walked, and how many in all
_ALONG, _MOST = 17, 64
#: CTAs off the axes of the grid that are walked to see whether what was inferred holds for them
_PROBES = 4
#: warp instructions that are walked at most for places between the axes
_WALKED = 1 << 27
#: CTAs that agree this closely in what they execute are alike
_ALIKE = 0.002
#: what a CTA executes may differ by this factor with what ran before it
_MUCH = 2


@dataclass
class Sampler:
    """Walks CTAs when they are asked for, and keeps what they do."""

    walk: Walk
    records: Array
    paths: Paths = field(init=False)
    places: dict[int, int] = field(init=False, default_factory=dict)
    work: dict[int, int] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.paths = Paths(self.walk.run.shape.warps)

    def place(self, cta: int) -> int:
        """Where a CTA is among the paths."""
        if cta not in self.places:
            entries = self.walk.cta(cta)
            self.places[cta] = len(self.paths.ctas)
            self.paths.ctas.append(cta)
            self.paths.entries += entries
            self.work[cta] = sum(self._instructions(each) for each in entries)
        return self.places[cta]

    def _instructions(self, entries: Array) -> int:
        blocks = entries[entries & p.TYPE_MASK == p.BLOCK] >> p.POSITION_SHIFT & p.POSITION_MASK
        return int(self.records[blocks, I_LENGTH].sum(dtype=np.int64))

    def grid_work(self) -> tuple[Array, float]:
        """Warp instructions of each CTA of the grid, and how far walked CTAs at other places were from that, at most, in parts of 1.

        Along each axis some places are walked and the rest lie between them; where axes turn out to
        depend on each other, places between them are walked, too.
        """
        shape = self.walk.run.shape
        sizes = shape.grid
        if shape.ctas <= _ALONG:
            work = np.array([self._work(cta) for cta in range(shape.ctas)], np.float64)
            return work, 0.0
        origin = self._work(0)
        profiles = []
        for axis, size in enumerate(sizes):
            at = _spread(size)
            values = []
            for i in at:
                ctaid = [0, 0, 0]
                ctaid[axis] = i
                values.append(self._work(_linear(ctaid, sizes)) / max(origin, 1))
            profiles.append(np.interp(np.arange(size), at, values))
        work = origin * (profiles[2][:, None, None] * profiles[1][:, None] * profiles[0]).reshape(-1)
        error = self._error(work)
        axes = sum(size > 1 for size in sizes)
        places = min(_MOST, int(_WALKED / max(float(work.mean()), 1.0)))
        if error > _ALIKE and axes > 1 and places >= 2**axes:
            between = self._between(int((places + 0.5) ** (1 / axes)))
            if (better := self._error(between)) < error:
                work, error = between, better
        return work, error

    def _error(self, work: Array) -> float:
        probes = [(work[cta], self._work(cta)) for cta in _probes(self.walk.run.shape.ctas)]
        return float(max(abs(expected - found) / max(found, 1) for expected, found in probes))

    def _between(self, along: int) -> Array:
        """Warp instructions of each CTA from a lattice of places, so many along each axis: axes that depend on each other."""
        sizes = self.walk.run.shape.grid
        at = [np.unique(np.linspace(0, size - 1, along).astype(int)) for size in sizes]
        lattice = [[[self._work(_linear([x, y, z], sizes)) for x in at[0]] for y in at[1]] for z in at[2]]
        work = np.array(lattice, np.float64)
        for axis in range(3):  # from the values at the places along one axis to those of all of it
            weights = np.stack([np.interp(np.arange(sizes[axis]), at[axis], row) for row in np.eye(len(at[axis]))], axis=1)
            work = np.moveaxis(np.tensordot(weights, work, (1, 2 - axis)), 0, 2 - axis)
        return work.reshape(-1)

    def order_error(self, afresh: Callable[[], Walk]) -> float:
        """How far CTAs that run first are from what they did behind others, in parts of 1; afresh: walks with memory as at the beginning.

        Raises: NotModelled if what a CTA does is decided by those that ran before it.
        """
        run = self.walk.run
        kinds = run.program.code[:, m.AT_KIND // 4]
        if run.shape.ctas == 1 or not np.isin(kinds, (m.STORE, m.STMATRIX, m.ATOM)).any():
            return 0.0
        walk, error = afresh(), 0.0
        for cta in dict.fromkeys((self.paths.ctas[-1], 1)):
            behind = self._work(cta)
            first = sum(self._instructions(each) for each in walk.cta(cta))
            if max(first, behind) > _MUCH * min(first, behind):
                raise NotModelled(
                    f"CTA {run.shape.ctaid(cta)} of {run.program.title} executes {first:,} warp instructions if it runs first, {behind:,} "
                    "behind others: the timing model runs CTAs one by one, so it cannot tell how CTAs share work that they take as they "
                    "come, or what they do with data of each other; give each CTA a part of its own, and its inputs from the beginning"
                )
            error = max(error, abs(first - behind) / max(behind, 1))
        return error

    def _work(self, cta: int) -> int:
        self.place(cta)
        return self.work[cta]

    def bytes_an_instruction(self) -> tuple[float, float]:
        """Bytes of global memory, in sectors, that a CTA reads, and that it writes, each once, for a warp instruction of it."""
        asked = stored = executed = 0
        warps = self.paths.warps
        for cta in self.paths.ctas[:: max(1, len(self.paths.ctas) // 8)]:
            c = self.places[cta]
            found: tuple[dict[int, int], dict[int, int]] = ({}, {})
            for entries in self.paths.entries[c * warps : (c + 1) * warps]:
                lines, kinds = self._lines(entries)
                for which in (0, 1):
                    writes = (kinds == GLOBAL_STORE) | (kinds == GLOBAL_ATOMIC)
                    for each in np.unique(lines[writes == which]).tolist():
                        line = each >> p.LINE_SHIFT
                        found[which][line] = found[which].get(line, 0) | each >> p.SECTOR_SHIFT & 15
            asked += p.SECTOR_BYTES * sum(mask.bit_count() for mask in found[0].values())
            stored += p.SECTOR_BYTES * sum(mask.bit_count() for mask in found[1].values())
            executed += self.work[cta]
        return asked / max(executed, 1), stored / max(executed, 1)

    def _lines(self, entries: Array) -> tuple[Array, Array]:
        """The entries for lines of global memory, and the kind of access of each."""
        types = entries & p.TYPE_MASK
        positions = entries >> p.POSITION_SHIFT & p.POSITION_MASK
        last = np.maximum.accumulate(np.where(types == p.GLOBAL_ACCESS, np.arange(len(entries)), 0)) if len(entries) else types
        chosen = (types == p.LINE) & (entries >> p.LINE_SHIFT < p.LOCAL_LINES)
        return entries[chosen], self.records[positions[last[chosen]], I_KIND]

    def atomics(self, ctas: int) -> tuple[float, float, float]:
        """Atomic operations of the grid on lines of global memory, the sectors of these, and on how many different lines they go."""
        operations = sectors = 0
        seen: set[int] = set()
        walked = self.paths.ctas[:8]
        alone = 0
        for cta in walked:
            c = self.places[cta]
            own: set[int] = set()
            for entries in self.paths.entries[c * self.paths.warps : (c + 1) * self.paths.warps]:
                lines, kinds = self._lines(entries)
                chosen = lines[kinds == GLOBAL_ATOMIC]
                operations += len(chosen)
                sectors += sum(int(each >> p.SECTOR_SHIFT & 15).bit_count() for each in chosen.tolist())
                own |= set((chosen >> p.LINE_SHIFT).tolist())
            alone += len(own)
            seen |= own
        scale = ctas / max(len(walked), 1)
        # lines that each CTA has for itself grow with the grid, those that all share do not
        different = len(seen) * scale if len(seen) == alone and len(walked) > 1 else len(seen)
        return operations * scale, sectors * scale, float(different)


def _spread(size: int) -> list[int]:
    """Places along an axis: all of a short one, else evenly spread, with its ends and their neighbours."""
    if size <= _ALONG:
        return list(range(size))
    return sorted({0, 1, size - 2, size - 1, *(int(i) for i in np.linspace(0, size - 1, _ALONG))})


def _linear(ctaid: list[int], sizes: tuple[int, int, int]) -> int:
    return ctaid[0] + sizes[0] * (ctaid[1] + sizes[1] * ctaid[2])


def _probes(count: int) -> list[int]:
    """Numbers of some CTAs off the axes, always the same ones."""
    return [int(place * count) for place in evenly(np.arange(1, _PROBES + 1)).tolist()]
