"""A JSON trace holds what was executed: outputs and costs can be worked out from it alone."""

from __future__ import annotations

import io
import json
import re
import tracemalloc
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from fasim.report.trace_select import TraceFilters
from fasim.report.trace_write import stream_trace
from tests.report.traces import FACTS, json_trace, traced
from tests.trace.launches import FLASH, OWN, Launch, of_cases

ALWAYS = ["position", "warp", "tile", "step", "pc", "kind", "text", "file", "line", "path", "lanes", "active", "executed"]
SOMETIMES = {"inserted", "registers", "access", "copy", "barrier", "nan_lanes", "new_nan_lanes", "hazards", "printed"}
HEADER = [
    "schema",
    "kernel",
    "grid",
    "block",
    "cta",
    "warps",
    "buffers",
    "regions",
    "rows",
    "filters",
    "warp_instructions",
    "event_count",
    "events",
    "fault",
    "hazards",
]


@pytest.fixture(scope="module")
def flash() -> Any:
    return json_trace(FLASH)


def lanes(mask: str) -> list[int]:
    assert re.fullmatch("0x[0-9a-f]{8}", mask)
    return [lane for lane in range(32) if int(mask, 16) >> lane & 1]


def test_the_shape_of_the_file(flash: Any) -> None:
    assert list(flash) == HEADER and flash["schema"] == "fasim.trace/1"
    assert flash["event_count"] == flash["warp_instructions"] == len(flash["events"])
    assert flash["filters"] == {"warp": None, "tile": None, "steps": []} and flash["fault"] is None
    assert [event["position"] for event in flash["events"]] == list(range(len(flash["events"])))
    for event in flash["events"]:
        assert list(event)[: len(ALWAYS)] == ALWAYS
        assert set(event) - set(ALWAYS) <= SOMETIMES
        assert event["path"][-1:] == ([[event["file"], event["line"]]] if event["line"] else [])
    raw = traced(OWN["nans"], ".json")[1].decode().splitlines()
    first = raw.index('"events": [') + 1
    assert all(json.loads(line.rstrip(","))["text"] for line in raw[first : raw.index("],")])


def test_outputs_follow_from_registers_and_stores(flash: Any) -> None:
    """Registers are written only where they change, and stores say where to."""
    args = FLASH.make()
    FLASH.launch(args)
    output = next(buffer for buffer in flash["buffers"] if buffer["name"] == "o")
    found = np.zeros(output["size_bytes"] // 4, np.uint32)
    registers: dict[tuple[int, str], list[int]] = {}
    stores, stored = 0, found.copy()
    for event in flash["events"]:
        if event["kind"] == "store" and event["access"]["space"] == "global":
            assert event["access"]["buffers"] == ["o"] and event["access"]["bytes_per_lane"] == 4
            (name,) = re.findall(r"(%r\d+);", event["text"])
            for lane in lanes(event["access"]["lanes"]):
                found[(event["access"]["addresses"][lane] - output["address"]) // 4] = registers[event["warp"], name][lane]
            stores += 1
            for address, data in event["access"]["stored"]:
                words = np.frombuffer(bytes.fromhex(data), np.uint32)
                first = (address - output["address"]) // 4
                stored[first : first + len(words)] = words
        for register in event.get("registers", ()):
            if register["type"] == "pred":
                continue
            values = [int(word, 16) for word in register["values"].split()]
            assert len(values) == 32 and lanes(register["changed"])
            held = registers.setdefault((event["warp"], register["name"]), [0] * 32)
            for lane in lanes(register["changed"]):
                held[lane] = values[lane]
    assert stores > 100
    assert found.tobytes() == stored.tobytes() == args[3].tobytes()
    assert (output["dtype"], output["shape"], output["constant"]) == ("f16", list(args[3].shape), False)


COSTS = [FLASH, of_cases("bc_ldmatrix_layouts"), of_cases("hz_cp_async_pipeline"), of_cases("out_atomics_shared")]


@pytest.mark.parametrize("launch", COSTS, ids=[launch.name for launch in COSTS])
def test_costs_add_up_to_those_of_a_launch(launch: Launch) -> None:
    trace = json_trace(launch, check=False)
    result = launch.launch(launch.make())
    assert result.grid == (1, 1, 1)
    assert sum(event["executed"] and "inserted" not in event for event in trace["events"]) == result.warp_instructions
    expected = {
        (access.text, access.line, access.source.ptx_line): (access.wavefronts, access.conflicts, access.source_ideal)
        for access in result.shared_accesses
        if access.op
    }
    by_text: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for event in trace["events"]:
        access = event.get("access", {})
        if "wavefronts" in access:
            by_text[event["text"], event["line"]].update({name: access[name] for name in ("wavefronts", "conflicts", "wavefronts_ideal")})
            assert bool(access["collisions"]) >= bool(access["conflicts"])
    wanted: dict[tuple[str, int], Counter[str]] = defaultdict(Counter)
    for (text, line, _), (wavefronts, conflicts, ideal) in expected.items():
        wanted[text, line].update({"wavefronts": wavefronts, "conflicts": conflicts, "wavefronts_ideal": ideal})
    assert by_text == wanted and wanted


def test_copies_and_barriers(flash: Any) -> None:
    of_warp = [event for event in flash["events"] if event["warp"] == 2]
    assert [event["copy"]["group"] for event in of_warp if event["kind"] == "cp_commit"] == [0, 1, 2, 3]
    assert [event["copy"]["pending"] for event in of_warp if event["kind"] == "cp_wait"] == [1, 1, 1, 0]
    assert {event["copy"]["groups"][0] for event in of_warp if event["kind"] == "cp_async"} == {0, 1, 2, 3}
    landed = [sum(end - start for start, end in event["copy"]["arrived"]) for event in of_warp if event["kind"] == "cp_wait"]
    assert landed == [2 * 32 * 128 // 4] * 4  # K and V, 32 rows of 128 bytes, a quarter by each warp
    barriers = [event for event in flash["events"] if event["kind"] == "bar"]
    opened = [event["barrier"]["opened"] for event in barriers]
    assert len(opened) == 4 * 9 and sum(opened) == 9
    assert all(event["barrier"] | {"opened": True} == {"operation": "sync", "number": 0, "count": 0, "opened": True} for event in barriers)


@pytest.mark.parametrize(
    ("name", "type_", "text"),
    [("overrun", "MemoryAccessError", "st.global"), ("asserts", "KernelTrap", "trap;"), ("deadlock", "DeadlockError", None)],
)
def test_a_fault_is_in_the_trace(name: str, type_: str, text: str | None) -> None:
    summary, raw = traced(OWN[name], ".json")
    trace = json.loads(raw)
    fault = trace["fault"]
    assert type(summary.failure).__name__ == fault["type"] == type_ and fault["message"] == str(summary.failure)
    assert fault["position"] == trace["event_count"] == len(trace["events"]) == trace["warp_instructions"]
    assert (fault["text"] or "").startswith(text or "") and (fault["text"] is None) == (text is None)
    assert "".join(event.get("printed", "") for event in trace["events"]) == summary.output == ("soon\n" if name == "asserts" else "")


def test_a_fault_that_the_filters_leave_nothing_before() -> None:
    trace = json_trace(of_cases("hz_cp_async_pipeline"), TraceFilters(warp=0))
    assert trace["event_count"] > 0
    nothing = json_trace(OWN["overrun"], TraceFilters(warp=1), max_instructions=2)
    assert nothing["events"] == [] and nothing["fault"]["type"] == "InstructionLimit" and nothing["fault"]["warp"] == 0


def test_hazards_and_nans() -> None:
    launch = of_cases("hz_cp_async_pipeline")
    trace = json_trace(launch)
    found = [hazard for event in trace["events"] for hazard in event.get("hazards", ())]
    expected = launch.launch(launch.make(), check="all").hazards
    assert {(hazard["kind"], hazard["first"]["line"]) for hazard in found} == {(each.kind, each.first_line) for each in expected}
    assert [(each["text"], each["words"], each["lanes"]) for each in trace["hazards"]] == [(h.text, h.words, h.lanes) for h in expected]
    assert found and all(hazard["first"]["file"] and hazard["text"] for hazard in found)
    nans = [event for event in json_trace(OWN["nans"])["events"] if "nan_lanes" in event]
    assert nans and all(event["nan_lanes"] == "0x00000001" for event in nans)
    assert ["new_nan_lanes" in event for event in nans] == [True] + [False] * (len(nans) - 1)


def test_memory_does_not_grow_with_the_trace() -> None:
    class Nowhere(io.RawIOBase):
        size = 0

        def write(self, data: Any) -> int:
            self.size += len(data)
            return len(data)

        def tell(self) -> int:
            return self.size

    stepper = OWN["wide"].stepper(check=False, interval=1 << 62)
    file = Nowhere()
    stepper.step()
    stepper.event()
    tracemalloc.start()
    try:
        summary = stream_trace(stepper, file, ".json", TraceFilters(), FACTS)  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert summary.events > 8000 and file.size > 5_000_000
    assert peak < 1_500_000 + 60 * summary.events


def test_results_of_barriers_are_told_for_all_warps() -> None:
    events = json_trace(OWN["reduced"])["events"]
    (opened,) = [event for event in events if event.get("barrier", {}).get("opened")]
    results = opened["barrier"]["results"]
    assert {result["warp"] for result in results} | {opened["warp"]} == {0, 1, 2} and len(results) == 2
    assert all(result["values"] == " ".join(["00000028"] * 32) and result["changed"] == "0xffffffff" for result in results)


def test_bytes_that_are_not_utf8() -> None:
    file = io.BytesIO()
    stream_trace(OWN["nans"].stepper(), file, ".json", TraceFilters(), FACTS | {"source": "caf\udce9.cu"})
    assert json.loads(file.getvalue().decode())["source"] == "caf\udce9.cu"
