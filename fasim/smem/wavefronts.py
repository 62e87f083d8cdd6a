"""Wavefronts: in how many steps shared memory serves one access of a warp, equal to what ncu counts, and which lanes collide in which bank.

The rule itself is `wavefront_rule.wavefronts_of`: the machine runs it compiled, `count_wavefronts` as plain Python.
"""

from __future__ import annotations

import ctypes
import difflib
import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fasim.arch import architecture
from fasim.errors import UsageError
from fasim.smem.wavefront_rule import (
    ADDRESSES,
    BANKS,
    BYPASS,
    COPY,
    EVERY_LANE,
    FIELD,
    FULL_MASK,
    GENERIC,
    GROUP,
    LANES,
    LINE_BYTES,
    MERGES,
    NUMBER,
    S_WAVEFRONT,
    TWICE,
    UNIT,
    WAVEFRONT_SCRATCH_WORDS,
    hardware_group,
    wavefronts_of,
)

__all__ = [
    "ALIASES",
    "LOOPS",
    "OPERATIONS",
    "WAVEFRONT_SCRATCH_WORDS",
    "Collision",
    "Operation",
    "Wavefronts",
    "Word",
    "count_wavefronts",
    "operation",
    "wavefronts_of",
]

BANK_BYTES = LINE_BYTES // BANKS


@dataclass(frozen=True)
class Operation:
    """A kind of shared-memory instruction: how many bytes a lane accesses (its alignment) and the code of `wavefronts_of`."""

    name: str
    lane_bytes: int
    code: int

    @property
    def lanes(self) -> int:
        """How many lanes give an address."""
        return 1 << (self.code >> ADDRESSES & FIELD)


def _operations() -> Iterator[tuple[str, int, int, int]]:
    """Name, bytes a lane, lanes that give an address, flags."""
    for space, generic in (("S", 0), ("", GENERIC)):
        for kind, lane_bytes in {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "32": 4}.items():
            yield f"LD{space}.{kind}", lane_bytes, 32, generic
        for lane_bytes in (8, 16):
            yield f"LD{space}.{8 * lane_bytes}", lane_bytes, 32, MERGES | generic
        for lane_bytes in (1, 2, 4, 8, 16):
            yield f"ST{space}.{8 * lane_bytes}", lane_bytes, 32, generic
    for name in ("LDSM", "STSM"):
        for matrices in (1, 2, 4):
            for transposed in ("", ".T"):
                yield f"{name}.x{matrices}{transposed}", 16, 8 * matrices, 0
    for lane_bytes in (4, 8, 16):
        yield f"LDGSTS.ca{lane_bytes}", lane_bytes, 32, COPY | EVERY_LANE
    yield "LDGSTS.cg16", 16, 32, BYPASS
    for name in ("ATOMS", "RED.shared"):
        for kind in ("add", "min", "max", "inc", "dec", "and", "or", "xor"):
            yield f"{name}.{kind}", 4, 32, EVERY_LANE
    for suffix, lane_bytes in (("", 4), (".64", 8)):
        yield f"ATOMS.exch{suffix}", lane_bytes, 32, EVERY_LANE
        yield f"ATOMS.cas{suffix}", lane_bytes, 32, EVERY_LANE | TWICE
    # machine code for atomicAdd(p, 1) without a result: lanes with the same word are counted together
    yield "ATOMS.popc.inc", 4, 32, 0


def _make_operations() -> dict[str, Operation]:
    table = {}
    for number, (name, lane_bytes, lanes, flags) in enumerate(_operations()):
        unit = max(lane_bytes, BANK_BYTES).bit_length() - 1
        group = (LINE_BYTES >> unit).bit_length() - 1
        code = unit << UNIT | group << GROUP | (lanes.bit_length() - 1) << ADDRESSES | flags | number << NUMBER
        table[name] = Operation(name, lane_bytes, code)
    return table


#: all operations by name; LD and ST are generic accesses that meet shared memory
OPERATIONS: dict[str, Operation] = _make_operations()
#: other names that are understood
ALIASES = {"LDS": "LDS.32", "STS": "STS.32", "STS.U8": "STS.8", "STS.S8": "STS.8", "STS.U16": "STS.16", "STS.S16": "STS.16"}
#: atomics that machine code (sm_90) makes a loop of LDS and ATOMS.CAST.SPIN, or LDS and ATOMS.CAS: what they cost depends on who wins
LOOPS = frozenset(
    f"{name}.{kind}"
    for name in ("ATOMS", "RED.shared")
    for kind in (
        *("add.64", "min.64", "max.64", "and.64", "or.64", "xor.64"),
        *("add.f32", "add.f64", "add.f16", "add.f16x2", "add.bf16", "add.bf16x2", "cas.16"),
    )
)


@dataclass(frozen=True)
class Word:
    """What a bank gives or takes in one wavefront: `lane_bytes`, 4 at least, from `byte_offset` on, for these lanes."""

    byte_offset: int
    lanes: tuple[int, ...]


@dataclass(frozen=True)
class Collision:
    """A bank that costs its group more than one wavefront: one for each of `words` (an index into `Wavefronts.groups`, a bank 0..31).

    Where lanes cannot share a word (atomics, cp.async.ca), every lane has an entry of its own.
    """

    group: int
    bank: int
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Wavefronts:
    """What an access costs: `actual`, `conflicts` as hardware counters, `source_actual`, `source_ideal` as ncu's source page has them.

    groups: the lanes that are served together (LDGSTS.cg16: by one wavefront of the source page). collisions: by falling cost, for a wide
    access under the first of the banks of a word; none for LDGSTS.cg16, whose wavefronts do not depend on banks.
    """

    op: str
    actual: int
    conflicts: int
    source_actual: int
    source_ideal: int
    groups: tuple[tuple[int, ...], ...]
    collisions: tuple[Collision, ...]


def operation(op: str) -> Operation:
    """The operation of that name. Raises: UsageError."""
    found = OPERATIONS.get(ALIASES.get(op, op))
    if found is not None:
        return found
    if op in LOOPS:
        raise UsageError(f"{op}: no single instruction does this; machine code loops over loads and compare-and-swap, whose number varies")
    near = difflib.get_close_matches(op, [*OPERATIONS, *ALIASES], n=3)
    hint = f"nearest: {', '.join(near)}; " if near else ""
    raise UsageError(f"{op!r} is no shared-memory operation that fasim knows; {hint}known: {', '.join(OPERATIONS)}")


def _words(what: str, values: Iterable[int]) -> list[int]:
    try:
        numbers = [operator.index(value) for value in values]
    except TypeError as error:
        raise UsageError(f"{what}: {error}; whole numbers are expected") from error
    if len(numbers) != LANES:
        raise UsageError(f"{what}: found {len(numbers)} values; give one for each of the {LANES} lanes")
    return numbers


def _check(entry: Operation, what: str, lanes: Sequence[int], values: Sequence[int]) -> None:
    for lane in lanes:
        if values[lane] < 0:
            raise UsageError(f"{entry.name}: {what} {values[lane]} of lane {lane} is negative")
        if values[lane] % entry.lane_bytes:
            raise UsageError(f"{entry.name}: {what} {values[lane]} of lane {lane} is not a multiple of {entry.lane_bytes} bytes")


def count_wavefronts(
    op: str,
    byte_offsets: Iterable[int],
    active_mask: int | None = None,
    arch: str = "sm_90",
    source_addresses: Iterable[int] | None = None,
) -> Wavefronts:
    """Count the wavefronts of one access of a warp to shared memory.

    op: a name in OPERATIONS or ALIASES. byte_offsets: of each of 32 lanes, in shared memory. active_mask: bit i says whether lane i takes
    part; default all. arch: a known architecture; the rule was measured on sm_90 and is the same for all. source_addresses: for LDGSTS,
    where each lane's bytes come from in global memory; default one after the other from an address that is a multiple of 128.
    Returns: the counts, and which lanes collide in which bank.
    Raises: UsageError.
    """
    architecture(arch)
    entry = operation(op)
    offsets = _words("byte_offsets", byte_offsets)
    following = range(0, entry.lane_bytes * LANES, entry.lane_bytes)
    sources = _words("source_addresses", following if source_addresses is None else source_addresses)
    mask = FULL_MASK if active_mask is None else int(active_mask)
    if not 0 <= mask <= FULL_MASK:
        raise UsageError(f"active_mask: {mask:#x} is no mask of {LANES} lanes")
    lanes = [lane for lane in range(entry.lanes) if mask >> lane & 1]
    _check(entry, "byte offset", lanes, offsets)
    if entry.code & (COPY | BYPASS):
        _check(entry, "source address", lanes, sources)
    offset_words, source_words = (ctypes.c_int64 * LANES)(*offsets), (ctypes.c_int64 * LANES)(*sources)
    scratch, results = (ctypes.c_int64 * WAVEFRONT_SCRATCH_WORDS)(), (ctypes.c_int64 * 4)()
    at = ctypes.addressof(offset_words)
    wavefronts_of(entry.code, at, ctypes.addressof(source_words), mask, 0, ctypes.addressof(scratch), ctypes.addressof(results))
    if entry.code & BYPASS:
        groups, collisions = _bypass_groups(lanes, offsets, list(scratch)), []
    else:
        size = hardware_group(entry.code, at, mask & (1 << entry.lanes) - 1)
        starts = range(0, entry.lanes, size)
        groups = [group for first in starts if (group := tuple(lane for lane in lanes if first <= lane < first + size))]
        collisions = [each for number, group in enumerate(groups) for each in _collisions(entry, number, group, offsets)]
    collisions.sort(key=lambda each: -len(each.words))
    actual, conflicts, source_actual, source_ideal = results
    return Wavefronts(entry.name, actual, conflicts, source_actual, source_ideal, tuple(groups), tuple(collisions))


def _collisions(entry: Operation, number: int, group: Sequence[int], offsets: Sequence[int]) -> Iterator[Collision]:
    """The banks of a group that cost more than one wavefront."""
    width = 1 << (entry.code >> UNIT & FIELD)
    banks: dict[int, dict[tuple[int, int], list[int]]] = {}
    for lane in group:
        start = offsets[lane] // width * width
        own = lane if entry.code & EVERY_LANE else -1
        banks.setdefault(start // BANK_BYTES % BANKS, {}).setdefault((start, own), []).append(lane)
    for bank, words in sorted(banks.items()):
        if len(words) > 1:
            yield Collision(number, bank, tuple(Word(start, tuple(lanes)) for (start, _), lanes in words.items()))


def _bypass_groups(lanes: Sequence[int], offsets: Sequence[int], scratch: Sequence[int]) -> list[tuple[int, ...]]:
    """The lanes that share a wavefront; a lane that writes where an earlier one writes is in its group."""
    groups: dict[int, list[int]] = {}
    first_at: dict[int, int] = {}
    for lane in lanes:
        first = first_at.setdefault(offsets[lane], lane)
        groups.setdefault(scratch[S_WAVEFRONT // 8 + first], []).append(lane)
    return [tuple(groups[number]) for number in sorted(groups)]
