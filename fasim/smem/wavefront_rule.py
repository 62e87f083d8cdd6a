"""How many wavefronts an access costs, as functions of the machine.

There are 32 banks of 4 bytes. The lanes of an access are served in groups of neighbours whose bytes fill the banks once; a group costs
as many wavefronts as the bank with the most distinct words. What differs:

* Atomics and copies do not share words: a bank costs what lanes it serves. Compare-and-swap costs twice.
* 64- and 128-bit loads serve two groups as one, if every two lanes of a pair (lane ^ 1), or all those of a distance of two (lane ^ 2),
  have the same address; lanes that do not take part do not matter. ncu's source page does so only where the two then cost one wavefront,
  and for 128 bits decides for each half of the warp, with two cases of its own: up to 16 lanes that all read one address cost 1, and
  the lower half merges whenever it has 8 lanes or fewer, but does not while lane 31 takes part and its own lanes are no multiple of 8.
  Generic loads are never merged by the hardware, the source page merges them.
* cp.async.ca also reads from banks, those of L1: first come the wavefronts that read, each of one lane a source bank; lanes that find
  their target bank taken in theirs are served after all the others. Exact while lanes that are served together read different words of
  one line of 128 bytes; else the hardware's figures vary with the time at which lines arrive, and where lanes read from the same bank
  the source page's order is not fully known.
* Lanes of cp.async that fill with zeros read no bank: they write in the first wavefront, or behind the others if their bank is taken.
* cp.async.cg costs the hardware counters nothing. The source page has a rule of its own, see `bypass_wavefronts`.

The ideal of the source page is what the lanes that take part would fill, the hardware's is one wavefront a group.

Source: measured on an H200 with ncu 2025.3; recordings in tests/smem/data.
"""

from __future__ import annotations

from fasim.numerics.native import copy_bytes, first_bit, lanes_max, lanes_min, lanes_step, machine_code, peek_i64, poke_i64, popcount

LANES, BANKS, LINE_BYTES = 32, 32, 128
FULL_MASK = 0xFFFFFFFF

# an operation's code: how its lanes are served, and above that a number of its own
UNIT, GROUP, ADDRESSES, FIELD = 0, 4, 8, 0xF  # log2 of: bytes a lane needs (4 at least), lanes a group, lanes that give an address
MERGES = 1 << 12
GENERIC = 1 << 13
EVERY_LANE = 1 << 14
TWICE = 1 << 15
COPY = 1 << 16
BYPASS = 1 << 17
NUMBER = 20

# scratch: the words met in each bank, how many they are; for copies what is taken in each wavefront, and what is left for each bank
S_COUNTS = 8 * BANKS * LANES
S_TAKEN = S_COUNTS + 8 * BANKS
S_LEFT = S_TAKEN + 8 * LANES
WAVEFRONT_SCRATCH_WORDS = BANKS * LANES + BANKS + LANES + BANKS
# scratch of cp.async.cg: the lane that moves each sector, the one that reads each chunk, wavefronts of a class, the wavefront of each lane
S_MOVERS, S_READERS, S_CLASS, S_WAVEFRONT = 0, 8 * LANES, 8 * LANES + 8 * 8, 16 * LANES + 8 * 8
# results
R_ACTUAL, R_CONFLICTS, R_SOURCE_ACTUAL, R_SOURCE_IDEAL, R_AS_IF = 0, 8, 16, 24, 32
#: what the source page has for cp.async.cg in other machine code or if it does not read the condition, see `bypass_figures`
AS_COPIES, AS_FILLS, AS_ZFILL, AS_ZFILL_COPIES = range(4)
AS_IF = 4


@machine_code
def busiest_bank(offsets: int, mask: int, unit: int, every_lane: int, scratch: int) -> int:
    """The most words that any bank has to give to the lanes in `mask`; wide lanes count in banks of their own width."""
    banks = (LINE_BYTES >> unit) - 1
    most, seen, left = 0, 0, mask
    while left:
        word = peek_i64(offsets + 8 * first_bit(left)) >> unit
        left &= left - 1
        bank = word & banks
        words, count = scratch + 8 * LANES * bank, 0
        if seen >> bank & 1:
            count = peek_i64(scratch + S_COUNTS + 8 * bank)
            if every_lane == 0:
                i = 0
                while i < count and peek_i64(words + 8 * i) != word:
                    i += 1
                if i < count:
                    continue
        seen |= 1 << bank
        poke_i64(words + 8 * count, word)
        poke_i64(scratch + S_COUNTS + 8 * bank, count + 1)
        if count >= most:
            most = count + 1
    return most


@machine_code
def lanes_pair_up(offsets: int, mask: int, distance: int) -> bool:
    """Whether every two lanes that are `distance` apart (1 or 2) and both in `mask` have the same address."""
    left = mask & mask >> distance & (0x55555555 if distance == 1 else 0x33333333)
    while left:
        at = offsets + 8 * first_bit(left)
        if peek_i64(at) != peek_i64(at + 8 * distance):
            return False
        left &= left - 1
    return True


@machine_code
def can_merge(offsets: int, mask: int) -> bool:
    """Whether the lanes in `mask` allow that two groups are served as one."""
    return lanes_pair_up(offsets, mask, 1) or lanes_pair_up(offsets, mask, 2)


@machine_code
def hardware_group(code: int, offsets: int, mask: int) -> int:
    """How many neighbouring lanes the hardware serves together."""
    group = 1 << (code >> GROUP & FIELD)
    if code & (MERGES | GENERIC) == MERGES and can_merge(offsets, mask):
        return 2 * group
    return group


@machine_code
def copy_group(offsets: int, sources: int, mask: int, filling: int, unit: int, scratch: int) -> int:
    """Wavefronts of cp.async.ca for the lanes of one group, of which those in `filling` read nothing."""
    banks = (LINE_BYTES >> unit) - 1
    wavefronts, most, read, behind, left = 0, 0, 0, 0, mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        target, wavefront = peek_i64(offsets + 8 * lane) >> unit & banks, 0
        if filling >> lane & 1 == 0:
            source = peek_i64(sources + 8 * lane) >> unit & banks
            if read >> source & 1:
                wavefront = peek_i64(scratch + S_COUNTS + 8 * source)
            read |= 1 << source
            poke_i64(scratch + S_COUNTS + 8 * source, wavefront + 1)
        if wavefront == wavefronts:
            wavefronts += 1
            poke_i64(scratch + S_TAKEN + 8 * wavefront, 0)
        taken = peek_i64(scratch + S_TAKEN + 8 * wavefront)
        poke_i64(scratch + S_TAKEN + 8 * wavefront, taken | 1 << target)
        if taken >> target & 1:
            count = peek_i64(scratch + S_LEFT + 8 * target) + 1 if behind >> target & 1 else 1
            behind |= 1 << target
            poke_i64(scratch + S_LEFT + 8 * target, count)
            if count > most:
                most = count
    return wavefronts + most


@machine_code
def first_writers(offsets: int, mask: int, scratch: int) -> int:
    """The lanes in `mask` to whose address no lower lane writes."""
    writers, seen, left = 0, 0, mask
    while left:
        lane = first_bit(left)
        left &= left - 1
        target = peek_i64(offsets + 8 * lane)
        part = (target >> 4 ^ target >> 7) & 31  # a list for each, as short as addresses allow
        targets, count, i = scratch + 8 * LANES * part, 0, 0
        if seen >> part & 1:
            count = peek_i64(scratch + S_COUNTS + 8 * part)
            while i < count and peek_i64(targets + 8 * i) != target:
                i += 1
        if i == count:
            seen |= 1 << part
            poke_i64(targets + 8 * count, target)
            poke_i64(scratch + S_COUNTS + 8 * part, count + 1)
            writers |= 1 << lane
    return writers


@machine_code
def place_sector(sector: int, target: int, halves: int, count: int, scratch: int) -> int:
    """The wavefront of its class, of which there are `count`, that takes a sector (of 4) to a target sector.

    Sectors share one if the same halves of them move, and all of them by one rotation or one reflection of the line.
    """
    rotation, reflection = target - sector & 3, target + sector & 3
    i = 0
    while i < count:
        word = peek_i64(scratch + S_CLASS + 8 * i)
        same_rotation, same_reflection = word >> 2 & 7 == rotation, word >> 5 & 7 == reflection
        if word & 3 == halves and word >> 8 >> sector & 1 == 0 and (same_rotation or same_reflection):
            word |= 256 << sector  # no number above 3 is a rotation
            poke_i64(scratch + S_CLASS + 8 * i, word | (0 if same_rotation else 4 << 2) | (0 if same_reflection else 4 << 5))
            return i
        i += 1
    poke_i64(scratch + S_CLASS + 8 * count, halves | rotation << 2 | reflection << 5 | 256 << sector)
    return count


@machine_code
def bypass_wavefronts(offsets: int, sources: int, mask: int, scratch: int, results: int) -> None:
    """The source page's figures of cp.async.cg.

    Of lanes that write to the same place the first counts. Lanes share a wavefront only if they have a source line, a target line (128
    bytes) and the lowest bit of how their chunk (16 bytes) moves in common: a class. If a chunk of a class is to be copied several
    times, the last lane goes first and the others make another round. For what its sectors (32 bytes) need see `place_sector`.
    """
    todo, wavefronts = first_writers(offsets, mask, scratch), 0
    poke_i64(results + R_SOURCE_IDEAL, popcount(todo) + 7 >> 3)
    while todo:
        lane = first_bit(todo)
        source, target = peek_i64(sources + 8 * lane) >> 4, peek_i64(offsets + 8 * lane) >> 4
        source_line, target_line, moved = source >> 3, target >> 3, (source ^ target) & 1
        chunks, left = 0, todo
        while left:  # the class
            lane = first_bit(left)
            left &= left - 1
            source, target = peek_i64(sources + 8 * lane) >> 4, peek_i64(offsets + 8 * lane) >> 4
            if source >> 3 == source_line and target >> 3 == target_line and (source ^ target) & 1 == moved:
                poke_i64(scratch + S_READERS + 8 * (source & 7), lane)
                chunks |= 1 << (source & 7)
        readers, halves = 0, 0
        while chunks:
            chunk = first_bit(chunks)
            chunks &= chunks - 1
            lane = peek_i64(scratch + S_READERS + 8 * chunk)
            readers |= 1 << lane
            # two bits for every pair of source sector and target sector
            halves |= 1 << (8 * (chunk >> 1) + 2 * (peek_i64(offsets + 8 * lane) >> 5 & 3) + (chunk & 1))
        todo &= ~readers
        count, placed = 0, 0
        while readers:
            lane = first_bit(readers)
            readers &= readers - 1
            sector, target = peek_i64(sources + 8 * lane) >> 5 & 3, peek_i64(offsets + 8 * lane) >> 5 & 3
            at, slot = 8 * sector + 2 * target, scratch + S_WAVEFRONT + 8 * lane
            if placed >> at & 1:  # with the other half, by the lane noted
                poke_i64(slot, peek_i64(scratch + S_WAVEFRONT + 8 * peek_i64(scratch + S_MOVERS + 8 * (at >> 1))))
                continue
            placed |= 1 << at
            poke_i64(scratch + S_MOVERS + 8 * (at >> 1), lane)
            wavefront = place_sector(sector, target, halves >> at & 3, count, scratch)
            if wavefront == count:
                count += 1
            poke_i64(slot, wavefronts + wavefront)
        wavefronts += count
    poke_i64(results + R_ACTUAL, 0)
    poke_i64(results + R_CONFLICTS, 0)
    poke_i64(results + R_SOURCE_ACTUAL, wavefronts)


@machine_code
def bypass_figures(offsets: int, sources: int, mask: int, filling: int, scratch: int, results: int) -> None:
    """The figures of cp.async.cg of which the lanes in `filling` read nothing and write zeros.

    The source page has the copies of the other lanes, and what cp.async.ca costs for all lanes, if any fills; where all fill, that alone.
    results: as of `wavefronts_of`, then wavefronts and ideal of the source page for each of AS_IF: if all lanes copied; if all filled;
    of LDGSTS.ZFILL, which ptxas makes of a src-size that may be anything, and which costs both in any case; of that if all lanes copied.
    """
    copies, fills = results + R_AS_IF + 16 * AS_COPIES, results + R_AS_IF + 16 * AS_FILLS
    zfill, zfill_copies = results + R_AS_IF + 16 * AS_ZFILL, results + R_AS_IF + 16 * AS_ZFILL_COPIES
    ideal = popcount(mask) + 7 >> 3
    bypass_wavefronts(offsets, sources, mask, scratch, results)
    copy_bytes(copies, results + R_SOURCE_ACTUAL, 16)
    poke_i64(fills, through_banks(offsets, sources, mask, mask, scratch))
    poke_i64(fills + 8, ideal)
    poke_i64(zfill_copies, peek_i64(copies) + through_banks(offsets, sources, mask, 0, scratch))
    poke_i64(zfill_copies + 8, peek_i64(copies + 8) + ideal)
    if filling == 0:
        copy_bytes(zfill, zfill_copies, 16)
        return
    if filling == mask:
        copy_bytes(zfill, fills, 16)
    else:
        bypass_wavefronts(offsets, sources, mask & ~filling, scratch, results)
        poke_i64(zfill, peek_i64(results + R_SOURCE_ACTUAL) + through_banks(offsets, sources, mask, filling, scratch))
        poke_i64(zfill + 8, peek_i64(results + R_SOURCE_IDEAL) + ideal)
    copy_bytes(results + R_SOURCE_ACTUAL, zfill, 16)


@machine_code
def through_banks(offsets: int, sources: int, mask: int, filling: int, scratch: int) -> int:
    """Wavefronts of cp.async.ca with 16 bytes a lane."""
    total = 0
    for first in range(0, LANES, 8):
        part = mask >> first & 0xFF
        if part:
            total += copy_group(offsets + 8 * first, sources + 8 * first, part, filling >> first, 4, scratch)
    return total


@machine_code
def group_wavefronts(code: int, offsets: int, sources: int, mask: int, filling: int, scratch: int) -> int:
    """Wavefronts of the lanes in `mask`, which are served together."""
    if code & COPY:
        return copy_group(offsets, sources, mask, filling, code >> UNIT & FIELD, scratch)
    return busiest_bank(offsets, mask, code >> UNIT & FIELD, code & EVERY_LANE, scratch)


@machine_code
def source_page_load(code: int, offsets: int, mask: int, scratch: int) -> int:
    """What the source page has for a load of 64 or 128 bits."""
    unit, base = code >> UNIT & FIELD, 1 << (code >> GROUP & FIELD)
    if base == 8 and lanes_min(offsets, mask) == lanes_max(offsets, mask):
        return popcount(mask) + 15 >> 4
    total = 0
    for first in range(0, LANES, 2 * base):
        both, at = mask >> first & (1 << 2 * base) - 1, offsets + 8 * first
        low, high = both & (1 << base) - 1, both >> base
        separate = busiest_bank(at, low, unit, 0, scratch) + busiest_bank(at + 8 * base, high, unit, 0, scratch)
        merges = can_merge(at, both)
        if base == 8 and first == 0:  # the lower half of the warp is another case than the upper one
            if popcount(both) <= 8:
                merges = True
            if mask >> 31 and popcount(both) & 7:
                merges = False
        if separate > 1 and merges and busiest_bank(at, both, unit, 0, scratch) == 1:
            separate = 1
        total += separate
    return total


@machine_code
def wavefronts_of(code: int, offsets: int, sources: int, mask: int, filling: int, scratch: int, results: int) -> None:
    """Wavefronts of one access.

    code: of an entry of OPERATIONS. offsets, sources: 32 x i64, byte offsets in shared memory and, read for cp.async alone, addresses in
    global memory. filling: lanes of cp.async that write zeros. scratch: WAVEFRONT_SCRATCH_WORDS x i64. results: 4 x i64,
    wavefronts and conflicts as the hardware counts them, wavefronts and ideal wavefronts of the source page.
    """
    if code & BYPASS:
        bypass_wavefronts(offsets, sources, mask, scratch, results)
        return
    unit, base, lanes = code >> UNIT & FIELD, 1 << (code >> GROUP & FIELD), 1 << (code >> ADDRESSES & FIELD)
    step = peek_i64(offsets + 8) - peek_i64(offsets)
    actual, ideal, source = 0, 0, 0
    full = (1 << lanes) - 1
    mask &= full
    if mask == full and code & COPY == 0 and step != 0 and step >> unit << unit == step and lanes_step(offsets, mask, step):
        # no two words are the same: a bank has as many as the step has factors of two, and no load can merge
        stride = step >> unit | base
        ideal = lanes // base
        actual = source = ideal * (stride & -stride)
    else:
        group = hardware_group(code, offsets, mask)
        near = mask != 0 and code & (MERGES | EVERY_LANE) == 0
        near = near and (lanes_max(offsets, mask) >> unit) - (lanes_min(offsets, mask) >> unit) < base
        for first in range(0, lanes, group):
            taking_part = mask >> first & (1 << group) - 1
            if taking_part:
                ideal += 1
                if near:  # no bank has two words
                    actual += 1
                else:
                    actual += group_wavefronts(code, offsets + 8 * first, sources + 8 * first, taking_part, filling >> first, scratch)
        source = actual
        if code & MERGES and mask and (code & GENERIC or base == 8 or group > base):
            source = source_page_load(code, offsets, mask, scratch)
    source_ideal = (popcount(mask) << unit) + LINE_BYTES - 1 >> 7
    if source < source_ideal:
        source_ideal = source
    poke_i64(results + R_CONFLICTS, actual - ideal)
    times = 2 if code & TWICE else 1
    poke_i64(results + R_ACTUAL, actual * times)
    poke_i64(results + R_SOURCE_ACTUAL, source * times)
    poke_i64(results + R_SOURCE_IDEAL, source_ideal * times)
