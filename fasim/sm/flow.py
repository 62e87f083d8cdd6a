"""The flow of control in a program: what every path from a barrier or a collective leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.isa import machine as m
from fasim.isa.operands import X_COUNT, X_TARGETS
from fasim.isa.program import Program

Array = np.ndarray[Any, Any]


def successors(program: Program, pc: int) -> list[int]:
    """Where a thread can be after an instruction of its function, calls aside; empty at the end of the function."""
    code = program.code[pc]
    kind, guarded = int(code[m.AT_KIND // 4]), int(code[m.AT_GUARD // 4]) >= 0
    following = [pc + 1] if pc + 1 < len(program) else []
    if kind == m.BRA:
        return [int(code[m.AT_AUX // 4]), *(following if guarded else [])]
    if kind == m.BRX:
        count = program.operand(pc, X_COUNT)
        return [*(program.operand(pc, X_TARGETS + 4 * i) for i in range(count)), *(following if guarded else [])]
    if kind in (m.EXIT, m.RET, m.TRAP):
        return following if guarded else []
    return following


def blocks_of(program: Program) -> tuple[Array, list[tuple[int, int]], list[list[int]]]:
    """The block of each pc, first and last pc of each block, and the blocks that can follow each."""
    length = len(program)
    nexts = [successors(program, pc) for pc in range(length)]
    starts = {0}
    for pc, after in enumerate(nexts):
        if after != [pc + 1]:
            starts.update(after)
            starts.add(pc + 1)
    heads = sorted(start for start in starts if start < length)
    block = np.searchsorted(np.array(heads), np.arange(length), side="right") - 1
    spans = list(zip(heads, [head - 1 for head in heads[1:]] + [length - 1]))
    return block, spans, [sorted({int(block[pc]) for pc in nexts[last]}) for _, last in spans]


def post_dominators(follow: list[list[int]]) -> list[int]:
    """For each block, as bits of a number, the blocks through which every path from it to the end leads; itself among them."""
    everything = (1 << len(follow)) - 1
    found = [everything if after else 1 << i for i, after in enumerate(follow)]
    changed = True
    while changed:
        changed = False
        for i in range(len(follow) - 1, -1, -1):
            common = everything
            for after in follow[i]:
                common &= found[after]
            new = (common if follow[i] else 0) | 1 << i
            if new != found[i]:
                found[i], changed = new, True
    return found


def reaches(program: Program, start: int, end: int) -> bool:
    """Whether a thread can get from one instruction to another one of the same function."""
    seen, stack = set(), successors(program, start)
    while stack:
        pc = stack.pop()
        if pc == end:
            return True
        if pc not in seen:
            seen.add(pc)
            stack += successors(program, pc)
    return False


def in_one_loop(program: Program, a: int, b: int) -> bool:
    """Whether two instructions stand in a common loop."""
    return reaches(program, a, b) and reaches(program, b, a)


@dataclass(frozen=True)
class After:
    """What comes on every path after an instruction at which lanes wait for each other.

    addresses: for each pc that of its row, 0 if nobody waits there. rows: a byte a block of the code, 1 where every path leads. blocks: the
    block of each pc.
    """

    addresses: Array
    rows: Array
    blocks: Array


def after_each_sync(program: Program) -> After:
    """The same for all barriers and collectives of a program."""
    waits = np.flatnonzero(np.isin(program.code[:, m.AT_KIND // 4], (m.BAR, m.COLLECTIVE, m.WARP_SYNC)))
    addresses, blocks = np.zeros(len(program), np.int64), np.zeros(len(program), np.int32)
    rows = np.zeros((0, 0), np.uint8)
    if len(waits):
        block, _, follow = blocks_of(program)
        blocks[:] = block
        found = post_dominators(follow)
        waiting = np.unique(block[waits])
        rows = np.zeros((len(waiting), len(follow)), np.uint8)
        for row, number in zip(rows, waiting):
            row[[other for other in range(len(follow)) if found[number] >> other & 1]] = 1
        addresses[waits] = rows.ctypes.data + np.searchsorted(waiting, block[waits]) * len(follow)
    return After(addresses, rows, blocks)
