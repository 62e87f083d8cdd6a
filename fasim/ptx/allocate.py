"""Register rows: virtual registers that are never alive together share a row, so that a warp's registers stay in the processor's cache.

Lanes of a warp at different places do not disturb each other, since every lane has its own column; so the liveness of one thread is enough.
"""

from __future__ import annotations

import heapq

from fasim.ptx.ir import LoweredFunction, VReg


def allocate(function: LoweredFunction) -> None:
    """Give every virtual register of the function a slot in its bank; counts go to `function.slots`."""
    starts, ends = intervals(function)
    busy: list[tuple[int, int, VReg]] = []
    free: dict[int, list[int]] = {1: [], 32: [], 64: []}
    used = {1: 0, 32: 0, 64: 0}
    for number, reg in enumerate(sorted(starts, key=lambda r: (starts[r], r.name))):
        while busy and busy[0][0] < starts[reg]:
            _, _, old = heapq.heappop(busy)
            heapq.heappush(free[old.bank], old.slot)
        if free[reg.bank]:
            reg.slot = heapq.heappop(free[reg.bank])
        else:
            reg.slot = used[reg.bank]
            used[reg.bank] += 1
        heapq.heappush(busy, (ends[reg], number, reg))
    function.slots = used


def intervals(function: LoweredFunction) -> tuple[dict[VReg, int], dict[VReg, int]]:
    """First and last position of each register; an operation reads at 2i and writes at 2i + 1 (at 2i if it must keep its sources)."""
    blocks = function.blocks
    index: dict[VReg, int] = {}
    regs: list[VReg] = []

    def bit(reg: VReg) -> int:
        if reg not in index:
            index[reg] = len(regs)
            regs.append(reg)
        return 1 << index[reg]

    uses, kills = [0] * len(blocks), [0] * len(blocks)
    for b, block in enumerate(blocks):
        for op in block.ops:
            for reg in op.reads():
                if not reg.fixed and not kills[b] & bit(reg):
                    uses[b] |= bit(reg)
            if op.guard is None:  # under a guard the old value shines through
                for reg in op.writes():
                    if not reg.fixed:
                        kills[b] |= bit(reg)
            else:
                for reg in op.writes():
                    if not reg.fixed and not kills[b] & bit(reg):
                        uses[b] |= bit(reg)
    live_in, live_out = list(uses), [0] * len(blocks)
    predecessors: list[list[int]] = [[] for _ in blocks]
    for b, block in enumerate(blocks):
        for s in block.successors:
            predecessors[s].append(b)
    work = list(range(len(blocks)))
    while work:
        b = work.pop()
        out = 0
        for s in blocks[b].successors:
            out |= live_in[s]
        live_out[b] = out
        new = uses[b] | (out & ~kills[b])
        if new != live_in[b]:
            live_in[b] = new
            work.extend(predecessors[b])
    starts: dict[VReg, int] = {}
    ends: dict[VReg, int] = {}

    def touch(reg: VReg, position: int) -> None:
        if reg not in starts or position < starts[reg]:
            starts[reg] = position
        if reg not in ends or position > ends[reg]:
            ends[reg] = position

    def touch_all(bits: int, position: int) -> None:
        while bits:
            low = bits & -bits
            touch(regs[low.bit_length() - 1], position)
            bits ^= low

    position = 0
    for b, block in enumerate(blocks):
        touch_all(live_in[b], position)
        for op in block.ops:
            for reg in op.reads():
                if not reg.fixed:
                    touch(reg, position)
            for reg in op.writes():
                if not reg.fixed:
                    touch(reg, position if op.keeps_sources else position + 1)
            position += 2
        touch_all(live_out[b], position - 1 if block.ops else position)
    return starts, ends
