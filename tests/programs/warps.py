"""Cases for warps.cu."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fasim import empty
from tests.programs.harness import Case
from tests.programs.words import I32, I64, U32, U64, T, s, t

LANES = T // 32


def small(rng: Any) -> Any:
    return rng.integers(0, 100, T).astype(I32)


def by_warp(values: Any, function: Callable[[Any], Any]) -> Any:
    """A function of one warp's 32 values, over all warps."""
    return np.concatenate([np.asarray(function(w)) for w in values.reshape(-1, 32)])


def shuffles(rng: Any) -> Any:
    v = small(rng)
    i = np.arange(32)
    sources = [
        np.full(32, 5),
        None,
        np.where(i >= 3, i - 3, i),
        np.where(i % 16 >= 2, i - 2, i),
        np.where(i + 9 < 32, i + 9, i),
        np.where(i % 4 < 3, i + 1, i),
        i ^ 17,
        i ^ 3,
        i ^ 31,
        np.full(32, 31),
    ]
    rows = []
    for source in sources:
        if source is None:
            lanes = t % 32
            rows.append(v[t - lanes + lanes // 8 * 8 + t * 7 % 8])
        else:
            rows.append(by_warp(v, lambda w, source=source: w[source]))
    return [empty(10 * T, I32), v], {0: np.stack(rows, 1)}


def shuffle_wide(rng: Any) -> Any:
    v, i = rng.standard_normal(T), np.arange(32)
    return [empty(T, np.float64), empty(T, I64), v], {0: by_warp(v, lambda w: w[np.where(i + 4 < 32, i + 4, i)]), 1: (t ^ 12) << 40 | 7}


def ballot(p: Any) -> int:
    return sum(1 << i for i in range(32) if p[i])


def votes(rng: Any) -> Any:
    v = small(rng)
    v[64:96] = v[64:96] | 64

    def warp(w: Any) -> Any:
        same = len(set(w >> 8)) == 1
        return [
            [
                ballot(w & 1),
                (w > 90).any(),
                (w > 5).all(),
                ballot((w & 3) == (x & 3)),
                0xFFFFFFFF if same else 0,
                same,
                ballot((w & 1) == (x & 1)),
                0xFFFFFFFF,
            ]
            for x in w
        ]

    return [empty(8 * T, U32), v], {0: by_warp(v, warp)}


def reductions(rng: Any) -> Any:
    v = rng.integers(-(2**31), 2**31, T).astype(I32)

    def warp(w: Any) -> Any:
        u = w.view(U32)
        row = [
            w.sum(dtype=I32).view(U32),
            w.min().view(U32),
            w.max().view(U32),
            u.min(),
            u.max(),
            np.bitwise_and.reduce(u),
            np.bitwise_or.reduce(u),
            np.bitwise_xor.reduce(u),
        ]
        return [row] * 32

    return [empty(8 * T, U32), v], {0: by_warp(v, warp)}


def masked(rng: Any) -> Any:
    v = small(rng)

    def warp(w: Any) -> Any:
        r = np.full(32, 7)
        odd = (w & 1) == 1
        r[odd] = w[odd].sum() + w[odd][0] * 1000
        two = ~odd & ((w & 2) == 2)
        for k in set(w[two] & 12):
            g = two & ((w & 12) == k)
            r[g] = w[g].max() + g.sum() * 100000
        return r + np.bitwise_xor.reduce(r)

    return [empty(T, U32), v], {0: by_warp(v, warp)}


def exited(rng: Any) -> Any:
    out = empty(T, U32)
    lanes = np.arange(32)
    mask = 0x6DB6DB6D
    m = sum(1 << i for i in range(32) if mask >> i & 1 and i & 4)
    one = np.array([(((i + 3) % 33 // 3 * 3) & 31) ** 2 + m if i % 3 != 1 else 0xFFFFFFFF for i in lanes], np.int64)
    return [out], {0: np.tile(one & 0xFFFFFFFF, LANES)}


def scan(rng: Any) -> Any:
    v = rng.integers(-99, 99, (2, 90), I32)
    return [empty((2, 90), I32), v, 90], {0: np.cumsum(v, 1)}


def bitonic(rng: Any) -> Any:
    v = rng.integers(-99, 99, (2, 128), I32)
    return [empty((2, 128), I32), v], {0: np.sort(v, 1)}


def lanes_lock(rng: Any) -> Any:
    n = 0
    for _ in range(96):
        n = s(n * 3 + 1, 32)
    return [empty(T, I32)], {0: np.full(T, n)}


def last_block(rng: Any) -> Any:
    v = rng.integers(-99, 99, 1000).astype(np.float32)
    return [empty(4), empty(1), v, 1000], {1: [v.sum()]}


def atomics32(rng: Any) -> Any:
    v = (t * 37) % 101 - 50
    u = v.astype(I32).view(U32)
    inc = dec = 0
    for _ in t:
        inc = 0 if inc >= 17 else inc + 1
        dec = 23 if dec == 0 or dec > 23 else dec - 1
    start = np.array([0xFFFFFFFF, 0, 0, 0, 0xFFFFFFFF, 0, 0, 0], U32)
    clear, sets = 0xFFFFFFFF, 0
    for x in v:
        clear &= ~(1 << (int(x) & 31))
        sets |= 1 << (int(x) & 31)
    done = [u.min(), u.max(), inc, dec, clear & 0xFFFFFFFF, sets, np.bitwise_xor.reduce(u), 2 * T]
    return [np.zeros(4, I32), start, empty(T, I32)], {
        0: [v.sum(), min(0, v.min()), max(0, v.max()), -v.sum()],
        1: np.array(done, U32),
        2: 2 * t,
    }


def atomics64(rng: Any) -> Any:
    v = t.astype(I64) * 0x123456789AB - (1 << 45)
    u = v.view(U64)
    cas = 1
    for _ in t:
        cas = (cas * 3 + 1) & ((1 << 64) - 1)
    start = np.array([0, (1 << 64) - 1, 0, 0, (1 << 64) - 1, 0, 1], U64)
    return [np.zeros(2, I64), start], {
        0: [v.min(), max(0, v.max())],
        1: np.array([u.sum(), 0, (1 << 64) - 1, np.bitwise_xor.reduce(u), u.min(), u.max(), cas], U64),
    }


def atomics_float(rng: Any) -> Any:
    h, b = np.zeros(4, np.float16), np.zeros(2, np.uint16)
    halves = np.array([T, T / 2, T / 2, 0], np.float16)
    bf = np.array([T / 2, T], np.float32)
    total = 0.25 * (t % 8).sum()
    return [np.array([0, 0, 0, 0, -1e9], np.float32), np.zeros(2), h, b, np.zeros(1, np.uint16)], {
        0: [total, 96, 96, 0, T - 21],
        1: [T / 8, 2 * T],
        2: halves,
        3: (bf.view(U32) >> 16).astype(np.uint16),
        4: [3 * T],
    }


def aggregated(rng: Any) -> Any:
    v = small(rng)
    hits = t[v % 3 == 0]
    out = np.full(T, -1, I32)
    return [np.zeros(1, I32), out, v], {0: [len(hits)], 1: np.concatenate([hits, np.full(T - len(hits), -1)])}


def shared_histogram(rng: Any) -> Any:
    data = rng.integers(0, 256, 3000, np.uint8)
    return [np.zeros(256, U32), data, 3000], {0: np.bincount(data, minlength=256)}


def block_votes(rng: Any) -> Any:
    v = small(rng)
    b = v.reshape(2, 96)
    row = (b & 1).sum(1) * 4 + (b > 3).all(1) * 2 + (b > 98).any(1)
    return [empty(T, I32), v], {0: np.repeat(row, 96)}


def named(rng: Any) -> Any:
    r = np.zeros(256, I64)
    for i in range(4):
        r = r * 3 + (np.arange(256) % 128 - 64) * 10 + i
    return [empty(256, I32)], {0: np.where(np.arange(256) % 128 < 64, 0, r)}


def warp_barrier(rng: Any) -> Any:
    x = t % 96
    even = 5 * ((x ^ 4) ^ 1)
    odd = 2 * ((x ^ 2) ^ 1)
    return [empty(T, I32)], {0: np.where(x & 1, odd, even)}


def groups(rng: Any) -> Any:
    v = t * 3 + 1
    p = np.zeros((T, 10), I64)
    for i in range(T):
        g8, g16, w = (v[i // n * n : i // n * n + n] for n in (8, 16, 32))
        r8, at = i % 8, i % 32
        b16 = sum(1 << k for k in range(16) if g16[k] & 2)
        p[i, :8] = [
            g8.sum(),
            g16.max(),
            g8[: r8 + 1].sum(),
            (w[:at] & 7).sum(),
            i % 32 // 8 * 100 + r8,
            g8[3] + g16[i % 16 ^ 5],
            i % 96 + 96000,
            int((g8 % 11 == 0).any()) + 2 * int((g8 > 30).all()) + 4 * b16,
        ]
        odd = w % 2 == v[i] % 2
        before = np.arange(32) < at
        if v[i] % 2:
            p[i, 8] = w[odd].sum() + (odd & before).sum()
            same = odd & (w % 3 == v[i] % 3)
            p[i, 9] = same.sum() * 100 + (same & before).sum()
        else:
            p[i, 9] = (odd & ((w % 4 == 0) == (v[i] % 4 == 0))).sum()
    return [empty(10 * T, I32)], {0: p}


def transpose(rng: Any) -> Any:
    v = rng.standard_normal((41, 53)).astype(np.float32)
    return [empty((53, 41)), v, 53, 41], {0: v.T.copy()}


def carved(rng: Any) -> Any:
    v = rng.integers(-99, 99, T).astype(np.float32)
    u = t // 96 * 96 + (t % 96 + 7) % 96
    return [empty(T, np.float64), v, 96], {0: v[u] * 2.0 + v[u] * 0.5 + u % 96 * 3 + (u % 96 * 5) % 256}


def stencil(rng: Any) -> Any:
    v = rng.integers(-9, 9, T).astype(np.float32)
    a = np.pad(v.reshape(2, 96), ((0, 0), (1, 1)))
    for _ in range(4):
        a[:, 1:-1] = a[:, :-2] * np.float32(0.25) + a[:, 1:-1] * np.float32(0.5) + a[:, 2:] * np.float32(0.25)
    return [empty(T), v, T, 4], {0: a[:, 1:-1]}


def fixed(out: Any, expected: Any, *more: Callable[[], Any]) -> Any:
    """A maker with fixed expectations for argument 0; the other arguments are made anew each time."""
    return lambda rng: ([out(), *(m() for m in more)], {0: expected})


def ints0() -> Any:
    return empty(T, I32)


def zero(n: int = 1, dtype: Any = I32) -> Any:
    return lambda: np.zeros(n, dtype)


def chain(rng: Any) -> Any:
    flags, out = [0] * 6, [0] * 6
    for b in range(5, -1, -1):
        out[b] = 5 if b == 5 else flags[b + 1] + b
        flags[b] = out[b] + 1
    return [np.zeros(6, I32), empty(6, I32)], {0: flags, 1: out}


def spin_grid(rng: Any) -> Any:
    return [empty(6 * 96, I32), np.zeros(1, I32), np.zeros(1, I32)], {2: [21], 1: [0]}


def ticket(rng: Any) -> Any:
    return [empty(4 * 96, I32), np.zeros(1, U32), np.zeros(1, U32)], {0: np.repeat(np.arange(4), 96), 2: [4]}


F = "warps"
CASES = [
    Case(F, "shuffles", shuffles),
    Case(F, "shuffle_wide", shuffle_wide),
    Case(F, "votes", votes),
    Case(F, "reductions", reductions),
    Case(F, "masked", masked),
    Case(F, "exited", exited),
    Case(F, "scan", scan),
    Case(F, "bitonic", bitonic, block=128, smem=512, reference=False),
    Case(F, "spin_lanes", lanes_lock, reference=False),
    Case(F, "spin_waiting", fixed(ints0, t % 96 * 2), reference=False),
    Case(F, "spin_grid", spin_grid, grid=6),
    Case(F, "ticket", ticket, grid=4),
    Case(F, "chain", chain, grid=6, block=32),
    Case(F, "last_block", last_block, grid=4, block=128),
    Case(F, "grid_barrier", fixed(ints0, (T - 1 - t) * 3, ints0, zero(1, U32))),
    Case(F, "atomics32", atomics32),
    Case(F, "atomics64", atomics64),
    Case(F, "atomics_float", atomics_float),
    Case(F, "aggregated", aggregated),
    Case(F, "shared_histogram", shared_histogram),
    Case(F, "block_votes", block_votes),
    Case(F, "named", named, block=128),
    Case(F, "bar_ptx", fixed(lambda: empty(T, U32), np.full(T, 55 * 4 + 0 + 1))),
    Case(F, "warp_barrier", warp_barrier),
    Case(F, "groups", groups),
    Case(F, "std_atomics", lambda rng: ([np.zeros(1, I32), np.zeros(1, U64), empty(T, I32)], {0: [T], 1: [5 * T], 2: np.ones(T)})),
    Case(F, "divergent_barrier", fixed(ints0, np.where((95 - t % 96) & 1, 3, 6))),
    Case(F, "transpose", transpose, grid=(2, 2), block=(32, 8)),
    Case(F, "carved", carved, smem=96 * 15),
    Case(F, "stencil", stencil, smem=98 * 8),
]
