"""wmma.load and wmma.store to loads and stores of each lane's elements, as the fragment table says who holds what.

Raises: PtxError for operands that do not fit, UnsupportedInstruction for what fasim does not model.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from fasim.isa import machine as m
from fasim.isa.lookup import Found
from fasim.isa.operands import DataRegister, Memory, Transfer
from fasim.isa.program import HandlerUse
from fasim.numerics.fragments import ELEMENT_BITS, wmma_fragment_elements
from fasim.ptx.ir import Op, Ref, VReg
from fasim.ptx.lower_function import FunctionLowerer
from fasim.ptx.lower_memory import memory_operands, space_of
from fasim.ptx.tree import Instruction

Elements = np.ndarray[Any, Any]
Emit = Callable[[Op], None]


def lower_fragment(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """wmma.load.{a,b,c} and wmma.store.d; the address of an element is base + (row * stride + column) elements, or the other way round."""
    row, loads = found.row, found.row.kind == "wmma_load"
    attributes = row.attributes
    arg = row.dests[0] if loads else row.sources[1]
    operands = list(ins.operands)
    if len(operands) not in (2, 3):
        raise f.context.malformed(ins, f"{ins.mnemonic} takes a fragment, an address and a stride")
    vector, address = (operands[0], operands[1]) if loads else (operands[1], operands[0])
    elements = wmma_fragment_elements(attributes["shape"], attributes["operand"], attributes["type"])
    by_row = attributes["layout"] == "row"
    bits = ELEMENT_BITS[attributes["element"]]
    wide = attributes["element"] == "f64"
    bank, type_, held = (64, "u64", 8) if wide else (32, "u32", 4)
    stride = f.source(ins, operands[2], "u32").reg if len(operands) == 3 else f.context.constant(32, _tight_stride(elements, by_row))
    registers = f.parts(ins, arg, vector)
    per_register = elements.shape[1] // len(registers)
    base = memory_operands(f, ins, address, space_of(found), max(bits // 8, 1))
    if loads:
        # the first load must not change what the address of the next is made from
        written = {f.dest(ins, part, type_, []).reg for part in registers}
        if stride in written:
            stride = _copy(f, stride)
        if isinstance(base.address, Ref) and base.address.reg in written:
            base = replace(base, address=Ref(_copy(f, base.address.reg)))
    source, guard = f.context.source(ins), f.guard(ins)
    first = True

    def emit(op: Op) -> None:
        nonlocal first
        op.guard, op.source = guard, source if first else None
        first = False
        f.emit(op)

    for i, part in enumerate(registers):
        mine = elements[:, i * per_register : (i + 1) * per_register]
        # neighbours in memory move together
        together = per_register if _contiguous(mine, by_row) else 1
        pieces: list[VReg] = []
        target = f.dest(ins, part, type_, []).reg if loads else f.source(ins, part, type_).reg
        if not loads:
            pieces = [target] if together == per_register else [f.temporary(bank) for _ in range(per_register)]
            if together != per_register:
                name = f"mov.b32:unpack{per_register}"
                emit(Op(m.LANES, [*(Ref(p, False, True) for p in pieces), Ref(target)], handler=HandlerUse(name)))
        for j in range(0, per_register, together):
            place = mine[:, j]
            memory = _element_address(f, emit, base, place, stride, bits * together // 8, bits, by_row)
            if loads:
                piece = target if together == per_register else f.temporary(bank)
                pieces.append(piece)
                emit(Op(m.LOAD, Transfer(memory, (DataRegister(Ref(piece, False, True), held),)).items()))
            else:
                emit(Op(m.STORE, Transfer(memory, (DataRegister(Ref(pieces[j // together]), held),)).items()))
        if loads and together != per_register:
            name = f"mov.b32:pack{per_register}"
            emit(Op(m.LANES, [Ref(target, False, True), *(Ref(p) for p in pieces)], handler=HandlerUse(name)))


def _copy(f: FunctionLowerer, reg: VReg) -> VReg:
    copy = f.temporary(reg.bank)
    f.lanes(f"mov.b{reg.bank}", copy, reg)
    return copy


def _tight_stride(elements: Elements, by_row: bool) -> int:
    """Without a stride the rows (or columns) of the matrix follow each other."""
    return int(elements[:, :, 1 if by_row else 0].max()) + 1


def _contiguous(mine: Elements, by_row: bool) -> bool:
    major, minor = (mine[:, :, 0], mine[:, :, 1]) if by_row else (mine[:, :, 1], mine[:, :, 0])
    return bool(
        (major == major[:, :1]).all()
        and (minor == minor[:, :1] + np.arange(mine.shape[1])).all()
        and (minor[:, 0] % mine.shape[1] == 0).all()
    )


def _element_address(
    f: FunctionLowerer, emit: Emit, base: Memory[Ref], place: Elements, stride: VReg, moved: int, bits: int, by_row: bool
) -> Memory[Ref]:
    """The operands of a load or store of `moved` bytes from each lane's element at `place`; bits: of one element."""
    major, minor = (place[:, 0], place[:, 1]) if by_row else (place[:, 1], place[:, 0])
    index = f.temporary(32)
    constants = [f.context.constant(32, tuple(int(v) for v in values)) for values in (major, minor)]
    emit(Op(m.LANES, [Ref(index, False, True), Ref(constants[0]), Ref(stride), Ref(constants[1])], handler=HandlerUse("mad.lo.u32")))
    if bits < 8:  # count bytes: rows of such matrices are whole words
        per_byte = Ref(f.context.constant(32, (8 // bits).bit_length() - 1))
        emit(Op(m.LANES, [Ref(index, False, True), Ref(index), per_byte], handler=HandlerUse("shr.u32")))
    size = max(bits // 8, 1)
    register = base.address
    if isinstance(register, Ref) and base.wide:
        address = f.temporary(64)
        scale = f.context.constant(32, size)
        emit(Op(m.LANES, [Ref(address, False, True), Ref(index), Ref(scale), register], handler=HandlerUse("mad.wide.u32")))
    else:
        address = f.temporary(32)
        origin = register if isinstance(register, Ref) else Ref(f.context.constant(32, 0))
        emit(
            Op(
                m.LANES,
                [Ref(address, False, True), Ref(index), Ref(f.context.constant(32, size)), origin],
                handler=HandlerUse("mad.lo.u32"),
            )
        )
    return replace(base, bytes_=moved, address=Ref(address))


LOWERERS = {"wmma_load": lower_fragment, "wmma_store": lower_fragment}
