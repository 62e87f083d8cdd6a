"""The part of a kernel that decides which way it goes and which addresses it accesses: what the timing model has to execute.

Everything else, most of the arithmetic, is left out, and so is the data of stores unless a load that matters could read it. Dead code
elimination, with jumps, barriers and addresses as what is alive.
"""

from __future__ import annotations

from fasim.isa import machine as m
from fasim.isa.operands import A_ELEMENTS, M_REGISTERS, P_REGISTERS, P_SPACE, Q_SOURCE
from fasim.ptx.ir import LoweredFunction, Op, Ref, VReg

#: where the registers with data begin among the operands, in bytes
_DATA = {
    m.LOAD: P_REGISTERS,
    m.STORE: P_REGISTERS,
    m.ATOM: A_ELEMENTS,
    m.LDMATRIX: M_REGISTERS,
    m.STMATRIX: M_REGISTERS,
}
_COMPUTES = (m.LANES, m.COLLECTIVE, m.CLOCK)


#: AT_AUX of a CLOCK on which the path or an address depends without a way through memory
DECIDES = 1


def reduce(function: LoweredFunction) -> None:
    """Remove the operations that change neither the path nor an address."""
    spaces: set[int] = set()
    kept, read = _alive(function, spaces)
    for block in function.blocks:
        for op in block.ops:
            if op.kind == m.CLOCK and id(op) in kept:
                op.aux = DECIDES
    while not read <= spaces:
        spaces |= read
        kept, read = _alive(function, spaces)
    for block in function.blocks:
        block.ops = [op for op in block.ops if id(op) in kept]


def _alive(function: LoweredFunction, spaces: set[int]) -> tuple[set[int], set[int]]:
    """The operations that matter if the contents of those state spaces do, and the spaces that loads that matter read."""
    blocks = function.blocks
    index: dict[VReg, int] = {}
    predecessors: list[list[int]] = [[] for _ in blocks]
    for b, block in enumerate(blocks):
        for successor in block.successors:
            predecessors[successor].append(b)

    def bits(registers: list[VReg]) -> int:
        found = 0
        for register in registers:
            if not register.fixed:
                found |= 1 << index.setdefault(register, len(index))
        return found

    facts = [[(op, *_reads(op, spaces), op.writes()) for op in block.ops] for block in blocks]
    masks = [[(op, bits(always), bits(if_wanted), bits(writes)) for op, always, if_wanted, writes in each] for each in facts]
    live_in = [0] * len(blocks)
    work = list(range(len(blocks)))
    kept: set[int] = set()
    read: set[int] = set()
    while work:
        b = work.pop()
        live = 0
        for successor in blocks[b].successors:
            live |= live_in[successor]
        for op, always, if_wanted, writes in reversed(masks[b]):
            wanted = bool(live & writes)
            if op.kind in _COMPUTES:
                if not wanted:
                    continue
            elif wanted and op.kind in _DATA:
                read.add(_space(op))
            kept.add(id(op))
            if op.guard is None and not op.keeps_sources:
                live &= ~writes
            live |= always
            if wanted or op.kind in _COMPUTES:
                live |= if_wanted
        if live != live_in[b]:
            live_in[b] = live
            work.extend(predecessors[b])
    return kept, read


def _space(op: Op) -> int:
    space = op.pool[P_SPACE // 4]
    return space if isinstance(space, int) else m.GENERIC


def _reads(op: Op, spaces: set[int]) -> tuple[list[VReg], list[VReg]]:
    """What an operation always reads, and what it reads only for the sake of its results or of memory that matters."""
    if op.kind not in _DATA:
        return op.reads(), []
    start = _DATA[op.kind] // 4
    address = [item.reg for item in op.pool[:start] if isinstance(item, Ref) and item.reads]
    if op.guard is not None:
        address.append(op.guard.reg)
    data = [item.reg for item in op.pool[start:] if isinstance(item, Ref) and item.reads]
    space = _space(op)
    matters = space in spaces or m.GENERIC in spaces or (space == m.GENERIC and bool(spaces - {m.PARAM, m.CONST}))
    return (address + data, []) if matters and op.kind in (m.STORE, m.STMATRIX, m.ATOM) else (address, data)


#: the source of a copy stands behind its target, and both are addresses
assert Q_SOURCE > P_SPACE
