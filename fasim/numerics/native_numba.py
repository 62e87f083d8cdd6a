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
POINTER = ir.PointerType()
BITS, WORDS, POINTERS = (ir.VectorType(each, 32) for each in (I1, I64, POINTER))


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


def _splat(builder: Any, value: Any) -> Any:
    one = builder.insert_element(ir.Constant(ir.VectorType(value.type, 32), ir.Undefined), value, I32(0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(I32, 32), [0] * 32))


def _vector(builder: Any, address: Any, type_: Any) -> Any:
    return builder.load(builder.inttoptr(address, POINTER), align=1, typ=type_)


def _bits(builder: Any, mask: Any) -> Any:
    return builder.bitcast(builder.trunc(mask, I32), BITS)


def _overload_lanes(name: str, result: Any, codegen: Any) -> None:
    """Give `native.lanes_{name}` its vector code: codegen(builder, arguments) returns the value, None if there is none."""
    function = getattr(native, f"lanes_{name}")
    count = function.__code__.co_argcount

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        value = codegen(builder, args)
        return context.get_dummy_value() if value is None else value

    if count == 2:

        @intrinsic
        def of_two(typingctx, a, b):  # type: ignore[no-untyped-def]
            return result(types.int64, types.int64), generate

        @overload(function)
        def _(a, b):  # type: ignore[no-untyped-def]
            return lambda a, b: of_two(a, b)

        return

    if count == 4:

        @intrinsic
        def of_four(typingctx, a, b, c, d):  # type: ignore[no-untyped-def]
            return result(types.int64, types.int64, types.int64, types.int64), generate

        @overload(function)
        def _(a, b, c, d):  # type: ignore[no-untyped-def]
            return lambda a, b, c, d: of_four(a, b, c, d)

        return

    if count == 5:

        @intrinsic
        def of_five(typingctx, a, b, c, d, e):  # type: ignore[no-untyped-def]
            return result(*[types.int64] * 5), generate

        @overload(function)
        def _(a, b, c, d, e):  # type: ignore[no-untyped-def]
            return lambda a, b, c, d, e: of_five(a, b, c, d, e)

        return

    @intrinsic
    def of_three(typingctx, a, b, c):  # type: ignore[no-untyped-def]
        return result(types.int64, types.int64, types.int64), generate

    @overload(function)
    def _(a, b, c):  # type: ignore[no-untyped-def]
        return lambda a, b, c: of_three(a, b, c)


def _reduction(kind: str, neutral: int) -> Any:
    def codegen(builder: Any, args: Any) -> Any:
        words = builder.select(_bits(builder, args[1]), _vector(builder, args[0], WORDS), ir.Constant(WORDS, [neutral] * 32))
        name = f"llvm.vector.reduce.{kind}.v32i64"
        return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(I64, [WORDS]), name), [words])

    return codegen


def _equal(builder: Any, args: Any) -> Any:
    equal = builder.icmp_unsigned("==", _vector(builder, args[0], WORDS), _splat(builder, args[1]))
    return builder.zext(builder.bitcast(equal, I32), I64)


def _add(builder: Any, args: Any) -> None:
    builder.store(builder.add(_vector(builder, args[1], WORDS), _splat(builder, args[2])), builder.inttoptr(args[0], POINTER), align=1)


def _add_u32(builder: Any, args: Any) -> None:
    total = builder.add(_vector(builder, args[1], ir.VectorType(I32, 32)), _splat(builder, builder.trunc(args[2], I32)))
    builder.store(builder.zext(total, WORDS), builder.inttoptr(args[0], POINTER), align=1)


def _step(builder: Any, args: Any) -> Any:
    words, mask, step = args
    start = builder.sub(_vector(builder, words, WORDS), builder.mul(_splat(builder, step), ir.Constant(WORDS, list(range(32)))))
    first = builder.extract_element(start, builder.and_(builder.cttz(mask, ir.Constant(I1, 0)), I64(31)))
    differ = builder.and_(builder.icmp_unsigned("!=", start, _splat(builder, first)), _bits(builder, mask))
    return builder.icmp_unsigned("==", builder.bitcast(differ, I32), I32(0))


def _match(builder: Any, args: Any) -> Any:
    words, kept, mask, distance = args
    apart = builder.sub(_vector(builder, words, WORDS), _vector(builder, kept, WORDS))
    differ = builder.and_(builder.icmp_unsigned("!=", apart, _splat(builder, distance)), _bits(builder, mask))
    return builder.icmp_unsigned("==", builder.bitcast(differ, I32), I32(0))


def _nonzero(bits: int) -> Any:
    type_ = ir.VectorType(ir.IntType(bits), 32)

    def codegen(builder: Any, args: Any) -> Any:
        found = builder.icmp_unsigned("!=", _vector(builder, args[0], type_), ir.Constant(type_, [0] * 32))
        return builder.zext(builder.bitcast(builder.and_(found, _bits(builder, args[1])), I32), I64)

    return codegen


def _raise(builder: Any, args: Any) -> None:
    words = ir.VectorType(I32, 32)
    old, new = (_vector(builder, at, words) for at in args)
    most = builder.select(builder.icmp_unsigned(">", new, old), new, old)
    builder.store(most, builder.inttoptr(args[0], POINTER), align=1)


_overload_lanes("raise", types.void, _raise)
_overload_lanes("match", types.boolean, _match)
_overload_lanes("nonzero_u32", types.int64, _nonzero(32))
_overload_lanes("nonzero_i64", types.int64, _nonzero(64))
_overload_lanes("min", types.int64, _reduction("smin", 2**63 - 1))
_overload_lanes("max", types.int64, _reduction("smax", -(2**63)))
_overload_lanes("or", types.int64, _reduction("or", 0))
_overload_lanes("equal", types.int64, _equal)
_overload_lanes("add", types.void, _add)
_overload_lanes("add_u32", types.void, _add_u32)
_overload_lanes("step", types.boolean, _step)


def _masked(builder: Any, name: str, result: Any, args: list[Any]) -> Any:
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, [a.type for a in args]), f"llvm.masked.{name}")
    return builder.call(function, args)


def _note(builder: Any, args: Any) -> Any:
    tags, bits, mask, tag, base = args
    words = ir.VectorType(I32, 32)
    own = ir.Constant(words, [1 << lane for lane in range(32)])
    old, lanes, wanted = _vector(builder, tags, WORDS), _vector(builder, bits, words), _bits(builder, mask)
    same = builder.and_(builder.icmp_unsigned("==", old, _splat(builder, tag)), builder.icmp_unsigned("==", lanes, own))
    free = builder.or_(builder.icmp_signed("<", old, _splat(builder, base)), same)
    done = builder.icmp_unsigned("==", builder.bitcast(builder.and_(builder.not_(free), wanted), I32), I32(0))
    written = builder.and_(wanted, _splat(builder, done))
    align = I32(1)
    _masked(builder, "store.v32i64.p0", ir.VoidType(), [_splat(builder, tag), builder.inttoptr(tags, POINTER), align, written])
    _masked(builder, "store.v32i32.p0", ir.VoidType(), [own, builder.inttoptr(bits, POINTER), align, written])
    return done


_overload_lanes("note", types.boolean, _note)


def _make_lanes(name: str) -> None:
    bits = native.WORDS[name][1]
    memory, register = ir.VectorType(ir.IntType(bits), 32), ir.VectorType(ir.IntType(max(bits, 32)), 32)
    align = I32(1)

    def to_row(builder: Any, value: Any, row: Any, mask: Any) -> None:
        value = builder.zext(value, register) if value.type != register else value
        _masked(
            builder, f"store.v32i{max(bits, 32)}.p0", ir.VoidType(), [value, builder.inttoptr(row, POINTER), align, _bits(builder, mask)]
        )

    def from_row(builder: Any, row: Any) -> Any:
        value = _vector(builder, row, register)
        return builder.trunc(value, memory) if bits < 32 else value

    def load(builder: Any, args: Any) -> None:
        row, at, mask = args
        operands = [builder.inttoptr(at, POINTER), align, _bits(builder, mask), ir.Constant(memory, None)]
        to_row(builder, _masked(builder, f"load.v32i{bits}.p0", memory, operands), row, mask)

    def store(builder: Any, args: Any) -> None:
        row, at, mask = args
        operands = [from_row(builder, row), builder.inttoptr(at, POINTER), align, _bits(builder, mask)]
        _masked(builder, f"store.v32i{bits}.p0", ir.VoidType(), operands)

    def gather(builder: Any, args: Any) -> None:
        row, words, mask = args
        at, shift = _vector(builder, words, WORDS), None
        if bits < 32:  # processors gather nothing narrower: take the aligned 32 bits around it
            shift = builder.shl(builder.trunc(builder.and_(at, ir.Constant(WORDS, [3] * 32)), register), ir.Constant(register, [3] * 32))
            at = builder.and_(at, ir.Constant(WORDS, [-4] * 32))
        operands = [builder.inttoptr(at, POINTERS), align, _bits(builder, mask), ir.Constant(register, None)]
        value = _masked(builder, f"gather.v32i{max(bits, 32)}.v32p0", register, operands)
        if shift is not None:
            value = builder.and_(builder.lshr(value, shift), ir.Constant(register, [(1 << bits) - 1] * 32))
        to_row(builder, value, row, mask)

    def scatter(builder: Any, args: Any) -> None:
        row, words, mask = args
        operands = [from_row(builder, row), builder.inttoptr(_vector(builder, words, WORDS), POINTERS), align, _bits(builder, mask)]
        _masked(builder, f"scatter.v32i{bits}.v32p0", ir.VoidType(), operands)

    for kind, codegen in (("load", load), ("store", store), ("gather", gather), ("scatter", scatter)):
        if hasattr(native, f"lanes_{kind}_{name}"):
            _overload_lanes(f"{kind}_{name}", types.void, codegen)


for _name in ("u8", "u16", "u32", "i64"):
    _make_lanes(_name)


@intrinsic
def _native_call(typingctx, handler, registers, operands, mask):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        function = ir.FunctionType(ir.VoidType(), [BYTE, BYTE, I32])
        pointer = builder.inttoptr(args[0], function.as_pointer())
        registers, operands = (builder.inttoptr(a, BYTE) for a in args[1:3])
        builder.call(pointer, [registers, operands, builder.trunc(args[3], I32)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64, types.int64), codegen


@intrinsic
def _native_call_shadow(typingctx, handler, registers, shadow, origins, operands, mask):  # type: ignore[no-untyped-def]
    def codegen(context, builder, signature, args):  # type: ignore[no-untyped-def]
        function = ir.FunctionType(ir.VoidType(), [BYTE] * 4 + [I32])
        pointer = builder.inttoptr(args[0], function.as_pointer())
        builder.call(pointer, [builder.inttoptr(a, BYTE) for a in args[1:5]] + [builder.trunc(args[5], I32)])
        return context.get_dummy_value()

    return types.void(*[types.int64] * 6), codegen


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


@overload(native.call_shadow)
def _(handler, registers, shadow, origins, operands, mask):  # type: ignore[no-untyped-def]
    return lambda handler, registers, shadow, origins, operands, mask: _native_call_shadow(
        handler, registers, shadow, origins, operands, mask
    )


#: nobody calls the functions from Python or C
_OPTIONS = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def machine_ir(function: Callable[..., Any], signature: str) -> tuple[str, str]:
    """A machine function and all it calls as optimised LLVM IR, and the name it has there.

    Called as `int32 name(int64 *result, void **exception, arguments...)`, which is numba's convention; it returns 0.
    """
    for each in native.MACHINE_FUNCTIONS:
        register_jitable(**_OPTIONS)(each)
    compiled = numba.njit(signature, boundscheck=False, error_model="numpy", **_OPTIONS)(function)
    overload_ = compiled.overloads[compiled.nopython_signatures[0].args]
    return compiled.inspect_llvm(overload_.signature.args), overload_.fndesc.llvm_func_name
