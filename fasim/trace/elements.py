"""Places in device memory as a person names them: the buffer, the byte there, and the element of the array: `B + 7168 = B[14, 0]`."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.gmem import AddressSpace, Allocation
from fasim.numerics.dtypes import DTYPES, bf16_bits, is_float, short_name, to_float64

Array = np.ndarray[Any, Any]
_INDEX = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Place:
    """A byte of a buffer. index: of the element that holds it, () where the buffer has no elements larger than a byte."""

    buffer: str
    byte_offset: int
    index: tuple[int, ...] = ()

    @property
    def element(self) -> str:
        """The element as Python writes it, `B[14, 0]`; where there is none, the byte: `B + 7168`."""
        return f"{self.buffer}[{', '.join(map(str, self.index))}]" if self.index else self.offset

    @property
    def offset(self) -> str:
        """The byte: `B + 7168`."""
        return f"{self.buffer} + {self.byte_offset}"

    def __str__(self) -> str:
        return f"{self.offset} = {self.element}" if self.index else self.offset


class Elements:
    """Device memory by names, offsets and elements.

    dtypes: short names of the types of buffers where numpy's own type does not say it, which is bf16.
    """

    def __init__(self, space: AddressSpace, dtypes: Mapping[str, str] | None = None) -> None:
        self._space, self._dtypes = space, dict(dtypes or {})

    def _allocation(self, name: str) -> Allocation:
        for each in self._space.allocations:
            if each.name == name:
                return each
        known = sorted({each.name for each in self._space.allocations if not each.constant})
        raise UsageError(f"no buffer {name!r}; there are: {', '.join([*known, 'shared'])}")

    def dtype(self, name: str) -> str:
        """The short name of the type of a buffer's elements, "" if there is no such buffer or it has none."""
        for each in self._space.allocations:
            if each.name == name:
                found = self._dtypes.get(name) or short_name(each.data.dtype)
                return found if found in DTYPES else ""
        return ""

    def size_bytes(self, name: str) -> int:
        """The size of a buffer's elements; 4 where nobody knows."""
        dtype = self.dtype(name)
        return DTYPES[dtype].itemsize if dtype else 4

    def at(self, address: int) -> Place | None:
        """The place that a global address points to, None if it is in no buffer."""
        near = self._space.nearest(address)
        return self._place(near[0], address - near[0].address) if near is not None and near[1] == 0 else None

    def place(self, name: str, byte_offset: int) -> Place:
        """The place of a byte of a buffer.

        Raises: UsageError if there is no such buffer.
        """
        return self._place(self._allocation(name), byte_offset)

    def _place(self, allocation: Allocation, byte_offset: int) -> Place:
        data = allocation.data
        if (data.ndim <= 1 and data.itemsize == 1) or not 0 <= byte_offset < data.nbytes or not data.ndim:
            return Place(allocation.name, byte_offset)
        index = np.unravel_index(byte_offset // data.itemsize, data.shape)
        return Place(allocation.name, byte_offset, tuple(map(int, index)))

    def span(self, start: int, end: int) -> str:
        """The bytes from an address to another, which is not among them, as text."""
        first, last = self.at(start), self.at(end - 1)
        if first is None or last is None or first.buffer != last.buffer:
            return f"[{start:#x}, {end:#x})"
        if first.index and first.index == last.index:
            return str(first)
        bytes_ = f"{first.buffer} + [{first.byte_offset}, {last.byte_offset + 1})"
        return f"{bytes_} = {first.element} to {last.element}" if first.index else bytes_

    def find(self, name: str, index: str) -> tuple[int, int]:
        """The bytes of an element. index: as between brackets, `14, 0`; fewer numbers than dimensions mean all below.

        Returns: its byte offset and size. Raises: UsageError.
        """
        data, said = self._allocation(name).data, f"{name}[{index}]"
        shape, parts = data.shape, [part.strip() for part in index.split(",")]
        if not all(_INDEX.fullmatch(part) for part in parts):
            raise UsageError(f"{said}: whole numbers are expected between the brackets, for example {name}[{', '.join('0' * data.ndim)}]")
        if len(parts) > len(shape):
            raise UsageError(f"{said}: {name} has {len(shape)} dimension{'s' * (len(shape) != 1)}, {list(shape)}")
        at, size = 0, data.itemsize * math.prod(shape[len(parts) :])
        for part, extent in zip(parts, shape):
            number = int(part)
            if not -extent <= number < extent:
                raise UsageError(f"{said} is outside of {name}, whose shape is {list(shape)}")
            at = at * extent + number % extent
        return at * size, size

    def value(self, name: str, byte_offset: int, data: Array) -> str:
        """The element that a byte belongs to as a number. data: the bytes of the buffer."""
        dtype = self.dtype(name)
        if not dtype:
            return f"{int(data[byte_offset]):#04x}"
        size = DTYPES[dtype].itemsize
        start = byte_offset // size * size
        return number_text(data[start : start + size].copy().view(DTYPES[dtype]), dtype)

    def bits(self, name: str, text: str) -> bytes:
        """What a buffer's element holds if it is a number; bits after 0x.

        Raises: ValueError, OverflowError.
        """
        dtype = self.dtype(name) or "f32"
        size = DTYPES[dtype].itemsize
        if re.fullmatch(r"0x[0-9a-fA-F]+", text):
            return int(text, 16).to_bytes(max(size, len(text) // 2 - 1), "little")
        if dtype == "bf16":
            return bf16_bits([float(text)]).tobytes()
        if is_float(dtype):
            return struct.pack({"f16": "<e", "f32": "<f", "f64": "<d"}[dtype], float(text))
        return int(text).to_bytes(size, "little", signed=text.startswith("-"))


def number_text(one: Array, dtype: str) -> str:
    """An array with one element as text, with all digits that its type has."""
    if not is_float(dtype):
        return str(one[0])
    digits = {"f64": 17, "f32": 9}.get(dtype, 5)
    return f"{float(to_float64(one, dtype)[0]):.{digits}g}"


def spans_text(spans: Sequence[str], most: int = 6) -> str:
    """Several ranges as text that says when some are left out."""
    left = len(spans) - most
    return ", ".join(spans[:most]) + (f", … and {left} more" if left > 0 else "")
