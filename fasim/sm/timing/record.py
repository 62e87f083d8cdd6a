"""The fields of an instruction as the timing model sees it: shared by what makes them and by the engine."""

from __future__ import annotations

# --- an instruction: int32 words --------------------------------------------------------------------------------------------------
INSTRUCTION_FIELDS = (
    "kind",  # see classes.KINDS
    "pipe",  # see classes.PIPES
    "both",  # BOTH_HALVES, EITHER_HALF of the FMA pipe
    "interval",  # for which it takes the pipe, in parts of a cycle (see PARTS)
    "slots",  # of the math dispatch; 0: does not go through it
    "even",  # registers read over each bank
    "odd",
    "writeback",  # slots of the math dispatch when the result comes
    "stall",
    "yields",
    "write_scoreboard",
    "read_scoreboard",
    "wait_mask",
    "latency",
    "argument",  # DEPBAR: how many groups may be pending; an access to global memory: BYPASS_L1, LOCAL_SPACE, LAST_USE
    "scoreboard",  # that DEPBAR looks at
    "bytes",  # of a lane
    "length",  # of the basic block that begins here, in instructions, else 0
    "after_mma",  # of math that follows a matrix instruction: cycles after that one
    "barrier_op",  # of BAR: 0 sync, 1 arrive
)
(
    I_KIND,
    I_PIPE,
    I_BOTH,
    I_INTERVAL,
    I_SLOTS,
    I_EVEN,
    I_ODD,
    I_WRITEBACK,
    I_STALL,
    I_YIELDS,
    I_WRITE_SB,
    I_READ_SB,
    I_WAIT,
    I_LATENCY,
    I_ARGUMENT,
    I_SCOREBOARD,
    I_BYTES,
    I_LENGTH,
    I_AFTER_MMA,
    I_BARRIER_OP,
) = range(20)
INSTRUCTION_WORDS = len(INSTRUCTION_FIELDS)
BOTH_HALVES, EITHER_HALF = 1, 2
#: of an access to global memory, in I_ARGUMENT
BYPASS_L1, LOCAL_SPACE, LAST_USE = 1, 2, 4
#: pipes are taken for whole numbers of these parts of a cycle
PARTS = 64
