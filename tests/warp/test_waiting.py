"""Lanes, warps and barriers that wait for each other: who goes on when, on both machines."""

from __future__ import annotations

import numpy as np
import pytest

import fasim

SOURCE = """
#include <cstdio>
// one member mask for each tile of `size` lanes; the lanes from `late` on arrive later than the others
__global__ void tiles(int size, int late, int delay, unsigned *shuffled, unsigned *voted, unsigned *summed, unsigned *seen) {
  __shared__ volatile unsigned s[32];
  unsigned lane = threadIdx.x, mask = (size == 32 ? ~0u : (1u << size) - 1) << (lane / size * size), v = lane * lane;
  s[lane] = 0;
  if (lane >= late) for (int i = 0; i < delay; i++) v = v * 1664525u + 1013904223u;
  v = lane >= late ? lane + 1000 + (v == 12345) : lane + 100;
  shuffled[lane] = __shfl_xor_sync(mask, v, size / 2);
  voted[lane] = __ballot_sync(mask, lane % 3 == 0);
  summed[lane] = __reduce_add_sync(mask, lane);
  if (lane >= late) for (int i = 0; i < delay; i++) v = v * 1664525u + 1013904223u;
  s[lane] = 7 + (v == 12345);
  __syncwarp(mask);
  seen[lane] = s[lane ^ (size / 2)];
}
__device__ __noinline__ int peek(volatile int *p) { return *p; }
#define SPIN(name, body) \\
  __global__ void spin_##name(int *o, int k) { \\
    __shared__ volatile int flag; int n = 0; \\
    if (threadIdx.x == 0) flag = 0; \\
    __syncwarp(); \\
    if (threadIdx.x < 16) { body; o[threadIdx.x] = 1; } else { if (threadIdx.x == 16) flag = 1; o[threadIdx.x] = 2 + (n > 1 << 30); } \\
  }
SPIN(plain, while (flag == 0))
SPIN(call, while (peek(&flag) == 0))
SPIN(sync, while (flag == 0) __syncwarp(0xffff))
SPIN(sleep, while (flag == 0) __nanosleep(20))
SPIN(print, while (flag == 0) if (n++ < 3) printf(""))
SPIN(choose, while (flag == 0) switch ((n++ * k) & 7) { case 0: n += 3; break; case 1: n ^= 5; break; case 2: n *= 3; break;
  case 3: n -= o[3]; break; case 4: n = ~n; break; case 5: n <<= 1; break; default: n >>= 1; })
// phase 1 of barrier 1 consists of arrivals only; phase 2 waits for warp 3
__global__ void phases(int *o) {
  __shared__ volatile int flag, data;
  int w = threadIdx.x / 32;
  if (threadIdx.x == 0) { flag = 0; data = 0; }
  __syncthreads();
  if (w == 0) asm volatile("bar.arrive 1, 64;");
  if (w == 1) { asm volatile("bar.arrive 1, 64;"); __syncwarp(); flag = 1; }
  if (w == 2) { while (flag == 0); asm volatile("bar.sync 1, 64;" ::: "memory"); o[0] = data; }
  if (w == 3) { asm volatile("bar.sync 2, 32;" ::: "memory"); data = 42; asm volatile("bar.arrive 1, 64;" ::: "memory"); }
}
__global__ void reductions(int *o, int limit) {
  int t = threadIdx.x;
  if (t % 32 >= 29) return;   // lanes that are gone do not count
  o[t] = __syncthreads_count(t < limit) * 100 + __syncthreads_and(t < limit) * 10 + __syncthreads_or(t >= limit);
}
__global__ void leave_while_others_wait(int *o) {
  int t = threadIdx.x;
  if (t % 2) { for (int i = 0; i < 50; i++) o[64] = i; return; }
  asm volatile("bar.sync 3, 64;" ::: "memory");
  o[t] = 1;
}
"""


@pytest.fixture(scope="module")
def module():
    return fasim.compile(SOURCE)


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize("late, delay", [(32, 0), (24, 5), (3, 5), (17, 3), (24, 3000)])
@pytest.mark.parametrize("size", [4, 8, 16, 32])
def test_tiles_with_masks_of_their_own(module, size, late, delay, backend):
    if backend == "reference":
        delay = min(delay, 5)
    shuffled, voted, summed, seen = (np.zeros(32, np.uint32) for _ in range(4))
    module.kernel("tiles").launch(1, 32, [size, late, delay, shuffled, voted, summed, seen], backend=backend)
    lanes = np.arange(32)
    assert (shuffled == [(lane ^ size // 2) + (1000 if (lane ^ size // 2) >= late else 100) for lane in lanes]).all()
    tile = [range(lane // size * size, lane // size * size + size) for lane in lanes]
    assert (voted == [sum(1 << i for i in t if i % 3 == 0) for t in tile]).all()
    assert (summed == [sum(t) for t in tile]).all()
    assert (seen == 7).all()


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize("kind", ["plain", "call", "sync", "sleep", "print", "choose"])
def test_lanes_that_spin_do_not_starve_the_others(module, kind, backend):
    out = np.zeros(32, np.int32)
    module.kernel(f"spin_{kind}").launch(1, 32, [out, 3], backend=backend, max_instructions=200_000, output=lambda text: None)
    assert out.tolist() == [1] * 16 + [2] * 16


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_a_barrier_opens_at_the_arrival_that_fills_it(module, backend):
    out = np.zeros(1, np.int32)
    module.kernel("phases").launch(1, 128, [out], backend=backend)
    assert out[0] == 42


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize("threads, limit", [(96, 96), (96, 40), (70, 0), (70, 1), (64, 1000)])
def test_barrier_reductions_over_the_threads_that_are_left(module, threads, limit, backend):
    out = np.full(threads, -1, np.int32)
    module.kernel("reductions").launch(1, threads, [out, limit], backend=backend)
    there = [t for t in range(threads) if t % 32 < 29]
    count = sum(t < limit for t in there)
    value = count * 100 + 10 * (count == len(there)) + (count < len(there))
    assert out.tolist() == [value if t in there else -1 for t in range(threads)]


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_lanes_that_exit_while_others_wait(module, backend):
    out = np.zeros(65, np.int32)
    module.kernel("leave_while_others_wait").launch(1, 64, [out], backend=backend)
    assert out[:64].tolist() == [1, 0] * 32
