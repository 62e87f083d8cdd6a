"""Launches that do not end: states that come round again."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from fasim.gmem import AddressSpace
from fasim.isa import machine as m
from fasim.isa.program import Program
from fasim.sm.state import CtaState

#: fruitless rounds before the states of the CTAs are compared with earlier ones
PATIENCE_ROUNDS = 8


class RepetitionWatch:
    """Notices that the whole state has been seen before: the machine is deterministic, so it will come round for ever.

    Not where the kernel reads a clock, which counts on without being part of the state. space: memory that belongs to the state; without
    it a repetition is only a suspicion.
    """

    def __init__(self, program: Program, space: AddressSpace | None) -> None:
        self.program, self.space = program, space
        self.reset()

    def reset(self) -> None:
        """Something ended or started."""
        self.rounds, self.next_keep = 0, PATIENCE_ROUNDS
        self.kept: tuple[bytes, bytes] = (b"", b"")

    def repeats(self, states: list[CtaState]) -> bool:
        """Count a round in which nothing ended; True if its state is one kept before (Brent's method)."""
        self.rounds += 1
        if self.rounds < PATIENCE_ROUNDS or self.program.reads_clock:
            return False
        # memory can be large: it is looked at only when everything else has been seen before
        registers = _digest(part for state in states for part in (state.registers, np.frombuffer(_scheduling(state), np.uint8)))
        if registers == self.kept[0] and self._memory(states) == self.kept[1]:
            return True
        if self.rounds >= self.next_keep:
            self.kept, self.next_keep = (registers, self._memory(states)), 2 * self.next_keep
        return False

    def _memory(self, states: list[CtaState]) -> bytes:
        own = [part for s in states for part in (s.smem, s.local, s.bars, s.call_depth, s.call_stack, s.save, s.queue)]
        device = [a.data for a in self.space.allocations if not a.constant] if self.space is not None else []
        return _digest([*own, *device])


def _scheduling(state: CtaState) -> bytes:
    """Splits of all warps; of their turns, which only ever grow, just the order counts."""
    words = [state.get(word) for word in (m.C_NEXT_WARP, m.C_ROUND, m.C_SLICE_LEFT)]
    for warp in range(state.shape.warps):
        words += [state.warp_word(warp, word) for word in (m.W_SPLITS, m.W_LIVE, m.W_FAIR, m.W_PATIENCE)]
        splits = state.splits_of(warp)
        for split in splits:
            words += [split.pc, split.mask, split.state, split.detail]
        words += sorted(range(len(splits)), key=lambda i: splits[i].turn)
    return np.array(words, np.int64).tobytes()


def _digest(parts: Iterable[np.ndarray[Any, Any]]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        if part.size:
            digest.update(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
    return digest.digest()
