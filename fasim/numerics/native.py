"""Words of memory by address, for the machine's inner loop, as plain Python; `native_numba` has the same functions for numba.

Code that uses only these functions and integer arithmetic below 2**63 runs under numba and without it. The machine keeps its state in
plain buffers, since passing dozens of numpy arrays to every function costs more than the functions do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

#: word types by the name that the functions carry: ctypes type and bits
WORDS = {
    "u8": (ctypes.c_uint8, 8),
    "u16": (ctypes.c_uint16, 16),
    "u32": (ctypes.c_uint32, 32),
    "i32": (ctypes.c_int32, 32),
    "i64": (ctypes.c_int64, 64),
}
#: the functions of the machine, in order of definition
MACHINE_FUNCTIONS: list[Callable[..., object]] = []
#: the reference machine's handlers; their "address" is the index here
REFERENCE_HANDLERS: list[Callable[[int, int, int], None]] = []


def machine_code(function: Function) -> Function:
    """Mark a function of the machine: it stays a Python function, and compiled code may call it."""
    MACHINE_FUNCTIONS.append(function)
    return function


def _make(name: str) -> tuple[Callable[[int], int], Callable[[int, int], None]]:
    ctype, _ = WORDS[name]

    def peek(address: int) -> int:
        return int(ctype.from_address(address).value)

    def poke(address: int, value: int) -> None:
        ctype.from_address(address).value = value

    return peek, poke


peek_u8, poke_u8 = _make("u8")
peek_u16, poke_u16 = _make("u16")
peek_u32, poke_u32 = _make("u32")
peek_i32, poke_i32 = _make("i32")
peek_i64, poke_i64 = _make("i64")


def copy_bytes(target: int, source: int, count: int) -> None:
    """memmove."""
    ctypes.memmove(target, source, count)


def fill_bytes(target: int, value: int, count: int) -> None:
    """memset."""
    ctypes.memset(target, value, count)


def popcount(x: int) -> int:
    """Bits set in a non-negative number."""
    return x.bit_count()


def first_bit(x: int) -> int:
    """Index of the lowest bit set; 64 for 0."""
    return (x & -x).bit_length() - 1 if x else 64


def call_handler(handler: int, registers: int, operands: int, mask: int) -> None:
    """Run a handler: an address of compiled code, or an index into REFERENCE_HANDLERS on the reference machine."""
    REFERENCE_HANDLERS[handler](registers, operands, mask)
