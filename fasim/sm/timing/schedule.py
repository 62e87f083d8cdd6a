"""Which SM gets which CTA, and when it ends: all SMs of a GPU with what one of them was found to do.

A CTA goes to the SM whose place frees first; an SM works at a rate that depends on how many CTAs it holds.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.arch.cards import Card
from fasim.sm.timing.spread import evenly

Array = np.ndarray[Any, Any]
#: CTAs of the same work take times that differ by this part; how often the grid is handed out with other differences, and for how many CTAs
_NOISE, _TIMES, _MOST = 0.01, 8, 200_000


@dataclass(frozen=True)
class Schedule:
    """orders: the CTAs of each SM in the order in which they start there. ends: when each SM is done, in cycles. speed: of each SM, 1 the
    mean."""

    orders: list[list[int]]
    ends: Array
    speed: Array

    @property
    def cycles(self) -> float:
        """When the last SM is done."""
        return float(self.ends.max())


@dataclass(frozen=True)
class Groups:
    """How a GPU hands out its first CTAs: groups of SMs take turns, and the one whose turn it is gets a CTA for each of its SMs.

    sizes: SMs of each group, in the order of their turns. apart: SMs of a group that is served before the turns numbered `apart_turns`.
    """

    sizes: tuple[int, ...]
    apart: int = 0
    apart_turns: tuple[int, ...] = ()


def groups_of(card: Card) -> Groups:
    """As the card's data says; SMs one after the other where it says nothing."""
    sizes = tuple(card.get("launch.gpcs", ())) or (card.sms,)
    return Groups(sizes, card.get("launch.apart", 0), tuple(card.get("launch.apart_turns", ())))


def first_wave(groups: Groups, resident: int, count: int) -> list[int]:
    """The SM of each of the first CTAs, in the order of their numbers."""
    starts = [sum(groups.sizes[:i]) for i in range(len(groups.sizes))]
    apart_first = sum(groups.sizes)
    placed: list[int] = []
    apart_left = resident if groups.apart else 0
    for turn in range(len(groups.sizes) * resident + 1):
        if apart_left and (turn in groups.apart_turns or turn == len(groups.sizes) * resident):
            for _ in range(apart_left if turn == len(groups.sizes) * resident else 1):
                placed += range(apart_first, apart_first + groups.apart)
                apart_left -= 1
        if turn < len(groups.sizes) * resident:
            group = turn % len(groups.sizes)
            placed += range(starts[group], starts[group] + groups.sizes[group])
    return placed[:count]


def schedule(
    work: Array, groups: Groups, resident: int, rates: Sequence[float], overhead: float, spread: float = 0.0, apart: float = 0.0
) -> Schedule:
    """Hand out CTAs.

    work: warp instructions of each CTA. rates[k]: warp instructions a cycle of one CTA while its SM holds k + 1. overhead: cycles from the
    end of a CTA to the first instruction of the next in its place. spread: between the fastest and the slowest SM, in parts of a rate: SMs
    are not equally far from memory, so that one gets several CTAs while others have not ended theirs yet. apart: between the ends of the
    first CTAs of an SM, in parts of the time of one: the more, the less can one SM do that.
    """
    sms = sum(groups.sizes) + groups.apart
    orders: list[list[int]] = [[] for _ in range(sms)]
    left: list[list[float]] = [[] for _ in range(sms)]  # work of the CTAs that an SM holds
    now = np.zeros(sms)
    speed = 1.0 + spread * (evenly(np.arange(sms)) - 0.5)
    # fewer CTAs than places: no SM gets more than its share
    each = min(resident, -(-len(work) // sms))
    # as far as that is more than SMs differ, one from the mean and another one from it
    apart = max(apart - 2 * spread, 0.0)
    placed = first_wave(groups, each, len(work))
    for cta, sm in enumerate(placed):
        later = apart * ((len(orders[sm]) + 0.5) / each - 0.5)
        orders[sm].append(cta)
        left[sm].append(float(work[cta]) * (1.0 + later) + overhead * rates[0])
    following = len(placed)
    # of SMs that have a place at the same time, the one that has had fewer CTAs gets the next
    heap = [(_next_end(left[sm], rates) / speed[sm], len(orders[sm]), sm) for sm in range(sms) if left[sm]]
    heapq.heapify(heap)
    while heap:
        end, _, sm = heapq.heappop(heap)
        rate = rates[len(left[sm]) - 1] * speed[sm]
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
            heapq.heappush(heap, (end + _next_end(held, rates) / speed[sm], len(orders[sm]), sm))
    return Schedule(orders, now, speed)


def last_end(plan: Schedule, work: Array, hand_out: Callable[[Array], Schedule]) -> float:
    """When the last SM is done, as the mean over small differences between CTAs; plan: without them; hand_out: `schedule` for some work.

    Where CTAs differ, which of them comes last to which SM decides, and that changes from launch to launch.
    """
    if len(work) <= len(plan.orders) or float(np.ptp(work)) <= _NOISE * float(np.mean(work)):
        return plan.cycles
    random = np.random.default_rng(len(work))
    times = min(_TIMES, max(_MOST // len(work), 1))
    others = (work * (1.0 + _NOISE * random.standard_normal(len(work))) for _ in range(times))
    return float(np.mean([hand_out(each).cycles for each in others]))


def _next_end(held: list[float], rates: Sequence[float]) -> float:
    return max(min(held), 0.0) / rates[len(held) - 1]
