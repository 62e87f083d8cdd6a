"""What a warp executes, written down for the timing model: basic blocks, and where its accesses to memory go.

An entry is two words: the warp, then its type, the position in the machine code and a detail: of a SHARED_ACCESS its wavefronts, of a
GLOBAL_ACCESS the number of the LINE entries that follow, of a BARRIER_ENTRY the number of the barrier and the warps that it waits for.
"""

from __future__ import annotations

from fasim.isa.machine import C_PATH, C_SCRATCH, C_SITES, CONST_WINDOW, CP_ASYNC, GENERIC, GLOBAL, LDMATRIX, LOCAL, SHARED, STMATRIX
from fasim.isa.operands import BAR_COUNT, BAR_NUMBER, P_BYTES, P_SPACE, P_VECTOR, Q_SOURCE, Q_SOURCE_SIZE
from fasim.numerics.native import first_bit, machine_code, peek_i32, peek_i64, peek_u32, poke_i64
from fasim.smem.accounts import S_LAST, SITE_BYTES
from fasim.warp.memory import lane_address, lane_addresses, window

# --- the block of words that C_PATH points to -----------------------------------------------------------------------------------------
H_ENTRIES, H_CAPACITY, H_BUFFER, H_POSITIONS, H_LOCAL_LINES = (8 * i for i in range(5))
PATH_WORDS = 5
ENTRY_BYTES = 16
#: entries that one instruction makes at most: 32 lanes of 16 bytes, each in two lines
MOST_ENTRIES = 80
#: types of entries, and where the position in the machine code and the detail stand in them
BLOCK, SHARED_ACCESS, GLOBAL_ACCESS, BARRIER_ENTRY, LINE = range(5)
TYPE_BITS, POSITION_BITS = 3, 20
POSITION_SHIFT, DETAIL_SHIFT = TYPE_BITS, TYPE_BITS + POSITION_BITS
TYPE_MASK, POSITION_MASK = (1 << TYPE_BITS) - 1, (1 << POSITION_BITS) - 1
LINE_BYTES, SECTOR_BYTES = 128, 32
#: of a LINE: where its sectors stand, a bit each, and then its number
SECTOR_SHIFT, LINE_SHIFT = TYPE_BITS, TYPE_BITS + 4
#: of the SHARED_ACCESS of a copy: wavefronts to write its data, and behind them the sectors asked for
FILL_BITS = 12
#: line numbers of local memory begin here
LOCAL_LINES = 1 << 40


@machine_code
def path_full(path: int) -> bool:
    """Whether the next instruction might not fit."""
    return peek_i64(path + H_ENTRIES) + MOST_ENTRIES > peek_i64(path + H_CAPACITY)


@machine_code
def put(path: int, warp: int, word: int) -> None:
    """Add an entry."""
    count = peek_i64(path + H_ENTRIES)
    at = peek_i64(path + H_BUFFER) + ENTRY_BYTES * count
    poke_i64(at, warp)
    poke_i64(at + 8, word)
    poke_i64(path + H_ENTRIES, count + 1)


@machine_code
def note_block(ctx: int, warp: int, position: int) -> None:
    """A basic block begins."""
    put(peek_i64(ctx + C_PATH), warp, BLOCK | position << POSITION_SHIFT)


@machine_code
def note_barrier(ctx: int, warp: int, registers: int, operands: int, lane: int) -> None:
    """A bar: its number, and behind it how many warps it waits for, 0 for all."""
    count = peek_i32(operands + BAR_COUNT)
    threads = peek_u32(registers + count + 4 * lane) if count >= 0 else 0
    number = peek_u32(registers + peek_i32(operands + BAR_NUMBER) + 4 * lane)
    put(peek_i64(ctx + C_PATH), warp, BARRIER_ENTRY | ((threads + 31) >> 5 << 4 | number & 15) << DETAIL_SHIFT)


@machine_code
def note_memory(ctx: int, warp: int, site: int, kind: int, registers: int, operands: int, mask: int) -> None:
    """An access of the lanes in `mask`, after it was carried out and counted."""
    path, scratch = peek_i64(ctx + C_PATH), peek_i64(ctx + C_SCRATCH)
    position = peek_i32(peek_i64(path + H_POSITIONS) + 4 * site)
    copies = kind == CP_ASYNC
    size = peek_i32(operands + P_BYTES)
    space = peek_i32(operands + P_SPACE)
    if kind == LDMATRIX or kind == STMATRIX:
        space = SHARED
    elif copies:
        lane_addresses(registers, operands + Q_SOURCE, scratch)
        space = GLOBAL
        row = peek_i32(operands + Q_SOURCE_SIZE)
        if row >= 0:
            left = mask
            while left:
                lane = first_bit(left)
                left &= left - 1
                if peek_u32(registers + row + 4 * lane) == 0:
                    mask &= ~(1 << lane)
    else:
        size *= peek_i32(operands + P_VECTOR)
        lane_addresses(registers, operands, scratch)
        if space == GENERIC:
            space = window(space, peek_i64(scratch + 8 * first_bit(mask)))
    if space == SHARED:
        at = peek_i64(ctx + C_SITES) + SITE_BYTES * site + S_LAST
        put(path, warp, SHARED_ACCESS | position << POSITION_SHIFT | peek_i64(at) << DETAIL_SHIFT)
    elif space == LOCAL:
        note_local(path, warp, position, peek_i64(scratch + 8 * first_bit(mask)) & 0xFFFFFFFF if mask else 0, size)
    elif copies:
        # what the source page counts is what it takes to write the data to shared memory
        at = peek_i64(ctx + C_SITES) + SITE_BYTES * site + S_LAST + 16
        detail = peek_i64(at) | requests(registers, operands, scratch, mask) << FILL_BITS
        put(path, warp, SHARED_ACCESS | position << POSITION_SHIFT | detail << DETAIL_SHIFT)
        note_lines(path, warp, position, scratch, mask, size)
    elif space == GLOBAL and (mask == 0 or peek_i64(scratch + 8 * first_bit(mask)) < CONST_WINDOW):
        note_lines(path, warp, position, scratch, mask, size)


@machine_code
def requests(registers: int, operands: int, sources: int, mask: int) -> int:
    """Sectors that a copy asks the L2 for: one that goes to two sectors of shared memory is asked for twice."""
    count, sector, target = 0, -1, -1
    while mask:
        lane = first_bit(mask)
        mask &= mask - 1
        next_sector, next_target = peek_i64(sources + 8 * lane) >> 5, lane_address(registers, operands, lane) >> 5
        count += next_sector != sector or next_target != target
        sector, target = next_sector, next_target
    return count


@machine_code
def note_local(path: int, warp: int, position: int, offset: int, size: int) -> None:
    """Local memory: the words of 32 lanes stand side by side, so each word of the access is a line."""
    count = (size + 3) >> 2
    put(path, warp, GLOBAL_ACCESS | position << POSITION_SHIFT | count << DETAIL_SHIFT)
    first = LOCAL_LINES + warp * peek_i64(path + H_LOCAL_LINES) + (offset >> 2)
    for i in range(count):
        put(path, warp, LINE | 15 << SECTOR_SHIFT | first + i << LINE_SHIFT)


@machine_code
def note_lines(path: int, warp: int, position: int, addresses: int, mask: int, size: int) -> None:
    """Global memory: each line once, with the sectors that are wanted of it."""
    at = peek_i64(path + H_ENTRIES)
    put(path, warp, GLOBAL_ACCESS | position << POSITION_SHIFT)
    buffer = peek_i64(path + H_BUFFER)
    first, count, last = buffer + ENTRY_BYTES * (at + 1) + 8, 0, -1
    while mask:
        lane = first_bit(mask)
        mask &= mask - 1
        address = peek_i64(addresses + 8 * lane)
        for sector in range(address >> 5, (address + size + 31) >> 5):
            line, bit = sector >> 2, 1 << SECTOR_SHIFT + (sector & 3)
            if last < 0 or peek_i64(first + ENTRY_BYTES * last) >> LINE_SHIFT != line:
                last = 0
                while last < count and peek_i64(first + ENTRY_BYTES * last) >> LINE_SHIFT != line:
                    last += 1
                if last == count:
                    put(path, warp, LINE | line << LINE_SHIFT)
                    count += 1
            poke_i64(first + ENTRY_BYTES * last, peek_i64(first + ENTRY_BYTES * last) | bit)
    poke_i64(first - ENTRY_BYTES, peek_i64(first - ENTRY_BYTES) | count << DETAIL_SHIFT)
