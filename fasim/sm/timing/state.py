"""The state of the simulated SM, as arrays of int64 whose columns are named here; the engine's parts share them.

Times are cycles, but for pipes, buses and what looks up tags, which are taken for parts of a cycle (`record.PARTS`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.sm.timing.classes import PIPES

Array = np.ndarray[Any, Any]

#: later than anything
NEVER = 1 << 60
SUBS = 4
SCOREBOARDS = 6
BARRIERS = 16

# --- what keeps a warp from issuing, by ncu's names ---------------------------------------------------------------------------------
STALLS = (
    "selected",
    "wait",
    "short_scoreboard",
    "long_scoreboard",
    "barrier",
    "branch_resolving",
    "math_pipe_throttle",
    "dispatch_stall",
    "mio_throttle",
    "lg_throttle",
    "not_selected",
    "membar",
    "no_instruction",
)
(
    SELECTED,
    WAIT,
    SHORT_SCOREBOARD,
    LONG_SCOREBOARD,
    AT_BARRIER,
    BRANCH_RESOLVING,
    MATH_PIPE_THROTTLE,
    DISPATCH_STALL,
    MIO_THROTTLE,
    LG_THROTTLE,
    NOT_SELECTED,
    MEMBAR,
    NO_INSTRUCTION,
) = range(len(STALLS))

# --- a warp slot ------------------------------------------------------------------------------------------------------------------
(
    W_POSITION,  # of its next entry, and where its entries end
    W_LIMIT,
    W_PC,  # its next instruction, and where the basic block ends
    W_BLOCK_END,
    W_ALIVE,
    W_EARLIEST,  # cycle for its next instruction, as far as that is known
    W_READY,  # the same by stall counts alone
    W_SINCE,  # what it has waited for is accounted until here
    W_MMA_AT,  # when its last matrix instruction, its last of the XU began
    W_XU_AT,
    W_HELD,  # until when a pipe was taken, and which reason that was
    W_HELD_BY,
    W_WAITS_FOR,
    W_AGE,
    W_QUEUED,  # instructions of it that the load-store unit has not begun
    W_COPIES,  # when its copies are there
    W_COMMITTED,  # groups of copies, and those that the load-store unit has seen
    W_SERVED,
    W_LINE,  # of machine code, that it executes; the one that it has asked for last, and when that is there
    W_ASKED,
    W_ASKED_AT,
) = range(21)
WARP_WORDS = 21
#: of each scoreboard of a warp: when it is released, instructions not begun that hold it, whether memory outside of the SM does
B_RELEASED, B_UNSERVED, B_LONG = range(3)
#: groups of copies of a warp whose times are kept
GROUPS = 64

# --- a CTA slot --------------------------------------------------------------------------------------------------------------------
(
    C_CTA,
    C_LIVE,  # warps that have not ended
    C_STARTS_AT,
    C_DRAINS,  # all have ended, but the load-store unit has not begun all that they issued
    C_STORED,  # when their last store has left the SM
) = range(5)
CTA_WORDS = 5

# --- a sub-partition -------------------------------------------------------------------------------------------------------------------
(
    S_WAKE,  # when its scheduler is to be looked at
    S_LAST,  # the warp that issued last
    S_MATH_FREE,  # when the dispatch of math is free, and the ports to the two banks of registers
    S_EVEN_FREE,
    S_ODD_FREE,
    S_MEMBERS,  # warp slots
    S_WORDS,  # of registers, that the load-store unit has still to move
    S_HEAD,  # of its queue
    S_TAIL,
    S_LSU_FREE,  # when the load-store unit may take another instruction of it
    S_SENT,  # when the math instruction that was selected last gets its registers
) = range(11)
SUB_WORDS = 11
#: of a queue: warp slot, instruction, entry (-1: no lane takes part), cycle of issue
Q_WARP, Q_PC, Q_ENTRY, Q_TIME = range(4)
QUEUE_ENTRIES = 256

# --- the SM -----------------------------------------------------------------------------------------------------------------------
(
    M_LSU_WAKE,  # when the load-store unit is to be looked at, when it is free, whose turn it is
    M_LSU_FREE,
    M_LSU_TURN,
    M_TAGGED,  # accesses that have been handed to those who look up tags
    M_TAG_FREE,  # when tags can be looked up, stores be sent, special registers be read
    M_ADU_FREE,
    M_RETURN_FREE,  # when lines that were waited for can be handed over
    M_L2_BUS,  # the way from L2, its share among SMs, DRAM
    M_L2_SHARE,
    M_WRITE_SHARE,  # the same for what is stored, and how far SMs are out of step because they had to wait for it
    M_APART,
    M_DRAM,
    M_TICKS,
    M_START_WAKE,  # CTAs: when the next one starts, the last one started, the next one's number, how many have ended, warps started
    M_LAST_START,
    M_NEXT_CTA,
    M_ENDED,
    M_SEQUENCE,
    M_DRAINING,  # CTAs that drain
    M_FINISHED,  # the cycle of the last instruction
    M_INSTRUCTIONS,  # totals
    M_WAVEFRONTS,
    M_SECTORS_READ,
    M_SECTORS_STORED,
    M_LOCAL_SECTORS,  # that are loaded from local memory, and those of them that the L1 has
    M_LOCAL_HITS,
    M_EVENTS,
    M_FAULT,
    M_CODE_FREE,  # the way of machine code from the L2
) = range(29)
SM_WORDS = 29

#: accesses that can wait for their tags at most
TAG_ENTRIES = 64

# --- a line of the L1 --------------------------------------------------------------------------------------------------------------
L_TAG, L_VALID, L_READY, L_USED = range(4)
#: lines whose first fetch is remembered
TOUCHED = 1 << 15

# --- machine code ------------------------------------------------------------------------------------------------------------------
#: instructions of a line of 128 bytes
CODE_SHIFT = 3

# --- the constants of a card that the engine needs -----------------------------------------------------------------------------------
CONSTANTS = (
    "decoupling",  # cycles that register reads may be behind
    "ahead",  # cycles before the end of an instruction of XU or tensor pipe from which on the same warp may issue the next one
    "warp_entries",  # of the load-store unit's queue
    "queue_words",  # registers, for each sub-partition
    "wavefront",  # cycles of a wavefront to one sub-partition
    "store_extra",
    "barrier_each",
    "cta_spacing",
    "cta_turnover",
    "cta_rate",
    "l1_sets",
    "l1_ways",
    "l2_sector",  # parts of a cycle for a sector on each way
    "share_sector",
    "dram_sector",
    "write_sector",
    "share_write",
    "l2_latency",  # beyond the L1
    "far_latency",
    "dram_latency",
    "dram_share",  # of 1024 lines
    "stored_share",
    "write_behind",  # cycles that stores may be behind
    "adu_interval",
    "commit",
    "tag_queue",
    "stagger",
    "code_ahead",  # instructions that a warp is fetched before it issues them
    "near_code",  # lines of machine code that a sub-partition keeps, that the SM keeps; 0: all
    "far_code",
    "near_miss",  # cycles for one that the sub-partition does not have, that the SM does not have
    "far_miss",
)
(
    K_DECOUPLING,
    K_AHEAD,
    K_WARP_ENTRIES,
    K_QUEUE_WORDS,
    K_WAVEFRONT,
    K_STORE_EXTRA,
    K_BARRIER_EACH,
    K_CTA_SPACING,
    K_CTA_TURNOVER,
    K_CTA_RATE,
    K_L1_SETS,
    K_L1_WAYS,
    K_L2_SECTOR,
    K_SHARE_SECTOR,
    K_DRAM_SECTOR,
    K_WRITE_SECTOR,
    K_SHARE_WRITE,
    K_L2_LATENCY,
    K_FAR_LATENCY,
    K_DRAM_LATENCY,
    K_DRAM_SHARE,
    K_STORED_SHARE,
    K_WRITE_BEHIND,
    K_ADU_INTERVAL,
    K_COMMIT,
    K_TAG_QUEUE,
    K_STAGGER,
    K_CODE_AHEAD,
    K_NEAR_CODE,
    K_FAR_CODE,
    K_NEAR_MISS,
    K_FAR_MISS,
) = range(len(CONSTANTS))


def buffers(slots: int, resident: int, instructions: int, k: Array) -> tuple[Array, ...]:
    """The arrays that the engine works on, as at the beginning: warps, scoreboards, groups, CTA slots, barriers, sub-partitions, members,
    pipes, queues, the SM, accesses whose tags are looked up, lines, touched, machine code."""
    warps = np.zeros((slots, WARP_WORDS), np.int64)
    warps[:, W_EARLIEST] = NEVER
    boards = np.zeros((slots, SCOREBOARDS, 3), np.int64)
    groups = np.zeros((slots, GROUPS), np.int64)
    ctas = np.zeros((resident, CTA_WORDS), np.int64)
    ctas[:, C_STARTS_AT] = NEVER
    barriers = np.zeros((resident, BARRIERS, 2), np.int64)  # warps that have arrived, warps that are expected
    subs = np.zeros((SUBS, SUB_WORDS), np.int64)
    subs[:, S_WAKE], subs[:, S_LAST] = NEVER, -1
    members = np.zeros((SUBS, max(-(-slots // SUBS), 1)), np.int64)
    for w in range(slots):
        sub = w % SUBS
        members[sub, subs[sub, S_MEMBERS]] = w
        subs[sub, S_MEMBERS] += 1
    pipes = np.zeros((SUBS, len(PIPES)), np.int64)
    queues = np.zeros((SUBS, QUEUE_ENTRIES, 4), np.int64)
    sm = np.zeros(SM_WORDS, np.int64)
    sm[M_LSU_WAKE] = NEVER
    tag_ends = np.zeros(TAG_ENTRIES, np.int64)
    lines = np.zeros((max(1, int(k[K_L1_SETS] * k[K_L1_WAYS])), 4), np.int64)
    lines[:, L_TAG] = -1
    touched = np.full(TOUCHED, -1, np.int64)
    # when each sub-partition, and the SM, fetched each line last; the first column counts what they have fetched
    code = np.zeros((SUBS + 1, 3 + (instructions >> CODE_SHIFT)), np.int64)
    return warps, boards, groups, ctas, barriers, subs, members, pipes, queues, sm, tag_ends, lines, touched, code
