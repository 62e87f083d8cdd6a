"""What ncu's source page takes copies for whose condition it does not read.

ncu 2025.3 takes P0 for false, as predicate of an instruction and as condition under which a lane of LDGSTS copies; LDGSTS.BYPASS alone is
concerned. A predicate before LDGSTS.ZFILL it takes for false in either form. Source: measured on an H200; the last is known from
`@!P0 LDGSTS.E.BYPASS.128.ZFILL` of recordings/h200/cases/pipe3_cg16_empty_tiles.zip alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fasim.report.measured import MachineInstruction
from fasim.smem.wavefront_rule import AS_COPIES, AS_FILLS, AS_ZFILL, AS_ZFILL_COPIES

if TYPE_CHECKING:
    from fasim.report.match import Item

NOT_TAKEN = -1
_BYPASS = "LDGSTS.E.BYPASS"
#: by whether it is LDGSTS.ZFILL, and its last operand
_CONDITIONS = {(False, "!P0"): AS_COPIES, (False, "P0"): AS_FILLS, (True, "P0"): AS_ZFILL_COPIES}
_GUARDS = {"@P0": "false", "@!P0": "true"}
#: wavefronts that 32 lanes of 16 bytes need
_IDEAL = 4


def taken_for(instruction: MachineInstruction) -> int:
    """Which figure of `SharedAccess.as_if` the source page has for it, NOT_TAKEN for that of what it did."""
    if not instruction.opcode.startswith(_BYPASS):
        return NOT_TAKEN
    zfill, condition = ".ZFILL" in instruction.opcode, instruction.text.rsplit(",", 1)[-1].strip()
    return _CONDITIONS.get((zfill, condition), AS_ZFILL if zfill else NOT_TAKEN)


def guard_as(instruction: MachineInstruction) -> str:
    """`true` or `false` if its predicate is taken for that in all lanes."""
    words = instruction.text.lstrip("{ ").split(maxsplit=1)
    if not instruction.opcode.startswith(_BYPASS) or words[0] not in _GUARDS:
        return ""
    return "false" if ".ZFILL" in instruction.opcode else _GUARDS[words[0]]


def explains(ours: Sequence[Item], theirs: Sequence[Item]) -> bool:
    """Whether the source page counted what it would without reading a condition."""
    costs = sum(x.wavefronts for x in theirs), sum(x.ideal for x in theirs)
    if all(x.guard_as == "false" for x in theirs):
        return costs == (0, 0)
    if all(x.guard_as == "true" for x in theirs):
        # where lanes that are switched off would copy to is not known: of wavefronts no more than the ideal of 32 lanes can be told
        return costs[1] == _IDEAL * sum(x.executions for x in theirs)
    taken = {x.taken_for for x in theirs}
    if len(taken) != 1 or NOT_TAKEN in taken or not all(x.as_if for x in ours):
        return False
    figures = [x.as_if[max(taken)] for x in ours]
    return (sum(f[0] for f in figures), sum(f[1] for f in figures)) == costs


def reason(item: Item) -> str:
    """Why the source page has something else for a copy than what it did."""
    if item.guard_as:
        return f"ncu does not read the predicate in P0 and takes it for {item.guard_as} in all lanes"
    if item.taken_for == AS_ZFILL:
        return "LDGSTS.ZFILL, which ptxas makes of a src-size that may be anything, costs a store of all lanes as well"
    return f"ncu takes all lanes for {'fills' if item.taken_for == AS_FILLS else 'copies'}, since it does not read their condition in P0"
