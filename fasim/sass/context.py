"""What the lowering of machine code knows of the whole kernel: registers, constant banks, special registers."""

from __future__ import annotations

import struct
from dataclasses import replace

from fasim.errors import FasimError, UnsupportedInstruction
from fasim.isa import machine as m
from fasim.isa.program import ModuleVariable, SourceInstruction
from fasim.ptx.context import Context
from fasim.ptx.initializer import initial_bytes, relocated_bytes
from fasim.ptx.ir import VReg
from fasim.ptx.tree import Function, Module, Variable
from fasim.sass.cubin import ADDRESSES, OF_KERNEL, VARIABLES, CubinKernel
from fasim.sass.syntax import Instruction, Predicate, Register

#: where a kernel's parameters begin in constant bank 0, by the first digits of the architecture
#: Source: cubins of ptxas 13.0
PARAMETER_BASE = {7: 0x160, 8: 0x160, 9: 0x210, 10: 0x380, 12: 0x380}
#: bytes at the beginning of shared memory that the system keeps: the kernel's own begin behind them
#: Source: cubins of ptxas 13.0
RESERVED_SHARED_BYTES = {9: 1024, 10: 1024, 12: 1024}
#: by where parameters begin: where bank 0 has the upper half of the address for synchronisation of the grid, as an instruction says it
#: Source: cubins of ptxas 13.0
WORKSPACE = {0x160: 0x8C, 0x210: 0x44, 0x380: 0x254}
#: the address of a function that is not in the kernel's code: of the driver's
NO_CODE = 0xFFFFFFF0
#: special registers of machine code, by the name that PTX has for them
SPECIALS = {
    **{f"SR_TID.{axis.upper()}": f"%tid.{axis}" for axis in "xyz"},
    **{f"SR_CTAID.{axis.upper()}": f"%ctaid.{axis}" for axis in "xyz"},
    "SR_LANEID": "%laneid",
    "SR_EQMASK": "%lanemask_eq",
    "SR_LTMASK": "%lanemask_lt",
    "SR_LEMASK": "%lanemask_le",
    "SR_GTMASK": "%lanemask_gt",
    "SR_GEMASK": "%lanemask_ge",
    "SR_VIRTUALSMID": "%smid",
    "SR_SMEMSZ": "%total_smem_size",
}
#: and those that are the same for everybody: clusters have one CTA, windows are where the machine has them
FIXED_SPECIALS = {"SR_CgaCtaId": 0, "SR_CgaSize": 1, "SRZ": 0, "SR_SWINHI": m.SHARED_WINDOW >> 32, "SR_LWINHI": m.LOCAL_WINDOW >> 32}


class SassContext(Context):
    """As for PTX, of the same module, and the constant banks of the cubin."""

    def __init__(self, module: Module, kernel: Function, arch: int, facts: CubinKernel) -> None:
        super().__init__(module, kernel, arch)
        self.facts = facts
        self.parameter_base = PARAMETER_BASE[arch // 10]
        self.reserved_smem_bytes = RESERVED_SHARED_BYTES.get(arch // 10, 0)
        self.registers: dict[str, VReg] = {}
        #: of the banks that are in memory
        self.contents: dict[int, bytes] = {}
        #: byte offsets of labels; the labels, or none, of each place that a computed jump may name; those that are there
        self.labels: dict[str, int] = {}
        self.places: list[str] = []
        #: whether it reads where the grid synchronises
        self.syncs_grid = False
        self.targets: list[str] = []

    def place_banks(self) -> None:
        """Put __constant__ variables where bank 3 has them, and the banks 2 and 4 into memory, for loads that compute their offset."""
        for name, (offset, _) in self.facts.constants.items():
            if name in self.variables:
                self.variables[name] = replace(self.variables[name], address=self.bank_address(VARIABLES) + offset)
        for variable in self.module.variables.values():
            old = self.variables.get(variable.name)
            if old is not None and old.relocated:
                self.variables[variable.name] = replace(old, initial=self._relocated(variable, old.initial))
        for bank in (OF_KERNEL, ADDRESSES):
            if bank in self.facts.banks:
                name, data = f"constant bank {bank} of {self.kernel.name}", self._bank_bytes(bank)
                self.contents[bank] = data
                self.variables[name] = ModuleVariable(name, "const", self.bank_address(bank), len(data), data, 8)

    def _relocated(self, variable: Variable, initial: bytes) -> bytes:
        """The initial bytes of a variable with the addresses as they are here.

        Of functions the cubin itself has them: places in the code, or numbers in a table in bank 2 where there are several kernels.
        """
        content, held = bytearray(initial), self.facts.contents.get(variable.name, b"")
        for relocation in initial_bytes(variable)[1]:
            place = slice(relocation.offset_bytes, relocation.offset_bytes + relocation.size_bytes)
            if relocation.address.symbol in self.module.functions:
                content[place] = held[place]
            else:
                content[place] = relocated_bytes(relocation, self.symbol_address(relocation.address.symbol))
        return bytes(content)

    def bank_address(self, bank: int) -> int:
        """Where a bank is in global memory."""
        # far above the variables of PTX, which stand in the same window
        return m.CONST_WINDOW + (bank + 1 << 32)

    def _bank_bytes(self, bank: int) -> bytes:
        """The contents of a bank with the addresses that it holds."""
        data = bytearray(self.facts.banks.get(bank, b""))
        for (of, offset), pointer in self.facts.pointers.items():
            if of == bank:
                data[offset : offset + 8] = struct.pack("<Q", self.address_of(pointer.symbol) + pointer.addend)
        return bytes(data)

    def address_of(self, symbol: str) -> int:
        """Address of a variable or function by its name in the cubin."""
        if symbol in self.facts.functions:
            return self.facts.functions[symbol]
        if symbol in self.module.functions:
            return NO_CODE
        try:
            return self.symbol_address(symbol)
        except FasimError:
            return 0

    # --- registers -----------------------------------------------------------------------------------------------------------

    def named(self, name: str, bank: int) -> VReg:
        """A register of the machine code."""
        if name not in self.registers:
            self.registers[name] = VReg(name, bank, function=self.kernel.name)
        return self.registers[name]

    def register(self, register: Register, offset: int = 0) -> VReg:
        """The row of a register, or of one of those after it; RZ reads as zero."""
        if register.is_zero:
            return self.constant(32, 0)
        return self.named(f"{'UR' if register.uniform else 'R'}{register.number + offset}", 32)

    def written(self, register: Register, offset: int = 0) -> VReg:
        """The same as a destination; RZ takes what nobody wants."""
        return self.unwritten(32) if register.is_zero else self.register(register, offset)

    def predicate(self, predicate: Predicate) -> VReg:
        """The row of a predicate; PT is true."""
        return self.constant(1, 1) if predicate.is_true else self.named(predicate.name, 1)

    def bank0(self, offset: int) -> VReg:
        """A word of what the driver passes, filled in at a launch."""
        name = f"c[0x0][{offset:#x}]"
        self.syncs_grid |= offset == WORKSPACE.get(self.parameter_base)
        if name not in self.launch_rows:
            self.launch_rows[name] = VReg(name, 32, fixed=True, value=(0,) * 32)
            self.specials[name] = self.launch_rows[name]
        return self.launch_rows[name]

    # --- places and errors ---------------------------------------------------------------------------------------------------

    def source_of(self, ins: Instruction) -> SourceInstruction:
        """An instruction as a person sees it."""
        line = ins.line
        file, number = line.place[0] if line.place else ("", 0)
        return SourceInstruction(line.text, ins.mnemonic, line.ptx_line, file, number, tuple(line.place[1:]), line.offset)

    def unknown(self, ins: Instruction, why: str = "") -> FasimError:
        """The error for machine code that fasim does not model."""
        place = ", called at ".join(f"{file}:{line}" for file, line in ins.line.place)
        reason = why or f"fasim does not model {ins.mnemonic}"
        return UnsupportedInstruction(f"{f'{place}: ' if place else ''}machine code at {ins.line.offset:#x}: {ins.line.text!r}: {reason}")
