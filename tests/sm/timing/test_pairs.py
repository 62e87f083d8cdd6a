"""Two warps of a sub-partition with different work: when each is done, on an H200 and here.

Measured with `data/pair.cu` on an H200 (driver 580.159.04, NVRTC 13.5, 2026-11-30), clocks read in the kernel, mean over 132 SMs.
Work: 0 HMMA, 1 HMMA and 12 FADD or FMUL each, 2 FADD, FMUL and MUFU, 3 HMMA and LDSM, 4 FADD, FMUL and FMNMX, 5 HMMA and 3 FADD or FMUL.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import fasim
from fasim.arch.cards import card
from fasim.sm.timing.predict import predict

#: work of the older and of the younger warps: cycles if one does 200 rounds alone
ALONE = {
    (0, 0): (116748, 116065),
    (0, 1): (114593, 112140),
    (0, 2): (117704, 87968),
    (0, 4): (116293, 73776),
    (1, 1): (114292, 112367),
    (1, 2): (112221, 88641),
    (1, 4): (113606, 72166),
    (2, 2): (88134, 86316),
    (3, 1): (107307, 112122),
    (3, 2): (119797, 88867),
    (3, 4): (119784, 72538),
    (4, 4): (79365, 79363),
    (5, 5): (65167, 64778),
}
#: cycles until both are done: 200 and 100 rounds, 100 and 200 rounds
BOTH = {
    (0, 0): (147914, 147478),
    (0, 1): (164111, 156564),
    (0, 2): (158583, 140785),
    (0, 4): (151881, 129596),
    (0, 5): (139496, 107337),
    (1, 1): (164594, 163675),
    (1, 2): (153276, 138929),
    (1, 4): (148435, 124257),
    (2, 2): (126834, 126044),
    (3, 1): (155796, 150507),
    (3, 2): (160560, 141401),
    (3, 3): (193524, 193516),
    (3, 4): (154490, 129596),
    (3, 5): (130689, 101933),
    (4, 4): (119184, 119227),
    (5, 2): (106100, 115320),
    (5, 5): (93194, 92982),
}


#: of these two the younger one gets more on the GPU than here
UNFAIR = {(0, 5): 0.12}


@cache
def kernel(older: int, younger: int) -> fasim.Kernel:
    return fasim.compile(Path(__file__).parent / "data" / "pair.cu", arch="sm_90", defines={"X": older, "Y": younger}).kernel("pair")


def cycles(work: tuple[int, int], *rounds: int) -> float:
    args = [np.zeros(256, np.float32), np.zeros(8, np.int64), *rounds]
    return predict(kernel(*work), 1, 256, args, card("h200"), dynamic_smem_bytes=100 * 1024).cycles


@pytest.mark.parametrize("work", ALONE)
def test_alone(work):
    found = cycles(work, 200, 0), cycles(work, 0, 200)
    assert found == pytest.approx(ALONE[work], rel=0.075)


@pytest.mark.parametrize("work", BOTH)
def test_side_by_side(work):
    found = cycles(work, 200, 100), cycles(work, 100, 200)
    assert found == pytest.approx(BOTH[work], rel=UNFAIR.get(work, 0.1))
