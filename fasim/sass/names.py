"""Which register of the machine code stands where, and what each instruction takes it for."""

from __future__ import annotations

from fasim.isa.rows import SASS_ROWS
from fasim.ptx.ir import Op, Ref
from fasim.ptx.names import RegisterNames, names_of
from fasim.ptx.tree import Module
from fasim.sass.lower import lowered

#: types of elements by the mnemonic of a matrix instruction or one on halves, as two in a register
_PAIRS = {"BF16": "bf16x2", "BF16_V2": "bf16x2"}


def register_names(cubin: bytes, module: Module, entry: str, arch: int) -> RegisterNames:
    """Lower a kernel's machine code again, for its names.

    Raises: as `fasim.sass.lower.lower`.
    """
    return names_of(lowered(cubin, module, entry, arch), {}, _seen)


def _seen(op: Op, refs: list[Ref], number: int, type_: str) -> str:
    """What an instruction takes one of its registers for, as its row says."""
    row = SASS_ROWS.get(op.handler.name) if op.handler is not None else None
    if row is None or op.guard is refs[number]:
        return ""
    args = [arg for arg in (*row.dests, *row.sources) if arg.type_ != "imm" and arg.name != "active"]
    places = [arg for arg in args for _ in range(max(arg.count, 1))]
    if number >= len(places):
        return ""
    found = places[number].type_
    words = row.name.split(".")
    if found in ("u32", "b32") and words[0] in ("HMMA", "HADD2", "HMUL2", "HFMA2", "HMNMX2", "HSETP2"):
        if "TF32" in words:
            return "f32"
        return next((_PAIRS[word] for word in words if word in _PAIRS), "f16x2")
    return found if found in ("f32", "f64") else ""
