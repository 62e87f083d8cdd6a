"""From the mnemonic that PTX writes to its row: exact names first, then without the modifiers that only steer caches and memory order."""

from __future__ import annotations

from dataclasses import dataclass

from fasim.isa.machine import SPACE
from fasim.isa.rows import ROWS, Row

ORDERS = frozenset({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "sc", "mmio"})
SCOPES = frozenset({"cta", "cluster", "gpu", "sys"})
CACHES = frozenset({"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "noftz", "unified"})
SPACES = {**SPACE, "shared::cta": SPACE["shared"], "param::entry": SPACE["param"], "param::func": SPACE["local"]}
#: opcodes whose names in the table leave these modifiers out
STRIPPED = frozenset({"ld", "ldu", "st", "atom", "red", "cp"})


@dataclass(frozen=True, slots=True)
class Found:
    """A row with what its written name said besides: the state space as in fasim.isa.machine, memory order and scope."""

    row: Row
    space: int
    modifiers: frozenset[str]


def find(opcode: str, modifiers: tuple[str, ...], shape: str = "") -> Found | None:
    """The row of an instruction, None if there is none; `shape` tells rows of one mnemonic apart (`pack2`)."""
    name = ".".join((opcode, *modifiers)) + (f":{shape}" if shape else "")
    space = next((SPACES[m] for m in modifiers if m in SPACES), SPACE["generic"])
    row = ROWS.get(name)
    if row is None and opcode in STRIPPED:
        kept = [m for m in modifiers if m not in ORDERS | SCOPES | CACHES and not m.startswith(("L1::", "L2::"))]
        if opcode != "cp":
            kept = [m for m in kept if m not in SPACES]
        row = ROWS.get(".".join((opcode, *kept)))
    return None if row is None else Found(row, space, frozenset(modifiers))
