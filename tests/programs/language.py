"""Cases for language.cu: control flow, memory, objects; its integer arithmetic is in integers.py."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim import empty
from tests.programs.harness import Case
from tests.programs.words import I32, I64, M32, U32, U64, T, cmod, s, t


def ints(function: Any, *, n: int = T, dtype: Any = I32, args: tuple[Any, ...] = ()) -> Any:
    """A maker for kernels whose output depends on the thread's number only."""

    def make(rng: Any) -> Any:
        return [empty(n, dtype), *args], {0: [function(int(i)) for i in range(n)]}

    return make


def collatz(i: int) -> int:
    x, n = i + 1, 0
    while x != 1:
        x, n = (3 * x + 1 if x & 1 else x >> 1), n + 1
    return n


def nested_loops(i: int, m: int = 11) -> int:
    r = 0
    for a in range(i % 9):
        if a == 5:
            continue
        for j in range(a, m):
            if j * i % 7 == 3:
                break
            if j & 1:
                continue
            k = j
            while True:
                r += k ^ i
                k -= 2
                if k <= 0:
                    break
        if r > 400:
            return r
    return r + 10000


def irreducible(x: int, n: int = 9) -> int:
    r, i, at = 0, 0, ("middle", "bottom", "top")[x % 3]
    while True:
        if at == "top":
            r, at = s(r + 1, 32), "middle"
        if at == "middle":
            r = s(r * 3 + x, 32)
            if cmod(r, 5) != 0:
                i += 1
        r ^= i
        i += 1
        if i >= n:
            return r
        at = "middle" if r & 1 else "top"


def ackermann(a: int, b: int) -> int:
    return b + 1 if a == 0 else ackermann(a - 1, 1) if b == 0 else ackermann(a - 1, ackermann(a, b - 1))


def towers(i: int) -> int:
    m = 0

    def hanoi(n: int, a: int, b: int, c: int) -> None:
        nonlocal m
        if n:
            hanoi(n - 1, a, c, b)
            m = m * 5 + a * 3 + b
            hanoi(n - 1, c, b, a)

    hanoi(i % 6, 0, 1, 2)
    return s(m, 32)


def local_sort(rng: Any) -> Any:
    data = rng.integers(-50, 50, (T, 24), I32)
    return [empty((T, 24), I32), data], {0: np.sort(data, 1)}


def local_histogram(rng: Any) -> Any:
    data = rng.integers(0, 1000, 256, I32)
    rows = [np.bincount(data[(i * 7 + np.arange(40)) & 255] & 15, minlength=16) for i in t]
    return [empty(T, I32), data], {0: [int(h.argmax()) * 256 + int(h.max()) for h in rows]}


def sieve(i: int) -> int:
    return sum(1 for p in range(2, 64) if all(p % q for q in range(2, p)) and p <= 2 + i)


def objects(i: int) -> float:
    w = [1.0, 2.0, 3.0, 4.0, float(i)]
    n = 3 + i % 3
    area = [(i * 0.5) ** 2, sum(w[:n]), -1.0]
    return area[i % 3] + [4, n, 0][i // 3 % 3] * 10 + i % 3 + 1 + 101


def lambdas(rng: Any) -> Any:
    c, k, x = rng.standard_normal(4), 1.75, t * 0.25
    poly = np.zeros(1, "V32")
    poly.view(np.float64)[:] = c
    return [empty(T, np.float64), poly[0], k], {0: [_horner(c, k, float(v)) for v in x]}


def _fma(a: float, b: float, c: float) -> float:
    from fractions import Fraction

    return float(Fraction(a) * Fraction(b) + Fraction(c))


def _horner(c: Any, k: float, x: float) -> float:
    r = float(c[3])
    for i in (2, 1, 0):
        r = _fma(r, x, float(c[i]) * k)  # the compiler contracts the inner product
    return r


def structs(rng: Any) -> Any:
    layout = np.dtype([("a", "i1"), ("b", "i2"), ("c", "i4"), ("d", "f8"), ("e", "i1", 3), ("f", "f4", 2), ("g", "i8")], align=True)
    value = np.zeros(
        1,
        np.dtype(
            {
                "names": list(layout.names or ()),
                "formats": ["i1", "i2", "i4", "f8", ("i1", 3), ("f4", 2), "i8"],
                "offsets": [0, 2, 4, 8, 16, 24, 32],
                "itemsize": 40,
            }
        ),
    )
    value[0] = (3, -200, 77, 2.5, (1, 2, 3), (1.5, -2.5), 1 << 40)
    result = []
    for i in range(T):
        a, b, c, d, e, f, g = 3, -200, 77, 2.5, [1, 2, 3], [1.5, -2.5], 1 << 40
        for n in (i, i + 1):
            a, b, c = s(a + n, 8), s(b * 3, 16), c ^ n
            d += b
            e[n % 3] = 7
            f[0] = f[1] + n
            g -= c
        result.append(a + b * 2.0 + c * 3.0 + d + e[0] + e[1] * 5.0 + e[2] * 7.0 + f[0] + float(g))
    return [empty(T, np.float64), value[0]], {0: result}


def pointers(i: int) -> float:
    x = float(i + 1)
    for k in range(4):
        x = (x * 0.5, x * x, -x)[(i + k) % 3]
    return x


def relocated(i: int) -> int:
    return ([0, 1, 4, 9, 16, 25, 36, 49], [1, 8, 27, 64, 125, 216, 343])[i & 1][i % 7] * 100 + (5, 2, 0)[i % 3]


def vector_types(rng: Any) -> Any:
    a = rng.integers(-9, 9, (T, 4)).astype(np.float32)
    b, c = rng.integers(0, 256, (T, 4), np.uint8), rng.integers(-3000, 3000, (T, 2), np.int16)
    o = np.stack([a[:, 3] + b[:, 0], a[:, 2] - b[:, 1], a[:, 1] * c[:, 0], a[:, 0] + c[:, 1]], 1)
    return [empty((T, 4)), a, b, c, empty((T, 2), np.float64)], {
        0: o.astype(np.float32),
        4: np.stack([a[:, 0].astype(np.float64), c[:, 0] / 3.0], 1),
    }


def switch_dense(i: int, n: int = 11) -> int:
    r = n
    for k in range(6):
        c = (i + k * r) & 15
        if c == 0:
            r += 3
        elif c == 1:
            r = r * 5 ^ i
        elif c == 2:
            r ^= i
        elif c == 3:
            r = -r
        elif c == 4:
            r <<= 1
        elif c == 5:
            r = (r | 64) - k
        elif c in (6, 7):
            r -= k
        elif c == 9:
            r += k
        elif c == 12:
            r ^= 0x55
        elif c == 15:
            return s(r, 32)
        else:
            r += 1
        r = s(r, 32)
    return r


def shape3d(rng: Any) -> Any:
    w, h, d = 9, 7, 5
    z, y, x = np.meshgrid(range(d), range(h), range(w), indexing="ij")
    value = x % 4 + 10 * (y % 3) + 100 * (z % 3) + 1000 * (x // 4) + 10000 * (y // 3) + 100000 * (z // 3) + 1000000 * 6
    return [empty((d, h, w), I32), w, h, d], {0: value}


def bitfields(rng: Any) -> Any:
    x = 0xDEADBEEF
    rows = []
    for i in range(T):
        a, b, c, d, e = (x + i) & 31, (x * i) & 2047, (x ^ i) & 65535, s(i * 3, 7), x >> 3 & (1 << 25) - 1
        rows.append([a | ((b + a) & 2047) << 5 | c << 16, (d * 3 + e) & M32])
    return [empty(2 * T, U32), x], {0: np.array(rows, U32)}


def float_bits(rng: Any) -> Any:
    a, b = (rng.standard_normal(T) * 1000).astype(np.float32), rng.standard_normal(T) * 1e6
    a[:4], b[:3] = (np.inf, -np.inf, 3e9, -0.5), (1e300, -1e300, -0.25)
    q = b.view(U64)
    rows = np.stack(
        [
            a.view(U32),
            np.trunc(np.clip(a.astype(np.float64), -(2**31), 2**31 - 1)).astype(I64),
            np.ceil(np.clip(a.astype(np.float64), 0, 2**32 - 1)).astype(I64),
            np.floor(np.clip(b, -(2**31), 2**31 - 1)).astype(I64),
            q >> U64(32),
            q & U64(M32),
        ],
        1,
    )
    return [empty(6 * T, U32), a, b], {0: rows.astype(np.float64).astype(I64) & M32}


def saxpy_ptr(rng: Any) -> Any:
    y, x = rng.integers(-99, 99, 500).astype(np.float32), rng.integers(-99, 99, 500).astype(np.float32)
    return [y.copy(), x, 3.0, 500, True], {0: y - 3 * x}


def remember(rng: Any) -> Any:
    n = 96
    before = 5 + np.concatenate([[0], np.cumsum(np.arange(n))[:-1]])
    return [empty(n, U32)], {0: before}


F = "language"
CASES = [
    Case(F, "collatz", ints(collatz), reference=False),
    Case(F, "nested_loops", ints(nested_loops, args=(11,)), reference=False),
    Case(F, "irreducible", ints(irreducible, args=(9,))),
    Case(F, "recursion", ints(lambda i: ackermann(i % 3, i % 5)), reference=False),
    Case(F, "mutual", ints(lambda i: 2 + i % 2), reference=False),
    Case(F, "towers", ints(towers), reference=False),
    Case(F, "local_sort", local_sort, reference=False),
    Case(F, "local_histogram", local_histogram, reference=False),
    Case(F, "sieve", ints(sieve), reference=False),
    Case(F, "objects", ints(objects, dtype=np.float32)),
    Case(F, "lambdas", lambdas),
    Case(F, "structs", structs),
    Case(F, "pointers", ints(pointers, dtype=np.float64)),
    Case(F, "relocated", ints(relocated)),
    Case(F, "vector_types", vector_types),
    Case(F, "switch_dense", ints(switch_dense, args=(11,))),
    Case(F, "shape3d", shape3d, grid=(3, 3, 2), block=(4, 3, 3)),
    Case(F, "heap", ints(lambda i: i * 6)),
    Case(F, "bitfields", bitfields),
    Case(F, "float_bits", float_bits),
    Case(F, "saxpy_ptr", saxpy_ptr),
]
