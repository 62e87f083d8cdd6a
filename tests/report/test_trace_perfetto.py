"""A Perfetto trace, read back with Perfetto's messages, tells the same as the JSON trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fasim.report.trace_perfetto import OUTSIDE
from fasim.report.trace_select import TraceFilters
from tests.report.traces import Slice, Track, json_trace, perfetto_tracks, traced
from tests.trace.launches import FLASH, OWN, Launch, of_cases, of_collection

pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")
FILTERS = [TraceFilters(), TraceFilters(tile=2), TraceFilters(warp=1, steps=("S_QK", "K_FRAGMENTS"))]


def tracks_of(launch: Launch, filters: TraceFilters | None = None, **options: Any) -> list[Track]:
    return perfetto_tracks(traced(launch, ".pftrace", filters, **options)[1])


def named(tracks: list[Track], name: str) -> list[Track]:
    return [track for track in tracks if track.name == name]


def leaves(slices: list[Slice], above: tuple[Slice, ...] = ()) -> list[tuple[Slice, ...]]:
    """Innermost slices, each with those around it."""
    found = []
    for slice_ in slices:
        assert slice_.start < slice_.end
        if above:
            assert above[-1].start <= slice_.start and slice_.end <= above[-1].end
        found += leaves(slice_.inside, (*above, slice_)) if slice_.inside else [(*above, slice_)]
    return found


@pytest.mark.parametrize("filters", FILTERS, ids=str)
def test_instructions_in_lines_in_steps(filters: TraceFilters) -> None:
    events, tracks = json_trace(FLASH, filters)["events"], tracks_of(FLASH, filters)
    process = next(track for track in tracks if track.parent == 0)
    assert process.name == "name CTA (0,0,0)"
    (launch,) = named(tracks, "launch")[0].slices
    assert launch.args["event_count"] == len(events) and launch.args["time"].startswith("1 us = 1 warp instruction")
    assert (launch.start, launch.end) == (events[0]["position"], events[-1]["position"] + 1)
    for warp in {event["warp"] for event in events}:
        own = [event for event in events if event["warp"] == warp]
        (track,) = named(tracks, f"warp {warp}")
        found = leaves(track.slices)
        assert len(found) == len(own)
        for event, (step, line, instruction) in zip(own, found):
            assert (instruction.start, instruction.end) == (event["position"], event["position"] + 1)
            assert step.name == (event["step"] or OUTSIDE)
            assert step.args.get("tile") == event["tile"]
            if "inserted" in event:
                assert instruction.name == "(jump)"
                continue
            place = f"{Path(event['path'][0][0]).name}:{event['path'][0][1]} " if event["path"] else "(no source line)"
            assert line.name.startswith(place)
            assert instruction.name == event["text"].split()[1 if event["text"].startswith("@") else 0].rstrip(";")
            assert instruction.args["ptx"].split() == event["text"].split() and instruction.args["active"] == event["active"]
            assert instruction.args.get("line") == (f"{event['file']}:{event['line']}" if event["line"] else None)
            assert instruction.args.get("wavefronts") == event.get("access", {}).get("wavefronts")
    assert not named(tracks, "warp 9")


def test_slices_end_where_filters_leave_a_gap() -> None:
    """The same step of the next tile, or after a gap, is another slice."""
    (track,) = named(tracks_of(FLASH, TraceFilters(warp=0, steps=("SCALE",))), "warp 0")
    assert [step.args["tile"] for step in track.slices if step.args["tile"] == 1]
    whole = named(tracks_of(FLASH, TraceFilters(warp=0)), "warp 0")[0].slices
    assert [(s.start, s.end) for s in track.slices] == [(s.start, s.end) for s in whole if s.name == "SCALE"]


def expected_groups(events: Any, warp: int) -> dict[int, tuple[int, int]]:
    """First copy and end of each group, by the rules of commits and waits."""
    first: dict[int, int] = {}
    ends: dict[int, int] = {}
    committed = 0
    for event in (event for event in events if event["warp"] == warp):
        if event["kind"] == "cp_async":
            first.setdefault(committed, event["position"])
        elif event["kind"] == "cp_commit":
            committed += 1
        elif event["kind"] == "cp_wait":
            left = event["copy"]["pending"]
            for group in first:
                if group < committed - left or left < 0:
                    ends.setdefault(group, event["position"] + 1)
    return {group: (first[group], ends.get(group, len(events))) for group in first}


COPIES = [FLASH, OWN["many_copies"], of_cases("hz_cp_async_pipeline")]


@pytest.mark.parametrize("launch", COPIES, ids=[launch.name for launch in COPIES])
def test_copy_groups_last_from_issue_to_wait(launch: Launch) -> None:
    events, tracks = json_trace(launch)["events"], tracks_of(launch)
    total = 0
    for warp in {event["warp"] for event in events}:
        slices = [slice_ for track in named(tracks, f"warp {warp} copies") for slice_ in track.slices]
        assert all(not slice_.inside and slice_.name == f"copy group {slice_.args['group']}" for slice_ in slices)
        assert {slice_.args["group"]: (slice_.start, slice_.end) for slice_ in slices} == expected_groups(events, warp)
        for slice_ in slices:
            if slice_.args["waited for at"] == "never":
                assert slice_.end == len(events) and launch.name.endswith("no_wait")
            else:
                wait = events[slice_.args["waited for at"]]
                assert wait["kind"] == "cp_wait" and wait["text"].split() == slice_.args["wait"].split()
            copies = [e for e in events if e["warp"] == warp and e.get("copy", {}).get("groups") == [slice_.args["group"]]]
            assert slice_.args["cp.async instructions"] == len(copies)
            size = sum(16 * bin(int(e["access"]["lanes"], 16)).count("1") * e["access"]["bytes_per_lane"] // 16 for e in copies)
            assert slice_.args["bytes"] == size > 0
        total += len(slices)
    assert (total > 0) == any(event["kind"] == "cp_async" for event in events)
    if launch is FLASH:
        assert total == 4 * 4 and len(named(tracks, "warp 3 copies")) == 2
        assert named(tracks, "warp 0 copies")[0].slices[0].args["issued in"].startswith("PROLOGUE 10_fa_v21.cu:")


def test_copy_groups_of_a_tile_are_whole() -> None:
    """Tile 2 begins while its copies, issued in tile 1, and ends while those of tile 3 are on their way."""
    filters = TraceFilters(warp=0, tile=2)
    part, whole = (
        {s.args["group"]: (s.start, s.end) for track in named(tracks_of(FLASH, f), "warp 0 copies") for s in track.slices}
        for f in (filters, TraceFilters(warp=0))
    )
    assert part == {group: whole[group] for group in (2, 3)}


@pytest.mark.parametrize("filters", FILTERS[:2], ids=str)
def test_counters_have_the_cost_of_each_access(filters: TraceFilters) -> None:
    launch = of_collection("fa_v21", n=128, bc=32, heads=1, layout="linear")
    events, tracks = json_trace(launch, filters)["events"], tracks_of(launch, filters)
    costs = {event["position"]: event.get("access", {}) for event in events}
    for track, name in (("shared wavefronts", "wavefronts"), ("shared bank conflicts", "conflicts")):
        values = named(tracks, track)[0].values
        current, seen = 0, 0
        for position in range(events[0]["position"], events[-1]["position"] + 2):
            current = values.get(position, current)
            assert current == costs.get(position, {}).get(name, 0), position
            seen += current
        assert seen > 1000
        assert min(values) >= events[0]["position"]


def test_hazards_and_faults_are_instants() -> None:
    launch = of_cases("hz_cp_async_pipeline")
    found = [(time, name, args["text"]) for track in tracks_of(launch) for time, name, args in track.instants]
    events = json_trace(launch)["events"]
    assert found == [(e["position"], f"{h['severity']}: {h['kind']}", h["text"]) for e in events for h in e.get("hazards", ())] and found
    summary, raw = traced(OWN["overrun"], ".pftrace")
    tracks = perfetto_tracks(raw)
    ((time, name, args),) = named(tracks, "warp 1")[0].instants
    assert time == summary.events and name == "fault: MemoryAccessError" and args["message"] == str(summary.failure)
    assert args["text"].startswith("st.global")
    ((time, name, _),) = named(perfetto_tracks(traced(OWN["deadlock"], ".pftrace")[1]), "launch")[0].instants
    assert name == "fault: DeadlockError"


def test_a_kernel_without_steps_has_two_levels() -> None:
    (track,) = named(tracks_of(OWN["nans"]), "warp 0")
    assert {len(chain) for chain in leaves(track.slices)} == {2}
