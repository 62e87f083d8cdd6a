"""Cases for inline.cu."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim import empty
from tests.programs.harness import Case
from tests.programs.words import I32, M32, M64, U32, U64, T, each, s, t, words


def prmt_modes(rng: Any) -> Any:
    a = words(rng, U32)

    def one(x: int, i: int) -> list[int]:
        y = x * 3 & M32
        b = [(y << 32 | x) >> 8 * k & 255 for k in range(8)]

        def pick(*order: int) -> int:
            return sum(b[k & 7] << 8 * n for n, k in enumerate(order))

        sel, c = x >> 3, i & 3
        general = [(b[sel >> 4 * k & 7]) if not sel >> 4 * k & 8 else (255 if b[sel >> 4 * k & 7] & 128 else 0) for k in range(4)]
        clamp_l, clamp_r = [max(k, c) for k in range(4)], [min(k, c) for k in range(4)]
        halves = (0, 1, 0, 1) if not c & 1 else (2, 3, 2, 3)
        return [
            sum(v << 8 * k for k, v in enumerate(general)),
            pick(c, c + 1, c + 2, c + 3),
            pick(c, c + 7, c + 6, c + 5),
            pick(c, c, c, c),
            pick(*clamp_l),
            pick(*clamp_r),
            pick(*halves),
            x ^ y ^ i,
        ]

    return [empty(8 * T, U32), a], {0: each(one, a, t, dtype=U32)}


def vectors(rng: Any) -> Any:
    v = rng.integers(0, 1 << 32, (32, 8), U32)
    out = np.zeros((T, 64), np.uint8)
    for i in range(T):
        row = v[i % 32].copy()
        raw = row.view(np.uint8)
        o = out[i]
        o[:16] = row[:4][::-1].copy().view(np.uint8)
        o[16:32] = row[4:8].view(U64)[::-1].copy().view(np.uint8)
        o[32:40] = row[:2].view(np.uint16)[::-1].copy().view(np.uint8)
        o[40], o[41], o[42], o[43] = raw[3], raw[2], raw[2], 0
        o[44:48] = np.array([raw[3:4].view(np.int8)[0]], I32).view(np.uint8)
        o[48:56] = np.array([raw[6:8].view(np.int16)[0]], np.int64).view(np.uint8)
        o[56:60] = raw[8:12]
        o[60:64] = np.array([raw[0]], U32).view(np.uint8)
    return [empty((T, 16), U32), v], {0: out.view(U32)}


def guards(rng: Any) -> Any:
    a = rng.integers(0, 100, T).astype(U32)
    a[:3] = 50, 51, 80

    def one(x: int) -> int:
        p, q, v = x > 50, x <= 50, 0
        v += 1 if p else 2
        v = v * 10 if q else v
        r = x < 80 and p
        if not r:
            v ^= 64
            if q:
                v = 99
        v += 1000 + (5 if x == 50 else 70000)
        v += x if r else 3
        v += 1 if x - 30 >= 0 else 2
        return v | (0x100000 if x < 50 else 0)

    return [empty(T, U32), a], {0: each(one, a, dtype=U32)}


def carries(rng: Any) -> Any:
    a = words(rng, U64, 2 * T)

    def one(x: int, y: int) -> list[int]:
        low = (x * y & M64) + x
        return [x + y, x + y >> 64, x - y, M32 if x < y else 0, low, (x * y >> 64) + (low >> 64)]

    return [empty(6 * T, U64), a], {0: each(one, a[::2], a[1::2], dtype=U64)}


def fields(rng: Any) -> Any:
    a = words(rng, U32)

    def bfe(x: int, at: int, n: int, bits: int, signed: bool) -> int:
        if n == 0:
            return 0
        v = s(x, bits) if signed else x
        return s(v >> at, n) if signed and at + n <= bits else (v >> at if signed else v >> at & (1 << n) - 1)

    def one(x: int, i: int) -> list[int]:
        i &= 31
        m = ((1 << 9) - 1) << i
        sign = x ^ M32 if x >> 31 else x
        ones = [k for k in range(3, 32) if x >> k & 1]
        wide = (x * 0x10001 << 9) & M64
        q = bfe(wide, 20, 30, 64, True)
        return [
            bfe(x, i, 7, 32, False),
            bfe(x, 5, i, 32, True),
            0x12345678 & ~m | x << i & m,
            sign.bit_length() - 1,
            32 - x.bit_length() if x else M32,
            m,
            s(x, i) if i else 0,
            ones[1] if len(ones) > 1 else M32,
            q,
            q >> 32,
        ]

    return [empty(10 * T, U32), a], {0: each(one, a, t, dtype=U32)}


def moves(rng: Any) -> Any:
    a = words(rng, U64)

    def one(x: int) -> list[int]:
        h = [x >> 16 * k & 65535 for k in range(4)]
        return [x >> 32 | x << 32, h[3] | h[1] << 16 | h[0] << 32 | h[2] << 48, x >> 32, h[0] >> 8 | (h[0] & 255) << 8]

    return [empty(4 * T, U64), a], {0: each(one, a, dtype=U64)}


def specials(rng: Any) -> Any:
    lane = t % 32
    rows = [
        lane,
        (1 << lane) - 1,
        0xFFFFFFFF ^ (1 << lane) - 1,
        t % 96 // 32,
        2,
        1,
        0,
        0,
        t % 96 + t // 96,
        1,
        0xFFFFFFFF ^ (2 << lane) - 1,
        1,
    ]
    return [empty(12 * T, U32)], {0: np.stack([np.broadcast_to(r, T) for r in rows], 1)}


def narrow(rng: Any) -> Any:
    a = words(rng, U32)

    def one(x: int) -> list[int]:
        h, k = x & 65535, x >> 16
        sh, sk = s(h, 16), s(k, 16)
        return [h + k & 65535, sh * sk >> 16, h * k, s(sh * sk + 3, 16), sh < sk, s(-min(sh >> 3, -5), 16)]

    return [empty(6 * T, U32), a], {0: each(one, a, dtype=U32)}


def cvts(rng: Any) -> Any:
    a = rng.standard_normal(T) * 10.0 ** rng.integers(-2, 5, T)
    a[:8] = 0.5, 1.5, -0.5, 2.5, -300, 1000, 65520, 3e9
    f = a.astype(np.float32).astype(np.float64)

    def one(i: int) -> list[int]:
        x, g = float(a[i]), float(f[i])
        q = int(np.floor(x))
        rz = np.float32(x)
        rz = np.nextafter(rz, np.float32(0)) if abs(float(rz)) > abs(x) else rz
        up = float(q & M64)
        up = float(np.nextafter(up, np.inf)) if int(up) < q & M64 else up
        with np.errstate(over="ignore"):
            half = int(np.float16(np.float32(x)).view(np.uint16))
        bits = np.float32(q)
        return [
            min(max(round(g), -(2**31)), 2**31 - 1) & M32,
            min(max(int(g), 0), 255),
            q,
            max(int(np.ceil(g)), 0),
            half,
            int(rz.view(U32)),
            int(bits.view(U32)),
            int(np.float64(up).view(U64)),
            min(max(min(max(int(g), -(2**31)), 2**31 - 1), -128), 127) & M32,
            int(np.rint(np.float64(x)).view(U64)),
        ]

    return [empty(10 * T, U64), a], {0: each(one, t, dtype=U64)}


def copies(rng: Any) -> Any:
    v = rng.integers(0, 1 << 20, (T, 4), U32)
    part = v.copy().view(np.uint8).reshape(T, 16)
    for i in range(T):
        part[i, i % 96 % 17 :] = 0
    u = t // 96 * 96 + (t % 96 + 1) % 96
    weights = np.array([1, 3, 5, 7], U32)
    return [empty((T, 2), U32), v], {0: np.stack([(v[u] * weights).sum(1), (part.view(U32)[u] * weights).sum(1, dtype=U32)], 1)}


def elect(rng: Any) -> Any:
    return [empty(2 * 32, U32)], {0: np.tile([M32, 1], 32)}


def exits(rng: Any) -> Any:
    x = t % 96
    return [empty(T, U32)], {0: np.where(x > 20, 1, np.where(x < 7, 2, 4))}


F = "inline"
CASES = [
    Case(F, "prmt_modes", prmt_modes),
    Case(F, "vectors", vectors),
    Case(
        F,
        "spaces",
        lambda rng: ([empty(8 * T, U32), np.zeros(4, U32)], {0: np.stack([np.broadcast_to(x, T) for x in (1, 1, 1, 0, 1, 1, t, 7)], 1)}),
    ),
    Case(F, "guards", guards),
    Case(F, "carries", carries),
    Case(F, "fields", fields),
    Case(F, "moves", moves),
    Case(F, "indirect_branch", lambda rng: ([empty(T, U32)], {0: 5 + t % 3})),
    Case(F, "specials", specials),
    Case(F, "narrow", narrow),
    Case(F, "cvts", cvts),
    Case(
        F,
        "reduce_ptx",
        lambda rng: (
            [empty(T, U32), np.zeros(4, U32), np.zeros(1, np.float32)],
            {0: np.where(t == 0, 0, 1), 1: [3 * T, T - 1, 255, 1], 2: [T / 2]},
        ),
    ),
    Case(F, "copies", copies),
    Case(F, "memory_order", lambda rng: ([empty(2, U32), np.zeros(1, U32)], {0: [9, 9]})),
    Case(F, "exits", exits),
    Case(F, "elect", elect, grid=1, block=32),
]
