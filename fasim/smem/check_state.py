"""The state from which hazards are found, and the log of findings.

A CTA has one block of words, its buffers beside it. The log keeps one record for each kind of finding, pair of instructions and word,
with a count; it is a hash table with open addressing that Python reads, and enlarges when it is half full.
"""

from __future__ import annotations

from fasim.isa.machine import C_CTA
from fasim.numerics.native import machine_code, peek_i64, poke_i64

# --- the block: int64 words --------------------------------------------------------------------------------------------------------
(
    # clocks
    H_NOW,
    H_LAST_TICK,
    H_CTA_BASE,
    H_PARTIAL,
    H_FAR,
    H_THREADS,
    H_KNOWN,
    H_WARP_BASE,
    H_EXECUTED,
    H_WARP_EXECUTED,
    H_FENCED,
    H_FENCES,
    H_ROW,
    H_BARRIERS,
    H_OBJECTS,
    H_OBJECT_COUNT,
    H_OBJECT_CAPACITY,
    # cells
    H_SHIFT,
    H_GRANULES,
    H_WARPS,
    H_STRONG,
    H_WRITE_TAGS,
    H_WRITE_LANES,
    H_TAGS,
    H_LANES,
    H_HEADS,
    H_EXTRA,
    H_EXTRA_COUNT,
    H_EXTRA_CAPACITY,
    H_OLD,
    H_GROUPS,
    H_SITES,
    H_SEQUENCE,
    H_EXECUTIONS,
    H_EXECUTIONS_BASE,
    # undefined values: from data to its shadow and to its origins; shadows and origins of registers; buffers with shadows
    H_USER_BYTES,
    H_UNDEFINED_SMEM,
    H_UNDEFINED_LOCAL,
    H_ORIGIN_SMEM,
    H_ORIGIN_LOCAL,
    H_SHADOW_REGS,
    H_ORIGIN_REGS,
    H_BUFFERS,
    H_ZEROS,
    H_DUMP,
    # what comes after each barrier and collective: by pc the address of one byte for each block of the code, 0 for other instructions;
    # the block of each pc
    H_AFTER,
    H_BLOCK_OF,
    # findings
    H_LOG,
    H_LOG_COUNT,
    H_LOG_CAPACITY,
    # how many chained accesses the instruction that could not run may add
    H_NEEDED,
) = (8 * i for i in range(51))
HAZARD_WORDS = 51

# --- the log: 14 x int64 a record ---------------------------------------------------------------------------------------------------
LOG_BYTES = 112
(
    L_KIND,
    L_FIRST,
    L_SECOND,
    L_WORD,
    L_COUNT,
    L_CTA,
    L_FIRST_WARP,
    L_FIRST_LANES,
    L_SECOND_WARP,
    L_SECOND_LANES,
    L_DETAIL,
    L_MORE,
    # of an undefined read of shared memory: the last CTA in which it was made, and there twice the lanes plus one (L_MORE: whether it
    # counts in an earlier one); of a raced word: the last CTA
    L_LAST_CTA,
    L_LAST_COUNT,
) = (8 * i for i in range(14))
#: kinds of findings; 0 marks a free record
(
    F_RAW,
    F_WAR,
    F_WAW,
    F_READ_UNDEFINED,
    F_DECIDED,
    F_COPY_NOT_WAITED,
    F_DIVERGENT_BARRIER,
    F_ABSENT_LANES,
    F_JOINED,
    F_UNNAMED_LANES,
    F_RACED,
) = range(1, 12)
#: the "word" of undefined reads that are only counted; in the detail of an undefined read the state space, above it the buffer
FURTHER_WORDS, BUFFER_SHIFT = -1, 8
#: what the clock must not reach
LAST_TIME = 0x7FFFFFF0
# details of a race: flags
R_ASYNC, R_BENIGN, R_SAME_WARP = 1, 2, 4
#: what an undefined value decided
DECIDED = ("", "address", "branch", "mma", "output", "barrier")
D_ADDRESS, D_BRANCH, D_MMA, D_OUTPUT, D_BARRIER = range(1, 6)


#: what tells records apart
LOG_KEY = (L_KIND, L_FIRST, L_SECOND, L_WORD, L_DETAIL)


@machine_code
def slot_of(kind: int, first: int, second: int, word: int, detail: int, capacity: int) -> int:
    """Where in the table a record is looked for first."""
    return (kind * 7919 + first * 104729 + second * 15485863 + word * 32452843 + detail * 49979687) % capacity


@machine_code
def find(block: int, kind: int, first: int, second: int, word: int, detail: int) -> int:
    """Address of a record, or of the free one where it belongs."""
    capacity = peek_i64(block + H_LOG_CAPACITY)
    slot = slot_of(kind, first, second, word, detail, capacity)
    table = peek_i64(block + H_LOG)
    while True:
        at = table + LOG_BYTES * slot
        if peek_i64(at + L_KIND) == 0 or (
            peek_i64(at + L_KIND) == kind
            and peek_i64(at + L_FIRST) == first
            and peek_i64(at + L_SECOND) == second
            and peek_i64(at + L_WORD) == word
            and peek_i64(at + L_DETAIL) == detail
        ):
            return at
        slot = slot + 1 if slot + 1 < capacity else 0


@machine_code
def log(ctx: int, block: int, kind: int, first: int, second: int, word: int, detail: int) -> int:
    """The record of a finding, new ones with a count of 0 and the CTA filled in; its address."""
    capacity = peek_i64(block + H_LOG_CAPACITY)
    if peek_i64(block + H_LOG_COUNT) >= capacity - 1:  # one instruction that found tens of thousands of things: the rest share a record
        return peek_i64(block + H_LOG) + LOG_BYTES * capacity
    at = find(block, kind, first, second, word, detail)
    if peek_i64(at + L_KIND) == 0:
        poke_i64(at + L_KIND, kind)
        poke_i64(at + L_FIRST, first)
        poke_i64(at + L_SECOND, second)
        poke_i64(at + L_WORD, word)
        poke_i64(at + L_DETAIL, detail)
        poke_i64(at + L_CTA, peek_i64(ctx + C_CTA))
        poke_i64(at + L_LAST_CTA, -1)
        poke_i64(block + H_LOG_COUNT, peek_i64(block + H_LOG_COUNT) + 1)
    return at


@machine_code
def note(at: int, first_warp: int, first_lanes: int, second_warp: int, second_lanes: int, more: int, lanes: int) -> None:
    """Fill in a record: who it was, if it is new, and how many lanes there are to count."""
    if peek_i64(at + L_COUNT) == 0:
        poke_i64(at + L_FIRST_WARP, first_warp)
        poke_i64(at + L_FIRST_LANES, first_lanes)
        poke_i64(at + L_SECOND_WARP, second_warp)
        poke_i64(at + L_SECOND_LANES, second_lanes)
        poke_i64(at + L_MORE, more)
    poke_i64(at + L_COUNT, peek_i64(at + L_COUNT) + lanes)


@machine_code
def settle_read(block: int, at: int) -> None:
    """The undefined reads of the last CTA count, unless the same instruction raced on the word there: then they are part of the race."""
    pc, word = peek_i64(at + L_FIRST), peek_i64(at + L_WORD)
    raced = find(block, F_RACED, pc, 0, word, 0)
    if peek_i64(raced + L_KIND) == 0 or peek_i64(raced + L_LAST_CTA) != peek_i64(at + L_LAST_CTA):
        poke_i64(at + L_COUNT, peek_i64(at + L_COUNT) + (peek_i64(at + L_LAST_COUNT) >> 1))
        poke_i64(at + L_MORE, 1)
    poke_i64(at + L_LAST_COUNT, 0)


@machine_code
def note_undefined(ctx: int, block: int, pc: int, word: int, space: int, warp: int, lanes: int, count: int) -> None:
    """A lane reads a word of shared memory that nobody has written in this CTA."""
    at, cta = log(ctx, block, F_READ_UNDEFINED, pc, 0, word, space), peek_i64(ctx + C_CTA)
    if peek_i64(at + L_LAST_CTA) != cta and peek_i64(at + L_LAST_COUNT):
        settle_read(block, at)
    if peek_i64(at + L_MORE) == 0 and peek_i64(at + L_LAST_COUNT) == 0:
        poke_i64(at + L_CTA, cta)
        poke_i64(at + L_FIRST_WARP, warp)
        poke_i64(at + L_FIRST_LANES, lanes)
    poke_i64(at + L_LAST_CTA, cta)
    poke_i64(at + L_LAST_COUNT, (peek_i64(at + L_LAST_COUNT) | 1) + 2 * count)


@machine_code
def note_raced(ctx: int, block: int, pc: int, word: int, space: int) -> None:
    """An instruction races on a word of shared memory."""
    at, cta = log(ctx, block, F_RACED, pc, 0, word, 0), peek_i64(ctx + C_CTA)
    if peek_i64(at + L_LAST_CTA) != cta:
        read = find(block, F_READ_UNDEFINED, pc, 0, word, space)
        if peek_i64(read + L_KIND) and peek_i64(read + L_LAST_COUNT) and peek_i64(read + L_LAST_CTA) != cta:
            settle_read(block, read)
        poke_i64(at + L_LAST_CTA, cta)


@machine_code
def log_full(block: int) -> bool:
    """Whether the log has little room left."""
    return 4 * peek_i64(block + H_LOG_COUNT) > peek_i64(block + H_LOG_CAPACITY)


@machine_code
def full(block: int, needed: int) -> bool:
    """Whether a buffer should grow before the next instruction, which may chain that many accesses."""
    poke_i64(block + H_NEEDED, needed)
    return (
        log_full(block)
        or peek_i64(block + H_NOW) >= LAST_TIME
        or peek_i64(block + H_EXTRA_COUNT) + needed > peek_i64(block + H_EXTRA_CAPACITY)
    )
