"""How a kernel of the collection is described: its options, launch, inputs and float64 reference.

A kernel `NAME` is a pair of files: `NN_NAME.cu` holds the one kernel, `NAME.py` defines `SPEC`, a `KernelSpec`. All methods of a spec
take options as a plain mapping, complete or not: what is missing has its default, what does not fit raises `UsageError`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from fasim.errors import UsageError

OptionValue = int | str | bool
Direction = Literal["in", "out", "inout"]


class Options(dict[str, OptionValue]):
    """A complete set of option values, with accessors that know the type."""

    def integer(self, name: str) -> int:
        """Returns the value of an integer option."""
        value = self[name]
        assert isinstance(value, int)
        return value

    def text(self, name: str) -> str:
        """Returns the value of a string option."""
        value = self[name]
        assert isinstance(value, str)
        return value

    def flag(self, name: str) -> bool:
        """Returns the value of a boolean option."""
        value = self[name]
        assert isinstance(value, bool)
        return value


@dataclass(frozen=True)
class Option:
    """One thing that a caller may choose about a kernel: a size or a variant."""

    name: str
    kind: type[int] | type[str] | type[bool]
    default: OptionValue
    help: str
    choices: tuple[OptionValue, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    multiple_of: int = 1

    def check(self, value: object) -> OptionValue:
        """Returns the value as a plain Python one.

        Raises: UsageError if the type, the range or the choice does not fit.
        """
        plain = value.item() if isinstance(value, np.generic) else value
        if not isinstance(plain, self.kind) or (self.kind is int and isinstance(plain, bool)):
            raise UsageError(f"option {self.name}={value!r}: {self.kind.__name__} expected, got {type(value).__name__}")
        if self.choices and plain not in self.choices:
            raise UsageError(f"option {self.name}={plain!r}: choose one of {', '.join(map(str, self.choices))}")
        if isinstance(plain, int) and not isinstance(plain, bool):
            if self.minimum is not None and plain < self.minimum:
                raise UsageError(f"option {self.name}={plain}: at least {self.minimum} expected")
            if self.maximum is not None and plain > self.maximum:
                raise UsageError(f"option {self.name}={plain}: at most {self.maximum} expected")
            if plain % self.multiple_of:
                raise UsageError(f"option {self.name}={plain}: a multiple of {self.multiple_of} expected")
        return plain

    def parse(self, text: str) -> OptionValue:
        """Returns the value that a text stands for.

        Raises: UsageError if it stands for none.
        """
        if self.kind is bool:
            known = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
            if text.lower() not in known:
                raise UsageError(f"option {self.name}={text!r}: true or false expected")
            return self.check(known[text.lower()])
        if self.kind is int:
            try:
                return self.check(int(text))
            except ValueError:
                raise UsageError(f"option {self.name}={text!r}: a whole number expected") from None
        return self.check(text)


@dataclass(frozen=True)
class Launch:
    """Grid and block as (x, y, z), and the dynamic shared memory of a CTA."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int = 0


class Argument(NamedTuple):
    """One kernel argument: an array is a device buffer, a numpy scalar is passed by value.

    The contents of an "out" array mean nothing to the kernel: floats are NaN there and integers all ones, so that a missing store shows.
    """

    name: str
    value: NDArray[Any] | np.generic
    direction: Direction


@dataclass(frozen=True)
class WatchedLine:
    """Values of a source line that belong to the rows of a warp's tile, eight to a result: row lane / 4.

    text: how the line begins, without blanks around it. operation: the PTX instructions whose results it assigns. total: add the four
    lanes of a quad, which hold a part each; else those hold the same.
    """

    label: str
    text: str
    operation: str
    total: bool = False


@dataclass(frozen=True)
class Region:
    """A named part of shared memory, from byte `start` to `end` excluded."""

    name: str
    start: int
    end: int


@dataclass(frozen=True)
class KernelSpec:
    """Everything needed to compile, launch and judge one kernel.

    The fields ending in `_of` are the kernel's own functions of a complete `Options`; call the methods of the same name instead.
    watched, regions_of: what the stepper shows by row, and the parts of shared memory, in the order of their addresses.
    """

    name: str
    source: str
    entry: str
    title: str
    options: tuple[Option, ...]
    defines_of: Callable[[Options], dict[str, int | str]]
    launch_of: Callable[[Options], Launch]
    inputs_of: Callable[[Options, np.random.Generator], list[Argument]]
    reference_of: Callable[[Options, dict[str, Any]], dict[str, NDArray[np.float64]]]
    tolerance_of: Callable[[Options], tuple[float, float]]
    flops_of: Callable[[Options], int]
    watched: tuple[WatchedLine, ...] = ()
    regions_of: Callable[[Options], tuple[Region, ...]] | None = None

    @property
    def path(self) -> Path:
        """Where the CUDA source is."""
        return Path(__file__).parent / self.source

    def option(self, name: str) -> Option:
        """Returns the option of that name.

        Raises: UsageError if there is none.
        """
        for option in self.options:
            if option.name == name:
                return option
        known = [option.name for option in self.options]
        near = difflib.get_close_matches(name, known, 1) or known
        raise UsageError(f"{self.name} has no option {name!r}; known: {', '.join(near)}")

    def resolve(self, options: Mapping[str, object] | None = None) -> Options:
        """Returns the options completed with defaults, in the order of their declaration.

        Raises: UsageError for an unknown name or a value that does not fit.
        """
        given = {name: self.option(name).check(value) for name, value in (options or {}).items()}
        return Options({option.name: given.get(option.name, option.default) for option in self.options})

    def regions(self, options: Mapping[str, object] | None = None) -> tuple[Region, ...]:
        """Returns the named parts of shared memory."""
        return self.regions_of(self.resolve(options)) if self.regions_of is not None else ()

    def defines(self, options: Mapping[str, object] | None = None) -> dict[str, int | str]:
        """Returns the preprocessor macros that select the variant."""
        return self.defines_of(self.resolve(options))

    def launch(self, options: Mapping[str, object] | None = None) -> Launch:
        """Returns grid, block and dynamic shared memory."""
        return self.launch_of(self.resolve(options))

    def inputs(self, options: Mapping[str, object] | None = None, seed: int = 0) -> list[Argument]:
        """Returns the arguments in the order of the kernel's parameters; random ones come from `numpy.random.default_rng(seed)`."""
        return self.inputs_of(self.resolve(options), np.random.default_rng(seed))

    def reference(self, options: Mapping[str, object] | None, inputs: Sequence[Argument]) -> dict[str, NDArray[np.float64]]:
        """Returns the right contents of every output, computed in float64 from the inputs as they were before the launch."""
        return self.reference_of(self.resolve(options), {argument.name: argument.value for argument in inputs})

    def tolerance(self, options: Mapping[str, object] | None = None) -> tuple[float, float]:
        """Returns (rtol, atol): an output is right if it is within atol + rtol * |reference| of the reference."""
        return self.tolerance_of(self.resolve(options))

    def flops(self, options: Mapping[str, object] | None = None) -> int:
        """Returns the floating-point operations of the problem: a multiply-add is two, masked-out elements are none."""
        return self.flops_of(self.resolve(options))


def fresh_output(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Returns an array whose contents no kernel computes by accident: NaN, or all bits one."""
    kind = np.dtype(dtype)
    return np.full(shape, np.nan if kind.kind == "f" else np.iinfo(kind).max, dtype=kind)


def ceil_div(a: int, b: int) -> int:
    """Returns a / b rounded up, for a >= 0 and b > 0."""
    return (a + b - 1) // b
