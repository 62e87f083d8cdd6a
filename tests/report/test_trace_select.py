"""Filters: by warp, tile and step, and the messages for those that do not occur."""

from __future__ import annotations

from typing import Any

import pytest

from fasim.errors import UsageError
from fasim.report.trace_select import Selection, TraceFilters, steps_named
from tests.report.traces import json_trace
from tests.trace.launches import FLASH, OWN

FILTERS = [
    TraceFilters(warp=2),
    TraceFilters(tile=1),
    TraceFilters(tile=-1),
    TraceFilters(steps=("S_QK",)),
    TraceFilters(warp=3, tile=2, steps=("S = QK^T", "O_PV")),
]


@pytest.fixture(scope="module")
def whole() -> Any:
    return json_trace(FLASH)["events"]


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_filters_leave_out_and_change_nothing(filters: TraceFilters, whole: Any) -> None:
    steps = [step.replace("S = QK^T", "S_QK") for step in filters.steps]
    wanted = [
        event
        for event in whole
        if filters.warp in (None, event["warp"])
        and (filters.tile is None or event["tile"] == (None if filters.tile < 0 else filters.tile))
        and (not steps or event["step"] in steps)
    ]
    trace = json_trace(FLASH, filters)
    assert trace["events"] == wanted and 0 < len(wanted) < len(whole) and trace["event_count"] == len(wanted)
    assert trace["filters"] == {"warp": filters.warp, "tile": filters.tile, "steps": steps}
    assert trace["warp_instructions"] == len(whole)


def test_tiles_are_those_of_the_stepper(whole: Any) -> None:
    stepper = FLASH.stepper()
    for position in range(0, len(whole), 397):
        stepper.go_to(position)
        assert stepper.tile(whole[position]["warp"]) == (-1 if whole[position]["tile"] is None else whole[position]["tile"])


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("S_QK", ("S_QK",)),
        ("s_qk", ("S_QK",)),
        ("S = QK^T", ("S_QK",)),
        ("O += P V", ()),
        ("O += PV", ("O_PV",)),
        ("row max", ("ROW_MAX",)),
        ("never leaves the registers", ("PACK_P",)),
        ("no .trans.", ("K_FRAGMENTS",)),
        ("S", ()),
        ("", ()),
    ],
)
def test_a_step_by_its_name_or_text(text: str, steps: tuple[str, ...]) -> None:
    places = FLASH.stepper().places
    if steps:
        assert steps_named(places, text) == steps
    else:
        with pytest.raises(UsageError, match=r"no step '.*' in what is executed; there are: LOAD_Q, .*S_QK.*EPILOGUE"):
            steps_named(places, text)


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        (TraceFilters(warp=4), r"warp 4: the CTA has warps 0 to 3"),
        (TraceFilters(tile=4), r"tile 4: the CTA goes through tiles 0 to 3; -1 is what comes before"),
        (TraceFilters(tile=9, warp=1), r"tile 9: warp 1 goes through tiles 0 to 3"),
        (TraceFilters(tile=1, warp=1, steps=("LOAD_Q",)), r"none of the CTA's \d+ warp instructions is in warp 1, tile 1, step LOAD_Q"),
    ],
)
def test_what_does_not_occur(filters: TraceFilters, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Selection(FLASH.stepper(), filters)


def test_a_kernel_without_steps_and_tiles() -> None:
    with pytest.raises(UsageError, match=r"no step 'X'.*none, the source marks no steps"):
        Selection(OWN["nans"].stepper(), TraceFilters(steps=("X",)))
    with pytest.raises(UsageError, match=r"tile 0: kernel nans has no loop"):
        Selection(OWN["nans"].stepper(), TraceFilters(tile=0))


def test_what_follows_without_a_gap() -> None:
    stepper = FLASH.stepper(check=False)
    selection = Selection(stepper, TraceFilters(warp=1, steps=("S_QK",)))
    chosen = list(selection.positions())
    assert len(chosen) == selection.count and chosen[0].position == selection.first and chosen[-1].position == selection.last
    own = [i for i, warp in enumerate(stepper.walker.known_warps) if warp == 1]
    before = dict(zip(own[1:], own))
    wanted = {each.position for each in chosen}
    assert all(each.follows == (before[each.position] in wanted) for each in chosen)
    assert 0 < sum(each.follows for each in chosen) < len(chosen)
    with_copies = [each for each in selection.positions(stepper.places.copy_pcs) if not each.wanted]
    assert {stepper.walker.known_warps[each.position] for each in with_copies} == {1} and len(with_copies) > 8
    assert stepper.position == 0
