"""Operands of machine code to register rows, and instructions on registers to operations."""

from __future__ import annotations

from dataclasses import replace

from fasim.isa import machine as m
from fasim.isa.operands import DataRegister, Memory, Transfer
from fasim.isa.program import HandlerUse
from fasim.isa.rows import SASS_ROWS
from fasim.isa.sass.declare import ABSOLUTE, INVERTED, NEGATED, SIGN_BITS
from fasim.isa.sass.packed import LOWER, UPPER
from fasim.isa.table import Arg, Row
from fasim.numerics.lanes import width
from fasim.ptx.ir import Op, PoolItem, Ref, VReg
from fasim.ptx.lower_memory import signed32
from fasim.sass.context import WORKSPACE, SassContext
from fasim.sass.cubin import ADDRESSES, OF_KERNEL, PARAMETERS, VARIABLES
from fasim.sass.shapes import ROW_OF, SHAPES, UNIFORM, longest
from fasim.sass.syntax import Address, Constant, Instruction, Name, Number, Operand, Predicate, Register

#: halves of a register that an operand takes: as signs of its row
HALVES = {"H0_H0": LOWER, "H1_H1": UPPER, "H0": LOWER, "H1": UPPER}
#: parts of a register that a source of fewer bits takes: from which bit on
_PART_STARTS = {"H0": 0, "H1": 16, "B0": 0, "B1": 8, "B2": 16, "B3": 24}
#: by how many bits a register of an address is shifted
SCALES = {"X4": 2, "X8": 3, "X16": 4}
#: what may stand after a register and changes nothing
_IGNORED = frozenset({"reuse", "64", "ROW", "COL", "H1_H0"})


class SassLowerer:
    """Turns instructions into labels (str) and operations; `items` is the result.

    An instruction becomes one operation that counts, and perhaps others before and after it that only move operands.
    Raises: UnsupportedInstruction for what fasim does not model.
    """

    def __init__(self, context: SassContext) -> None:
        self.context = context
        self.items: list[str | Op] = []
        self.temporaries = 0

    # --- operations ------------------------------------------------------------------------------------------------------------

    def temporary(self, bank: int) -> VReg:
        """A register that machine code has no name for."""
        self.temporaries += 1
        return VReg(f"~{self.temporaries}", bank, function=self.context.kernel.name)

    def move(self, name: str, dests: list[VReg], sources: list[VReg], guard: Ref | None = None) -> None:
        """An operation that only moves operands, by its PTX row."""
        pool = [*(Ref(dest, False, True) for dest in dests), *(Ref(source) for source in sources)]
        self.items.append(Op(m.LANES, pool, guard, HandlerUse(name)))

    def also(self, ins: Instruction, dest: VReg, source: VReg) -> None:
        """A further word that an instruction writes, under its guard."""
        self.items.append(Op(m.LANES, [Ref(dest, False, True), Ref(source)], self.guard(ins), HandlerUse("MOV", (0,))))

    def select(self, dest: VReg, if_true: VReg, if_false: VReg, condition: Ref, guard: Ref | None = None) -> None:
        """One of two words."""
        pool = [Ref(dest, False, True), Ref(if_true), Ref(if_false), condition]
        self.items.append(Op(m.LANES, pool, guard, HandlerUse("SEL", (0,))))

    def guard(self, ins: Instruction) -> Ref | None:
        """The guard as a reference, None if there is none or it is always true."""
        if ins.guard is None or (ins.guard.is_true and not ins.guard.negated):
            return None
        return Ref(self.context.predicate(ins.guard), negated=ins.guard.negated)

    def finish(self, ins: Instruction, op: Op) -> None:
        """The operation that the instruction is."""
        op.source, op.guard = self.context.source_of(ins), self.guard(ins)
        self.items.append(op)

    # --- operands --------------------------------------------------------------------------------------------------------------

    def word(self, ins: Instruction, operand: Operand, offset: int = 0) -> VReg:
        """A source of 32 bits; offset: of a register pair or a constant, the how manieth word."""
        context = self.context
        if isinstance(operand, Register):
            if unknown := [part for part in operand.parts if part not in _IGNORED and part not in HALVES]:
                raise context.unknown(ins, f"the operand part .{unknown[0]} is not modelled")
            return context.register(operand, offset)
        if isinstance(operand, Number):
            if offset:
                return context.constant(32, 0xFFFFFFFF if operand.value < 0 else 0)
            return context.constant(32, operand.value)
        if isinstance(operand, Constant):
            return self._constant(ins, operand, offset)
        if isinstance(operand, Name) and operand.text in ("SRZ", "PR"):
            return context.constant(32, 0)
        raise context.unknown(ins, f"the operand {operand} does not stand for 32 bits")

    def _constant(self, ins: Instruction, operand: Constant, offset: int) -> VReg:
        if operand.bank not in (PARAMETERS, OF_KERNEL, VARIABLES, ADDRESSES):
            raise self.context.unknown(ins, f"constant bank {operand.bank:#x} is not modelled")
        at = operand.offset + 4 * offset
        if operand.bank == PARAMETERS and operand.base is None:
            return self.context.bank0(at)
        if operand.base is None and operand.bank in (OF_KERNEL, ADDRESSES):
            data = self.context.contents.get(operand.bank, b"")
            return self.context.constant(32, int.from_bytes(data[at : at + 4], "little"))
        dest = self.temporary(32)
        self.items.append(self.constant_load(ins, operand, [Ref(dest, False, True)], at, 4))
        return dest

    def constant_load(self, ins: Instruction, operand: Constant, dests: list[Ref], at: int, size: int, sign: bool = False) -> Op:
        """The load of an LDC."""
        base = -1 if operand.base is None or operand.base.is_zero else Ref(self.context.register(operand.base))
        if operand.bank == PARAMETERS:
            self.context.syncs_grid |= at == WORKSPACE.get(self.context.parameter_base)
            space, address, wide, start = m.PARAM, base, 0, at
        else:
            space, start, address, wide = m.GLOBAL, self.context.bank_address(operand.bank) + at, -1, 0
            if isinstance(base, Ref):
                address, wide = Ref(self.wide(base.reg, self.context.constant(32, 0))), 1
        memory = Memory[Ref](
            space=space,
            bytes_=size,
            vector=len(dests),
            sign=int(sign),
            address=address,
            wide=wide,
            offset_low=signed32(start),
            offset_high=signed32(start >> 32),
        )
        return Op(m.LOAD, Transfer(memory, tuple(DataRegister(dest, 4) for dest in dests)).items())

    def wide(self, low: VReg, high: VReg) -> VReg:
        """Two words as one register of 64 bits."""
        pair = self.temporary(64)
        self.move("mov.b64:pack2", [pair], [low, high])
        return pair

    def double(self, ins: Instruction, operand: Operand) -> VReg:
        """A source of 64 bits; a floating-point immediate is the upper word."""
        if isinstance(operand, Number):
            bits = operand.value << 32 if operand.is_float else operand.value
            return self.context.constant(64, bits)
        return self.wide(self.word(ins, operand), self.word(ins, operand, 1))

    def part_start(self, ins: Instruction, parts: tuple[str, ...]) -> int:
        """From which bit of a register on an instruction reads or writes a byte or half."""
        if len(parts) > 1 or not set(parts) <= set(_PART_STARTS):
            raise self.context.unknown(ins)
        return _PART_STARTS[parts[0]] if parts else 0

    def condition(self, ins: Instruction, operand: Operand | None) -> Ref:
        """A predicate as a source; one that is not written is false."""
        if operand is None:
            return Ref(self.context.constant(1, 0))
        if isinstance(operand, Register) and operand.parts[-1:] == ("SIGN",):
            sign = self.temporary(1)
            self.move("setp.lt.s32", [sign, self.context.unwritten(1)], [self.context.register(operand), self.context.constant(32, 0)])
            return Ref(sign)
        if not isinstance(operand, Predicate):
            raise self.context.unknown(ins, f"a predicate is expected instead of {operand}")
        return Ref(self.context.predicate(operand), negated=operand.negated)

    def signs(self, ins: Instruction, operand: Operand) -> int:
        """What an operand's minus, bars, tilde and halves mean to a row."""
        if not isinstance(operand, (Register, Constant)):
            return 0
        found = NEGATED * operand.negated | ABSOLUTE * operand.absolute | INVERTED * operand.inverted
        for part in operand.parts:
            if part in HALVES:
                found |= HALVES[part]
            elif part not in _IGNORED:
                raise self.context.unknown(ins, f"the operand part .{part} is not modelled")
        return found

    # --- instructions on registers ---------------------------------------------------------------------------------------------

    def lower_lanes(self, ins: Instruction) -> None:
        """An instruction on registers, by its shape and its row."""
        mnemonic = UNIFORM.get(ins.opcode, ins.opcode) + ins.mnemonic[len(ins.opcode) :]
        shape, name = longest(SHAPES, mnemonic), mnemonic if mnemonic in SASS_ROWS else ROW_OF.get(mnemonic)
        if shape is None or name is None:
            raise self.context.unknown(ins)
        found = self._matched(ins, shape)
        if name == "PRMT" and isinstance(found["selector"], Number):
            name = "PRMT:imm"
        elif name == "IADD.64" and (found["p"] is not None or found["x"] is not None):
            name = "IADD.64:carry"
        elif f"{name}:which" in SASS_ROWS and any(isinstance(p, Predicate) and not p.is_true for p in (found["p"], found.get("q"))):
            name = f"{name}:which"
        self._check_written(ins, SASS_ROWS[name], found)
        self.emit_row(ins, SASS_ROWS[name], found)

    def _matched(self, ins: Instruction, shape: str) -> dict[str, Operand | None]:
        """The operands by the letters of a shape."""
        operands, found = list(ins.operands), {}  # type: tuple[list[Operand], dict[str, Operand | None]]
        for part in shape.split():
            name, optional = part.rstrip("?"), part.endswith("?")
            if optional and (not operands or (name != "*" and not isinstance(operands[0], Predicate))):
                found[name] = None
                continue
            if not operands:
                raise self.context.unknown(ins, "there are fewer operands than expected")
            operand = operands.pop(0)
            if name == "_" and not (isinstance(operand, Predicate) and operand.is_true):
                raise self.context.unknown(ins, f"PT or !PT is expected instead of {operand}")
            found[name] = operand
        if operands:
            raise self.context.unknown(ins, f"there are more operands than expected: {operands}")
        return found

    def _check_written(self, ins: Instruction, row: Row, found: dict[str, Operand | None]) -> None:
        """Refuse an operand that the row does not take."""
        names = {arg.name for arg in (*row.dests, *row.sources)}
        for name, operand in found.items():
            means_nothing = operand is None or (isinstance(operand, Predicate) and operand.is_true and not operand.negated)
            if not means_nothing and name not in "_*" and not names & {*name.lstrip("#").split(":"), name}:
                raise self.context.unknown(ins, f"the operand {operand} is not modelled")

    def emit_row(self, ins: Instruction, row: Row, found: dict[str, Operand | None]) -> None:
        """The operation of a row with its operands by name; pairs stand under `low:high`."""
        context = self.context
        pairs = {part: (name, i) for name in found if ":" in name for i, part in enumerate(name.split(":"))}
        pool: list[PoolItem] = []
        after: list[tuple[list[VReg], VReg]] = []
        for arg in row.dests:
            name, offset = pairs.get(arg.name, (arg.name, 0))
            pool += self._dest(ins, arg, found.get(name), offset, after)
        immediates: list[int] = []
        signs = number = 0
        for arg in row.sources:
            name, offset = pairs.get(arg.name, (arg.name, 0))
            operand = found.get(f"#{name}") if arg.type_ == "imm" else found.get(name)
            if arg.name == "active":
                continue
            if arg.name == "signs":
                immediates.append(signs)
            elif arg.name == "arch":
                archs = row.attributes["archs"]
                immediates.append(context.arch if context.arch in archs else max(a for a in archs if a <= context.arch))
            elif arg.type_ == "imm":
                operand = operand if operand is not None else found.get(name)
                if not isinstance(operand, Number):
                    raise context.unknown(ins, f"a number is expected for {name}")
                immediates.append(operand.value & 0xFFFFFFFF)
            elif arg.type_ == "pred":
                pool.append(self.condition(ins, operand))
            else:
                assert operand is not None
                operand, start = self._part(arg, operand)
                items = self._source(ins, arg, operand, offset)
                pool += [self._shifted(item, start) for item in items] if start else items
                if not arg.count:
                    signs |= self.signs(ins, operand) << SIGN_BITS * number if offset == 0 else 0
                    number += 1
        self.finish(ins, Op(m.LANES, pool, handler=HandlerUse(row.name, tuple(immediates))))
        for words, pair in after:
            self.move("mov.b64:unpack2", words, [pair], self.guard(ins))

    def _dest(
        self, ins: Instruction, arg: Arg, operand: Operand | None, offset: int, after: list[tuple[list[VReg], VReg]]
    ) -> list[PoolItem]:
        context = self.context
        if arg.type_ == "pred":
            if operand is None or (isinstance(operand, Predicate) and operand.is_true):
                return [Ref(context.unwritten(1), False, True)]
            if not isinstance(operand, Predicate):
                raise context.unknown(ins, f"a predicate is expected instead of {operand}")
            return [Ref(context.predicate(operand), False, True)]
        if operand is None:
            return [Ref(context.unwritten(m.bank_of(width(arg.type_))), False, True)]
        if not isinstance(operand, Register):
            raise context.unknown(ins, f"a register is expected instead of {operand}")
        words = width(arg.type_) // 32 or 1
        pool: list[PoolItem] = []
        for i in range(max(arg.count, 1)):
            at = offset + i * words
            if words == 1:
                pool.append(Ref(context.written(operand, at), False, True))
            else:
                pair = self.temporary(64)
                pool.append(Ref(pair, False, True))
                after.append(([context.written(operand, at), context.written(operand, at + 1)], pair))
        return pool

    @staticmethod
    def _part(arg: Arg, operand: Operand) -> tuple[Operand, int]:
        """An operand without the byte or half that it names, and from which bit on that is, for a source of fewer bits."""
        if width(arg.type_) >= 32 or not isinstance(operand, Register):
            return operand, 0
        start = next((_PART_STARTS[part] for part in operand.parts if part in _PART_STARTS), 0)
        return replace(operand, parts=tuple(part for part in operand.parts if part not in _PART_STARTS)), start

    def _shifted(self, item: PoolItem, start: int) -> PoolItem:
        assert isinstance(item, Ref)
        shifted = self.temporary(32)
        self.move("shr.u32", [shifted], [item.reg, self.context.constant(32, start)])
        return Ref(shifted)

    def _source(self, ins: Instruction, arg: Arg, operand: Operand, offset: int) -> list[PoolItem]:
        words = width(arg.type_) // 32 or 1
        pool: list[PoolItem] = []
        for i in range(max(arg.count, 1)):
            if words == 1:
                pool.append(Ref(self.word(ins, operand, offset + i)))
            elif arg.count:
                assert isinstance(operand, Register)
                pool.append(Ref(self.wide(self.context.register(operand, 2 * i), self.context.register(operand, 2 * i + 1))))
            else:
                pool.append(Ref(self.double(ins, operand)))
        return pool

    def _scaled(self, ins: Instruction, register: Register) -> VReg:
        """A register of an address: R4.X16 is sixteen times as much."""
        row, parts = self.context.register(register), [part for part in register.parts if part != "reuse"]
        if not parts:
            return row
        if len(parts) > 1 or parts[0] not in SCALES:
            raise self.context.unknown(ins, f"the address part .{'.'.join(parts)} is not modelled")
        scaled = self.temporary(32)
        self.move("shl.b32", [scaled], [row, self.context.constant(32, SCALES[parts[0]])])
        return scaled

    # --- addresses -------------------------------------------------------------------------------------------------------------

    def memory(
        self, ins: Instruction, operand: Operand, space: int, size: int, count: int = 1, *, sign: bool = False, order: int = 0
    ) -> Memory[Ref]:
        """Where a memory instruction goes."""
        context = self.context
        if not isinstance(operand, Address):
            raise context.unknown(ins, f"an address is expected instead of {operand}")
        base, uniform = operand.base, operand.uniform
        base = None if base is None or base.is_zero else base
        uniform = None if uniform is None or uniform.is_zero else uniform
        address: Ref | int = -1
        long = space in (m.GLOBAL, m.GENERIC)
        if long:
            parts = [self.wide(context.register(each), context.register(each, 1)) for each in (base, uniform) if each is not None]
            if "E" not in ins.modifiers or (base is not None and base.parts not in ((), ("64",))):
                raise context.unknown(ins, "an address to global memory of this form is not modelled")
            address, name = -1, "add.u64"
        else:
            parts, name = [self._scaled(ins, each) for each in (base, uniform) if each is not None], "add.u32"
        if len(parts) == 2:
            total = self.temporary(64 if long else 32)
            self.move(name, [total], parts)
            parts = [total]
        if parts:
            address = Ref(parts[0])
        return Memory(
            space=space,
            bytes_=size,
            vector=count,
            sign=int(sign),
            address=address,
            wide=int(long and bool(parts)),
            offset_low=signed32(operand.offset),
            offset_high=signed32(operand.offset >> 32),
            order=order,
        )
