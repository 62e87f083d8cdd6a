"""Loops of machine code with chosen control bits, as they were measured on an H200, on the timing model."""

from __future__ import annotations

import functools
import json
import lzma
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from fasim.arch.cards import card
from fasim.sass.control import Control
from fasim.sass.listing import SassLine
from fasim.sass.syntax import Instruction, Predicate, Register, parse
from fasim.sm.timing import classes as c
from fasim.sm.timing import record as r
from fasim.sm.timing.constants import constants
from fasim.sm.timing.decode import decode
from fasim.sm.timing.paths import Paths
from fasim.sm.timing.sm import SmRun, run
from fasim.warp import path as p

DATA = Path(__file__).parent / "data" / "h200_loops.json.xz"
_LINE = re.compile(r"(?:(\d+) x )?\[B(.{6}):R(.):W(.):(.):S(\d+)\] (.*)")
#: loops are run for so many and for so many rounds: the difference counts
ROUNDS = (30, 60)


@dataclass(frozen=True)
class Loop:
    """A loop and its cycles a round, by warps on the SM, divided by the warps of a sub-partition; `W4/2way`: with bank conflicts."""

    name: str
    sass: tuple[str, ...]
    cycles: dict[str, float]


@functools.cache
def measured() -> tuple[Loop, ...]:
    """What was measured."""
    loops = json.loads(lzma.decompress(DATA.read_bytes()))["loops"]
    return tuple(Loop(name, tuple(each["sass"]), each["cycles"]) for name, each in loops.items())


def read(line: str) -> tuple[int, Instruction, Control]:
    """How often, the instruction, its control bits."""
    match = _LINE.fullmatch(line)
    assert match, line
    ins = parse(SassLine(0, match[7]))
    operands = list(ins.operands)
    first = next((i for i, operand in enumerate(operands) if isinstance(operand, Register)), len(operands))
    sources = [operand for operand in operands[first + 1 :] if not isinstance(operand, Predicate)]
    reuse = sum(1 << i for i, operand in enumerate(sources) if isinstance(operand, Register) and "reuse" in operand.parts)
    wait = sum(1 << i for i, character in enumerate(match[2]) if character != "-")
    boards = [-1 if text == "-" else int(text) for text in (match[4], match[3])]
    return int(match[1] or 1), ins, Control(int(match[6]), match[5] == "Y", *boards, wait, reuse)


def simulate(sass: tuple[str, ...], warps: int, ways: int, rounds: int) -> SmRun:
    """Run the loop with so many warps; ways: wavefronts for one, of accesses to shared memory."""
    instructions: list[Instruction] = []
    controls: list[Control] = []
    for line in sass:
        count, ins, control = read(line)
        instructions += [ins] * count
        controls += [replace(control)] * count
    records = decode(instructions, controls, card("h200"), [0])
    entries: list[int] = []
    for i, ins in enumerate(instructions):
        kind, words = records[i, r.I_KIND], c.vector_bytes(ins) // 4
        if kind in (c.SHARED_LOAD, c.SHARED_STORE, c.SHARED_ATOMIC):
            entries.append(p.SHARED_ACCESS | i << p.POSITION_SHIFT | words * ways << p.DETAIL_SHIFT)
        elif kind in (c.GLOBAL_LOAD, c.GLOBAL_STORE, c.COPY):
            if kind == c.COPY:
                entries.append(p.SHARED_ACCESS | i << p.POSITION_SHIFT | (4 | 16 << p.FILL_BITS) << p.DETAIL_SHIFT)
            entries.append(p.GLOBAL_ACCESS | i << p.POSITION_SHIFT | words << p.DETAIL_SHIFT)
            entries += [p.LINE | 15 << p.SECTOR_SHIFT | line << p.LINE_SHIFT for line in range(100, 100 + words)]
    stream = np.array([p.BLOCK, *entries] * rounds, np.int64)
    paths = Paths(warps, [0], [stream] * warps)
    return run(records, paths, [0], 1, constants(card("h200"), smem_config_bytes=65536))


def cycles(loop: Loop, key: str) -> float:
    """Cycles a round as the model has it, for an entry of `Loop.cycles`."""
    match = re.fullmatch(r"W(\d+)(?:/(\d+)way)?", key)
    assert match, key
    warps, ways = int(match[1]), int(match[2] or 1)
    first, second = (simulate(loop.sass, warps, ways, rounds).cycles for rounds in ROUNDS)
    return (second - first) / (ROUNDS[1] - ROUNDS[0]) / max(1.0, warps / 4)
