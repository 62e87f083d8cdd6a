"""Register values as short text."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.numerics.dtypes import to_float64
from fasim.trace.view import numbers

Array = np.ndarray[Any, Any]
#: how values are shown: as the instruction takes them, as bits, or what 32 bits are as floats
FORMATS = ("value", "hex", "signed", "f16x2", "bf16x2", "f32")
_FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
_WIDTHS = {"f16": np.uint16, "bf16": np.uint16, "f32": np.float32, "f64": np.float64}


def lane_texts(values: Array, type_: str, form: str = "value") -> list[str]:
    """32 lanes of a register row (uint32, uint64 or bool) as text; type_: as an instruction takes it."""
    if values.dtype == np.bool_:
        return ["1" if value else "0" for value in values]
    if form in _FLOATS and values.dtype.itemsize == 4:
        type_ = form
    elif form == "hex":
        digits = 2 * values.dtype.itemsize
        return [f"{int(value):0{digits}x}" for value in values]
    elif form == "signed":
        return [str(int(value)) for value in values.view(f"i{values.dtype.itemsize}")]
    if type_ in _FLOATS:
        found = numbers(values, type_).reshape(len(values), -1)
        return [",".join(short(float(number)) for number in lane) for lane in found]
    if type_.startswith("s"):
        return [str(int(value)) for value in values.view(f"i{values.dtype.itemsize}")]
    if type_.startswith("u"):
        return [str(int(value)) for value in values]
    return [f"{int(value):x}" for value in values]


def element_text(bits: int, type_: str) -> str:
    """One element of a fragment; types without a number of their own as hexadecimal."""
    if type_ in _WIDTHS:
        return short(_decode(bits, type_))
    if type_ == "tf32":
        return short(_decode(bits, "f32"))
    if type_ == "b16":
        return short(_decode(bits, "f16"))
    if type_[:1] in "su" and type_[1:].isdigit():
        width = int(type_[1:])
        negative = type_[0] == "s" and bits >> (width - 1) & 1
        return str(bits - (1 << width) if negative else bits)
    return f"{bits:x}"


def short(number: float) -> str:
    """A number in at most 8 characters or so: four significant digits."""
    text = f"{number:.4g}"
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else text


def _decode(bits: Any, type_: str) -> float:
    width = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}[type_]
    stored = np.array([int(bits)], width)
    return float(to_float64(stored.view({"f16": np.float16, "bf16": np.uint16}.get(type_, _WIDTHS[type_])), type_)[0])
