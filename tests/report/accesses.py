"""Accesses and records of accesses for the tests of reports."""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.program import SourceInstruction
from fasim.report.bank_access import Access
from fasim.sm.result import AccessPattern, LaunchResult, SharedAccess


def access(op: str, place: Callable[[int], int], active_mask: int = 0xFFFFFFFF, **more) -> Access:
    """An access whose lanes are at place(lane)."""
    return Access(op, tuple(place(lane) for lane in range(32)), active_mask, **more)


def record(
    kind: str, found: Access, path: tuple[tuple[str, int], ...], executions: int = 1, text: str = "", ptx_line: int = 1
) -> SharedAccess:
    """All executions alike; path: from the line in the kernel inwards."""
    cost = found.count()
    (file, line), sites = path[-1] if path else ("", 0), tuple(reversed(path[:-1]))
    return SharedAccess(
        SourceInstruction(text or f"{kind}.shared", kind, ptx_line, file, line, sites),
        kind,
        found.op,
        executions,
        *(executions * n for n in (cost.wavefronts, cost.conflicts, cost.source_wavefronts, cost.source_ideal)),
        AccessPattern((1, 0, 0), 2, found.active_mask, found.byte_offsets, found.source_addresses) if executions else None,
    )


def result(*records: SharedAccess, totals: dict[str, int] | None = None) -> LaunchResult:
    """A launch that made these accesses."""
    return LaunchResult(
        "k", (4, 1, 1), (128, 1, 1), 0, 4096, [], 0, 0, 0.1, False, 1, shared_accesses=records, totals=totals or {"counter.sum": 7}
    )


#: tile[lane][0] of float tile[32][32]
COLUMN = access("LDS.32", lambda lane: 128 * lane)
#: four 8x8 matrices of halfs in rows of 128 bytes
MATRICES = access("LDSM.x4", lambda lane: 1024 + 128 * (lane % 16) + 16 * (lane // 16))
ROW = access("STS.32", lambda lane: 4 * lane)
