"""What is in sight, and what its parts are called."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

import fasim
from tests.browser.pages import page_of
from tests.trace.launches import Launch, zeros

SOURCE = """
extern "C" __global__ void k(const float *B, float *C) {
    __shared__ float tile[32][32];
    int t = threadIdx.x, w = threadIdx.y;
    for (int r = w; r < 32; r += 2) tile[r][t] = B[r * 128 + t];
    __syncthreads();
    if (t < 12) C[w * 128 + t] = tile[t][w];
}
"""


def test_lanes_in_device_memory_by_element(tmp_path: Path, open_page: Any) -> None:
    kernel = fasim.compile(SOURCE).kernel("k")
    launch = Launch(
        "k",
        lambda: kernel,
        1,
        (32, 2),
        lambda: [np.arange(4096, dtype=np.float32).reshape(32, 128), zeros((2, 128), np.float32)],
        0,
        ("B", "C"),
    )
    opened, stepper = open_page(page_of(launch, tmp_path)), launch.stepper()
    opened.stop_at("read B[14,0]")
    access = stepper.event(opened.at()).access
    texts = opened.page.locator("#event td").all_inner_texts()
    assert texts == [str(stepper.elements.at(address)) for address in access.addresses] and "B + 7168 = B[14, 0]" in texts
    assert "lane 0 at B + 7168 = B[14, 0]" in opened.text("#event")
    opened.stop_at("mem C[1,3]")
    assert opened.text("#event").count("C[1, ") >= 12 and "·" in opened.text("#event")  # lanes that store nothing have no place
    # neither fragments nor rows: no empty boxes
    assert not opened.page.is_visible("#fragment-pane") and not opened.page.is_visible("#rows-pane")
    assert "words as f32" in opened.text("#banks")


def test_shared_memory_is_in_sight(tmp_path: Path, open_page: Any, flash: tuple[Path, Any]) -> None:
    opened = open_page(flash[0], width=1280, height=800)
    opened.stop_at("conflict")
    cells = opened.page.locator("#banks tr >> nth=1").locator("td")
    boxes = [cell.bounding_box() for cell in cells.all()]
    assert len(boxes) == 32 and all(box["x"] + box["width"] <= 1280 and box["y"] + box["height"] <= 800 for box in boxes)
    assert opened.page.evaluate("document.querySelector('#banks').scrollWidth <= document.querySelector('#banks').clientWidth")
    # ldmatrix.x4: two by two, each with its register
    headings = opened.page.locator("#fragment .pairs .caption").all()
    assert [heading.inner_text().split(",")[0] for heading in headings] == [f"matrix {i}" for i in range(4)]
    lefts = [round(heading.bounding_box()["x"]) for heading in headings]
    tops = [round(heading.bounding_box()["y"]) for heading in headings]
    assert lefts[0] == lefts[2] < lefts[1] == lefts[3] and tops[0] == tops[1] < tops[2] == tops[3]


def test_registers_below_what_is_in_sight_are_named(flash: tuple[Path, Any], open_page: Any) -> None:
    opened = open_page(flash[0], width=1280, height=800)
    opened.page.evaluate("fasim.page.go(4500)")
    opened.stop_at("mma.sync")
    roles = [text.split()[1] for text in opened.page.locator("#register-names button").all_inner_texts()]
    assert roles == [f"{name}[{i}]" for name, count in (("D", 4), ("A", 4), ("B", 2), ("C", 4)) for i in range(count)]
    assert "more below" in opened.text("#registers-below")
    opened.page.locator("#register-names button").last.click()
    last = opened.page.locator("#registers table").last
    assert last.locator("td").last.bounding_box()["y"] < opened.page.locator("#registers").bounding_box()["y"] + 300
    opened.page.evaluate("document.querySelector('#registers').scrollTop = 1e6")
    opened.page.wait_for_timeout(50)
    assert not opened.page.is_visible("#registers-below")


def test_steps_are_told_apart(flash: tuple[Path, Any], open_page: Any) -> None:
    opened = open_page(flash[0])
    swatches = opened.page.evaluate("[...document.querySelectorAll('#legend canvas')].map((each) => each.toDataURL())")
    assert len(swatches) > 15 and len(set(swatches)) == len(swatches)
    strip = opened.page.locator("#timeline").bounding_box()
    opened.page.mouse.move(strip["x"] + strip["width"] / 2, strip["y"] + 20)
    tip = opened.text("#tip")
    assert re.fullmatch(r"[A-Z0-9_]+, warp instruction \d+, warp \d", tip), tip


def test_inlined_code_is_shown_beside_its_call(flash: tuple[Path, Any], open_page: Any) -> None:
    opened = open_page(flash[0], width=1280, height=800)
    opened.stop_at("line 76")
    call, *_, inner = opened.page.evaluate("fasim.store.code(fasim.page.at).path")
    assert opened.page.is_visible("#inner-box") and f":{inner[1]}, inlined at" in opened.text("#inner-title")
    assert opened.page.locator("#source .here i").inner_text() == str(call[1])
    assert opened.page.locator("#inner .here i").inner_text() == str(inner[1])
    for pane in ("#source", "#inner"):
        box, line = opened.page.locator(pane).bounding_box(), opened.page.locator(f"{pane} .here").bounding_box()
        assert box["y"] <= line["y"] and line["y"] + line["height"] <= box["y"] + box["height"] + 1


def test_lanes_do_not_run_together(flash: tuple[Path, Any], open_page: Any) -> None:
    opened = open_page(flash[0], width=1280, height=800)
    gaps = """(rows) => rows.flatMap((row) => {
        const boxes = [...row.querySelectorAll("th, td")].map((cell) => {
            const range = document.createRange();
            range.selectNodeContents(cell);
            return range.getBoundingClientRect();
        });
        return boxes.slice(1).map((box, i) => box.left - boxes[i].right);
    })"""
    for text in ("mma.sync", "setp", "conflict", "mem o[0,5,7]", "cvta"):
        opened.go(0)
        opened.stop_at(text)
        found = opened.page.locator("table.lanes tr").evaluate_all(gaps)
        assert found and min(found) > 5, text
        assert opened.page.evaluate("document.querySelector('#registers').scrollWidth <= document.querySelector('#registers').clientWidth")
