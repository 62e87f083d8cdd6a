"""Arrays that nobody has written yet: which of their bytes are undefined, over launches and over what the host does with them."""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.sm.cta import FRESH_BYTE

Array = np.ndarray[Any, Any]


@dataclass
class _Fresh:
    """An array that was made uninitialised: whether it still lives, its size.

    undefined: its undefined bits by byte, None until somebody asks. seen: its bytes as kernels last left them, None while they are fresh.
    """

    alive: weakref.ref[Any]
    size_bytes: int
    undefined: Array | None = None
    seen: Array | None = None

    def bits(self) -> Array:
        """The undefined bits, at first all."""
        if self.undefined is None:
            self.undefined = np.full(self.size_bytes, 0xFF, np.uint8)
        return self.undefined


_LOCK = threading.Lock()
#: by the address of the first byte
_FRESH: dict[int, _Fresh] = {}


class FreshArray(np.ndarray[Any, Any]):
    """A numpy array of `fasim.empty`: what is written through it, or through views of it, counts as defined."""

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._define(key)

    def fill(self, value: Any) -> None:
        """Write one value everywhere."""
        super().fill(value)
        self._define(...)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **keywords: Any) -> Any:
        if out is not None:
            keywords["out"] = tuple(_plain(each) for each in out)
        result = getattr(ufunc, method)(*(_plain(each) for each in inputs), **keywords)
        written = out if out is not None else inputs[:1] if method == "at" else ()
        for each in written:
            if isinstance(each, FreshArray):
                each._define(...)
        if out is not None:
            return out[0] if len(out) == 1 else out
        return result

    def _define(self, key: Any) -> None:
        """Note that elements have been written."""
        start = int(self.ctypes.data)
        with _LOCK:
            found = _find(start)
            if found is not None and self.itemsize:
                base, fresh = found
                as_bytes = np.dtype((np.void, self.itemsize))
                elements: Array = np.ndarray(self.shape, as_bytes, fresh.bits().data, start - base, self.strides)
                elements[key] = np.zeros((), as_bytes)


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, FreshArray) else value


def _find(start: int) -> tuple[int, _Fresh] | None:
    """The live fresh array that an address lies in, with its own address."""
    for base, fresh in _FRESH.items():
        if base <= start < base + fresh.size_bytes and fresh.alive() is not None:
            return base, fresh
    return None


def empty(shape: int | tuple[int, ...], dtype: Any = np.float32) -> Array:
    """An uninitialised array: every byte is 0xff (a NaN, -1), so that results which were never written show.

    Checked launches know that its bytes are undefined until a kernel writes them, or the host writes something else there.
    """
    owner = np.empty(shape, dtype)  # what all views keep alive
    result, data = owner.view(FreshArray), owner.reshape(-1).view(np.uint8)
    data[...] = FRESH_BYTE
    if result.nbytes:
        with _LOCK:
            for key in [key for key, fresh in _FRESH.items() if fresh.alive() is None]:
                del _FRESH[key]
            _FRESH[int(result.ctypes.data)] = _Fresh(weakref.ref(owner), result.nbytes)
    return result


def undefined_bits(array: Array, *, checked: bool) -> Array | None:
    """A byte of undefined bits for each byte of an array, None if all are defined.

    What differs from what kernels left was written by somebody else. checked: False means that a launch comes whose writes nobody sees,
    so that the whole array counts as defined from now on.
    """
    start = int(array.ctypes.data)
    with _LOCK:
        found = _find(start)
        if found is None:
            return None
        base, fresh = found
        if not checked:
            del _FRESH[base]
            return None
        part = slice(start - base, start - base + array.nbytes)
        bits = fresh.bits()[part]
        bits[np.asarray(array).reshape(-1).view(np.uint8) != (FRESH_BYTE if fresh.seen is None else fresh.seen[part])] = 0
        return bits if bits.any() else None


def launched(array: Array) -> None:
    """A checked launch is over: remember what it left in an array."""
    start = int(array.ctypes.data)
    with _LOCK:
        found = _find(start)
        if found is not None and found[1].undefined is not None:
            base, fresh = found
            if fresh.seen is None:
                fresh.seen = np.full(fresh.size_bytes, FRESH_BYTE, np.uint8)
            fresh.seen[start - base : start - base + array.nbytes] = np.asarray(array).reshape(-1).view(np.uint8)
