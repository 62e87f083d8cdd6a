"""The page of a trace holds what a JSON trace does, and from what it says changed follows what the CTA holds at each event."""

from __future__ import annotations

import base64
import gzip
import json
import re
from typing import Any

import numpy as np
import pytest

from fasim.report.trace_html import SCRIPTS
from fasim.report.trace_page import _OF_CODE
from fasim.report.trace_select import TraceFilters
from fasim.trace.stepper import Stepper
from tests.report.traces import json_trace, traced
from tests.trace.launches import FLASH, OWN, Launch, of_cases

LAUNCHES = [FLASH, OWN["calls"], OWN["nans"], OWN["many_copies"], of_cases("bc_ldmatrix_layouts"), of_cases("out_atomics_shared")]


def page_lines(raw: bytes) -> list[Any]:
    """The lines that a page unpacks: facts, events, the end."""
    (packed,) = re.findall(r'<script id="trace" type="text/plain">([^<]*)</script>', raw.decode())
    return [json.loads(line) for line in gzip.decompress(base64.b64decode(packed)).decode().splitlines()]


def test_one_file_with_nothing_from_outside() -> None:
    text = traced(OWN["prints"], ".html")[1].decode()
    without = re.sub(r'<script id="trace".*?</script>', "", text, flags=re.S)
    assert not re.search(r"https?:|@import|url\(|\bsrc=|import\s*\(", without)
    assert text.count("<script") == text.count("</script>") == 2 and text.rstrip().endswith("</html>")
    assert all(len(re.findall(rf"^class {name}\b", text, re.M)) == 1 for name in ("Store", "Timeline", "Page")) and len(SCRIPTS) == 7


@pytest.mark.parametrize("launch", LAUNCHES, ids=[launch.name for launch in LAUNCHES])
def test_events_are_those_of_json(launch: Launch) -> None:
    facts, *events, end = page_lines(traced(launch, ".html")[1])
    trace = json_trace(launch)
    assert len(events) == facts["event_count"] == trace["event_count"] > 0
    assert (end["fault"], end["hazards"]) == (trace["fault"], trace["hazards"])
    for event, known in zip(events, trace["events"], strict=True):
        code = facts["code"][event["pc"]]
        assert code["text"] == " ".join(known["text"].split()) and code["step"] == known["step"]
        assert [[facts["files"][file]["path"], line] for file, line in code["path"]] == known["path"]
        rest = {name: value for name, value in known.items() if name not in _OF_CODE}
        if "access" in rest:
            rest["access"] = {name: event["access"].get(name) for name in event["access"]} | rest["access"]
        assert {name: event.get(name) for name in rest} == rest
        masks = {name: mask for name, _, _, _, mask in event.get("changed", ()) if int(mask, 16)}
        assert masks == {register["name"]: register["changed"] for register in known.get("registers", ())}


class Replay:
    """What the CTA holds, from the page's words alone."""

    def __init__(self, facts: Any) -> None:
        self.registers = np.zeros(facts["warps"] * facts["warp_words"], "<u4")
        self.shared = np.full(-(-facts["shared_bytes"] // 4), 0xFFFFFFFF, "<u4")
        self.splits: dict[str, Any] = {str(warp): [] for warp in range(facts["warps"])}
        self.groups: dict[str, Any] = {str(warp): [] for warp in range(facts["warps"])}
        self.barriers: list[Any] = []

    def apply(self, event: Any) -> None:
        for words, name in ((self.registers, "set"), (self.shared, "shared")):
            runs = event.get(name, [])
            for first, text in zip(runs[::2], runs[1::2], strict=True):
                values = np.frombuffer(bytes.fromhex(text), ">u4")
                words[first : first + len(values)] = values
        self.splits |= event.get("splits", {})
        self.groups |= event.get("groups", {})
        self.barriers = event.get("barriers", self.barriers)

    def check(self, stepper: Stepper) -> None:
        state = stepper.state
        assert self.registers.tobytes() == stepper.walker.state.registers.tobytes()
        assert self.shared.tobytes()[: len(state.shared_memory)] == state.shared_memory.tobytes()
        for warp in range(state.warps):
            assert [(split[0], int(split[1], 16), split[2]) for split in self.splits[str(warp)]] == [
                (split.pc, split.lanes, split.state) for split in state.splits(warp)
            ]
            assert [(group[0], group[2]) for group in self.groups[str(warp)]] == [
                (group.number, group.size_bytes) for group in state.copy_groups(warp)
            ]
        assert [barrier[:2] for barrier in self.barriers] == [[barrier.number, barrier.arrived] for barrier in state.barriers()]


FILTERED = [
    *((launch, TraceFilters()) for launch in LAUNCHES),
    (FLASH, TraceFilters(warp=1)),
    (FLASH, TraceFilters(tile=2)),
    (FLASH, TraceFilters(warp=3, steps=("S_QK",))),
]


@pytest.mark.parametrize(("launch", "filters"), FILTERED, ids=[f"{launch.name}-{filters}" for launch, filters in FILTERED])
def test_what_the_cta_holds_follows_from_the_changes(launch: Launch, filters: TraceFilters) -> None:
    facts, *events, _ = page_lines(traced(launch, ".html", filters)[1])
    replay, stepper = Replay(facts), launch.stepper()
    look = set(np.linspace(0, len(events) - 1, 150).astype(int).tolist())
    for number, event in enumerate(events):
        replay.apply(event)
        if number in look:
            stepper.go_to(event["position"] + 1)
            replay.check(stepper)


def test_fragments_and_groups_of_lanes() -> None:
    facts, *events, _ = page_lines(traced(FLASH, ".html")[1])
    seen = set()
    for event in events:
        code = facts["code"][event["pc"]]
        names = [operand[0] for operand in code["operands"]]
        for operand, number, registers in code["fragments"]:
            layout = facts["layouts"][number]
            assert len({(lane, register, low) for _, _, _, lane, register, low in layout["cells"]}) == len(layout["cells"])
            assert max(cell[4] for cell in layout["cells"]) == len(registers) - 1 and set(registers) <= set(names)
            seen.add((code["text"].split()[0].split(".")[0], operand))
        if "groups" in event.get("access", {}):
            access = event["access"]
            if not code["text"].startswith("cp.async"):  # what copies cost depends on where they read, too
                assert sum(group["wavefronts"] for group in access["groups"]) == access["wavefronts"]
            assert bool(access["collisions"]) == any(group["collides"] for group in access["groups"])
    assert seen >= {("mma", "A"), ("mma", "B"), ("mma", "C"), ("mma", "D"), ("ldmatrix", "R")}
