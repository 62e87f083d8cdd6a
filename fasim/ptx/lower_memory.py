"""Loads, stores, atomics, matrix loads and asynchronous copies to operations.

Raises: PtxError for operands that do not fit, UnsupportedInstruction for what fasim does not model.
"""

from __future__ import annotations

from fasim.isa import machine as m
from fasim.isa.lookup import Found
from fasim.isa.operands import ACQUIRE, OVERWRITES, RELEASE, STRONG, AsyncCopy, Atom, AtomElement, DataRegister, Matrix, Memory, Transfer
from fasim.isa.program import HandlerUse
from fasim.isa.rows import ROWS
from fasim.numerics.lanes import width
from fasim.ptx.ir import Op, Ref
from fasim.ptx.lower_function import FunctionLowerer, whole_register
from fasim.ptx.tree import TYPE_BITS, Address, Immediate, Instruction, Operand, Register, Sink, Symbol

#: memory orders that are more than weak, and what they mean for other accesses of the thread
ORDERS = {
    "volatile": STRONG,
    "relaxed": STRONG,
    "mmio": STRONG,
    "acquire": STRONG | ACQUIRE,
    "release": STRONG | RELEASE,
    "acq_rel": STRONG | ACQUIRE | RELEASE,
    "sc": STRONG | ACQUIRE | RELEASE,
    "exch": OVERWRITES,
}


def memory_operands(
    f: FunctionLowerer, ins: Instruction, operand: Operand, space: int, size: int, count: int = 1, *, sign: bool = False
) -> Memory[Ref]:
    """Where a memory instruction goes: `count` elements of `size` bytes at the address that it writes in brackets."""
    if not isinstance(operand, Address):
        raise f.context.malformed(ins, "expected an address in brackets")
    order = STRONG if ins.opcode in ("atom", "red") else 0
    for modifier in ins.modifiers:
        order |= ORDERS.get(modifier, 0)
    if operand.items:
        raise f.context.unsupported(ins, "fasim does not model tensor addresses")
    base, offset, wide = operand.base, operand.offset, 0
    reg: Ref | None = None
    if isinstance(base, Register):
        vreg = f.special(ins, base) if base.special else f.register(base.name)
        reg, wide = Ref(vreg), int(vreg.bank == 64)
        if space == m.PARAM and not f.is_kernel:
            space = m.LOCAL
    elif isinstance(base, Symbol):
        found, frame, at = f.locate(ins, base)
        offset += at
        if space == m.PARAM or space == m.LOCAL:
            space = found
        elif space != found and not (space == m.GENERIC and found in (m.GLOBAL, m.CONST)) and not {space, found} <= {m.GLOBAL, m.CONST}:
            raise f.context.malformed(ins, f"{base.name} is in .{m.SPACE_NAMES[found]}, the access is to .{m.SPACE_NAMES[space]}")
        reg = None if frame is None else Ref(frame)
    else:
        assert isinstance(base, Immediate)
        offset += base.value
    return Memory(
        space=space,
        bytes_=size,
        vector=count,
        sign=int(sign),
        address=-1 if reg is None else reg,
        wide=wide,
        offset_low=signed32(offset),
        offset_high=signed32(offset >> 32),
        order=order,
    )


def signed32(value: int) -> int:
    """The low 32 bits as a signed number."""
    return ((value + 0x80000000) & 0xFFFFFFFF) - 0x80000000


def note_communication(f: FunctionLowerer, space: int, found: Found) -> None:
    """Note that CTAs talk to each other, if an access to global memory says so by its order and scope."""
    if space in (m.GENERIC, m.GLOBAL) and found.modifiers & (ORDERS.keys() - {"exch"}) and not (found.modifiers & {"cta"}):
        f.context.communicates = True


def without_policy(ins: Instruction) -> list[Operand]:
    """The operands without a trailing cache policy."""
    hinted = any(part.endswith("cache_hint") for part in ins.modifiers)
    return list(ins.operands[:-1] if hinted else ins.operands)


def plain_operands(f: FunctionLowerer, ins: Instruction, count: int) -> list[Operand]:
    """The operands without a trailing cache policy, which must be `count`."""
    operands = without_policy(ins)
    if len(operands) != count:
        raise f.context.malformed(ins, f"{ins.mnemonic} takes {count} operands, found {len(operands)}")
    return operands


def space_of(found: Found) -> int:
    """The state space of an access; constant variables are found by their address, as global ones are."""
    return m.GLOBAL if found.space == m.CONST else found.space


def lower_load(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """ld, ldu."""
    arg = found.row.dests[0]
    target, source = plain_operands(f, ins, 2)
    size, count = width(arg.type_) // 8, max(arg.count, 1)
    memory = memory_operands(f, ins, source, space_of(found), size, count, sign=arg.type_[0] == "s")
    note_communication(f, found.space, found)
    registers = tuple(memory_register(f, ins, part, size, writes=True) for part in f.parts(ins, arg, target))
    f.finish(ins, Op(m.LOAD, Transfer(memory, registers).items()), [])


def lower_store(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """st."""
    arg = found.row.sources[1]
    target, value = plain_operands(f, ins, 2)
    size, count = width(arg.type_) // 8, max(arg.count, 1)
    memory = memory_operands(f, ins, target, space_of(found), size, count)
    note_communication(f, found.space, found)
    registers: list[DataRegister[Ref]] = []
    for part in f.parts(ins, arg, value):
        if isinstance(part, Register) and not part.special:
            registers.append(memory_register(f, ins, part, size, writes=False))
        else:
            ref = f.source(ins, part, arg.type_)
            registers.append(whole_register(ref))
    f.finish(ins, Op(m.STORE, Transfer(memory, tuple(registers)).items()), [])


def memory_register(f: FunctionLowerer, ins: Instruction, part: Operand, size: int, *, writes: bool) -> DataRegister[Ref]:
    """A register of a load or store with its width in bytes; it may be wider than the memory type."""
    if isinstance(part, Sink):
        return DataRegister(-1, 4)
    if not isinstance(part, Register):
        raise f.context.malformed(ins, "expected a register")
    reg, bits = f.register(part.name), TYPE_BITS[f.function.registers[part.name]]
    if reg.bank == 1 or bits < 8 * size:
        raise f.context.malformed(ins, f"register {part.name} has {bits} bits, the access {8 * size}")
    return DataRegister(Ref(reg, not writes, writes), 8 if reg.bank == 64 else 2 if bits < 32 else 4)


def lower_atom(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """atom, red: the handler computes the new value."""
    row, red = found.row, ins.opcode == "red"
    arg = row.dests[0]
    size, count = width(arg.type_) // 8, max(arg.count, 1)
    inputs = row.sources[1:]
    written = plain_operands(f, ins, len(inputs) + (1 if red else 2))
    if not red:
        target, written = written[0], written[1:]
    space = space_of(found)
    memory = memory_operands(f, ins, written[0], space, size, count)
    if space != m.SHARED:
        f.context.communicates = True
    bank = m.bank_of(8 * size)
    values = [f.parts(ins, inputs[i], operand) for i, operand in enumerate(written[1:])]
    targets: list[Operand] = [Sink()] * count if red else f.parts(ins, arg, target)
    elements: list[AtomElement[Ref]] = []
    for element in range(count):
        dest: Ref | int = -1
        part = targets[element]
        if isinstance(part, Register):
            reg = f.register(part.name)
            if reg.bank != bank:
                raise f.context.malformed(ins, f"register {part.name} has {reg.bank} bits, the access {8 * size}")
            dest = Ref(reg, False, True)
        old, new = Ref(f.temporary(bank), False, True), Ref(f.temporary(bank), False, True)
        b, *c = (f.source(ins, operands[element], inputs[i].type_) for i, operands in enumerate(values))
        elements.append(AtomElement(dest=dest, old=old, new=new, handler_new=new, handler_old=old, b=b, c=c[0] if c else -1))
    name = row.attributes.get("scalar", row.name)
    pool = Atom(memory, tuple(elements)).items()
    op, in_global = Op(m.ATOM, pool, handler=HandlerUse(name), keeps_sources=True), HandlerUse(f"{name}:global")
    address = memory.address
    if in_global.name not in ROWS or space == m.SHARED:
        f.finish(ins, op, [])
    elif space == m.GENERIC and isinstance(address, Ref):
        # global memory computes in its own way, and each lane's address decides
        shared, here, guard = f.temporary(1), f.temporary(1), f.guard(ins) or Ref(f.context.constant(1, 1))
        f.lanes("isspacep.shared", shared, address.reg)
        f.emit(Op(m.LANES, [Ref(here, False, True), Ref(shared, negated=True), guard], handler=HandlerUse("and.pred")))
        f.emit(Op(m.ATOM, pool, Ref(here), in_global, source=f.context.source(ins), keeps_sources=True))
        f.emit(Op(m.LANES, [Ref(here, False, True), Ref(shared), guard], handler=HandlerUse("and.pred")))
        op.guard = Ref(here)
        f.emit(op)
    else:
        op.handler = in_global
        f.finish(ins, op, [])


def lower_matrix(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """ldmatrix, stmatrix."""
    row, loads = found.row, ins.opcode == "ldmatrix"
    arg = row.dests[0] if loads else row.sources[1]
    first, second = plain_operands(f, ins, 2)
    address, vector = (second, first) if loads else (first, second)
    memory = memory_operands(f, ins, address, m.SHARED if ".shared" in ins.mnemonic else m.GENERIC, 16)
    registers = tuple(f.dest(ins, part, "u32", []) if loads else f.source(ins, part, "u32") for part in f.parts(ins, arg, vector))
    f.finish(
        ins, Op(m.LDMATRIX if loads else m.STMATRIX, Matrix(memory, int(row.attributes["transposed"]), arg.count, registers).items()), []
    )


def lower_cp_async(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """cp.async with its optional src-size or ignore-src operand."""
    operands = without_policy(ins)
    if not 3 <= len(operands) <= 4 or not isinstance(operands[2], Immediate):
        raise f.context.malformed(ins, "cp.async takes [target], [source], size and an optional src-size")
    size = operands[2].value
    if size not in found.row.attributes["sizes"]:
        raise f.context.malformed(ins, f"cp-size {size} is not one of {found.row.attributes['sizes']}")
    f.context.uses_copies = True
    target = memory_operands(f, ins, operands[0], m.SHARED, size)
    source = memory_operands(f, ins, operands[1], m.GLOBAL, size)
    source_bytes: Ref | int = -1
    ignore: Ref | int = -1
    if len(operands) == 4:
        last = operands[3]
        if isinstance(last, Register) and not last.special and f.register(last.name).bank == 1:
            ignore = Ref(f.register(last.name), negated=last.negated)
        else:
            source_bytes = f.source(ins, last, "u32")
    f.finish(ins, Op(m.CP_ASYNC, AsyncCopy(target, source, source_bytes=source_bytes, ignore=ignore).items()), [])


def lower_cp_wait(f: FunctionLowerer, ins: Instruction, found: Found) -> None:
    """cp.async.wait_group N, cp.async.wait_all."""
    pending = -1
    if ins.operands:
        if not isinstance(ins.operands[0], Immediate):
            raise f.context.malformed(ins, "wait_group takes an immediate")
        pending = ins.operands[0].value
    f.context.uses_copies = True
    f.finish(ins, Op(m.CP_WAIT, [], aux=pending), [])


LOWERERS = {
    "load": lower_load,
    "store": lower_store,
    "atom": lower_atom,
    "ldmatrix": lower_matrix,
    "stmatrix": lower_matrix,
    "cp_async": lower_cp_async,
    "cp_wait": lower_cp_wait,
}
