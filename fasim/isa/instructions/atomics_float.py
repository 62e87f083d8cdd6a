"""Floating-point atomics: add, and for vectors of half precision also min and max."""

from __future__ import annotations

from collections.abc import Callable

from fasim.isa.instructions.half import paired
from fasim.isa.instructions.memory import ATOM_DOC
from fasim.isa.table import op
from fasim.numerics import ieee, narrow
from fasim.numerics.lanes import Lanes
from fasim.numerics.narrow import BF16, F16, Format

Function = Callable[[Lanes, Lanes], Lanes]


def _half(function: str, format_: Format) -> Function:
    if function == "add":
        return lambda old, b: narrow.add(old, b, format_)
    return lambda old, b: narrow.extreme(old, b, format_, largest=function == "max")


def _declare(name: str, type_: str, register: str, function: Function, min_arch: int = 0) -> None:
    """atom.NAME.TYPE and red.NAME.TYPE."""
    for opcode in ("atom", "red"):
        op(f"{opcode}.{name}.{type_}", f"new:{register} = old:{register}, b:{register}", kind="atom", doc=ATOM_DOC, min_arch=min_arch)(
            function
        )


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


_declare("add", "f32", "f32", ieee.add)
_declare("add", "f64", "f64", ieee.add, 60)
for _count in (2, 4):
    _declare_vector("add", _count, "f32", "f32", "add.f32")
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
