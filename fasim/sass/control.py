"""The control bits of an instruction: what the compiler tells the scheduler of a sub-partition."""

from __future__ import annotations

from dataclasses import dataclass

#: scoreboards of a warp, and the number that stands for none of them
SCOREBOARDS, NO_SCOREBOARD = 6, 7


@dataclass(frozen=True, slots=True)
class Control:
    """What an instruction says about the issue of those after it, and waits for itself.

    stall_cycles: until the warp's next instruction may issue. yields: whether another warp should have the next slot.
    write_scoreboard, read_scoreboard: released when the result is there, when the operands have been read; -1 for none.
    wait_mask: scoreboards to wait for, a bit each. reuse: operand slots whose register stays in the operand cache, a bit each.
    Source: the tables of the CuAssembler project, checked against nvdisasm's `.reuse`.
    """

    stall_cycles: int
    yields: bool
    write_scoreboard: int
    read_scoreboard: int
    wait_mask: int
    reuse: int


def control(encoding: int) -> Control:
    """The control bits of an instruction's 128 bits, for sm_80 to sm_120."""
    write, read = encoding >> 110 & 7, encoding >> 113 & 7
    return Control(
        stall_cycles=encoding >> 105 & 15,
        yields=not encoding >> 109 & 1,
        write_scoreboard=-1 if write == NO_SCOREBOARD else write,
        read_scoreboard=-1 if read == NO_SCOREBOARD else read,
        wait_mask=encoding >> 116 & 0x3F,
        reuse=encoding >> 122 & 15,
    )
