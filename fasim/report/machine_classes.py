"""Which machine instructions (SASS) come from which PTX instructions, as far as their executions can be compared.

Source: "CUDA Binary Utilities", instruction set reference, for the opcodes; what ptxas makes of each was read from its output for sm_80,
sm_90 and sm_120.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from fasim.smem.wavefronts import ALIASES


@dataclass(frozen=True)
class InstructionClass:
    """PTX mnemonics and machine opcodes for the same work. shared: it accesses shared memory; sized: by bytes a lane."""

    name: str
    ptx: str
    machine: str
    shared: bool = False
    sized: bool = False


_SHARED = [
    InstructionClass("shared load", r"ld\b.*\.shared", r"LDS\b", True),
    InstructionClass("shared store", r"st\b.*\.shared", r"STS\b", True),
    InstructionClass("shared atomic", r"(atom|red)\b.*\.shared", r"ATOMS\b", True),
    InstructionClass("ldmatrix", r"ldmatrix\b", r"LDSM\b", True),
    InstructionClass("stmatrix", r"stmatrix\b", r"STSM\b", True),
    InstructionClass("cp.async", r"cp\.async\.c[ag]\.", r"LDGSTS\b", True),
]
_OTHERS = [
    InstructionClass("mma", r"w?mma\.(sync|mma|sp)", r"[HIDBQO]MMA\b"),
    InstructionClass("wgmma", r"wgmma\.mma_async\b", r"[HIBQ]GMMA\b"),
    InstructionClass("movmatrix", r"movmatrix\b", r"MOVM\b"),
    InstructionClass("commit_group", r"cp\.async\.(commit_group|wait_all)", r"LDGDEPBAR\b"),
    InstructionClass("shfl", r"shfl\b", r"SHFL\b"),
    InstructionClass("vote", r"vote\b", r"VOTEU?\b"),
    InstructionClass("match", r"match\b", r"MATCH\b"),
    InstructionClass("redux", r"redux\b", r"C?REDUX\b"),
    InstructionClass("barrier", r"bar(rier)?\.(cta\.)?(sync|arrive|red)", r"BAR\b"),
    InstructionClass("global load", r"ldu?\b(?!.*\.(shared|local|param|const))", r"LDG?\b", sized=True),
    InstructionClass("global store", r"st\b(?!.*\.(shared|local|param))", r"STG?\b", sized=True),
    InstructionClass("global atomic", r"(atom|red)\b(?!.*\.shared)", r"(ATOM|ATOMG|RED|REDG)\b"),
    InstructionClass("local load", r"ld\b.*\.local", r"LDL\b", sized=True),
    InstructionClass("local store", r"st\b.*\.local", r"STL\b", sized=True),
    InstructionClass("ex2", r"ex2\b", r"MUFU\.EX2\b"),
    InstructionClass("lg2", r"lg2\b", r"MUFU\.LG2\b"),
    InstructionClass("rcp", r"(rcp\.approx|div\.(approx|full))", r"MUFU\.RCP\b"),
    InstructionClass("rsqrt", r"r?sqrt\.approx", r"MUFU\.(RSQ|SQRT)\b"),
    InstructionClass("sin", r"sin\b", r"MUFU\.SIN\b"),
    InstructionClass("cos", r"cos\b", r"MUFU\.COS\b"),
    InstructionClass("tanh", r"tanh\b", r"MUFU\.TANH\b"),
]
#: shared accesses first; a generic access is looked up there if it meets shared memory
CLASSES = tuple(_SHARED + _OTHERS)
BY_NAME = {each.name: each for each in CLASSES}
#: without effects and faults: ptxas may work them out where PTX does not, or once for several times
PURE = frozenset({"vote", "match", "redux", "ex2", "lg2", "rcp", "rsqrt", "sin", "cos", "tanh"})
#: executed less often than in PTX where ptxas keeps what was loaded, or leaves out what is overwritten
REUSED = PURE | {f"{space} {what}" for space in ("shared", "global", "local") for what in ("load", "store")} | {"ldmatrix"}
#: one PTX instruction can be several machine instructions of the same operation
MULTIPLE = (PURE - {"vote"}) | {"mma", "wgmma", "global atomic"}
#: SharedAccess.kind to the class
SHARED_KINDS = {
    **{"ld": "shared load", "st": "shared store", "atom": "shared atomic", "red": "shared atomic"},
    **{name: name for name in ("ldmatrix", "stmatrix", "cp.async")},
}
#: generic machine accesses, which may meet shared memory
GENERIC = {"LD": "shared load", "ST": "shared store", "ATOM": "shared atomic"}
#: the hardware counters of shared memory that a class counts in
COUNTED_IN = {"shared load": "ld", "ldmatrix": "ld", "shared store": "st", "stmatrix": "st", "shared atomic": "atom"}
_TYPE_BYTES = {"8": 1, "16": 2, "32": 4, "64": 8, "128": 16, "16x2": 4}


@cache
def class_of_ptx(mnemonic: str) -> InstructionClass | None:
    """The class of a PTX mnemonic, None if its executions are not compared."""
    return next((each for each in CLASSES if re.match(each.ptx, mnemonic)), None)


@cache
def class_of_machine(opcode: str) -> InstructionClass | None:
    """The class of a machine opcode, None if its executions are not compared."""
    return next((each for each in CLASSES if re.match(each.machine, opcode)), None)


@cache
def ptx_bytes(mnemonic: str) -> int:
    """Bytes that a lane loads or stores."""
    parts = mnemonic.split(".")
    vector = next((int(part[1:]) for part in parts if part in ("v2", "v4", "v8")), 1)
    match = re.fullmatch(r"(?:bf|[bsuf])(\d+(?:x2)?)", parts[-1])
    return vector * _TYPE_BYTES.get(match[1], 4) if match else 4 * vector


@cache
def machine_bytes(opcode: str) -> int:
    """Bytes that a lane loads, stores or copies."""
    for part in opcode.split(".")[1:]:
        if match := re.fullmatch(r"[US]?(8|16|64|128|256)", part):
            return int(match[1]) // 8
    return 4


@cache
def machine_operation(opcode: str) -> str:
    """A machine opcode as `fasim.smem.OPERATIONS` names it (`LDS.U.128` is LDS.128), where that has it; else the opcode in short."""
    head, *modifiers = opcode.split(".")
    size = machine_bytes(opcode)
    if head in ("LDS", "LD"):
        return f"{head}.{'U' if size < 4 else ''}{8 * size}"
    if head in ("STS", "ST"):
        return f"{head}.{8 * size}"
    if head in ("LDSM", "STSM"):
        count = next((part for part in modifiers if part in ("2", "4")), "1")
        return f"{head}.x{count}{'.T' if any(part.startswith('MT') for part in modifiers) else ''}"
    if head == "LDGSTS":
        return f"LDGSTS.{'cg' if 'BYPASS' in modifiers else 'ca'}{size}"
    if head in ("ATOMS", "ATOM"):
        # ATOMS.MAX.S32, ATOMS.POPC.INC.32, ATOMS.EXCH.64
        kinds = [part.lower() for part in modifiers if not re.fullmatch(r"[US]?\d+|E|STRONG|GPU|CTA|SYS", part)]
        return ".".join(["ATOMS", *kinds, *(["64"] if size == 8 else [])])
    return opcode


@cache
def ptx_operation(op: str) -> str:
    """An operation of the simulation under the name that `machine_operation` gives it."""
    op = ALIASES.get(op, op)
    if op.startswith("RED.shared."):
        return "ATOMS." + op.removeprefix("RED.shared.")
    return op.replace(".S8", ".U8").replace(".S16", ".U16") if op.startswith("LD") else op


def ptx_shared_operation(name: str, mnemonic: str, text: str) -> str:
    """The operation of an access to shared memory, of the class `name`, by its text alone."""
    size, parts = 8 * ptx_bytes(mnemonic), mnemonic.split(".")
    if name == "shared load":
        return f"LDS.{'U' if size < 32 else ''}{size}"
    if name == "shared store":
        return f"STS.{size}"
    if name == "cp.async":
        sizes = re.findall(r",\s*(\d+)\b", text)
        return f"LDGSTS.{parts[2]}{sizes[0] if sizes else 16}"
    if name in ("ldmatrix", "stmatrix"):
        count = next((part for part in parts if part in ("x2", "x4")), "x1")
        return f"{'LDSM' if name == 'ldmatrix' else 'STSM'}.{count}{'.T' if 'trans' in parts else ''}"
    return "ATOMS"


@cache
def operation_bytes(op: str) -> int:
    """Bytes a lane of an operation; of LDSM and STSM those of all its matrices."""
    if match := re.match(r"(?:LDSM|STSM)\.x(\d)", op):
        return 4 * int(match[1])
    match = re.search(r"(\d+)$", op)
    if op.startswith("LDGSTS"):
        return int(match[1]) if match else 4
    return int(match[1]) // 8 if match and int(match[1]) >= 8 else 4
