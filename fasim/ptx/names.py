"""Names for register rows: which register of the PTX text stands where, in each instruction and over the code.

Programs do not keep this, since only who looks at a kernel from inside needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from fasim.isa import machine as m
from fasim.isa import operands as o
from fasim.ptx.allocate import intervals
from fasim.ptx.emit import Emitter
from fasim.ptx.ir import LoweredFunction, Op, Ref, VReg
from fasim.ptx.lower import lowered
from fasim.ptx.tree import Module

#: types in which a not-a-number can stand
FLOAT_TYPES = ("f16x2", "bf16x2", "f16", "bf16", "f32", "f64")
INTEGER_TYPES = tuple(f"{sign}{bits}" for sign in "us" for bits in (8, 16, 32, 64))
#: instructions whose types are those of parts of a register, or whose operands are addresses
_PACKED = ("cvta", "dp2a", "dp4a", *(f"v{what}{n}" for what in ("add", "sub", "absdiff", "min", "max", "avrg", "set") for n in ("", 2, 4)))
_BITS = {"f16x2": 32, "bf16x2": 32, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}


#: fixed registers that have a name for a person: special registers, constants that the driver passes
_SHOWN = ("%", "c[")
#: what an operation takes a register for, "" if it does not say: of the operation, its registers, the number of one, its declared type
SeenAs = Callable[[Op, list[Ref], int, str], str]


@dataclass(frozen=True, slots=True)
class OperandName:
    """A register of one instruction. type_: as declared; seen_as: as the instruction takes it ("f16x2", "s32"), where it says so.

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
    return names_of(emitter, {function.name: module.functions[function.name].registers for function in emitter.functions}, _seen_in_ptx)


def names_of(emitter: Emitter, declared: Mapping[str, dict[str, str]], seen: SeenAs) -> RegisterNames:
    """The names of a program. declared: types of registers by function; seen: what an operation takes one for."""
    operands: list[tuple[OperandName, ...]] = []
    registers = [RegisterName(r.name, f"b{r.bank}", r.bank, emitter.row(r), "", 0, 0) for r in emitter.fixed if r.name.startswith(_SHOWN)]
    functions = []
    for function in emitter.functions:
        types = declared.get(function.name, {})
        ops = [op for _, op in emitter.linear(function)]
        first = len(operands)
        for op in ops:
            operands.append(_operands(emitter, types, op, seen))
        functions.append((function.name, first, len(operands) - 1))
        registers += _registers(emitter, function, types, ops, first)
    return RegisterNames(operands, registers, functions)


def _type(types: dict[str, str], reg: VReg) -> str:
    """The declared type; registers without one by their width."""
    return types.get(reg.name, "pred" if reg.bank == 1 else f"b{reg.bank}")


def _operands(emitter: Emitter, types: dict[str, str], op: Op, seen: SeenAs) -> tuple[OperandName, ...]:
    found: list[OperandName] = []
    refs = [item for item in op.pool if isinstance(item, Ref)]
    if op.guard is not None:
        refs.append(op.guard)
    for i, ref in enumerate(refs):
        reg = ref.reg
        if reg.fixed and not reg.name.startswith(_SHOWN):
            continue
        row = emitter.row(reg)
        same = next((k for k, each in enumerate(found) if each.row == row and each.name == reg.name and each.writes == ref.writes), -1)
        if same >= 0:
            continue
        type_ = _type(types, reg)
        found.append(OperandName(reg.name, type_, seen(op, refs, i, type_) or type_, reg.bank, row, ref.reads, ref.writes, ref.negated))
    return tuple(found)


def _seen_in_ptx(op: Op, refs: list[Ref], number: int, type_: str) -> str:
    """What a PTX instruction takes one of its registers for."""
    ref, written = refs[number], sum(each.writes for each in refs)
    accumulator = ref.writes or number >= len(refs) - written - (op.guard is not None)
    if op.guard is ref or any(ref is address for address in _addresses(op)):
        return ""
    return _seen_as(op, type_, writes=ref.writes, accumulator=accumulator)


def _addresses(op: Op) -> list[Ref]:
    """The registers that an access to memory takes as address."""
    if op.kind not in m.MEMORY_KINDS:
        return []
    places = [o.P_ADDRESS] + [o.Q_SOURCE + o.P_ADDRESS] * (op.kind == m.CP_ASYNC)
    return [item for at in places if isinstance(item := op.pool[at // 4], Ref)]


def _seen_as(op: Op, type_: str, *, writes: bool, accumulator: bool) -> str:
    """What an instruction takes a register for that may hold anything, "" if it does not say."""
    if type_[0] not in "bus" or op.source is None:
        return ""
    opcode, *modifiers = op.source.mnemonic.split(".")
    bits = int(type_[1:])
    if opcode in ("mma", "wmma"):
        kinds = [word for word in modifiers if word in (*FLOAT_TYPES, "tf32")]
        if not kinds:
            return "s32" if accumulator and "s32" in modifiers else ""
        kind = kinds[0] if accumulator else kinds[min(1, len(kinds) - 1)]
        return {"f16": "f16x2", "bf16": "bf16x2", "tf32": "f32"}.get(kind, kind)
    if writes and opcode in ("popc", "clz", "bfind"):
        return "u32"
    kinds = [word for word in modifiers if word in FLOAT_TYPES or word in INTEGER_TYPES]
    if not kinds or opcode in _PACKED:
        return ""
    kind = kinds[0] if writes or opcode == "slct" else kinds[-1]
    if kind in FLOAT_TYPES:
        return kind if _BITS[kind] == bits else ""
    return _integer(opcode, modifiers, kind, bits, writes=writes)


def _integer(opcode: str, modifiers: list[str], kind: str, bits: int, *, writes: bool) -> str:
    """The type of a register of so many bits that an instruction takes for an integer; a wider one holds it extended."""
    width = int(kind[1:])
    if opcode in ("shl", "shr") and not writes and width != bits:
        return "u32"  # by how much
    if width < bits and "pack" not in modifiers and (writes or "wide" in modifiers):
        return f"{kind[0]}{bits}"
    return kind if width <= bits and not (writes and width < bits) else ""


def _begins(op: Op, reg: VReg) -> bool:
    """Whether an operation gives a register its value and takes none from it, though its row is kept free for the whole operation."""
    return op.guard is None and reg in op.writes() and reg not in op.reads()


def _registers(emitter: Emitter, function: LoweredFunction, types: dict[str, str], ops: list[Op], first: int) -> list[RegisterName]:
    """The registers of a function, each with the part of the code that finds its value in its row."""
    own = {id(op) for block in function.blocks for op in block.ops}
    placed = [(first + i, op) for i, op in enumerate(ops) if id(op) in own]
    pcs = [pc for pc, _ in placed]
    starts, ends = intervals(function)
    found = []
    for reg, start in starts.items():
        begin, end = -(-start // 2), ends[reg] // 2  # an operation reads at 2i and writes at 2i + 1
        if begin < len(pcs) and start % 2 == 0 and _begins(placed[begin][1], reg):
            begin += 1
        if begin <= end and begin < len(pcs):
            last = pcs[min(end, len(pcs) - 1)]
            found.append(RegisterName(reg.name, _type(types, reg), reg.bank, emitter.row(reg), function.name, pcs[begin], last))
    return sorted(found, key=lambda r: (r.first_pc, r.row))
