"""Warp communication through registers: shfl, vote, match, activemask, redux, elect.

Every lane brings its own member mask, so that lanes of several groups can execute one instruction together, each group for
itself: the lanes that take part for a lane are those of its mask that execute.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.table import op
from fasim.numerics.lanes import LANES, Lanes, ballot, brev, clz, const, gather, lane_id, permute, where

DOC = "parallel-synchronization-and-communication-instructions-"
FULL = 0xFFFFFFFF
EVEN = [lane % 2 == 0 for lane in range(LANES)]
IDS = list(range(LANES))


def collective(name: str, signature: str, doc: str, semantics: Callable[..., Any], cases: list[Any], min_arch: int = 30) -> None:
    """Declare an instruction that runs once all lanes of the operand `mask` have arrived."""
    op(name, signature, doc=DOC + doc, kind="collective", cases=cases, min_arch=min_arch, member_mask="mask")(semantics)


def taking_part(mask: Lanes, active: Lanes) -> Lanes:
    """The lanes, as bits, that take part for each lane."""
    return ballot(active) & mask


# --- shfl ----------------------------------------------------------------------------------------------------------------------


def _source_lane(mode: str, lane: Any, b: Any, c: Any) -> tuple[Any, Any]:
    """The lane to read and whether it lies inside the segment, for u32 lane values (or Python ints: `lane - b` is then negative)."""
    segment, clamp, b = (c >> 8) & 31, c & 31, b & 31
    first = lane & segment
    last = first | (clamp & (segment ^ 31))
    if mode == "up":
        return lane - b, lane >= last + b
    j = {"down": lambda: lane + b, "bfly": lambda: lane ^ b, "idx": lambda: first | (b & (segment ^ 31))}[mode]()
    return j, j <= last


def _shfl(mode: str) -> Callable[..., tuple[Lanes, Lanes]]:
    def shfl(a: Lanes, b: Lanes, c: Lanes, mask: Lanes, active: Lanes) -> tuple[Lanes, Lanes]:
        lane = lane_id(a)
        j, inside = _source_lane(mode, lane, b, c)
        j = where(inside, j, lane)
        # a source lane that does not take part leaves the result undefined: the lane keeps its own value
        there = ((taking_part(mask, active) >> j) & 1) != 0
        return gather(a, where(there, j, lane)), inside

    return shfl


def _shfl_immediate(mode: str) -> Callable[..., tuple[Lanes, Lanes]]:
    def shfl(a: Lanes, b: int, c: int, mask: Lanes, active: Lanes) -> tuple[Lanes, Lanes]:
        pairs = [_source_lane(mode, lane, b, c) for lane in range(LANES)]
        source = [j if inside else lane for lane, (j, inside) in enumerate(pairs)]
        bit = const([1 << j for j in source], like=mask)
        there = (taking_part(mask, active) & bit) != 0
        return where(there, permute(a, source), a), const([inside for _, inside in pairs], like=active)

    return shfl


# Source: PTX ISA, the pseudo-code of shfl.sync. c holds the segment mask in bits 8 to 12 and the clamp in bits 0 to 4.
_SHFL_CASES: dict[str, list[Any]] = {
    "up": [
        ((IDS, 1, 0, FULL), ([0, *range(31)], [0] + [1] * 31)),
        ((IDS, 2, 0x1800, FULL), ([i if i % 8 < 2 else i - 2 for i in IDS], [i % 8 >= 2 for i in IDS])),
    ],
    "down": [
        ((IDS, 1, 31, FULL), ([*range(1, 32), 31], [1] * 31 + [0])),
        ((IDS, 3, 0x181F, FULL), ([i if i % 8 > 4 else i + 3 for i in IDS], [i % 8 <= 4 for i in IDS])),
    ],
    "bfly": [
        ((IDS, 16, 31, FULL), ([i ^ 16 for i in IDS], 1)),
        ((IDS, 8, 0x181F, FULL), ([i ^ 8 if i & 8 else i for i in IDS], [i & 8 == 8 for i in IDS])),
    ],
    "idx": [
        ((IDS, 5, 31, FULL), (5, 1)),
        ((IDS, 37, 31, FULL), (5, 1)),
        ((IDS, [31 - i for i in IDS], 31, FULL), ([31 - i for i in IDS], 1)),
        ((IDS, 9, 0x181F, FULL), ([i & 24 | 1 for i in IDS], 1)),
        ((IDS, 9, 4, FULL), (IDS, 0)),
        ((IDS, [5] * 16 + [20] * 16, 31, [0x0000FFFF] * 16 + [0xFFFF0000] * 16), ([5] * 16 + [20] * 16, 1)),
        ((IDS, 20, 31, [0x0000FFFF] * 16 + [0xFFFF0000] * 16), ([*range(16)] + [20] * 16, 1)),
    ],
}
for _mode, _cases in _SHFL_CASES.items():
    collective(f"shfl.sync.{_mode}.b32", "d:b32, p:pred = a:b32, b:u32, c:u32, mask:u32, active:pred", "shfl-sync", _shfl(_mode), _cases)
    collective(
        f"shfl.sync.{_mode}.b32:imm",
        "d:b32, p:pred = a:b32, b:imm, c:imm, mask:u32, active:pred",
        "shfl-sync",
        _shfl_immediate(_mode),
        [case for case in _cases if isinstance(case[0][1], int)],
    )


# --- vote, activemask, elect ---------------------------------------------------------------------------------------------------


def vote_any(a: Lanes, mask: Lanes, active: Lanes) -> Lanes:
    return (ballot(a & active) & mask) != 0


def vote_all(a: Lanes, mask: Lanes, active: Lanes) -> Lanes:
    return (ballot(~a & active) & mask) == 0


def vote_uni(a: Lanes, mask: Lanes, active: Lanes) -> Lanes:
    return vote_all(a, mask, active) | ~vote_any(a, mask, active)


def vote_ballot(a: Lanes, mask: Lanes, active: Lanes) -> Lanes:
    return ballot(a & active) & mask


_VOTE = "p:pred = a:pred, mask:u32, active:pred"
_GROUPS = [0x0000FFFF] * 16 + [0xFFFF0000] * 16
_LOW = [1] * 16 + [0] * 16
collective(
    "vote.sync.any.pred",
    _VOTE,
    "vote-sync",
    vote_any,
    [((EVEN, FULL), 1), ((0, FULL), 0), ((EVEN, 0xAAAAAAAA), 0), ((_LOW, _GROUPS), _LOW)],
)
collective(
    "vote.sync.all.pred",
    _VOTE,
    "vote-sync",
    vote_all,
    [((EVEN, FULL), 0), ((1, FULL), 1), ((EVEN, 0x55555555), 1), ((_LOW, _GROUPS), _LOW)],
)
collective(
    "vote.sync.uni.pred",
    _VOTE,
    "vote-sync",
    vote_uni,
    [((EVEN, FULL), 0), ((0, FULL), 1), ((1, FULL), 1), ((_LOW, _GROUPS), 1), ((_LOW, FULL), 0)],
)
collective(
    "vote.sync.ballot.b32",
    "d:b32 = a:pred, mask:u32, active:pred",
    "vote-sync",
    vote_ballot,
    [((EVEN, FULL), 0x55555555), ((EVEN, 0xFF), 0x55), ((1, _GROUPS), _GROUPS)],
)


@op("activemask.b32", "d:b32 = active:pred", doc=DOC + "activemask", cases=[((), FULL)], min_arch=30)
def activemask(active: Lanes) -> Lanes:
    return ballot(active)


def elect(mask: Lanes, active: Lanes) -> tuple[Lanes, Lanes]:
    # PTX leaves the choice open, but says that it is the same for the same mask
    leader = clz(brev(taking_part(mask, active)))
    return leader, leader == lane_id(mask)


collective(
    "elect.sync",
    "d:b32, p:pred = mask:u32, active:pred",
    "elect-sync",
    elect,
    [((FULL,), (0, [1] + [0] * 31)), ((0xFF00,), (8, [i == 8 for i in IDS]))],
    90,
)


# --- match ---------------------------------------------------------------------------------------------------------------------


def _splat(x: Lanes, lane: int) -> Lanes:
    return permute(x, [lane] * LANES)


def match_any(a: Lanes, mask: Lanes, active: Lanes) -> Lanes:
    peers = mask ^ mask
    for lane in range(LANES):
        peers = peers | where(a == _splat(a, lane), const(1 << lane, like=mask), 0)
    return peers & taking_part(mask, active)


def match_all(a: Lanes, mask: Lanes, active: Lanes) -> tuple[Lanes, Lanes]:
    members = taking_part(mask, active)
    same = match_any(a, mask, active) == members
    return where(same, members, 0), same


_QUADS = [i // 4 for i in IDS]
_QUAD_MASKS = [0xF << (i & 28) for i in IDS]
for _n in (32, 64):
    _high = 1 << (_n - 1)
    collective(
        f"match.any.sync.b{_n}",
        f"d:b32 = a:b{_n}, mask:u32, active:pred",
        "match-sync",
        match_any,
        [
            ((_QUADS, FULL), _QUAD_MASKS),
            (([_high + i % 2 for i in IDS], FULL), [0x55555555 << i % 2 for i in IDS]),
            ((7, _GROUPS), _GROUPS),
        ],
        70,
    )
    collective(
        f"match.all.sync.b{_n}",
        f"d:b32, p:pred = a:b{_n}, mask:u32, active:pred",
        "match-sync",
        match_all,
        [((_high, FULL), (FULL, 1)), (([0] * 31 + [_high], FULL), (0, 0)), ((_QUADS, _QUAD_MASKS), (_QUAD_MASKS, 1))],
        70,
    )


# --- redux ---------------------------------------------------------------------------------------------------------------------

Combine = Callable[[Lanes, Lanes], Lanes]


def _redux(combine: Combine, neutral: int) -> Callable[..., Lanes]:
    def redux(a: Lanes, mask: Lanes, active: Lanes) -> Lanes:
        members = taking_part(mask, active)
        total = const(neutral, like=a)
        for lane in range(LANES):
            total = combine(total, where((members & (1 << lane)) != 0, _splat(a, lane), neutral))
        return total

    return redux


def _redux_immediate(combine: Combine, neutral: int) -> Callable[..., Lanes]:
    def redux(a: Lanes, mask: int, active: Lanes) -> Lanes:
        member = const([mask >> lane & 1 == 1 for lane in range(LANES)], like=active)
        total = where(member & active, a, neutral)
        for distance in (16, 8, 4, 2, 1):
            total = combine(total, permute(total, [lane ^ distance for lane in range(LANES)]))
        return total

    return redux


def _minimum(a: Lanes, b: Lanes) -> Lanes:
    return where(a < b, a, b)


def _maximum(a: Lanes, b: Lanes) -> Lanes:
    return where(a > b, a, b)


_SIGNS = [FULL - i for i in IDS]  # -1 ... -32
_REDUX: list[tuple[str, str, Combine, int, list[Any]]] = [
    ("add", "u32", lambda a, b: a + b, 0, [((IDS, FULL), 496), ((IDS, 0xFF00), 92), ((1 << 31, FULL), 0)]),
    ("add", "s32", lambda a, b: a + b, 0, [((_SIGNS, FULL), -528), ((_SIGNS, 3), -3)]),
    ("min", "u32", _minimum, FULL, [((_SIGNS, FULL), FULL - 31), ((IDS, 0xFF00), 8)]),
    ("min", "s32", _minimum, 2**31 - 1, [(([5, *_SIGNS[1:]], FULL), -32), ((IDS, 0xFF00), 8)]),
    ("max", "u32", _maximum, 0, [(([5, *_SIGNS[1:]], FULL), FULL - 1), ((IDS, 0xFF00), 15)]),
    ("max", "s32", _maximum, -(2**31), [(([5, *_SIGNS[1:]], FULL), 5), ((_SIGNS, 0xFF00), -9)]),
    ("and", "b32", lambda a, b: a & b, FULL, [((_SIGNS, FULL), FULL - 31), ((_SIGNS, 3), FULL - 1)]),
    ("or", "b32", lambda a, b: a | b, 0, [((IDS, FULL), 31), ((IDS, 0x12), 5)]),
    ("xor", "b32", lambda a, b: a ^ b, 0, [((IDS, FULL), 0), ((IDS, 0x16), 7), ((1, 0x7), 1)]),
]
for _name, _t, _combine, _neutral, _cases in _REDUX:
    collective(f"redux.sync.{_name}.{_t}", f"d:{_t} = a:{_t}, mask:u32, active:pred", "redux-sync", _redux(_combine, _neutral), _cases, 80)
    collective(
        f"redux.sync.{_name}.{_t}:imm",
        f"d:{_t} = a:{_t}, mask:imm, active:pred",
        "redux-sync",
        _redux_immediate(_combine, _neutral),
        _cases,
        80,
    )
