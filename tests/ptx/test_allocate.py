"""Register rows: random programs give the same results with shared rows as with a row for every register."""

from __future__ import annotations

import random

import pytest

from fasim.isa import machine as m
from fasim.ptx.allocate import allocate
from fasim.ptx.ir import Block, LoweredFunction, Op, Ref, VReg


def random_function(seed: int) -> tuple[LoweredFunction, list[VReg]]:
    """Blocks that only jump forward or one loop back, full of operations `d = number + sum of sources`."""
    rng = random.Random(seed)
    regs = [VReg(f"r{i}", rng.choice((32, 32, 64, 1)), function="f") for i in range(rng.randint(3, 25))]
    count = rng.randint(1, 7)
    blocks = []
    for b in range(count):
        ops = []
        for number in range(rng.randint(1, 8)):
            sources = rng.sample(regs, rng.randint(0, 3))
            dests = rng.sample(regs, rng.randint(1, 2))
            guard = Ref(rng.choice(regs)) if rng.random() < 0.2 else None
            pool = [*(Ref(d, False, True) for d in dests), *(Ref(s) for s in sources)]
            ops.append(Op(m.LANES, pool, guard=guard, aux=100 * b + number, keeps_sources=rng.random() < 0.3))
        successors = sorted({rng.randint(0, count - 1) for _ in range(rng.randint(0, 2))} | ({b + 1} if b + 1 < count else set()))
        blocks.append(Block([], ops, successors, b + 1 if b + 1 < count else -1))
    return LoweredFunction("f", blocks), regs


@pytest.mark.parametrize("seed", range(150))
def test_sharing_rows_changes_nothing(seed):
    function, regs = random_function(seed)
    allocate(function)
    for path in range(4):
        assert execute(function, lambda r: (r.bank, r.slot), path) == execute(function, lambda r: r.name, path)
    assert sum(function.slots.values()) <= len(regs)


def execute(function: LoweredFunction, place, seed: int) -> list[list[int | None]]:
    """Run along a random path; what each operation reads, None where that depends on registers which were never written."""
    rng, memory, trace, block, defined = random.Random(seed), {}, [], 0, set()
    for _ in range(30):
        for op in function.blocks[block].ops:
            sources = [item.reg for item in op.pool if item.reads] + ([op.guard.reg] if op.guard else [])
            clean = all(reg.name in defined for reg in sources)
            values = [memory.get(place(reg)) if reg.name in defined else None for reg in sources]
            trace.append(values)
            if op.guard is not None and (values[-1] is None or values[-1] & 1):
                continue
            total = sum(v for v in values if v is not None)
            for i, reg in enumerate(op.writes()):
                memory[place(reg)] = op.aux + i + 7 * total
                (defined.add if clean else defined.discard)(reg.name)
        successors = function.blocks[block].successors
        if not successors:
            break
        block = rng.choice(successors)
    return trace


def test_registers_that_never_meet_share_a_row():
    a, b, c = (VReg(n, 32, function="f") for n in "abc")
    ops = [Op(m.LANES, [Ref(a, False, True)]), Op(m.LANES, [Ref(b, False, True), Ref(a)]), Op(m.LANES, [Ref(c, False, True), Ref(b)])]
    function = LoweredFunction("f", [Block([], ops)])
    allocate(function)
    assert function.slots[32] == 1


def test_an_operation_that_writes_early_keeps_its_sources():
    a, b = (VReg(n, 32, function="f") for n in "ab")
    ops = [Op(m.LANES, [Ref(a, False, True)]), Op(m.ATOM, [Ref(b, False, True), Ref(a)], keeps_sources=True)]
    function = LoweredFunction("f", [Block([], ops)])
    allocate(function)
    assert a.slot != b.slot
