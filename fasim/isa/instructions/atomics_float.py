"""Floating-point atomics: add, and for vectors of half precision also min and max.

The units that serve global memory compute in their own way: `atom.add.f32:global` and the like are those rows. What counts is where the
address lies, also if it is a generic one.
Source: measured on an H200.
"""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.instructions.half import paired
from fasim.isa.instructions.memory import ATOM_DOC
from fasim.isa.table import op
from fasim.numerics import ieee, narrow
from fasim.numerics.lanes import Lanes, where
from fasim.numerics.narrow import BF16, F16, Format

Function = Callable[[Lanes, Lanes], Lanes]


def _half(function: str, format_: Format) -> Function:
    if function == "add":
        return lambda old, b: narrow.add(old, b, format_)
    return lambda old, b: narrow.extreme(old, b, format_, largest=function == "max")


def _declare(name: str, type_: str, register: str, function: Function, min_arch: int = 0, shape: str = "") -> None:
    """atom.NAME.TYPE and red.NAME.TYPE."""
    for opcode in ("atom", "red"):
        op(
            f"{opcode}.{name}.{type_}{shape}",
            f"new:{register} = old:{register}, b:{register}",
            kind="atom",
            doc=ATOM_DOC,
            min_arch=min_arch,
            cases=_CASES.get(type_ + shape, ()) if name == "add" else (),
        )(function)


def _declare_vector(name: str, count: int, type_: str, register: str, scalar: str) -> None:
    for opcode in ("atom", "red"):
        op(
            f"{opcode}.{name}.v{count}.{type_}",
            f"new:{register}*{count} = old:{register}*{count}, b:{register}*{count}",
            kind="atom",
            doc=ATOM_DOC,
            min_arch=90,
            scalar=f"{opcode}.{scalar}",
        )(ieee.add)


def add(old: Lanes, b: Lanes) -> Lanes:
    """In shared memory: the instruction add, b first (which tells when both are NaN)."""
    return ieee.add(b, old)


def add_f32_global(old: Lanes, b: Lanes) -> Lanes:
    """In global memory: subnormal operands and results are flushed."""
    return ieee.flush(ieee.add(ieee.flush(old), ieee.flush(b)))


def add_f64_global(old: Lanes, b: Lanes) -> Lanes:
    """In global memory: a NaN, b's before the old one, is handed on as it is, signalling or not."""
    return where(ieee.is_nan(b), b, where(ieee.is_nan(old), old, ieee.add(old, b)))


_SIGNALLING, _QUIET = 0x7FF0000000000001, 0xFFF8000000000002
_CASES = {
    "f32": [((1, 2), 3), ((0x3F800000, 0x3F800000), 0x40000000)],
    "f32:global": [((1, 2), 0), ((0x00C00000, 0x80800000), 0), ((0x80000001, 0x80000000), 0x80000000), ((0xFFC00000, 1), 0x7FFFFFFF)],
    "f64": [((_SIGNALLING, _QUIET), _SIGNALLING | 1 << 51), ((_SIGNALLING, 5), _SIGNALLING | 1 << 51), ((1, 2), 3)],
    "f64:global": [((_SIGNALLING, _QUIET), _QUIET), ((_SIGNALLING, 5), _SIGNALLING), ((1, 2), 3)],
}

_declare("add", "f32", "f32", add)
_declare("add", "f32", "f32", add_f32_global, 0, ":global")
_declare("add", "f64", "f64", add, 60)
_declare("add", "f64", "f64", add_f64_global, 60, ":global")
for _count in (2, 4):
    _declare_vector("add", _count, "f32", "f32", "add.f32:global")
for _format, _type, _arch in ((F16, "f16", 70), (BF16, "bf16", 90)):
    for _name in ("add", "min", "max"):
        _function = _half(_name, _format)
        # min and max exist only as vectors, which are done element by element
        _declare(_name, _type, "b16", _function, _arch if _name == "add" else 90)
        _declare(_name, f"{_type}x2", "b32", paired(_function), (60 if _format is F16 else 90) if _name == "add" else 90)
        for _count in (2, 4, 8):
            _declare_vector(_name, _count, _type, "b16", f"{_name}.{_type}")
        for _count in (2, 4):
            _declare_vector(_name, _count, f"{_type}x2", "b32", f"{_name}.{_type}x2")
