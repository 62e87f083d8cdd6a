"""Layouts of a tile in shared memory: linear, padded and swizzled rows, as invertible maps in CuTe's notation.

A tile has `rows` rows of `row_bytes` bytes, made of elements (or chunks) of `element_bytes`. A layout maps (row, column) to the byte
offset of the element from the start of the buffer, and back. All maps take integers or numpy arrays.
"""

from __future__ import annotations

import operator
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from fasim.errors import UsageError

Array = np.ndarray[Any, Any]
#: an integer, or an array of integers
Index = TypeVar("Index", int, Array)

_NOTATION = re.compile(r"\s*(?:Swizzle|Sw)\s*<\s*(-?\d+)\s*,\s*(-?\d+)\s*,\s*(-?\d+)\s*>\s*")


@dataclass(frozen=True, repr=False)
class Swizzle:
    """CuTe's `Swizzle<B,M,S>`: XOR of a field of B bits of an offset into another field, |S| bits away; it is its own inverse.

    bits (B): width of the fields. base (M): bits below both fields, which stay as they are. shift (S): the field at M + S goes into the
    one at M if S is positive; the field at M goes into the one at M - S if it is negative.
    Raises: UsageError if a number is negative or the fields overlap (|S| < B).
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        for name in ("bits", "base", "shift"):
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, operator.index(value))
            except TypeError:
                raise UsageError(f"Swizzle: {name} is a whole number, got {value!r}") from None
        if self.bits < 0 or self.base < 0:
            raise UsageError(f"{self}: B and M are at least 0")
        if abs(self.shift) < self.bits:
            raise UsageError(f"{self}: |S| is at least B, or the two fields of {self.bits} bits overlap")

    def __repr__(self) -> str:
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"

    @classmethod
    def parse(cls, text: str) -> Swizzle:
        """Read `Swizzle<B,M,S>`, also in CuTe's short form `Sw<B,M,S>`.

        Raises: UsageError.
        """
        match = _NOTATION.fullmatch(text)
        if not match:
            raise UsageError(f"{text!r} is no swizzle: write Swizzle<B,M,S>, for example Swizzle<3,4,3>")
        return cls(*map(int, match.groups()))

    @property
    def name(self) -> str:
        """CuTe's notation."""
        return repr(self)

    @property
    def formula(self) -> str:
        """What it does with a byte offset, in C."""
        field = ((1 << self.bits) - 1) << self.base
        moved = f"offset >> {self.shift} & {field:#x}" if self.shift >= 0 else f"(offset & {field:#x}) << {-self.shift}"
        return f"offset ^ ({moved})"

    @property
    def block_bytes(self) -> int:
        """Aligned blocks of this many bytes are permuted within themselves; a buffer holds whole blocks."""
        return 1 << (self.base + max(0, -self.shift) + self.bits) if self.bits else 1

    @property
    def period_bytes(self) -> int:
        """A buffer that starts at a multiple of this many bytes is swizzled alike wherever it starts."""
        return 1 << (self.base + abs(self.shift) + self.bits) if self.bits else 1

    def __call__(self, offset: Index) -> Index:
        """Swizzled offset of a byte; applied twice it is the offset itself."""
        field = ((1 << self.bits) - 1) << self.base
        moved: Index = (offset >> self.shift) & field if self.shift >= 0 else (offset & field) << -self.shift
        swizzled: Index = offset ^ moved
        return swizzled


@dataclass(frozen=True, repr=False)
class Layout(ABC):
    """What layouts have in common; use `Linear`, `Padded` or `Swizzled`.

    Raises: UsageError if a size is not positive or a row is not made of whole elements.
    """

    rows: int
    row_bytes: int
    element_bytes: int = 1

    def __post_init__(self) -> None:
        for name in ("rows", "row_bytes", "element_bytes"):
            value = getattr(self, name)
            if not isinstance(value, (int, np.integer)) or value < 1:
                raise UsageError(f"{type(self).__name__}: {name} is a positive whole number, got {value!r}")
        if self.row_bytes % self.element_bytes:
            raise UsageError(f"{type(self).__name__}: rows of {self.row_bytes} bytes are not whole elements of {self.element_bytes} bytes")

    def __repr__(self) -> str:
        return self.name

    @property
    def columns(self) -> int:
        """Elements of a row."""
        return self.row_bytes // self.element_bytes

    @property
    def pitch_bytes(self) -> int:
        """From the start of a row to the start of the next."""
        return self.row_bytes

    @property
    def size_bytes(self) -> int:
        """Bytes of the buffer."""
        return self.rows * self.pitch_bytes

    @property
    def extra_bytes(self) -> int:
        """What the buffer has beyond the tile."""
        return self.size_bytes - self.rows * self.row_bytes

    @property
    @abstractmethod
    def name(self) -> str:
        """CuTe's notation, shape and strides in elements and bytes: (rows,columns):(pitch,element)."""

    def offset(self, row: Index, column: Index) -> Index:
        """Byte offset of an element.

        Raises: UsageError outside of the tile.
        """
        self._check("row", row, self.rows)
        self._check("column", column, self.columns)
        return self._place(row * self.pitch_bytes + column * self.element_bytes)

    def coordinate(self, offset: Index) -> tuple[Index, Index]:
        """(row, column) of the element that a byte belongs to.

        Raises: UsageError if no element is there.
        """
        self._check("offset", offset, self.size_bytes)
        linear = self._place(offset)
        row, byte = linear // self.pitch_bytes, linear % self.pitch_bytes
        if np.any((byte >= self.row_bytes) | (row >= self.rows)):
            raise UsageError(f"{self.name}: no element is at offset {_first(offset, (byte >= self.row_bytes) | (row >= self.rows))}")
        return row, byte // self.element_bytes

    def offsets(self) -> Array:
        """Byte offsets of all elements, int64[rows, columns]."""
        rows, columns = np.indices((self.rows, self.columns))
        return self.offset(rows, columns)

    def _place(self, linear: Index) -> Index:
        """Offset of what a linear buffer of the same pitch has at `linear`; its own inverse."""
        return linear

    def _check(self, what: str, value: Index, limit: int) -> None:
        outside = (np.asarray(value) < 0) | (np.asarray(value) >= limit)
        if np.any(outside):
            raise UsageError(f"{self.name}: {what} {_first(value, outside)} is outside of 0 to {limit - 1}")


def _first(value: Any, chosen: Any) -> int:
    return int(np.asarray(value)[np.asarray(chosen)].flat[0])


@dataclass(frozen=True, repr=False)
class Linear(Layout):
    """Rows one after the other."""

    @property
    def name(self) -> str:
        return f"({self.rows},{self.columns}):({self.pitch_bytes},{self.element_bytes})"


@dataclass(frozen=True, repr=False)
class Padded(Layout):
    """Rows with unused bytes behind each of them.

    Raises: UsageError if `padding_bytes` is negative or not whole elements.
    """

    padding_bytes: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.padding_bytes < 0 or self.padding_bytes % self.element_bytes:
            raise UsageError(f"Padded: padding of {self.padding_bytes} bytes is not whole elements of {self.element_bytes} bytes")

    @property
    def pitch_bytes(self) -> int:
        return self.row_bytes + self.padding_bytes

    @property
    def name(self) -> str:
        return f"({self.rows},{self.columns}):({self.pitch_bytes},{self.element_bytes})"


@dataclass(frozen=True, repr=False)
class Swizzled(Layout):
    """Rows one after the other, with a swizzle of the byte offsets that keeps elements whole.

    The buffer is rounded up to whole blocks of the swizzle, and starts at a multiple of `swizzle.period_bytes`.
    Raises: UsageError if the swizzle would tear elements apart.
    """

    swizzle: Swizzle = Swizzle(3, 4, 3)

    def __post_init__(self) -> None:
        super().__post_init__()
        quantum = 1 << self.swizzle.base
        if self.swizzle.bits and (self.element_bytes > quantum or quantum % self.element_bytes):
            raise UsageError(f"{self.swizzle} moves pieces of {quantum} bytes and would tear elements of {self.element_bytes} bytes apart")

    @property
    def size_bytes(self) -> int:
        block = self.swizzle.block_bytes
        return -(-self.rows * self.row_bytes // block) * block

    @property
    def name(self) -> str:
        return f"{self.swizzle} o ({self.rows},{self.columns}):({self.pitch_bytes},{self.element_bytes})"

    def _place(self, linear: Index) -> Index:
        return self.swizzle(linear)
