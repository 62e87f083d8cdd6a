"""Handlers: the code of a register-only instruction for one warp, from its row, for both machines.

A handler gets the register file of the warp, its operands and the lanes that execute. Registers are rows of 32: 128 bytes for up to
32 bits, 256 bytes for 64 bits, a 4-byte mask for a predicate. An operand is the byte offset of its row; bit 0 of a predicate's offset
means "not".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.isa.machine import ROW_BYTES, bank_of
from fasim.isa.table import Arg, Row
from fasim.numerics.lanes import Lanes, const, width
from fasim.numerics.lanes.numpy_backend import BACKEND, DTYPES

FULL_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class HandlerKey:
    """What one handler is made from: a row's name and its immediates. shadow: the one for undefined bits (see fasim.warp.shadow)."""

    name: str
    immediates: tuple[int, ...] = ()
    shadow: bool = False

    @property
    def symbol(self) -> str:
        """The name of the compiled function."""
        return ("s." if self.shadow else "h.") + self.name + "".join(f"#{i:x}" for i in self.immediates)


def apply(row: Row, immediates: tuple[int, ...], load: Callable[[Arg, int], Lanes], active: Lanes) -> list[Lanes]:
    """Run a row's semantics on operands fetched by `load(arg, operand_number)`; the results in order, vectors flattened."""
    number, immediate = sum(max(a.count, 1) for a in row.dests), iter(immediates)
    values: list[Any] = []
    for arg in row.sources:
        if arg.name == "active":
            values.append(active)
        elif arg.type_ == "imm":
            values.append(next(immediate))
        elif arg.count:
            values.append(tuple(load(arg, number + i) for i in range(arg.count)))
            number += arg.count
        else:
            values.append(load(arg, number))
            number += 1
    assert row.semantics is not None
    result = row.semantics(*values)
    results = [result] if len(row.dests) == 1 else list(result)
    flat: list[Lanes] = []
    for arg, value in zip(row.dests, results, strict=True):
        parts = list(value) if arg.count else [value]
        for part in parts:
            if not isinstance(part, Lanes):
                part = const(part, like=active, type_=arg.type_)
            if part.type != arg.type_ and not (part.type[0] in "us" and arg.type_[0] in "us" and part.type[1:] == arg.type_[1:]):
                raise TypeError(f"{row.name}: the semantics gives {part.type} for {arg.name}:{arg.type_}")
            flat.append(part)
    return flat


def row_bytes(type_: str) -> int:
    """Bytes of a register row for values of a type."""
    return ROW_BYTES[bank_of(width(type_))]


def read_row(registers: Any, offset: int, type_: str) -> Any:
    """The 32 values of a register row; of a predicate as it is, whatever bit 0 of the offset says."""
    if type_ == "pred":
        word = int(registers[offset & ~1 : (offset & ~1) + 4].view(np.uint32)[0])
        return (word >> np.arange(32)) & 1 == 1
    raw = registers[offset : offset + row_bytes(type_)].view(np.uint64 if width(type_) == 64 else np.uint32)
    if width(type_) < 32:
        raw = raw.astype(f"u{width(type_) // 8}")
    return raw.copy().view(DTYPES[type_])


def write_row(registers: Any, offset: int, type_: str, values: Any, mask: int) -> None:
    """Change a register row in the lanes of the mask; what is narrower than the register is extended by zeros."""
    if type_ == "pred":
        old = registers[offset : offset + 4].view(np.uint32)
        new = sum(1 << i for i in range(32) if values[i])
        old[0] = (int(old[0]) & ~mask | new & mask) & FULL_MASK
        return
    size = width(type_)
    lanes = (mask >> np.arange(32)) & 1 == 1
    raw = np.ascontiguousarray(values).view(f"u{size // 8}").astype(np.uint64 if size == 64 else np.uint32)
    target = registers[offset : offset + row_bytes(type_)].view(raw.dtype)
    target[lanes] = raw[lanes]


def reference_handler(row: Row, immediates: tuple[int, ...]) -> Callable[[Any, Any, int], None]:
    """The handler on numpy: `f(registers: uint8[...], operands: int32[...], mask: int)`."""
    dest_args = [arg for arg in row.dests for _ in range(max(arg.count, 1))]

    def handler(registers: Any, operands: Any, mask: int) -> None:
        active = Lanes(BACKEND, (mask >> np.arange(32)) & 1 == 1, "pred")

        def load(arg: Arg, number: int) -> Lanes:
            offset = int(operands[number])
            raw = read_row(registers, offset, arg.type_)
            return Lanes(BACKEND, ~raw if arg.type_ == "pred" and offset & 1 else raw, arg.type_)

        for number, (arg, value) in enumerate(zip(dest_args, apply(row, immediates, load, active))):
            write_row(registers, int(operands[number]), arg.type_, value.raw, mask)

    return handler
