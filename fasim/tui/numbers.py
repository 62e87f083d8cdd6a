"""Register values as short text."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.trace.elements import Elements
from fasim.trace.view import numbers, register_bits

Array = np.ndarray[Any, Any]
#: how values are shown: as the instruction takes them, as bits, or what 32 bits are as floats
FORMATS = ("value", "hex", "signed", "f16x2", "bf16x2", "f32")
#: types of floating-point numbers
FLOATS = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f64")
#: where whole numbers in f32 are no longer next to each other: below they may be counts, of which every digit says something
WHOLE = 1 << 24
#: elements that are read as another type's: what ldmatrix moves is most often f16
_SHOWN_AS = {"tf32": "f32", "b16": "f16"}


def lane_texts(values: Array, type_: str, form: str = "value") -> list[str]:
    """32 lanes of a register row (uint32, uint64 or bool) as text; type_: as an instruction takes it."""
    if values.dtype == np.bool_:
        return ["1" if value else "0" for value in values]
    if form in FLOATS and values.dtype.itemsize == 4:
        type_ = form
    elif form == "hex":
        digits = 2 * values.dtype.itemsize
        return [f"{int(value):0{digits}x}" for value in values]
    elif form == "signed":
        return [str(int(value)) for value in _signed(values, type_)]
    if type_ in FLOATS:
        found = numbers(values, type_).reshape(len(values), -1)
        return [",".join(short(float(number)) for number in lane) for lane in found]
    if type_.startswith("s"):
        return [str(int(value)) for value in _signed(values, type_)]
    if type_.startswith("u"):
        own = (1 << register_bits(type_, 8 * values.dtype.itemsize)) - 1
        return [str(int(value) & own) for value in values]
    return [f"{int(value):#x}" for value in values]


def texts_of(values: Array, type_: str, form: str, elements: Elements) -> list[str]:
    """32 lanes as text; 64-bit addresses of device memory by buffer and byte where values are shown as what they are."""
    texts = lane_texts(values, type_, form)
    if form != "value" or values.dtype.itemsize != 8 or type_ in FLOATS:
        return texts
    places = [elements.at(int(value)) for value in values]
    return [text if place is None else f"{place.buffer}+{place.byte_offset}" for text, place in zip(texts, places)]


def _signed(values: Array, type_: str) -> Array:
    """Registers as signed numbers: narrow ones have zeros above their own bits."""
    above = 8 * values.dtype.itemsize - register_bits(type_, 8 * values.dtype.itemsize)
    return np.asarray((values << above).view(f"i{values.dtype.itemsize}") >> above)


def element_text(bits: int, type_: str) -> str:
    """One element of a fragment; types without a number of their own as hexadecimal digits."""
    type_ = _SHOWN_AS.get(type_, type_)
    if type_ in FLOATS:
        return short(float(numbers(np.array([bits], np.uint64 if type_ == "f64" else np.uint32), type_)[0]))
    if type_[:1] in "su" and type_[1:].isdigit():
        width = int(type_[1:])
        negative = type_[0] == "s" and bits >> (width - 1) & 1
        return str(bits - (1 << width) if negative else bits)
    return f"{bits:x}"


def short(number: float) -> str:
    """A number in at most 9 characters or so: four significant digits; whole numbers below WHOLE in full."""
    if number.is_integer() and abs(number) < WHOLE:
        return f"{number:.0f}"
    text = f"{number:.4g}"
    mantissa, mark, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if mark else text
