"""The accesses that are measured: for each of 32 lanes a byte offset in shared memory, whether it takes part, and for copies a source."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

LANES = np.arange(32)
SHARED_BYTES = 8192
FULL = 0xFFFFFFFF
MASKS = [
    *(FULL, 0xFFFF, 0xFFFF0000, 1, 0x80000000, 0x55555555, 0xAAAAAAAA, 0x33333333, 0xCCCCCCCC, 0x0F0F0F0F, 0xF0F0F0F0),
    *(0xFF, 0xFF00, 0xFF0000, 0xFF00FF00, 0x00FF00FF, 0x7FFFFFFF, 0xFFFFFFFE, 0x00FFFFFF, 0x11111111, 0x00010001, 0x80000001, 0x3, 0x5),
]

#: masks of copies: the other lanes have left the kernel, since the source page shows nothing for predicated cp.async.cg
COPY_MASKS = [FULL, 0xFFFF, 0x55555555, 0x00FF00FF, 0x80000001, 0x00010107, 0x7AB3C1D5]


@dataclass
class Access:
    """One access: what is measured, under which name, and its lanes. threads: size of the block. sizes: source bytes (cp.async)."""

    op: str
    name: str
    offsets: list[int]
    mask: int = FULL
    sources: list[int] = field(default_factory=lambda: list(range(0, 512, 16)))
    sizes: list[int] = field(default_factory=list)
    threads: int = 32


def shapes(width: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Address patterns for lanes of `width` bytes."""
    limit = SHARED_BYTES // width
    few, pairs, quads = (rng.integers(0, n, 32) for n in (40, limit, limit))
    mixed = np.where(LANES < 16, pairs[LANES & ~1], quads[LANES & ~2])
    quarters = np.where(LANES & 8, pairs[LANES & ~1], quads[LANES & ~2])
    return {
        "contig": LANES * width,
        "bcast": 0 * LANES + 5 * width,
        "stride2": 2 * LANES * width,
        "pitch128": LANES * 128,
        "pair": LANES // 2 * width,
        "pair_rand": pairs[LANES & ~1] * width,
        "pair_few": few[LANES & ~1] * width,
        "xor2": (LANES & ~2) * width,
        "xor2_rand": quads[LANES & ~2] * width,
        "xor2_few": few[LANES & ~2] * width,
        "xor3_few": few[np.minimum(LANES, LANES ^ 3)] * width,
        "xor4_few": few[LANES & ~4] * width,
        "half_pair": np.where(LANES < 16, LANES & ~1, LANES) * width,
        "pair_then_xor2": mixed * width,
        "quarters": quarters * width,
        "one_odd": np.where(LANES == 31, 99, LANES & ~1) * width,
        "one_odd_low": np.where(LANES == 1, 99, LANES & ~1) * width,
        "half_same": (LANES & 15) * width,
        "rand": rng.integers(0, limit, 32) * width,
        "few": few * width,
        "perm": rng.permutation(32) * width,
    }


def accesses(op: str, width: int, count: int, seed: int, full: bool = False) -> list[Access]:
    """`count` accesses of different shape and mask; `full`: all lanes take part."""
    rng = np.random.default_rng(seed)
    result = []
    for i in range(count):
        table = shapes(width, rng)
        name = list(table)[i % len(table)]
        mask = FULL
        if not full and (i % 2 or i >= len(table)):
            mask = MASKS[int(rng.integers(len(MASKS)))] if rng.integers(3) else int(rng.integers(1 << 32))
        result.append(Access(op, name, [int(x) for x in table[name]], mask))
    return result


def bypass_pairs() -> list[Access]:
    """cp.async.cg of two lanes within a line of 128 bytes: every source and every target chunk for each."""
    result = []
    for number in range(4096):
        (s0, d0), (s1, d1) = ((number >> shift & 7, number >> shift + 3 & 7) for shift in (0, 6))
        fill = [0] * 30
        result.append(Access("LDGSTS.cg16", "two_lanes", [16 * d0, 16 * d1, *fill], 3, [16 * s0, 16 * s1, *fill]))
    return result


def bypass_accesses(count: int, seed: int) -> list[Access]:
    """cp.async.cg of many kinds: lines that differ, rows of several pitches, shifts, swizzles, duplicates, partial warps."""
    rng = np.random.default_rng(seed)
    result = []
    for i in range(count):
        kind = ("in_line", "lines", "rows", "shift", "random", "swizzle", "same_source", "blocks", "in_two")[i % 9]
        source, target = LANES.copy(), LANES.copy()
        if kind == "in_line":
            source, target = rng.integers(0, 8, 32), rng.integers(0, 8, 32)
        elif kind == "in_two":
            source, target = rng.integers(0, 16, 32), rng.permutation(32)
        elif kind == "lines":
            source, target = rng.integers(0, 16, 32), rng.integers(0, 16, 32)
        elif kind == "rows":
            width = int(rng.choice([2, 4, 8, 16]))
            source = LANES // width * int(rng.choice([8, 9, 10, 16, 64])) + LANES % width
            target = LANES // width * int(rng.choice([8, 9, 10, 12, 16, 17])) + LANES % width + int(rng.integers(8))
        elif kind == "shift":
            source, target = LANES + int(rng.integers(8)), LANES + int(rng.integers(8))
        elif kind == "random":
            source, target = rng.integers(0, 256, 32), rng.permutation(64)[:32]
        elif kind == "swizzle":
            row, column = LANES >> 3, LANES & 7
            source = row * int(rng.choice([8, 16])) + column
            target = row * 8 + (column ^ (row + int(rng.integers(8)) & 7))
        elif kind == "same_source":
            source, target = 0 * LANES + int(rng.integers(8)), rng.permutation(16)[LANES & 15]
        else:
            source, target = rng.permutation(8)[LANES & 7] + (LANES & 24), rng.permutation(8)[LANES & 7] + (LANES & 24)
        mask = COPY_MASKS[i // 9 % len(COPY_MASKS)] if kind != "in_line" else COPY_MASKS[4 + i // 9 % 3]
        result.append(Access("LDGSTS.cg16", kind, [int(16 * x) for x in target], mask, [int(16 * x) for x in source]))
    return result


def copies(op: str, width: int, count: int, seed: int) -> list[Access]:
    """Copies of different shape, mask and source."""
    rng = np.random.default_rng(seed)
    result = accesses(op, width, count, seed, full=True)
    per_line = 128 // width
    for i, access in enumerate(result):
        lines = rng.permutation(64)
        sources = [
            LANES,
            LANES + per_line // 2,
            LANES ^ 5,
            LANES % 2 * per_line + LANES // 2,
            lines[rng.integers(0, 4, 32)] * per_line + rng.integers(0, per_line, 32),
            lines[LANES // 8] * per_line + LANES % 8,
            lines[LANES] * per_line,
            LANES * (16 // width),
        ]
        access.name += f".source{i % 8}"
        access.mask = COPY_MASKS[i // 2 % len(COPY_MASKS)] if i % 2 else FULL
        access.sources = [int(width * x) for x in sources[i % 8]]
    return result


def zero_filled(op: str, width: int, count: int, seed: int) -> list[Access]:
    """Copies that read fewer bytes than they write: none, some, or different counts by lane."""
    rng = np.random.default_rng(seed)
    result = copies(op, width, count, seed)
    for i, access in enumerate(result):
        access.op += ".zfill"
        access.sources = [width * lane for lane in range(32)]
        sizes = [0 * LANES, 0 * LANES + width // 2, LANES % 2 * width, rng.integers(0, width + 1, 32), 0 * LANES + width][i % 5]
        access.sizes = [int(x) for x in sizes]
    return result


def wide_loads(count: int, seed: int) -> list[Access]:
    """128-bit loads of few lanes that all read from banks of their own, so that every merge of groups shows."""
    rng = np.random.default_rng(seed)
    result = []
    for i in range(count):
        lanes = rng.choice(32, int(rng.integers(2, 9)), replace=False)
        if i % 2:
            lanes = rng.choice(16, int(rng.integers(2, 9)), replace=False)
        chunk = rng.permutation(8)
        values = np.zeros(32, int)
        values[lanes] = chunk[np.minimum(rng.integers(0, len(lanes), len(lanes)), np.arange(len(lanes)))] if i % 3 else chunk[: len(lanes)]
        result.append(Access("LDS.128", "few_lanes", [int(16 * x) for x in values], int(sum(1 << int(lane) for lane in lanes))))
    return result
