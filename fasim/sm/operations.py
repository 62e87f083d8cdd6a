"""What each access to shared memory is called as a machine operation: LDS.64, STS.128, LDSM.x4.T, ATOMS.add, ..."""

from __future__ import annotations

from fasim.isa import machine as m
from fasim.isa.operands import A_DEST, A_ELEMENTS, M_COUNT, M_TRANSPOSED, P_BYTES, P_SPACE, P_VECTOR
from fasim.isa.program import Program
from fasim.smem.wavefronts import OPERATIONS

#: PTX opcodes by what the machine does, for accesses that the compiler of PTX split from one instruction
KIND_NAMES = {m.LOAD: "ld", m.STORE: "st", m.LDMATRIX: "ldmatrix", m.STMATRIX: "stmatrix", m.CP_ASYNC: "cp.async", m.ATOM: "atom"}


def operation_of(program: Program, pc: int) -> str:
    """The operation of an access, "" if it cannot be to shared memory, or if machine code does it in a loop (float and some atomics)."""
    kind = int(program.code[pc, m.AT_KIND // 4])
    if program.operand(pc, P_SPACE) not in (m.SHARED, m.GENERIC):
        return ""
    size = program.operand(pc, P_BYTES) * program.operand(pc, P_VECTOR)
    modifiers = program.source_at(pc).mnemonic.split(".")
    if kind in (m.LOAD, m.STORE):
        shared = "S" if program.operand(pc, P_SPACE) == m.SHARED else ""  # LDS, or LD of a generic address
        name = f"LD{shared}.{'U' if size < 4 else ''}{8 * size}" if kind == m.LOAD else f"ST{shared}.{8 * size}"
    elif kind in (m.LDMATRIX, m.STMATRIX):
        transposed = ".T" if program.operand(pc, M_TRANSPOSED) else ""
        name = f"{'LDSM' if kind == m.LDMATRIX else 'STSM'}.x{program.operand(pc, M_COUNT)}{transposed}"
    elif kind == m.CP_ASYNC:
        # as PTX and as machine code say it
        name = f"LDGSTS.{'cg' if {'cg', 'BYPASS'} & set(modifiers) else 'ca'}{size}"
    else:
        family = "RED.shared" if program.operand(pc, A_ELEMENTS + A_DEST) < 0 else "ATOMS"
        operations = [each.lower() for each in modifiers]
        if "POPC" in modifiers:
            return "ATOMS.popc.inc"
        name = next((f"{family}.{each}" for each in operations if f"{family}.{each}" in OPERATIONS), "")
        if modifiers[-1].startswith(("f", "bf")) or size == 2:
            name = ""
        elif size == 8:
            name += ".64"
    return name if name in OPERATIONS else ""


def kind_of(program: Program, pc: int) -> str:
    """The PTX opcode of an access."""
    opcode = program.source_at(pc).mnemonic.split(".")[0]
    if opcode in ("ld", "st", "atom", "red", "ldmatrix", "stmatrix"):
        return opcode
    return KIND_NAMES[int(program.code[pc, m.AT_KIND // 4])]
