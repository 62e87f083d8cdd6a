"""Places that are spread evenly, however many there are, and always the same ones."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
#: multiples of it, without their whole parts, lie evenly between 0 and 1
_GOLDEN = 0.6180339887498949


def evenly(numbers: Array) -> Array:
    """float64 between 0 and 1: the place of each of these numbers; any that follow each other are spread evenly."""
    places: Array = numbers * _GOLDEN % 1.0
    return places
