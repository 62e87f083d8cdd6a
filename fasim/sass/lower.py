"""From a cubin to a `Program` that the machine runs: the machine code of one kernel."""

from __future__ import annotations

from dataclasses import dataclass

from fasim.errors import UsageError
from fasim.isa import machine as m
from fasim.isa.program import Program
from fasim.ptx.allocate import allocate
from fasim.ptx.emit import Emitter
from fasim.ptx.ir import LoweredFunction, Op
from fasim.ptx.order import blocks_of
from fasim.ptx.tree import Module
from fasim.sass.context import SassContext
from fasim.sass.control_flow import LOWERERS as CONTROL
from fasim.sass.cubin import CubinKernel, read_kernel
from fasim.sass.listing import section
from fasim.sass.lowerer import SassLowerer
from fasim.sass.memory import LOWERERS as MEMORY
from fasim.sass.skeleton import reduce
from fasim.sass.syntax import Instruction, Number, parse

LOWERERS = MEMORY | CONTROL
#: where a computed jump goes that leads to no place known
NOWHERE = "~nowhere"
#: what a basic block ends with: lanes may go elsewhere, wait or end there
_ENDS = frozenset(("BRA", "BRX", "BRXU", "JMP", "JMX", "CALL", "RET", "EXIT", "BSYNC", "WARPSYNC", "BREAK", "NANOSLEEP", "YIELD", "BPT"))


@dataclass(frozen=True)
class MachineCode:
    """A kernel's machine code, read.

    targets: offsets that a computed jump can go to: functions, what follows a call, labels that the code mentions, cases of a switch.
    """

    facts: CubinKernel
    labels: dict[str, int]
    instructions: tuple[Instruction, ...]
    targets: set[int]

    def leaders(self) -> list[int]:
        """The numbers of the instructions with which basic blocks begin."""
        places, found, after = set(self.labels.values()) | self.targets, [], True
        for number, ins in enumerate(self.instructions):
            if after or ins.line.offset in places:
                found.append(number)
            after = ins.opcode in _ENDS
        return found


def read_code(cubin: bytes, entry: str) -> MachineCode:
    """Read the machine code of a kernel and what belongs to it.

    Raises: FasimError for what is no cubin; ToolMissing without nvdisasm.
    """
    facts, code = read_kernel(cubin, entry), section(cubin, entry)
    instructions = tuple(parse(line) for line in code.lines)
    return MachineCode(facts, code.labels, instructions, _targets(instructions, set(code.labels.values()), facts))


def lower(cubin: bytes, module: Module, entry: str, arch: int, *, skeleton: bool = False) -> Program:
    """Lower the machine code of a kernel; module: the PTX that was compiled together with it, which names parameters and variables.
    skeleton: only what decides the path and the addresses, with a mark where each basic block begins (see `fasim.sass.skeleton`).

    Raises: as `lowered`.
    """
    emitter = lowered(cubin, module, entry, arch, skeleton=skeleton)
    program = emitter.program()
    context = emitter.context
    assert isinstance(context, SassContext)
    program.local_bytes = context.facts.stack_bytes + 256
    program.barriers_only = True
    program.static_smem_bytes = max(context.facts.shared_bytes - context.reserved_smem_bytes, 0)
    program.reserved_smem_bytes = context.reserved_smem_bytes
    program.parameter_base = context.parameter_base
    program.syncs_grid = context.syncs_grid
    return program


def lowered(cubin: bytes, module: Module, entry: str, arch: int, *, skeleton: bool = False) -> Emitter:
    """The kernel's code as operations with their register rows.

    Raises: UnsupportedInstruction with place for what fasim does not model; FasimError for what is no cubin; ToolMissing without nvdisasm.
    """
    if arch // 10 not in (8, 9, 10, 12):
        raise UsageError(f"sm_{arch}: fasim runs machine code of sm_80 and later")
    kernel = module.functions[entry]
    code = read_code(cubin, entry)
    instructions, targets = code.instructions, code.targets
    context = SassContext(module, kernel, arch, code.facts)
    context.place_variables()
    context.place_banks()
    by_offset: dict[int, list[str]] = {}
    for name, offset in code.labels.items():
        by_offset.setdefault(offset, []).append(name)
    context.labels = code.labels
    context.targets = [*(f"~{at:#x}" for at in sorted(targets)), NOWHERE]
    context.places = [f"~{ins.line.offset:#x}" if ins.line.offset in targets else NOWHERE for ins in instructions]
    f = SassLowerer(context)
    starts = set(code.leaders())
    for number, ins in enumerate(instructions):
        f.items += by_offset.get(ins.line.offset, ())
        if ins.line.offset in targets:
            f.items.append(f"~{ins.line.offset:#x}")
        if skeleton and number in starts:
            f.items.append(Op(m.MARK, aux=number))
        LOWERERS.get(ins.opcode, SassLowerer.lower_lanes)(f, ins)
    f.items += [NOWHERE, Op(m.TRAP, [], falls=False)]
    function = LoweredFunction(entry, blocks_of(f.items))
    if skeleton:
        reduce(function)
    allocate(function)
    return Emitter(context, [function], {entry: set()})


def _targets(instructions: tuple[Instruction, ...], labels: set[int], facts: CubinKernel) -> set[int]:
    """Offsets that a register may hold to jump to: where functions begin, what follows a call, cases of a switch."""
    cases = facts.jump_table if any(ins.opcode in ("BRX", "BRXU") for ins in instructions) else set()
    after_calls = {ins.line.offset + 16 for ins in instructions if ins.opcode == "CALL"}
    known = {ins.line.offset for ins in instructions}
    mentioned = {
        operand.value for ins in instructions for operand in ins.operands if isinstance(operand, Number) and operand.value in known
    }
    return (set(facts.functions.values()) | after_calls | cases | (mentioned & labels)) & known
