"""A program of the suite: a kernel, how it is launched, and what its arguments must hold afterwards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fasim

FOLDER = Path(__file__).parent
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """`make(rng)` gives the arguments and, for some of their positions, the expected contents after the launch."""

    file: str
    kernel: str
    make: Callable[[np.random.Generator], tuple[list[Any], dict[int, Any]]]
    grid: Any = 2
    block: Any = 96
    smem: int = 0
    arch: str = "sm_90"
    reference: bool = True
    ulps: int = 0

    @property
    def name(self) -> str:
        """Name of the test."""
        return f"{self.file}-{self.kernel}"

    @property
    def threads(self) -> int:
        """Threads of the whole grid."""
        return int(np.prod(self.grid) * np.prod(self.block))


@cache
def module(file: str, arch: str = "sm_90", options: Sequence[str] = ()) -> fasim.Module:
    """A compiled file of this folder."""
    return fasim.compile(FOLDER / f"{file}.cu", arch=arch, options=list(options))


def execute(case: Case, *, backend: str, workers: int = 1, arch: str = "", options: Sequence[str] = ()) -> tuple[list[Any], dict[int, Any]]:
    """Launch a case; returns its arguments after the launch and the expected contents."""
    args, expected = case.make(np.random.default_rng(7))
    kernel = module(case.file, arch or case.arch, tuple(options)).kernel(case.kernel)
    kernel.launch(case.grid, case.block, args, dynamic_smem_bytes=case.smem, backend=backend, workers=workers, output=lambda text: None)
    return args, expected


def check(case: Case, args: list[Any], expected: dict[int, Any]) -> None:
    """Compare bits (or ulps, where the case allows some)."""
    assert expected, "a case that checks nothing"
    for position, wanted in expected.items():
        found = np.asarray(args[position])
        wanted = np.asarray(wanted).astype(found.dtype, copy=False).reshape(found.shape)
        if case.ulps:
            near = np.abs(found.astype(np.float64) - wanted) <= case.ulps * np.spacing(np.abs(wanted).clip(np.finfo(wanted.dtype).tiny))
            good = near | (np.isnan(found) & np.isnan(wanted)) | (found == wanted)
        elif found.dtype.kind == "f":
            bits = f"u{found.dtype.itemsize}"
            good = (found.view(bits) == wanted.view(bits)) | (np.isnan(found) & np.isnan(wanted))
        else:
            good = found == wanted
        bad = np.argwhere(~good)
        if len(bad):
            first = tuple(bad[0])
            what = f"{len(bad)} of {good.size} differ, first at {first}: {found[first]!r}, not {wanted[first]!r}"
            raise AssertionError(f"{case.name}: argument {position}, {what}")
