"""Where the page stops is where the stepper does, and what cannot be met is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fasim.trace.breaks import NanBreak
from tests.browser.pages import page_of
from tests.trace.launches import OWN


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
    assert opened.text("#message") == "warp 3 did it; the chosen one is 0"
    opened.page.keyboard.press("n")
    assert opened.page.evaluate("fasim.store.warp[fasim.page.at]") == 0
