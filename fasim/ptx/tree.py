"""The syntax tree of a PTX module.

Module
├── Variable                         module level: global, const, shared, extern
└── Function                         .entry or .func
    ├── Variable | RegDecl           parameters
    └── Statement                    flat: nested blocks are resolved, their names made unique with "~block"
        ├── Instruction              guard, mnemonic, operands, source location
        │   └── Operand              Register Immediate FloatImmediate Vector Sink Address Symbol Pair Call
        ├── Label, Variable, RegDecl, Loc, Pragma
        └── BranchTargets, CallTargets, CallPrototype
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field
from typing import TypeAlias

TYPE_BITS: dict[str, int] = {
    "pred": 1,
    **{f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)},
    **{"b4": 4, "u4": 4, "s4": 4, "b128": 128},
    **{"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "u16x2": 32, "s16x2": 32, "f32x2": 64},
    **{"texref": 64, "samplerref": 64, "surfref": 64},
}
"""Width in bits of the types that registers and variables can have."""


@dataclass(frozen=True, slots=True)
class SourceLoc:
    """A place in the CUDA source; `inlined_at` is the chain of call sites, innermost first, `function` a label in .debug_str."""

    file: int
    line: int
    column: int
    inlined_at: tuple[SourceLoc, ...] = ()
    function: str = ""
    function_offset_bytes: int = 0


# Operands


@dataclass(frozen=True, slots=True)
class Register:
    """A scalar register (a vector's element as `v.x`) or a special register; `selector` is b0..b3, h0, h1 of video instructions."""

    name: str
    type: str
    special: bool = False
    negated: bool = False
    selector: str = ""


@dataclass(frozen=True, slots=True)
class Immediate:
    """An integer constant; `type` is s64 or u64 and `value` lies in that range."""

    value: int
    type: str = "s64"


@dataclass(frozen=True, slots=True)
class FloatImmediate:
    """A floating-point constant by its bits; `type` is f32 (written 0f...) or f64."""

    bits: int
    type: str = "f64"

    @property
    def value(self) -> float:
        """The number (a NaN's payload is only in `bits`)."""
        kind, width = ("<f", 4) if self.type == "f32" else ("<d", 8)
        number: float = struct.unpack(kind, self.bits.to_bytes(width, "little"))[0]
        return number


@dataclass(frozen=True, slots=True)
class Sink:
    """The bit bucket `_`."""


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name with a byte offset; `kind` is variable, param (a parameter of the function itself), function or label."""

    name: str
    offset: int = 0
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, ...}`, or a vector register written out as its elements."""

    items: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Address:
    """`[base + offset]`; `items` holds what follows a comma inside the brackets (tensor coordinates)."""

    base: Register | Symbol | Immediate
    offset: int = 0
    items: tuple[Operand, ...] = ()


@dataclass(frozen=True, slots=True)
class Pair:
    """`first|second`: a result and a predicate."""

    first: Register | Sink
    second: Register | Sink


@dataclass(frozen=True, slots=True)
class Call:
    """What a call names: `(returns), target, (arguments), prototype`; the prototype labels .callprototype or .calltargets."""

    target: Register | Symbol
    returns: tuple[Operand, ...] = ()
    arguments: tuple[Operand, ...] = ()
    prototype: Symbol | None = None


Operand: TypeAlias = Register | Immediate | FloatImmediate | Sink | Symbol | Vector | Address | Pair | Call


# Initialisers


@dataclass(frozen=True, slots=True)
class AddressOf:
    """The address of a symbol in an initialiser; with a mask, the value is (address & mask) shifted down to bit 0."""

    symbol: str
    addend: int = 0
    generic: bool = False
    mask: int | None = None


@dataclass(frozen=True, slots=True)
class InitValue:
    """One element of an initialiser, at its byte offset in the variable."""

    offset_bytes: int
    size_bytes: int
    value: Immediate | FloatImmediate | AddressOf


# Declarations


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable in memory or a parameter; `dims` holds None for an unsized dimension, `text_name` the name before scoping."""

    name: str
    state_space: str
    type: str
    vector: int = 1
    align: int = 0
    dims: tuple[int | None, ...] = ()
    linkage: str = ""
    initializer: tuple[InitValue, ...] | None = None
    pointer_space: str | None = None
    pointer_align: int = 0
    attributes: tuple[str, ...] = ()
    text_name: str = ""
    line: int = 0
    column: int = 0

    @property
    def element_bytes(self) -> int:
        """Size of one array element: the scalar type times the vector width."""
        return TYPE_BITS[self.type] * self.vector // 8

    @property
    def size_bytes(self) -> int:
        """Size of the whole variable; 0 when a dimension is unsized."""
        return self.element_bytes * math.prod(dim or 0 for dim in self.dims)

    @property
    def align_bytes(self) -> int:
        """The alignment written, else the natural one."""
        return self.align or max(1, self.element_bytes)


@dataclass(frozen=True, slots=True)
class RegDecl:
    """`.reg` for one name or, with `count`, for name0 to name(count-1)."""

    name: str
    type: str
    vector: int = 1
    count: int | None = None
    text_name: str = ""
    line: int = 0
    column: int = 0


@dataclass(frozen=True, slots=True)
class Directive:
    """A performance directive of a function: name without dot, with its numbers and strings."""

    name: str
    values: tuple[int, ...] = ()
    text: str = ""


# Statements


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `guard` is a predicate register (with `negated`), `loc` the CUDA source location in force."""

    mnemonic: str
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Register | None
    line: int
    column: int
    text: str
    loc: SourceLoc | None


@dataclass(frozen=True, slots=True)
class Label:
    """A branch target."""

    name: str
    text_name: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Loc:
    """A `.loc` directive."""

    loc: SourceLoc
    line: int


@dataclass(frozen=True, slots=True)
class Pragma:
    """A `.pragma` directive with its strings."""

    texts: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class BranchTargets:
    """`name: .branchtargets a, b;`: the labels that brx.idx chooses from."""

    name: str
    targets: tuple[Symbol, ...]
    line: int


@dataclass(frozen=True, slots=True)
class CallTargets:
    """`name: .calltargets f, g;`: the functions that an indirect call may reach."""

    name: str
    targets: tuple[Symbol, ...]
    line: int


@dataclass(frozen=True, slots=True)
class CallPrototype:
    """`name: .callprototype (returns) _ (params);`: the signature of an indirect call."""

    name: str
    returns: tuple[Variable | RegDecl, ...]
    params: tuple[Variable | RegDecl, ...]
    directives: tuple[Directive, ...]
    line: int


Statement: TypeAlias = Instruction | Label | Variable | RegDecl | Loc | Pragma | BranchTargets | CallTargets | CallPrototype


@dataclass(frozen=True, slots=True)
class Function:
    """An .entry or .func; `body` is None for a declaration, `registers` maps every register used to its type."""

    name: str
    kind: str
    linkage: str
    returns: tuple[Variable | RegDecl, ...]
    params: tuple[Variable | RegDecl, ...]
    directives: tuple[Directive, ...]
    body: tuple[Statement, ...] | None
    registers: dict[str, str] = field(default_factory=dict)
    line: int = 0
    column: int = 0

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        """The instructions of the body in order."""
        return tuple(statement for statement in self.body or () if isinstance(statement, Instruction))

    def directive(self, name: str) -> Directive | None:
        """The performance directive of that name (without dot), None when absent."""
        return next((directive for directive in self.directives if directive.name == name), None)


@dataclass(frozen=True, slots=True)
class Module:
    """A whole PTX file; a definition replaces its forward declaration in `functions` and `variables`."""

    path: str
    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    files: dict[int, str]
    variables: dict[str, Variable]
    functions: dict[str, Function]
    aliases: dict[str, str]
    pragmas: tuple[Pragma, ...]
    debug_labels: dict[str, int]
    debug_text: bytes
    lines: tuple[str, ...]

    @property
    def entries(self) -> dict[str, Function]:
        """The kernels that have a body, by name."""
        return {name: function for name, function in self.functions.items() if function.kind == "entry" and function.body is not None}

    def function_name(self, loc: SourceLoc) -> str:
        """The function that `loc` lies in, from .debug_str; empty when the compiler did not say."""
        if loc.function not in self.debug_labels:
            return ""
        start = self.debug_labels[loc.function] + loc.function_offset_bytes
        return self.debug_text[start:].split(b"\0", 1)[0].decode("utf-8", "replace")
