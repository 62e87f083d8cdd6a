"""Buffers of what looks at a CTA while it runs: the accounts of its shared accesses, and the state from which hazards are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasim.errors import NotModelled
from fasim.isa import machine as m
from fasim.isa.operands import P_BYTES, P_ORDER, P_SPACE, P_VECTOR
from fasim.isa.program import Program
from fasim.sm.flow import after_each_sync
from fasim.sm.operations import operation_of
from fasim.smem import check_state as h
from fasim.smem.accounts import S_CODE, SITE_BYTES
from fasim.smem.cells import EXTRA_BYTES, MAX_SITES
from fasim.smem.clocks import OBJECT_ROW
from fasim.smem.wavefronts import OPERATIONS
from fasim.warp.observe import OLD_BYTES

Array = np.ndarray[Any, Any]
LOG_CAPACITY, EXTRA_CAPACITY, OBJECT_CAPACITY = 1 << 15, 1 << 14, 1 << 10
#: a granule is at most the widest access
LARGEST_GRANULE = 16


class Accounts:
    """One account for each site of a program."""

    def __init__(self, program: Program) -> None:
        codes = program.once("codes", lambda: [_code(operation_of(program, pc)) for pc in program.sites])
        self.words = np.zeros((len(codes), SITE_BYTES // 8), np.int64)
        self.words[:, S_CODE // 8] = codes


def _code(operation: str) -> int:
    return OPERATIONS[operation].code if operation else 0


@dataclass
class Shadows:
    """Which buffers of a launch may hold bytes that nobody wrote: host address, size, and a byte of undefined bits for each byte."""

    buffers: list[tuple[str, Array, Array]] = field(default_factory=list)

    def table(self) -> Array:
        """For the machine: how many, then host address, size and distance to the shadow of each."""
        rows = [len(self.buffers)]
        for _, data, shadow in self.buffers:
            rows += [data.ctypes.data, data.nbytes, shadow.ctypes.data - data.ctypes.data]
        return np.array(rows, np.int64)


@dataclass(frozen=True)
class Site:
    """What the checks need to know of one access: its size, whether it may be in shared memory, whether it is strong."""

    size_bytes: int
    shared: bool
    strong: bool


def sites_of(program: Program) -> list[Site]:
    """The accesses to memory, by their numbers."""
    found = []
    for pc in program.sites:
        space = program.operand(pc, P_SPACE)
        size = program.operand(pc, P_BYTES) * program.operand(pc, P_VECTOR)
        found.append(Site(size, space in (m.SHARED, m.GENERIC), program.operand(pc, P_ORDER) != 0))
    return found


def line_groups(program: Program) -> tuple[Array, Array]:
    """For each site a number that those of one source line and kind share, and for each number the first pc that has it."""
    numbers: dict[tuple[object, ...], int] = {}
    groups = np.zeros(max(len(program.sites), 1), np.int64)
    pcs: list[int] = []
    for site, pc in enumerate(program.sites):
        source = program.source_at(pc)
        place = (source.file, source.line, source.inlined_at) if source.line else ("", source.ptx_line)
        key = (*place, int(program.code[pc, m.AT_KIND // 4]))
        if key not in numbers:
            numbers[key] = len(pcs)
            pcs.append(pc)
        groups[site] = numbers[key]
    return groups, np.array(pcs or [0], np.int64)


class Checks:
    """The block of words of one CTA and the buffers it points to; `after`: shared by all CTAs of a launch, see `fasim.sm.flow`."""

    def __init__(self, program: Program, warps: int, smem: Array, local: Array, user_bytes: int, shadows: Shadows) -> None:
        sites = program.once("sites", lambda: sites_of(program))
        if len(sites) > MAX_SITES:
            raise NotModelled(
                f"kernel {program.title} has {len(sites):,} instructions that access memory; the checks follow {MAX_SITES:,}: "
                "launch it without check"
            )
        threads = 32 * warps
        groups, representatives = program.once("groups", lambda: line_groups(program))
        after = program.once("after", lambda: after_each_sync(program))
        shared = [site for site in sites if site.shared]
        granule = min([LARGEST_GRANULE, *(site.size_bytes for site in shared)])
        granules = -(-len(smem) // granule)
        self.block = np.zeros(h.HAZARD_WORDS, np.int64)
        self.buffers: dict[int, Array] = {}
        stride = len(program.template)
        self.log_capacity, self.extra_capacity = LOG_CAPACITY, EXTRA_CAPACITY
        arrays: dict[int, Array] = {
            h.H_KNOWN: np.zeros(threads * threads, np.uint32),
            h.H_WARP_BASE: np.zeros(warps, np.int64),
            h.H_WARP_EXECUTED: np.zeros(warps, np.int64),
            h.H_EXECUTED: np.zeros(threads * 32, np.uint32),
            h.H_FENCED: np.zeros(threads, np.int64),
            h.H_ROW: np.zeros(threads, np.uint32),
            h.H_BARRIERS: np.zeros(m.BARRIERS * threads, np.uint32),
            h.H_OBJECTS: np.zeros((OBJECT_CAPACITY + 1) * (OBJECT_ROW + 4 * threads), np.uint8),
            h.H_WRITE_TAGS: margined(granules, np.int64),
            h.H_WRITE_LANES: margined(granules, np.uint32),
            h.H_TAGS: margined(granules * warps, np.int64),
            h.H_LANES: margined(granules * warps, np.uint32),
            h.H_HEADS: margined(granules, np.uint32),
            h.H_EXTRA: np.zeros(EXTRA_BYTES * (self.extra_capacity + 1), np.uint8),
            h.H_OLD: np.zeros(32 * OLD_BYTES, np.uint8),
            h.H_EXECUTIONS: np.zeros(warps * max(len(sites), 1), np.int64),
            h.H_GROUPS: groups,
            h.H_SITES: representatives,
            h.H_SHADOW_REGS: aligned(warps * stride),
            h.H_ORIGIN_REGS: aligned(warps * stride),
            h.H_BUFFERS: shadows.table(),
            h.H_ZEROS: np.zeros(64, np.uint8),
            h.H_DUMP: np.zeros(64, np.uint8),
            h.H_AFTER: after.addresses,
            h.H_BLOCK_OF: after.blocks,
            h.H_LOG: np.zeros(h.LOG_BYTES * (self.log_capacity + 1), np.uint8),
        }
        for slot, array in arrays.items():
            self._keep(slot, array)
        # shadows and origins of memory lie at fixed distances from it
        self.memory = [aligned(len(smem) + 64), aligned(len(local) + 64), aligned(len(smem) + 64), aligned(len(local) + 64)]
        for slot, data, shadow in zip(
            (h.H_UNDEFINED_SMEM, h.H_UNDEFINED_LOCAL, h.H_ORIGIN_SMEM, h.H_ORIGIN_LOCAL), (smem, local, smem, local), self.memory
        ):
            self.block[slot // 8] = shadow.ctypes.data - data.ctypes.data
        for slot, value in {
            h.H_NOW: 1,
            h.H_THREADS: threads,
            h.H_OBJECT_CAPACITY: OBJECT_CAPACITY,
            h.H_SHIFT: granule.bit_length() - 1,
            h.H_GRANULES: granules,
            h.H_WARPS: warps,
            h.H_STRONG: int(any(site.strong for site in shared)),
            h.H_EXTRA_CAPACITY: self.extra_capacity,
            h.H_USER_BYTES: user_bytes,
            h.H_LOG_CAPACITY: self.log_capacity,
        }.items():
            self.block[slot // 8] = value

    def _keep(self, slot: int, array: Array) -> None:
        self.buffers[slot] = array
        self.block[slot // 8] = array.ctypes.data

    def print_local(self, ctx: int, at: int, size: int, warp: int, lane: int, pc: int) -> None:
        """A lane prints bytes of local memory: an output, if they are undefined."""
        words = self.memory[3][at & -4 : (at + size + 3) & -4].view(np.uint32)
        if not self.memory[1][at : at + size].any():
            return
        origin = int(words[words != 0][0]) - 1 if words.any() else pc
        if not words.any():
            h.note(h.log(ctx, self.address, h.F_READ_UNDEFINED, pc, 0, at & -4, m.LOCAL), warp, 1 << lane, 0, 0, 0, 1)
        h.note(h.log(ctx, self.address, h.F_DECIDED, origin, pc, 0, h.D_OUTPUT), warp, 1 << lane, 0, 0, 0, 1)

    @property
    def address(self) -> int:
        """Address of the block."""
        return int(self.block.ctypes.data)

    def records(self) -> Array:
        """The log: int64[n, words]."""
        rows: Array = self.buffers[h.H_LOG].view(np.int64).reshape(-1, h.LOG_BYTES // 8)
        return rows[rows[:, h.L_KIND // 8] != 0]  # type: ignore[no-any-return]

    def settled(self) -> Array:
        """The log at the end of a launch: undefined reads of the last CTAs count now, if they do."""
        records = self.records().copy()
        kinds = records[:, h.L_KIND // 8]
        places = (h.L_FIRST // 8, h.L_WORD // 8, h.L_LAST_CTA // 8)
        raced = {tuple(row) for row in records[kinds == h.F_RACED][:, places].tolist()}
        kept = np.ones(len(records), bool)
        for i in np.flatnonzero((kinds == h.F_READ_UNDEFINED) & (records[:, h.L_DETAIL // 8] == m.SHARED)):
            record = records[i]
            pending = int(record[h.L_LAST_COUNT // 8])
            if pending and tuple(int(record[place]) for place in places) not in raced:
                record[h.L_COUNT // 8] += pending >> 1
                record[h.L_MORE // 8] = 1
            kept[i] = record[h.L_MORE // 8] != 0
        return records[kept]

    def define_local(self, start: int, size_bytes: int) -> None:
        """Bytes of local memory were written from outside of the machine."""
        self.memory[1][start : start + size_bytes] = 0

    def grow(self) -> None:
        """Make room for more findings and more chained accesses.

        Raises: NotModelled if the CTA has synchronised so often without a barrier of all threads that its order can no longer be told.
        """
        if self.block[h.H_NOW // 8] >= h.LAST_TIME:
            raise NotModelled(
                f"the checks follow {h.LAST_TIME:,} synchronisations between two barriers of a whole CTA, and there are more; "
                "check a smaller problem"
            )
        needed = int(self.block[h.H_EXTRA_COUNT // 8] + self.block[h.H_NEEDED // 8])
        if needed > self.extra_capacity:
            old = self.buffers[h.H_EXTRA]
            self.extra_capacity = 2 * needed
            new = np.zeros(EXTRA_BYTES * (self.extra_capacity + 1), np.uint8)
            new[: len(old)] = old
            self._keep(h.H_EXTRA, new)
            self.block[h.H_EXTRA_CAPACITY // 8] = self.extra_capacity
        if 4 * self.block[h.H_LOG_COUNT // 8] > self.log_capacity:
            records = self.records()
            self.log_capacity *= 4
            table = np.zeros((self.log_capacity + 1, h.LOG_BYTES // 8), np.int64)
            for record in records:
                kind, first, second, word, detail = (int(record[at // 8]) for at in h.LOG_KEY)
                slot = h.slot_of(kind, first, second, word, detail, self.log_capacity)
                while table[slot, 0]:
                    slot = (slot + 1) % self.log_capacity
                table[slot] = record
            self._keep(h.H_LOG, table.reshape(-1).view(np.uint8))
            self.block[h.H_LOG_CAPACITY // 8] = self.log_capacity


def margined(count: int, dtype: Any) -> Array:
    """Zeroed words with room for a row of lanes before and behind, which are read but not used."""
    return np.zeros(count + 64, dtype)[32:-32]


def aligned(size: int) -> Array:
    """Zeroed bytes that start at a multiple of 64."""
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def all_records(checks: Sequence[Checks]) -> Array:
    """The logs of several workers, one after the other."""
    return np.concatenate([each.settled() for each in checks]) if checks else np.zeros((0, h.LOG_BYTES // 8), np.int64)
