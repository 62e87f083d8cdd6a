"""Fragments as the arrays that other descriptions of them have."""

from __future__ import annotations

import numpy as np

from fasim.numerics.fragments import LANES, Elements
from fasim.report.layout import Fragment


def elements_of(held: Fragment) -> Elements:
    """The elements of a fragment, int64[32 lanes, n elements, 3] of (matrix, row, column)."""
    places = [(cell.matrix, cell.row, cell.column) for cell in held.cells]
    return np.array(places, np.int64).reshape(LANES, -1, 3)
