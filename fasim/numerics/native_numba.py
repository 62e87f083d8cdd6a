"""The functions of `native` as numba intrinsics, and the compilation of machine functions to LLVM IR.

Importing numba takes as long as a small kernel: this module is imported only when the machine has to be compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

from fasim.numerics import native

I1, I8, I32, I64 = ir.IntType(1), ir.IntType(8), ir.IntType(32), ir.IntType(64)
BYTE = I8.as_pointer()


def _make(name: str) -> None:
    _, bits = native.WORDS[name]
    signed, word = name[0] == "i", ir.IntType(bits)

    @intrinsic
    def native_peek(typingctx, address):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            value = builder.load(builder.inttoptr(args[0], word.as_pointer()), align=1)
            return value if bits == 64 else (builder.sext if signed else builder.zext)(value, I64)

        return types.int64(types.int64), codegen

    @intrinsic
    def native_poke(typingctx, address, value):  # type: ignore[no-untyped-def]
        def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
            value = args[1] if bits == 64 else builder.trunc(args[1], word)
            builder.store(value, builder.inttoptr(args[0], word.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    @overload(getattr(native, f"peek_{name}"))
    def _(address):  # type: ignore[no-untyped-def]
        return lambda address: native_peek(address)

    @overload(getattr(native, f"poke_{name}"))
    def _(address, value):  # type: ignore[no-untyped-def]
        return lambda address, value: native_poke(address, value)


for _name in native.WORDS:
    _make(_name)


@intrinsic
def _native_copy(typingctx, target, source, count):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        cgutils.raw_memmove(builder, builder.inttoptr(args[0], BYTE), builder.inttoptr(args[1], BYTE), args[2], 1, align=1)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def _native_fill(typingctx, target, value, count):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        cgutils.memset(builder, builder.inttoptr(args[0], BYTE), args[2], builder.trunc(args[1], I8))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), codegen


@intrinsic
def _native_popcount(typingctx, x):  # type: ignore[no-untyped-def]
    return types.int64(types.int64), lambda context, builder, signature, args: builder.ctpop(args[0])


@intrinsic
def _native_first_bit(typingctx, x):  # type: ignore[no-untyped-def]
    return types.int64(types.int64), lambda context, builder, signature, args: builder.cttz(args[0], ir.Constant(I1, 0))


@intrinsic
def _native_call(typingctx, handler, registers, operands, mask):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        function = ir.FunctionType(ir.VoidType(), [BYTE, BYTE, I32])
        pointer = builder.inttoptr(args[0], function.as_pointer())
        registers, operands = (builder.inttoptr(a, BYTE) for a in args[1:3])
        builder.call(pointer, [registers, operands, builder.trunc(args[3], I32)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), codegen


@overload(native.copy_bytes)
def _(target, source, count):  # type: ignore[no-untyped-def]
    return lambda target, source, count: _native_copy(target, source, count)


@overload(native.fill_bytes)
def _(target, value, count):  # type: ignore[no-untyped-def]
    return lambda target, value, count: _native_fill(target, value, count)


@overload(native.popcount)
def _(x):  # type: ignore[no-untyped-def]
    return lambda x: _native_popcount(x)


@overload(native.first_bit)
def _(x):  # type: ignore[no-untyped-def]
    return lambda x: _native_first_bit(x)


@overload(native.call_handler)
def _(handler, registers, operands, mask):  # type: ignore[no-untyped-def]
    return lambda handler, registers, operands, mask: _native_call(handler, registers, operands, mask)


def machine_ir(function: Callable[..., Any], signature: str) -> tuple[str, str]:
    """A machine function and all it calls as optimised LLVM IR, and the name it has there.

    Called as `int32 name(int64 *result, void **exception, arguments...)`, which is numba's convention; it returns 0.
    """
    for each in native.MACHINE_FUNCTIONS:
        register_jitable(each)
    compiled = numba.njit(signature, boundscheck=False, error_model="numpy")(function)
    overload_ = compiled.overloads[compiled.nopython_signatures[0].args]
    return compiled.inspect_llvm(overload_.signature.args), overload_.fndesc.llvm_func_name
