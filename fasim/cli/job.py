"""A launch that is ready to go: what `fasim run` makes of a kernel of the collection or of a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fasim.cli.run_options import RunOptions
from fasim.errors import UsageError
from fasim.kernels.spec import KernelSpec, Region, WatchedLine
from fasim.report.compare import check_shape
from fasim.report.output_file import check_output_path, replaced_file
from fasim.sm.module import Kernel
from fasim.sm.values import Value, parse_expectation

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Reference:
    """What an output should hold: values, where they come from, and "bf16" as type if they are bit patterns."""

    values: Array
    origin: str
    dtype: str = ""


@dataclass
class Job:
    """Everything that a launch needs and that its report says.

    references: computes what the outputs should be, after the launch. judged: names of the arrays to report; None means those that change.
    made: how each argument is made again, as recordings have it. collection: name of a kernel of the collection. flops: floating-point
    operations of the problem, 0 if unknown. seed: of the random inputs.
    """

    kernel: Kernel
    source: str
    args: list[Value]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    dynamic_smem_bytes: int
    rtol: float
    atol: float
    compile_seconds: float
    references: Callable[[], Mapping[str, Reference]]
    judged: tuple[str, ...] | None = None
    options: dict[str, int | str | bool] = field(default_factory=dict)
    defines: dict[str, int | str | None] = field(default_factory=dict)
    made: tuple[str, ...] = ()
    collection: str = ""
    flops: int = 0
    seed: int = 0

    @property
    def watched(self) -> Sequence[WatchedLine]:
        """The lines whose values the kernel's description wants to be seen by row."""
        spec = self._spec
        # they are described by PTX instructions
        return spec.watched if spec is not None and self.kernel.isa == "ptx" else ()

    @property
    def regions(self) -> Sequence[Region]:
        """The named parts of shared memory."""
        spec = self._spec
        known = spec.regions(self.options) if spec is not None else ()
        # machine code finds the kernel's own shared memory after what the system keeps
        start = self.kernel.program.reserved_smem_bytes
        return [Region(region.name, start + region.start, start + region.end) for region in known]

    @property
    def _spec(self) -> KernelSpec | None:
        from fasim import kernels

        return kernels.load(self.collection) if self.collection else None


def expectations(options: RunOptions, args: list[Value]) -> dict[str, Reference]:
    """The references of --expect, by argument.

    Raises: UsageError if one is unreadable, names no array or has another shape.
    """
    found: dict[str, Reference] = {}
    arrays = {value.name: value.value for value in args if value.is_array}
    for text in options.expect:
        name, values, dtype = parse_expectation(text)
        if name not in arrays:
            raise UsageError(f"--expect {text!r}: no array argument is called {name!r}; there are: {', '.join(arrays) or 'none'}")
        if name in found:
            raise UsageError(f"--expect {text!r}: {name} already has an expectation")
        check_shape(name, arrays[name].shape, values.shape)
        found[name] = Reference(values, text.split("=", 1)[1].split("@", 1)[1], dtype)
    return found


def check_save(path: Path) -> None:
    """Find out before the run whether its result can be saved.

    Raises: UsageError.
    """
    check_output_path("--save", path, "out.npz", (".npz",), "arrays are saved as .npz")


def save(path: Path, args: list[Value]) -> None:
    """Write all array arguments to an .npz file; an older file stays whole until the new one is.

    Raises: UsageError if the disk refuses.
    """
    import zipfile

    try:
        with replaced_file(path) as target, zipfile.ZipFile(target, "w") as archive:
            for value in args:
                if value.is_array:
                    with archive.open(f"{value.name}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, value.value, allow_pickle=False)
    except OSError as error:
        raise UsageError(f"cannot save {path}: {error.strerror}") from error
