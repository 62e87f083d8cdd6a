"""What the instructions of a kernel say about matrices: the fragments that one takes, and the results that hold values of a tile's rows."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.isa.program import SourceInstruction
from fasim.kernels.spec import WatchedLine
from fasim.report.layout import Fragment
from fasim.report.layout_catalog import find
from fasim.trace.places import Places

Array = np.ndarray[Any, Any]
_GROUP = re.compile(r"\{([^{}]*)\}")
_MATRIX_MNEMONICS = ("mma.", "wmma.mma", "ldmatrix", "stmatrix")


@dataclass(frozen=True)
class HeldFragment:
    """A fragment of an instruction and the registers that hold it, in order; operand: as PTX names it."""

    operand: str
    fragment: Fragment
    registers: tuple[str, ...]


@lru_cache(maxsize=1024)
def held_fragments(source: SourceInstruction) -> tuple[HeldFragment, ...]:
    """The fragments of ldmatrix, stmatrix or mma, in the order D, A, B, C; none of other instructions."""
    if not source.mnemonic.startswith(_MATRIX_MNEMONICS):
        return ()
    try:
        entry, _ = find(source.mnemonic)
    except UsageError:
        return ()
    groups = [tuple(name.strip() for name in match[1].split(",")) for match in _GROUP.finditer(source.text)]
    by_operand = dict(zip("DABC", groups)) if "mma" in source.mnemonic else {}
    found = []
    for fragment in entry.fragments():
        for operand in fragment.operands:
            registers = by_operand.get(operand, groups[0] if not by_operand else ())
            if len(registers) == fragment.registers:
                found.append(HeldFragment(operand, fragment, registers))
    return tuple(sorted(found, key=lambda each: "DABC".find(each.operand[0])))


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
