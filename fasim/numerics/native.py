"""Words of memory by address, for the machine's inner loop, as plain Python; `native_numba` has the same functions for numba.

Code that uses only these functions and integer arithmetic below 2**63 runs under numba and without it. The machine keeps its state in
plain buffers, since passing dozens of numpy arrays to every function costs more than the functions do.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TypeVar

Function = TypeVar("Function", bound=Callable[..., object])

#: word types by the name that the functions carry: ctypes type and bits
WORDS = {
    "u8": (ctypes.c_uint8, 8),
    "u16": (ctypes.c_uint16, 16),
    "u32": (ctypes.c_uint32, 32),
    "i32": (ctypes.c_int32, 32),
    "i64": (ctypes.c_int64, 64),
}
#: the functions of the machine, in order of definition
MACHINE_FUNCTIONS: list[Callable[..., object]] = []
#: the reference machine's handlers; their "address" is the index here
REFERENCE_HANDLERS: list[Callable[[int, int, int], None]] = []
#: and its shadow handlers, likewise
REFERENCE_SHADOW_HANDLERS: list[Callable[[int, int, int, int, int], None]] = []


def machine_code(function: Function) -> Function:
    """Mark a function of the machine: it stays a Python function, and compiled code may call it."""
    MACHINE_FUNCTIONS.append(function)
    return function


def _make(name: str) -> tuple[Callable[[int], int], Callable[[int, int], None]]:
    ctype, _ = WORDS[name]

    def peek(address: int) -> int:
        return int(ctype.from_address(address).value)

    def poke(address: int, value: int) -> None:
        ctype.from_address(address).value = value

    return peek, poke


peek_u8, poke_u8 = _make("u8")
peek_u16, poke_u16 = _make("u16")
peek_u32, poke_u32 = _make("u32")
peek_i32, poke_i32 = _make("i32")
peek_i64, poke_i64 = _make("i64")


def copy_bytes(target: int, source: int, count: int) -> None:
    """memmove."""
    ctypes.memmove(target, source, count)


def fill_bytes(target: int, value: int, count: int) -> None:
    """memset."""
    ctypes.memset(target, value, count)


def popcount(x: int) -> int:
    """Bits set in a non-negative number."""
    return x.bit_count()


def first_bit(x: int) -> int:
    """Index of the lowest bit set; 64 for 0."""
    return (x & -x).bit_length() - 1 if x else 64


# --- all lanes of a warp at once: `words` are 32 x i64, `row` is a register row, bit i of `mask` says whether lane i takes part -----
LANES = range(32)


def _taking_part(mask: int) -> list[int]:
    return [lane for lane in LANES if mask >> lane & 1]


def lanes_add(target: int, words: int, value: int) -> None:
    """target[lane] = words[lane] + value modulo 2**64."""
    for lane in LANES:
        poke_i64(target + 8 * lane, peek_i64(words + 8 * lane) + value)


def lanes_add_u32(target: int, row: int, value: int) -> None:
    """target[lane] = (row[lane] + value) modulo 2**32; the row is 32 x u32, the target 32 x i64."""
    for lane in LANES:
        poke_i64(target + 8 * lane, (peek_u32(row + 4 * lane) + value) & 0xFFFFFFFF)


def lanes_min(words: int, mask: int) -> int:
    """The lowest word; there is at least one lane in the mask."""
    return min(peek_i64(words + 8 * lane) for lane in _taking_part(mask))


def lanes_max(words: int, mask: int) -> int:
    """The highest word; there is at least one lane in the mask."""
    return max(peek_i64(words + 8 * lane) for lane in _taking_part(mask))


def lanes_or(words: int, mask: int) -> int:
    """The bits that are set in any word."""
    result = 0
    for lane in _taking_part(mask):
        result |= peek_i64(words + 8 * lane)
    return result


def lanes_equal(words: int, value: int) -> int:
    """The lanes whose word has that value, as a mask of all 32."""
    return sum(1 << lane for lane in LANES if peek_i64(words + 8 * lane) == value)


def lanes_match(words: int, kept: int, mask: int, distance: int) -> bool:
    """Whether words[lane] - kept[lane] is the same distance in all lanes."""
    return all(peek_i64(words + 8 * lane) - peek_i64(kept + 8 * lane) == distance for lane in _taking_part(mask))


def lanes_note(tags: int, bits: int, mask: int, tag: int, base: int) -> bool:
    """Write `tag` to tags[lane] (i64) and bit `lane` to bits[lane] (u32), unless something there is to be kept; whether it was done.

    Kept is what is not below `base`, but for the same tag and bit.
    """
    lanes = _taking_part(mask)
    for lane in lanes:
        old = peek_i64(tags + 8 * lane)
        if old >= base and not (old == tag and peek_u32(bits + 4 * lane) == 1 << lane):
            return False
    for lane in lanes:
        poke_i64(tags + 8 * lane, tag)
        poke_u32(bits + 4 * lane, 1 << lane)
    return True


def lanes_raise(target: int, source: int) -> None:
    """target[lane] = max(target[lane], source[lane]), of 32 x u32."""
    for lane in LANES:
        poke_u32(target + 4 * lane, max(peek_u32(target + 4 * lane), peek_u32(source + 4 * lane)))


def lanes_nonzero_u32(row: int, mask: int) -> int:
    """The lanes in the mask whose word in a row of 32 x u32 is not zero."""
    return sum(1 << lane for lane in _taking_part(mask) if peek_u32(row + 4 * lane))


def lanes_nonzero_i64(row: int, mask: int) -> int:
    """The lanes in the mask whose word in a row of 32 x i64 is not zero."""
    return sum(1 << lane for lane in _taking_part(mask) if peek_i64(row + 8 * lane))


def lanes_step(words: int, mask: int, step: int) -> bool:
    """Whether all words fit words[lane] = start + step * lane."""
    return len({peek_i64(words + 8 * lane) - step * lane for lane in _taking_part(mask)}) <= 1


def _make_lanes(name: str) -> tuple[Callable[[int, int, int], None], ...]:
    """Memory of word type `name` to and from a row: 32 x u32, or 32 x i64 for i64."""
    peek, poke = {"u8": (peek_u8, poke_u8), "u16": (peek_u16, poke_u16), "u32": (peek_u32, poke_u32), "i64": (peek_i64, poke_i64)}[name]
    bits, wide = WORDS[name][1], name == "i64"
    peek_row, poke_row, pitch = (peek_i64, poke_i64, 8) if wide else (peek_u32, poke_u32, 4)

    def load(row: int, at: int, mask: int) -> None:
        for lane in _taking_part(mask):
            poke_row(row + pitch * lane, peek(at + bits // 8 * lane))

    def store(row: int, at: int, mask: int) -> None:
        for lane in _taking_part(mask):
            poke(at + bits // 8 * lane, peek_row(row + pitch * lane))

    def gather(row: int, words: int, mask: int) -> None:
        for lane in _taking_part(mask):
            poke_row(row + pitch * lane, peek(peek_i64(words + 8 * lane)))

    def scatter(row: int, words: int, mask: int) -> None:
        for lane in _taking_part(mask):
            poke(peek_i64(words + 8 * lane), peek_row(row + pitch * lane))

    return load, store, gather, scatter


# lanes_load, lanes_store: lane i's word is at `at` + i words. lanes_gather, lanes_scatter: it is at words[i], a multiple of its size;
# where lanes share an address, the highest wins.
lanes_load_u8, lanes_store_u8, lanes_gather_u8, _ = _make_lanes("u8")
lanes_load_u16, lanes_store_u16, lanes_gather_u16, _ = _make_lanes("u16")
lanes_load_u32, lanes_store_u32, lanes_gather_u32, lanes_scatter_u32 = _make_lanes("u32")
lanes_load_i64, lanes_store_i64, lanes_gather_i64, lanes_scatter_i64 = _make_lanes("i64")


def call_handler(handler: int, registers: int, operands: int, mask: int) -> None:
    """Run a handler: an address of compiled code, or an index into REFERENCE_HANDLERS on the reference machine."""
    REFERENCE_HANDLERS[handler](registers, operands, mask)


def call_shadow(handler: int, registers: int, shadow: int, origins: int, operands: int, mask: int) -> None:
    """Run a shadow handler: an address of compiled code, or an index into REFERENCE_SHADOW_HANDLERS on the reference machine."""
    REFERENCE_SHADOW_HANDLERS[handler](registers, shadow, origins, operands, mask)
