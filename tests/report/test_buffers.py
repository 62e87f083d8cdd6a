"""The buffers over time: what is gathered against the events of a JSON trace, and what is drawn against what is gathered."""

from __future__ import annotations

import io
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from fasim import kernels
from fasim.errors import UsageError
from fasim.kernels.spec import Region
from fasim.report.buffer_areas import Area
from fasim.report.buffers import AreaRow, BarrierBar, BuffersOverTime, BuffersTrace, CopyBar
from fasim.report.buffers_figure import buffers_figure, together
from fasim.report.trace_select import Selection, TraceFilters
from fasim.report.trace_write import trace_header, walk
from tests.report.figures import bars, overlapping, texts_of
from tests.report.traces import FACTS, json_trace, traced
from tests.trace.launches import FLASH, OWN, Launch, of_cases, of_collection

REGIONS = kernels.load("fa_v21").regions({"n": 128, "bc": 32, "heads": 1})


PIPELINE, NO_WAIT = of_cases("hz_cp_async_pipeline", "ring_empty_commit"), of_cases("hz_cp_async_pipeline", "no_wait")
GEMM, TILED = of_collection("gemm_mma", m=64, n=64, k=96), of_collection("gemm_tiled")
FAULTING = Launch("faulting", OWN["overrun"].kernel, 1, 64, OWN["overrun"].make, 1024)
COPIES = [(FLASH, REGIONS), (FLASH, ()), (OWN["many_copies"], ()), (PIPELINE, ()), (NO_WAIT, ()), (GEMM, ())]
#: of which all labels are looked at
LAUNCHES = [
    FLASH, OWN["many_copies"], PIPELINE, NO_WAIT, GEMM, TILED, OWN["generic"], FAULTING, of_collection("fa_v21", n=512, heads=1),
    *(of_collection(name) for name in ("transpose", "reduce", "histogram", "attention_naive")),
]  # fmt: skip


def picture(launch: Launch, filters: TraceFilters | None = None, regions: Any = ()) -> BuffersOverTime:
    """What is gathered of a launch's first CTA."""
    return _picture(LAUNCHES.index(launch), filters or TraceFilters(), tuple(regions))


@cache
def _picture(launch: int, filters: TraceFilters, regions: tuple[Region, ...]) -> BuffersOverTime:
    stepper = LAUNCHES[launch].stepper()
    selection = Selection(stepper, filters)
    trace = BuffersTrace("svg", io.BytesIO(), stepper, selection, trace_header(stepper, selection, FACTS, (), regions))
    for _ in walk(stepper, selection, trace):
        pass
    return trace.picture()


def events_of(launch: Launch, filters: TraceFilters | None = None) -> Any:
    """The same CTA's events."""
    return _events(LAUNCHES.index(launch), filters)


@cache
def _events(launch: int, filters: TraceFilters | None) -> Any:
    return json_trace(LAUNCHES[launch], filters)["events"]


def bytes_of(event: Any) -> set[int]:
    """The bytes of shared memory that an event accesses."""
    access = event["access"]
    return {at + i for at in access["addresses"] if at is not None for i in range(access["bytes_per_lane"])}


def in_shared(event: Any) -> bool:
    return event.get("access", {}).get("space") == "shared"


def expected_copies(events: Any, area: Area) -> list[tuple[int, int, int | None, int, bool, tuple[int, ...]]]:
    """Group, first copy, last commit, end, whether it is waited for, and warps, by the rules of commits and waits."""
    inside = {byte for start, end in area.ranges for byte in range(start, end)}
    groups: dict[tuple[int, int], list[Any]] = {}
    committed: dict[int, int] = {}
    for event in events:
        warp, at = event["warp"], event["position"]
        number = committed.get(warp, 0)
        if event["kind"] == "cp_async" and bytes_of(event) & inside:
            groups.setdefault((number, warp), [at, None, None])
        elif event["kind"] == "cp_commit":
            if (number, warp) in groups:
                groups[number, warp][1] = at
            committed[warp] = number + 1
        elif event["kind"] == "cp_wait":
            left = event["copy"]["pending"]
            for (group, owner), found in groups.items():
                if owner == warp and found[2] is None and (left < 0 or group < number - left):
                    found[2] = at + 1
    bars_: list[Any] = []
    for (number, warp), (first, commit, end) in sorted(groups.items(), key=lambda item: (item[0][0], item[1][0])):
        last = bars_[-1] if bars_ else None
        stop = len(events) if end is None else end
        if last is not None and last[0] == number and first < last[3]:
            last[2] = None if commit is None or last[2] is None else max(commit, last[2])
            last[3], last[4] = max(last[3], stop), last[4] and end is not None
            last[5] += (warp,)
        else:
            bars_.append([number, first, commit, stop, end is not None, (warp,)])
    return sorted((tuple(bar) for bar in bars_), key=lambda bar: (bar[1], bar[0]))


def of_bar(bar: CopyBar) -> tuple[int, int, int | None, int, bool, tuple[int, ...]]:
    return bar.group, bar.first, bar.committed, bar.end, bar.arrived, bar.warps


@pytest.mark.parametrize(("launch", "regions"), COPIES, ids=[f"{launch.name}{len(regions)}" for launch, regions in COPIES])
def test_copies_stores_and_reads_by_area(launch: Launch, regions: Any) -> None:
    events, found = events_of(launch), picture(launch, regions=regions)
    if regions:
        assert [row.area.name for row in found.rows] == [region.name for region in regions]
        assert [row.area.ranges for row in found.rows] == [((region.start, region.end),) for region in regions]
    touched: set[int] = set()
    near, moment = len(events) // 200, -(-len(events) // 1000)
    for row in found.rows:
        inside = {byte for start, end in row.area.ranges for byte in range(start, end)}
        assert not inside & touched
        touched |= inside
        assert [of_bar(bar) for bar in row.copies] == expected_copies(events, row.area)
        for how, spans in (("reads", row.reads), ("writes", row.stores)):
            accesses = [e for e in events if in_shared(e) and e["kind"] != "cp_async" and e["access"][how] and bytes_of(e) & inside]
            at = [event["position"] for event in accesses]
            assert all(any(start <= position < end for start, end in spans) for position in at)
            for start, end in spans:
                own = [position for position in at if start <= position < end]
                assert own[0] - start < moment and end - own[-1] <= moment
                assert all(b - a <= near + 2 * moment for a, b in pairwise(own))
            assert all(b[0] - a[1] > near for a, b in pairwise(spans))
    assert touched >= {byte for event in events if in_shared(event) for byte in bytes_of(event)}
    assert list(found.waits) == [event["position"] for event in events if event["kind"] == "cp_wait"]
    starts: dict[int, int] = {}
    for event in events:
        if event["tile"] is not None:
            starts.setdefault(event["tile"], event["position"])
    assert dict(found.tiles) == starts
    assert (found.first, found.end, found.fault) == (0, len(events), None)


def test_barriers() -> None:
    """Four warps come to each barrier; the last one opens it."""
    events, found = events_of(FLASH), picture(FLASH)
    arrivals = [(event["position"], event["barrier"]["opened"]) for event in events if "barrier" in event]
    expected = []
    for i in range(0, len(arrivals), 4):
        four = arrivals[i : i + 4]
        assert [opened for _, opened in four] == [False, False, False, True]
        expected.append(BarrierBar(0, four[0][0], four[3][0] + 1, True))
    assert list(found.barriers) == expected and len(expected) == 9
    # a warp alone does not see barriers open
    alone = picture(FLASH, TraceFilters(warp=0))
    own = [event["position"] for event in events if "barrier" in event and event["warp"] == 0]
    assert [(bar.first, bar.end, bar.opened) for bar in alone.barriers] == [(at, at + 1, False) for at in own]


def test_areas_without_a_description_are_those_of_the_description() -> None:
    """Rows are padded by 16 bytes, which nobody touches behind the last row of a buffer."""
    found, named = picture(FLASH), picture(FLASH, regions=REGIONS)
    assert [(row.area.ranges[0][0], row.area.ranges[0][1] + 16) for row in found.rows] == [(r.start, r.end) for r in REGIONS]
    assert [row.area.note for row in found.rows] == ["from k", "from k", "from v", "from v", ""]
    assert [row.copies for row in found.rows] == [row.copies for row in named.rows]
    # two buffers in turn: while one is read, the other is filled
    groups = [[bar.group for bar in row.copies] for row in named.rows]
    assert [sorted(set(each)) for each in groups] == [[0, 2], [1, 3], [0, 2], [1, 3], []]


def test_filters() -> None:
    whole, part = picture(FLASH, regions=REGIONS), picture(FLASH, TraceFilters(warp=1, tile=1), REGIONS)
    events = events_of(FLASH, TraceFilters(warp=1, tile=1))
    assert (part.first, part.end) == (events[0]["position"], events[-1]["position"] + 1)
    assert part.about.endswith("only warp 1, tile 1") and [tile for tile, _ in part.tiles] == [1]
    assert [row.area.name for row in part.rows] == ["K[0]", "K[1]", "V[0]", "V[1]"]
    assert {bar.group for row in part.rows for bar in row.copies} == {1, 2}
    assert all(bar.warps == (1,) for row in part.rows for bar in row.copies)
    # whole, also where they reach over the ends of what is shown
    assert part.end < max(bar.end for row in part.rows for bar in row.copies if bar.group == 2)
    reads = [event["position"] for event in events if in_shared(event) and event["access"]["reads"]]
    spans = [span for row in part.rows for span in row.reads]
    assert min(spans)[0] <= reads[0] and max(end for _, end in spans) >= reads[-1] and len(whole.rows) == 5


def rectangles(found: BuffersOverTime) -> Any:
    (axes,) = buffers_figure(found).axes
    return axes


@pytest.mark.parametrize(("launch", "regions"), COPIES, ids=[f"{launch.name}{len(regions)}" for launch, regions in COPIES])
def test_bars_are_drawn_where_things_happen(launch: Launch, regions: Any) -> None:
    found = picture(launch, regions=regions)
    axes = rectangles(found)
    assert axes.get_xlim() == (found.first, found.end)
    for row in found.rows:
        name = row.area.name
        assert bars(axes, f"{name} read") == [*map(tuple, row.reads)] and bars(axes, f"{name} stored") == [*map(tuple, row.stores)]
        for bar in row.copies:
            issued, on_its_way, never = (
                [each for each in bars(axes, f"{name} copy {bar.group} {part}") if bar.first <= each[0] < bar.end]
                for part in ("issued", "on its way", "never")
            )
            if not bar.arrived:
                assert never == [(bar.first, bar.end)] and not issued and not on_its_way
                continue
            assert issued[0][0] == bar.first and bar.committed is not None and issued[0][1] == bar.committed + 1 and not never
            assert (on_its_way[-1][1] if on_its_way else issued[-1][1]) == bar.end
    assert bars(axes, "barrier ") == [(bar.first, bar.end) for bar in sorted(found.barriers, key=lambda bar: (bar.first, bar.end))]
    marks = [line for line in axes.lines if line.get_gid() == "waits"]
    assert [x - 0.5 for line in marks for x in line.get_xdata()] == list(found.waits)
    assert {line.get_gid(): line.get_xdata()[0] for line in axes.lines if (line.get_gid() or "").startswith("tile")} == {
        f"tile {tile}": at for tile, at in found.tiles
    }


@pytest.mark.parametrize("launch", LAUNCHES, ids=[launch.name for launch in LAUNCHES])
def test_labels_do_not_overlap(launch: Launch) -> None:
    found = picture(launch)
    figure = buffers_figure(found)
    texts = texts_of(figure)
    assert all(row.area.name in texts for row in found.rows) and found.title in texts
    assert overlapping(figure) == []


def test_declared_variables_have_their_names() -> None:
    assert [(row.area.name, row.area.size_bytes) for row in picture(TILED).rows] == [("a_tile", 4096), ("b_tile", 4096)]
    (row,) = picture(OWN["generic"]).rows
    events = events_of(OWN["generic"])
    assert (row.area.name, row.area.size_bytes, row.copies) == ("s", 128, ())
    # some lanes of a generic store are in shared memory
    stores = [event["position"] for event in events if event["kind"] == "store" and event["access"]["space"] in ("shared", "generic")]
    assert list(row.stores) == [(at, at + 1) for at in stores] and len(stores) == 2
    reads = [event["position"] for event in events if event["kind"] == "load" and event["access"]["space"] == "shared"]
    assert list(row.reads) == [(at, at + 1) for at in reads]


def bar(group: int, first: int, end: int, *, arrived: bool = True, committed: int | None = None) -> CopyBar:
    return CopyBar(group, first, committed if committed is not None else first + 1, end, arrived, (0,))


def test_copies_that_overlap_stand_below_each_other() -> None:
    """And what is never waited for looks different; a fault has its mark."""
    area = Area("buf", ((0, 64),))
    row = AreaRow(area, (bar(0, 0, 100), bar(1, 50, 150), bar(2, 100, 180), bar(3, 160, 200, arrived=False)), ((10, 20),), ((110, 120),))
    found = BuffersOverTime("t", "about", 0, 200, (row,), (99,), (BarrierBar(0, 5, 9, True), BarrierBar(3, 1, 2, False)), ((0, 2),), 190)
    figure = buffers_figure(found)
    (axes,) = figure.axes
    tops = {patch.get_gid(): round(patch.get_y(), 3) for patch in axes.patches}
    assert tops["buf copy 0 issued"] == tops["buf copy 2 issued"] < tops["buf copy 1 issued"] == tops["buf copy 3 never"]
    assert tops["buf copy 1 issued"] < tops["buf stored"] < tops["buf read"] < tops["barrier 0"] < tops["barrier 3"]
    assert {"never waited for", "fault", "barrier 3", "the barrier opens", "about"} <= set(texts_of(figure))
    assert [line.get_xdata()[0] for line in axes.lines if line.get_gid() == "fault"] == [190]
    assert [line.get_xdata()[0] for line in axes.lines if line.get_gid() == "barrier opens"] == [9]
    hatches = {patch.get_gid(): patch.get_hatch() for patch in axes.patches}
    styles = [hatches[f"buf {name}"] for name in ("copy 0 issued", "copy 0 on its way", "copy 3 never", "stored")]
    assert len(set(styles)) == 4  # not by colour alone
    assert overlapping(figure) == []


def test_together() -> None:
    assert together([5, 1, 2, 9, 10, 11], 1) == [2, 5, 11] and together([], 3) == []


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_files(suffix: str) -> None:
    summary, data = traced(FLASH, suffix)
    assert summary.events == len(events_of(FLASH)) and traced(FLASH, suffix)[1] == data
    if suffix == ".png":
        assert data.startswith(b"\x89PNG\r\n") and int.from_bytes(data[16:20], "big") == 2250
    else:
        text = data.decode()
        assert "buffers in shared memory over time" in text and 'id="0x0-0x11ef copy 2 issued"' in text and "dc:date" not in text


def test_nothing_to_draw() -> None:
    with pytest.raises(UsageError, match="kernel name has no shared memory, so there are no buffers to draw"):
        traced(OWN["calls"], ".svg")
    unused = Launch("unused", OWN["calls"].kernel, 1, 64, OWN["calls"].make, 1024)
    with pytest.raises(UsageError, match=r"none of the [\d,]+ chosen warp instructions of kernel name accesses shared memory"):
        traced(unused, ".png")


def test_a_kernel_that_faults() -> None:
    """The picture ends where it does, also if it has nothing else to show."""
    found = picture(FAULTING, regions=(Region("all", 0, 1024),))
    assert found.rows == () and found.fault == found.end and "fault" in texts_of(buffers_figure(found))
    summary, data = traced(FAULTING, ".svg")
    assert summary.failure is not None and b"fault" in data
