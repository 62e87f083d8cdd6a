"""Words of memory by address, for the machine's inner loop: each function exists twice, as a numba intrinsic and as plain Python.

Code that uses only these functions and integer arithmetic below 2**63 runs under numba and without it. The machine keeps its state in
plain buffers, since passing dozens of numpy arrays to every function costs more than the functions do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

#: marks a function of the machine: it stays a Python function, and compiled code may call it
machine_code = register_jitable

_WORDS: dict[str, tuple[Any, int]] = {
    "u8": (ctypes.c_uint8, 8),
    "u16": (ctypes.c_uint16, 16),
    "u32": (ctypes.c_uint32, 32),
    "i32": (ctypes.c_int32, 32),
    "i64": (ctypes.c_int64, 64),
}


def _make(name: str) -> tuple[Callable[[int], int], Callable[[int, int], None]]:
    ctype, bits = _WORDS[name]
    signed = name[0] == "i"

    def peek(address: int) -> int:
        return int(ctype.from_address(address).value)

    def poke(address: int, value: int) -> None:
        ctype.from_address(address).value = value

    @intrinsic
    def native_peek(typingctx, address):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            word = ir.IntType(bits)
            pointer = builder.inttoptr(args[0], word.as_pointer())
            value = builder.load(pointer, align=1)
            i64 = ir.IntType(64)
            return value if bits == 64 else (builder.sext if signed else builder.zext)(value, i64)

        return types.int64(types.int64), codegen

    @intrinsic
    def native_poke(typingctx, address, value):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            word = ir.IntType(bits)
            pointer = builder.inttoptr(args[0], word.as_pointer())
            builder.store(args[1] if bits == 64 else builder.trunc(args[1], word), pointer, align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    @overload(peek, inline="never")
    def _(address):  # type: ignore[no-untyped-def]
        return lambda address: native_peek(address)

    @overload(poke, inline="never")
    def _(address, value):  # type: ignore[no-untyped-def]
        return lambda address, value: native_poke(address, value)

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


@intrinsic
def _native_copy(typingctx, target, source, count):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        byte = ir.IntType(8).as_pointer()
        cgutils.raw_memmove(builder, builder.inttoptr(args[0], byte), builder.inttoptr(args[1], byte), args[2], 1, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def _native_fill(typingctx, target, value, count):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        pointer = builder.inttoptr(args[0], ir.IntType(8).as_pointer())
        cgutils.memset(builder, pointer, args[2], builder.trunc(args[1], ir.IntType(8)))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@overload(copy_bytes)
def _(target, source, count):  # type: ignore[no-untyped-def]
    return lambda target, source, count: _native_copy(target, source, count)


@overload(fill_bytes)
def _(target, value, count):  # type: ignore[no-untyped-def]
    return lambda target, value, count: _native_fill(target, value, count)


def popcount(x: int) -> int:
    """Bits set in a non-negative number."""
    return x.bit_count()


def first_bit(x: int) -> int:
    """Index of the lowest bit set; 64 for 0."""
    return (x & -x).bit_length() - 1 if x else 64


@intrinsic
def _native_popcount(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.ctpop(args[0])

    return types.int64(types.int64), codegen


@intrinsic
def _native_first_bit(typingctx, x):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.int64), codegen


@overload(popcount)
def _(x):  # type: ignore[no-untyped-def]
    return lambda x: _native_popcount(x)


@overload(first_bit)
def _(x):  # type: ignore[no-untyped-def]
    return lambda x: _native_first_bit(x)


#: the reference machine's handlers; their "address" is the index here
REFERENCE_HANDLERS: list[Callable[[int, int, int], None]] = []


def call_handler(handler: int, registers: int, operands: int, mask: int) -> None:
    """Run a handler: an address of compiled code, or an index into REFERENCE_HANDLERS on the reference machine."""
    REFERENCE_HANDLERS[handler](registers, operands, mask)


@intrinsic
def _native_call(typingctx, handler, registers, operands, mask):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        byte, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        function = ir.FunctionType(ir.VoidType(), [byte, byte, i32])
        pointer = builder.inttoptr(args[0], function.as_pointer())
        registers, operands = (builder.inttoptr(a, byte) for a in args[1:3])
        builder.call(pointer, [registers, operands, builder.trunc(args[3], i32)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), codegen


@overload(call_handler)
def _(handler, registers, operands, mask):  # type: ignore[no-untyped-def]
    return lambda handler, registers, operands, mask: _native_call(handler, registers, operands, mask)


def compile_machine(function: Callable[..., Any], signature: str) -> Callable[..., Any]:
    """The compiled form of a machine function; it releases the interpreter lock and is kept in numba's cache."""
    compiled: Callable[..., Any] = numba.njit(signature, nogil=True, cache=True, boundscheck=False, error_model="numpy")(function)
    return compiled
