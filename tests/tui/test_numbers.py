"""Register values as text."""

from __future__ import annotations

import numpy as np
import pytest

from fasim.tui.numbers import element_text, lane_texts, short

BITS = np.arange(32, dtype=np.uint32)
# values, type, format: the text of lane 1
LANES = {
    "f32": (np.full(32, -1.5, np.float32).view(np.uint32), "f32", "value", "-1.5"),
    "f32, many digits": (np.full(32, 1 / 3, np.float32).view(np.uint32), "f32", "value", "0.3333"),
    "nan": (np.full(32, 0x7FFFFFFF, np.uint32), "f32", "value", "nan"),
    "f16x2, low half first": (np.full(32, 0xC0003C00, np.uint32), "f16x2", "value", "1,-2"),
    "bf16x2": (np.full(32, 0x40003F80, np.uint32), "bf16x2", "value", "1,2"),
    "f64": (np.full(32, 0.25).view(np.uint64), "f64", "value", "0.25"),
    "s32": (np.full(32, 0xFFFFFFFF, np.uint32), "s32", "value", "-1"),
    "u32": (np.full(32, 0xFFFFFFFF, np.uint32), "u32", "value", "4294967295"),
    "b32": (BITS + 254, "b32", "value", "0xff"),
    "b64": (np.full(32, 1 << 40, np.uint64), "b64", "value", "0x10000000000"),
    "u8 in a wider register": (np.full(32, 0x1FF, np.uint32), "u8", "value", "255"),
    "hex": (np.full(32, 1, np.uint32), "f32", "hex", "00000001"),
    "hex, 64": (np.full(32, 1, np.uint64), "b64", "hex", "0000000000000001"),
    "signed": (np.full(32, 0xFFFFFFFE, np.uint32), "f32", "signed", "-2"),
    "s16, zeros above": (np.full(32, 0xFFFD, np.uint32), "s16", "value", "-3"),
    "signed, 16 bits": (np.full(32, 0xFFFD, np.uint32), "b16", "signed", "-3"),
    "predicate": (BITS.astype(bool), "pred", "hex", "1"),
}


@pytest.mark.parametrize("what", LANES)
def test_lanes(what):
    values, type_, form, expected = LANES[what]
    texts = lane_texts(values, type_, form)
    assert len(texts) == 32 and texts[1] == expected


@pytest.mark.parametrize(
    ("bits", "type_", "expected"),
    [
        (0x3C00, "f16", "1"),
        (0x3F80, "bf16", "1"),
        (0x3F800000, "tf32", "1"),
        (0xF, "s4", "-1"),
        (0xFF, "u8", "255"),
        (0x3C00, "b16", "1"),
        (0xAB, "e4m3", "ab"),
    ],
)
def test_elements(bits, type_, expected):
    assert element_text(bits, type_) == expected


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        *((1e-20, "1e-20"), (12345.678, "1.235e4"), (-0.0, "-0"), (float("-inf"), "-inf"), (float("nan"), "nan")),
        *((125301.0, "125301"), (-16777215.0, "-16777215"), (16777216.0, "1.678e7"), (125301.5, "1.253e5"), (0.0, "0")),
    ],
)
def test_short(number, expected):
    assert short(number) == expected
