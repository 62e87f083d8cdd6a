"""Which SM gets which CTA, and when it ends: all SMs of a GPU with what one of them was found to do.

A CTA goes to the SM whose place frees first; an SM works at a rate that depends on how many CTAs it holds.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Schedule:
    """orders: the CTAs of each SM in the order in which they start there. ends: when each SM is done, in cycles."""

    orders: list[list[int]]
    ends: Array

    @property
    def cycles(self) -> float:
        """When the last SM is done."""
        return float(self.ends.max())


def first_wave(sms: int, resident: int, count: int) -> list[int]:
    """The SM of each of the first CTAs: one after the other, then round again."""
    return [i % sms for i in range(min(count, sms * resident))]


def schedule(work: Array, sms: int, resident: int, rates: Sequence[float], overhead: float) -> Schedule:
    """Hand out CTAs.

    work: warp instructions of each CTA. rates[k]: warp instructions a cycle of one CTA while its SM holds k + 1. overhead: cycles from the
    end of a CTA to the first instruction of the next in its place.
    """
    orders: list[list[int]] = [[] for _ in range(sms)]
    left: list[list[float]] = [[] for _ in range(sms)]  # work of the CTAs that an SM holds
    now = np.zeros(sms)
    placed = first_wave(sms, resident, len(work))
    for cta, sm in enumerate(placed):
        orders[sm].append(cta)
        left[sm].append(float(work[cta]) + overhead * rates[0])
    following = len(placed)
    heap = [(_next_end(left[sm], rates), sm) for sm in range(sms) if left[sm]]
    heapq.heapify(heap)
    while heap:
        end, sm = heapq.heappop(heap)
        rate = rates[len(left[sm]) - 1]
        done = (end - now[sm]) * rate
        now[sm] = end
        held = [each - done for each in left[sm]]
        finished = int(np.argmin(held))
        held.pop(finished)
        if following < len(work):
            orders[sm].append(following)
            held.append(float(work[following]) + overhead * rates[min(len(held), len(rates) - 1)])
            following += 1
        left[sm] = held
        if held:
            heapq.heappush(heap, (end + _next_end(held, rates), sm))
    return Schedule(orders, now)


def _next_end(held: list[float], rates: Sequence[float]) -> float:
    return max(min(held), 0.0) / rates[len(held) - 1]
