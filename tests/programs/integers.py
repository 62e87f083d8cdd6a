"""Cases for the integer arithmetic in language.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim import empty
from tests.programs.harness import Case
from tests.programs.words import I32, I64, M32, M64, U32, U64, T, cdiv, cmod, each, s, t, words


def wide_mul(rng: Any) -> Any:
    a, b = words(rng, U64), rng.permutation(words(rng, U64))
    p = [int(x) * int(y) + (int(y) << 31) & ((1 << 128) - 1) for x, y in zip(a, b)]
    return [empty(T, U64), empty(T, U64), a, b], {0: np.array([v & M64 for v in p], U64), 1: np.array([v >> 64 for v in p], U64)}


def wide_div(rng: Any) -> Any:
    a, b = words(rng, I64), rng.permutation(words(rng, I64))
    q = each(lambda x, y: cdiv(x * 1000003 - 17, y | 1), a, b, dtype=I64)
    r = each(lambda x, y: cmod(x * 1000003 - 17, y | 1), a, b, dtype=I64)
    return [empty(T, I64), empty(T, I64), a, b], {0: q, 1: r}


def int_div(rng: Any) -> Any:
    a, b = words(rng, I32), rng.permutation(words(rng, I32))
    a[3], b[3] = 5, 9

    def one(x: int, y: int) -> list[int]:
        d = y or 3
        ux, ud = x & M32, d & M32
        return [cdiv(x, d), cmod(x, d), ux // ud, ux % ud, cdiv(x, 7), cmod(x, -13), cdiv(s(x, 16), s(d | 1, 8)), ux // 641]

    return [empty(8 * T, I32), a, b], {0: each(one, a, b, dtype=I32)}


def long_div(rng: Any) -> Any:
    a, b = words(rng, I64), rng.permutation(words(rng, I64))

    def one(x: int, y: int) -> list[int]:
        d = y or 5
        ux, ud = x & M64, d & M64
        return [cdiv(x, d), cmod(x, d), ux // ud, ux % ud]

    return [empty(4 * T, I64), a, b], {0: each(one, a, b, dtype=I64)}


def bits(rng: Any) -> Any:
    a, b = words(rng, U32), rng.permutation(words(rng, U32))

    def one(x: int, y: int) -> list[int]:
        sx, sy, both = s(x, 32), s(y, 32), y << 32 | x
        dot = sum(s(x >> 8 * i, 8) * s(y >> 8 * i, 8) for i in range(4))
        dp2 = sum(s(x >> 16 * i, 16) * s(y >> 8 * i, 8) for i in range(2))
        return [
            x.bit_count(),
            32 - x.bit_length(),
            (x & -x).bit_length(),
            int(f"{x:032b}"[::-1], 2),
            x & 0xFFFF | (y & 0xFFFF) << 16,
            (both << (y & 31)) >> 32,
            both >> (x & 31),
            sx * sy >> 32,
            x * y >> 32,
            abs(sx - sy) + 7,
            abs(x - y) + 9,
            x + y >> 1,
            sx + sy + 1 >> 1,
            dot + 5,
            (both << min(y & 63, 32)) >> 32,
            dp2 + 1,
        ]

    return [empty(16 * T, U32), a, b], {0: each(one, a, b, dtype=U32)}


def bits64(rng: Any) -> Any:
    a, b = words(rng, U64), rng.permutation(words(rng, U64))

    def one(x: int, y: int) -> list[int]:
        n = y & 63
        return [
            x.bit_count(),
            64 - x.bit_length(),
            (x & -x).bit_length(),
            int(f"{x:064b}"[::-1], 2),
            x * y >> 64,
            s(x, 64) * s(y, 64) >> 64,
            x << n | x >> (64 - n & 63),
            s(x, 64) >> n,
        ]

    return [empty(8 * T, U64), a, b], {0: each(one, a, b, dtype=U64)}


def simd_video(rng: Any) -> Any:
    a, b = words(rng, U32), rng.permutation(words(rng, U32))
    a4, b4, a2, b2 = (x.view(k).reshape(T, -1).astype(I32) for x, k in ((a, np.uint8), (b, np.uint8), (a, np.uint16), (b, np.uint16)))
    s4a, s4b, s2a, s2b = (x.view(k).reshape(T, -1).astype(I32) for x, k in ((a, np.int8), (b, np.int8), (a, np.int16), (b, np.int16)))

    def back(x: Any) -> Any:
        return (
            np.ascontiguousarray(x.astype(np.int64) & (255 if x.shape[1] == 4 else 65535))
            .astype(np.uint8 if x.shape[1] == 4 else np.uint16)
            .view(U32)
            .reshape(-1)
        )

    rows = [
        a4 + b4,
        a2 - b2,
        np.maximum(s4a, s4b),
        np.minimum(a2, b2),
        abs(a4 - b4),
        np.where(a4 > b4, 255, 0),
        np.minimum(a4 + b4, 255),
        np.clip(s2a - s2b, -32768, 32767),
    ]
    return [empty(8 * T, U32), a, b], {0: np.stack([back(r) for r in rows], 1)}


def crc32(rng: Any) -> Any:
    import zlib

    data = rng.integers(0, 256, (T, 21), np.uint8)
    return [empty(T, U32), data, 21], {0: [zlib.crc32(row.tobytes()) for row in data]}


def sha_like(rng: Any) -> Any:
    with np.errstate(over="ignore"):
        k = [U64(12345) + t.astype(U64) * U64(0x9E3779B97F4A7C15) * U64(i + 1) for i in range(4)]
        for _ in range(20):
            x = k[1] << U64(17)
            k[2] = k[2] ^ k[0]
            k[3] = k[3] ^ k[1]
            k[1] = k[1] ^ k[2]
            k[0] = k[0] ^ k[3]
            k[2] = k[2] ^ x
            k[3] = k[3] << U64(45) | k[3] >> U64(19)
        return [empty(T, U64), 12345], {0: k[0] + k[3]}


F = "language"
CASES = [
    Case(F, "wide_mul", wide_mul),
    Case(F, "wide_div", wide_div, reference=False),
    Case(F, "int_div", int_div),
    Case(F, "long_div", long_div, reference=False),
    Case(F, "bits", bits),
    Case(F, "bits64", bits64),
    Case(F, "simd_video", simd_video),
    Case(F, "crc32", crc32, reference=False),
    Case(F, "sha_like", sha_like),
]
