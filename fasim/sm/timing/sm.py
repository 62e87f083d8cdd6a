"""One SM with the CTAs that it gets: the engine called, its results by instruction and pipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import FasimError
from fasim.sm.timing import state as st
from fasim.sm.timing.engine import run_sm
from fasim.sm.timing.paths import Paths
from fasim.sm.timing.record import PARTS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SmRun:
    """What one SM did.

    cycles: until the last CTA ended. spans: first and last cycle of each CTA. stalls: warp cycles by instruction and reason (`STALLS`).
    busy: cycles of each pipe by sub-partition (`PIPES`). instructions: warp instructions. wavefronts: of the load-store unit.
    sectors_read, sectors_stored: from and to the L2. local_sectors, local_hits: loaded from local memory, found in the L1.
    events: cycle, sub-partition, warp slot, instruction, CTA of the first instructions.
    """

    cycles: int
    spans: Array
    stalls: Array
    busy: Array
    instructions: int
    wavefronts: int
    sectors_read: int
    sectors_stored: int
    local_sectors: int
    local_hits: int
    events: Array


def run(records: Array, paths: Paths, order: Sequence[int], resident: int, constants: Array, *, events: int = 0) -> SmRun:
    """Run CTAs, by their places in `paths`, in that order on one SM that holds so many at once.

    Raises: FasimError if the paths do not fit the code, which is a fault of fasim.
    """
    flat, begins, ends = paths.arrays()
    streams = np.array([place * paths.warps for place in order], np.int64)
    state = st.initial_state(records, flat, begins.reshape(-1), ends.reshape(-1), streams, paths.warps, resident, constants, events)
    cycles = run_sm(state)
    if cycles < 0:
        why = "its warps wait for each other" if cycles == st.DEADLOCK else "an access was recorded that no instruction made"
        raise FasimError(f"the timing model cannot follow this kernel: {why}")
    sm = state.sm
    return SmRun(
        cycles=int(cycles),
        spans=state.spans,
        stalls=state.stalls,
        busy=state.busy / PARTS,
        instructions=int(sm[st.M_INSTRUCTIONS]),
        wavefronts=int(sm[st.M_WAVEFRONTS]),
        sectors_read=int(sm[st.M_SECTORS_READ]),
        sectors_stored=int(sm[st.M_SECTORS_STORED]),
        local_sectors=int(sm[st.M_LOCAL_SECTORS]),
        local_hits=int(sm[st.M_LOCAL_HITS]),
        events=state.events[: int(sm[st.M_EVENTS])],
    )
