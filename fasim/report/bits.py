"""Outputs bit for bit: whether two arrays are equal, and if not, where and how far apart."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.numerics.dtypes import DTYPES, is_float, to_float64
from fasim.report.measured import Output

Array = np.ndarray[Any, Any]
CONTRACTED = "contracted"
#: differing elements that are named
SHOWN = 4
#: elements compared at a time
_CHUNK = 1 << 20
_MANTISSA_BITS = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


@dataclass(frozen=True)
class BitDifference:
    """An element that differs; values as numbers, bits as hexadecimal patterns.

    distance: how many numbers of the type lie between, as `BitsComparison` says; None if one of them is a NaN.
    """

    index: tuple[int, ...]
    simulated: float | int
    measured: float | int
    simulated_bits: str
    measured_bits: str
    distance: int | None


@dataclass(frozen=True)
class BitsComparison:
    """One output of the simulation against the GPU's, bit for bit.

    equal: whether every bit is. differing: elements that are not, None if only hashes are known. largest_distance: over the differing
    elements without a NaN, in ulp for floating point (numbers of the type from one to the other, so that +0 and -0 are 0 apart, though
    their bits differ), the absolute difference for integers; None if there is no such element. nan_payloads: differing elements that are
    NaN on both sides. zero_signs: differing elements that are zero on both sides. first: the first differing elements.
    contracted: it differs as PTX stands, and is equal once the additions are contracted that are contracted in the machine code.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    elements: int
    equal: bool
    by_hash: bool
    differing: int | None = None
    largest_distance: int | None = None
    nan_payloads: int = 0
    zero_signs: int = 0
    first: tuple[BitDifference, ...] = ()
    contracted: bool = False

    @property
    def verdict(self) -> str:
        """`equal`, `contracted` or `DIFFERENT`."""
        return "equal" if self.equal else CONTRACTED if self.contracted else "DIFFERENT"


def sha256_of(values: Array) -> str:
    """SHA-256 of an array's bytes, in C order, little-endian."""
    return hashlib.sha256(_little_endian(values).reshape(-1).view(np.uint8).data).hexdigest()


def compare_output(values: Array, dtype: str, measured: Output) -> BitsComparison:
    """Compare a simulated array with what the GPU returned; where only the GPU's hash is known, by hashes.

    Raises: UsageError if type or shape differ, so that there is nothing to compare.
    """
    if dtype != measured.dtype or tuple(values.shape) != tuple(measured.shape):
        found, wanted = f"{dtype}{list(values.shape)}", f"{measured.dtype}{list(measured.shape)}"
        raise UsageError(f"output {measured.name}: the simulation has {found}, the GPU {wanted}: these are not runs of the same problem")
    if measured.values is not None:
        return compare_bits(measured.name, dtype, values, measured.values)
    equal = sha256_of(values) == measured.sha256
    return BitsComparison(measured.name, dtype, tuple(values.shape), int(values.size), equal, by_hash=True, differing=0 if equal else None)


def compare_bits(name: str, dtype: str, simulated: Array, measured: Array, *, shown: int = SHOWN) -> BitsComparison:
    """Compare two arrays of one type (a short name; bf16 as uint16 patterns) and one shape.

    Raises: UsageError if they are not of this type, or their shapes differ.
    """
    if dtype not in DTYPES:
        raise UsageError(f"output {name}: there is no element type {dtype!r}; known: {', '.join(DTYPES)}")
    if simulated.shape != measured.shape:
        raise UsageError(f"output {name}: the simulation has shape {list(simulated.shape)}, the GPU {list(measured.shape)}")
    for values in (simulated, measured):
        if values.dtype.newbyteorder("=") != DTYPES[dtype]:
            raise UsageError(f"output {name}: {dtype} is held in {DTYPES[dtype]}, got {values.dtype}")
    a, b = _patterns(simulated).reshape(-1), _patterns(measured).reshape(-1)
    at = np.flatnonzero(a != b)
    largest, payloads, zeros = None, 0, 0
    for start in range(0, at.size, _CHUNK):
        part = at[start : start + _CHUNK]
        distances, nan = _distances(a[part], b[part], dtype)
        payloads += int(nan.all(axis=0).sum())
        known = distances[~nan.any(axis=0)]
        if known.size:
            largest = max(largest or 0, int(known.max()))
            zeros += int((known == 0).sum())
    first = tuple(_difference(simulated, measured, a, b, int(i), dtype) for i in at[:shown])
    shape, size = tuple(simulated.shape), int(simulated.size)
    return BitsComparison(name, dtype, shape, size, not at.size, False, int(at.size), largest, payloads, zeros, first)


def _little_endian(values: Array) -> Array:
    return np.ascontiguousarray(values.astype(values.dtype.newbyteorder("<"), copy=False))


def _patterns(values: Array) -> Array:
    """The bits as unsigned integers."""
    contiguous = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    return contiguous.view(f"u{values.dtype.itemsize}")


def _distances(a: Array, b: Array, dtype: str) -> tuple[Array, Array]:
    """Distance by element as an unsigned integer, and for both sides where the NaNs are."""
    if is_float(dtype):
        nan = np.stack([_is_nan(a, dtype), _is_nan(b, dtype)])
        return _apart(_ordered(a), _ordered(b)), nan
    if dtype[0] == "i":
        top = a.dtype.type(1 << (8 * a.dtype.itemsize - 1))
        a, b = a ^ top, b ^ top  # in the order of the signed numbers
    return _apart(a.astype(np.uint64), b.astype(np.uint64)), np.zeros((2, a.size), np.bool_)


def _ordered(bits: Array) -> Array:
    """Sign and magnitude as integers in the order of the numbers; both zeros are the same one."""
    width = 8 * bits.dtype.itemsize
    wide = bits.astype(np.uint64)
    magnitude = wide & np.uint64((1 << (width - 1)) - 1)
    middle = np.uint64(1 << 63)
    return np.where(wide >> np.uint64(width - 1), middle - magnitude, middle + magnitude)


def _apart(a: Array, b: Array) -> Array:
    return np.where(a > b, a - b, b - a)


def _is_nan(bits: Array, dtype: str) -> Array:
    width, mantissa = 8 * bits.dtype.itemsize, _MANTISSA_BITS[dtype]
    infinity = ((1 << (width - 1)) - 1) >> mantissa << mantissa
    found: Array = (bits & bits.dtype.type((1 << (width - 1)) - 1)) > bits.dtype.type(infinity)
    return found


def _difference(simulated: Array, measured: Array, a: Array, b: Array, i: int, dtype: str) -> BitDifference:
    distances, nan = _distances(a[i : i + 1], b[i : i + 1], dtype)
    digits = 2 * a.dtype.itemsize
    return BitDifference(
        tuple(int(n) for n in np.unravel_index(i, simulated.shape)),
        _number(simulated.reshape(-1)[i], dtype),
        _number(measured.reshape(-1)[i], dtype),
        f"0x{int(a[i]):0{digits}x}",
        f"0x{int(b[i]):0{digits}x}",
        None if nan.any() else int(distances[0]),
    )


def _number(value: Any, dtype: str) -> float | int:
    if is_float(dtype):
        return float(to_float64(np.asarray(value).reshape(1), dtype)[0])
    return int(value)
