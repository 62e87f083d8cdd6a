"""What the instructions of a kernel say about matrices: the fragments that one takes, and the results that hold values of a tile's rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.errors import UsageError
from fasim.isa.program import SourceInstruction
from fasim.kernels.spec import WatchedLine
from fasim.report.layout import Fragment
from fasim.report.layout_catalog import find
from fasim.sass.listing import SassLine
from fasim.sass.syntax import Register, parse
from fasim.trace.places import Places
from fasim.trace.view import text_name

if TYPE_CHECKING:
    from fasim.ptx.names import OperandName, RegisterNames

Array = np.ndarray[Any, Any]
_GROUP = re.compile(r"\{([^{}]*)\}")
_MACHINE_OPCODES = ("HMMA.", "IMMA.", "DMMA.", "LDSM.", "STSM.")
_MATRIX_MNEMONICS = ("mma.", "wmma.mma", "ldmatrix", "stmatrix")


@dataclass(frozen=True)
class HeldFragment:
    """A fragment of an instruction and the registers that hold it, in order; operand: as PTX names it; result: whether it is written."""

    operand: str
    fragment: Fragment
    registers: tuple[str, ...]
    result: bool


@lru_cache(maxsize=1024)
def held_fragments(source: SourceInstruction, operands: tuple[OperandName, ...] = ()) -> tuple[HeldFragment, ...]:
    """The fragments of ldmatrix, stmatrix or mma, in the order D, A, B, C; none of other instructions.

    operands: of the instruction, whose names the registers get: those of a block of their own have others than in the text.
    """
    machine_code = source.mnemonic.startswith(_MACHINE_OPCODES)
    mnemonic = _as_ptx(source.mnemonic) if machine_code else source.mnemonic
    if not mnemonic.startswith(_MATRIX_MNEMONICS):
        return ()
    try:
        entry, _ = find(mnemonic)
    except UsageError:
        return ()
    names = {text_name(each.name): each.name for each in operands}
    texts = [[name.strip() for name in match[1].split(",")] for match in _GROUP.finditer(source.text)]
    groups = [tuple(names.get(name, name) for name in group) for group in texts]
    first = _first_registers(source) if machine_code else []
    found = []
    for fragment in entry.fragments():
        for operand in fragment.operands:
            number = "DABC".find(operand) if "mma" in mnemonic else 0
            if machine_code:
                registers = _after(first[number], fragment.registers) if 0 <= number < len(first) else ()
            else:
                registers = groups[number] if 0 <= number < len(groups) else ()
            if len(registers) == fragment.registers:
                found.append(HeldFragment(operand, fragment, registers, operand == "D" or mnemonic.startswith("ldmatrix")))
    return tuple(sorted(found, key=lambda each: "DABC".find(each.operand[0])))


def _as_ptx(mnemonic: str) -> str:
    """The PTX that a matrix instruction of machine code is, "" if none is known."""
    from fasim.isa.sass.warp import PTX_MATRIX

    return PTX_MATRIX.get(mnemonic, "")


def _first_registers(source: SourceInstruction) -> list[int]:
    """The number of the first register of each operand of machine code that is registers; RZ counts as one that is not there."""
    found = (operand for operand in parse(SassLine(0, source.text)).operands if isinstance(operand, Register))
    return [-1 if register.is_zero else register.number for register in found]


def _after(first: int, count: int) -> tuple[str, ...]:
    """So many registers from one on."""
    return tuple(f"R{first + i}" for i in range(count)) if first >= 0 else ("RZ",) * count


def fragments_at(places: Places, names: RegisterNames, pc: int) -> tuple[HeldFragment, ...]:
    """The fragments of the instruction at a pc; none of a jump that is not in the PTX."""
    return () if places.inserted(pc) else held_fragments(places.source(pc), names.operands[pc])


def row_result_pcs(places: Places, watched: WatchedLine) -> list[int]:
    """The instructions that compute what a line assigns: those of its operation that belong to the line itself or one call within."""
    lines = [(pc, places.path(pc)) for pc in range(len(places.program)) if places.source(pc).mnemonic.startswith(watched.operation)]
    of_line = [(pc, len(path)) for pc, path in lines if path and places.sources.text(*path[0]).startswith(watched.text)]
    own = min((depth for _, depth in of_line), default=0)
    return [pc for pc, depth in of_line if depth == own]


def row_values_of(result: Array, *, total: bool) -> list[float]:
    """The eight rows that an f32 result holds: row lane / 4. total: the sum of the four lanes of a quad, which otherwise hold the same."""
    lanes = result.view(np.float32).astype(np.float64).reshape(8, 4)
    return list((lanes.sum(axis=1) if total else lanes[:, 0]).tolist())
