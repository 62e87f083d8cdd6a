"""What an H200 measured (driver 580.159.04), as `fasim gpu calibrate --json --placement` wrote it."""

from __future__ import annotations

import copy
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

from fasim.gpu.calibrate.result import read, read_placement
from tests.gpu.conftest import gpu

__all__ = ["gpu"]
DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="session")
def h200():
    _, placed = read_placement(DATA / "placement_h200.npz")
    return read(lzma.decompress((DATA / "calibrate_h200.json.xz").read_bytes()).decode(), placed)


@pytest.fixture(scope="session")
def without_imad(h200):
    """The same where the compiler did not make IMADs of all that should be some."""
    raw = copy.deepcopy(h200.raw)
    raw["loops"]["imad"] = {"skipped": "the compiler makes 48 instructions like IMAD of 64 statements"}
    return replace(h200, raw=raw)
