"""Names for register rows: which register of the PTX text stands where, in each instruction and over the code.

Programs do not keep this, since only who looks at a kernel from inside needs it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from fasim.ptx.allocate import intervals
from fasim.ptx.emit import Emitter
from fasim.ptx.ir import LoweredFunction, Op, Ref, VReg
from fasim.ptx.lower import lowered
from fasim.ptx.tree import Module

#: types in which a not-a-number can stand
FLOAT_TYPES = ("f16x2", "bf16x2", "f16", "bf16", "f32", "f64")
_BITS = {"f16x2": 32, "bf16x2": 32, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}


@dataclass(frozen=True, slots=True)
class OperandName:
    """A register of one instruction. type_: as declared; seen_as: as the instruction takes it ("f16x2"), where it says so.

    bank: 64, 32 or 1 (a predicate). row: its place in a warp's register file. name: one that begins with ~ was made while lowering.
    """

    name: str
    type_: str
    seen_as: str
    bank: int
    row: int
    reads: bool
    writes: bool
    negated: bool

    @property
    def is_float(self) -> bool:
        """Whether a value can be a not-a-number."""
        return self.seen_as in FLOAT_TYPES


@dataclass(frozen=True, slots=True)
class RegisterName:
    """A register and its row; only an instruction from `first_pc` to `last_pc` of `function` ("": of any) finds its value there."""

    name: str
    type_: str
    bank: int
    row: int
    function: str
    first_pc: int
    last_pc: int


@dataclass(frozen=True)
class RegisterNames:
    """operands: of each pc. registers: of all functions. functions: name, first and last pc of each."""

    operands: list[tuple[OperandName, ...]]
    registers: list[RegisterName]
    functions: list[tuple[str, int, int]]

    def function_at(self, pc: int) -> str:
        """The function that a pc belongs to."""
        return next((name for name, first, last in self.functions if first <= pc <= last), "")

    @cached_property
    def _by_name(self) -> dict[str, list[RegisterName]]:
        found: dict[str, list[RegisterName]] = {}
        for register in self.registers:
            found.setdefault(register.name, []).append(register)
        return found

    def holds(self, name: str, pc: int) -> bool:
        """Whether a register holds its value when the instruction at `pc` is the next."""
        found, function = self._by_name.get(name, ()), self.function_at(pc)
        return any(not r.function or (r.function == function and r.first_pc <= pc <= r.last_pc) for r in found)

    def live_at(self, pc: int) -> list[RegisterName]:
        """The registers that hold their values when the instruction at `pc` is the next."""
        function = self.function_at(pc)
        return [r for r in self.registers if not r.function or (r.function == function and r.first_pc <= pc <= r.last_pc)]


def register_names(module: Module, entry: str, arch: int) -> RegisterNames:
    """Lower a kernel again, for its names.

    Raises: as `fasim.ptx.lower.lower`.
    """
    emitter = lowered(module, entry, arch)
    operands: list[tuple[OperandName, ...]] = []
    registers = [RegisterName(r.name, f"b{r.bank}", r.bank, emitter.row(r), "", 0, 0) for r in emitter.fixed if r.name.startswith("%")]
    functions = []
    for function in emitter.functions:
        types = module.functions[function.name].registers
        ops = [op for _, op in emitter.linear(function)]
        first = len(operands)
        for op in ops:
            operands.append(_operands(emitter, types, op))
        functions.append((function.name, first, len(operands) - 1))
        registers += _registers(emitter, function, types, ops, first)
    return RegisterNames(operands, registers, functions)


def _type(types: dict[str, str], reg: VReg) -> str:
    """The declared type; registers without one by their width."""
    return types.get(reg.name, "pred" if reg.bank == 1 else f"b{reg.bank}")


def _operands(emitter: Emitter, types: dict[str, str], op: Op) -> tuple[OperandName, ...]:
    found: list[OperandName] = []
    refs = [item for item in op.pool if isinstance(item, Ref)]
    if op.guard is not None:
        refs.append(op.guard)
    written = sum(ref.writes for ref in refs)
    for i, ref in enumerate(refs):
        reg = ref.reg
        if reg.fixed and not reg.name.startswith("%"):
            continue
        row = emitter.row(reg)
        same = next((k for k, each in enumerate(found) if each.row == row and each.name == reg.name and each.writes == ref.writes), -1)
        if same >= 0:
            continue
        type_ = _type(types, reg)
        accumulator = ref.writes or i >= len(refs) - written - (op.guard is not None)
        seen = "" if op.guard is ref else _seen_as(op, type_, writes=ref.writes, accumulator=accumulator)
        found.append(OperandName(reg.name, type_, seen or type_, reg.bank, row, ref.reads, ref.writes, ref.negated))
    return tuple(found)


def _seen_as(op: Op, type_: str, *, writes: bool, accumulator: bool) -> str:
    """What an instruction takes an untyped register for, "" if it does not say."""
    if type_[0] not in "bus" or op.source is None:
        return ""
    opcode, *modifiers = op.source.mnemonic.split(".")
    bits = int(type_[1:])
    if opcode in ("mma", "wmma"):
        kinds = [word for word in modifiers if word in (*FLOAT_TYPES, "tf32")]
        if not kinds:
            return ""
        kind = kinds[0] if accumulator else kinds[min(1, len(kinds) - 1)]
        return {"f16": "f16x2", "bf16": "bf16x2", "tf32": "f32"}.get(kind, kind)
    kinds = [word for word in modifiers if word in FLOAT_TYPES]
    if not kinds:
        return ""
    kind = kinds[0] if writes else kinds[-1]
    return kind if _BITS[kind] == bits else ""


def _registers(emitter: Emitter, function: LoweredFunction, types: dict[str, str], ops: list[Op], first: int) -> list[RegisterName]:
    """The registers of a function, each with the part of the code that finds its value in its row."""
    own = {id(op) for block in function.blocks for op in block.ops}
    pcs = [first + i for i, op in enumerate(ops) if id(op) in own]
    starts, ends = intervals(function)
    found = []
    for reg, start in starts.items():
        begin, end = -(-start // 2), ends[reg] // 2  # an operation reads at 2i and writes at 2i + 1
        if begin <= end and begin < len(pcs):
            last = pcs[min(end, len(pcs) - 1)]
            found.append(RegisterName(reg.name, _type(types, reg), reg.bank, emitter.row(reg), function.name, pcs[begin], last))
    return sorted(found, key=lambda r: (r.first_pc, r.row))
