"""Random programs full of loops, switches, gotos and calls: diverged warps must compute what one thread alone computes."""

from __future__ import annotations

import random

import numpy as np
import pytest

import fasim

COUNT = 96


class Program:
    """Writes one device function of two arguments, with a helper that it calls."""

    def __init__(self, seed: int) -> None:
        self.random, self.names = random.Random(seed), 0
        self.labels = ["L0", "L1", "L2"]

    def name(self) -> str:
        """A fresh variable."""
        self.names += 1
        return f"v{self.names}"

    def variable(self) -> str:
        """One of the variables of every function."""
        return self.random.choice("abcdt")

    def expression(self, depth: int = 0) -> str:
        """A 32-bit unsigned expression."""
        r = self.random
        if depth > 2 or r.random() < 0.3:
            return r.choice([self.variable(), self.variable(), f"{r.randrange(100)}u", f"arr[{self.variable()} & 7]"])
        x, y, kind = self.expression(depth + 1), self.expression(depth + 1), r.random()
        if kind < 0.65:
            return f"({x} {r.choice('+-*^&|')} {y})"
        if kind < 0.75:
            return f"({x} >> ({y} & 31))"
        if kind < 0.8:
            return f"({x} {r.choice('/%')} ({y} | 1))"
        if kind < 0.92:
            return f"({self.condition()} ? {x} : {y})"
        return f"helper({x}, {y})"

    def condition(self) -> str:
        """Something to branch on that differs between lanes."""
        if self.random.random() < 0.5:
            return f"{self.expression(2)} {self.random.choice(['<', '>', '==', '!='])} {self.expression(2)}"
        return f"({self.variable()} & {self.random.choice([1, 2, 3, 4, 7])}) {self.random.choice(['== 0', '!= 0', '== 1'])}"

    def block(self, depth: int) -> str:
        """Some statements in braces."""
        return "{ " + " ".join(self.statement(depth) for _ in range(self.random.randrange(1, 4))) + " }"

    def statement(self, depth: int) -> str:
        """One statement."""
        r, kind = self.random, self.random.random()
        if depth > 3 or kind < 0.35:
            return f"{r.choice('abcd')} = {self.expression()};"
        if kind < 0.42:
            return f"arr[{self.expression(1)} & 7] = {self.expression(1)};"
        if kind < 0.58:
            return f"if ({self.condition()}) {self.block(depth + 1)} else {self.block(depth + 1)}"
        if kind < 0.75:
            v, leave = self.name(), r.choice(["break", "continue"])
            body = f"{self.block(depth + 1)} if ({self.condition()}) {leave}; a += {v};"
            return f"for (u32 {v} = 0; {v} < (({self.variable()} & 3) + 1); {v}++) {{ {body} }}"
        if kind < 0.83:
            cases = " ".join(
                f"case {i}: {self.statement(depth + 1)} {'break;' if r.random() < 0.7 else ''}" for i in range(r.randrange(2, 6))
            )
            return f"switch ({self.expression(1)} & 7) {{ {cases} default: {self.statement(depth + 1)} }}"
        if kind < 0.88:
            return f"if ({self.condition()}) return {self.expression(1)};"
        return f"if ({self.condition()} && --fuel > 0) goto {r.choice(self.labels)};"

    def source(self) -> str:
        """The whole file; `one` runs it with one thread a CTA, `many` with diverging warps."""
        body = "".join(f"{label}: ; {' '.join(self.statement(0) for _ in range(3))}\n" for label in self.labels)
        return f"""
typedef unsigned u32;
__device__ __noinline__ u32 helper(u32 a, u32 b) {{
    u32 r = a;
    for (u32 i = 0; i < (b & 3); i++) {{ if (r & 1) r = r * 3 + i; else r >>= 1; if (r == 7) return b; }}
    return r;
}}
__device__ u32 f(u32 a, u32 b) {{
    u32 c = a ^ 5, d = b * 3, t = a + b; int fuel = 6; u32 arr[8]; for (u32 i = 0; i < 8; i++) arr[i] = a * i + b;
    {body}
    return a ^ b ^ c ^ d ^ t ^ arr[a & 7];
}}
extern "C" __global__ void run(u32* o, const u32* in) {{ u32 i = blockIdx.x * blockDim.x + threadIdx.x; o[i] = f(in[i], i); }}
"""


@pytest.mark.parametrize("seed", range(6))
def test_divergence_changes_nothing(seed: int) -> None:
    values = np.random.default_rng(seed).integers(0, 1 << 32, COUNT).astype(np.uint32)
    values[::2] %= 40
    kernel = fasim.compile(Program(seed).source()).kernel("run")
    together, alone = fasim.empty(COUNT, np.uint32), fasim.empty(COUNT, np.uint32)
    kernel.launch(1, COUNT, [together, values], workers=1, max_instructions=10_000_000)
    kernel.launch(COUNT, 1, [alone, values], workers=1, max_instructions=10_000_000)
    assert (together == alone).all()
