"""Where the page stops is where the stepper does, and what cannot be met is refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from fasim.report.trace_select import TraceFilters
from fasim.report.trace_write import stream_trace
from fasim.trace.breaks import NanBreak
from tests.browser.pages import FACTS, page_of
from tests.trace.launches import OWN
from tests.tui.conftest import new_session


def test_stops(flash: tuple[Path, Any], open_page: Any) -> None:
    path, session = flash
    opened, stepper = open_page(path), session.stepper
    opened.stop_at("conflict")
    event = stepper.event(opened.at())
    cost = event.access.wavefronts
    assert cost.conflicts > 0 and "ldmatrix" in opened.text("#event")
    assert f"{cost.actual} wavefronts, {cost.conflicts} conflicts" in opened.text("#banks")
    worst = opened.page.locator("#banks td.collides")
    assert worst.count() == 32 and all(text.endswith("!") for text in worst.all_inner_texts())
    titles = [worst.nth(i).get_attribute("title") for i in range(32)]
    assert any(f"byte {event.access.addresses[8 * 0]}," in title for title in titles)
    first = opened.at()
    opened.page.keyboard.press("c")
    assert opened.at() > first
    opened.page.keyboard.press("C")
    assert opened.at() == first
    for text, test in [
        ("step ROW_MAX", lambda event: event.step == "ROW_MAX"),
        ("mma.sync", lambda event: event.text.startswith("mma.sync")),
        ("barrier", lambda event: event.kind == "bar"),
        ("mem shared 0x2400", lambda event: event.copies is not None and any(start <= 0x2400 < end for start, end in event.copies.arrived)),
        ("reg %r1", lambda event: event.warp == 0 and any(change.operand.name == "%r1" for change in event.registers)),
    ]:
        opened.go(0)
        opened.stop_at(text)
        stepper.go_to(1)  # the search begins after the first event
        stepper.step()
        while not test(stepper.event()):
            stepper.step()
        assert opened.at() == stepper.position - 1, text
    opened.stop_at("conflict 1000")
    assert opened.text("#message") == "conflict 1000: not met after here"


MET = [
    *("line 193", "line 76 10_fa_v21.cu", "line 110", "step MASK", "conflict 4", "nan", "nan any", "hazard", "hazard race"),
    *("reg %f1311", "reg %f1311 lane 3", "reg %r1 = 0x2 lane 2", "reg %r1 = 70 any", "reg %r1 = 40 warp 1", "reg %f1311 = 1.5"),
    *(
        "mem shared 0x2400",
        "mem shared 0x4000",
        "mem shared 0x4000 = 0x3c00",
        "mem o[0,1,2]",
        "mem o[0, 5]",
        "mem o 260",
        "mem o[0,-1,-1] = 7.0",
    ),
    *("read shared 16384", "read k[0,33,2]", "read v 4098", "read o 4"),
]
REFUSED = ["line 3", "line 3 a.cu", "step X", "hazard foo", "reg %f99999", "reg %r1 lane 32", "reg %r1 = 1.5", "mem D 4", "mem o 99999999"]
REFUSED += [
    "mem o[9,9,9]",
    "mem o[0,0,0,0]",
    "mem o[x]",
    "mem shared[1]",
    "mem k",
    "conflict x",
    "nan all",
    "read o 4 = 1",
    "reg %r1 warp 9",
]


def test_stops_are_the_breakpoints_of_the_stepper(flash: tuple[Path, Any], open_page: Any) -> None:
    """Also back; on what has been executed where the stepper stands before or after it."""
    path, session = flash
    opened, stepper = open_page(path), session.stepper
    session.follow, session.warp, met = True, 0, set()
    stepper.go_to(4000)
    registers = stepper.event(3999).registers
    held = [f"reg {each.operand.name} = {int(each.new[3]):#x} lane 3 any" for each in registers]
    stepper.go_to(stepper.end)
    held += [f"mem o[0,5,7] = {stepper.elements.value('o', 2 * (64 * 5 + 7), stepper.state.buffers['o'].reshape(-1).view(np.uint8))}"]
    held += [f"mem shared 0x{at:x} = 0x{int(stepper.state.shared_memory[at : at + 4].view('<u4')[0]):08x}" for at in (0, 0x4000, 0x7FF0)]
    for text in [*MET, *held]:
        for start, back in ((0, False), (5000, False), (9000, True)):
            stepper.go_to(start)
            opened.go(start)
            session.breakpoints.clear()
            session.break_at(text)
            assert session.breakpoints, (text, session.message)
            stepper.go_to(start + (not back))  # the page goes on from the instruction that it shows
            session.move("run", back)
            opened.page.fill("#stop", text)
            opened.page.click("#stop-back" if back else "#stop-next")
            if session.message.startswith("breakpoint:"):
                (made,) = session.breakpoints.values()
                assert opened.at() == stepper.position - (not made.before), (text, start)
                met.add(text)
            else:
                assert opened.at() == start and "not met" in opened.text("#message"), (text, start, opened.at(), session.message)
    assert len(met) > 18 and met > set(held), sorted(set(MET + held) - met)
    session.breakpoints.clear()
    stepper.go_to(0)


def test_a_stop_says_what_the_stepper_says(flash: tuple[Path, Any], open_page: Any) -> None:
    path, session = flash
    opened, stepper = open_page(path), session.stepper
    session.follow = True
    stepper.go_to(4000)
    (name, *_), kept = [each.operand.name for each in stepper.event(3999).registers], 0
    texts = [f"reg {name}", f"reg {name} lane 3 any", "mem o[0,5,7]", "mem o[0,-1,-1]", "mem o 260", "mem o[0,9]", "mem shared 0x7ff0"]
    texts += ["read k[0,33,2]", "read v 4098", "read shared 16384", "mem shared 0x2400"]
    for text in texts:
        session.break_at(text)
        stepper.go_to(1)
        opened.go(0)
        session.move("run")
        opened.stop_at(text)
        (known,) = [session.message.removeprefix(f"breakpoint: {text}; ")]
        said, event = opened.text("#message"), stepper.event()
        assert opened.at() == stepper.position - 1 and opened.page.get_attribute("#message", "class") == "", (text, known)
        if event.copies is not None:  # the page does not know which lane a copy is of
            known = re.sub(r"lanes? [\d,-]+ of ", "", known)
        if "a copy to shared memory" in known:  # nor what it reads
            known = re.sub(r"read \S+ ", "read it ", known)
        assert said == known, text
        lanes = {int(lane) for lane in re.findall(r": lane (\d+) of", known)}
        met = {int(lane) for lane in opened.page.locator("td.met").evaluate_all("(cells) => cells.map((cell) => cell.dataset.lane)")}
        assert lanes <= met, text
        kept += bool(met)
        session.break_at(text)
        opened.page.keyboard.press("n")
        assert opened.text("#message") == "" and opened.page.locator("td.met").count() == 0
    assert kept > 6
    opened.stop_at("mem o[9]")
    assert opened.page.get_attribute("#message", "class") == "bad"
    session.breakpoints.clear()
    stepper.go_to(0)


def test_what_was_there_before_only_where_it_is_known(flash: tuple[Path, Any], tmp_path: Path, open_page: Any) -> None:
    """Other warps may have written it, and the page of one does not know."""
    _, session = flash
    session.stepper.go_to(0)
    path = tmp_path / "warp.html"
    with open(path, "wb") as file:
        stream_trace(session.stepper, file, ".html", TraceFilters(warp=0), FACTS, watched=session.watched, regions=session.regions)
    session.stepper.go_to(0)
    opened = open_page(path)
    said = {}
    for text in ("mem o[0,5,7]", "mem shared 0x4000", "reg %r1 lane 3"):
        opened.go(0)
        opened.stop_at(text)
        said[text] = opened.text("#message")
        if "shared" in text:
            own, before = (opened.page.evaluate(f"fasim.store.position[fasim.page.at - {back}]") for back in (0, 1))
            assert ("before" in said[text]) == (before + 1 == own)
    assert re.fullmatch(r"o\[0, 5, 7\] \(byte 654\): lane \d+ of warp 0 wrote -?[\d.e-]+(; .*)?", said["mem o[0,5,7]"]), said
    assert "wrote" in said["mem shared 0x4000"], said
    assert re.match(r"%r1: lane 3 of warp 0 wrote \S+, (before|its first value)", said["reg %r1 lane 3"]), said


def test_registers_that_lowering_made_are_not_shown(tmp_path: Path, open_page: Any) -> None:
    session = new_session("fa_v21", "--n", "32", "--heads", "1", isa="sass")
    operands = session.stepper.names.operands
    path = tmp_path / "machine.html"
    with open(path, "wb") as file:
        stream_trace(session.stepper, file, ".html", TraceFilters(warp=0), FACTS)
    opened = open_page(path)
    opened.page.evaluate("document.getElementById('all-registers').open = true")
    pcs = opened.page.evaluate("[...fasim.store.pc]")
    made = [i for i, pc in enumerate(pcs) if any(each.name.startswith("~") for each in operands[pc])]
    assert made
    for i in made[:4]:
        opened.go(i)
        names = opened.page.locator("table[data-register]").evaluate_all("(tables) => tables.map((table) => table.dataset.register)")
        names += opened.page.locator("#live option").evaluate_all("(all) => all.map((option) => option.value)")
        assert names and not any(name.startswith("~") for name in names)


def test_the_field_is_replaced_not_appended_to(flash: tuple[Path, Any], open_page: Any) -> None:
    opened = open_page(flash[0])
    for text in ("conflict", "step MASK"):
        opened.page.keyboard.press("x")
        opened.page.keyboard.type(text)
        assert opened.page.input_value("#stop") == text
        opened.page.keyboard.press("Enter")
        assert opened.text("#message").startswith(f"{text}: warp ")
    opened.page.keyboard.press("g")
    opened.page.keyboard.type("40")
    opened.page.keyboard.press("Enter")
    assert opened.at() == 40 and opened.text("#message") == ""


def test_a_stop_at_a_nan_is_that_of_the_stepper(tmp_path: Path, open_page: Any) -> None:
    opened, stepper = open_page(page_of(OWN["nans"], tmp_path)), OWN["nans"].stepper()
    for text, new in (("nan", True), ("nan any", False)):
        stepper.go_to(0)
        opened.go(0)
        assert stepper.run_to([NanBreak(new=new)])
        opened.stop_at(text)
        assert opened.at() == stepper.position - 1
    opened.stop_at("line 3 source.cu")
    assert "no instruction comes from it; the nearest line" in opened.text("#message")


def test_stops_that_cannot_be_met_are_refused(flash: tuple[Path, Any], open_page: Any) -> None:
    path, session = flash
    opened = open_page(path)
    opened.go(10)
    for text in REFUSED:
        session.break_at(text)
        assert not session.breakpoints, text
        opened.stop_at(text)
        said, known = opened.text("#message"), session.message.replace(session.title.split()[0], "fa_v21")
        if "is no breakpoint" in known:
            assert said.startswith(f"{text}: a stop is line N [FILE]"), said
        else:
            assert said == known.replace(f" of kernel {session.stepper.kernel.name}", ""), text
        assert opened.at() == 10
    opened.stop_at("xyzzy")
    assert opened.text("#message").startswith("'xyzzy' is neither in the PTX nor in the source lines of instructions")
    opened.stop_at("/step ROW_MAX")
    assert "is neither in the PTX" in opened.text("#message")


def test_a_chosen_warp_and_what_others_write(flash: tuple[Path, Any], open_page: Any) -> None:
    path, session = flash
    opened, stepper = open_page(path), session.stepper
    opened.page.select_option("#warp", "1")
    opened.stop_at("step MASK")
    assert opened.page.evaluate("fasim.store.warp[fasim.page.at]") == 1
    opened.page.select_option("#warp", "0")
    opened.go(0)
    opened.stop_at("mem shared 0x7ff0")  # of Q: the last warp stores it
    event = stepper.event(opened.at())
    assert event.warp == 3 and any(start <= 0x7FF0 < end for start, end in event.written_ranges("shared"))
    assert opened.text("#message").endswith("; warp 3 did it; the chosen one is 0")
    opened.page.keyboard.press("n")
    assert opened.page.evaluate("fasim.store.warp[fasim.page.at]") == 0
