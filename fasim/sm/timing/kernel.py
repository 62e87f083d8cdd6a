"""A kernel as the timing model takes it: its machine code decoded for a card, and the skeleton that decides its paths."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.arch.cards import Card
from fasim.errors import UsageError
from fasim.sass.control import control
from fasim.sass.cubin import read_kernel
from fasim.sass.listing import section
from fasim.sass.lower import leaders, targets_of
from fasim.sass.syntax import Instruction, parse
from fasim.sm.programs import sass_program
from fasim.sm.timing.decode import decode

if TYPE_CHECKING:
    from fasim.sm.module import Kernel

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class TimedKernel:
    """instructions: of the kernel's section; records: see `fasim.sm.timing.record`; skeleton: the kernel to walk."""

    kernel: Kernel
    skeleton: Kernel
    instructions: tuple[Instruction, ...]
    records: Array


def timed_kernel(kernel: Kernel, card: Card) -> TimedKernel:
    """Decode a kernel for a card.

    Raises: UsageError for machine code of another architecture than the card's; as `Module.kernel` with isa "sass".
    """
    from fasim.sm.module import Kernel as Kernel_

    module = kernel.module
    if module.arch.number != card.arch.number:
        raise UsageError(f"{card.name} needs machine code for {card.arch.name}, this is for {module.arch.name}")
    cubin, entry = module.cubin(), kernel.program.name
    code, facts = section(cubin, entry), read_kernel(cubin, entry)
    instructions = [parse(line) for line in code.lines]
    targets = targets_of(instructions, set(code.labels.values()), set(facts.functions.values()))
    records = decode(instructions, [control(line.encoding) for line in code.lines], card, leaders(instructions, code.labels, targets))
    program = sass_program(cubin, module.ptx, module.path, entry, module.arch.number, skeleton=True)
    return TimedKernel(kernel, Kernel_(module, program), tuple(instructions), records)
