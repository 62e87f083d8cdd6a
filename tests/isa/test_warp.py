"""Warp communication against the pseudo-code of PTX, with partial masks and several groups in one instruction."""

import functools
import operator
import random

import numpy as np
import pytest

import fasim.isa.rows  # noqa: F401  the import fills the table
from fasim.isa.table import ROWS
from tests.harness import BACKENDS, run_row
from tests.isa.oracle import rows_of, signed

FULL = 0xFFFFFFFF


def member_masks(rng):
    """(mask of each lane, lanes that execute): one group, halves, a partition at random, each also with lanes missing."""
    kind = rng.randrange(4)
    if kind == 0:
        masks = [FULL] * 32
    elif kind == 1:
        masks = [0xFFFF << (lane & 16) for lane in range(32)]
    elif kind == 2:
        colours = [rng.randrange(3) for _ in range(32)]
        masks = [sum(1 << j for j in range(32) if colours[j] == colours[lane]) for lane in range(32)]
    else:
        members = rng.getrandbits(32) | 1 << rng.randrange(32)
        return [members] * 32, members
    return masks, rng.choice((FULL, rng.getrandbits(32) | 1))


def shuffle(mode, values, b, c, masks, active, lane):
    segment, clamp, bval = c >> 8 & 31, c & 31, b & 31
    last = (lane & segment) | (clamp & ~segment)
    first = lane & segment
    j = {"up": lane - bval, "down": lane + bval, "bfly": lane ^ bval, "idx": first | (bval & ~segment)}[mode]
    inside = j >= last if mode == "up" else j <= last
    if not inside:
        j = lane
    return values[j] if active & masks[lane] & (1 << j) else values[lane], inside


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_shfl(mode, backend):
    rng = random.Random(mode)
    for trial in range(60):
        values = [rng.getrandbits(32) for _ in range(32)]
        masks, active = member_masks(rng)
        segment = rng.choice((0, 16, 24, 28, 30, 31, rng.randrange(32)))
        clamp = rng.choice((0, 31, rng.randrange(32)))
        b, c = rng.choice((1, 2, 16, rng.randrange(64))), segment << 8 | clamp
        want = [shuffle(mode, values, b, c, masks, active, lane) for lane in range(32)]
        results = [run_row(f"shfl.sync.{mode}.b32", [values, b, c, masks], mask=active, backend=backend)]
        if trial < 6:  # each choice of immediates is another handler
            results.append(run_row(f"shfl.sync.{mode}.b32:imm", [values, masks], immediates=(b, c), mask=active, backend=backend))
        for d, p in results:
            for lane in (i for i in range(32) if active >> i & 1):
                assert (int(d[lane]), bool(p[lane])) == want[lane], (b, hex(c), hex(masks[lane]), hex(active), lane)


def test_shfl_with_other_operands_in_each_lane():
    rng = random.Random(5)
    for mode in ("up", "down", "bfly", "idx"):
        values, b = ([rng.getrandbits(32) for _ in range(32)] for _ in range(2))
        c = [rng.getrandbits(13) for _ in range(32)]
        d, p = run_row(f"shfl.sync.{mode}.b32", [values, b, c, FULL])
        want = [shuffle(mode, values, b[lane], c[lane], [FULL] * 32, FULL, lane) for lane in range(32)]
        assert [(int(x), bool(y)) for x, y in zip(d, p)] == want


def test_butterfly_reduction_sums_the_warp():
    values = [lane * lane for lane in range(32)]
    total = list(values)
    for distance in (16, 8, 4, 2, 1):
        (d, _) = run_row("shfl.sync.bfly.b32:imm", [total, FULL], immediates=(distance, 31))
        total = [x + int(y) for x, y in zip(total, d)]
    assert total == [sum(values)] * 32


def lowest(members):
    return (members & -members).bit_length() - 1


REDUCE = {
    "add.u32": operator.add,
    "add.s32": operator.add,
    "min.u32": min,
    "max.u32": max,
    "min.s32": lambda a, b: a if signed(a, 32) < signed(b, 32) else b,
    "max.s32": lambda a, b: a if signed(a, 32) > signed(b, 32) else b,
    "and.b32": operator.and_,
    "or.b32": operator.or_,
    "xor.b32": operator.xor,
}


def group_results(name, values, group, lane):
    """Destinations of one lane, from the values of the lanes that take part for it."""
    members = [i for i in range(32) if group >> i & 1]
    kind = name.split(".")[:3]
    if kind[0] == "vote":
        true = [i for i in members if values[i]]
        return [{"any": bool(true), "all": true == members, "uni": true in ([], members), "ballot": sum(1 << i for i in true)}[kind[2]]]
    if kind[:2] == ["match", "any"]:
        return [sum(1 << i for i in members if values[i] == values[lane])]
    if kind[:2] == ["match", "all"]:
        same = len({values[i] for i in members}) == 1
        return [group * same, same]
    if kind[0] == "elect":
        return [lowest(group), lane == lowest(group)]
    return [functools.reduce(REDUCE[name[len("redux.sync.") :]], (values[i] for i in members)) & FULL]


COLLECTIVES = sorted(n for n in rows_of("warp") if not n.startswith(("shfl", "activemask")) and ":" not in n)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives(name, backend):
    rng = random.Random(name)
    row = ROWS[name]
    assert row.kind == "collective" and row.attributes["member_mask"] == "mask"
    for trial in range(40):
        masks, active = member_masks(rng)
        bits = rng.choice((1, 2, 32, 64))
        values = [rng.getrandbits(bits) if trial % 3 else 3 for _ in range(32)]
        if row.sources[0].type_ == "pred":
            values = [v & 1 for v in values]
        elif row.sources[0].type_ != "u64":
            values = [v & FULL for v in values]
        sources = [np.array(masks, np.uint64)] if name == "elect.sync" else [np.array(values, np.uint64), np.array(masks, np.uint64)]
        got = run_row(name, sources, mask=active, backend=backend)
        for lane in (i for i in range(32) if active >> i & 1 and masks[i] >> i & 1):
            want = group_results(name, values, masks[lane] & active, lane)
            assert [int(x[lane]) for x in got] == [int(x) for x in want], (hex(masks[lane]), hex(active), lane)


@pytest.mark.parametrize("name", sorted(n for n in rows_of("warp") if n.startswith("redux") and n.endswith(":imm")))
def test_redux_of_a_fixed_mask(name):
    rng = random.Random(name)
    for mask in (FULL, 0x00FF00F0):
        for active in (FULL, 0x00F000FF):
            values = [rng.getrandbits(32) for _ in range(32)]
            (got,) = run_row(name, [values], immediates=(mask,), mask=active)
            for lane in (i for i in range(32) if mask & active & (1 << i)):
                assert [int(got[lane])] == group_results(name[:-4], values, mask & active, lane)


def test_activemask():
    for active in (FULL, 1, 0x80000000, 0x12345678):
        (got,) = run_row("activemask.b32", [], mask=active)
        assert all(int(got[lane]) == active for lane in range(32) if active >> lane & 1)
