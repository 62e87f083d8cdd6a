"""Places in device memory by name, byte and element."""

from __future__ import annotations

import numpy as np
import pytest

from fasim.errors import UsageError
from fasim.gmem import AddressSpace
from fasim.trace.elements import Elements, spans_text

C = np.arange(128 * 16, dtype=np.float32).reshape(128, 16)


@pytest.fixture
def space() -> AddressSpace:
    found = AddressSpace()
    found.add("C", C)
    found.add("raw", np.arange(64, dtype=np.uint8))
    found.add("halfs", np.array([[0x3F80, 0xC000]], np.uint16))
    found.add("n", np.array([-5, 7], np.int64), constant=True)
    return found


@pytest.fixture
def elements(space: AddressSpace) -> Elements:
    return Elements(space, {"halfs": "bf16"})


@pytest.mark.parametrize(
    ("name", "offset", "text"),
    [
        ("C", 0, "C + 0 = C[0, 0]"),
        ("C", 7192, "C + 7192 = C[112, 6]"),
        ("C", 7195, "C + 7195 = C[112, 6]"),
        ("raw", 9, "raw + 9"),
        ("halfs", 2, "halfs + 2 = halfs[0, 1]"),
        ("n", 8, "n + 8 = n[1]"),
    ],
)
def test_addresses(space: AddressSpace, elements: Elements, name: str, offset: int, text: str) -> None:
    base = next(each.address for each in space.allocations if each.name == name)
    assert str(elements.at(base + offset)) == str(elements.place(name, offset)) == text


def test_what_is_in_no_buffer(space: AddressSpace, elements: Elements) -> None:
    end = space.allocations[0].address + C.nbytes
    assert elements.at(end) is None and elements.at(0) is None and elements.at(end - 1) is not None
    assert elements.span(end - 4, end + 4) == f"[{end - 4:#x}, {end + 4:#x})"


def test_spans(space: AddressSpace, elements: Elements) -> None:
    base = space.allocations[0].address
    assert elements.span(base + 8, base + 12) == "C + 8 = C[0, 2]"
    assert elements.span(base, base + 128) == "C + [0, 128) = C[0, 0] to C[1, 15]"
    raw = space.allocations[1].address
    assert elements.span(raw + 1, raw + 5) == "raw + [1, 5)"
    assert spans_text(list("abcdefgh")) == "a, b, c, d, e, f, … and 2 more" and spans_text(["a"]) == "a"


@pytest.mark.parametrize(
    ("name", "index", "found"),
    [("C", "112, 6", (7192, 4)), ("C", "-1,-1", (8188, 4)), ("C", "2", (128, 64)), ("raw", "5", (5, 1)), ("n", "1", (8, 8))],
)
def test_elements_by_index(elements: Elements, name: str, index: str, found: tuple[int, int]) -> None:
    assert elements.find(name, index) == found
    assert elements.place(name, found[0]).buffer == name


@pytest.mark.parametrize(
    ("name", "index", "message"),
    [
        ("C", "128,0", r"C\[128,0\] is outside of C, whose shape is \[128, 16\]"),
        ("C", "0,-17", "is outside of C"),
        ("C", "0,0,0", r"C has 2 dimensions, \[128, 16\]"),
        ("raw", "0,0", "raw has 1 dimension, "),
        ("C", "a", r"whole numbers are expected between the brackets, for example C\[0, 0\]"),
        ("C", "", "whole numbers are expected"),
        ("D", "0", "no buffer 'D'; there are: C, halfs, raw, shared"),
    ],
)
def test_elements_that_there_are_not(elements: Elements, name: str, index: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        elements.find(name, index)


def test_values_in_the_type_of_the_buffer(elements: Elements) -> None:
    halfs = np.array([0x3F80, 0xC000], np.uint16).view(np.uint8)
    assert elements.value("halfs", 3, halfs) == "-2" and elements.value("n", 0, np.array([-5, 7]).view(np.uint8)) == "-5"
    third = np.array([1 / 3], np.float32)
    assert np.float32(elements.value("C", 1, third.view(np.uint8))) == third[0]
    assert elements.bits("halfs", "-2") == b"\x00\xc0" and elements.bits("C", "1") == b"\x00\x00\x80\x3f"
    assert elements.bits("C", "0x3c00") == b"\x00\x3c\x00\x00" and elements.bits("n", "-1") == b"\xff" * 8
    with pytest.raises(OverflowError):
        elements.bits("raw", "256")
