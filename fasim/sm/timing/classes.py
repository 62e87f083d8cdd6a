"""Which unit of an SM carries out an instruction of machine code, by its opcode.

Source: the pipes that ncu counts (`sass__inst_executed_per_opcode`, `sm__inst_executed_pipe_*`) for microbenchmarks of single
instructions on an H200; "CUDA C++ Programming Guide", Arithmetic Instructions, for the throughput of each class.
"""

from __future__ import annotations

from fasim.sass.syntax import Instruction, Register

# --- how the machine treats an instruction ----------------------------------------------------------------------------------------
KINDS = (
    "plain",  # result after a fixed time, which the stall counts obey
    "branch",
    "exit",
    "barrier",  # BAR
    "xu",  # result by scoreboard, from the transcendental unit
    "shuffle",
    "adu",  # result by scoreboard: special registers, votes over values, indexed constants
    "shared_load",
    "shared_store",
    "shared_atomic",
    "global_load",
    "global_store",
    "global_atomic",
    "copy",  # LDGSTS
    "commit",  # LDGDEPBAR
    "depbar",
    "converge",  # BSSY, BSYNC, WARPSYNC
    "fence",
)
(
    PLAIN,
    BRANCH,
    EXIT,
    BARRIER,
    XU,
    SHUFFLE,
    ADU,
    SHARED_LOAD,
    SHARED_STORE,
    SHARED_ATOMIC,
    GLOBAL_LOAD,
    GLOBAL_STORE,
    GLOBAL_ATOMIC,
    COPY,
    COMMIT,
    DEPBAR,
    CONVERGE,
    FENCE,
) = range(18)

# --- pipes of a sub-partition -------------------------------------------------------------------------------------------------------
#: in the order of the numbers; "fma_heavy" is the half of the FMA pipe that multiplies integers, "fma_lite" the other
PIPES = ("none", "fma_heavy", "fma_lite", "alu", "uniform", "fp64", "xu", "tensor", "lsu", "adu", "cbu")
NONE, FMA_HEAVY, FMA_LITE, ALU, UNIFORM, FP64, XU_PIPE, TENSOR, LSU, ADU_PIPE, CBU = range(11)

#: opcodes by the name of their interval in the card's data; what is not named here is "alu"
CLASSES: dict[str, tuple[str, ...]] = {
    "fma": ("FADD", "FMUL", "FFMA", "FADD2", "FMUL2", "FFMA2", "FADD32I", "FMUL32I", "FFMA32I"),
    "fma_heavy": ("IMAD", "VIADD", "IDP", "FSWZADD"),
    "fp16": ("HADD2", "HFMA2", "HMUL2"),
    "fp64": ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX"),
    "xu": ("MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV", "FCHK"),
    "tensor": ("HMMA", "IMMA", "DMMA", "BMMA", "QMMA"),
    "adu": ("S2R", "S2UR", "MATCH", "REDUX", "CREDUX", "VOTEU", "ELECT", "B2R", "R2B", "BMOV"),
    "branch": ("BRA", "BRX", "JMP", "JMX", "CALL", "RET", "BREAK", "YIELD", "BPT", "KILL", "NANOSLEEP"),
    "converge": ("BSSY", "BSYNC", "WARPSYNC", "BRXU"),
    "none": ("NOP", "ULDC", "UMOV", "PMTRIG", "ACQBULK", "DEPBAR", "LDCU", "UMEMSETS", "NOPQ"),
}
_CLASS_OF = {opcode: name for name, opcodes in CLASSES.items() for opcode in opcodes}

#: memory instructions by kind
MEMORY: dict[int, tuple[str, ...]] = {
    SHARED_LOAD: ("LDS", "LDSM"),
    SHARED_STORE: ("STS", "STSM"),
    SHARED_ATOMIC: ("ATOMS",),
    GLOBAL_LOAD: ("LDG", "LD", "LDL"),
    GLOBAL_STORE: ("STG", "ST", "STL"),
    GLOBAL_ATOMIC: ("ATOMG", "ATOM", "RED", "REDG"),
    COPY: ("LDGSTS",),
}
KIND_OF_MEMORY = {opcode: kind for kind, opcodes in MEMORY.items() for opcode in opcodes}


def class_of(ins: Instruction) -> str:
    """The name under which the interval of an instruction stands in a card's data, or what else it is."""
    opcode, parts = ins.opcode, ins.modifiers
    found = _CLASS_OF.get(opcode)
    if found is None:
        if opcode.startswith("U") and opcode not in ("UBLKCP",):
            return "uniform"
        if opcode == "LDC":
            return "adu"
        return "alu"
    if opcode == "IMAD" and ("WIDE" in parts or "HI" in parts):
        return "imad_wide"
    if opcode == "HFMA2" and "MMA" in parts:
        return "hfma2_mma"
    if opcode == "R2UR":
        return "alu"
    if found == "tensor":
        return tensor_shape(ins)
    return found


def tensor_shape(ins: Instruction) -> str:
    """`hmma_16816` and the like: how long a matrix instruction takes the tensor pipe."""
    parts = ins.modifiers
    shape = next((part for part in parts if part.isdigit()), "16816")
    if ins.opcode == "DMMA":
        return "dmma"
    if ins.opcode in ("IMMA", "BMMA"):
        return "imma_16832" if shape in ("16832", "168256", "16864") else "imma_16816"
    if "TF32" in parts:
        return f"hmma_{shape}_tf32"
    return f"hmma_{shape}" + ("" if "F32" in parts else "_f16")


def kind_of(ins: Instruction) -> int:
    """What the machine does with an instruction."""
    opcode, name = ins.opcode, class_of(ins)
    if opcode in KIND_OF_MEMORY:
        return KIND_OF_MEMORY[opcode]
    fixed = {
        "EXIT": EXIT,
        "BAR": BARRIER,
        "SHFL": SHUFFLE,
        "LDGDEPBAR": COMMIT,
        "DEPBAR": DEPBAR,
        "LDC": ADU,
        "MEMBAR": FENCE,
        "ERRBAR": FENCE,
        "CCTL": FENCE,
    }
    if opcode in fixed:
        return fixed[opcode]
    return {"xu": XU, "adu": ADU, "branch": BRANCH, "converge": CONVERGE}.get(name, PLAIN)


def vector_bytes(ins: Instruction) -> int:
    """Bytes of a lane that a memory instruction moves."""
    if ins.opcode in ("LDSM", "STSM"):
        count = next((int(part) for part in reversed(ins.modifiers) if part in ("2", "4")), 1)
        return 4 * count
    for bits in (128, 64):
        if str(bits) in ins.modifiers:
            return bits // 8
    return 4


def lane_register(ins: Instruction) -> bool:
    """Whether a SHFL takes its lane from a register."""
    return len(ins.operands) > 2 and isinstance(ins.operands[3 if len(ins.operands) > 4 else 2], Register)
