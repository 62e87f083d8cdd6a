"""What stands in each other's way between an SM and the L2: stores, loads behind them, lines that are on their way.

Measured on an H200 (driver 580.159.04, nvcc 13.0, 2026-11-30) with these kernels, clocks read around what is timed.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import fasim
from fasim.arch.cards import card
from fasim.sm.timing.predict import predict

SOURCE = r"""
// each round: K stores of 128 bytes a warp, then a load that the L1 does not have
extern "C" __global__ void behind(unsigned* g, int rounds) {
  const unsigned lane = threadIdx.x % 32, warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  unsigned *mine = g + warp * 8192 + lane, *far = g + (1 << 22) + warp * 512 + lane, sum = 0;
  for (int r = 0; r < rounds; r++) {
    __syncthreads();
#pragma unroll
    for (int i = 0; i < K; i++) asm volatile("st.global.u32 [%0], %1;" :: "l"(mine + 32 * i), "r"(r) : "memory");
    unsigned v;
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(far + 32 * (r % 16)) : "memory");
    sum += v;
    asm volatile("" : "+r"(sum));
    if (sum == 0x12345678) __trap();
  }
  mine[0] = sum;
}

// each warp: stores of whole lines, one line after the other
extern "C" __global__ void stores(unsigned* g, int rounds) {
  const unsigned lane = threadIdx.x % 32, warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  unsigned* mine = g + warp * 8192 + lane;
  for (int r = 0; r < rounds; r++) {
#pragma unroll
    for (int i = 0; i < 128; i++) asm volatile("st.global.u32 [%0], %1;" :: "l"(mine + 32 * i), "r"(r) : "memory");
  }
}

// as an MMA's accumulator is stored: 8 rows of 4 lanes, the next piece of a row by the next store
extern "C" __global__ void pieces(unsigned* g, int rounds) {
  const unsigned lane = threadIdx.x % 32, warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  unsigned* mine = g + warp * 2048 + lane / 4 * 32 + lane % 4 * (K / 4);
  for (int r = 0; r < rounds; r++) {
    for (int row = 0; row < 64; row += 8) {
#pragma unroll
      for (int i = 0; i < 32; i += K) {
        if (K == 4) asm volatile("st.global.u32 [%0], %1;" :: "l"(mine + row * 32 + i), "r"(r) : "memory");
        else asm volatile("st.global.v2.u32 [%0], {%1, %1};" :: "l"(mine + row * 32 + i), "r"(r) : "memory");
      }
    }
  }
}

// each lane its own line: a new sector, then K more loads of the same sectors
extern "C" __global__ void gather(unsigned* g, int rounds) {
  const unsigned short* mine = (const unsigned short*)g + threadIdx.x * 4096;
  unsigned sum = 0;
  for (int r = 0; r < rounds; r++) {
    unsigned short v[K + 1];
#pragma unroll
    for (int k = 0; k <= K; k++) asm volatile("ld.global.ca.u16 %0, [%1];" : "=h"(v[k]) : "l"(mine + 16 * r + k) : "memory");
#pragma unroll
    for (int k = 0; k <= K; k++) sum += v[k];
    asm volatile("" : "+r"(sum));
    if (sum == 0x12345678) __trap();
  }
  g[threadIdx.x] = sum;
}
"""
WORDS = 1 << 23


@cache
def module(k: int) -> fasim.Module:
    return fasim.compile(SOURCE, arch="sm_90", defines={"K": k})


@cache
def a_round(kernel: str, k: int, warps: int, ctas: int = 1) -> float:
    """Cycles of a round."""
    first, last = (
        predict(module(k).kernel(kernel), ctas, 32 * warps, [np.zeros(WORDS, np.uint32), rounds], card("h200")).cycles for rounds in (8, 24)
    )
    return (last - first) / 16


#: stores of each of four warps: cycles that the load after them is later
LATER = {8: 109, 16: 279, 32: 625, 64: 1123, 128: 2125}


@pytest.mark.parametrize("stores", LATER)
def test_loads_wait_for_stores(stores):
    assert a_round("behind", stores, 4) - a_round("behind", 0, 4) == pytest.approx(LATER[stores], rel=0.2)


@pytest.mark.parametrize(("ctas", "cycles"), [(1, 4.03), (66, 4.14), (132, 6.21)])
def test_all_sms_store_together(ctas, cycles):
    """Cycles of an SM for a store of a whole line, by how many SMs store."""
    assert a_round("stores", 0, 4, ctas) / (4 * 128) == pytest.approx(cycles, rel=0.1)


@pytest.mark.parametrize(("lane_bytes", "ctas", "cycles"), [(4, 1, 1.97), (4, 132, 3.4), (8, 1, 1.02), (8, 132, 2.26)])
def test_pieces_of_lines(lane_bytes, ctas, cycles):
    """Cycles of an SM for a piece of one line: half of a sector, a sector."""
    assert a_round("pieces", lane_bytes, 4, ctas) / (4 * 64 * 32 / lane_bytes) == pytest.approx(cycles, rel=0.1)


@pytest.mark.parametrize(("more", "cycles"), [(1, 32), (3, 98), (7, 230)])
def test_lines_on_their_way_take_a_cycle_each(more, cycles):
    """Loads of 32 lines each, behind the one that fetches these."""
    assert a_round("gather", more, 1) - a_round("gather", 0, 1) == pytest.approx(cycles, rel=0.1)
