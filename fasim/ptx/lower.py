"""From a parsed module to a `Program` that the machine runs: one kernel with the functions it calls."""

from __future__ import annotations

from collections.abc import Iterator

from fasim.errors import NotModelled
from fasim.isa.program import ModuleVariable, Program
from fasim.ptx.allocate import allocate
from fasim.ptx.context import Context
from fasim.ptx.emit import Emitter
from fasim.ptx.ir import LoweredFunction
from fasim.ptx.lower_control import LOWERERS as CONTROL
from fasim.ptx.lower_function import FunctionLowerer
from fasim.ptx.lower_memory import LOWERERS as MEMORY
from fasim.ptx.lower_wmma import LOWERERS as WMMA
from fasim.ptx.order import blocks_of, weak_topological_order
from fasim.ptx.tree import (
    Address,
    BranchTargets,
    Call,
    Function,
    Instruction,
    Label,
    Module,
    Operand,
    Symbol,
    Variable,
    Vector,
)

LOWERERS = MEMORY | CONTROL | WMMA


def lower(module: Module, entry: str, arch: int) -> Program:
    """Lower one kernel of a module for the target `arch` (90 for sm_90).

    Raises: as `lowered`.
    """
    return lowered(module, entry, arch).program()


def lowered(module: Module, entry: str, arch: int) -> Emitter:
    """The functions of a kernel as operations, with their register rows, from which its program is made.

    Raises: UnsupportedInstruction with place and nearest known name for what fasim does not model; PtxError for malformed operands.
    """
    kernel = module.functions[entry]
    if module.address_size != 64:
        raise NotModelled(f"{module.path}: .address_size {module.address_size}: fasim models 64-bit addresses only")
    context = Context(module, kernel, arch)
    taken = _taken_addresses(module)
    functions = _reachable(module, kernel, taken)
    context.place_variables()
    context.place_shared(_shared_variables(module, functions))
    parts = [_lower_function(context, function) for function in functions]
    return Emitter(context, parts, calls={f.name: _callees(module, f, taken) for f in functions})


def module_variables(module: Module, arch: int) -> list[ModuleVariable]:
    """The module's variables as every kernel of it sees them."""
    if not module.entries:
        return []
    context = Context(module, module.functions[next(iter(module.entries))], arch)
    context.place_variables()
    return list(context.variables.values())


def _symbols(operands: tuple[Operand, ...]) -> Iterator[Symbol]:
    for operand in operands:
        if isinstance(operand, Symbol):
            yield operand
        elif isinstance(operand, Vector):
            yield from _symbols(operand.items)
        elif isinstance(operand, Address):
            if isinstance(operand.base, Symbol):
                yield operand.base
        elif isinstance(operand, Call):
            yield from _symbols((*operand.returns, *operand.arguments))
            if isinstance(operand.target, Symbol):
                yield operand.target


def _functions_in_data(module: Module) -> set[str]:
    """Functions whose addresses stand in variables (tables of function pointers, virtual functions)."""
    names = set()
    for variable in module.variables.values():
        for element in variable.initializer or ():
            symbol = getattr(element.value, "symbol", None)
            if symbol in module.functions:
                names.add(symbol)
    return names


def _taken_addresses(module: Module) -> set[str]:
    """All functions that a pointer may lead to: those in data, and those that any function of the module names other than to call them."""
    names = _functions_in_data(module)
    for function in module.functions.values():
        for ins in function.instructions:
            operands = ins.operands
            if ins.opcode == "call" and isinstance(operands[0], Call):
                operands = (*operands[0].returns, *operands[0].arguments)
            names |= {module.aliases.get(symbol.name, symbol.name) for symbol in _symbols(operands)}
    return {name for name in names if name in module.functions and module.functions[name].body is not None}


def _callees(module: Module, function: Function, taken: set[str]) -> set[str]:
    """Functions that a function calls or takes the address of; an indirect call may reach all whose address is `taken`."""
    names, indirect = set(), False
    for ins in function.instructions:
        for symbol in _symbols(ins.operands):
            name = module.aliases.get(symbol.name, symbol.name)
            if name in module.functions and module.functions[name].kind == "func":
                names.add(name)
        if ins.opcode == "call" and isinstance(ins.operands[0], Call) and not isinstance(ins.operands[0].target, Symbol):
            indirect = True
    if indirect:
        names |= taken
    return names


def _reachable(module: Module, kernel: Function, taken: set[str]) -> list[Function]:
    """The kernel and all it may call, callees before callers, so that lanes in a function run before those that have returned."""
    order: list[Function] = []
    seen: set[str] = set()
    stack: list[tuple[Function, Iterator[str]]] = []

    def enter(function: Function) -> None:
        seen.add(function.name)
        stack.append((function, iter(sorted(_callees(module, function, taken)))))

    enter(kernel)
    while stack:
        function, callees = stack[-1]
        for name in callees:
            callee = module.functions[name]
            if name not in seen and callee.body is not None:
                enter(callee)
                break
        else:
            order.append(function)
            stack.pop()
    return order


def _shared_variables(module: Module, functions: list[Function]) -> list[Variable]:
    """The shared variables that the functions use, in order of declaration."""
    used = {symbol.name for function in functions for ins in function.instructions for symbol in _symbols(ins.operands)}
    found = [v for v in module.variables.values() if v.state_space == "shared" and v.name in used]
    for function in functions:
        found += [s for s in function.body or () if isinstance(s, Variable) and s.state_space == "shared" and s.name in used]
    return found


def _lower_function(context: Context, function: Function) -> LoweredFunction:
    f = FunctionLowerer(context, function)
    for statement in function.body or ():
        if isinstance(statement, BranchTargets):
            f.branch_lists[statement.name] = tuple(symbol.name for symbol in statement.targets)
    f.load_formals()
    for statement in function.body or ():
        if isinstance(statement, Label):
            f.items.append(statement.name)
        elif isinstance(statement, Instruction):
            found = f.find(statement)
            kind = found.row.kind
            if kind in ("lanes", "collective"):
                f.lower_lanes(statement, found)
            else:
                LOWERERS[kind](f, statement, found)
    f.end()
    blocks = blocks_of(f.items)
    order = weak_topological_order([block.successors for block in blocks])
    result = LoweredFunction(function.name, [blocks[i] for i in order], frame_bytes=f.frame_bytes)
    position = {old: new for new, old in enumerate(order)}
    for block in result.blocks:
        block.successors = [position[s] for s in block.successors]
        block.next = position[block.next] if block.next >= 0 else -1
    allocate(result)
    return result
