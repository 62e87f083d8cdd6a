"""Where the CTAs of a grid go: SM and time of each, for one to three CTAs an SM, and what rule describes it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from fasim.gpu.calibrate.session import Session

Array = np.ndarray[Any, Any]
#: what each CTA notes; times since the first CTA's begin in ns, cycles of its SM's own clock since its first CTA's begin
FIELDS = ("smid", "begin_cycles", "begin_ns", "end_cycles", "end_ns")
_STAY_CYCLES, _SPREAD_CYCLES = 40_000, 20_000
_THREADS = 128
_TIMES = 3
#: grids in waves: what fits at once, with some left over, and several times that
WAVES = (1, 4)


def placements(session: Session) -> dict[str, Array]:
    """Arrays `int64[cta, 5]` (FIELDS) by `CTASxWAVES/spread|same/TIME`: CTAs an SM, waves, whether they stay equally long, which time."""
    arch, sms = session.device.architecture, session.device.card.sms
    found = {}
    for ctas in (1, 2, 3):
        smem = min(arch.smem_opt_in_bytes, arch.smem_sm_bytes // ctas - arch.smem_reserved_bytes) // 1024 * 1024
        kernel = session.kernel("launch", "fasim_place", smem)
        for waves in WAVES:
            for name, spread in (("same", 0), ("spread", _SPREAD_CYCLES)):
                for time in range(_TIMES):
                    grid = sms * ctas * waves
                    session.run(kernel, grid, _THREADS, [session.out, _STAY_CYCLES, spread], smem)
                    found[f"{ctas}x{waves}/{name}/{time}"] = relative(session.out.words(5 * grid).reshape(-1, 5))
    return found


def relative(raw: Array) -> Array:
    """Times from the first CTA's begin, cycles from the first begin on the same SM, whose clocks differ."""
    found = raw.copy()
    first_ns = raw[:, 2].min()
    found[:, (2, 4)] -= first_ns
    for sm in np.unique(raw[:, 0]):
        here = raw[:, 0] == sm
        found[here, 1] -= raw[here, 1].min()
        found[here, 3] -= raw[here, 1].min()
    return found


def spacing(placed: Mapping[str, Array]) -> list[float]:
    """Cycles between the first two CTAs of an SM, of all SMs, when two fit."""
    gaps = []
    for name, cta in placed.items():
        if name.startswith("2x1/"):
            gaps += [float(np.diff(np.sort(cta[cta[:, 0] == sm, 1]))[0]) for sm in np.unique(cta[:, 0]) if (cta[:, 0] == sm).sum() > 1]
    return gaps


def turnover(placed: Mapping[str, Array]) -> list[float]:
    """Cycles from the last instruction of a CTA to the first of the next in its place, when one fits and they end at different times."""
    gaps = []
    for name, cta in placed.items():
        if name.startswith("1x4/spread"):
            for sm in np.unique(cta[:, 0]):
                here = cta[cta[:, 0] == sm]
                here = here[np.argsort(here[:, 1])]
                gaps += [float(gap) for gap in here[1:, 1] - here[:-1, 3]]
    return gaps


def bursts(cta: Array, ctas_at_once: int) -> list[list[int]]:
    """The SMs of the first wave in the order of ctaid, parted where the SM's number falls.

    On an H200 each part is one GPC: it gets a CTA for each of its SMs, both SMs of a TPC one after the other, then it is the next GPC's
    turn. The GPC that begins is the one behind the last of the launch before.
    """
    found: list[list[int]] = []
    for sm in cta[:ctas_at_once, 0]:
        if found and found[-1][-1] < sm:
            found[-1].append(int(sm))
        else:
            found.append([int(sm)])
    return found


@dataclass(frozen=True)
class Rule:
    """What holds of one placement; shares are between 0 and 1.

    bursts: CTAs of the first wave that go to SMs of one GPC in turn: see `bursts`. apart: how far the second CTA of an SM is from its
    first in number, as how many SMs have it; empty if one fits. in_order: neighbours in number that also begin in this order.
    freed_first: later CTAs, in the order of their numbers, that get the place that became free first, as far as the clock can tell.
    """

    bursts: tuple[int, ...]
    apart: dict[int, int]
    in_order: float
    freed_first: float


def rule(cta: Array, sms: int, ctas_an_sm: int) -> Rule:
    """How far simple rules describe a placement."""
    at_once = sms * ctas_an_sm
    first = cta[:at_once, 0]
    distances = [int(np.diff(np.flatnonzero(first == sm))[0]) for sm in np.unique(first) if (first == sm).sum() > 1]
    resolution = _resolution_ns(cta)
    return Rule(
        bursts=tuple(len(burst) for burst in bursts(cta, at_once)),
        apart=dict(Counter(distances).most_common()),
        in_order=float(np.mean(np.diff(cta[:, 2]) >= -resolution)),
        freed_first=_freed_first(cta, at_once, resolution),
    )


def _resolution_ns(cta: Array) -> int:
    """The steps in which the GPU's clock moves on."""
    steps = np.diff(np.unique(cta[:, (2, 4)]))
    return int(steps.min()) if len(steps) else 1


def _freed_first(cta: Array, at_once: int, resolution_ns: int) -> float:
    held = [(int(end), int(sm)) for sm, end in cta[:at_once, (0, 4)]]
    hits = []
    for sm, end in cta[at_once:, (0, 4)]:
        held.sort()
        mine = next((i for i, (_, each) in enumerate(held) if each == sm), None)
        if mine is None:
            return 0.0
        hits.append(held[mine][0] <= held[0][0] + resolution_ns)
        held[mine] = (int(end), int(sm))
    return float(np.mean(hits)) if hits else 1.0
