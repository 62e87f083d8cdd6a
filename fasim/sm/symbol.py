"""Variables of a module, read and set from outside of kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.toolchain.signature import bits_name, element, numpy_name, refuses

Array = np.ndarray[Any, Any]


class Symbol:
    """A __device__ or __constant__ variable of a module; its contents last over launches."""

    def __init__(self, name: str, data: Array, element: str = "") -> None:
        self.name, self._data, self._element = name, data, element
        self._dtype = numpy_name(element) if element else ""

    def __repr__(self) -> str:
        element = f" of {self._dtype}" if self._dtype else ""
        return f"<Symbol {self.name}: {self.size_bytes} bytes{element}>"

    @property
    def size_bytes(self) -> int:
        """Size of the variable."""
        return int(self._data.nbytes)

    @property
    def dtype(self) -> str:
        """The numpy name of the element type as the source declares it, "" where that is not known."""
        return self._dtype

    def read(self, dtype: Any = np.uint8, shape: int | tuple[int, ...] | None = None) -> Array:
        """A copy of the contents as an array of `dtype`.

        Raises: UsageError if they are no such array.
        """
        try:
            values: Array = self._data.view(dtype).copy()
            return values if shape is None else values.reshape(shape)
        except (TypeError, ValueError) as error:
            what = f"symbol {self.name} of {self.size_bytes} bytes"
            raise UsageError(f"{what} cannot be read as {dtype} of shape {shape}: {error}") from error

    def write(self, values: Any) -> None:
        """Set the contents from the start on; numbers without a dtype take the variable's element type.

        Raises: UsageError if the values are larger than the variable, or not plain numbers.
        """
        if not isinstance(values, (np.ndarray, np.generic)) and not hasattr(values, "__array__"):
            values = self._converted(values)
        raw = np.asarray(values)
        if raw.dtype.hasobject:
            raise UsageError(f"symbol {self.name} takes numbers, got {type(values).__name__}")
        if self._element and refuses(element(self._element), raw.dtype.kind, raw.dtype.itemsize):
            wanted = f".astype(np.{self._dtype}) or " if self._dtype else ""
            bits = f".view(np.{bits_name(self._element)})"
            raise UsageError(f"symbol {self.name} has {self._element} elements, got {raw.dtype}: write {wanted}{bits}, which passes bits")
        raw = np.ascontiguousarray(raw).reshape(-1).view(np.uint8)
        if raw.nbytes > self._data.nbytes:
            raise UsageError(f"symbol {self.name} holds {self._data.nbytes} bytes, got {raw.nbytes}")
        self._data[: raw.nbytes] = raw

    def _converted(self, values: Any) -> Array:
        if not self._dtype:
            raise UsageError(
                f"the element type of symbol {self.name} is not known: write an array with a dtype, np.array(values, np.float32)"
            )
        try:
            plain = np.array(values)
            with np.errstate(over="raise", invalid="raise"):
                converted = plain.astype(self._dtype)
        except (TypeError, ValueError, OverflowError, FloatingPointError) as error:
            raise UsageError(f"symbol {self.name} takes {self._dtype} numbers: {error}") from error
        if plain.dtype.kind not in "biuf" or (converted.dtype.kind != "f" and not np.array_equal(converted, plain)):
            raise UsageError(f"symbol {self.name} takes {self._dtype} numbers, which {values!r} are not")
        return converted
