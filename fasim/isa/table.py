"""The instruction table: one `Row` an instruction, from which parser checks, execution, documentation and tests are made.

A row is declared by decorating its semantics:

    @op("shl.b32", "d:b32 = a:b32, n:u32", doc="logic-and-shift-instructions-shl", cases=[((1, 4), 16), ((1, 32), 0)])
    def _(a, n):
        return a << n

The signature names destinations, then sources, each with its type. `b8 ... b64` are bits (seen as unsigned), `f32*4` is a vector of four
registers, `imm` an immediate that becomes part of the instruction (the semantics gets a Python int), `pred` a predicate.
The names `cc` (the carry flag), `active` (the lanes that execute) and `arch` (an `imm`: the target, e.g. 90) are supplied by the
machine and not written in PTX.

A row's name is the mnemonic as PTX writes it. Where one mnemonic takes operands of several shapes, the rarer ones are rows of their
own, named `mnemonic:shape`; whoever lowers PTX picks them by looking at the operands:

    mov.b64:pack2, mov.b64:unpack2   the source (pack) or the destination (unpack) is a vector of that many registers
    cvt.s8.s32:d32                   the destination register is wider than the destination type: its width (16, 32 or 64)
    cvt.u32.u8:a64                   the source register has 64 bits, the source type fewer; both: `:d64a64`
    shfl.sync.bfly.b32:imm           same meaning, but every source of type `imm` is written as an integer: to be preferred when it is
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

BITS_AS = {"b8": "u8", "b16": "u16", "b32": "u32", "b64": "u64"}
IMPLICIT = frozenset({"cc", "active", "arch"})
Semantics = TypeVar("Semantics", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Arg:
    """One operand of a row: `type_` as the semantics sees it, `count` registers (0: a scalar operand)."""

    name: str
    type_: str
    count: int = 0

    @property
    def implicit(self) -> bool:
        """Supplied by the machine, not written in PTX."""
        return self.name in IMPLICIT


@dataclass(frozen=True, slots=True)
class Row:
    """One instruction.

    kind: "lanes" for what only touches registers, else the machine's name of the operation (see fasim.warp).
    min_arch: least target, e.g. 80 for sm_80. attributes: what the machine needs to know besides, e.g. {"member_mask": "mask"}.
    """

    name: str
    kind: str
    dests: tuple[Arg, ...]
    sources: tuple[Arg, ...]
    semantics: Callable[..., Any] | None
    anchor: str = ""
    cases: tuple[Any, ...] = ()
    min_arch: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)

    @property
    def mnemonic(self) -> str:
        """The name without the operand shape."""
        return _SHAPE.sub("", self.name)

    @property
    def written_sources(self) -> tuple[Arg, ...]:
        """The source operands that stand in PTX text."""
        return tuple(a for a in self.sources if not a.implicit)

    @property
    def written_dests(self) -> tuple[Arg, ...]:
        """The destination operands that stand in PTX text."""
        return tuple(a for a in self.dests if not a.implicit)


#: what PTX is made of, and what machine code is made of
ROWS: dict[str, Row] = {}
SASS_ROWS: dict[str, Row] = {}
_SHAPE = re.compile(r"(?<!:):\w+$")
_ARG = re.compile(r"^(\w+):(\w+)(?:\*(\d+))?$")


def _args(text: str) -> tuple[Arg, ...]:
    args = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        m = _ARG.match(part)
        if m is None:
            raise ValueError(f"signature part {part!r} is not NAME:TYPE or NAME:TYPE*COUNT")
        args.append(Arg(m[1], BITS_AS.get(m[2], m[2]), int(m[3] or 0)))
    return tuple(args)


def op(
    names: str | Iterable[str],
    signature: str,
    *,
    doc: str,
    kind: str = "lanes",
    cases: Sequence[Any] = (),
    min_arch: int = 0,
    table: dict[str, Row] = ROWS,
    **attributes: Any,
) -> Callable[[Semantics], Semantics]:
    """Declare one row, or several names with the same meaning; `doc` is the PTX ISA anchor, `table` where it goes."""
    dests, sources = signature.split("=") if "=" in signature else ("", signature)

    def declare(semantics: Semantics) -> Semantics:
        for name in [names] if isinstance(names, str) else names:
            if name in table:
                raise ValueError(f"instruction {name!r} is declared twice")
            table[name] = Row(name, kind, _args(dests), _args(sources), semantics, doc, tuple(cases), min_arch, attributes)
        return semantics

    return declare


def nearest(mnemonic: str, count: int = 3) -> list[str]:
    """Known mnemonics closest to one that is not known."""
    return difflib.get_close_matches(mnemonic, dict.fromkeys(row.mnemonic for row in ROWS.values()), n=count, cutoff=0.5)
