"""The account of each shared access: wavefronts and conflicts of all its executions, and the worst of them.

Counting an execution anew is rarely needed: the lanes of one instruction mostly keep their distances from each other, and then the
counts are the same.
"""

from __future__ import annotations

from fasim.isa.machine import C_CTA, C_SCRATCH, C_SITES, C_SMEM, C_WARP, SCRATCH_COUNT
from fasim.numerics.native import (
    copy_bytes,
    first_bit,
    lanes_add,
    lanes_match,
    machine_code,
    peek_i64,
    poke_i64,
)
from fasim.smem.wavefront_rule import AS_IF, BYPASS, R_AS_IF, bypass_figures
from fasim.smem.wavefronts import WAVEFRONT_SCRATCH_WORDS, wavefronts_of

# an account: int64 words; the results of the last execution and of all, the worst execution; of cp.async.cg the lanes that filled with
# zeros, and the source page's other figures (AS_IF pairs, see `bypass_figures`); then four times 32 addresses
(
    S_CODE,
    S_EXECUTIONS,
    S_TOTALS,
    _,
    _,
    _,
    S_LAST,
    _,
    _,
    _,
    S_LAST_MASK,
    S_WORST,
    S_WORST_CTA,
    S_WORST_WARP,
    S_WORST_MASK,
    S_LAST_FILLING,
    S_AS_TOTALS,
) = (8 * i for i in range(17))
#: wavefronts and ideal for each of AS_IF
AS_BYTES = 16 * AS_IF
S_AS_LAST = S_AS_TOTALS + AS_BYTES
S_LAST_OFFSETS, S_LAST_SOURCES, S_WORST_OFFSETS, S_WORST_SOURCES = (S_AS_LAST + AS_BYTES + 256 * i for i in range(4))
SITE_BYTES = S_LAST_OFFSETS + 256 * 4
#: words in scratch: offsets, results, working words
RESULT_WORDS = 4 + 2 * AS_IF
COUNT_WORDS = 32 + RESULT_WORDS + WAVEFRONT_SCRATCH_WORDS


@machine_code
def account(ctx: int, site: int, mask: int, sources: int, filling: int) -> None:
    """Count one execution; the host addresses of the lanes in `mask`, all in shared memory, stand in scratch.

    sources: address of 32 global addresses that cp.async reads from, 0 for other accesses. filling: the lanes that read nothing and write
    zeros.
    """
    at = peek_i64(ctx + C_SITES) + SITE_BYTES * site
    hosts, smem = peek_i64(ctx + C_SCRATCH), peek_i64(ctx + C_SMEM)
    first = first_bit(mask)
    poke_i64(at + S_EXECUTIONS, peek_i64(at + S_EXECUTIONS) + 1)
    if peek_i64(at + S_CODE) == 0:  # an atomic that machine code does in a loop: how many accesses that makes is not known
        return
    known = False
    if mask == peek_i64(at + S_LAST_MASK) and filling == peek_i64(at + S_LAST_FILLING):
        # counts stay the same if all lanes move by whole words, for bulk copies by whole lines
        shift = peek_i64(hosts + 8 * first) - smem - peek_i64(at + S_LAST_OFFSETS + 8 * first)
        if sources:
            source_shift = peek_i64(sources + 8 * first) - peek_i64(at + S_LAST_SOURCES + 8 * first)
            known = (
                (shift | source_shift) & 127 == 0
                and lanes_match(hosts, at + S_LAST_OFFSETS, mask, shift + smem)
                and lanes_match(sources, at + S_LAST_SOURCES, mask, source_shift)
            )
        else:
            known = shift & 3 == 0 and lanes_match(hosts, at + S_LAST_OFFSETS, mask, shift + smem)
    if not known:
        scratch = hosts + SCRATCH_COUNT
        lanes_add(scratch, hosts, -smem)
        copy_bytes(at + S_LAST_OFFSETS, scratch, 256)
        if sources:
            copy_bytes(at + S_LAST_SOURCES, sources, 256)
        poke_i64(at + S_LAST_MASK, mask)
        poke_i64(at + S_LAST_FILLING, filling)
        results, code = scratch + 8 * 32, peek_i64(at + S_CODE)
        if code & BYPASS:
            bypass_figures(scratch, sources, mask, filling, results + 8 * RESULT_WORDS, results)
            copy_bytes(at + S_AS_LAST, results + R_AS_IF, AS_BYTES)
        else:
            wavefronts_of(code, scratch, sources, mask, filling, results + 8 * RESULT_WORDS, results)
        copy_bytes(at + S_LAST, results, 8 * 4)
        worse = max(peek_i64(results + 8), peek_i64(results + 16) - peek_i64(results + 24)) + 1
        if worse > peek_i64(at + S_WORST):
            poke_i64(at + S_WORST, worse)
            poke_i64(at + S_WORST_CTA, peek_i64(ctx + C_CTA))
            poke_i64(at + S_WORST_WARP, peek_i64(ctx + C_WARP))
            poke_i64(at + S_WORST_MASK, mask)
            copy_bytes(at + S_WORST_OFFSETS, at + S_LAST_OFFSETS, 512)
    for i in range(0, 32, 8):
        poke_i64(at + S_TOTALS + i, peek_i64(at + S_TOTALS + i) + peek_i64(at + S_LAST + i))
    if sources:
        for i in range(0, AS_BYTES, 8):
            poke_i64(at + S_AS_TOTALS + i, peek_i64(at + S_AS_TOTALS + i) + peek_i64(at + S_AS_LAST + i))
