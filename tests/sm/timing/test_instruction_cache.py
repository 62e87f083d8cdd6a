"""Loops of FADD that do not fit into the instruction caches take as long as on an H200."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import fasim
from fasim.arch.cards import card
from fasim.sm.timing.predict import predict

ROUNDS = 6
#: instructions, warps of a sub-partition: cycles for an instruction of the sub-partition, microbenchmarks of an H200, 2026-11-29
MEASURED = {
    (1024, 1): 1.04,
    (3072, 1): 2.23,
    (3072, 2): 1.01,
    (12288, 1): 5.66,
    (12288, 2): 2.94,
}


@cache
def loop(length: int) -> fasim.Kernel:
    adds = "".join(f"add.f32 {r}, {r}, %8;" for i in range(length) if (r := f"%{i % 8}"))
    outputs = ", ".join(f'"+f"(a{i})' for i in range(8))
    names = ", ".join(f"a{i} = {i}" for i in range(8))
    source = f"""
    extern "C" __global__ void loop(float* out, float x, int rounds) {{
      float {names};
      #pragma unroll 1
      for (int r = 0; r < rounds; r++) asm volatile("{adds}" : {outputs} : "f"(x));
      out[threadIdx.x] = a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7;
    }}
    """
    return fasim.compile(source, arch="sm_90").kernel()


def cycles(length: int, warps: int, rounds: int) -> float:
    threads = 128 * warps
    args = [np.zeros(threads, np.float32), np.float32(1), np.int32(rounds)]
    return predict(loop(length), 1, threads, args, card("h200")).cycles


@pytest.mark.parametrize(("length", "warps"), MEASURED)
def test_loops(length, warps):
    found = (cycles(length, warps, ROUNDS) - cycles(length, warps, 2)) / ((ROUNDS - 2) * length * warps)
    assert found == pytest.approx(MEASURED[length, warps], rel=0.1)
