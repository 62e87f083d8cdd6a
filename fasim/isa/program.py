"""A kernel made ready for the machine: code, operands, register rows, memory it declares, and where each instruction came from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fasim.isa.machine import AT_KIND, AT_POOL, MEMORY_KINDS

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class SourceInstruction:
    """One instruction as a person sees it; `line` 0 where the compiler gave no source line; offset: in machine code, in bytes."""

    text: str
    mnemonic: str
    ptx_line: int
    file: str
    line: int
    inlined_at: tuple[tuple[str, int], ...] = ()
    offset: int = -1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A kernel parameter: `type_` as PTX writes it, arrays of bytes (structures) by their size."""

    name: str
    type_: str
    offset: int
    size_bytes: int
    align_bytes: int


@dataclass(frozen=True, slots=True)
class ModuleVariable:
    """A variable of the module with its address and initial bytes, relocations applied; relocated: whether there are any."""

    name: str
    space: str
    address: int
    size_bytes: int
    initial: bytes
    align_bytes: int = 1
    relocated: bool = False


@dataclass(frozen=True, slots=True)
class HandlerUse:
    """The handler of one pc: row name and immediates."""

    name: str
    immediates: tuple[int, ...] = ()


@dataclass
class Program:
    """What `fasim.ptx.lower` makes of a kernel.

    name: as the PTX has it; title: as the source has it. code: int32[n, CODE_WORDS], one record a pc
    (see fasim.isa.machine). pool: int32 operands. template: the initial register file of a warp.
    barriers_only: diverged lanes come together only at convergence barriers, as in machine code.
    reserved_smem_bytes: at the beginning of shared memory, parameter_base: in constant bank 0, both of machine code, which has the
    whole bank where PTX has parameters. syncs_grid: machine code that waits for all CTAs of the grid.
    specials: (which, row) filled in for each warp. source: for each pc the instruction, None for jumps that lowering inserted.
    """

    name: str
    title: str
    arch: int
    code: Array
    pool: Array
    handlers: dict[int, HandlerUse]
    entry_pc: int
    template: Array
    specials: list[tuple[int, int]]
    parameters: list[Parameter]
    param_bytes: int
    static_smem_bytes: int
    local_bytes: int
    variables: list[ModuleVariable]
    source: list[SourceInstruction | None]
    functions: list[int] = field(default_factory=list)
    launch_rows: dict[str, int] = field(default_factory=dict)
    has_calls: bool = False
    save_bytes: int = 0
    communicates: bool = False
    uses_copies: bool = False
    reads_clock: bool = False
    services: dict[int, str] = field(default_factory=dict)
    max_threads: int = 0
    required_block: tuple[int, int, int] | None = None
    barriers_only: bool = False
    reserved_smem_bytes: int = 0
    parameter_base: int = 0
    syncs_grid: bool = False
    derived: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.code)

    @property
    def sites(self) -> list[int]:
        """The pc of each access to memory, in the order of their numbers."""
        return [int(pc) for pc in np.flatnonzero(np.isin(self.code[:, AT_KIND // 4], MEMORY_KINDS))]

    def once(self, name: str, make: Callable[[], Any]) -> Any:
        """What is worked out from the program, the first time it is asked for."""
        if name not in self.derived:
            self.derived[name] = make()
        return self.derived[name]

    def source_at(self, pc: int) -> SourceInstruction:
        """The instruction at a pc; for what lowering inserted, the nearest one before it."""
        while pc > 0 and self.source[pc] is None:
            pc -= 1
        return self.source[pc] or SourceInstruction("", "", 0, "", 0)

    def operand(self, pc: int, at: int) -> int:
        """The word at byte offset `at` of an instruction's operands."""
        return int(self.pool[self.code[pc, AT_POOL // 4] + at // 4])
