"""Where parameters stand: of a kernel in param memory, of a device function in its frame."""

from __future__ import annotations

from fasim.isa.machine import align_up
from fasim.isa.program import Parameter
from fasim.ptx.tree import TYPE_BITS, CallPrototype, Function, RegDecl, Variable


def slot_bytes(formal: Variable | RegDecl) -> int:
    """What a parameter or returned value takes in a frame."""
    if isinstance(formal, RegDecl):
        return max(4, TYPE_BITS[formal.type] * formal.vector // 8)
    return formal.size_bytes


def formal_layout(function: Function | CallPrototype) -> tuple[list[tuple[int, int]], list[tuple[int, int]], int]:
    """Where a function's frame holds returned values and parameters: (offset, bytes) of each, and where they end."""
    at, places = 0, []
    for formal in (*function.returns, *function.params):
        size = slot_bytes(formal)
        at = align_up(at, size if isinstance(formal, RegDecl) else formal.align_bytes)
        places.append((at, size))
        at += size
    return places[: len(function.returns)], places[len(function.returns) :], at


def kernel_parameters(kernel: Function) -> list[Parameter]:
    """A kernel's parameters, and where each stands in param memory."""
    result, offset = [], 0
    for param in kernel.params:
        assert isinstance(param, Variable)
        offset = align_up(offset, param.align_bytes)
        type_ = param.type if not param.dims else f"b8[{param.size_bytes}]"
        result.append(Parameter(param.name, type_, offset, param.size_bytes, param.align_bytes))
        offset += param.size_bytes
    return result
