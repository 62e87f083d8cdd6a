"""Whether what was read from a file has the types that a dataclass declares."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from typing import Any

import numpy as np


def check_types(value: Any, declared: Any, place: str = "") -> None:
    """Compare a value with a type: dataclasses by field, containers by element; a whole number passes for a float.

    Raises: TypeError that names the place.
    """
    origin, inner = typing.get_origin(declared), typing.get_args(declared)
    kind = origin or declared
    if kind in (types.UnionType, typing.Union):
        if not any(_fits(value, each) for each in inner):
            raise _wrong(value, declared, place)
    elif kind not in (Any, np.ndarray) and isinstance(kind, type):
        if not _is(value, kind):
            raise _wrong(value, declared, place)
        for item, type_, where in _inner(value, kind, inner):
            check_types(item, type_, f"{place}{where}".lstrip("."))


def _is(value: Any, kind: type) -> bool:
    if isinstance(value, bool):
        return kind in (bool, object)
    return isinstance(value, (int, float) if kind is float else kind)


def _inner(value: Any, kind: type, inner: tuple[Any, ...]) -> Iterator[tuple[Any, Any, str]]:
    """The parts of a value with their types and places."""
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        for field in dataclasses.fields(kind):
            yield getattr(value, field.name), hints[field.name], f".{field.name}"
    elif kind is dict and inner:
        for key, item in value.items():
            yield key, inner[0], ""
            yield item, inner[1], f"[{key!r}]"
    elif kind is tuple and inner:
        each = [inner[0]] * len(value) if inner[1:] == (...,) else list(inner)
        if len(each) != len(value):
            raise TypeError(f"{len(each)} values expected, got {len(value)}")
        for i, item in enumerate(value):
            yield item, each[i], f"[{i}]"


def _fits(value: Any, declared: Any) -> bool:
    try:
        check_types(value, declared)
    except TypeError:
        return False
    return True


def _wrong(value: Any, declared: Any, place: str) -> TypeError:
    name = getattr(declared, "__name__", str(declared))
    return TypeError(f"{place}: {name} expected, got {type(value).__name__}")
