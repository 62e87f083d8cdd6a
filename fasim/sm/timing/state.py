"""The state of the simulated SM: arrays of int64 whose columns are named here, and the tuple of them that the engine's parts share.

Times are cycles, but for pipes, buses and what looks up tags, which are taken for parts of a cycle (`record.PARTS`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fasim.sm.timing.classes import PIPES

Array = np.ndarray[Any, Any]

#: later than anything
NEVER = 1 << 60
#: instead of the cycle at which all has ended: warps wait for each other, an access is in the path that no instruction made
DEADLOCK, STRAY_ACCESS = -1, -2
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
WARP_WORDS = 22
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
    W_HELD,  # until when a pipe or a queue kept it, and which reason for waiting that is
    W_HELD_BY,
    W_WAITS_FOR,  # the reason until W_EARLIEST
    W_AGE,  # warps that started before it
    W_QUEUED,  # instructions of it that the load-store unit has not begun
    W_COPIES,  # when its copies are there
    W_COMMITTED,  # groups of copies, and those that the load-store unit has seen
    W_SERVED,
    W_LINE,  # of machine code, that it executes; the one that it has asked for last, and when that is there
    W_ASKED,
    W_ASKED_AT,
    W_BARRIER,  # that it waits at
) = range(WARP_WORDS)
#: of each scoreboard of a warp: when it is released, instructions not begun that hold it, whether memory outside of the SM does
B_RELEASED, B_UNSERVED, B_LONG = range(3)
#: groups of copies of a warp whose times are kept
GROUPS = 64

# --- a CTA slot --------------------------------------------------------------------------------------------------------------------
CTA_WORDS = 5
(
    C_CTA,
    C_LIVE,  # warps that have not ended
    C_STARTS_AT,
    C_DRAINS,  # all have ended, but the load-store unit has not begun all that they issued
    C_STORED,  # when their last store has left the SM
) = range(CTA_WORDS)

# --- a sub-partition -------------------------------------------------------------------------------------------------------------------
SUB_WORDS = 11
(
    S_WAKE,  # when its scheduler is to be looked at
    S_LAST,  # the warp that issued last
    S_MATH_FREE,  # when the dispatch of math is free, and the ports to the two banks of registers
    S_EVEN_FREE,
    S_ODD_FREE,
    S_MEMBERS,  # warp slots
    S_WORDS,  # registers that the load-store unit has still to move
    S_HEAD,  # of its queue
    S_TAIL,
    S_LSU_FREE,  # when the load-store unit may take another instruction of it
    S_SENT,  # when the math instruction that was selected last gets its registers
) = range(SUB_WORDS)
#: of a queue: warp slot, instruction, entry (-1: no lane takes part), cycle of issue
Q_WARP, Q_PC, Q_ENTRY, Q_TIME = range(4)
QUEUE_ENTRIES = 256

# --- the SM -----------------------------------------------------------------------------------------------------------------------
SM_WORDS = 29
(
    M_LSU_WAKE,  # the load-store unit: when it is to be looked at, when it is free, whose turn it is
    M_LSU_FREE,
    M_LSU_TURN,
    M_TAGGED,  # accesses whose tags have been, or will be, looked up
    M_TAG_FREE,  # when tags can be looked up and stores be sent
    M_ADU_FREE,  # when special registers can be read
    M_RETURN_FREE,  # when lines that were waited for can be handed over
    M_L2_BUS,  # when the way from the L2 is free, and the SM's share of what the L2 gives
    M_L2_SHARE,
    M_WRITE_SHARE,  # the same of what it takes, and how far SMs are out of step because they had to wait for that
    M_APART,
    M_DRAM,  # the SM's share of DRAM
    M_TICKS,  # accesses to lines of the L1: the clock of `L_USED`
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
    M_LOCAL_SECTORS,  # loaded from local memory, and those of them that were in the L1
    M_LOCAL_HITS,
    M_EVENTS,
    M_FAULT,
    M_CODE_FREE,  # the way of machine code from the L2
) = range(SM_WORDS)

#: accesses that can wait for their tags at most
TAG_ENTRIES = 64

# --- a line of the L1 --------------------------------------------------------------------------------------------------------------
#: its number, a bit for each sector that is there or on its way, when the last one comes, when it was used last
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
    "read_piece",  # sectors, in sixteenths, that a piece of a line counts at least on the ways to L2
    "write_piece",
    "write_part",  # sectors, in sixteenths, that a sector counts there which is stored in part
    "part",  # cycles for such a one to leave the SM
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
    K_READ_PIECE,
    K_WRITE_PIECE,
    K_WRITE_PART,
    K_PART,
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


class State(NamedTuple):
    """What the engine is given, what it changes while it runs, and its results: one argument of its functions.

    ins: int32[n, INSTRUCTION_WORDS], see `record`. entries: what warps execute, see `fasim.warp.path`; warp i of the CTA c:
    entries[begins[streams[c] + i]:ends[streams[c] + i]]. per_cta: warps of a CTA. k: `CONSTANTS`.
    warps[slots, W_], boards[slots, SCOREBOARDS, B_], groups[slots, GROUPS]: when groups of copies are there. ctas[resident, C_].
    barriers[resident, BARRIERS, 2]: warps that have arrived, that are expected. subs[SUBS, S_]. members[SUBS, warps]: slots.
    pipes[SUBS, PIPES]: until when they are taken, in parts of a cycle. queues[SUBS, QUEUE_ENTRIES, Q_]. sm[M_].
    tag_ends[TAG_ENTRIES]: when the tags of the last accesses have been looked up. lines[sets * ways, L_]: of the L1.
    touched[TOUCHED]: lines that have been fetched from their home. code[SUBS + 1, 1 + lines]: when each sub-partition, and the SM, fetched
    each line of machine code last, by their own count of what they have fetched, which stands in front.
    stalls[n, STALLS]: warp cycles. busy[SUBS, PIPES]: parts of a cycle. spans[CTAs, 2]: first and last cycle. events[m, 5]: of the first m
    instructions the cycle, sub-partition, warp slot, instruction, CTA.
    """

    ins: Array
    entries: Array
    begins: Array
    ends: Array
    streams: Array
    per_cta: int
    k: Array
    warps: Array
    boards: Array
    groups: Array
    ctas: Array
    barriers: Array
    subs: Array
    members: Array
    pipes: Array
    queues: Array
    sm: Array
    tag_ends: Array
    lines: Array
    touched: Array
    code: Array
    stalls: Array
    busy: Array
    spans: Array
    events: Array


def initial_state(
    ins: Array, entries: Array, begins: Array, ends: Array, streams: Array, per_cta: int, resident: int, k: Array, events: int = 0
) -> State:
    """Nothing has begun; resident: CTAs that the SM holds at once. events: instructions to log; for the rest see `State`."""
    slots = resident * per_cta
    warps = np.zeros((slots, WARP_WORDS), np.int64)
    warps[:, W_EARLIEST] = NEVER
    ctas = np.zeros((resident, CTA_WORDS), np.int64)
    ctas[:, C_STARTS_AT] = NEVER
    subs = np.zeros((SUBS, SUB_WORDS), np.int64)
    subs[:, S_WAKE], subs[:, S_LAST] = NEVER, -1
    members = np.zeros((SUBS, max(-(-slots // SUBS), 1)), np.int64)
    for w in range(slots):
        sub = w % SUBS
        members[sub, subs[sub, S_MEMBERS]] = w
        subs[sub, S_MEMBERS] += 1
    sm = np.zeros(SM_WORDS, np.int64)
    sm[M_LSU_WAKE] = NEVER
    lines = np.zeros((max(1, int(k[K_L1_SETS] * k[K_L1_WAYS])), 4), np.int64)
    lines[:, L_TAG] = -1
    return State(
        ins=ins,
        entries=entries,
        begins=begins,
        ends=ends,
        streams=streams,
        per_cta=per_cta,
        k=k,
        warps=warps,
        boards=np.zeros((slots, SCOREBOARDS, 3), np.int64),
        groups=np.zeros((slots, GROUPS), np.int64),
        ctas=ctas,
        barriers=np.zeros((resident, BARRIERS, 2), np.int64),
        subs=subs,
        members=members,
        pipes=np.zeros((SUBS, len(PIPES)), np.int64),
        queues=np.zeros((SUBS, QUEUE_ENTRIES, 4), np.int64),
        sm=sm,
        tag_ends=np.zeros(TAG_ENTRIES, np.int64),
        lines=lines,
        touched=np.full(TOUCHED, -1, np.int64),
        code=np.zeros((SUBS + 1, 3 + (len(ins) >> CODE_SHIFT)), np.int64),
        stalls=np.zeros((len(ins), len(STALLS)), np.int64),
        busy=np.zeros((SUBS, len(PIPES)), np.int64),
        spans=np.zeros((len(streams), 2), np.int64),
        events=np.zeros((events, 5), np.int64),
    )
