"""numba for the functions of this package: compiled once for each state of their sources, and kept beside the other caches."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path
from typing import Any, TypeVar

import numba

from fasim.toolchain.cache import cache_dir

F = TypeVar("F")
_NUMBA: Any = numba


@functools.cache
def _digest() -> str:
    """Of all that is compiled in: numba itself notices changes of a function's own file only."""
    folder = Path(__file__).parent
    paths = [*sorted(folder.glob("*.py")), folder.parents[1] / "warp" / "path.py"]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16]


def _compile(function: F, **options: Any) -> F:
    before = _NUMBA.config.CACHE_DIR
    _NUMBA.config.CACHE_DIR = str(cache_dir() / "numba" / _digest())
    try:
        # without numba's runtime: nothing is allocated here, and counting references to arrays takes more time than all the rest
        made: F = _NUMBA.njit(cache=True, nogil=True, boundscheck=False, error_model="numpy", _nrt=False, **options)(function)
    finally:
        _NUMBA.config.CACHE_DIR = before
    return made


def njit(function: F) -> F:
    """A compiled function that lets other threads run; `.py_func` is the function itself."""
    return _compile(function)


def inlined(function: F) -> F:
    """The same for a small function, which becomes part of its callers: passing the state costs more than it does."""
    return _compile(function, inline="always")


def merged(function: F) -> F:
    """The same for a larger one, compiled by itself and then made part of its caller: numba takes long for a function of many parts."""
    return _compile(function, forceinline=True)
