"""The machine code of a kernel for a GPU: the compiler's cubin, or one assembled from PTX."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from fasim.errors import ToolMissing, UsageError
from fasim.report.measured import Card
from fasim.sm.module import Module

THE_DRIVER = "the driver"


@dataclass(frozen=True)
class MachineCode:
    """What a GPU loads: a cubin, or PTX text that the driver assembles. made_by: `NVRTC 13.5`, `ptxas 13.5`, or "the driver"."""

    code: bytes | str
    made_by: str
    arch: str

    @property
    def cubin(self) -> bytes:
        """The cubin, empty if the driver makes it."""
        return self.code if isinstance(self.code, bytes) else b""

    @property
    def sha256(self) -> str:
        """SHA-256 of the cubin, or of the PTX text."""
        return hashlib.sha256(self.code.encode("utf-8", "surrogateescape") if isinstance(self.code, str) else self.code).hexdigest()


def machine_code(module: Module, card: Card) -> MachineCode:
    """The machine code of a module; PTX goes to ptxas if there is one, so that its hash is known, else to the driver.

    Raises: UsageError if it is for another GPU; CompileError if ptxas refuses the PTX.
    """
    compiled = module.compiled
    if compiled is not None and compiled.cubin:
        _check_arch(compiled.arch, card)
        return MachineCode(compiled.cubin, compiled.compiler, compiled.arch)
    if compiled is not None:
        raise UsageError(f"the machine code of {compiled.source_path} is missing: the folder cubins/ belongs beside its recording")
    from fasim.toolchain.ptxas import assemble

    try:
        assembled = assemble(module.ptx, module.path, card.arch)
    except ToolMissing:
        return MachineCode(module.ptx, THE_DRIVER, card.arch)
    return MachineCode(assembled.cubin, assembled.assembler, card.arch)


def _check_arch(arch: str, card: Card) -> None:
    """Machine code runs on GPUs of its own major compute capability from its own minor one on; `sm_90a` on exactly that one."""
    match = re.fullmatch(r"sm_(\d+)([af]?)", arch)
    number, suffix = (int(match[1]), match[2]) if match else (0, "")
    mine = int(card.arch.removeprefix("sm_"))
    fits = number == mine if suffix == "a" else number // 10 == mine // 10 and number <= mine
    if not fits:
        how = f"compile for {card.arch} (--arch {card.arch}, or arch={card.arch!r} of fasim.compile)"
        raise UsageError(f"the machine code is for {arch}, and {card.name} is {card.arch}: {how}")
