"""`--print 'y[:8]'`: parts of the buffers after a run, written as Python writes slices."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from fasim.errors import UsageError
from fasim.numerics.dtypes import to_float64
from fasim.sm.values import Value

_REQUEST = re.compile(r"\s*(?P<name>[A-Za-z_]\w*)\s*(?:\[(?P<index>[^\[\]]*)\])?\s*")
_INTEGER = re.compile(r"[+-]?\d+")


def parse_slice(text: str) -> tuple[str, tuple[int | slice, ...]]:
    """The name of a buffer, and an index or slice for each of its first dimensions.

    Raises: UsageError.
    """
    match = _REQUEST.fullmatch(text)
    if match is None:
        raise UsageError(f"--print {text!r}: write NAME or NAME[SLICE, ...], for example 'y[:8]' or 'c[0,16:32]'")
    if match["index"] is None:
        return match["name"], ()
    return match["name"], tuple(_part(part, text) for part in match["index"].split(","))


def _part(part: str, text: str) -> int | slice:
    pieces = [piece.strip() for piece in part.split(":")]
    if len(pieces) > 3 or not all(_INTEGER.fullmatch(piece) or (piece == "" and len(pieces) > 1) for piece in pieces):
        raise UsageError(f"--print {text!r}: {part.strip()!r} is neither an index (3, -1) nor a slice (:8, 4:32:4)")
    numbers = [int(piece) if piece else None for piece in pieces]
    if len(numbers) == 1:
        assert numbers[0] is not None
        return numbers[0]
    if len(numbers) == 3 and numbers[2] == 0:
        raise UsageError(f"--print {text!r}: a slice cannot have the step 0")
    return slice(*numbers)


def check_slices(texts: Sequence[str], args: Sequence[Value]) -> None:
    """Find out before the run whether every --print can be shown.

    Raises: UsageError.
    """
    for text in texts:
        _taken(text, args)


def show_slices(texts: Sequence[str], args: Sequence[Value]) -> list[str]:
    """One text a request."""
    return [f"{text.strip()} = {_shown(*_taken(text, args))}" for text in texts]


def _taken(text: str, args: Sequence[Value]) -> tuple[object, str]:
    name, index = parse_slice(text)
    arrays = {value.name: value for value in args if value.is_array}
    if name not in arrays:
        raise UsageError(f"--print {text!r}: no buffer is called {name!r}; there are: {', '.join(arrays) or 'none'}")
    value = arrays[name]
    if len(index) > value.value.ndim:
        raise UsageError(f"--print {text!r}: {name} has {value.value.ndim} dimensions, {list(value.value.shape)}")
    try:
        return value.value[index], value.dtype
    except IndexError:
        raise UsageError(f"--print {text!r}: outside of {name}, whose shape is {list(value.value.shape)}") from None


def _shown(values: object, dtype: str) -> str:
    array = to_float64(np.asarray(values), dtype) if dtype == "bf16" else np.asarray(values)
    return np.array2string(array, separator=", ", max_line_width=120, threshold=1000)
