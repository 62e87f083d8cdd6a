"""What lowering knows of the whole kernel: constants, special registers, memory layout, and how to say that something is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field

from fasim.errors import FasimError, PtxError, UnsupportedInstruction
from fasim.isa.features import feature
from fasim.isa.machine import (
    CONST_WINDOW,
    FUNCTION_BASE,
    FUNCTION_STRIDE,
    MODULE_BASE,
    SP_CTAID_X,
    SP_CTAID_Y,
    SP_CTAID_Z,
    SP_SMID,
    SP_TID_X,
    SP_TID_Y,
    SP_TID_Z,
    SP_WARPID,
    align_up,
)
from fasim.isa.program import ModuleVariable, SourceInstruction
from fasim.isa.rows import nearest
from fasim.ptx.initializer import initial_bytes, relocated_bytes
from fasim.ptx.ir import VReg
from fasim.ptx.tree import Function, Instruction, Module, Variable

MACHINE_SPECIALS = {
    "%tid.x": SP_TID_X,
    "%tid.y": SP_TID_Y,
    "%tid.z": SP_TID_Z,
    "%ctaid.x": SP_CTAID_X,
    "%ctaid.y": SP_CTAID_Y,
    "%ctaid.z": SP_CTAID_Z,
    "%warpid": SP_WARPID,
    "%smid": SP_SMID,
}
LAUNCH_SPECIALS = frozenset(
    {
        *("%ntid.x", "%ntid.y", "%ntid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z", "%nwarpid", "%nsmid"),
        *("%dynamic_smem_size", "%total_smem_size", "%reserved_smem_offset_1"),
        *("%envreg1", "%envreg2"),  # where the driver put what grid synchronisation needs: high and low half of an address
    }
)
LANE_SPECIALS = {
    "%laneid": tuple(range(32)),
    "%lanemask_eq": tuple(1 << i for i in range(32)),
    "%lanemask_le": tuple((2 << i) - 1 for i in range(32)),
    "%lanemask_lt": tuple((1 << i) - 1 for i in range(32)),
    "%lanemask_ge": tuple(0xFFFFFFFF ^ ((1 << i) - 1) for i in range(32)),
    "%lanemask_gt": tuple(0xFFFFFFFF ^ ((2 << i) - 1) & 0xFFFFFFFF for i in range(32)),
}
CONSTANT_SPECIALS = {"%tid.w": 0, "%ctaid.w": 0, "%ntid.w": 0, "%nctaid.w": 0, "%gridid": 1, "%aggr_smem_size": 0}
CLOCKS = {
    "%clock": (4, 0),
    "%clock_hi": (4, 32),
    "%clock64": (8, 0),
    "%globaltimer": (8, 0),
    "%globaltimer_lo": (4, 0),
    "%globaltimer_hi": (4, 32),
}


@dataclass
class Context:
    """Shared by the lowering of all functions of one kernel."""

    module: Module
    kernel: Function
    arch: int
    constants: dict[tuple[int, int | tuple[int, ...]], VReg] = field(default_factory=dict)
    specials: dict[str, VReg] = field(default_factory=dict)
    variables: dict[str, ModuleVariable] = field(default_factory=dict)
    shared: dict[str, int] = field(default_factory=dict)
    static_smem_bytes: int = 0
    function_ids: dict[str, int] = field(default_factory=dict)
    launch_rows: dict[str, VReg] = field(default_factory=dict)
    communicates: bool = False
    uses_copies: bool = False
    reads_clock: bool = False
    trash: dict[int, VReg] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # by the module, not by the kernel: pointers to functions live on in memory between launches of different kernels
        for function in self.module.functions.values():
            if function.kind == "func":
                self.function_address(function.name)

    def constant(self, bank: int, bits: int | tuple[int, ...]) -> VReg:
        """The fixed row that holds a constant (or one for each lane)."""
        if isinstance(bits, int):
            bits = (0xFFFFFFFF if bits & 1 else 0) if bank == 1 else bits & ((1 << bank) - 1)
        key = (bank, bits)
        if key not in self.constants:
            values = bits if isinstance(bits, tuple) else (bits,) * 32
            self.constants[key] = VReg(f"#{bits if isinstance(bits, int) else len(self.constants)}", bank, fixed=True, value=values)
        return self.constants[key]

    def special(self, name: str) -> VReg | None:
        """The row of a special register that does not change while a warp runs, None if fasim has no such register."""
        if name in self.specials:
            return self.specials[name]
        if name in MACHINE_SPECIALS:
            reg = VReg(name, 32, fixed=True, special=MACHINE_SPECIALS[name])
        elif name in LAUNCH_SPECIALS:
            reg = VReg(name, 32, fixed=True, value=(0,) * 32)
            self.launch_rows[name] = reg
        elif name in LANE_SPECIALS:
            reg = VReg(name, 32, fixed=True, value=LANE_SPECIALS[name])
        elif name in CONSTANT_SPECIALS:
            bank = 64 if name == "%gridid" else 32
            reg = VReg(name, bank, fixed=True, value=(CONSTANT_SPECIALS[name],) * 32)
        else:
            return None
        self.specials[name] = reg
        return reg

    def unwritten(self, bank: int) -> VReg:
        """A row for results that nobody reads."""
        if bank not in self.trash:
            self.trash[bank] = VReg("_", bank, fixed=True, value=(0,) * 32)
        return self.trash[bank]

    def variable(self, name: str) -> Variable | None:
        """The module's variable of that name."""
        return self.module.variables.get(name)

    def function_address(self, name: str) -> int:
        """The number that stands for a function's address."""
        return FUNCTION_BASE + FUNCTION_STRIDE * self.function_ids.setdefault(name, len(self.function_ids))

    def place_variables(self) -> None:
        """Addresses for all global and const variables, the same in every kernel of the module; bytes with the addresses they hold."""
        next_address = {"global": MODULE_BASE, "const": CONST_WINDOW}
        wanted = [v for v in self.module.variables.values() if v.state_space in ("global", "const") and v.size_bytes]
        for variable in wanted:
            at = align_up(next_address[variable.state_space], max(variable.align_bytes, 256))
            self.variables[variable.name] = ModuleVariable(
                variable.name, variable.state_space, at, variable.size_bytes, b"", variable.align_bytes
            )
            next_address[variable.state_space] = at + variable.size_bytes + 4096
        for variable in wanted:
            data, relocations = initial_bytes(variable)
            content = bytearray(data)
            for relocation in relocations:
                at, size = relocation.offset_bytes, relocation.size_bytes
                content[at : at + size] = relocated_bytes(relocation, self.symbol_address(relocation.address.symbol))
            old = self.variables[variable.name]
            self.variables[variable.name] = ModuleVariable(
                old.name, old.space, old.address, old.size_bytes, bytes(content), old.align_bytes, bool(relocations)
            )

    def symbol_address(self, name: str) -> int:
        """Address of a global or const variable or of a function."""
        if name in self.variables:
            return self.variables[name].address
        if name in self.module.functions:
            return self.function_address(name)
        raise PtxError(f"{self.module.path}: {name!r} has no address: declared extern and defined nowhere in this module")

    def place_shared(self, symbols: list[Variable]) -> None:
        """Offsets of the shared variables that the kernel uses: static ones in order, dynamic ones all behind them."""
        at = 0
        for variable in symbols:
            if variable.size_bytes:
                at = align_up(at, variable.align_bytes)
                self.shared[variable.name] = at
                at += variable.size_bytes
        self.static_smem_bytes = at
        dynamic = [v for v in symbols if not v.size_bytes]
        start = align_up(at, max([16, *(v.align_bytes for v in dynamic)])) if dynamic else at
        for variable in dynamic:
            self.shared[variable.name] = start
        if dynamic:
            self.static_smem_bytes = start if at else 0

    def source(self, ins: Instruction) -> SourceInstruction:
        """An instruction as a person sees it."""
        loc = ins.loc
        files = self.module.files
        if loc is None:
            return SourceInstruction(ins.text, ins.mnemonic, ins.line, "", 0)
        chain = tuple((files.get(site.file, ""), site.line) for site in loc.inlined_at)
        return SourceInstruction(ins.text, ins.mnemonic, ins.line, files.get(loc.file, ""), loc.line, chain)

    def place_of(self, ins: Instruction) -> str:
        """`file:line, called at file:line (PTX path:line)` for messages."""
        place = f"{self.module.path}:{ins.line}"
        if ins.loc is not None and ins.loc.line:
            sites = [f"{self.module.files.get(site.file, '?')}:{site.line}" for site in (ins.loc, *ins.loc.inlined_at)]
            return f"{', called at '.join(sites)} (PTX {place})"
        return place

    def unsupported(self, ins: Instruction, why: str = "") -> FasimError:
        """The error for an instruction that has no row, or for `why` another one cannot be executed."""
        name = feature(ins.mnemonic)
        near = [] if why or name else nearest(ins.mnemonic)
        hint = f"; nearest known: {', '.join(near)}" if near else ""
        reason = why or f"fasim does not model {f'{name}: ' if name else ''}{ins.mnemonic}"
        return UnsupportedInstruction(f"{self.place_of(ins)}: {ins.text!r}: {reason}{hint}")

    def malformed(self, ins: Instruction, why: str) -> FasimError:
        """The error for an instruction whose operands do not fit."""
        return PtxError(f"{self.place_of(ins)}: {ins.text!r}: {why}")
