"""Element types by their short names; bf16 arrays hold bit patterns as uint16, since numpy has no such type."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

#: short name to the numpy type that holds it
DTYPES: dict[str, np.dtype[Any]] = {
    **{f"f{8 * size}": np.dtype(f"f{size}") for size in (2, 4, 8)},
    "bf16": np.dtype(np.uint16),
    **{f"{kind}{8 * size}": np.dtype(f"{kind}{size}") for kind in "iu" for size in (1, 2, 4, 8)},
    "bool": np.dtype(np.bool_),
}


def short_name(dtype: np.dtype[Any]) -> str:
    """The short name of a numpy type; numpy's own name where there is none."""
    for name, known in DTYPES.items():
        if known == dtype and name != "bf16":
            return name
    return str(dtype)


def is_float(name: str) -> bool:
    """Whether a short name stands for a floating-point type."""
    return name in ("f16", "bf16", "f32", "f64")


def bf16_bits(values: Any) -> Array:
    """Bit patterns of the bf16 numbers nearest to `values`, ties to even; NaN becomes 0x7fff."""
    exact = np.asarray(values, np.float64)
    with np.errstate(all="ignore"):
        # 8 significant bits, at least 2^-133: the quantum of the smallest exponent
        _, exponent = np.frexp(exact)
        quantum = np.maximum(exponent - 8, -133)
        rounded = np.ldexp(np.rint(np.ldexp(exact, -quantum)), quantum)
        bits = (np.where(np.isfinite(exact), rounded, exact).astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return np.where(np.isnan(exact), np.uint16(0x7FFF), bits)


def to_float64(values: Array, name: str) -> Array:
    """The numbers that an array of type `name` holds, in float64."""
    with np.errstate(invalid="ignore"):  # signalling NaNs
        if name == "bf16":
            return (values.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
        return values.astype(np.float64)
