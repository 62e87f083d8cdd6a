"""What the warps of some CTAs execute: the machine runs the skeleton of a kernel and writes down blocks and accesses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasim.errors import NotModelled
from fasim.isa import machine as m
from fasim.sass.skeleton import DECIDES
from fasim.sass.syntax import Instruction
from fasim.sm import findings
from fasim.sm.grid import GridRun
from fasim.sm.services import Services
from fasim.sm.state import CtaState
from fasim.warp import path as p

Array = np.ndarray[Any, Any]
CAPACITY = 1 << 18
#: instructions that a CTA may execute before it is given up: it waits for others, which do not run
MOST_INSTRUCTIONS = 1 << 27


@dataclass
class Paths:
    """What each warp of some CTAs executed: warp i of the CTA at place c: entries[begins[c, i]:ends[c, i]]."""

    warps: int
    ctas: list[int] = field(default_factory=list)
    entries: list[Array] = field(default_factory=list)

    def arrays(self) -> tuple[Array, Array, Array]:
        """All entries, and int64[ctas, warps] where those of each warp begin and end."""
        sizes = np.array([len(each) for each in self.entries], np.int64)
        ends = np.cumsum(sizes)
        flat = np.concatenate(self.entries) if self.entries else np.zeros(0, np.int64)
        return flat, (ends - sizes).reshape(-1, self.warps), ends.reshape(-1, self.warps)


class Walk:
    """Runs CTAs of one launch, each alone, and keeps what they do."""

    def __init__(self, run: GridRun, numbers: Sequence[int]) -> None:
        """run: of the skeleton, prepared. numbers: of each access to memory the number of its machine instruction.

        Raises: NotModelled if the path depends on how much time passes.
        """
        self.run, self.program = run, run.program
        code = self.program.code
        clocks = np.flatnonzero((code[:, m.AT_KIND // 4] == m.CLOCK) & (code[:, m.AT_AUX // 4] == DECIDES))
        if len(clocks):
            at = self.program.source_at(int(clocks[0]))
            raise NotModelled(
                f"{self.program.title} reads the clock ({at.file}:{at.line}: `{at.text}`) to decide what it executes or where it accesses "
                "memory: the timing model works out first what is executed and then how long that takes; leave that part out and predict "
                "the rest"
            )
        self.positions = np.array(numbers or [0], np.int32)
        self.buffer = np.zeros(2 * CAPACITY, np.int64)
        self.block = np.zeros(p.PATH_WORDS, np.int64)
        self.state = CtaState(run.program, run.shape, run.shared, count=True)
        self.block[p.H_CAPACITY // 8] = CAPACITY
        self.block[p.H_BUFFER // 8] = self.buffer.ctypes.data
        self.block[p.H_POSITIONS // 8] = self.positions.ctypes.data
        self.block[p.H_LOCAL_LINES // 8] = -(-self.program.local_bytes // 4)
        self.state.set(m.C_PATH, self.block.ctypes.data)
        self.services = Services(run.program, run.space, lambda text: None)

    def cta(self, number: int) -> list[Array]:
        """The entries of each warp of a CTA.

        Raises: NotModelled if it waits for other CTAs; as a launch for what fails.
        """
        state, address = self.state, int(self.state.context.ctypes.data)
        for slot, value in {m.C_CTA: number, m.C_CTA_END: number + 1, m.C_STARTED: 0, m.C_BUDGET: MOST_INSTRUCTIONS}.items():
            state.set(slot, value)
        parts: list[Array] = []
        while True:
            status = self.run.machine.run(address, self.program.entry_pc)
            count = int(self.block[p.H_ENTRIES // 8])
            parts.append(self.buffer[: 2 * count].reshape(-1, 2).copy())
            self.block[p.H_ENTRIES // 8] = 0
            if status == m.DONE:
                break
            if status == m.QUEUE_FULL:
                state.grow_queue()
            elif status == m.NEEDS_SERVICE:
                self.services.perform(state)
            elif status == m.FAILED:
                raise findings.from_record(self.program, state, self.run.space)
            elif status == m.OUT_OF_BUDGET:
                raise NotModelled(
                    f"CTA {self.run.shape.ctaid(number)} of {self.program.title} has not ended after {MOST_INSTRUCTIONS:,} warp "
                    "instructions: the timing model runs CTAs one by one, so it cannot follow kernels whose CTAs wait for each other "
                    "(spin locks, flags, synchronised grids); make kernels of the parts between the waits and predict these"
                )
        words = np.concatenate(parts)
        warps = words[:, 0].astype(np.uint8)
        ends = np.cumsum(np.bincount(warps, minlength=self.run.shape.warps))
        return np.split(words[np.argsort(warps, kind="stable"), 1], ends[:-1])


def site_numbers(run: GridRun, instructions: Sequence[Instruction]) -> list[int]:
    """Of each access to memory of a skeleton the number of its instruction in the kernel's machine code."""
    by_line = {}
    for number, ins in enumerate(instructions):
        by_line[ins.line.offset] = number
    return [by_line[run.program.source_at(pc).offset] for pc in run.program.sites]
