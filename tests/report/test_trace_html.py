"""The page of a trace holds what a JSON trace does, and from what it says changed follows what the CTA holds at each event."""

from __future__ import annotations

import base64
import gzip
import json
import re
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from fasim.errors import ExecutionError
from fasim.report.trace_html import SCRIPTS
from fasim.report.trace_page import OF_CODE
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
    parts = [path for path in (files("fasim.report") / "html").iterdir() if path.name.endswith((".js", ".css"))]
    assert all(text.count(path.read_text(encoding="utf-8")) == 1 for path in parts) and len(parts) == len(SCRIPTS) + 1


@pytest.mark.parametrize("launch", LAUNCHES, ids=[launch.name for launch in LAUNCHES])
def test_events_are_those_of_json(launch: Launch) -> None:
    facts, *events, end = page_lines(traced(launch, ".html")[1])
    trace = json_trace(launch)
    assert len(events) == facts["event_count"] == trace["event_count"] > 0
    assert (end["fault"], end["hazards"]) == (trace["fault"], trace["hazards"])
    for event, known in zip(events, trace["events"], strict=True):
        code = facts["code"][event["pc"]]
        # a jump that is not in the PTX says what it does; JSON has the text of the instruction before it
        assert code["text"].startswith("(inserted ") if known.get("inserted") else code["text"] == " ".join(known["text"].split())
        assert code["step"] == known["step"]
        assert [[facts["files"][file]["path"], line] for file, line in code["path"]] == known["path"]
        rest = {name: value for name, value in known.items() if name not in OF_CODE}
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


@pytest.mark.parametrize("name", ["overrun", "asserts", "deadlock"])
def test_the_instruction_that_fails_is_the_last_event(name: str) -> None:
    facts, *events, end = page_lines(traced(OWN[name], ".html")[1])
    replay, stepper = Replay(facts), OWN[name].stepper()
    for event in [*events, end["event"]]:
        replay.apply(event)
    with pytest.raises(ExecutionError):
        stepper.go_to_end()
    replay.check(stepper)
    fault, event = end["fault"], end["event"]
    assert event["failed"] and all(event[key] == fault[key] for key in ("position", "warp", "pc"))
    if fault["pc"] is not None:
        active = int(event["active"], 16)
        assert active and active & ~int(event["lanes"], 16) == 0 and event["lanes"] == fault["lanes"]
        assert not fault["where"]["lanes"] or {lane for lane in range(32) if active >> lane & 1} >= set(fault["where"]["lanes"])
    facts, *events, end = page_lines(traced(OWN["prints"], ".html")[1])
    assert end["event"] is None


def test_fragments_and_groups_of_lanes() -> None:
    facts, *events, _ = page_lines(traced(FLASH, ".html")[1])
    seen = set()
    for event in events:
        code = facts["code"][event["pc"]]
        names = [operand[0] for operand in code["operands"]]
        for operand, number, registers, _ in code["fragments"]:
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


def test_fragments_of_registers_that_a_block_has_for_itself() -> None:
    """Their names in the text are not those that the CTA's registers have; and an address may stand where the result will."""
    facts, *_ = page_lines(traced(OWN["scoped"], ".html")[1])
    found = [code for code in facts["code"] if code["fragments"]]
    assert [code["text"].split()[0].split(".")[0] for code in found] == ["ldmatrix", "mma", "ldmatrix"]
    for code in found:
        for operand, _, registers, result in code["fragments"]:
            assert result == (operand in "DR")
            assert set(registers) <= {name for name, _, _, _, reads, writes in code["operands"] if (writes if result else reads)}


def test_where_a_divided_warp_goes_on() -> None:
    launch = OWN["turns"]
    stepper, divided = launch.stepper(), 0
    _, *events, _ = page_lines(traced(launch, ".html", max_instructions=600)[1])
    for event in events:
        stepper.go_to(event["position"] + 1)
        following = stepper.state.next
        if "next" in event:
            assert following is not None and event["next"] == [following.warp, following.pc]
            divided += 1
        elif following is not None:
            assert len(stepper.state.splits(following.warp)) == 1
    assert divided > 50
