"""Inputs for rows of the instruction table: corner values, cross products of corners and random bits, from a fixed seed.

`sources(row)` gives, for every register source of a row, an array [round, lane] of bit patterns. The same call gives the same values
everywhere, so that recordings need to hold only what the hardware answered. Rows of one signature and family share their inputs.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from fasim.isa.table import Arg, Row

VERSION = 1
SEED = 20261129
LANES = 32
ROUNDS, MATRIX_ROUNDS = 128, 48
FULL = 0xFFFFFFFF
Patterns = Any  # np.ndarray of uint64
WIDTH = {"pred": 1, "u8": 8, "s8": 8, "u16": 16, "s16": 16, "u32": 32, "s32": 32, "u64": 64, "s64": 64, "f32": 32, "f64": 64}

# --- corner values -------------------------------------------------------------------------------------------------------------

SMALL = [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 63, 64, 65, 127, 128, 129, 255, 256, 257, 258]
F16 = [0, 1, 2, 3, 0x1FF, 0x200, 0x3FF, 0x400, 0x401, 0x7FF, 0x800, 0x0C00, 0x1000, 0x1001, 0x13FF, 0x1400, 0x1800, 0x2C00]
F16 += [0x37FF, 0x3800, 0x3801, 0x3BFF, 0x3C00, 0x3C01, 0x3E00, 0x4000, 0x4001, 0x4100, 0x4200, 0x4700, 0x4C00, 0x5BF8, 0x6400]
F16 += [0x77FF, 0x7800, 0x7BFE, 0x7BFF, 0x7C00, 0x7C01, 0x7D23, 0x7DFF, 0x7E00, 0x7E01, 0x7FFF]
BF16 = [0, 1, 2, 3, 0x3F, 0x40, 0x7F, 0x80, 0x81, 0xFF, 0x100, 0x1F80, 0x2000, 0x3B00, 0x3B80, 0x3B81, 0x3EFF, 0x3F00, 0x3F7F]
BF16 += [0x3F80, 0x3F81, 0x3FC0, 0x4000, 0x4001, 0x4040, 0x40A0, 0x42FE, 0x4300, 0x437F, 0x4700, 0x477F, 0x4F00, 0x5F00, 0x7EFF]
BF16 += [0x7F00, 0x7F7E, 0x7F7F, 0x7F80, 0x7F81, 0x7FA0, 0x7FBF, 0x7FC0, 0x7FC1, 0x7FFF]
F32 = [0, 1, 2, 3, 0x3FFFFF, 0x400000, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x1000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x40000000]
F32 += [0x7EFFFFFF, 0x7F000000, 0x7F7FFFFE, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FA12345, 0x7FBFFFFF, 0x7FC00000, 0x7FD23456, 0x7FFFFFFF]
F32_MORE = [0x33000000, 0x33000001, 0x33800000, 0x32FFFFFF, 0x387FE000, 0x38800000, 0x477FE000, 0x477FEFFF, 0x477FF000, 0x477FFFFF]
F32_MORE += [0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4B7FFFFF, 0x4EFFFFFF, 0x4F000000, 0x4F000001, 0x4F7FFFFF, 0x4F800000, 0x5EFFFFFF]
F32_MORE += [0x5F000000, 0x5F000001, 0x5F7FFFFF, 0x5F800000, 0x42FC0000, 0x42FE0000, 0x42FFFFFF, 0x43000000, 0x43150000, 0x43160000]
F32_MORE += [0x437F0000, 0x437F8000, 0x43800000, 0x46FFFE00, 0x46FFFF00, 0x47000000, 0x477FFF00, 0x477FFF80, 0x47800000, 0x3EFFFFFF]
F32_MORE += [0x3F000000, 0x3F000001, 0x3FC00000, 0x40200000, 0x40600000, 0x43DC0000, 0x43E00000, 0x43E80000, 0x43F00000, 0x47600000]
F32_MORE += [
    0x47700000,
    0x3A800000,
    0x3B000000,
    0x37800000,
    0x37000000,
    0x40490FDB,
    0x3FC90FDB,
    0x41490FDB,
    0x47C35000,
    0x7E800000,
    0x7E800001,
]
F64 = [0, 1, 2, 3, 1 << 51, (1 << 52) - 1, 1 << 52, (1 << 52) + 1, 0x3FEFFFFFFFFFFFFF, 0x3FF0000000000000, 0x3FF0000000000001]
F64 += [0x4000000000000000, 0x7FD0000000000000, 0x7FEFFFFFFFFFFFFE, 0x7FEFFFFFFFFFFFFF, 0x7FF0000000000000, 0x7FF0000000000001]
F64 += [0x7FF4123456789ABC, 0x7FF7FFFFFFFFFFFF, 0x7FF8000000000000, 0x7FF8000000000001, 0x7FFABCDEF0123456, 0x7FFFFFFFFFFFFFFF]
F64_MORE = [0x36A0000000000000, 0x36A0000000000001, 0x3690000000000000, 0x3690000000000001, 0x380FFFFFF0000000, 0x380FFFFFEFFFFFFF]
F64_MORE += [0x380FFFFFC0000000, 0x380FFFFFE0000000, 0x380FFFFFDFFFFFFF, 0x380FFFFFE0000001, 0x3810000000000000, 0x47EFFFFFE0000000]
F64_MORE += [0x47EFFFFFEFFFFFFF, 0x47EFFFFFF0000000, 0x3FE0000000000000, 0x3FDFFFFFFFFFFFFF, 0x3FF8000000000000, 0x4004000000000000]
F64_MORE += [0x405FC00000000000, 0x4060000000000000, 0x406FE00000000000, 0x406FF00000000000, 0x40DFFFC000000000, 0x40E0000000000000]
F64_MORE += [0x41DFFFFFFFC00000, 0x41DFFFFFFFE00000, 0x41E0000000000000, 0x41EFFFFFFFE00000, 0x41EFFFFFFFF00000, 0x41F0000000000000]
F64_MORE += [0x43DFFFFFFFFFFFFF, 0x43E0000000000000, 0x43EFFFFFFFFFFFFF, 0x43F0000000000000, 0x40EFFC0000000000, 0x40EFFE0000000000]
F64_MORE += [0x3E60000000000000, 0x3E70000000000000, 0x3F10000000000000, 0x3F0FFC0000000000, 0x3FF0000010000000, 0x3FF0020000000000]


def _signed(values: list[int], bits: int) -> list[int]:
    return values + [v | 1 << (bits - 1) for v in values]


def _integers(bits: int) -> list[int]:
    top, mask = 1 << (bits - 1), (1 << bits) - 1
    near = [top - 2, top - 1, top, top + 1, mask - 1, mask, mask // 3, mask - mask // 3, 0xFF00FF00, 0x00FF00FF, 0x7FFF8000, 0x80007FFF]
    near += [-x & mask for x in (2, 3, 31, 32, 128, 129, 32768, 32769)] + [
        0x7FFF,
        0x8000,
        0xFFFF,
        0x10000,
        0x7FFFFFFF,
        0x80000000,
        0xFFFFFFFF,
    ]
    return list(dict.fromkeys(v & mask for v in SMALL + near))


#: by family: bits, the corners that are combined with each other, all corners
CORNERS: dict[str, tuple[int, list[int], list[int]]] = {
    "f32": (32, _signed(F32, 32), _signed(F32 + F32_MORE + [e << 23 for e in range(1, 255)], 32)),
    "f64": (64, _signed(F64, 64), _signed(F64 + F64_MORE + [e << 52 for e in range(1, 2047, 9)], 64)),
    "f16": (16, _signed(F16, 16), _signed(F16, 16)),
    "bf16": (16, _signed(BF16, 16), _signed(BF16, 16)),
    **{f"i{n}": (n, _integers(n), _integers(n) + [1 << i for i in range(n)] + [(1 << i) - 1 for i in range(n)]) for n in (8, 16, 32, 64)},
}
FRACTION = {"f32": 23, "f64": 52, "f16": 10, "bf16": 7}


def mantissa_ties(family: str, n: int, rng: Any) -> Patterns:
    """Random floats whose fraction ends, in a random place, in 1000..., or one more or less."""
    bits, fraction = CORNERS[family][0], FRACTION[family]
    value = rng.integers(0, 1 << bits, n, np.uint64, endpoint=False) if bits < 64 else rng.integers(0, 2**64, n, np.uint64)
    keep = rng.integers(0, fraction + 1, n).astype(np.uint64)
    half = np.uint64(1) << keep
    value = (value & ~(half * np.uint64(2) - np.uint64(1))) | half
    return value + rng.integers(-1, 2, n).astype(np.int64).astype(np.uint64) & np.uint64((1 << bits) - 1)


def scattered(family: str, n: int, rng: Any) -> Patterns:
    """Random patterns: raw bits, exponents near the middle, ties; for integers also small ones and runs of bits."""
    bits = CORNERS[family][0]
    mask = np.uint64((1 << bits) - 1)
    raw = rng.integers(0, 2**64, n, np.uint64) & mask
    kind = rng.integers(0, 4, n)
    if family in FRACTION:
        fraction = FRACTION[family]
        bias = (1 << (bits - fraction - 2)) - 1
        spread = min(bias - 1, 70)
        exponent = (bias + rng.integers(-spread, spread + 1, n)).astype(np.uint64) << np.uint64(fraction)
        middle = raw & np.uint64((1 << fraction) - 1 | 1 << (bits - 1)) | exponent
        return np.select([kind == 0, kind == 1], [raw, mantissa_ties(family, n, rng)], middle)
    shift = rng.integers(0, bits, n).astype(np.uint64)
    small = raw >> shift
    run = ((small | np.uint64(1)) << (rng.integers(0, bits, n).astype(np.uint64) % np.uint64(bits))) + rng.integers(-1, 2, n).astype(
        np.uint64
    )
    return np.select([kind == 0, kind == 1, kind == 2], [raw, small, np.uint64(0) - small], run) & mask


def family(type_: str, mnemonic: str) -> str:
    """Which corners suit an operand."""
    if type_ in ("f32", "f64", "pred"):
        return type_
    last = mnemonic.rsplit(".", 1)[-1].removesuffix("x2")
    if type_ in ("u16", "u32") and last in ("f16", "bf16"):
        return last
    return "i" + type_[1:]


def _tuples(families: tuple[str, ...], n: int, rng: Any) -> list[Patterns]:
    """n tuples of operands: every pair (or triple) of corners as far as half of n goes, then random ones; floats often close."""
    if len(families) == 1:
        corners = np.array(CORNERS[families[0]][2], np.uint64)[: n * 3 // 4]
        return [np.concatenate([corners, scattered(families[0], n - len(corners), rng)])]
    room = n // 2
    side = int(room ** (1 / len(families)))
    chosen = []
    for f in families:
        all_ = np.array(CORNERS[f][1], np.uint64)
        chosen.append(all_ if len(all_) <= side else rng.permutation(all_)[:side])
    grid = [g.ravel() for g in np.meshgrid(*chosen, indexing="ij")]
    rest = n - len(grid[0])
    columns = []
    for f, g in zip(families, grid):
        values = scattered(f, rest, rng)
        pick = rng.random(rest) < 0.25
        values = np.where(pick, rng.choice(np.array(CORNERS[f][2], np.uint64), rest), values)
        columns.append(np.concatenate([g, values]))
    _relate(families, columns, len(grid[0]), rng)
    return columns


def _relate(families: tuple[str, ...], columns: list[Patterns], start: int, rng: Any) -> None:
    """Make some of the random operands depend on each other: equal, near, products at the ends of the exponents, sums that cancel."""
    a, b = columns[0], columns[1]
    n = len(a) - start
    kind, at = rng.integers(0, 8, n), np.arange(start, len(a))
    if families[0] == families[1]:
        f = families[0]
        bits = CORNERS[f][0]
        mask = np.uint64((1 << bits) - 1)
        near = at[kind == 0]
        b[near] = a[near] + rng.integers(-2, 3, len(near)).astype(np.uint64) & mask
        if f in FRACTION:
            fraction = FRACTION[f]
            bias = (1 << (bits - fraction - 2)) - 1
            exponents, top = 2 * bias + 1, np.uint64(1 << (bits - 1))
            for select, target in ((at[kind == 1], bias + 1), (at[kind == 2], 3 * bias)):  # product at 2**(1-bias), at 2**bias
                e = (a[select] >> np.uint64(fraction)).astype(np.int64) & exponents
                other = np.clip(target - e + rng.integers(-3, 3, len(select)), 1, exponents - 1).astype(np.uint64)
                b[select] = b[select] & np.uint64((1 << fraction) - 1) | other << np.uint64(fraction) | b[select] & top
            for select, target in ((at[kind == 3], 0), (at[kind == 4], 2 * bias)):  # quotient at the ends
                e = (a[select] >> np.uint64(fraction)).astype(np.int64) & exponents
                other = np.clip(e - target + bias + rng.integers(-3, 3, len(select)), 1, exponents - 1).astype(np.uint64)
                b[select] = b[select] & np.uint64((1 << fraction) - 1) | other << np.uint64(fraction) | b[select] & top
            opposite = at[kind == 5]
            b[opposite] = (a[opposite] ^ top) + rng.integers(-2, 3, len(opposite)).astype(np.uint64) & mask
    if len(columns) == 3 and families[0] == families[2] and families[0] in ("f32", "f64"):
        float_, word = {"f32": (np.float32, np.uint32), "f64": (np.float64, np.uint64)}[families[0]]
        with np.errstate(all="ignore"):
            product = a.astype(word).view(float_) * b.astype(word).view(float_)
        close = at[rng.integers(0, 3, n) == 0]
        wide = np.uint64(1 << (CORNERS[families[0]][0] - 1))
        steps = rng.choice(np.array([0, 0, 1, 2**64 - 1, 1 << 20, 1 << 24, 1 << 52], np.uint64), len(close))
        columns[2][close] = (product.view(word).astype(np.uint64)[close] ^ wide) + steps & np.uint64(2 * int(wide) - 1)


# --- the register sources of a row ---------------------------------------------------------------------------------------------


def register_sources(row: Row) -> list[Arg]:
    """The sources that are registers, vectors flattened; `active` and immediates left out."""
    return [a for a in row.sources for _ in range(max(a.count, 1)) if a.type_ != "imm" and a.name != "active"]


def is_matrix(row: Row) -> bool:
    """Whether the row multiplies matrices."""
    return row.name.startswith(("mma.", "wmma."))


def rounds(row: Row) -> int:
    """Warps that execute the row."""
    types = [a.type_ for a in register_sources(row)]
    if types in (["u16"], ["s16"]):
        return 65536 // LANES  # every value
    return MATRIX_ROUNDS if is_matrix(row) else ROUNDS


def plan(row: Row) -> tuple[Callable[..., list[Patterns]], tuple[Any, ...]]:
    """The function that makes a row's inputs, and its arguments: where both are equal, so are the inputs."""
    args = register_sources(row)
    if is_matrix(row):
        return _matrices, (matrix_type(row), tuple((a.name, a.type_, max(a.count, 1)) for a in row.sources if a.type_ != "imm"))
    if any(a.name == "active" for a in row.sources):
        return _collective, (tuple((a.name, a.type_) for a in args),)
    return _registers, (tuple(family(a.type_, row.mnemonic) for a in args), tuple(WIDTH[a.type_] for a in args), rounds(row))


def sources(row: Row) -> list[Patterns]:
    """For each register source an array [round, lane] of patterns (predicates 0 or 1)."""
    make, arguments = plan(row)
    return make(*arguments)


@functools.lru_cache(8)
def _registers(families: tuple[str, ...], widths: tuple[int, ...], count: int) -> list[Patterns]:
    rng = np.random.default_rng([SEED, zlib.crc32(repr((families, widths)).encode())])
    n = count * LANES
    if count == 65536 // LANES:
        return [np.arange(n, dtype=np.uint64).reshape(count, LANES)]
    numbers = [i for i, f in enumerate(families) if f != "pred"]
    result: list[Patterns] = [rng.integers(0, 2, n).astype(np.uint64) for _ in families]
    packed = [i for i in numbers if families[i] in ("f16", "bf16") and widths[i] == 32]
    if numbers and (packed or len(numbers) <= 3):
        low = _tuples(tuple(families[i] for i in numbers), n, rng)
        if packed:
            high = [c[rng.permutation(n)] if len(numbers) == 1 else np.roll(c, 777) for c in low]
            low = [x | y << np.uint64(16) for x, y in zip(low, high)]
        for i, column in zip(numbers, low):
            result[i] = column
    elif numbers:
        for i in numbers:
            column = scattered(families[i], n, rng)
            corners = np.array(CORNERS[families[i]][2], np.uint64)
            result[i] = np.where(rng.random(n) < 0.5, rng.choice(corners, n), column)
    return [r.reshape(count, LANES) for r in result]


# --- collectives ---------------------------------------------------------------------------------------------------------------

#: lanes that execute, by round; the member mask is the same, or two masks that share the warp
ACTIVE = [FULL, FULL, FULL, 0x0000FFFF, 0xFFFF0000, 0x5A5AFF00, 0x00000400, 0x80000001, 0xF0F0F0F0, 0x7FFFFFFE]
SPLIT = [None, None, 0x0000FFFF, None, None, 0x5A5A0000, None, 0x80000000, 0xA0A0A0A0, None]


def active_masks(count: int = ROUNDS) -> Patterns:
    """The lanes that execute in each round."""
    return np.array([ACTIVE[r % len(ACTIVE)] for r in range(count)], np.uint64)


@functools.lru_cache(8)
def _collective(names: tuple[tuple[str, str], ...]) -> list[Patterns]:
    rng = np.random.default_rng([SEED, zlib.crc32(repr(names).encode())])
    result = []
    for name, type_ in names:
        bits = WIDTH[type_]
        if name == "mask":
            values = np.zeros((ROUNDS, LANES), np.uint64)
            for r in range(ROUNDS):
                active, split = ACTIVE[r % len(ACTIVE)], SPLIT[r % len(ACTIVE)]
                for lane in range(LANES):
                    values[r, lane] = active if split is None else split & active if split >> lane & 1 else active & ~split
        elif type_ == "pred":
            chance = rng.choice([0.0, 0.03, 0.5, 0.97, 1.0], (ROUNDS, 1))
            values = (rng.random((ROUNDS, LANES)) < chance).astype(np.uint64)
        elif name == "b":
            values = rng.integers(0, 64, (ROUNDS, LANES)).astype(np.uint64)
            uniform = rng.random(ROUNDS) < 0.5
            values[uniform] = values[uniform][:, :1]
            values |= (rng.random((ROUNDS, LANES)) < 0.05).astype(np.uint64) << np.uint64(31)
        elif name == "c":
            values = rng.choice(
                np.array([0, 31, 0x1F, 0x181F, 0x1C1F, 0x1800, 0x101F, 0x1007, 0x0003, 0xFFFF, 0x1F1F], np.uint64), (ROUNDS, 1)
            )
            values = np.where(rng.random((ROUNDS, 1)) < 0.2, rng.integers(0, 1 << 13, (ROUNDS, LANES)).astype(np.uint64), values)
        else:
            values = scattered(f"i{bits}", ROUNDS * LANES, rng).reshape(ROUNDS, LANES)
            few = rng.random(ROUNDS) < 0.6  # equal values in many lanes
            values[few] = rng.choice(values[few][:, :3].ravel(), (int(few.sum()), LANES))
            one = rng.random(ROUNDS) < 0.2
            values[one] = values[one][:, :1]
        result.append(np.ascontiguousarray(np.broadcast_to(values, (ROUNDS, LANES))))
    return result


# --- matrices ------------------------------------------------------------------------------------------------------------------


def matrix_type(row: Row) -> str:
    """The type of the elements of A."""
    parts = row.mnemonic.split(".")
    known = ("bf16", "tf32", "s8", "u8", "s4", "u4", "b1", "f64")
    if row.name.startswith("mma."):
        types = [p for p in parts[6:] if p in (*known, "f16", "f32", "s32")]
        return types[1]
    return next((p for p in parts if p in known), "f16")


def _matrix_values(type_: str, shape: tuple[int, ...], mode: int, rng: Any) -> Patterns:
    """Elements of one matrix by mode: small integers, ordinary, wide, tiny, raw bits, ordinary with rare special values."""
    bits = {"f16": 16, "bf16": 16, "f64": 64}.get(type_, 32)
    mask = np.uint64((1 << bits) - 1)
    raw = rng.integers(0, 2**64, shape, np.uint64)
    if type_ not in ("f16", "bf16", "f32", "tf32", "f64"):
        if type_ == "s32":
            limits = np.array([0x7FFFFFFF, 0x80000000, 0x7FFFFF00, 0x800000FF, 0], np.uint64)
            return [raw & np.uint64(0xFFFF), rng.choice(limits, shape), raw & mask][mode % 3]
        extreme = rng.choice(np.array([0x80808080, 0x7F7F7F7F, 0xFFFFFFFF, 0x88888888, 0x77777777, 0], np.uint64), shape)
        return [raw & mask, extreme, raw & mask & np.uint64(0x0F0F0F0F)][mode % 3]
    if mode == 4:
        return raw & mask
    if mode == 0:
        x = rng.integers(-8, 9, shape).astype(np.float64)
    else:
        x = rng.standard_normal(shape)
        x *= 2.0 ** rng.integers(*{1: (-1, 2), 2: (-14, 15), 3: (-24, -8), 5: (-2, 3)}[mode], shape)
        if mode == 3 and type_ != "f16":
            x *= 2.0**-55
        if mode == 3 and type_ == "f64":
            x *= 2.0**-460
    if type_ == "f16":
        patterns = x.astype(np.float16).view(np.uint16).astype(np.uint64)
    elif type_ == "f64":
        patterns = x.view(np.uint64)
    else:
        patterns = x.astype(np.float32).view(np.uint32).astype(np.uint64)
        patterns = patterns >> np.uint64(16) if type_ == "bf16" else patterns
    if mode == 5:
        corners = CORNERS["f32" if type_ == "tf32" else type_][1]
        patterns = np.where(rng.random(shape) < 0.01, rng.choice(np.array(corners, np.uint64), shape), patterns)
    return patterns


@functools.lru_cache(16)
def _matrices(element: str, operands: tuple[tuple[str, str, int], ...]) -> list[Patterns]:
    rng = np.random.default_rng([SEED, zlib.crc32(repr((element, operands)).encode())])
    result = []
    for name, register, count in operands:
        type_ = element if name in "ab" else {"u32": "f16"}.get(register, register)
        parts = []
        for r in range(MATRIX_ROUNDS):
            mode = r % 6
            if type_ in ("f16", "bf16"):
                low, high = (_matrix_values(type_, (count, LANES), mode, rng) for _ in range(2))
                parts.append(low | high << np.uint64(16))
            else:
                parts.append(_matrix_values(type_, (count, LANES), mode, rng))
        result += list(np.stack(parts, 1))
    return result
