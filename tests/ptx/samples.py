"""Shared by the tests of fasim.ptx: sample files and short modules."""

from __future__ import annotations

from pathlib import Path

from fasim.ptx.parser import parse
from fasim.ptx.tree import Function, Instruction, Module, Operand

DATA = Path(__file__).parent / "data"
SAMPLES = sorted(DATA.glob("*.ptx"))
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
DECLARATIONS = (
    ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .f32 %f<8>; .reg .b64 %rd<8>; .reg .b32 a, b; .reg .v4 .f32 v; .reg .v2 .b32 w<3>; "
    ".shared .align 16 .b8 tile[64];"
)


def module(text: str) -> Module:
    """The tree of a module without its version lines."""
    return parse(HEAD + text, "t.ptx")


def kernel(body: str, *, before: str = "", declare: bool = True) -> Function:
    """The kernel k(.param .u64 out) with that body."""
    declarations = DECLARATIONS if declare else ""
    return module(f"{before}\n.visible .entry k(.param .u64 out)\n{{ {declarations}\n{body}\n}}\n").functions["k"]


def instruction(text: str, before: str = "") -> Instruction:
    """The one instruction that `text` is."""
    (found,) = kernel(text, before=before).instructions
    return found


def operand(text: str, before: str = ".global .u32 g[8];") -> Operand:
    """The last operand of a mov."""
    return instruction(f"mov.b32 a, {text};", before).operands[-1]
