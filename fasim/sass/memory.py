"""Loads, stores, atomics, matrix loads and asynchronous copies of machine code to operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fasim.isa import machine as m
from fasim.isa.operands import STRONG, AsyncCopy, Atom, AtomElement, DataRegister, Matrix, Memory, Transfer
from fasim.isa.program import HandlerUse
from fasim.isa.rows import ROWS
from fasim.ptx.ir import Op, Ref, VReg
from fasim.sass.lowerer import SassLowerer
from fasim.sass.syntax import Address, Constant, Instruction, Number, Operand, Predicate, Register

_SPACES = {
    "LDG": m.GLOBAL,
    "STG": m.GLOBAL,
    "LD": m.GENERIC,
    "ST": m.GENERIC,
    "LDS": m.SHARED,
    "STS": m.SHARED,
    "LDL": m.LOCAL,
    "STL": m.LOCAL,
}
_SIZES = {"U8": (1, False), "S8": (1, True), "U16": (2, False), "S16": (2, True), "64": (8, False), "128": (16, False)}
_ORDERED = frozenset({"STRONG", "MMIO"})


#: modifiers of accesses: what is read above, and what only steers caches
_KNOWN = (
    frozenset(_SIZES)
    | _ORDERED
    | {"E", "SYS", "GPU", "SM", "CTA", "CONSTANT", "BYPASS", "ZFILL", "LU", "EF", "EL", "NA", "PRIVATE", "WEAK"}
)


def _check(f: SassLowerer, ins: Instruction, also: frozenset[str] = frozenset()) -> None:
    """Refuse an access with a modifier that is not known."""
    unknown = [part for part in ins.modifiers if part not in _KNOWN | also and not part.startswith("LTC")]
    if unknown:
        raise f.context.unknown(ins, f"the modifier .{unknown[0]} is not modelled")


def _size(ins: Instruction) -> tuple[int, bool]:
    """Bytes of a lane, and whether they are extended with their sign."""
    return next((_SIZES[part] for part in ins.modifiers if part in _SIZES), (4, False))


def _order(f: SassLowerer, ins: Instruction, space: int) -> int:
    """Whether an access is strong; one that is, to the whole GPU, means that CTAs talk to each other."""
    if not _ORDERED & set(ins.modifiers):
        return 0
    if space != m.SHARED and not {"SM", "CTA"} & set(ins.modifiers):
        f.context.communicates = True
    return STRONG


def lower_load(f: SassLowerer, ins: Instruction) -> None:
    """LDG, LD, LDS, LDL."""
    _check(f, ins)
    dest, address, *_ = [operand for operand in ins.operands if not isinstance(operand, Predicate)]
    space, (size, sign) = _SPACES[ins.opcode], _size(ins)
    assert isinstance(dest, Register)
    count, element = max(size // 4, 1), min(size, 4)
    memory = f.memory(ins, address, space, element, count, sign=sign, order=_order(f, ins, space))
    registers = tuple(
        DataRegister[Ref](-1, 4) if dest.is_zero else DataRegister(Ref(f.context.register(dest, i), False, True), 4) for i in range(count)
    )
    f.finish(ins, Op(m.LOAD, Transfer(memory, registers).items()))


def lower_store(f: SassLowerer, ins: Instruction) -> None:
    """STG, ST, STS, STL."""
    _check(f, ins)
    address, value = ins.operands
    space, (size, _) = _SPACES[ins.opcode], _size(ins)
    count, element = max(size // 4, 1), min(size, 4)
    memory = f.memory(ins, address, space, element, count, order=_order(f, ins, space))
    registers = tuple(DataRegister(Ref(f.word(ins, value, i)), 4) for i in range(count))
    f.finish(ins, Op(m.STORE, Transfer(memory, registers).items()))


def lower_load_constant(f: SassLowerer, ins: Instruction) -> None:
    """LDC, ULDC: a move where the place is known."""
    _check(f, ins)
    dest, source = ins.operands
    assert isinstance(dest, Register)
    size, sign = _size(ins)
    count = max(size // 4, 1)
    if not isinstance(source, Constant):
        raise f.context.unknown(ins, f"a constant is expected instead of {source}")
    if source.base is not None and source.base.is_zero:
        source = Constant(source.bank, source.offset)
    if source.base is None and source.bank != 3 and size >= 4:
        words = [f.word(ins, source, i) for i in range(count)]
        first, *rest = range(count)
        f.finish(
            ins,
            Op(m.LANES, [Ref(f.context.written(dest, first), False, True), Ref(words[first])], handler=HandlerUse("MOV", (0,))),
        )
        for i in rest:
            f.also(ins, f.context.written(dest, i), words[i])
        return
    dests = [Ref(f.context.written(dest, i), False, True) for i in range(count)]
    f.finish(ins, f.constant_load(ins, source, dests, source.offset, min(size, 4), sign))


def lower_matrix(f: SassLowerer, ins: Instruction) -> None:
    """LDSM, STSM."""
    loads = ins.opcode == "LDSM"
    register, address = (ins.operands[0], ins.operands[1]) if loads else (ins.operands[1], ins.operands[0])
    assert isinstance(register, Register)
    count = int(ins.modifiers[-1]) if ins.modifiers[-1].isdigit() else 1
    if ins.modifiers[0] != "16" or ins.modifiers[1] not in ("M88", "MT88"):
        raise f.context.unknown(ins)
    memory = f.memory(ins, address, m.SHARED, 16)
    registers = tuple(
        Ref(f.context.written(register, i), False, True) if loads else Ref(f.context.register(register, i)) for i in range(count)
    )
    pool = Matrix(memory, int(ins.modifiers[1] == "MT88"), count, registers).items()
    f.finish(ins, Op(m.LDMATRIX if loads else m.STMATRIX, pool))


def lower_copy(f: SassLowerer, ins: Instruction) -> None:
    """LDGSTS: the copies that cp.async makes."""
    _check(f, ins)
    f.context.uses_copies = True
    size, _ = _size(ins)
    target, source, *rest = ins.operands
    source_bytes: Ref | int = -1
    to, from_ = f.memory(ins, target, m.SHARED, size), f.memory(ins, source, m.GLOBAL, size)
    if rest:
        chosen = rest[0]
        if not isinstance(chosen, Predicate) or not isinstance(from_.address, Ref):
            raise f.context.unknown(ins)
        from_, source_bytes = _partial(f, ins, from_, size, chosen)
    f.finish(ins, Op(m.CP_ASYNC, AsyncCopy(to, from_, source_bytes=source_bytes, ignore=-1).items()))


def _partial(f: SassLowerer, ins: Instruction, source: Memory[Ref], size: int, chosen: Predicate) -> tuple[Memory[Ref], Ref]:
    """LDGSTS with a predicate, which says whether anything is copied; .ZFILL: the low bits of the source address, how many bytes are not.

    Source: what ptxas 13.0 makes of cp.async with a src-size in a register, and recordings of such kernels.
    """
    context, address, taken = f.context, source.address, f.temporary(32)
    assert isinstance(address, Ref)
    if "ZFILL" not in ins.modifiers:
        f.select(taken, context.constant(32, size), context.constant(32, 0), f.condition(ins, chosen))
        return source, Ref(taken)
    low, missing, left, aligned = f.temporary(32), f.temporary(32), f.temporary(32), f.temporary(64)
    f.move("cvt.u32.u64", [low], [address.reg])
    f.move("and.b32", [missing], [low, context.constant(32, size - 1)])
    f.move("sub.u32", [left], [context.constant(32, size), missing])
    f.select(taken, left, context.constant(32, 0), f.condition(ins, chosen))
    f.move("and.b64", [aligned], [address.reg, context.constant(64, -size)])
    return replace(source, address=Ref(aligned)), Ref(taken)


def lower_commit(f: SassLowerer, ins: Instruction) -> None:
    """LDGDEPBAR."""
    f.context.uses_copies = True
    f.finish(ins, Op(m.CP_COMMIT, []))


def lower_wait(f: SassLowerer, ins: Instruction) -> None:
    """DEPBAR.LE SB0, n: until n groups are pending; of other scoreboards it is for the schedule alone."""
    if not f.context.uses_copies or len(ins.operands) < 2 or not isinstance(ins.operands[1], Number):
        f.finish(ins, Op(m.NOP, []))
        return
    f.finish(ins, Op(m.CP_WAIT, [], aux=ins.operands[1].value))


# --- atomics ---------------------------------------------------------------------------------------------------------------------

_OPERATIONS = {"ADD", "MIN", "MAX", "INC", "DEC", "AND", "OR", "XOR", "EXCH", "CAS"}
_OF_ATOMICS = frozenset(_OPERATIONS) | {"POPC", "CAST", "SPIN", "32", "S32", "S64", "U32", "F32", "F64", "FTZ", "RN"}
#: what a floating-point operation takes: the type of its row, and how many of it side by side
_FLOATS = {"F32": ("f32", 1), "F64": ("f64", 1), "F32x2": ("f32", 2), "F32x4": ("f32", 4)}
_FLOATS |= {f"{name}x{2 * count}": (f"{name.lower()}x2", count) for name in ("F16", "BF16") for count in (1, 2, 4)}
_BITWISE = {"AND", "OR", "XOR", "EXCH", "CAS"}


def _row(f: SassLowerer, ins: Instruction) -> tuple[str, int, int]:
    """The PTX row of an atomic operation, the bytes that it takes, and how many of them there are."""
    parts = set(ins.modifiers)
    if "POPC" in parts:
        return "atom.add.u32", 4, 1
    operation = next((part for part in ins.modifiers if part in _OPERATIONS), None)
    if operation is None:
        raise f.context.unknown(ins)
    count = 1
    if floats := [part for part in ins.modifiers if part in _FLOATS]:
        type_, count = _FLOATS[floats[0]]
    else:
        bits = 64 if "64" in parts else 32
        letter = "b" if operation in _BITWISE else "s" if "S32" in parts or "S64" in parts else "u"
        if operation == "ADD" and bits == 64:
            letter = "u"
        type_ = f"{letter}{64 if 'S64' in parts else bits}"
    name = f"atom.{operation.lower()}.{type_}"
    if name not in ROWS:
        raise f.context.unknown(ins, f"{ins.mnemonic} is not modelled")
    return name, 8 if type_.endswith("64") else 4, count


def lower_atomic(f: SassLowerer, ins: Instruction) -> None:
    """ATOMS, ATOMG, ATOM, REDG, RED: the handler computes the new value."""
    _check(f, ins, _OF_ATOMICS | frozenset(_FLOATS))
    if "CAST" in ins.modifiers:
        _lower_cast(f, ins)
        return
    operands = [operand for operand in ins.operands if not isinstance(operand, Predicate)]
    red = ins.opcode in ("RED", "REDG")
    dest = None if red else operands.pop(0)
    address, *values = operands
    name, size, count = _row(f, ins)
    space = m.SHARED if ins.opcode == "ATOMS" else m.GENERIC if ins.opcode in ("ATOM", "RED") else m.GLOBAL
    if space != m.SHARED:
        f.context.communicates = True
    did = next((operand for operand in ins.operands if isinstance(operand, Predicate) and not operand.is_true), None)
    if did is not None:
        if ins.opcode != "ATOM":
            raise f.context.unknown(ins, f"the answer {did} of this atomic operation is not modelled")
        ins, space = _where_global(f, ins, address, did), m.GLOBAL
    if "POPC" in ins.modifiers:
        values = [Number(1)]
    _emit_atom(f, ins, name, size, space, address, values, dest if isinstance(dest, Register) and not dest.is_zero else None, count=count)


def _where_global(f: SassLowerer, ins: Instruction, address: Operand, did: Predicate) -> Instruction:
    """ATOM on halves with a predicate: it says whether the address is global, and only there is anything done.

    Source: what ptxas puts behind it: another way for shared memory, and a plain one for local.
    """
    memory = f.memory(ins, address, m.GENERIC, 4)
    if not isinstance(memory.address, Ref) or not isinstance(address, Address):
        raise f.context.unknown(ins)
    total, answer = f.temporary(64), f.context.predicate(did)
    f.move("add.u64", [total], [memory.address.reg, f.context.constant(64, address.offset)])
    f.move("isspacep.global", [answer], [total], f.guard(ins))
    if ins.guard is None or ins.guard.is_true:
        return replace(ins, guard=did)
    raise f.context.unknown(ins, "a guard and an answer of an atomic operation together are not modelled")


def _emit_atom(
    f: SassLowerer,
    ins: Instruction,
    name: str,
    size: int,
    space: int,
    address: Operand,
    values: Sequence[Operand],
    dest: Register | None,
    target: VReg | None = None,
    count: int = 1,
) -> None:
    """The operation of an atomic; dest: where the old value goes, target: the same as a row; count: of values side by side."""
    bank = 8 * size
    memory = f.memory(ins, address, space, size, count, order=STRONG)
    result = target if target is not None else None if dest is None else f.context.register(dest) if bank == 32 else f.temporary(64)
    elements = []
    for i in range(count):
        rows = [f.word(ins, value, i) if bank == 32 else f.double(ins, value) for value in values]
        old, new = Ref(f.temporary(bank), False, True), Ref(f.temporary(bank), False, True)
        b, *c = (Ref(row) for row in rows)
        to = result if i == 0 else f.context.register(dest, i) if dest is not None else None
        elements.append(
            AtomElement(
                dest=-1 if to is None else Ref(to, False, True),
                old=old,
                new=new,
                handler_new=new,
                handler_old=old,
                b=b,
                c=c[0] if c else -1,
            )
        )
    used = f"{name}:global" if space == m.GLOBAL and f"{name}:global" in ROWS else name
    f.finish(ins, Op(m.ATOM, Atom(memory, tuple(elements)).items(), handler=HandlerUse(used), keeps_sources=True))
    if result is not None and bank == 64 and dest is not None:
        f.move("mov.b64:unpack2", [f.context.register(dest), f.context.register(dest, 1)], [result], f.guard(ins))


def _lower_cast(f: SassLowerer, ins: Instruction) -> None:
    """ATOMS.CAST.SPIN, ATOM.CAST.SPIN: compare and swap that tells whether it did, in a register or, from sm_100 on, a predicate."""
    generic = ins.opcode == "ATOM"
    dest, address, compare, swap = ins.operands[generic and isinstance(ins.operands[1], Register) :]
    size = 8 if "64" in ins.modifiers else 4
    old = f.temporary(8 * size)
    _emit_atom(f, ins, f"atom.cas.b{8 * size}", size, m.GENERIC if generic else m.SHARED, address, [compare, swap], None, target=old)
    answer = f.context.predicate(dest) if isinstance(dest, Predicate) else f.temporary(1)
    wanted = f.word(ins, compare) if size == 4 else f.double(ins, compare)
    f.move(f"setp.eq.b{8 * size}", [answer, f.context.unwritten(1)], [old, wanted], f.guard(ins))
    if not isinstance(dest, Register):
        return
    zero = f.context.constant(32, 0)
    f.select(f.context.written(dest), f.context.constant(32, 1), zero, Ref(answer), f.guard(ins))
    if size == 8:  # the answer has as many bits as the values
        f.also(ins, f.context.written(dest, 1), zero)


#: state spaces that QSPC asks for
_ASKED = {"S": "shared", "D": "shared::cluster", "L": "local", "G": "global"}


def lower_query(f: SassLowerer, ins: Instruction) -> None:
    """QSPC: whether a generic address is in a state space."""
    answer, unused, address = ins.operands
    space = _ASKED.get(ins.modifiers[-1])
    if space is None or not isinstance(unused, Register) or not unused.is_zero or not isinstance(address, Address):
        raise f.context.unknown(ins)
    memory = f.memory(ins, address, m.GENERIC, 1)
    if not isinstance(memory.address, Ref) or not isinstance(answer, Predicate):
        raise f.context.unknown(ins)
    total = f.temporary(64)
    f.move("add.u64", [total], [memory.address.reg, f.context.constant(64, address.offset)])
    dest = f.context.unwritten(1) if answer.is_true else f.context.predicate(answer)
    f.finish(ins, Op(m.LANES, [Ref(dest, False, True), Ref(total)], handler=HandlerUse(f"isspacep.{space}")))


LOWERERS = {
    "QSPC": lower_query,
    **dict.fromkeys(("LDG", "LD", "LDS", "LDL"), lower_load),
    **dict.fromkeys(("STG", "ST", "STS", "STL"), lower_store),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), lower_load_constant),
    **dict.fromkeys(("LDSM", "STSM"), lower_matrix),
    **dict.fromkeys(("ATOMS", "ATOMG", "ATOM", "RED", "REDG"), lower_atomic),
    "LDGSTS": lower_copy,
    "LDGDEPBAR": lower_commit,
    "DEPBAR": lower_wait,
}
