"""Which SM gets which CTA: as an H200 does it, and nothing lost."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hs

from fasim.arch.cards import card, card_names
from fasim.sm.timing.schedule import Groups, first_wave, groups_of, schedule


def test_distances_on_an_h200():
    """The second CTA of an SM is behind its first by 132, 124, and on eight SMs by 88 (tests/gpu/data/placement_h200.npz: 80 to 92)."""
    placed = first_wave(groups_of(card("h200")), 2, 264)
    first = {sm: placed.index(sm) for sm in set(placed)}
    second = {sm: len(placed) - 1 - placed[::-1].index(sm) for sm in set(placed)}
    assert Counter(second[sm] - first[sm] for sm in first) == {132: 80, 124: 44, 88: 8}


@pytest.mark.parametrize("name", card_names())
@pytest.mark.parametrize("resident", [1, 2, 3, 7])
def test_every_place_is_filled_once(name, resident):
    gpu = card(name)
    placed = first_wave(groups_of(gpu), resident, 10**6)
    assert Counter(placed) == dict.fromkeys(range(gpu.sms), resident)


@given(
    hs.lists(hs.integers(1, 1000), min_size=1, max_size=200),
    hs.lists(hs.integers(1, 5), min_size=1, max_size=4),
    hs.integers(1, 4),
    hs.integers(0, 50),
)
def test_every_cta_runs_once_and_the_work_is_done(work, sizes, resident, overhead):
    rates = [1.0 / (k + 1) for k in range(resident)]
    plan = schedule(np.array(work, np.float64), Groups(tuple(sizes)), resident, rates, overhead)
    assert sorted(cta for order in plan.orders for cta in order) == list(range(len(work)))
    # rates that share one SM's speed: no SM is faster than its work alone
    for order, end in zip(plan.orders, plan.ends):
        assert end >= sum(work[cta] for cta in order) - 1e-6
    assert plan.cycles >= max(work)


def test_longest_first_is_not_assumed():
    """CTAs start in the order of their numbers: a long one at the end makes the launch long."""
    work = np.array([10.0] * 7 + [100.0])
    plan = schedule(work, Groups((4,)), 1, [1.0], 0.0)
    assert plan.cycles == pytest.approx(110)


#: CTAs of a grid of equal ones without loads, eight to an SM: most of them on one SM, by their %smid on an H200, 2026-11-30
MOST = {132: 1, 528: 4, 1056: 8, 1057: 9, 1100: 9, 1188: 9, 1320: 10, 1584: 12, 2112: 16, 2113: 17, 2200: 17, 2376: 18, 3168: 24}


@pytest.mark.parametrize("grid", MOST)
def test_equal_ctas_are_spread(grid):
    plan = schedule(np.full(grid, 1000.0), groups_of(card("h200")), 8, [1.0] * 8, 10.0)
    assert max(map(len, plan.orders)) == MOST[grid]


def test_sms_out_of_step_take_several_at_once():
    # 1,024 CTAs of gemm_mma, six to an SM: 24 % of the time of SMs is idle on an H200
    plan = schedule(np.full(1024, 1000.0), groups_of(card("h200")), 6, [1.0] * 6, 10.0, 0.02)
    assert max(map(len, plan.orders)) == 12
    assert sorted(cta for order in plan.orders for cta in order) == list(range(1024))
