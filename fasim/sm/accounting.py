"""From the accounts of a launch to its shared accesses and to totals named after ncu's counters."""

from __future__ import annotations

from collections.abc import Sequence

from fasim.isa import machine as m
from fasim.isa.program import Array, Program
from fasim.sm.operations import kind_of, operation_of
from fasim.sm.result import AccessPattern, SharedAccess
from fasim.sm.state import LaunchShape
from fasim.sm.watch import Accounts
from fasim.smem import accounts as a
from fasim.smem.wavefront_rule import AS_IF

#: the part of a counter's name that says which accesses it counts
COUNTED_AS = {"ld": "ld", "ldmatrix": "ld", "st": "st", "stmatrix": "st", "atom": "atom", "red": "atom"}


def shared_accesses(program: Program, shape: LaunchShape, accounts: Sequence[Accounts]) -> list[SharedAccess]:
    """One record for each instruction that accessed shared memory, in program order."""
    found = []
    for number, pc in enumerate(program.sites):
        words = [account.words[number] for account in accounts]
        executions = sum(int(row[a.S_EXECUTIONS // 8]) for row in words)
        if not executions:
            continue
        wavefronts, conflicts, source_wavefronts, source_ideal = (sum(int(row[a.S_TOTALS // 8 + i]) for row in words) for i in range(4))
        other = [sum(int(row[a.S_AS_TOTALS // 8 + i]) for row in words) for i in range(2 * AS_IF)]
        found.append(
            SharedAccess(
                source=program.source_at(pc),
                kind=kind_of(program, pc),
                op=operation_of(program, pc),
                executions=executions,
                wavefronts=wavefronts,
                conflicts=conflicts,
                source_wavefronts=source_wavefronts,
                source_ideal=source_ideal,
                as_if=tuple(zip(other[::2], other[1::2])),
                pattern=_pattern(shape, words, copies=program.code[pc, m.AT_KIND // 4] == m.CP_ASYNC),
            )
        )
    return found


def _pattern(shape: LaunchShape, words: Sequence[Array], *, copies: bool) -> AccessPattern | None:
    """The execution with the most conflicts, None if none was counted."""
    counted = [row for row in words if row[a.S_WORST // 8]]
    if not counted:
        return None
    worst = min(counted, key=lambda row: (-row[a.S_WORST // 8], row[a.S_WORST_CTA // 8]))
    mask = int(worst[a.S_WORST_MASK // 8])

    def lanes(at: int) -> tuple[int, ...]:
        return tuple(int(v) if mask >> i & 1 else 0 for i, v in enumerate(worst[at // 8 : at // 8 + 32]))

    return AccessPattern(
        ctaid=shape.ctaid(int(worst[a.S_WORST_CTA // 8])),
        warp=int(worst[a.S_WORST_WARP // 8]),
        active_mask=mask,
        byte_offsets=lanes(a.S_WORST_OFFSETS),
        source_addresses=lanes(a.S_WORST_SOURCES) if copies else (),
    )


def totals(accesses: Sequence[SharedAccess]) -> dict[str, int]:
    """Sums over the grid, named after ncu's counters: the hardware's for shared memory, then those of its source page."""
    found = {}
    for what, counter in (("wavefronts", "data_pipe_lsu_wavefronts_mem_shared"), ("conflicts", "data_bank_conflicts_pipe_lsu_mem_shared")):
        for kind in ("ld", "st", "atom"):
            found[f"l1tex__{counter}_op_{kind}.sum"] = sum(getattr(x, what) for x in accesses if COUNTED_AS.get(x.kind) == kind)
    found["memory_l1_wavefronts_shared"] = sum(x.source_wavefronts for x in accesses)
    found["memory_l1_wavefronts_shared_ideal"] = sum(x.source_ideal for x in accesses)
    return found
