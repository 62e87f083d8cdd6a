"""Races against an oracle: random accesses and synchronisation, and the happens-before order worked out with whole sets of events."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasim.isa import machine as m
from fasim.numerics.native import popcount
from fasim.smem import check_state as h
from fasim.smem import clocks, races
from fasim.smem.cells import EXTRA_BYTES, STRONG_ACCESS, WRITE, clear_chains, make_tag

WARPS, LANES, WORDS, SITES = 2, 3, 3, 4
THREADS = 32 * WARPS


class Block:
    """The state of a CTA of two warps, of which three lanes each do something."""

    def __init__(self) -> None:
        self.words = np.zeros(h.HAZARD_WORDS, np.int64)
        self.context = np.zeros(m.CONTEXT_WORDS, np.int64)
        self.keep = []
        sizes = {
            h.H_KNOWN: 4 * THREADS * THREADS, h.H_EXECUTED: 4 * 32 * THREADS, h.H_WARP_EXECUTED: 8 * WARPS,
            h.H_WARP_BASE: 8 * WARPS, h.H_FENCED: 8 * THREADS, h.H_ROW: 4 * THREADS,
            h.H_BARRIERS: 4 * 16 * THREADS, h.H_OBJECTS: 5 * (clocks.OBJECT_ROW + 4 * THREADS), h.H_WRITE_TAGS: 8 * WORDS,
            h.H_WRITE_LANES: 4 * WORDS, h.H_TAGS: 8 * WORDS * WARPS, h.H_LANES: 4 * WORDS * WARPS, h.H_HEADS: 4 * WORDS,
            h.H_EXTRA: EXTRA_BYTES * 4096, h.H_EXECUTIONS: 8 * SITES * WARPS, h.H_LOG: h.LOG_BYTES * 4096,
        }  # fmt: skip
        for slot, size in sizes.items():
            array = np.zeros(size, np.uint8)
            self.keep.append(array)
            self.words[slot // 8] = array.ctypes.data
        sites = np.arange(SITES, dtype=np.int64)
        self.keep.append(sites)
        values = {
            h.H_SITES: sites.ctypes.data, h.H_NOW: 1, h.H_THREADS: THREADS, h.H_OBJECT_CAPACITY: 4, h.H_SHIFT: 2, h.H_GRANULES: WORDS,
            h.H_WARPS: WARPS, h.H_STRONG: 1, h.H_EXTRA_CAPACITY: 4000, h.H_LOG_CAPACITY: 4096,
        }  # fmt: skip
        for slot, value in values.items():
            self.words[slot // 8] = value
        self.at, self.ctx = int(self.words.ctypes.data), int(self.context.ctypes.data)
        clocks.whole_cta(self.at)

    def found(self) -> set[tuple[int, int, int]]:
        """Unordered pairs of sites with the word that they race on."""
        log = next(a for a in self.keep if a.ctypes.data == self.words[h.H_LOG // 8]).view(np.int64).reshape(-1, h.LOG_BYTES // 8)
        rows = log[np.isin(log[:, 0], (h.F_RAW, h.F_WAR, h.F_WAW))]
        return {(min(r[1], r[2]), max(r[1], r[2]), r[3] // 4) for r in rows.tolist()}


@dataclass
class Event:
    """One access of one thread, and all events that happen before it."""

    number: int
    thread: tuple[int, int]
    site: int
    word: int
    write: bool
    strong: bool
    before: frozenset[int] = frozenset()


@dataclass
class Oracle:
    """What each thread knows is the set of events that are ordered before its next one."""

    known: dict[tuple[int, int], set[int]] = field(default_factory=lambda: {(w, n): set() for w in range(WARPS) for n in range(LANES)})
    fenced: dict[tuple[int, int], set[int]] = field(default_factory=dict)
    flags: dict[int, set[int]] = field(default_factory=dict)
    #: reads of other lanes that are done when the thread goes on
    done: dict[tuple[int, int], set[int]] = field(default_factory=lambda: {(w, n): set() for w in range(WARPS) for n in range(LANES)})
    events: list[Event] = field(default_factory=list)

    def access(self, thread: tuple[int, int], site: int, word: int, write: bool, strong: bool) -> None:
        before = self.known[thread] | (self.done[thread] if write else set())
        event = Event(len(self.events), thread, site, word, write, strong, frozenset(before))
        self.events.append(event)
        self.known[thread].add(event.number)

    def sync(self, threads: list[tuple[int, int]]) -> None:
        union = set().union(*(self.known[t] for t in threads))
        for thread in threads:
            self.known[thread] |= union

    def collective(self, threads: list[tuple[int, int]]) -> None:
        reads = {e.number for e in self.events if e.thread in threads and not e.write}
        for thread in threads:
            self.done[thread] |= reads

    def races(self) -> set[tuple[int, int, int]]:
        return {
            (min(a.site, b.site), max(a.site, b.site), a.word)
            for b in self.events
            for a in self.events[: b.number]
            if a.word == b.word and (a.write or b.write) and not (a.strong and b.strong) and a.number not in b.before
        }


masks = st.integers(1, (1 << LANES) - 1)
warps = st.integers(0, WARPS - 1)
accesses = st.tuples(st.just("access"), warps, masks, st.integers(0, SITES - 1), st.integers(0, WORDS - 1))
lanes = st.integers(0, LANES - 1)
syncs = (
    st.tuples(st.just("warp_sync"), warps, masks),
    st.tuples(st.just("collective"), warps, masks),
    st.tuples(st.just("barrier")),
    st.tuples(st.just("partial"), masks, masks),
)
flags = (
    st.tuples(st.just("fence"), warps, masks),
    st.tuples(st.just("write_flag"), warps, lanes, st.integers(0, 6)),
    st.tuples(st.just("read_flag"), warps, lanes, st.integers(0, 6)),
)
#: what a site does: read, write, atomic, atomic
KINDS = [(False, False), (True, False), (True, True), (False, True)]


def lanes_of(mask: int) -> list[int]:
    return [lane for lane in range(LANES) if mask >> lane & 1]


def play(program: list[tuple]) -> tuple[set, set]:
    """The races that the machine finds and those of the oracle."""
    block, oracle = Block(), Oracle()
    at = block.at
    everybody = [(w, n) for w in range(WARPS) for n in range(LANES)]
    for name, *args in program:
        if name == "access":
            warp, mask, site, word = args
            write, strong = KINDS[site]
            for lane in lanes_of(mask):  # a warp's access, lane by lane: lanes of one instruction may race with each other
                oracle.access((warp, lane), site, word, write, strong)
                flags = (WRITE if write else 0) | (STRONG_ACCESS if strong else 0)
                races.note_execution(at, site, warp)
                races.access(block.ctx, at, word, make_tag(at, site, warp, flags), 1 << lane)
        elif name == "warp_sync":
            warp, mask = args
            clocks.sync_warp(at, warp, mask, mask == (1 << LANES) - 1)
            oracle.sync([(warp, lane) for lane in lanes_of(mask)])
        elif name == "collective":
            warp, mask = args
            clocks.execute_together(at, warp, mask, mask == (1 << LANES) - 1)
            oracle.collective([(warp, lane) for lane in lanes_of(mask)])
        elif name == "barrier":
            clocks.whole_cta(at)
            clear_chains(at)
            oracle.sync(everybody)
        elif name == "partial":
            for warp, mask in enumerate(args):
                clocks.reach_barrier(at, 1, warp, mask)
            for warp, mask in enumerate(args):
                clocks.leave_partial_barrier(at, 1, warp, mask)
            clocks.clear_barrier(at, 1)
            oracle.sync([(warp, lane) for warp, mask in enumerate(args) for lane in lanes_of(mask)])
        elif name == "fence":
            warp, mask = args
            clocks.fence(at, warp, mask)
            for lane in lanes_of(mask):
                oracle.fenced[warp, lane] = set(oracle.known[warp, lane])
        elif name == "write_flag":
            warp, lane, address = args
            clocks.release(at, warp, lane, 1000 + address, False)
            if (warp, lane) in oracle.fenced:
                oracle.flags.setdefault(address, set()).update(oracle.fenced[warp, lane])
        else:
            warp, lane, address = args
            clocks.acquire(at, warp, lane, 1000 + address)
            oracle.known[warp, lane] |= oracle.flags.get(address, set())
    return block.found(), oracle.races()


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(accesses, accesses, accesses, *syncs), max_size=20))
def test_without_flags_exactly_the_races_are_found(program):
    found, wanted = play(program)
    assert found == wanted


@settings(max_examples=400, deadline=None)
@given(st.lists(st.one_of(accesses, accesses, *syncs, *flags), max_size=25))
def test_with_flags_nothing_is_found_that_is_no_race(program):
    found, wanted = play(program)
    assert found <= wanted


def acc(warp, mask, site, word=0):
    return ("access", warp, mask, site, word)


R, W, A = 0, 1, 2
FLAG = [("fence", 0, 1), ("write_flag", 0, 0, 0), ("read_flag", 1, 0, 0)]


@pytest.mark.parametrize(
    "program, races_found",
    [
        ([acc(0, 1, W), acc(1, 1, R)], {(R, W, 0)}),
        ([acc(0, 1, W), ("barrier",), acc(1, 1, R)], set()),
        ([acc(0, 1, W), ("warp_sync", 0, 7), acc(1, 1, R)], {(R, W, 0)}),
        ([acc(0, 1, W), ("warp_sync", 0, 7), acc(0, 2, R)], set()),
        ([acc(0, 1, W), ("warp_sync", 0, 3), acc(0, 4, R)], {(R, W, 0)}),
        ([acc(0, 1, W), ("warp_sync", 0, 3), ("warp_sync", 0, 6), acc(0, 4, R)], set()),
        ([acc(0, 1, W), *FLAG, acc(1, 1, R)], set()),
        ([acc(0, 1, W), *FLAG[1:], acc(1, 1, R)], {(R, W, 0)}),
        ([acc(0, 2, W), *FLAG, acc(1, 1, R)], {(R, W, 0)}),
        ([acc(0, 2, W), ("warp_sync", 0, 7), *FLAG, acc(1, 1, R)], set()),
        ([acc(0, 1, W), *FLAG, ("warp_sync", 1, 7), acc(1, 4, R)], set()),
        ([acc(0, 1, W), *FLAG, acc(1, 4, R)], {(R, W, 0)}),
        ([acc(0, 1, W), ("partial", 1, 1), acc(1, 1, R)], set()),
        ([acc(0, 1, W), ("partial", 1, 1), acc(1, 2, R)], {(R, W, 0)}),
        ([acc(0, 1, A), acc(1, 7, A)], set()),
        ([acc(0, 1, A), acc(1, 1, R)], {(R, A, 0)}),
        ([acc(0, 7, R), acc(1, 7, R)], set()),
        # what another access of the warp replaces in its cell is kept
        ([acc(0, 1, R), acc(0, 2, A), acc(1, 1, W)], {(R, W, 0), (W, A, 0), (R, A, 0)}),
        ([acc(0, 3, W)], {(W, W, 0)}),
        # a shuffle between a read and a write: the read is done; it orders nothing else
        ([acc(0, 1, R), ("collective", 0, 7), acc(0, 2, W)], set()),
        ([acc(0, 1, R), ("collective", 0, 3), acc(0, 2, W)], set()),
        ([acc(0, 1, R), ("collective", 0, 6), acc(0, 2, W)], {(R, W, 0)}),
        ([acc(0, 1, W), ("collective", 0, 7), acc(0, 2, R)], {(R, W, 0)}),
        ([acc(0, 1, R), ("collective", 0, 7), acc(1, 2, W)], {(R, W, 0)}),
        # as many flags as there is room for: the rest are taken for one
        ([acc(0, 1, W), ("fence", 0, 1), *(("write_flag", 0, 0, i) for i in range(6)), ("read_flag", 1, 0, 5), acc(1, 1, R)], set()),
    ],
)
def test_examples(program, races_found):
    assert play(program)[0] == races_found


def test_both_orders_of_a_loop_have_one_name():
    """Of two warps in a loop `read; write`, one is ahead: the pair is named as each warp executes it."""
    block = Block()
    for warp in range(2):
        for site in (R, W):
            races.note_execution(block.at, site, warp)
            races.access(block.ctx, block.at, 0, make_tag(block.at, site, warp, WRITE if site == W else 0), 1)
    log = next(a for a in block.keep if a.ctypes.data == block.words[h.H_LOG // 8]).view(np.int64).reshape(-1, h.LOG_BYTES // 8)
    rows = log[np.isin(log[:, 0], (h.F_RAW, h.F_WAR, h.F_WAW))]
    assert {(r[0], r[1], r[2]) for r in rows.tolist() if r[1] != r[2]} == {(h.F_WAR, R, W)}
    assert popcount(int(rows[0, h.L_FIRST_LANES // 8])) == 1
