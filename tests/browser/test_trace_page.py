"""The page of a trace in a browser: what it shows is what the stepper holds, and the slider and the keys move it."""

from __future__ import annotations

import base64
import io
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fasim.report.matrices import held_fragments
from fasim.report.trace_select import TraceFilters
from fasim.report.trace_write import stream_trace
from fasim.tui.matrices import rows
from fasim.tui.numbers import FORMATS, element_text, lane_texts, texts_of
from tests.browser.conftest import Opened
from tests.browser.pages import FACTS, page_of
from tests.report.traces import json_trace, traced
from tests.trace.launches import FLASH, OWN, of_cases

WORDS = """(words) => {
    const bytes = new Uint8Array(words.buffer);
    let text = "";
    for (const byte of bytes) text += String.fromCharCode(byte);
    return btoa(text);
}"""


def words(opened: Opened, name: str) -> bytes:
    """Registers or shared memory of the CTA at the event that is shown."""
    return base64.b64decode(opened.page.evaluate(f"({WORDS})(fasim.store.state.{name})"))


def test_it_opens_without_network_error_or_request(flash: tuple[Path, Any], open_page: Any) -> None:
    opened = open_page(flash[0])
    assert opened.page.title() == opened.text("h1") == "fa_v21, CTA 0,0,0"
    for key in ["t", "s", "l", "b", "n", "o", "f", "w", "?", "Escape", "End", "Home"]:
        opened.page.keyboard.press(key)
    assert opened.requests == [flash[0].as_uri()] and opened.messages == []
    assert not opened.page.is_visible("#fault") and not opened.page.is_visible("#hazards-pane")


def test_a_browser_cannot_load_anything_else(flash: tuple[Path, Any], open_page: Any) -> None:
    """The test above would see a request: this one makes some, and the page's own policy refuses them."""
    opened = open_page(flash[0])
    opened.page.evaluate("() => { const image = new Image(); image.src = 'http://127.0.0.1:9/a.png'; document.body.append(image); }")
    opened.page.wait_for_timeout(300)
    assert any("violates" in message for message in opened.messages)


def test_the_slider_moves_the_views(flash: tuple[Path, Any], open_page: Any) -> None:
    path, session = flash
    opened = open_page(path)
    page = opened.page
    assert opened.at() == 0 and page.get_attribute("#slider", "max") == str(session.stepper.end - 1)
    box = page.locator("#slider").bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    half = opened.at()
    assert abs(half - session.stepper.end / 2) < session.stepper.end / 50
    assert f"executed: warp instruction {half} of {session.stepper.end} (from 0)" in opened.text("#where")
    assert page.input_value("#index") == str(half)
    page.keyboard.press("ArrowRight")  # the slider has the focus
    assert opened.at() == half + 1
    before = opened.text("#event")
    page.keyboard.press("PageDown")
    assert opened.at() != half + 1 and opened.text("#event") != before
    strip = page.locator("#timeline").bounding_box()
    page.mouse.click(strip["x"] + strip["width"] / 4, strip["y"] + 20)
    assert abs(opened.at() - session.stepper.end / 4) < session.stepper.end / 50
    assert opened.messages == []


def test_forward_and_back_it_holds_what_the_stepper_holds(flash: tuple[Path, Any], open_page: Any) -> None:
    path, session = flash
    opened, stepper, chance = open_page(path), session.stepper, random.Random(5)
    places = [*(chance.randrange(stepper.end) for _ in range(25)), 0, 1, 0, stepper.end - 1, stepper.end - 2]
    for position in places:
        opened.go(position)
        stepper.go_to(position + 1)
        assert words(opened, "registers") == stepper.walker.state.registers.tobytes()
        assert words(opened, "shared")[: len(stepper.state.shared_memory)] == stepper.state.shared_memory.tobytes()
        event = stepper.event()
        live = {register.name for register in stepper.state.registers(event.warp)}
        assert set(opened.page.evaluate(f"fasim.store.live({event.warp}).map(([name]) => name)")) == live
        for change in event.registers:
            if not event.executed or change.operand.name.startswith("~"):
                continue
            shown = opened.page.locator(f'table[data-register="{change.operand.name}"]').first
            texts = texts_of(change.new, change.operand.seen_as, "value", stepper.elements)
            assert shown.locator("td").all_inner_texts() == texts
            assert shown.locator("td.new").count() == int(change.changed.sum())


def test_moves_are_those_of_the_stepper(flash: tuple[Path, Any], open_page: Any) -> None:
    """The page stands on what has been executed, the stepper before what comes next: one further."""
    path, session = flash
    opened, stepper = open_page(path), session.stepper
    moves = {"l": stepper.next_line, "s": stepper.next_step, "t": stepper.next_tile, "b": stepper.next_barrier}
    backs = {"L": stepper.previous_line, "S": stepper.previous_step, "T": stepper.previous_tile, "B": stepper.previous_barrier}
    chance = random.Random(2)
    for key, move in {**moves, **backs}.items():
        at = chance.randrange(2000, 8000)
        opened.go(at)
        stepper.go_to(at)
        for _ in range(3):
            assert move(None)
            opened.page.keyboard.press(key)
            assert opened.at() == stepper.position, key
    opened.go(4000)
    opened.page.select_option("#warp", "2")
    at = opened.at()
    assert at <= 4000 and opened.page.evaluate("fasim.store.warp[fasim.page.at]") == 2
    stepper.go_to(at)
    for _ in range(4):
        opened.page.evaluate("fasim.page.move('step', 1)")
        assert stepper.next_step(2) and opened.at() == stepper.position
    opened.page.keyboard.press("n")
    assert opened.page.evaluate("fasim.store.warp[fasim.page.at]") == 2


def test_fragments_rows_and_pipeline(flash: tuple[Path, Any], open_page: Any) -> None:
    path, session = flash
    opened, stepper = open_page(path), session.stepper
    opened.page.evaluate("fasim.page.go(4500)")
    opened.stop_at("mma.sync")
    at = opened.at()
    stepper.go_to(at)
    before = stepper.event(at)
    state = {operand.name: stepper.state.row(before.warp, operand.bank, operand.row) for operand in stepper.names.operands[before.pc]}
    changed = {change.operand.name: change.new for change in before.registers}
    for held in held_fragments(before.source):
        opened.page.locator("#operands button", has_text=held.operand).click()
        shown = opened.page.locator("#fragment tr").all()[1:]
        table = [row.locator("td").all_inner_texts() for row in shown]
        values = [changed[name] if held.operand == "D" else state[name] for name in held.registers]
        for cell in held.fragment.cells:
            bits = int(values[cell.register][cell.lane]) >> cell.low_bit & ((1 << held.fragment.element_bits) - 1)
            assert table[cell.row][cell.column] == element_text(bits, held.fragment.type)
    opened.go(6000)
    stepper.go_to(6001)
    session.warp, session.follow = stepper.event().warp, False
    known = [line.split() for line in str(rows(session)).splitlines()[1:]]
    by_row = {numbers[0]: numbers[1:] for line in known for numbers in (line[:4], line[4:])}
    for row in opened.page.locator("#rows tr").all()[1:]:
        assert row.locator("td").all_inner_texts() == by_row[row.locator("th").inner_text()]
    opened.go(0)
    opened.stop_at("cp.async.commit_group")
    opened.page.keyboard.press("n")
    assert "group 0 on its way" in opened.text("#pipeline") and "K[0]" in opened.text("#pipeline")
    assert "being filled: warp 0 group 0: 1024 B" in opened.text("#pipeline")
    opened.stop_at("cp.async.wait_group")
    assert "arrived" in opened.text("#pipeline") and "waited until 1 groups are pending" in opened.text("#event")


def test_registers_of_a_block_have_fragments_and_can_be_stopped_at(tmp_path: Path, open_page: Any) -> None:
    launch = OWN["scoped"]
    opened, stepper = open_page(page_of(launch, tmp_path)), launch.stepper()
    for text in ("ldmatrix.sync.aligned.m8n8.x4", "mma.sync", "ldmatrix.sync.aligned.m8n8.x1"):
        opened.stop_at(text)
        event = stepper.event(opened.at())
        assert event is not None and event.text.startswith(text)
        changed = {change.operand.name: change.new for change in event.registers}
        for held in held_fragments(event.source, stepper.names.operands[event.pc]):
            opened.page.locator("#operands button", has_text=held.operand).click()
            rows_shown = [row.locator("td").all_inner_texts() for row in opened.page.locator("#fragment tr").all()]
            shown = [row for row in rows_shown if row]  # without those that number the columns
            assert not any("?" in row for row in shown)
            for cell in held.fragment.cells if held.result else ():
                bits = int(changed[held.registers[cell.register]][cell.lane]) >> cell.low_bit & ((1 << held.fragment.element_bits) - 1)
                assert shown[cell.matrix * held.fragment.rows + cell.row][cell.column] == element_text(bits, held.fragment.type)
    opened.go(0)
    opened.stop_at("reg narrow")
    event = stepper.event(opened.at())
    assert event is not None and event.text.startswith("cvt.s16")
    opened.page.keyboard.press("c")
    assert "-31" in opened.text("#registers")  # neg.s16
    assert opened.messages == []


def test_registers_where_a_warp_is_divided(tmp_path: Path, open_page: Any) -> None:
    path, stepper = tmp_path / "page.html", OWN["turns"].stepper()
    path.write_bytes(traced(OWN["turns"], ".html", max_instructions=1000)[1])
    opened = open_page(path)
    for position in random.Random(7).sample(range(1000), 40):
        opened.go(position)
        stepper.go_to(position + 1)
        for warp in range(stepper.state.warps):
            live = {register.name for register in stepper.state.registers(warp)}
            assert set(opened.page.evaluate(f"fasim.store.live({warp}).map(([name]) => name)")) == live


PATTERNS = [0, 1, 0x80000000, 0x3F800000, 0x3F880000, 0x7F800000, 0xFF800000, 0x7FC00000, 0x3C003C40, 0x7C00FC00, 0x7E000001, 0x00018001]
TIES = (1.0625, 1.0635, 9999.5, 99995.0, 1e-5, 0.0001, 123456.0, -0.03125, 125301.0, 16777215.0, -16777216.0, 16777218.0, 125301.5)
PATTERNS += [struct.unpack("<I", struct.pack("<f", value))[0] for value in TIES]


def test_numbers_are_written_as_in_the_terminal(flash: tuple[Path, Any], open_page: Any) -> None:
    opened = open_page(flash[0])
    values = np.array([*PATTERNS, *np.random.default_rng(3).integers(0, 1 << 32, 400)], np.uint32)
    values = values[: len(values) // 32 * 32].reshape(-1, 32)
    for form in FORMATS:
        for type_ in ("f32", "f16x2", "bf16x2", "f16", "bf16", "b32", "u32", "s32", "s16", "b16"):
            for row in values:
                made = opened.page.evaluate(f"(row) => row.map((value) => fasim.laneText(value, '{type_}', '{form}'))", row.tolist())
                assert made == lane_texts(row, type_, form), (form, type_)
    pairs = np.random.default_rng(4).integers(0, 1 << 63, 64, np.uint64).reshape(-1, 32)
    pairs[0, :5] = 0, *(np.float64(value).view(np.uint64) for value in (1.0625, -125301, 16777215.5)), 1 << 63
    for form in ("value", "hex", "signed"):
        for type_ in ("f64", "b64", "u64", "s64"):
            for row in pairs:
                lanes = [[int(value) & 0xFFFFFFFF, int(value) >> 32] for value in row]
                made = opened.page.evaluate(f"(row) => row.map((value) => fasim.laneText(value, '{type_}', '{form}'))", lanes)
                assert made == lane_texts(row, type_, form), (form, type_)


@pytest.mark.parametrize("name", ["overrun", "asserts", "deadlock"])
def test_a_fault_is_told(name: str, tmp_path: Path, open_page: Any) -> None:
    summary, raw = traced(OWN[name], ".html")
    path = tmp_path / "fault.html"
    path.write_bytes(raw)
    opened = open_page(path)
    assert opened.page.is_visible("#fault") and opened.page.text_content("#fault") == str(summary.failure)
    opened.page.keyboard.press("End")
    fault = json_trace(OWN[name])["fault"]
    assert opened.text("#where").startswith(f"FAILED: warp instruction {fault['position']} of {fault['position']}")
    assert f"{fault['type']}: {fault['message']}" in opened.page.text_content("#event")
    marked = opened.page.locator("#source .failed i").all_inner_texts()
    assert marked == [str(fault["where"]["line"])]
    if fault["pc"] is None:
        assert opened.page.locator("#ptx .failed").count() == 2  # both warps wait, each for another barrier
    else:
        assert opened.page.locator("#ptx .failed i").inner_text() == str(fault["pc"])
        stepper = OWN[name].stepper()
        stepper.go_to(fault["position"])
        for operand in stepper.names.operands[fault["pc"]]:
            shown = opened.page.locator(f'table[data-register="{operand.name}"] td')
            values = stepper.state.row(fault["warp"], operand.bank, operand.row)
            assert shown.all_inner_texts() == texts_of(values, operand.seen_as, "value", stepper.elements)
            active = int(opened.page.evaluate("fasim.store.event(fasim.page.at).active"), 16)
            assert opened.page.locator(f'table[data-register="{operand.name}"] td.off').count() == 32 - active.bit_count()
    opened.page.select_option("#warp", "0")
    opened.page.keyboard.press("Home")
    opened.page.keyboard.press("End")
    assert opened.text("#where").startswith("FAILED")
    assert opened.messages == []


def test_hazards_lead_to_their_events(tmp_path: Path, open_page: Any) -> None:
    launch = OWN["many_races"]
    opened, stepper = open_page(page_of(launch, tmp_path)), launch.stepper()
    opened.page.locator("#hazards button").first.click()
    assert stepper.event(opened.at()).hazards and "warning: RAW" in opened.text("#event")
    opened.page.keyboard.press("Home")
    for text, found in (("hazard", True), ("hazard race", True), ("hazard RAW", True), ("hazard sync", False)):
        opened.go(0)
        opened.stop_at(text)
        assert bool(stepper.event(opened.at()).hazards) == found, text


@pytest.mark.parametrize("name", sorted(OWN))
def test_every_event_of_every_kernel_can_be_shown(name: str, tmp_path: Path, open_page: Any) -> None:
    """Kernels with calls, several warps in turns, printf, malloc: no view fails anywhere."""
    path = tmp_path / "page.html"
    path.write_bytes(traced(OWN[name], ".html", max_instructions=3000)[1])
    opened = open_page(path, ready="window.fasim !== undefined || !document.getElementById('fault').hidden")
    if opened.page.evaluate("window.fasim === undefined"):
        assert "no event" in opened.text("#fault")
        return
    opened.page.evaluate("document.getElementById('all-registers').open = true")
    count = opened.page.evaluate("fasim.store.count")
    for event in {*np.linspace(0, count - 1, 40).astype(int).tolist()}:
        opened.go(event)
        assert opened.text("#event")
    assert opened.messages == []


def test_filters_an_anchor_and_a_narrow_window(tmp_path: Path, open_page: Any) -> None:
    launch = of_cases("bc_ldmatrix_layouts")
    path = page_of(launch, tmp_path, TraceFilters(warp=0))
    opened = open_page(path, anchor="#40", width=400)
    assert opened.page.evaluate("fasim.store.event(fasim.page.at).position") >= 40
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    opened.page.keyboard.press("?")
    assert opened.page.evaluate("document.querySelector('#help').scrollWidth <= document.querySelector('#help').clientWidth")
    opened.page.keyboard.press("Escape")
    filtered = page_of(FLASH, tmp_path, TraceFilters(warp=1, steps=("S_QK",)))
    opened = open_page(filtered)
    stepper = FLASH.stepper()
    opened.go(30)
    stepper.go_to(opened.page.evaluate("fasim.store.event(30).position") + 1)
    assert words(opened, "registers") == stepper.walker.state.registers.tobytes()
    assert opened.messages == []


def test_what_the_file_says_is_text_not_markup(tmp_path: Path, open_page: Any) -> None:
    """Names from a command line or a source cannot become part of the page."""
    evil = "</script><img src=x onerror=alert(1)>"
    file = io.BytesIO()
    facts = FACTS | {"kernel": evil, "options": {"a": evil}, "source": evil}
    stream_trace(OWN["prints"].stepper(), file, ".html", TraceFilters(), facts)
    path = tmp_path / "evil.html"
    path.write_bytes(file.getvalue())
    opened = open_page(path)
    assert evil in opened.text("h1") and opened.page.locator("img").count() == 0 and opened.messages == []
