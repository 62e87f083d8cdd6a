"""Judging an output: against a reference in float64, and by its own statistics."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.numerics.dtypes import is_float, to_float64

Array = np.ndarray[Any, Any]
#: elements judged at a time, so that the float64 copies stay small
_CHUNK = 1 << 20


@dataclass(frozen=True)
class Worst:
    """The element that is furthest outside of its tolerance, or nearest to its limit."""

    index: tuple[int, ...]
    got: float | int
    expected: float | int
    abs_error: float


@dataclass(frozen=True)
class Comparison:
    """An output against its reference: right where |got - expected| <= atol + rtol * |expected|; NaN is right where NaN is expected.

    reference: what it was compared with. max_abs_error: the largest over all elements, infinite where only one side is finite.
    max_error_over_tolerance: the largest error in units of its element's tolerance; at most 1 if all are right.
    """

    reference: str
    rtol: float
    atol: float
    elements: int
    wrong_elements: int
    max_abs_error: float
    max_error_over_tolerance: float
    worst: Worst | None
    ok: bool


@dataclass(frozen=True)
class Statistics:
    """What an array holds; minimum, maximum and mean are those of its finite elements, None if there are none."""

    elements: int
    nan: int
    infinite: int
    minimum: float | int | None
    maximum: float | int | None
    mean: float | None


def statistics(values: Array, dtype: str) -> Statistics:
    """Counts and extremes of an array of type `dtype` (a short name)."""
    flat = values.reshape(-1)
    nan = infinite = finite_count = 0
    lows: list[Any] = []
    highs: list[Any] = []
    total = 0.0
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        numbers = part
        if is_float(dtype):
            exact = to_float64(part, dtype)
            finite = np.isfinite(exact)
            nan += int(np.isnan(exact).sum())
            infinite += int(np.isinf(exact).sum())
            numbers = exact[finite]
        if numbers.size:
            lows.append(numbers.min().item())
            highs.append(numbers.max().item())
            with np.errstate(over="ignore", invalid="ignore"):
                total += float(numbers.sum(dtype=np.float64))
            finite_count += numbers.size
    return Statistics(
        int(flat.size), nan, infinite, min(lows, default=None), max(highs, default=None), total / finite_count if finite_count else None
    )


def check_shape(name: str, got: tuple[int, ...], expected: tuple[int, ...]) -> None:
    """Raises: UsageError if the shapes differ, unless one is flat and has as many elements."""
    if got != expected and not (math.prod(got) == math.prod(expected) and 1 in (len(got), len(expected))):
        raise UsageError(f"{name}: the array has shape {list(got)}, what is expected has shape {list(expected)}")


def compare(
    got: Array, dtype: str, expected: Array, reference: str, rtol: float, atol: float, expected_dtype: str | None = None
) -> Comparison:
    """Judge `got` of type `dtype` against `expected`; integers are compared exactly, everything else in float64.

    expected_dtype: "bf16" if `expected` holds bit patterns. Raises: UsageError if the shapes do not fit.
    """
    check_shape(reference, got.shape, expected.shape)
    wanted_type = expected_dtype or ""
    integers = dtype != "bf16" and wanted_type != "bf16" and got.dtype.kind in "iub" and expected.dtype.kind in "iub"
    flat, wanted = got.reshape(-1), expected.reshape(-1)
    wrong, max_error, max_ratio, worst_at, worst_error = 0, 0.0, 0.0, -1, 0.0
    for start in range(0, flat.size, _CHUNK):
        part = slice(start, start + _CHUNK)
        if integers:
            errors, magnitude = _integer_errors(flat[part], wanted[part])
        else:
            errors, magnitude = _float_errors(to_float64(flat[part], dtype), to_float64(wanted[part], wanted_type))
        with np.errstate(all="ignore"):
            allowed = atol + rtol * np.where(np.isfinite(magnitude), magnitude, 0.0)
            ratio = np.where(errors == 0, 0.0, np.where(allowed > 0, errors / allowed, np.inf))
        wrong += int((errors > allowed).sum())
        max_error = max(max_error, float(errors.max()))
        # among equally bad ones (a tolerance of 0) the largest error
        candidates = np.flatnonzero(ratio == ratio.max())
        at = int(candidates[np.argmax(errors[candidates])])
        here = float(ratio[at])
        if here > max_ratio or worst_at < 0 or (here == max_ratio and float(errors[at]) > worst_error):
            max_ratio, worst_at, worst_error = here, start + at, float(errors[at])
    worst = None
    if worst_at >= 0:
        index = tuple(int(i) for i in np.unravel_index(worst_at, got.shape))
        worst = Worst(index, _number(flat[worst_at], dtype), _number(wanted[worst_at], wanted_type), worst_error)
    return Comparison(reference, rtol, atol, int(flat.size), wrong, max_error, max_ratio, worst, wrong == 0)


def _float_errors(got: Array, wanted: Array) -> tuple[Array, Array]:
    """Absolute errors (infinite where only one side is finite or a NaN) and |expected|."""
    with np.errstate(all="ignore"):
        errors = np.abs(got - wanted)
    same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
    errors[same] = 0.0
    errors[np.isnan(errors)] = np.inf
    return errors, np.abs(wanted)


def _integer_errors(got: Array, wanted: Array) -> tuple[Array, Array]:
    """Absolute errors that are 0 only where the integers are equal, also above 2^53."""
    differs = got != wanted
    errors = np.zeros(got.shape, np.float64)
    errors[differs] = [float(abs(int(a) - int(b))) for a, b in zip(got[differs], wanted[differs])]
    return errors, np.abs(wanted.astype(np.float64))


def _number(value: Any, dtype: str) -> float | int:
    if dtype == "bf16":
        return float(to_float64(np.asarray(value).reshape(1), dtype)[0])
    plain = value.item()
    return int(plain) if isinstance(plain, bool) else plain
