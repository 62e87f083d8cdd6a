"""A kernel as the timing model takes it: its machine code decoded for a card, and the skeleton that decides its paths."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.arch.cards import Card
from fasim.errors import UsageError
from fasim.sass.control import control
from fasim.sass.lower import read_code
from fasim.sass.syntax import Instruction
from fasim.sm.programs import sass_program
from fasim.sm.timing.decode import decode

if TYPE_CHECKING:
    from fasim.sm.grid import GridRun
    from fasim.sm.module import Kernel

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TimedKernel:
    """instructions: of the kernel's section; records: see `fasim.sm.timing.record`; skeleton: the kernel to walk."""

    kernel: Kernel
    skeleton: Kernel
    instructions: tuple[Instruction, ...]
    records: Array

    def prepare(self, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any], dynamic_smem_bytes: int = 0) -> GridRun:
        """A launch of the skeleton on copies of the arguments and of the module's variables.

        Raises: as `fasim.sm.module.Kernel.prepare`.
        """
        module = copy.copy(self.kernel.module)
        module._data = {name: data.copy() for name, data in module._data.items()}
        skeleton = type(self.kernel)(module, self.skeleton.program)
        copies = [arg.copy() if isinstance(arg, np.ndarray) else arg for arg in args]
        return skeleton.prepare(grid, block, copies, dynamic_smem_bytes=dynamic_smem_bytes, workers=1)[0]


def timed_kernel(kernel: Kernel, card: Card) -> TimedKernel:
    """Decode a kernel for a card.

    Raises: UsageError for machine code of another architecture than the card's; as `Module.kernel` with isa "sass".
    """
    from fasim.sm.module import Kernel as Kernel_

    module = kernel.module
    if module.arch.number != card.arch.number:
        raise UsageError(f"{card.name} needs machine code for {card.arch.name}, this is for {module.arch.name}")
    cubin, entry = module.cubin(), kernel.program.name
    code = read_code(cubin, entry)
    records = decode(code.instructions, [control(ins.line.encoding) for ins in code.instructions], card, code.leaders())
    program = sass_program(cubin, module.ptx, module.path, entry, module.arch.number, skeleton=True)
    return TimedKernel(kernel, Kernel_(module, program), code.instructions, records)
