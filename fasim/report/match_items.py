"""From a simulated launch and from machine code with counts to the instructions that are compared."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from fasim.isa.program import SourceInstruction
from fasim.report import ncu_conditions
from fasim.report.machine_classes import (
    BY_NAME,
    COUNTED_IN,
    GENERIC,
    SHARED_KINDS,
    InstructionClass,
    class_of_machine,
    class_of_ptx,
    machine_bytes,
    machine_operation,
    operation_bytes,
    ptx_bytes,
    ptx_operation,
    ptx_shared_operation,
)
from fasim.report.match import Item, Place
from fasim.report.measured import MachineInstruction
from fasim.sm.result import InstructionCount, LaunchResult, SharedAccess
from fasim.trace.steps import call_path

_ATOMIC = "shared atomic"


@dataclass(frozen=True)
class Figures:
    """Of one side: executions by warps, also with a false predicate; wavefronts and ideal as ncu's source page has them."""

    executions: int
    wavefronts: int
    ideal: int


def figures_of(items: Iterable[Item]) -> Figures:
    """The sums over some instructions."""
    numbers = [(x.executions, x.wavefronts, x.ideal) for x in items]
    executions, wavefronts, ideal = (sum(column) for column in zip(*numbers)) if numbers else (0, 0, 0)
    return Figures(executions, wavefronts, ideal)


def simulated_items(result: LaunchResult) -> list[Item]:
    """What the simulation executed, by PTX instruction, as far as it can be compared."""
    issued = _issued(result)
    met_shared = {access.source for access in result.shared_accesses}
    items = [_of_access(access, issued.get(access.source, access.executions)) for access in result.shared_accesses]
    for source, executions in issued.items():
        each = class_of_ptx(source.mnemonic)
        if each is None or source in met_shared:
            continue
        if not each.shared:
            items.append(_of_other(each, source, executions))
        elif executions:  # with a false predicate in every lane
            items.append(_never_on(each, source, executions))
    return items


def _issued(result: LaunchResult) -> dict[SourceInstruction, int]:
    """Executions by warps, also with a false predicate, which is how a GPU counts."""
    found: dict[SourceInstruction, int] = {}
    for count in result.counts:
        # an instruction that the machine does in several ways is issued as often as the most frequent of them
        found[count.source] = max(found.get(count.source, 0), count.executions)
    return found


def _of_access(access: SharedAccess, executions: int) -> Item:
    op, name = ptx_operation(access.op), SHARED_KINDS[access.kind]
    return Item(
        name,
        op,
        operation_bytes(op),
        executions,
        access.source.ptx_line,
        call_path(access.source),
        access.source.text,
        access.source_wavefronts,
        access.source_ideal,
        guarded=access.source.text.lstrip("{ ").startswith("@"),
        hardware=(access.wavefronts, access.conflicts),
        counted_in=COUNTED_IN.get(name, ""),
        as_if=access.as_if,
    )


def machine_pair(count: InstructionCount, access: SharedAccess | None, instruction: MachineInstruction) -> tuple[Item, Item]:
    """One machine instruction as it was simulated and as the GPU executed it; access: what it did in shared memory, if anything.

    The name is that of its class if it accesses shared memory, else the opcode.
    """
    opcode, source = instruction.opcode, count.source
    head = opcode.split(".")[0]
    each = class_of_machine(opcode)
    if head in GENERIC and (access is not None or instruction.wavefronts_shared):
        each = BY_NAME[GENERIC[head]]
    elif instruction.wavefronts_shared and (each is None or not each.shared):
        each = BY_NAME[_ATOMIC]  # no other class accesses shared memory
    shared = each is not None and each.shared
    name, op = (each.name, machine_operation(opcode)) if each is not None and shared else (head, opcode)
    size = operation_bytes(op) if shared else 1
    place, guarded, counted_in = call_path(source), source.text.startswith("@"), COUNTED_IN.get(name, "")
    ours = Item(
        name,
        op,
        size,
        count.executions,
        source.ptx_line,
        place,
        source.text,
        access.source_wavefronts if access else 0,
        access.source_ideal if access else 0,
        guarded=guarded,
        hardware=(access.wavefronts, access.conflicts) if access else (0, 0),
        counted_in=counted_in,
        as_if=access.as_if if access else (),
    )
    return ours, _measured(instruction, name, op, size, place, counted_in)


def _measured(instruction: MachineInstruction, name: str, op: str, size: int, place: Place, counted_in: str) -> Item:
    """What the GPU executed of a machine instruction."""
    return Item(
        name,
        op,
        size,
        instruction.executions,
        instruction.ptx_line,
        place,
        instruction.text,
        instruction.wavefronts_shared,
        instruction.wavefronts_shared_ideal,
        guarded=instruction.text.lstrip("{ ").startswith("@"),
        offset=instruction.offset,
        all_lanes=instruction.threads_on == 32 * instruction.executions,
        one_lane=instruction.threads_on <= instruction.executions,
        counted_in=counted_in,
        taken_for=ncu_conditions.taken_for(instruction),
        guard_as=ncu_conditions.guard_as(instruction),
    )


def _never_on(each: InstructionClass, source: SourceInstruction, executions: int) -> Item:
    """An access to shared memory that no lane made: its operation is told by its text."""
    op = ptx_shared_operation(each.name, source.mnemonic, source.text)
    return Item(each.name, op, operation_bytes(op), executions, source.ptx_line, call_path(source), source.text, guarded=True)


def _of_other(each: InstructionClass, source: SourceInstruction, executions: int) -> Item:
    size = ptx_bytes(source.mnemonic) if each.sized else 1
    op = f"{each.name}.{8 * size}" if each.sized else each.name
    guarded = source.text.lstrip("{ ").startswith("@")
    return Item(each.name, op, size, executions, source.ptx_line, call_path(source), source.text, guarded=guarded)


def machine_items(instructions: Iterable[MachineInstruction], result: LaunchResult) -> list[Item]:
    """What the GPU executed, by machine instruction, as far as it can be compared; places are those of the PTX where its line is known."""
    ptx = _Ptx(result)
    return [item for instruction in instructions if (item := ptx.item(instruction)) is not None]


class _Ptx:
    """What the PTX says about a machine instruction."""

    def __init__(self, result: LaunchResult) -> None:
        self._sources: dict[int, list[tuple[SourceInstruction, int]]] = {}
        for source, executions in _issued(result).items():
            self._sources.setdefault(source.ptx_line, []).append((source, executions))
        looped = [access.source for access in result.shared_accesses if not access.op]
        self._looped_lines = {source.ptx_line for source in looped}
        # of machine code without PTX lines: where nothing else is done in shared memory
        others = {call_path(access.source) for access in result.shared_accesses if access.op}
        self._looped_places = {call_path(source) for source in looped} - others
        self._generic_lines = {a.source.ptx_line for a in result.shared_accesses if ".shared" not in a.source.mnemonic}

    def item(self, instruction: MachineInstruction) -> Item | None:
        opcode = instruction.opcode
        each = self._class_of(instruction)
        if each is None:
            return None
        place = self._place(instruction)
        operation = machine_operation(opcode)
        if each.shared:
            op, size = operation, operation_bytes(operation)
        else:
            size = machine_bytes(opcode) if each.sized else 1
            op = f"{each.name}.{8 * size}" if each.sized else each.name
        counted = class_of_machine(opcode)
        counted_in = COUNTED_IN.get(counted.name if counted and counted.shared else each.name, "")
        origins = list(self._origins(instruction, each))
        return replace(
            _measured(instruction, each.name, op, size, place, counted_in),
            origin=next((mnemonic for mnemonic, _ in origins), ""),
            branched_around=any(branched for _, branched in origins),
        )

    def _class_of(self, instruction: MachineInstruction) -> InstructionClass | None:
        each = class_of_machine(instruction.opcode)
        head = instruction.opcode.split(".")[0]
        if head in GENERIC and (instruction.wavefronts_shared or instruction.ptx_line in self._generic_lines):
            each = BY_NAME[GENERIC[head]]
        if each is None and instruction.wavefronts_shared:
            return BY_NAME[_ATOMIC]  # no other class accesses shared memory
        if each is not None and each.shared and self._in_loop(instruction):
            return BY_NAME[_ATOMIC]
        return each

    def _in_loop(self, instruction: MachineInstruction) -> bool:
        """Whether it belongs to the loop that stands for an atomic."""
        if instruction.ptx_line:
            return instruction.ptx_line in self._looped_lines
        return tuple(reversed(instruction.place)) in self._looped_places

    def _place(self, instruction: MachineInstruction) -> Place:
        for source, _ in self._sources.get(instruction.ptx_line, []):
            if path := call_path(source):
                return path
        return tuple(reversed(instruction.place))

    def _origins(self, instruction: MachineInstruction, each: InstructionClass) -> Iterator[tuple[str, bool]]:
        """Mnemonics on its PTX line, each with whether it is of the same class and was never executed."""
        for source, executions in self._sources.get(instruction.ptx_line, []):
            yield source.mnemonic, class_of_ptx(source.mnemonic) is each and not executions
