"""Predicates to the bits of a register and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fasim.isa.sass.declare import sass
from fasim.numerics.lanes import Lanes, cast

LOW = 0xFFFFFFFF
_PREDICATES = ", ".join(f"p{i}:pred" for i in range(7))


@sass(
    "P2R",
    f"d:b32 = a:b32, {_PREDICATES}, mask:imm, shift:imm",
    cases=[((0xFF, 1, 0, 0, 1, 0, 0, 0, 0xF, 0), 0xF9), ((0xFF00, 1, 0, 0, 1, 0, 0, 0, 0xF, 8), 0xF900)],
)
def p2r(a: Lanes, *rest: Any) -> Lanes:
    *predicates, mask, shift = rest
    found: Lanes = a & (~(mask << shift) & LOW)
    for i, predicate in enumerate(predicates):
        if mask >> i & 1:
            found = found | (cast(predicate, "u32") << (i + shift))
    return found


def _r2p(mask: int) -> Callable[..., Any]:
    def semantics(a: Lanes) -> Any:
        made = tuple((a >> i & 1) != 0 for i in range(7) if mask >> i & 1)
        return made if len(made) > 1 else made[0]

    return semantics


for _mask in range(1, 128):
    _dests = ", ".join(f"p{i}:pred" for i in range(7) if _mask >> i & 1)
    sass(f"R2P:{_mask}", f"{_dests} = a:b32")(_r2p(_mask))
