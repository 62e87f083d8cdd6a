"""Machine code to the records that the timing model reads: pipes, intervals, register ports, control bits, latencies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fasim.arch.cards import Card
from fasim.sass.control import Control
from fasim.sass.syntax import Instruction, Name, Number, Predicate, Register
from fasim.sm.timing import classes as c
from fasim.sm.timing import record as r

Array = np.ndarray[Any, Any]

_PIPE_OF_CLASS = {
    "fma": (c.FMA_HEAVY, r.EITHER_HALF),
    "fma_heavy": (c.FMA_HEAVY, 0),
    "imad_wide": (c.FMA_HEAVY, 0),
    "fp16": (c.FMA_HEAVY, r.BOTH_HALVES),
    "alu": (c.ALU, 0),
    "uniform": (c.UNIFORM, 0),
    "fp64": (c.FP64, 0),
    "xu": (c.XU_PIPE, 0),
    "adu": (c.ADU_PIPE, 0),
    "branch": (c.CBU, 0),
    "converge": (c.CBU, 0),
    "none": (c.NONE, 0),
}
#: matrix instructions that take as long as another one, if the card's data does not say otherwise
_LIKE = {
    "hmma_16816_f16": "hmma_16816",
    "hmma_1688_f16": "hmma_1688",
    "hmma_1688_tf32": "hmma_16816",
    "hmma_1684_tf32": "hmma_1688",
    "imma_16832": "hmma_16816",
    "imma_16816": "hmma_1688",
}
#: opcodes whose first register is no destination
_NO_DESTINATION = frozenset(("ISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "R2P"))


def decode(instructions: Sequence[Instruction], controls: Sequence[Control], card: Card, leaders: Sequence[int] = ()) -> Array:
    """int32[n, INSTRUCTION_WORDS]; leaders: where basic blocks begin, in ascending order."""
    rows = np.zeros((len(instructions), r.INSTRUCTION_WORDS), np.int32)
    starts = set(leaders)
    # operands that stay, until another one is read in their place, or the register changes; matrix instructions keep theirs for themselves
    kept: dict[bool, set[tuple[int, int]]] = {False: set(), True: set()}
    for i, (ins, control) in enumerate(zip(instructions, controls, strict=True)):
        if i in starts:
            kept = {False: set(), True: set()}
        sources, tensor = source_registers(ins), ins.opcode in c.CLASSES["tensor"]
        _fill(rows[i], ins, control, card, [reg for slot, reg in sources if (slot, reg) not in kept[tensor]])
        taken, written = {slot for slot, _ in sources}, _destination(ins)
        kept[tensor] = {(slot, reg) for slot, reg in kept[tensor] if slot not in taken and reg != written}
        kept[tensor] |= {(slot, reg) for slot, reg in sources if control.reuse >> slot & 1 and reg != written}
        if tensor:
            kept[False] = set()
    _after_mma(rows, card)
    for start, end in zip(leaders, [*leaders[1:], len(instructions)], strict=True):
        rows[start, r.I_LENGTH] = end - start
    return rows


def _after_mma(rows: Array, card: Card) -> None:
    """How long the first math instruction behind a matrix instruction waits for that one's registers, by how many follow each other.

    Source: loops of one to four HMMA and k independent FADD, FMUL on an H200.
    """
    math = [i for i in range(len(rows)) if rows[i, r.I_SLOTS]]
    tensor = [bool(rows[i, r.I_PIPE] == c.TENSOR) for i in math]
    runs: list[tuple[int, int]] = []
    for at in range(len(math)):
        if at and tensor[at - 1] and not tensor[at]:
            runs.append((at, 0))
        if runs and not tensor[at]:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
    for at, count in runs:
        follows = at > 1 and tensor[at - 2]
        # operands that need not be read, RZ or reused ones, leave the ports free sooner
        later = card["ports.hmma_then_math"] - max(0, card["ports.hmma_slots"] - rows[math[at - 1], r.I_SLOTS])
        if rows[math[at], r.I_PIPE] == c.ALU:
            after = {1: later - 3, 2: later - 2, 3: later - 4, 4: later - 4}.get(count, later - 3)
        else:
            after = {1: later - 3, 3: later - 1, 4: later - 2}.get(count, later + (follows and count > 4))
        rows[math[at], r.I_AFTER_MMA] = after


def _destination(ins: Instruction) -> int:
    """The first register that the instruction writes, -1 if it writes none."""
    first = next((operand for operand in ins.operands if isinstance(operand, Register)), None)
    return first.number if first is not None and ins.opcode not in _NO_DESTINATION else -1


def source_registers(ins: Instruction) -> list[tuple[int, int]]:
    """(operand slot, register) of each register that the instruction reads through the ports of the register file."""
    operands = list(ins.operands)
    if ins.opcode not in _NO_DESTINATION:
        first = next((i for i, operand in enumerate(operands) if isinstance(operand, Register)), None)
        operands = operands if first is None else operands[first + 1 :]
    operands = [operand for operand in operands if not isinstance(operand, Predicate)]
    found: list[tuple[int, int]] = []
    for slot, operand in enumerate(operands):
        if isinstance(operand, Register) and not operand.uniform and not operand.is_zero:
            found += [(slot, operand.number + i) for i in range(_words(ins, slot))]
    return found


def _words(ins: Instruction, slot: int) -> int:
    """Registers of an operand."""
    if ins.opcode in ("HMMA", "IMMA"):
        small = c.tensor_shape(ins) in ("hmma_1688", "hmma_1688_f16", "hmma_1684_tf32", "imma_16816")
        accumulators = 2 if ins.opcode == "HMMA" and "F32" not in ins.modifiers and "TF32" not in ins.modifiers else 4
        return ((2, 1, accumulators) if small else (4, 2, accumulators))[slot] if slot < 3 else 1
    if ins.opcode in ("DADD", "DMUL", "DFMA", "DSETP", "DMNMX"):
        return 2
    if ins.opcode == "DMMA":
        return 2
    if ins.opcode == "IMAD" and "WIDE" in ins.modifiers and slot == 2:
        return 2
    return 1


def _fill(row: Array, ins: Instruction, control: Control, card: Card, sources: list[int]) -> None:
    name, kind = c.class_of(ins), c.kind_of(ins)
    row[r.I_KIND] = kind
    row[r.I_STALL], row[r.I_YIELDS] = control.stall_cycles, int(control.yields)
    row[r.I_WRITE_SB], row[r.I_READ_SB], row[r.I_WAIT] = control.write_scoreboard, control.read_scoreboard, control.wait_mask
    if kind in c.KIND_OF_MEMORY.values() or kind in (c.SHUFFLE, c.COMMIT, c.DEPBAR, c.BARRIER, c.FENCE):
        _fill_queued(row, ins, kind, card)
        return
    unique = set(sources)
    row[r.I_EVEN] = sum(reg % 2 == 0 for reg in unique)
    row[r.I_ODD] = len(unique) - row[r.I_EVEN]
    if name in _PIPE_OF_CLASS:
        row[r.I_PIPE], row[r.I_BOTH] = _PIPE_OF_CLASS[name]
    else:
        row[r.I_PIPE] = c.TENSOR
    row[r.I_INTERVAL] = round(_interval(name, card) * r.PARTS)
    row[r.I_SLOTS] = int(name not in ("none", "uniform", "branch", "converge", "adu"))
    if row[r.I_PIPE] == c.TENSOR and name != "hfma2_mma":
        row[r.I_SLOTS] = max(row[r.I_EVEN], row[r.I_ODD], 1)
    if kind == c.XU:
        row[r.I_LATENCY], row[r.I_WRITEBACK] = card["latency.xu"], card["ports.xu_writeback"]
    elif kind == c.ADU:
        row[r.I_LATENCY] = card[f"latency.{_adu_name(ins)}"]
    elif kind == c.CONVERGE:
        row[r.I_LATENCY] = card["branch.bsync"] if ins.opcode == "BSYNC" else 0
    elif kind == c.BRANCH:
        row[r.I_LATENCY] = card["branch.taken"]


def _interval(name: str, card: Card) -> float:
    if name in ("none", "branch", "converge"):
        return 0.0
    if name == "fma":  # of one half
        return float(2 * card["interval.fma"])
    if name == "adu":
        return float(card["interval.adu"]) / 4
    if name == "hfma2_mma":
        return float(card["interval.fp16"])
    return float(card.get(f"interval.{name}", card.get(f"interval.{_LIKE.get(name, name)}", 0)))


def _adu_name(ins: Instruction) -> str:
    return {"S2R": "s2r", "S2UR": "s2ur", "REDUX": "redux", "CREDUX": "redux", "MATCH": "match"}.get(ins.opcode, "ldc")


def _way(ins: Instruction) -> int:
    """How an access to global or local memory goes by the L1."""
    if ins.opcode in ("LDL", "STL"):
        return r.LOCAL_SPACE | (r.LAST_USE if "LU" in ins.modifiers else 0)
    bypass = "BYPASS" in ins.modifiers or ("STRONG" in ins.modifiers and not {"CTA", "SM"} & set(ins.modifiers))
    return r.BYPASS_L1 if bypass else 0


def _fill_queued(row: Array, ins: Instruction, kind: int, card: Card) -> None:
    row[r.I_PIPE] = c.LSU if kind not in (c.DEPBAR, c.BARRIER, c.COMMIT, c.FENCE) else c.NONE
    row[r.I_BYTES] = c.vector_bytes(ins)
    if kind == c.SHUFFLE:
        row[r.I_LATENCY] = card["latency.shfl_register" if c.lane_register(ins) else "latency.shfl"]
        row[r.I_WRITEBACK] = card["ports.shfl_writeback"]
        row[r.I_BYTES] = 4
    elif kind == c.SHARED_LOAD:
        row[r.I_LATENCY] = card["latency.lds"] + (row[r.I_BYTES] - 4) // 4 * (ins.opcode == "LDS")
        row[r.I_WRITEBACK] = row[r.I_BYTES] // 4 - 1
    elif kind == c.SHARED_ATOMIC:
        row[r.I_LATENCY] = card["latency.atoms_cas" if "CAS" in ins.modifiers or "CAST" in ins.modifiers else "latency.atoms"]
    elif kind == c.GLOBAL_LOAD:
        row[r.I_LATENCY] = card["memory.l1_latency"]
        row[r.I_WRITEBACK] = row[r.I_BYTES] // 4 - 1
    elif kind == c.GLOBAL_ATOMIC:
        row[r.I_LATENCY] = card["memory.l2_latency"]
    elif kind == c.COPY:
        row[r.I_LATENCY] = card["memory.ldgsts_extra"]
    if kind in (c.GLOBAL_LOAD, c.GLOBAL_STORE, c.COPY):
        row[r.I_ARGUMENT] = _way(ins)
    elif kind == c.DEPBAR:
        names = [operand.text for operand in ins.operands if isinstance(operand, Name) and operand.text.startswith("SB")]
        numbers = [operand.value for operand in ins.operands if isinstance(operand, Number)]
        row[r.I_SCOREBOARD] = int(names[0][2:]) if names else -1
        row[r.I_ARGUMENT] = numbers[0] if numbers else 0
    elif kind == c.BARRIER:
        row[r.I_BARRIER_OP] = int("ARV" in ins.modifiers)
        row[r.I_LATENCY] = card["barrier.release"]
