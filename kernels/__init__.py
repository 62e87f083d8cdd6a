"""The kernels that come with fasim: `NN_NAME.cu` holds one kernel, `NAME.py` its description.

`names()` lists them in the order of their numbers, `load(name)` returns the `KernelSpec`.
"""

from __future__ import annotations

import difflib
import importlib
import re
from functools import cache
from pathlib import Path

from fasim.errors import UsageError

from .spec import Argument, KernelSpec, Launch, Option, Options, Region, WatchedLine

__all__ = ["Argument", "KernelSpec", "Launch", "Option", "Options", "Region", "WatchedLine", "load", "names"]

_SOURCE_NAME = re.compile(r"\d\d_(\w+)\.cu")


@cache
def _names() -> tuple[str, ...]:
    folder = Path(__file__).parent
    matches = [_SOURCE_NAME.fullmatch(path.name) for path in sorted(folder.glob("*.cu"))]
    return tuple(match[1] for match in matches if match and (folder / f"{match[1]}.py").exists())


def names() -> list[str]:
    """Returns the names of all kernels, in the order of their file numbers."""
    return list(_names())


@cache
def load(name: str) -> KernelSpec:
    """Returns the description of a kernel.

    Raises: UsageError if there is no kernel of that name.
    """
    if name not in _names():
        near = difflib.get_close_matches(name, _names(), 3) or _names()
        raise UsageError(f"no kernel {name!r} in the collection; known: {', '.join(near)}")
    spec = importlib.import_module(f"{__name__}.{name}").SPEC
    assert isinstance(spec, KernelSpec)
    return spec
