"""The memory of a CTA while it runs: registers, shared and local memory, warps, splits, barriers, queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.isa import machine as m
from fasim.isa.program import Program
from fasim.sm.watch import Accounts, Checks, Shadows, aligned
from fasim.smem.accounts import COUNT_WORDS
from fasim.smem.cp_async import queue_bytes
from fasim.warp.calls import MAX_DEPTH
from fasim.warp.schedule import QUANTUM_INSTRUCTIONS

Array = np.ndarray[Any, Any]
#: copies of one warp that may be pending at first; the queue grows when a kernel issues more
QUEUE_CAPACITY = 64


@dataclass(frozen=True)
class LaunchShape:
    """Grid and block, and the shared memory of one CTA in bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    smem_bytes: int
    dynamic_smem_bytes: int
    sms: int

    @property
    def threads(self) -> int:
        """Threads of a CTA."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def warps(self) -> int:
        """Warps of a CTA."""
        return -(-self.threads // 32)

    @property
    def ctas(self) -> int:
        """CTAs of the grid."""
        return self.grid[0] * self.grid[1] * self.grid[2]

    def ctaid(self, linear: int) -> tuple[int, int, int]:
        """blockIdx of the CTA with a linear number."""
        return linear % self.grid[0], linear // self.grid[0] % self.grid[1], linear // (self.grid[0] * self.grid[1])

    def tid(self, thread: int) -> tuple[int, int, int]:
        """threadIdx of a thread's linear number in its CTA."""
        return thread % self.block[0], thread // self.block[0] % self.block[1], thread // (self.block[0] * self.block[1])


@dataclass
class Shared:
    """What all CTAs of a launch use together: code, parameters, the table of allocations, the template of a warp's registers."""

    code: Array
    pool: Array
    template: Array
    specials: Array
    params: Array
    allocations: Array
    functions: Array


@dataclass(frozen=True, slots=True)
class Split:
    """Lanes of a warp at one pc, as they stand between two calls of the machine; `detail`: what they wait for, `turn`: since when."""

    pc: int
    mask: int
    state: int
    detail: int
    turn: int


class CtaState:
    """Buffers for one running CTA, and the context by which the machine finds them."""

    def __init__(
        self,
        program: Program,
        shape: LaunchShape,
        shared: Shared,
        *,
        map_bytes: int = 0,
        count: bool = False,
        shadows: Shadows | None = None,
    ) -> None:
        self.program, self.shape, self.shared = program, shape, shared
        warps = shape.warps
        stride = len(program.template)
        self.registers = aligned(warps * stride)
        self.smem = aligned(shape.smem_bytes + program.reserved_smem_bytes)
        self.local = aligned(warps * 32 * program.local_bytes)
        self.warps = np.zeros(warps * m.WARP_BYTES // 8, np.int64)
        self.splits = np.zeros(warps * m.SPLITS_PER_WARP * m.SPLIT_BYTES // 8, np.int64)
        self.bars = np.zeros(m.BARRIERS * m.BAR_BYTES // 8, np.int64)
        self.error = np.zeros(m.ERROR_WORDS, np.int64)
        self.scratch = np.zeros(m.SCRATCH_COUNT // 8 + COUNT_WORDS, np.int64)
        # single executions of each instruction, then executions of the run that starts there
        self.run_counts = np.zeros(2 * len(program), np.int64)
        self.reads, self.writes = np.zeros(map_bytes, np.uint8), np.zeros(map_bytes, np.uint8)
        depth = MAX_DEPTH * warps * 32 if program.has_calls else 0
        self.call_depth = np.zeros(warps * 32 if program.has_calls else 0, np.int64)
        self.call_stack = np.zeros(depth, np.int64)
        self.save = aligned(depth * program.save_bytes)
        self.capacity = QUEUE_CAPACITY if program.uses_copies else 0
        self.queue = np.zeros(warps * queue_bytes(self.capacity), np.uint8)
        self.context = np.zeros(m.CONTEXT_WORDS, np.int64)
        self.accounts = Accounts(program) if count and program.sites else None
        user_bytes = program.reserved_smem_bytes + program.static_smem_bytes + shape.dynamic_smem_bytes
        self.checks = Checks(program, warps, self.smem, self.local, user_bytes, shadows) if shadows is not None else None
        self._fill(map_bytes)

    def _fill(self, map_bytes: int) -> None:
        shared, shape, program = self.shared, self.shape, self.program
        pointers = {
            m.C_CODE: shared.code,
            m.C_POOL: shared.pool,
            m.C_COUNTS: self.run_counts,
            m.C_REGS: self.registers,
            m.C_WARPS: self.warps,
            m.C_SPLITS: self.splits,
            m.C_BARS: self.bars,
            m.C_SMEM: self.smem,
            m.C_LOCAL: self.local,
            m.C_PARAM: shared.params,
            m.C_ALLOCS: shared.allocations,
            m.C_READS: self.reads,
            m.C_WRITES: self.writes,
            m.C_ERROR: self.error,
            m.C_SCRATCH: self.scratch,
            m.C_QUEUE: self.queue,
            m.C_CALL_STACK: self.call_stack,
            m.C_SAVE: self.save,
            m.C_FUNCTIONS: shared.functions,
            m.C_TEMPLATE: shared.template,
            m.C_SPECIALS: shared.specials,
        }
        for slot, array in pointers.items():
            self.set(slot, array.ctypes.data)
        values = {
            m.C_REG_STRIDE: len(program.template),
            m.C_SMEM_BYTES: len(self.smem),
            m.C_BARRIERS_ONLY: int(program.barriers_only),
            m.C_LOCAL_BYTES: program.local_bytes,
            m.C_PARAM_BYTES: program.parameter_base + program.param_bytes,
            m.C_ALLOC_COUNT: len(shared.allocations),
            m.C_QUEUE_CAPACITY: self.capacity,
            m.C_WARP_COUNT: shape.warps,
            m.C_THREADS: shape.threads,
            m.C_TRACK: int(map_bytes > 0),
            m.C_CALL_DEPTH: self.call_depth.ctypes.data if program.has_calls else 0,
            m.C_SAVE_BYTES: program.save_bytes,
            m.C_GRID_X: shape.grid[0],
            m.C_GRID_Y: shape.grid[1],
            m.C_BLOCK_X: shape.block[0],
            m.C_BLOCK_Y: shape.block[1],
            m.C_SPECIAL_COUNT: len(shared.specials),
            m.C_SMS: shape.sms,
            m.C_INSTRUCTIONS: len(program),
            m.C_QUANTUM: QUANTUM_INSTRUCTIONS,
            m.C_SITES: self.accounts.words.ctypes.data if self.accounts is not None else 0,
            m.C_HAZARDS: self.checks.address if self.checks is not None else 0,
        }
        for slot, value in values.items():
            self.set(slot, value)

    @property
    def counts(self) -> Array:
        """Executions of each instruction."""
        single, runs = self.run_counts[: len(self.program)].copy(), self.run_counts[len(self.program) :]
        for head in np.flatnonzero(runs):
            single[head : head + self.program.code[head, m.AT_RUN // 4]] += runs[head]
        return single

    def warp_word(self, warp: int, word: int) -> int:
        """A word of a warp's record: W_LIVE and so on."""
        return int(self.warps[(warp * m.WARP_BYTES + word) // 8])

    def splits_of(self, warp: int) -> list[Split]:
        """The splits of a warp, in the machine's order."""
        records = self.splits.reshape(-1, m.SPLITS_PER_WARP, m.SPLIT_BYTES // 8)[warp, : self.warp_word(warp, m.W_SPLITS)]
        words = records[:, [at // 8 for at in (m.S_PC, m.S_MASK, m.S_STATE, m.S_DETAIL, m.S_TURN)]]
        return [Split(*record) for record in words.tolist()]

    def served(self, warp: int, pc: int) -> None:
        """Let the lanes go on that stopped at `pc` for a service."""
        records = self.splits.reshape(-1, m.SPLITS_PER_WARP, m.SPLIT_BYTES // 8)[warp]
        for record, split in zip(records, self.splits_of(warp)):
            if split.pc == pc and split.detail == m.SERVICE_FLAG:
                record[m.S_PC // 8], record[m.S_DETAIL // 8] = pc + 1, 0

    def set(self, slot: int, value: int) -> None:
        """Write a context word."""
        self.context[slot // 8] = value

    def get(self, slot: int) -> int:
        """Read a context word."""
        return int(self.context[slot // 8])

    def grow_queue(self) -> None:
        """Double the room for pending copies."""
        old, size = self.queue.reshape(self.shape.warps, -1), queue_bytes(self.capacity)
        self.capacity *= 2
        new = np.zeros((self.shape.warps, queue_bytes(self.capacity)), np.uint8)
        new[:, :size] = old
        self.queue = new.reshape(-1)
        self.set(m.C_QUEUE, self.queue.ctypes.data)
        self.set(m.C_QUEUE_CAPACITY, self.capacity)
