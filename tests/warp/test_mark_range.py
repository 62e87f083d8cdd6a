"""The map of touched bytes: a range sets exactly its bits."""

import ctypes
import itertools

import numpy as np
import pytest

from fasim.warp.memory import mark, mark_lanes, mark_range


def bits(bitmap):
    return np.flatnonzero(np.unpackbits(bitmap, bitorder="little")).tolist()


@pytest.mark.parametrize("before", [0, 0xFF])
def test_ranges(before):
    for offset, size in itertools.product(range(20), range(1, 45)):
        bitmap = np.zeros(16, np.uint8)
        bitmap[0] = before
        mark_range(bitmap.ctypes.data, offset, size)
        expected = set(range(8 if before else 0)) | set(range(offset, offset + size))
        assert bits(bitmap) == sorted(expected), (offset, size)


PATTERNS = {
    "contiguous": lambda lane, size: lane * size,
    "uniform": lambda lane, size: 3 * size,
    "strided": lambda lane, size: 5 * lane * size,
    "reversed": lambda lane, size: (31 - lane) * size,
    "pairs": lambda lane, size: lane // 2 * size,
}


@pytest.mark.parametrize("mask", [0xFFFFFFFF, 1, 0x80000000, 0xFF00, 0xF0F0F0F0, 0x7FFFFFFF])
@pytest.mark.parametrize("size", [1, 2, 4, 8, 16, 32])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_all_lanes_at_once_mark_what_single_lanes_do(pattern, size, mask):
    base = 0x7000_0000_0000
    offsets = [64 + PATTERNS[pattern](lane, size) for lane in range(32)]
    words = (ctypes.c_int64 * 32)(*[base + offset for offset in offsets])
    one, each = np.zeros(1024, np.uint8), np.zeros(1024, np.uint8)
    mark_lanes(one.ctypes.data, base, ctypes.addressof(words), size, mask)
    for lane in range(32):
        if mask >> lane & 1:
            mark(each.ctypes.data, offsets[lane], size)
    assert bits(one) == bits(each)
