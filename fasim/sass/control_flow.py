"""Branches, convergence barriers, calls, barriers and special registers of machine code to operations."""

from __future__ import annotations

from dataclasses import replace

from fasim.isa import machine as m
from fasim.isa.operands import Barrier, Clock, IndexedBranch, WarpSync
from fasim.isa.program import HandlerUse
from fasim.ptx.ir import LabelRef, Op, PoolItem, Ref, VReg
from fasim.sass.context import FIXED_SPECIALS, SPECIALS
from fasim.sass.lowerer import SassLowerer
from fasim.sass.syntax import Instruction, Label, Name, Number, Operand, Predicate, Register


def label_of(f: SassLowerer, ins: Instruction, operand: Operand) -> str:
    """The label that an operand names."""
    if not isinstance(operand, Label):
        raise f.context.unknown(ins, f"a label is expected instead of {operand}")
    return operand.name


def _handled(f: SassLowerer, ins: Instruction, name: str, pool: list[PoolItem]) -> None:
    f.finish(ins, Op(m.LANES, pool, handler=HandlerUse(name, (0,))))


def _both(f: SassLowerer, guard: Ref | None, conditions: list[Ref]) -> Ref | None:
    """A guard and further predicates as one."""
    for also in conditions:
        if guard is not None:
            both = f.temporary(1)
            f.items.append(Op(m.LANES, [Ref(both, False, True), guard, also], handler=HandlerUse("and.pred")))
            also = Ref(both)
        guard = also
    return guard


def lower_branch(f: SassLowerer, ins: Instruction) -> None:
    """BRA, with a second predicate perhaps.

    BRA.DIV: unless all lanes of the mask execute it and their guards hold, all that execute it jump; BRA.CONV: if so, they do.
    Source: what ptxas puts before these: a guard says which lanes it could not tell apart, and they need the longer path.
    """
    *conditions, target = ins.operands
    label = label_of(f, ins, target)
    guard = f.guard(ins)
    if {"DIV", "CONV"} & set(ins.modifiers):
        wanted = conditions.pop()
        if conditions:
            raise f.context.unknown(ins)
        inverted = isinstance(wanted, Register) and wanted.inverted
        mask, apart = f.word(ins, wanted), f.temporary(1)
        if inverted:
            whole = f.temporary(32)
            f.move("not.b32", [whole], [mask])
            mask = whole
        holds = guard if guard is not None else Ref(f.context.constant(1, 1))
        f.items.append(Op(m.LANES, [Ref(apart, False, True), holds, Ref(mask)], handler=HandlerUse("DIVERGED", (0,))))
        guard = Ref(apart, negated="CONV" in ins.modifiers)
    guard = _both(f, guard, [f.condition(ins, condition) for condition in conditions])
    op = Op(m.BRA, [], target=label, labels=[label], falls=guard is not None)
    f.finish(ins, op)
    op.guard = guard


def lower_exit(f: SassLowerer, ins: Instruction) -> None:
    """EXIT."""
    f.finish(ins, Op(m.EXIT, [], falls=ins.guard is not None))


def _barrier_register(f: SassLowerer, operand: Operand) -> VReg:
    assert isinstance(operand, Name)
    return f.context.named(operand.text, 32)


def _barrier(f: SassLowerer, operand: Operand) -> WarpSync[PoolItem]:
    """A convergence barrier and its number."""
    assert isinstance(operand, Name)
    return WarpSync(members=Ref(_barrier_register(f, operand)), barrier=1 + int(operand.text.lstrip("UB")))


def lower_bssy(f: SassLowerer, ins: Instruction) -> None:
    """BSSY: remember who is here."""
    _handled(f, ins, "ACTIVE", [Ref(_barrier_register(f, ins.operands[0]), False, True)])


def lower_bsync(f: SassLowerer, ins: Instruction) -> None:
    """BSYNC: wait for those that are remembered and have not left."""
    f.finish(ins, Op(m.WARP_SYNC, _barrier(f, ins.operands[0]).items()))


def lower_break(f: SassLowerer, ins: Instruction) -> None:
    """BREAK, with a second predicate perhaps: lanes leave a convergence barrier, so that the others do not wait for them."""
    # guard and all: it changes the masks of others, too
    *conditions, barrier = ins.operands
    op = Op(m.BREAK, _barrier(f, barrier).items())
    guard = _both(f, f.guard(ins), [f.condition(ins, condition) for condition in conditions])
    f.finish(ins, op)
    op.guard = guard


def lower_warpsync(f: SassLowerer, ins: Instruction) -> None:
    """WARPSYNC: wait for the lanes of a mask."""
    masks = [operand for operand in ins.operands if isinstance(operand, (Register, Number))]
    members = f.word(ins, masks[0]) if masks else f.context.constant(32, 0xFFFFFFFF)
    f.finish(ins, Op(m.WARP_SYNC, WarpSync(members=Ref(members)).items()))


def lower_bmov(f: SassLowerer, ins: Instruction) -> None:
    """BMOV: a convergence barrier to a register, or back."""
    dest, source = ins.operands
    from_ = _barrier_register(f, source) if isinstance(source, Name) else f.word(ins, source)
    to = _barrier_register(f, dest) if isinstance(dest, Name) else f.context.written(dest)  # type: ignore[arg-type]
    _handled(f, ins, "MOV", [Ref(to, False, True), Ref(from_)])


def _jump(f: SassLowerer, ins: Instruction, address: VReg) -> None:
    """Go to an address in the code that a register holds."""
    index = f.temporary(32)
    f.move("shr.u32", [index], [address, f.context.constant(32, 4)])
    labels = f.context.places
    targets = tuple(LabelRef(label) for label in labels)
    operands = IndexedBranch[PoolItem](index=Ref(index), count=len(labels), targets=targets)
    f.finish(ins, Op(m.BRX, operands.items(), labels=list(f.context.targets), falls=ins.guard is not None))


def lower_call(f: SassLowerer, ins: Instruction) -> None:
    """CALL: the return address has been put into a register before."""
    target = ins.operands[0]  # a register may have the function behind it that its address is relative to
    if isinstance(target, Label):
        label = target.name
        f.finish(ins, Op(m.BRA, [], target=label, labels=[label], falls=ins.guard is not None))
        return
    if not isinstance(target, Register):
        raise f.context.unknown(ins, f"a label or a register is expected instead of {target}")
    _jump(f, ins, f.context.register(target))


def lower_return(f: SassLowerer, ins: Instruction) -> None:
    """RET, BRX, BRXU: to the address in a register."""
    register = ins.operands[0]
    assert isinstance(register, Register)
    _jump(f, ins, f.context.register(register))


def lower_lepc(f: SassLowerer, ins: Instruction) -> None:
    """LEPC: the address of a label, or of itself."""
    dest, *target = ins.operands
    assert isinstance(dest, Register)
    at = f.context.labels[label_of(f, ins, target[0])] if target else ins.line.offset
    _handled(f, ins, "MOV", [Ref(f.context.written(dest), False, True), Ref(f.context.constant(32, at))])
    f.also(ins, f.context.written(dest, 1), f.context.constant(32, 0))


# --- barriers of the CTA ---------------------------------------------------------------------------------------------------------

_REDUCTIONS = {"POPC": m.BAR_RED_POPC, "AND": m.BAR_RED_AND, "OR": m.BAR_RED_OR}


def _packed_barrier(f: SassLowerer, packed: VReg) -> tuple[VReg, VReg]:
    """A barrier's number and its count of threads in one register, the count from bit 16 on; none means all."""
    context = f.context
    number, given, ntid, warps = f.temporary(32), f.temporary(32), f.temporary(32), f.temporary(32)
    f.move("and.b32", [number], [packed, context.constant(32, 15)])
    f.move("shr.u32", [given], [packed, context.constant(32, 16)])
    x, y, z = (context.special(f"%ntid.{axis}") for axis in "xyz")
    assert x is not None and y is not None and z is not None
    f.move("mul.lo.u32", [ntid], [x, y])
    f.move("mul.lo.u32", [ntid], [ntid, z])
    f.move("add.u32", [warps], [ntid, context.constant(32, 31)])
    f.move("and.b32", [warps], [warps, context.constant(32, 0xFFFFFFE0)])
    is_none, count = f.temporary(1), f.temporary(32)
    f.move("setp.eq.u32", [is_none, context.unwritten(1)], [given, context.constant(32, 0)])
    f.select(count, warps, given, Ref(is_none))
    return number, count


def lower_barrier(f: SassLowerer, ins: Instruction) -> None:
    """BAR.SYNC, BAR.ARV, BAR.RED; the result of a reduction is fetched by B2R."""
    values = [operand for operand in ins.operands if not isinstance(operand, Predicate)]
    conditions = [operand for operand in ins.operands if isinstance(operand, Predicate)]
    kind = ins.modifiers[0]
    operation = {"SYNC": m.BAR_SYNC, "ARV": m.BAR_ARRIVE}.get(kind, -1)
    dest: PoolItem = -1
    if kind == "RED":
        operation = _REDUCTIONS[ins.modifiers[1]]
        popc = operation == m.BAR_RED_POPC
        dest = Ref(f.context.named("~BAR.RESULT" if popc else "~BAR.PREDICATE", 32 if popc else 1), False, True)
    if operation < 0 or not values:
        raise f.context.unknown(ins)
    number = f.word(ins, values[0])
    count = f.word(ins, values[1]) if len(values) > 1 else None
    if len(values) > 1 and isinstance(values[0], Register) and isinstance(values[1], Register):
        if values[0].number != values[1].number:
            raise f.context.unknown(ins)
        number, count = _packed_barrier(f, number)
    bar = Barrier[PoolItem](
        operation=operation,
        number=Ref(number),
        count=-1 if count is None else Ref(count),
        predicate=f.condition(ins, conditions[0]) if conditions else -1,
        dest=dest,
        pc=LabelRef(""),
        aligned=0,
    )
    f.finish(ins, Op(m.BAR, bar.items(), keeps_sources=True))


def lower_b2r(f: SassLowerer, ins: Instruction) -> None:
    """B2R.RESULT: what a BAR.RED found."""
    dest, *predicates = ins.operands
    if "RESULT" not in ins.modifiers or not isinstance(dest, Register):
        raise f.context.unknown(ins)
    if predicates and isinstance(predicates[0], Predicate) and not predicates[0].is_true:
        pool: list[PoolItem] = [Ref(f.context.predicate(predicates[0]), False, True), Ref(f.context.unwritten(1), False, True)]
        pool += [Ref(f.context.named("~BAR.PREDICATE", 1)), Ref(f.context.constant(1, 1)), Ref(f.context.constant(1, 1))]
        f.finish(ins, Op(m.LANES, pool, handler=HandlerUse("PLOP3.LUT", (0xF0, 0, 0))))
        return
    _handled(f, ins, "MOV", [Ref(f.context.written(dest), False, True), Ref(f.context.named("~BAR.RESULT", 32))])


# --- special registers, predicates, votes ------------------------------------------------------------------------------------------

#: how far a clock is shifted, and whether it is that of the whole launch
_CLOCKS = {"SR_CLOCKLO": (0, 0), "SR_CLOCKHI": (32, 0), "SR_GLOBALTIMERLO": (0, 1), "SR_GLOBALTIMERHI": (32, 1)}


def lower_special(f: SassLowerer, ins: Instruction) -> None:
    """S2R, S2UR, CS2R, CS2UR; the last two write two registers, of a clock all its 64 bits."""
    dest, source = ins.operands
    assert isinstance(dest, Register) and isinstance(source, Name)
    name, context = source.text, f.context
    both = ins.opcode in ("CS2R", "CS2UR") and "32" not in ins.modifiers
    if name in _CLOCKS:
        shift, launch_wide = _CLOCKS[name]
        context.reads_clock = True
        context.communicates |= bool(launch_wide)
        row = f.temporary(64) if both else context.written(dest)
        clock = Clock(dest=Ref(row, False, True), bytes_=8 if both else 4, shift=shift, launch_wide=launch_wide)
        f.finish(ins, Op(m.CLOCK, clock.items()))
        if both:
            f.move("mov.b64:unpack2", [context.written(dest), context.written(dest, 1)], [row], f.guard(ins))
        return
    if name == "SR_VIRTID":  # the warp's number stands in its bits 8 and up
        row, warp = f.temporary(32), context.special("%warpid")
        assert warp is not None
        f.move("shl.b32", [row], [warp, context.constant(32, 8)])
    elif name in SPECIALS:
        special = context.special(SPECIALS[name])
        assert special is not None
        row = special
    elif name in FIXED_SPECIALS:
        row = context.constant(32, FIXED_SPECIALS[name])
    else:
        raise context.unknown(ins, f"the special register {name} is not modelled")
    _handled(f, ins, "MOV", [Ref(context.written(dest), False, True), Ref(row)])
    if both:
        f.also(ins, context.written(dest, 1), context.constant(32, 0))


def lower_p2r(f: SassLowerer, ins: Instruction) -> None:
    """P2R, UP2UR: predicates into the bits of a register, or of one of its bytes."""
    dest, _, source, mask = ins.operands
    assert isinstance(dest, Register) and isinstance(mask, Number)
    uniform = ins.opcode.startswith("U")
    predicates: list[PoolItem] = [Ref(f.context.predicate(Predicate(i, uniform))) for i in range(7)]
    pool: list[PoolItem] = [Ref(f.context.written(dest), False, True), Ref(f.word(ins, source)), *predicates]
    f.finish(ins, Op(m.LANES, pool, handler=HandlerUse("P2R", (mask.value, f.part_start(ins, ins.modifiers), 0))))


def lower_r2p(f: SassLowerer, ins: Instruction) -> None:
    """R2P: bits of a register, or of one of its bytes, into predicates."""
    _, source, mask = ins.operands
    assert isinstance(mask, Number) and isinstance(source, Register)
    start = f.part_start(ins, tuple(part for part in source.parts if part != "reuse"))
    row = f.word(ins, replace(source, parts=()))
    if start:
        shifted = f.temporary(32)
        f.move("shr.u32", [shifted], [row, f.context.constant(32, start)])
        row = shifted
    uniform, chosen = ins.opcode.startswith("U"), mask.value & 0x7F
    pool: list[PoolItem] = [Ref(f.context.predicate(Predicate(i, uniform)), False, True) for i in range(7) if chosen >> i & 1]
    f.finish(ins, Op(m.LANES, [*pool, Ref(row)], handler=HandlerUse(f"R2P:{chosen}", (0,))))


def lower_vote(f: SassLowerer, ins: Instruction) -> None:
    """VOTE, VOTEU: a ballot, and whether it is any, all or none."""
    *dests, source = ins.operands
    register = next((dest for dest in dests if isinstance(dest, Register)), None)
    predicate = next((dest for dest in dests if isinstance(dest, Predicate)), None)
    context = f.context
    pool: list[PoolItem] = [
        Ref(context.written(register) if register is not None else context.unwritten(32), False, True),
        Ref(context.unwritten(1) if predicate is None or predicate.is_true else context.predicate(predicate), False, True),
        f.condition(ins, source),
    ]
    f.finish(ins, Op(m.LANES, pool, handler=HandlerUse(f"VOTE.{ins.modifiers[0]}", (0,))))


def lower_nothing(f: SassLowerer, ins: Instruction) -> None:
    """What changes nothing that the machine models."""
    f.finish(ins, Op(m.NOP, []))


def lower_fence(f: SassLowerer, ins: Instruction) -> None:
    """MEMBAR."""
    if not {"CTA", "SM"} & set(ins.modifiers):
        f.context.communicates = True
    f.finish(ins, Op(m.FENCE, []))


def lower_sleep(f: SassLowerer, ins: Instruction) -> None:
    """NANOSLEEP, YIELD: others go first, also those that wait for these lanes at a convergence barrier."""
    f.finish(ins, Op(m.YIELD, [], aux=m.LEAVES_BARRIERS))


def lower_trap(f: SassLowerer, ins: Instruction) -> None:
    """BPT."""
    f.finish(ins, Op(m.TRAP, []))


LOWERERS = {
    "BRA": lower_branch,
    "EXIT": lower_exit,
    "BSSY": lower_bssy,
    "BSYNC": lower_bsync,
    "BREAK": lower_break,
    "BMOV": lower_bmov,
    "WARPSYNC": lower_warpsync,
    "CALL": lower_call,
    "RET": lower_return,
    **dict.fromkeys(("BRX", "BRXU"), lower_return),
    "LEPC": lower_lepc,
    "BAR": lower_barrier,
    "B2R": lower_b2r,
    **dict.fromkeys(("S2R", "S2UR", "CS2R", "CS2UR"), lower_special),
    **dict.fromkeys(("P2R", "UP2R", "UP2UR"), lower_p2r),
    **dict.fromkeys(("R2P", "UR2P"), lower_r2p),
    **dict.fromkeys(("VOTE", "VOTEU"), lower_vote),
    **dict.fromkeys(("NOP", "ENDCOLLECTIVE", "ERRBAR", "CGAERRBAR", "CCTL", "CCTLL"), lower_nothing),
    "MEMBAR": lower_fence,
    **dict.fromkeys(("NANOSLEEP", "YIELD"), lower_sleep),
    "BPT": lower_trap,
}
