"""Numbers that lowering and machine share: kinds of instruction, register rows, state spaces, the layout of machine state in memory."""

from __future__ import annotations

# --- kinds of instruction: what the machine's loop switches on -----------------------------------------------------------------
KINDS = (
    "lanes",  # a handler on registers
    "collective",  # the same, once all lanes of its member mask have arrived
    "bra",
    "brx",
    "call",
    "ret",
    "exit",
    "bar",
    "warp_sync",
    "load",
    "store",
    "atom",
    "ldmatrix",
    "stmatrix",
    "cp_async",
    "cp_commit",
    "cp_wait",
    "service",  # printf, assert, malloc: done by Python
    "trap",
    "clock",
    "yield",  # nanosleep: lets other warps and CTAs go first
    "nop",
    "fence",
    "break",  # lanes leave a convergence barrier of machine code
    "mark",  # a basic block begins, for the timing model
)
LANES, COLLECTIVE, BRA, BRX, CALL, RET, EXIT, BAR, WARP_SYNC, LOAD, STORE, ATOM, LDMATRIX, STMATRIX = range(14)
CP_ASYNC, CP_COMMIT, CP_WAIT, SERVICE, TRAP, CLOCK, YIELD, NOP, FENCE, BREAK, MARK = range(14, 25)
#: what accesses memory; AT_AUX of these is the number of the access, a site, in the order of the code
MEMORY_KINDS = (LOAD, STORE, ATOM, LDMATRIX, STMATRIX, CP_ASYNC)

# --- register rows: 32 lanes of up to 32 bits, 32 lanes of 64 bits, or a predicate as one word of 32 lanes; by bank -----------------
ROW_BYTES = {64: 256, 32: 128, 1: 4}
#: what a call saves of one lane of a row
LANE_BYTES = {64: 8, 32: 4, 1: 4}
# the same for code that is compiled
ROW64_BYTES, ROW32_BYTES, PREDICATE_BYTES = ROW_BYTES[64], ROW_BYTES[32], ROW_BYTES[1]
LANE64_BYTES, LANE32_BYTES, LANE_PREDICATE_BYTES = LANE_BYTES[64], LANE_BYTES[32], LANE_BYTES[1]


def bank_of(bits: int) -> int:
    """Register bank for a width."""
    return 1 if bits == 1 else 64 if bits == 64 else 32


def align_up(value: int, alignment: int) -> int:
    """The next multiple of an alignment."""
    return -(-value // alignment) * alignment


# --- one instruction in `code`: 12 x int32 -------------------------------------------------------------------------------------
CODE_BYTES = 48
CODE_WORDS = CODE_BYTES // 4
AT_KIND, AT_GUARD, AT_POOL, AT_AUX = 0, 4, 8, 12
AT_HANDLER = 16  # int64: address of the handler, filled in when the program is linked
AT_OPERANDS = 24  # int64: address of the operands in the pool, likewise
AT_MEMBER = 32  # register row of the member mask, -1: all lanes
AT_RUN = 36  # how many unguarded instructions on registers follow each other from here, up to the next label
AT_SHADOW = 40  # int64: address of the shadow handler (fasim.warp.shadow), filled in when undefined values are tracked

# --- state spaces --------------------------------------------------------------------------------------------------------------
GENERIC, GLOBAL, SHARED, LOCAL, PARAM, CONST = range(6)
SPACE = {"generic": GENERIC, "global": GLOBAL, "shared": SHARED, "local": LOCAL, "param": PARAM, "const": CONST}
SPACE_NAMES = tuple(SPACE)
#: generic addresses of the windows; everything else is global
WINDOW_BYTES = 1 << 32
SHARED_WINDOW = 1 << 40
LOCAL_WINDOW = 2 << 40
PARAM_WINDOW = 3 << 40
GLOBAL_BASE = 0x7000_0000_0000
#: device arrays, which keep their addresses over launches
DEVICE_BASE = GLOBAL_BASE + (1 << 42)
#: variables of the module live far above the buffers of launches, constant ones in a window of their own
MODULE_BASE = GLOBAL_BASE + (1 << 43)
CONST_WINDOW = MODULE_BASE + (1 << 42)

#: addresses of functions, for calls through pointers: the i-th one's is base + i * stride
FUNCTION_BASE, FUNCTION_STRIDE = 0x1000, 16

# --- context of one CTA: int64 words -------------------------------------------------------------------------------------------
(
    C_CODE,
    C_POOL,
    C_COUNTS,
    C_REGS,
    C_REG_STRIDE,
    C_WARPS,
    C_SPLITS,
    C_BARS,
    C_SMEM,
    C_SMEM_BYTES,
    C_LOCAL,
    C_LOCAL_BYTES,
    C_PARAM,
    C_PARAM_BYTES,
    C_ALLOCS,
    C_ALLOC_COUNT,
    C_READS,
    C_WRITES,
    C_ERROR,
    C_SCRATCH,
    C_QUEUE,
    C_QUEUE_CAPACITY,
    C_WARP_COUNT,
    C_THREADS,
    C_BUDGET,
    C_WARP,
    C_TRACK,
    C_CLOCK,
    C_CALL_STACK,
    C_CALL_DEPTH,
    C_FUNCTIONS,
    C_SAVE,
    C_SAVE_BYTES,
    C_QUANTUM,
    C_CTA,
    C_CTA_END,
    C_STARTED,
    C_GRID_X,
    C_GRID_Y,
    C_BLOCK_X,
    C_BLOCK_Y,
    C_TEMPLATE,
    C_SPECIALS,
    C_SPECIAL_COUNT,
    C_SMS,
    C_NEXT_WARP,
    C_ROUND,
    C_SLICE_LEFT,
    C_INSTRUCTIONS,
    C_TIME,
    C_SITES,
    C_HAZARDS,
    C_BARRIERS_ONLY,
    C_PATH,
) = (8 * i for i in range(54))
CONTEXT_WORDS = C_PATH // 8 + 1

#: flags of C_ROUND: a warp has not ended, a warp got on
ROUND_ALIVE, ROUND_PROGRESS = 1, 2

# --- scratch: addresses of the lanes and what resolving them leaves there, then the lanes' shadows, then what counting needs ---------
SCRATCH_SHADOWS, SCRATCH_COUNT = 8 * 40, 8 * 72

# --- a warp: 10 x int64 --------------------------------------------------------------------------------------------------------
WARP_BYTES = 80
W_LIVE, W_SPLITS, W_FAIR, W_TURN, W_PATIENCE, W_TAINTED, W_STRAY, W_STRAY_PC, W_BYPASSED, W_YIELDED = (8 * i for i in range(10))
#: in AT_AUX of a YIELD: its lanes do not hold up convergence barriers until they come to one
LEAVES_BARRIERS = 1

# --- a split (lanes of a warp at one pc): 8 x int64, 33 a warp -------------------------------------------------------------------
SPLIT_BYTES, SPLITS_PER_WARP = 64, 33
S_PC, S_MASK, S_STATE, S_DETAIL, S_TURN = (8 * i for i in range(5))
READY, AT_BARRIER, AT_COLLECTIVE = range(3)
#: in the detail of a split: it waits in bar.warp.sync (for the lanes in the low 32 bits)
SYNC_FLAG = 1 << 40
#: and at which convergence barrier of machine code, counted from 1; 0 is bar.warp.sync
SYNC_BARRIER_SHIFT, SYNC_BARRIER_MASK = 33, 0x7F
#: in the detail of a split: it asks for a service
SERVICE_FLAG = 1 << 41
#: in the detail of a split: it waits at a collective instruction (for the lanes in the low 32 bits)
COLLECTIVE_FLAG = 1 << 42
ALL_LANES = 0xFFFFFFFF
#: the origin of what a shuffle took from a lane that does not execute it (fasim.warp.shadow)
ABSENT_LANE = 0xFFFFFFFF

# --- a barrier: 8 x int64, 16 a CTA --------------------------------------------------------------------------------------------
BAR_BYTES, BARRIERS = 64, 16
B_ARRIVED, B_EXPECTED, B_POPC, B_AND, B_OR = (8 * i for i in range(5))
#: what a bar does: wait, only arrive, wait and combine a predicate
BAR_SYNC, BAR_ARRIVE, BAR_RED_POPC, BAR_RED_AND, BAR_RED_OR = range(5)

# --- special registers that the machine fills in for each warp: 2 x int64 (which, row) ------------------------------------------
SPECIAL_BYTES = 16
SP_TID_X, SP_TID_Y, SP_TID_Z, SP_CTAID_X, SP_CTAID_Y, SP_CTAID_Z, SP_WARPID, SP_SMID = range(8)

# --- an allocation: 4 x int64 --------------------------------------------------------------------------------------------------
ALLOC_BYTES = 32
A_BASE, A_SIZE, A_HOST, A_BITMAP = (8 * i for i in range(4))

# --- status of a run and kinds of error ----------------------------------------------------------------------------------------
DONE, BLOCKED, OUT_OF_BUDGET, FAILED, NEEDS_SERVICE, YIELDED, QUEUE_FULL, LOG_FULL = range(8)
(
    E_OUT_OF_BOUNDS,
    E_MISALIGNED,
    E_CONST_WRITE,
    E_DEADLOCK,
    E_TRAP,
    E_CALL_DEPTH,
    E_BAD_TARGET,
    E_SRC_SIZE,
    E_BARRIER_OPERANDS,
    E_BARRIER_COUNT,
) = range(1, 11)  # 0: none
# error record: int64 words
ERR_KIND, ERR_PC, ERR_WARP, ERR_LANES, ERR_SPACE, ERR_BYTES, ERR_WRITE = (8 * i for i in range(7))
ERR_ADDRESS = 64  # 32 x int64, the address of each lane
ERROR_WORDS = 8 + 32
