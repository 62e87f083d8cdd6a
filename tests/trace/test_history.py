"""Buffers go back to every keyframe, whatever was written, and in which order."""

from __future__ import annotations

import numpy as np
import pytest

from fasim.trace.history import MAPPED_LINE_BYTES, Buffer, History


@pytest.mark.parametrize("limit_bytes", [1 << 30, 3000])
@pytest.mark.parametrize("mapped", [False, True])
def test_every_keyframe_again(mapped: bool, limit_bytes: int) -> None:
    random = np.random.default_rng(3)
    arrays = [random.integers(0, 255, size, dtype=np.uint8) for size in (1, 63, 64, 256, 1000, 5000)]
    maps = [np.zeros(-(-len(a) // MAPPED_LINE_BYTES), np.uint64) if mapped else None for a in arrays]
    history = History([Buffer(a, written=w) for a, w in zip(arrays, maps)], 1, limit_bytes, 0, "extra 0")
    known = {0: [a.copy() for a in arrays]}

    def write() -> None:
        for array, map_ in zip(arrays, maps):
            for at in random.integers(0, len(array), 3).tolist():
                array[at] = random.integers(0, 255)
                if map_ is not None:
                    map_[at // MAPPED_LINE_BYTES] |= np.uint64(1)

    position = 0
    for target in (40, 10, 35, 0, 20, 19):
        if target < position:
            frame = history.rewind(target)
            position = frame.position
            assert position <= target and frame.extra == f"extra {position}"
            assert all((a == b).all() for a, b in zip(arrays, known[position]))
        while position < target:
            write()
            position += 1
            known[position] = [a.copy() for a in arrays]
            history.push(position, f"extra {position}")
            write()  # what comes after the last keyframe is put back, too
            history.rewind(position)
            assert all((a == b).all() for a, b in zip(arrays, known[position]))
    assert (history.interval > 1) == (limit_bytes == 3000)


def test_a_buffer_not_in_use_costs_nothing_until_it_is() -> None:
    array, used = np.zeros(1000, np.uint8), []
    history = History([Buffer(array, used=lambda: bool(used))], 1, 1 << 20, 0, None)
    history.push(1, None)
    assert history.size_bytes == 0
    used.append(1)
    array[7] = 1
    history.push(2, None)
    used.clear()
    array[:] = 3
    history.push(3, None)
    assert history.rewind(2).position == 2 and array[7] == 1 and array.sum() == 1
    assert history.rewind(0).position == 0 and not array.any()
