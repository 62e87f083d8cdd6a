"""Where the instructions of a program stand: source lines, steps of the algorithm, barriers, and the loop whose rounds are tiles."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from fasim.isa import machine as m
from fasim.isa.program import Program, SourceInstruction
from fasim.sm.flow import successors
from fasim.trace.steps import SourceLines, call_path

Array = np.ndarray[Any, Any]
#: the key of an instruction that belongs to whatever came before it
INHERITED = -1


@dataclass(frozen=True)
class Loop:
    """A loop of the code: from its first instruction, which every round begins with, to the last one that leads back there."""

    first_pc: int
    last_pc: int
    steps: int
    barriers: int


class Places:
    """What of a program's instructions does not depend on where one is. texts: sources that need not be read from disk, by path."""

    def __init__(self, program: Program, texts: Mapping[str, str] | None = None) -> None:
        self.program, self.sources = program, SourceLines(texts)
        self.kinds: Array = program.code[:, m.AT_KIND // 4]

    def source(self, pc: int) -> SourceInstruction:
        """The instruction as a person sees it; for what lowering inserted the nearest one before it."""
        return self.program.source_at(pc)

    def inserted(self, pc: int) -> bool:
        """Whether the instruction is not in the code: a jump, since PTX is laid out in another order, or operands of machine code moved."""
        return self.program.source[pc] is None

    def text(self, pc: int) -> str:
        """An instruction in one line; of one that is not in the code what it does, in parentheses."""
        if self.inserted(pc) and self.kinds[pc] not in (m.BRA, m.EXIT, m.RET, m.TRAP):
            return "(operands are moved)"
        if self.inserted(pc):
            targets = " or ".join(map(str, dict.fromkeys(successors(self.program, pc))))
            return f"(inserted jump to {targets})" if targets else "(inserted end)"
        return " ".join(self.source(pc).text.split())

    def path(self, pc: int) -> tuple[tuple[str, int], ...]:
        """File and line in the kernel, then inwards those of the calls that were inlined; empty if the compiler gave no line."""
        return call_path(self.source(pc))

    def line(self, pc: int) -> tuple[str, int] | None:
        """The line that an instruction belongs to: that of the kernel itself, or of the function that was called."""
        path = self.path(pc)
        return path[0] if path else None

    def step(self, pc: int) -> str:
        """The step of the algorithm, "" where none is marked."""
        return self.every_step[pc]

    @cached_property
    def every_step(self) -> list[str]:
        """The step of each pc; what has no place of its own has that of the instruction before it."""
        return [self.sources.step_of(self.source(pc)) for pc in range(len(self.program))]

    def _keys(self, names: Sequence[Hashable]) -> Array:
        """Equal numbers for equal names, INHERITED for None."""
        numbers: dict[Hashable, int] = {None: INHERITED}
        return np.array([numbers.setdefault(name, len(numbers)) for name in names], np.int64)

    def _own(self, pc: int) -> bool:
        source = self.program.source[pc]
        return source is not None and source.line > 0

    @cached_property
    def line_keys(self) -> Array:
        """A number for each line, by pc."""
        return self._keys([self.line(pc) if self._own(pc) else None for pc in range(len(self.program))])

    @cached_property
    def steps(self) -> list[str]:
        """The step of each pc, "" for what has no place of its own."""
        return [self.step(pc) if self._own(pc) else "" for pc in range(len(self.program))]

    @cached_property
    def has_steps(self) -> bool:
        """Whether the source marks any."""
        return any(self.steps)

    @cached_property
    def step_keys(self) -> Array:
        """A number for each step, by pc; what is outside of steps belongs to the one before. Where none are marked, those of the lines."""
        if not self.has_steps:
            return self.line_keys
        return self._keys([step or None for step in self.steps])

    @cached_property
    def barrier_pcs(self) -> Array:
        """Whether the instruction at each pc is a barrier of the CTA."""
        return np.asarray(self.kinds == m.BAR)

    @cached_property
    def copy_pcs(self) -> Array:
        """Whether the instruction at each pc issues, commits or waits for copies."""
        return np.isin(self.kinds, (m.CP_ASYNC, m.CP_COMMIT, m.CP_WAIT))

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops, in the order of the code."""
        ends: dict[int, int] = {}
        for pc in range(len(self.program)):
            if self.program.barriers_only and self.kinds[pc] == m.BRX:
                continue  # a return of machine code, which may lead anywhere
            for target in successors(self.program, pc):
                if target <= pc:
                    ends[target] = max(ends.get(target, 0), pc)
        return [
            Loop(first, last, len(set(self.steps[first : last + 1]) - {""}), int(self.barrier_pcs[first : last + 1].sum()))
            for first, last in sorted(ends.items())
        ]

    @cached_property
    def tile_loop(self) -> Loop | None:
        """The loop whose rounds are the tiles: that with the most steps, of those the smallest.

        Where no steps are marked, that with the most barriers, of those the largest.
        """
        if not self.loops:
            return None
        if self.has_steps and any(loop.steps for loop in self.loops):
            return max(self.loops, key=lambda loop: (loop.steps, loop.first_pc - loop.last_pc))
        return max(self.loops, key=lambda loop: (loop.barriers, loop.last_pc - loop.first_pc))

    @cached_property
    def tile_pcs(self) -> Array:
        """Whether each pc begins a tile."""
        found = np.zeros(len(self.program), bool)
        if self.tile_loop is not None:
            found[self.tile_loop.first_pc] = True
        return found


def entries(keys: Array, warps: Array) -> Array:
    """Whether each of some positions begins something new for its warp. keys, warps: of the instruction at each of them.

    The first instruction of a warp that has a key does so too.
    """
    found, at = np.zeros(len(keys), bool), np.flatnonzero(keys != INHERITED)
    at = at[np.argsort(warps[at], kind="stable")]
    own, warps = keys[at], warps[at]
    found[at] = np.concatenate([np.ones(min(len(own), 1), bool), (own[1:] != own[:-1]) | (warps[1:] != warps[:-1])])
    return found
