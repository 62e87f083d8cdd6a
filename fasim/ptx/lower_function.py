"""One PTX function to operations: registers, operands and frames; memory and control instructions have modules of their own."""

from __future__ import annotations

import struct

import numpy as np

from fasim.isa import machine as m
from fasim.isa.lookup import Found, find
from fasim.isa.machine import align_up, bank_of
from fasim.isa.operands import Clock, DataRegister, Memory, Transfer
from fasim.isa.program import HandlerUse
from fasim.isa.table import Arg
from fasim.numerics.lanes import width
from fasim.ptx.context import CLOCKS, Context
from fasim.ptx.ir import Op, PoolItem, Ref, VReg
from fasim.ptx.layout import formal_layout, kernel_parameters, slot_bytes
from fasim.ptx.tree import (
    TYPE_BITS,
    CallPrototype,
    CallTargets,
    FloatImmediate,
    Function,
    Immediate,
    Instruction,
    Operand,
    Pair,
    RegDecl,
    Register,
    Sink,
    Symbol,
    Variable,
    Vector,
)


def whole_register(ref: Ref) -> DataRegister[Ref]:
    """All bytes of a register, for a load or store."""
    return DataRegister(ref, 8 if ref.reg.bank == 64 else 4)


class FunctionLowerer:
    """Turns statements into labels (str) and operations; `items` is the result.

    Raises: PtxError for operands that do not fit, UnsupportedInstruction for what fasim does not model.
    """

    def __init__(self, context: Context, function: Function) -> None:
        self.context, self.function = context, function
        self.items: list[str | Op] = []
        self.registers: dict[str, VReg] = {}
        self.is_kernel = function.kind == "entry"
        self.frame: dict[str, int] = {}
        self.kernel_params: dict[str, int] = {}
        self.branch_lists: dict[str, tuple[str, ...]] = {}
        self.temporaries = 0
        self.frame_bytes = 0
        self._lay_out_frame()

    # --- memory of the function ----------------------------------------------------------------------------------------------

    def _lay_out_frame(self) -> None:
        """Parameters first, so that functions with the same prototype agree on where they are; then variables of the body."""
        function, at = self.function, 0
        if self.is_kernel:
            self.kernel_params = {param.name: param.offset for param in kernel_parameters(function)}
        else:
            returns, params, at = formal_layout(function)
            for formal, (place, _) in zip((*function.returns, *function.params), returns + params):
                self.frame[formal.name] = place
        for statement in function.body or ():
            if isinstance(statement, Variable) and statement.state_space in ("local", "param"):
                at = align_up(at, statement.align_bytes)
                self.frame[statement.name] = at
                at += statement.size_bytes
        self.frame_bytes = align_up(at, 16)

    def argument_slot(self, ins: Instruction, operand: Operand, size: int, *, store: bool) -> int:
        """Offset in the frame of what a call passes or returns; a register or constant gets a slot, and is stored there if `store`."""
        if isinstance(operand, Symbol) and operand.name in self.frame:
            return self.frame[operand.name] + operand.offset
        slot = self.frame_bytes
        self.frame_bytes = align_up(slot + max(size, 8), 16)
        if store:
            ref = self.source(ins, operand, "u64" if size == 8 else "u32")
            self._store_slot(ref, slot, size)
        return slot

    def _slot_transfer(self, ref: Ref, slot: int, size: int) -> Transfer[Ref]:
        memory = Memory(
            space=m.LOCAL,
            bytes_=size,
            vector=1,
            sign=0,
            address=-1 if self.is_kernel else Ref(self.frame_row()),
            wide=0,
            offset_low=slot,
            offset_high=0,
        )
        return Transfer(memory, (whole_register(ref),))

    def _store_slot(self, ref: Ref, slot: int, size: int) -> None:
        self.emit(Op(m.STORE, self._slot_transfer(ref, slot, size).items()))

    def load_slot(self, operand: Operand, slot: int, size: int, guard: Ref | None = None) -> None:
        """Read a register back from its slot, in the lanes of `guard`."""
        assert isinstance(operand, Register)
        reg = self.register(operand.name)
        self.emit(Op(m.LOAD, self._slot_transfer(Ref(reg, False, True), slot, size).items(), guard))

    def load_formals(self) -> None:
        """At the function's start: parameters that are registers come from the frame."""
        for formal in self.function.params:
            if isinstance(formal, RegDecl):
                self.load_slot(Register(formal.name, formal.type), self.frame[formal.name], slot_bytes(formal))

    def store_returns(self) -> None:
        """Before a return: values returned in registers go to the frame."""
        for formal in self.function.returns:
            if isinstance(formal, RegDecl):
                self._store_slot(Ref(self.register(formal.name)), self.frame[formal.name], slot_bytes(formal))

    def prototype(self, label: str) -> Function | CallPrototype | None:
        """What a .callprototype or .calltargets label declares."""
        for statement in self.function.body or ():
            if isinstance(statement, CallPrototype) and statement.name == label:
                return statement
            if isinstance(statement, CallTargets) and statement.name == label and statement.targets:
                return self.context.module.functions.get(statement.targets[0].name)
        return None

    def end(self) -> None:
        """Whoever runs off the end of a function returns."""
        if self.is_kernel:
            self.emit(Op(m.EXIT, falls=False))
        else:
            self.store_returns()
            self.emit(Op(m.RET, falls=False))

    def frame_base(self) -> VReg:
        """The row with each lane's frame base; the kernel's own frame starts at 0."""
        if self.is_kernel:
            return self.context.constant(32, 0)
        return self.frame_row()

    def frame_row(self) -> VReg:
        """The one row of frame bases of all functions."""
        reg = self.context.specials.get("frame")
        if reg is None:
            reg = self.context.specials["frame"] = VReg("frame", 32, fixed=True, value=(0,) * 32)
        return reg

    # --- registers and operands ----------------------------------------------------------------------------------------------

    def register(self, name: str) -> VReg:
        """The virtual register of a PTX register."""
        if name not in self.registers:
            bits = TYPE_BITS[self.function.registers[name]]
            self.registers[name] = VReg(name, bank_of(bits), function=self.function.name)
        return self.registers[name]

    def temporary(self, bank: int) -> VReg:
        """A virtual register that PTX has no name for."""
        self.temporaries += 1
        return VReg(f"~{self.temporaries}", bank, function=self.function.name)

    def carry(self) -> VReg:
        """The carry flag."""
        if "%cc" not in self.registers:
            self.registers["%cc"] = VReg("%cc", 1, function=self.function.name)
        return self.registers["%cc"]

    def emit(self, op: Op) -> None:
        """Append an operation."""
        self.items.append(op)

    def lanes(self, name: str, dest: VReg, *sources: VReg) -> None:
        """An operation that PTX does not write: conversions and address arithmetic."""
        self.emit(Op(m.LANES, [Ref(dest, False, True), *(Ref(s) for s in sources)], handler=HandlerUse(name)))

    def special(self, ins: Instruction, operand: Register) -> VReg:
        """A special register as a source; clocks are read here and now."""
        if operand.name in CLOCKS:
            size, shift = CLOCKS[operand.name]
            reg = self.temporary(8 * size)
            launch_wide = operand.name.startswith("%globaltimer")
            self.context.communicates |= launch_wide  # its value depends on what other CTAs have done
            self.context.reads_clock = True
            clock = Clock(dest=Ref(reg, False, True), bytes_=size, shift=shift, launch_wide=int(launch_wide))
            self.emit(Op(m.CLOCK, clock.items()))
            return reg
        special = self.context.special(operand.name)
        if special is None:
            raise self.context.unsupported(ins, f"fasim does not model the special register {operand.name}")
        return special

    def source(self, ins: Instruction, operand: Operand, type_: str) -> Ref:
        """A source operand as a row of the bank that `type_` needs."""
        context, bits = self.context, width(type_)
        bank = bank_of(bits)
        if isinstance(operand, Register):
            if operand.selector:
                raise context.unsupported(ins, f"fasim does not model parts of registers ({operand.name}.{operand.selector})")
            reg = self.special(ins, operand) if operand.special else self.register(operand.name)
            if reg.bank != bank:
                if 1 in (reg.bank, bank) or (reg.bank < bank and not operand.special):
                    raise context.malformed(ins, f"operand {operand.name} has {reg.bank} bits, {type_} has {bits}")
                narrow = self.temporary(bank)
                self.lanes("cvt.u32.u64" if bank == 32 else "cvt.u64.u32", narrow, reg)
                reg = narrow
            return Ref(reg, negated=operand.negated)
        if isinstance(operand, Immediate):
            if type_ in ("f32", "f64"):
                value = struct.unpack("<I", struct.pack("<f", operand.value))[0] if type_ == "f32" else _f64_bits(float(operand.value))
                return Ref(context.constant(bank, value))
            if bank == 1:
                return Ref(context.constant(1, int(operand.value != 0)))
            return Ref(context.constant(bank, operand.value & ((1 << bits) - 1)))
        if isinstance(operand, FloatImmediate):
            if operand.type != type_ and type_ == "f32":
                with np.errstate(all="ignore"):
                    return Ref(context.constant(32, int(np.float32(operand.value).view(np.uint32))))
            if operand.type == "f32" and type_ == "f64":
                return Ref(context.constant(64, _f64_bits(operand.value)))
            return Ref(context.constant(bank, operand.bits))
        if isinstance(operand, Symbol):
            return Ref(self.symbol_value(ins, operand, bank))
        raise context.malformed(ins, f"an operand of type {type_} cannot be a {type(operand).__name__.lower()}")

    def symbol_value(self, ins: Instruction, symbol: Symbol, bank: int) -> VReg:
        """A register with the address that a symbol stands for."""
        _, base, offset = self.locate(ins, symbol)
        if base is None:
            return self.context.constant(bank, offset)
        total = self.temporary(32)
        self.lanes("add.u32", total, base, self.context.constant(32, offset))
        if bank == 32:
            return total
        wide = self.temporary(64)
        self.lanes("cvt.u64.u32", wide, total)
        return wide

    def locate(self, ins: Instruction, symbol: Symbol) -> tuple[int, VReg | None, int]:
        """State space, base row (None: absolute) and offset of a symbol."""
        context, name = self.context, symbol.name
        if name in self.kernel_params:
            return m.PARAM, None, self.kernel_params[name] + symbol.offset
        if name in self.frame:
            return m.LOCAL, None if self.is_kernel else self.frame_row(), self.frame[name] + symbol.offset
        if name in context.shared:
            return m.SHARED, None, context.shared[name] + symbol.offset
        if name in context.variables:
            space = m.CONST if context.variables[name].space == "const" else m.GLOBAL
            return space, None, context.variables[name].address + symbol.offset
        if name in context.module.functions:
            return m.GENERIC, None, context.function_address(name) + symbol.offset
        raise context.malformed(ins, f"{name!r} is declared extern and defined nowhere in this module")

    def dest(self, ins: Instruction, operand: Operand, type_: str, after: list[Op]) -> Ref:
        """A destination; where the register is wider than `type_`, an extension goes to `after`."""
        bank = bank_of(width(type_))
        if isinstance(operand, Sink):
            return Ref(self.context.unwritten(bank), False, True)
        if not isinstance(operand, Register) or operand.special:
            raise self.context.malformed(ins, "the destination must be a register")
        reg = self.register(operand.name)
        declared = TYPE_BITS[self.function.registers[operand.name]]
        if reg.bank == bank and not (type_[0] == "s" and width(type_) < min(declared, 32)):
            return Ref(reg, False, True)
        if reg.bank < bank or 1 in (reg.bank, bank):
            raise self.context.malformed(ins, f"register {operand.name} has {declared} bits, the result {width(type_)}")
        result = self.temporary(bank)
        kind = "s" if type_[0] == "s" else "u"
        name = f"cvt.{kind}{max(reg.bank, 32)}.{kind}{width(type_)}"
        after.append(Op(m.LANES, [Ref(reg, False, True), Ref(result)], handler=HandlerUse(name)))
        return Ref(result, False, True)

    def guard(self, ins: Instruction) -> Ref | None:
        """The guard predicate of an instruction."""
        return None if ins.guard is None else Ref(self.register(ins.guard.name), negated=ins.guard.negated)

    def finish(self, ins: Instruction, op: Op, after: list[Op]) -> None:
        """Append an instruction's operation and what has to follow it."""
        op.source, op.guard = self.context.source(ins), self.guard(ins)
        self.emit(op)
        for extra in after:
            extra.guard = op.guard
            self.emit(extra)

    # --- register-only instructions ------------------------------------------------------------------------------------------

    def lower_lanes(self, ins: Instruction, found: Found) -> None:
        """An instruction that a handler executes."""
        row, context = found.row, self.context
        written = list(ins.operands)
        if written and isinstance(written[0], Pair):
            written[:1] = [written[0].first, written[0].second]
        elif (
            len(row.written_dests) == 2
            and row.written_dests[1].type_ == "pred"
            and len(written) < len(row.written_dests) + len(row.written_sources)
        ):
            written.insert(1, Sink())
        expected = len(row.written_dests) + len(row.written_sources)
        if len(written) != expected:
            raise context.malformed(ins, f"{row.name} takes {expected} operands, found {len(written)}")
        after: list[Op] = []
        operands = iter(written)
        dests: list[PoolItem] = []
        for arg in row.dests:
            if arg.name == "cc":
                dests.append(Ref(self.carry(), False, True))
            else:
                dests.extend(self.dest(ins, part, arg.type_, after) for part in self.parts(ins, arg, next(operands)))
        sources: list[PoolItem] = []
        immediates: list[int] = []
        member: VReg | None = None
        for arg in row.sources:
            if arg.name == "cc":
                sources.append(Ref(self.carry()))
            elif arg.name == "arch":
                immediates.append(context.arch)
            elif arg.name == "active":
                continue
            elif arg.type_ == "imm":
                operand = next(operands)
                if not isinstance(operand, Immediate):
                    raise context.malformed(ins, f"operand {arg.name} must be an immediate")
                immediates.append(operand.value)
                if row.attributes.get("member_mask") == arg.name:
                    member = context.constant(32, operand.value)
            else:
                refs = [self.source(ins, part, arg.type_) for part in self.parts(ins, arg, next(operands))]
                sources.extend(refs)
                if row.attributes.get("member_mask") == arg.name:
                    member = refs[0].reg
        kind = m.COLLECTIVE if row.kind == "collective" else m.LANES
        self.finish(ins, Op(kind, dests + sources, handler=HandlerUse(row.name, tuple(immediates)), member=member), after)

    def parts(self, ins: Instruction, arg: Arg, operand: Operand) -> list[Operand]:
        """The registers of an operand: the items of a vector, or the operand itself."""
        if not arg.count:
            if isinstance(operand, Vector) and len(operand.items) == 1:
                return [operand.items[0]]
            return [operand]
        if arg.count == 1 and not isinstance(operand, Vector):
            return [operand]
        if not isinstance(operand, Vector) or len(operand.items) != arg.count:
            found = len(operand.items) if isinstance(operand, Vector) else 1
            raise self.context.malformed(ins, f"operand {arg.name} is a vector of {arg.count}, found {found}")
        return list(operand.items)

    def shapes(self, ins: Instruction) -> list[str]:
        """Names of rows of one mnemonic to try, by what the operands are (see fasim.isa.table); the plain one last."""
        names: list[str] = []
        if ins.opcode == "mov":
            names = [f"{word}{len(o.items)}" for o, word in zip(ins.operands, ("unpack", "pack")) if isinstance(o, Vector)]
        elif ins.opcode == "cvt" and len(ins.operands) == 2 and len(ins.modifiers) >= 2:
            widths = [TYPE_BITS[o.type] if isinstance(o, Register) else 0 for o in ins.operands]
            types = [TYPE_BITS.get(t, 0) for t in ins.modifiers[-2:]]
            shape = (f"d{widths[0]}" if widths[0] > types[0] else "") + ("a64" if widths[1] == 64 > types[1] else "")
            names = [shape] if shape else []
        elif isinstance(ins.operands[-1] if ins.operands else None, Immediate):
            names = ["imm"]
        return [*names, ""]

    def find(self, ins: Instruction) -> Found:
        """The row of an instruction, checked against the target."""
        found = None
        for shape in self.shapes(ins):
            found = find(ins.opcode, ins.modifiers, shape)
            if found is not None and (shape != "imm" or _immediates_fit(found, ins)):
                break
        if found is None:
            raise self.context.unsupported(ins)
        if found.row.min_arch > self.context.arch:
            raise self.context.unsupported(ins, f"{ins.mnemonic} needs sm_{found.row.min_arch}, the target is sm_{self.context.arch}")
        known = found.row.attributes.get("archs")
        if known is not None and self.context.arch not in known:
            targets = ", ".join(f"sm_{arch}" for arch in known)
            raise self.context.unsupported(ins, f"its arithmetic on sm_{self.context.arch} is not modelled; known: {targets}")
        return found


def _immediates_fit(found: Found, ins: Instruction) -> bool:
    """Whether every `imm` source of a row is written as an integer."""
    sources = found.row.written_sources
    written = ins.operands[len(ins.operands) - len(sources) :]
    return all(isinstance(o, Immediate) for arg, o in zip(sources, written) if arg.type_ == "imm")


def _f64_bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])
