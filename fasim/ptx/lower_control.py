"""Branches, calls, barriers and the like to operations.

Raises: PtxError for operands that do not fit, UnsupportedInstruction for what fasim does not model.
"""

from __future__ import annotations

from fasim.isa import machine as m
from fasim.isa.features import NOT_MODELLED_CALLS, feature
from fasim.isa.lookup import Found
from fasim.isa.operands import Barrier, CallOperands, IndexedBranch, Part, Parts, Service, WarpSync
from fasim.ptx.ir import FrameRef, LabelRef, Op, PoolItem, Ref, RegionRef
from fasim.ptx.layout import formal_layout
from fasim.ptx.lower_function import FunctionLowerer
from fasim.ptx.tree import Call, CallPrototype, Function, Instruction, Operand, Register, Symbol

#: functions of the driver that device code calls and Python carries out
SERVICES = {"vprintf": "printf", "__assertfail": "assert", "malloc": "malloc", "free": "free"}


def lower_branch(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """bra."""
    target = ins.operands[0]
    if not isinstance(target, Symbol):
        raise f.context.malformed(ins, "the target must be a label")
    f.finish(ins, Op(m.BRA, [], target=target.name, labels=[target.name], falls=ins.guard is not None), [])


def lower_indexed_branch(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """brx.idx."""
    index, table = ins.operands
    if not isinstance(table, Symbol) or table.name not in f.branch_lists:
        raise f.context.malformed(ins, "the list of targets is not declared with .branchtargets")
    labels = list(f.branch_lists[table.name])
    operands = IndexedBranch[PoolItem](
        index=f.source(ins, index, "u32"), count=len(labels), targets=tuple(LabelRef(label) for label in labels)
    )
    f.finish(ins, Op(m.BRX, operands.items(), labels=labels, falls=ins.guard is not None), [])


def lower_exit(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """exit, and ret: from the kernel itself it ends the thread."""
    kind = m.EXIT if found.row.kind == "exit" or f.is_kernel else m.RET
    if kind == m.RET:
        f.store_returns()
    f.finish(ins, Op(kind, [], falls=ins.guard is not None), [])


def lower_trap(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """trap, brkpt."""
    f.finish(ins, Op(m.TRAP, []), [])


def lower_nop(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """What changes nothing that the machine models."""
    f.finish(ins, Op(m.NOP, []), [])


def lower_fence(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """fence, membar: the machine's memory is always in order, so only the search for races looks at them."""
    if not ins.mnemonic.endswith(".cta"):
        f.context.communicates = True
    f.finish(ins, Op(m.FENCE, []), [])


def lower_yield(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """nanosleep."""
    f.source(ins, ins.operands[0], "u32")
    f.finish(ins, Op(m.YIELD, []), [])


def lower_commit(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """cp.async.commit_group."""
    f.context.uses_copies = True
    f.finish(ins, Op(m.CP_COMMIT, []), [])


def lower_barrier(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """bar and barrier in all forms."""
    operation = found.row.attributes["operation"]
    operands = list(ins.operands)
    dest: PoolItem = -1
    predicate: PoolItem = -1
    if operation in (m.BAR_RED_POPC, m.BAR_RED_AND, m.BAR_RED_OR):
        dest = f.dest(ins, operands.pop(0), found.row.dests[0].type_, [])
        predicate = f.source(ins, operands.pop(), "pred")
    if not 1 <= len(operands) <= 2 or (operation == m.BAR_ARRIVE and len(operands) != 2):
        raise f.context.malformed(ins, "takes a barrier number and a thread count")
    number = f.source(ins, operands[0], "u32")
    count: PoolItem = f.source(ins, operands[1], "u32") if len(operands) == 2 else -1
    aligned = int(found.row.attributes["aligned"])
    bar = Barrier[PoolItem](
        operation=operation, number=number, count=count, predicate=predicate, dest=dest, pc=LabelRef(""), aligned=aligned
    )
    f.finish(ins, Op(m.BAR, bar.items(), keeps_sources=True), [])


def lower_warp_sync(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """bar.warp.sync."""
    f.finish(ins, Op(m.WARP_SYNC, WarpSync(members=f.source(ins, ins.operands[0], "u32")).items()), [])


def lower_call(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """call: direct, through a pointer, or to a service of the driver."""
    call = ins.operands[0]
    if not isinstance(call, Call):
        raise f.context.malformed(ins, "not a call")
    if isinstance(call.target, Symbol) and call.target.name in SERVICES:
        _lower_service(f, ins, call, SERVICES[call.target.name])
        return
    prototype: Function | CallPrototype | None
    if isinstance(call.target, Symbol):
        prototype = f.context.module.functions.get(call.target.name)
        if prototype is None or prototype.body is None:
            lacking = feature(call.target.name, NOT_MODELLED_CALLS)
            why = f"fasim does not model {lacking}" if lacking else "it is declared but has no body in this module"
            raise f.context.unsupported(ins, f"the kernel calls {call.target.name}: {why}")
        target, address = call.target.name, f.context.constant(64, 0)
    else:
        prototype = f.prototype(call.prototype.name if call.prototype else "")
        target, address = "", f.source(ins, call.target, "u64").reg
    if prototype is None:
        raise f.context.malformed(ins, "an indirect call needs a .callprototype or .calltargets")
    formals_out, formals_in, formal_bytes = formal_layout(prototype)
    if len(formals_in) != len(call.arguments) or len(formals_out) != len(call.returns):
        raise f.context.malformed(ins, f"the function takes {len(formals_in)} arguments and returns {len(formals_out)} values")
    passed: list[Part[PoolItem]] = []
    for operand, (at, size) in zip(call.arguments, formals_in):
        passed.append(Part(source=f.argument_slot(ins, operand, size, store=True), target=at, bytes_=size))
    returned: list[Part[PoolItem]] = []
    loads: list[tuple[Operand, int, int]] = []
    for operand, (at, size) in zip(call.returns, formals_out):
        slot = f.argument_slot(ins, operand, size, store=False)
        returned.append(Part(source=at, target=slot, bytes_=size))
        if isinstance(operand, Register):
            loads.append((operand, slot, size))
    operands = CallOperands[PoolItem](
        target=LabelRef(target, is_function=True) if target else -1,
        address=Ref(address),
        frame=Ref(f.frame_row()),
        frame_bytes=FrameRef(f.function.name),
        saved=RegionRef(f.function.name, target),
        callee_bytes=FrameRef(target),
        formal_bytes=formal_bytes,
        parts=(Parts(len(passed), tuple(passed)), Parts(len(returned), tuple(returned))),
    )
    f.finish(ins, Op(m.CALL, operands.items()), [])
    for operand, slot, size in loads:
        f.load_slot(operand, slot, size, f.guard(ins))


def _lower_service(f: FunctionLowerer, ins: Instruction, call: Call, service: str) -> None:
    if service in ("malloc", "free"):  # the heap is one for all CTAs
        f.context.communicates = True
    slots = tuple(f.argument_slot(ins, operand, 8, store=operand in call.arguments) for operand in (*call.returns, *call.arguments))
    operands = Service(returns=len(call.returns), arguments=len(call.arguments), frame=Ref(f.frame_base()), slots=slots)
    f.finish(ins, Op(m.SERVICE, operands.items(), target=service), [])
    for operand, slot in zip(call.returns, slots):
        if isinstance(operand, Register):
            f.load_slot(operand, slot, 8, f.guard(ins))


LOWERERS = {
    "bra": lower_branch,
    "brx": lower_indexed_branch,
    "ret": lower_exit,
    "exit": lower_exit,
    "trap": lower_trap,
    "nop": lower_nop,
    "fence": lower_fence,
    "yield": lower_yield,
    "cp_commit": lower_commit,
    "bar": lower_barrier,
    "warp_sync": lower_warp_sync,
    "call": lower_call,
}
