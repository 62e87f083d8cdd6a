"""Initialisers of variables: braces to a flat list, the list to bytes and relocations.

Source: PTX ISA, "Initializers"; ptxas 13.0 for which constants fit which types.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from fasim.ptx.constants import parse_constant, parse_integer, starts_constant
from fasim.ptx.lexer import Cursor
from fasim.ptx.tree import TYPE_BITS, AddressOf, FloatImmediate, Immediate, InitValue, Variable

_NO_INITIALIZER = frozenset({"f16", "bf16", "f16x2", "bf16x2", "pred", "texref", "samplerref", "surfref", "b128"})
_MASKS = frozenset(0xFF << shift for shift in range(0, 64, 8))


@dataclass(frozen=True, slots=True)
class Relocation:
    """Bytes of a variable that hold (a part of) an address known only when symbols are placed.

    The value is address + addend; with a mask, (address + addend) & mask shifted right until the mask's lowest bit is bit 0.
    """

    offset_bytes: int
    size_bytes: int
    address: AddressOf


def relocated_bytes(relocation: Relocation, address: int) -> bytes:
    """What stands at a relocation when its symbol is at `address`."""
    value, mask, size = address + relocation.address.addend, relocation.address.mask, relocation.size_bytes
    if mask is not None:
        value = (value & mask) >> ((mask & -mask).bit_length() - 1)
    return (value & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def parse_initializer(
    cursor: Cursor, type_: str, vector: int, dims: tuple[int | None, ...], known: Mapping[str, str]
) -> tuple[tuple[InitValue, ...], tuple[int | None, ...]]:
    """Read what follows `=`.

    Returns: the elements, and the dimensions with an unsized first one counted.
    Raises: PtxError for elements that are too many, of the wrong type, or addresses of unknown symbols.
    """
    if type_ in _NO_INITIALIZER:
        cursor.source.fail(cursor.token.offset, f"a variable of type .{type_} cannot have an initialiser")
    reader = _Reader(cursor, type_, known)
    shape = (*dims, vector) if vector > 1 else dims
    if not shape:
        reader.scalar()
        return tuple(reader.values), dims
    count = reader.braces(shape, vector > 1)
    if dims and dims[0] is None:
        dims = (count, *dims[1:])
    return tuple(reader.values), dims


class _Reader:
    """Collects the elements of one initialiser."""

    def __init__(self, cursor: Cursor, type_: str, known: Mapping[str, str]) -> None:
        self.cursor = cursor
        self.type = type_
        self.known = known
        self.size = TYPE_BITS[type_] // 8
        self.values: list[InitValue] = []

    def braces(self, shape: tuple[int | None, ...], complete: bool) -> int:
        """Read `{...}` of the given shape and return how many entries it has; the innermost braces are full if `complete`.

        As ptxas does, elements lie one after the other in the order written: a row that is too short is not filled up.
        """
        cursor = self.cursor
        cursor.expect("{", "of the initialiser")
        count = 0
        while not cursor.at("}"):
            if count:
                cursor.expect(",", "or '}' in the initialiser")
            if shape[0] is not None and count == shape[0]:
                cursor.source.fail(cursor.token.offset, f"the initialiser has more than the {shape[0]} elements of its dimension")
            if len(shape) > 1:
                self.braces(shape[1:], complete)
            else:
                self.scalar()
            count += 1
        if complete and len(shape) == 1 and count != shape[0]:
            cursor.source.fail(cursor.token.offset, f"found {count} elements of a vector, expected {shape[0]}")
        cursor.next()
        return count

    def scalar(self) -> None:
        """Read one element."""
        cursor = self.cursor
        start = cursor.token
        value: Immediate | FloatImmediate | AddressOf
        if starts_constant(cursor):
            constant = parse_constant(cursor)
            if isinstance(constant, Immediate) and cursor.accept("("):
                self._check_mask(constant.value, start.offset)
                value = self._address(constant.value)
                cursor.expect(")", "after the masked address")
            else:
                self._check(constant, start.offset)
                value = constant
        elif cursor.kind == "name":
            value = self._address(None)
            if self.size < 4 or self.type[0] not in "bu":
                cursor.source.fail(start.offset, f"an address does not fit type .{self.type}: expected .u32, .b32, .u64 or .b64, or a mask")
        else:
            cursor.unexpected(f"an initial value of type .{self.type}")
        self.values.append(InitValue(len(self.values) * self.size, self.size, value))

    def _check(self, constant: Immediate | FloatImmediate, offset: int) -> None:
        kind = self.type[0]
        is_float = isinstance(constant, FloatImmediate)
        fits = kind != "f" if not is_float else kind == "f" or self.type in ("b32", "b64")
        if not fits:
            what = "a floating-point" if is_float else "an integer"
            self.cursor.source.fail(offset, f"{what} constant cannot initialise type .{self.type}")

    def _check_mask(self, mask: int, offset: int) -> None:
        if self.size != 1 or mask not in _MASKS:
            self.cursor.source.fail(offset, f"the mask {mask:#x} is not valid: expected one byte such as 0xff00, for a variable of bytes")

    def _address(self, mask: int | None) -> AddressOf:
        cursor = self.cursor
        generic = cursor.at("generic")
        if generic:
            cursor.next()
            cursor.expect("(", "after generic")
        token = cursor.expect_name("the name of a variable or function")
        if token.text not in self.known:
            cursor.source.fail(token.offset, f"{token.text!r} is not declared before: an initialiser takes module variables and functions")
        if generic:
            cursor.expect(")", "after the name")
        addend = parse_integer(cursor, "offset") if cursor.accept("+") else 0
        return AddressOf(token.text, addend, generic, mask)


def initial_bytes(variable: Variable) -> tuple[bytes, list[Relocation]]:
    """The initial contents of a variable, zero where nothing is written, and the places that addresses go to."""
    data = bytearray(variable.size_bytes)
    relocations = []
    for item in variable.initializer or ():
        end = item.offset_bytes + item.size_bytes
        if isinstance(item.value, AddressOf):
            relocations.append(Relocation(item.offset_bytes, item.size_bytes, item.value))
        elif isinstance(item.value, Immediate):
            data[item.offset_bytes : end] = (item.value.value & ((1 << 64) - 1)).to_bytes(8, "little")[: item.size_bytes]
        else:
            data[item.offset_bytes : end] = _float_bytes(item.value, item.size_bytes)
    return bytes(data), relocations


def _float_bytes(constant: FloatImmediate, size_bytes: int) -> bytes:
    # ptxas rounds an f64 constant to f32, but stores the bits of a 0f constant as they are, zero-extended.
    raw = constant.bits.to_bytes(8, "little")
    if constant.type == "f32" or size_bytes == 8:
        return raw[:size_bytes]
    with np.errstate(all="ignore"):
        return np.frombuffer(raw, "<f8").astype("<f4").tobytes()
