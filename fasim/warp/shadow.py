"""Shadow handlers: what an instruction on registers does to undefined bits, for both machines.

A warp's register file has two companions of the same layout, in which a row lies at the same offset. All three begin at a multiple of 64.

    shadow    a bit for each bit of the register, 1 where it is undefined; bits above a value of 8 or 16 bits are 0
    origins   where the undefined bits come from: a u32 a lane, the first 128 bytes of a row, whatever the width of its register;
              a predicate's row has room for one origin, that of the lowest lane which the last writer left undefined. 0 where defined.

A shadow handler is to be called before the handler of the same instruction, since it reads the sources, with the same operands and mask.
What each row does is in `fasim.warp.shadow_rules`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from fasim.isa.machine import bank_of
from fasim.isa.table import Arg, Row
from fasim.numerics.lanes import Lanes, width
from fasim.numerics.lanes.llvm_backend import I1, I32, PTR, LlvmBackend, vector
from fasim.numerics.lanes.numpy_backend import BACKEND
from fasim.warp.handlers import FULL_MASK, HandlerKey, read_row, write_row
from fasim.warp.shadow_rules import rule_of
from fasim.warp.shadow_values import Execution, Operand, Outcome, nonzero, shadow_type

#: kinds of rows that have a shadow handler
SHADOWED = frozenset({"lanes", "collective"})


class RegisterOperand(NamedTuple):
    """A register among an instruction's operands: its number in the operand array, its argument's name and its bank (1, 32 or 64)."""

    number: int
    name: str
    bank: int


def _registers(args: tuple[Arg, ...]) -> list[Arg]:
    return [arg for arg in args if arg.type_ != "imm" and arg.name != "active" for _ in range(max(arg.count, 1))]


def dest_operands(row: Row) -> list[RegisterOperand]:
    """The destination registers of a "lanes" or "collective" row, in the order of its operand array."""
    return [RegisterOperand(i, arg.name, bank_of(width(arg.type_))) for i, arg in enumerate(_registers(row.dests))]


def source_operands(row: Row) -> list[RegisterOperand]:
    """The source registers of a "lanes" or "collective" row, in the order of its operand array, where they follow the destinations."""
    first = len(_registers(row.dests))
    return [RegisterOperand(first + i, arg.name, bank_of(width(arg.type_))) for i, arg in enumerate(_registers(row.sources))]


def _outcomes(row: Row, immediates: tuple[int, ...], operand: Callable[[Arg, int], Operand], active: Lanes) -> list[tuple[Arg, Outcome]]:
    """The destinations with what becomes of them; `operand(arg, number)` fetches a source."""
    dests = _registers(row.dests)
    operands = tuple(operand(arg, number) for number, arg in enumerate(_registers(row.sources), len(dests)))
    outcomes = rule_of(row.name)(Execution(row, immediates, operands, active))
    for arg, outcome in zip(dests, outcomes, strict=True):
        if outcome.shadow.type != shadow_type(arg.type_):
            raise TypeError(f"{row.name}: the rule gives {outcome.shadow.type} for {arg.name}:{arg.type_}")
    return list(zip(dests, outcomes))


def shadow_ir(row: Row, key: HandlerKey) -> str:
    """LLVM IR of `void symbol(ptr registers, ptr shadow, ptr origins, ptr operands, i32 mask)`."""
    from fasim.warp import jit

    module = ir.Module(key.symbol)
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [PTR] * 4 + [I32]), key.symbol)
    registers, shadow, origins, offsets, mask = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    backend = LlvmBackend(module, builder)
    active = builder.bitcast(mask, vector("pred"))

    def origin_word(at: Any) -> Any:
        return builder.gep(origins, [builder.and_(at, I32(-2))], source_etype=ir.IntType(8))

    def operand(arg: Arg, number: int) -> Operand:
        at, type_ = jit.operand_offset(builder, offsets, number), shadow_type(arg.type_)
        value = Lanes(backend, jit.read_row(builder, registers, at, arg.type_, negate=True), arg.type_)
        bits = Lanes(backend, jit.read_row(builder, shadow, at, type_), type_)
        if type_ == "pred":
            origin = backend.splat(builder.load(origin_word(at), typ=I32, align=4))
        else:
            origin = jit.read_row(builder, origins, at, "u32")
        return Operand(arg, value, bits, Lanes(backend, origin, "u32"))

    for number, (arg, outcome) in enumerate(_outcomes(row, key.immediates, operand, Lanes(backend, active, "pred"))):
        at, type_ = jit.operand_offset(builder, offsets, number), shadow_type(arg.type_)
        jit.write_row(builder, shadow, at, type_, outcome.shadow.raw, mask, active)
        if type_ != "pred":
            origin = builder.select(nonzero(outcome.shadow).raw, outcome.origin.raw, backend.const(0, "u32"))
            jit.write_row(builder, origins, at, "u32", origin, mask, active)
            continue
        undefined = builder.and_(builder.bitcast(outcome.shadow.raw, I32), mask)
        first = builder.and_(builder.cttz(undefined, I1(0)), I32(31))
        kept = builder.load(builder.gep(shadow, [at], source_etype=ir.IntType(8)), typ=I32, align=4)
        word, none = origin_word(at), builder.icmp_unsigned("==", undefined, I32(0))
        old = builder.select(builder.icmp_unsigned("==", kept, I32(0)), I32(0), builder.load(word, typ=I32, align=4))
        builder.store(builder.select(none, old, builder.extract_element(outcome.origin.raw, first)), word, align=4)
    return jit.finished(module, builder, key.symbol)


def reference_shadow_handler(row: Row, immediates: tuple[int, ...]) -> Callable[[Any, Any, Any, Any, int], None]:
    """The shadow handler on numpy: `f(registers: uint8[...], shadow: uint8[...], origins: uint8[...], operands: int32[...], mask: int)`."""

    def handler(registers: Any, shadow: Any, origins: Any, operands: Any, mask: int) -> None:
        active = Lanes(BACKEND, (mask >> np.arange(32)) & 1 == 1, "pred")

        def operand(arg: Arg, number: int) -> Operand:
            at, type_ = int(operands[number]), shadow_type(arg.type_)
            value = read_row(registers, at, arg.type_)
            if type_ == "pred":
                value = ~value if at & 1 else value
                origin = np.full(32, origins[at & ~1 : (at & ~1) + 4].view(np.uint32)[0])
            else:
                origin = read_row(origins, at, "u32")
            bits = Lanes(BACKEND, read_row(shadow, at, type_), type_)
            return Operand(arg, Lanes(BACKEND, value, arg.type_), bits, Lanes(BACKEND, origin, "u32"))

        for number, (arg, outcome) in enumerate(_outcomes(row, immediates, operand, active)):
            at, type_ = int(operands[number]), shadow_type(arg.type_)
            write_row(shadow, at, type_, outcome.shadow.raw, mask)
            undefined = nonzero(outcome.shadow).raw
            if type_ != "pred":
                write_row(origins, at, "u32", np.where(undefined, outcome.origin.raw, np.uint32(0)), mask)
                continue
            word, here = origins[at : at + 4].view(np.uint32), np.flatnonzero(undefined & active.raw)
            if here.size:
                word[0] = outcome.origin.raw[here[0]]
            elif not int(shadow[at : at + 4].view(np.uint32)[0]) & FULL_MASK:
                word[0] = 0

    return handler
