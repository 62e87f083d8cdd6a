"""Moving by lines, steps, tiles and barriers, and running to breakpoints, forward and back."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import fasim
from fasim.errors import MemoryAccessError, UsageError
from fasim.ptx.names import RegisterNames
from fasim.trace.breaks import (
    Breakpoint,
    ConflictBreak,
    HazardBreak,
    LineBreak,
    MemoryBreak,
    NanBreak,
    RegisterBreak,
    StepBreak,
)
from fasim.trace.places import Places
from fasim.trace.stepper import Stepper
from tests.trace.launches import FLASH, OWN, of_cases, of_collection

STEPS = (
    *("LOAD_Q", "Q_FRAGMENTS", "PROLOGUE", "PREFETCH", "K_FRAGMENTS", "S_QK", "MASK", "SCALE", "ROW_MAX", "RESCALE_FACTOR"),
    *("P_EXP2", "ROW_SUM", "PACK_P", "RESCALE_O", "V_FRAGMENTS", "O_PV", "NEXT_TILE", "EPILOGUE"),
)


def walked(stepper: Stepper) -> list[tuple[int, int, int]]:
    """Position, warp and pc of every instruction, by single steps."""
    found = []
    stepper.go_to(0)
    while (following := stepper.state.next) is not None:
        found.append((stepper.position, following.warp, following.pc))
        stepper.go_to(stepper.position + 1)
    return found


def stops(stepper: Stepper, move: str, warp: int | None) -> list[int]:
    """Where a movement stops until it ends."""
    found = []
    while getattr(stepper, move)(warp):
        found.append(stepper.position)
    return found


MOVES = ("line", "step", "tile", "barrier")


@pytest.mark.parametrize("warp", [None, 2])
@pytest.mark.parametrize("what", MOVES)
def test_there_and_back(what: str, warp: int | None) -> None:
    stepper = FLASH.stepper(check=False)
    forward = stops(stepper, f"next_{what}", warp)
    assert stepper.position == stepper.end and stepper.state.next is None
    back = stops(stepper, f"previous_{what}", warp)
    assert stepper.position == 0
    assert [position for position in reversed(back) if position] == forward != []
    fresh = FLASH.stepper(check=False)
    fresh.go_to_end()
    fresh.go_to(0)
    assert stops(fresh, f"next_{what}", warp) == forward  # where the way is known


@pytest.mark.parametrize("warp", [None, 1])
def test_a_line_is_where_a_warp_comes_to_another_one(warp: int | None) -> None:
    stepper = of_cases("out_divergent_loops").stepper()
    way = walked(stepper)
    lines: dict[int, object] = {}
    wanted = []
    for position, own, pc in way:
        line = stepper.places.line(pc) if stepper.places.program.source[pc] is not None and stepper.places.source(pc).line else None
        if line is not None and lines.get(own) != line:
            if warp in (None, own):
                wanted.append(position)
            lines[own] = line
    stepper.go_to(0)
    assert stops(stepper, "next_line", warp) == [position for position in wanted if position > 0]


def test_steps_of_the_algorithm() -> None:
    stepper = FLASH.stepper(check=False)
    names = []
    while stepper.next_step(0):
        following = stepper.state.next
        assert following is not None and following.warp == 0
        names.append(stepper.places.step(following.pc))
    # the compiler moves some instructions, but no step is lost, and their loop runs four times
    assert set(STEPS) - set(names) <= {"MASK", "SCALE", "STATE", "PROLOGUE", "NEXT_TILE", "LOAD_Q"}
    assert names[-1] == "EPILOGUE" and names.count("PACK_P") >= 4
    assert all(a != b for a, b in itertools.pairwise(names))


def test_tiles_are_the_rounds_of_the_marked_loop() -> None:
    stepper = FLASH.stepper(check=False)
    assert stepper.tile(3) == -1
    stopped = stops(stepper, "next_tile", 3)
    assert len(stopped) == 4
    for tile, position in enumerate(stopped):
        stepper.go_to(position)
        following = stepper.state.next
        assert following is not None and stepper.places.step(following.pc) == "PREFETCH" and stepper.tile(3) == tile
    stepper.step(-1)
    assert stepper.tile(3) == 2


def test_tiles_without_marks() -> None:
    stepper = OWN["global_order"].stepper()
    assert len(stops(stepper, "next_tile", 0)) == 900 // 4 or stepper.places.tile_loop is not None
    plain = fasim.compile('extern "C" __global__ void k(int *o) { o[threadIdx.x] = 1; }').kernel()
    with pytest.raises(UsageError, match="no loop"):
        Stepper(plain, 1, 32, [np.zeros(32, np.int32)]).next_tile()


def test_barriers() -> None:
    stepper = FLASH.stepper(check=False)
    found = stops(stepper, "next_barrier", 1)
    assert len(found) == 1 + 2 * 4  # one after Q, two a tile
    for position in found:
        event = stepper.event(position)
        assert event is not None and event.arrival is not None and (event.arrival.number, event.arrival.count, event.warp) == (0, 0, 1)
    everybody = [stepper.event(position) for position in sorted(stops_of_all(stepper))]
    opened = [event.warp for event in everybody if event is not None and event.arrival is not None and event.arrival.opened]
    assert len(everybody) == 4 * 9 and len(opened) == 9 and set(opened) == {3}


def stops_of_all(stepper: Stepper) -> list[int]:
    stepper.go_to(0)
    return stops(stepper, "next_barrier", None)


# --- breakpoints --------------------------------------------------------------------------------------------------------------------


def hits(stepper: Stepper, breakpoint_: Breakpoint, direction: int, warp: int | None = None) -> list[int]:
    """Where it stops, one after the other."""
    found = []
    while (hit := stepper.run_to([breakpoint_], direction, warp=warp)) is not None:
        assert hit.breakpoint is breakpoint_ and hit.position == stepper.position
        found.append(hit.position)
    return found


ANY = [
    (FLASH, StepBreak("PACK_P"), 1),
    (FLASH, LineBreak(193), None),
    (FLASH, LineBreak(76, "10_fa_v21.cu"), 0),
    (of_collection("fa_v21", n=128, bc=32, heads=1, layout="linear"), ConflictBreak(8), 2),
    (of_cases("hz_missing_barrier"), HazardBreak(), None),
    (OWN["nans"], NanBreak(), None),
    (OWN["nans"], NanBreak(new=False), None),
    (FLASH, MemoryBreak("shared", 64, 4), None),
    (FLASH, MemoryBreak("o", 256, 2), None),
]


@pytest.mark.parametrize("launch, breakpoint_, warp", ANY, ids=[f"{i}-{type(b).__name__}" for i, (_, b, _) in enumerate(ANY)])
def test_forward_and_back_stop_at_the_same_places(launch, breakpoint_, warp) -> None:
    stepper = launch.stepper()
    forward = hits(stepper, breakpoint_, 1, warp)
    assert forward and stepper.position == stepper.end
    back = hits(stepper, breakpoint_, -1, warp)
    assert stepper.position == 0 and back[::-1] == forward


def test_a_line() -> None:
    stepper = FLASH.stepper()
    hit = stepper.run_to([LineBreak(193)])
    following = stepper.state.next
    assert hit is not None and hit.event is None and following is not None
    assert any(line == 193 for _, line in stepper.places.path(following.pc))
    with pytest.raises(UsageError, match="line 14: no instruction comes from it; the nearest line that has some is 66"):
        stepper.run_to([LineBreak(14)])


def test_a_step_that_there_is_not() -> None:
    with pytest.raises(UsageError, match=r"no step 'S'; there are: .*S_QK"):
        FLASH.stepper().run_to([StepBreak("S")])


def test_a_conflict_has_a_cost() -> None:
    stepper = of_collection("fa_v21", n=128, bc=32, heads=1, layout="linear").stepper()
    hit = stepper.run_to([ConflictBreak()])
    assert hit is not None and hit.event is stepper.event()
    cost = hit.event.access.wavefronts
    assert cost is not None and cost.conflicts == cost.actual - len(cost.groups) > 0 and cost.collisions


def test_no_conflict_in_a_padded_layout() -> None:
    stepper = FLASH.stepper()
    assert stepper.run_to([ConflictBreak(), HazardBreak(), NanBreak()]) is None and stepper.position == stepper.end


def test_a_hazard_is_found_where_it_happens() -> None:
    launch = of_cases("hz_missing_barrier")
    stepper = launch.stepper()
    wanted = launch.launch(launch.make(), check="all").hazards
    hit = stepper.run_to([HazardBreak("RAW")])
    assert hit is not None and hit.event is not None
    [found] = hit.event.hazards
    assert (found.kind, found.first, found.second) == (wanted[0].kind, wanted[0].first, wanted[0].second)
    assert hit.event.source in (found.first, found.second)


def test_a_nan_where_it_is_born() -> None:
    stepper = OWN["nans"].stepper()
    hit = stepper.run_to([NanBreak()])
    assert hit is not None and hit.event is not None and hit.event.source.mnemonic.startswith(("mul", "fma"))
    assert hit.event.nan_lanes == hit.event.new_nan_lanes == 1


def test_a_register_value() -> None:
    stepper = OWN["nans"].stepper()
    names = {change.operand.name for change in stepper_events(stepper, "add")}
    assert names
    name = sorted(names)[0]
    stepper.go_to(0)
    hit = stepper.run_to([RegisterBreak(name, 0.0, lane=3)])
    assert hit is not None and stepper.event() is hit.event
    with pytest.raises(UsageError, match="nothing in kernel nans writes a register %f999"):
        stepper.run_to([RegisterBreak("%f999")])


def stepper_events(stepper: Stepper, opcode: str):
    """The destinations of all instructions with an opcode whose result is 0 in lane 3."""
    while stepper.state.next is not None:
        stepper.step()
        event = stepper.event()
        if event is not None and event.source.mnemonic.startswith(opcode):
            yield from (change for change in event.registers if change.operand.seen_as == "f32" and change.new[3] == 0)


def test_a_memory_value() -> None:
    stepper = OWN["calls"].stepper()
    name = "out"
    wanted = np.zeros(64, np.int32)
    OWN["calls"].launch([wanted])
    hit = stepper.run_to([MemoryBreak(name, 4 * 3, 4, wanted[3:4].tobytes())])
    assert hit is not None and hit.event is not None and hit.event.kind == "store"
    assert stepper.state.buffers[name][3] == wanted[3]
    with pytest.raises(UsageError, match="no buffer 'x'"):
        stepper.run_to([MemoryBreak("x", 0)])


def test_several_breakpoints_the_nearest_stops() -> None:
    stepper = FLASH.stepper()
    step, memory = StepBreak("Q_FRAGMENTS"), MemoryBreak("shared", 18432, 4)
    first = stepper.run_to([step, memory])
    second = stepper.run_to([step, memory])
    assert first is not None and second is not None
    assert first.position < second.position
    stepper.go_to(second.position + 1)
    again = stepper.run_to([step, memory], -1)
    assert again is not None and (again.position, again.breakpoint) == (second.position, second.breakpoint)


def test_direction_is_one_or_the_other() -> None:
    with pytest.raises(UsageError, match="direction 2"):
        FLASH.stepper().run_to([HazardBreak()], 2)


def test_all_places_before_a_failure_are_found() -> None:
    stepper = OWN["overrun"].stepper()
    lines = []
    with pytest.raises(MemoryAccessError):
        while stepper.next_line(1):
            following = stepper.state.next
            assert following is not None
            line = stepper.places.line(following.pc)
            assert line is not None
            lines.append(line[1])
    assert stepper.position == stepper.end and len(lines) > 3
    assert lines[-1] == stepper.failure.where.line


def test_calls() -> None:
    stepper = OWN["calls"].stepper(check=False)
    deepest = 0
    while stepper.run_to([StepFunction("depth")], warp=0) is not None and stepper.position < 20000:
        calls = stepper.state.calls(0, 7)
        following = stepper.state.next
        assert following is not None and "depth" in stepper.names.function_at(following.pc)
        if following.lanes >> 7 & 1:
            deepest = max(deepest, len(calls))
            functions = [stepper.names.function_at(pc) for pc in calls]
            assert functions[0] == "calls" and all("depth" in name for name in functions[1:])
            assert all(stepper.places.source(pc).mnemonic.startswith("call") for pc in calls)
    assert deepest >= 5


@dataclass(frozen=True)
class StepFunction(Breakpoint):
    """A breakpoint of one's own: the beginning of a function."""

    name: str
    before: ClassVar[bool] = True

    def pcs(self, places: Places, names: RegisterNames) -> np.ndarray:
        found = np.zeros(len(places.program), bool)
        found[[first for name, first, _ in names.functions if self.name in name]] = True
        return found


@pytest.mark.parametrize("direction", [1, -1])
def test_stopping_again_and_again_finds_the_same(direction: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is looked at twice without end, nothing is passed over."""
    monkeypatch.setattr("fasim.trace.search.LOOKED_AT", 97)
    launch = of_cases("out_divergent_loops")
    hits = {}
    for stops in (False, True):
        stepper = launch.stepper()
        name = next(each.name for operands in stepper.names.operands for each in operands if each.writes and each.name.startswith("%r"))
        last = stepper.places.line(len(stepper.places.program) - 2)
        assert last is not None
        wanted = [RegisterBreak(name, lane=3), LineBreak(last[1])]
        stepper.go_to_end()
        if direction == 1:
            stepper.go_to(0)
        found, stopped = [], 0
        while True:
            before, told = stepper.position, []

            def watch(position: int, told: list[int] = told) -> bool:
                told.append(position)
                return False

            hit = stepper.run_to(wanted, direction, watch=watch if stops else None)
            if hit is not None:
                found.append((hit.position, type(hit.breakpoint).__name__))
            elif not told or stepper.position in (0, stepper.end):
                break
            else:
                stopped += 1
                assert (stepper.position - before) * direction > 0
        hits[stops] = found
        assert (stopped > 3) == stops
    assert hits[True] == hits[False] != []
