"""Grids: the same result on any number of cores, and every way for CTAs to get stuck."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim.errors import DeadlockError, InstructionLimit, KernelAssertion, KernelTrap, MemoryAccessError

SOURCE = """
#include <cassert>
__global__ void own(int *o) { o[blockIdx.x * blockDim.x + threadIdx.x] = blockIdx.x * 1000 + threadIdx.x; }
__global__ void last_writer(int *o) { o[threadIdx.x] = blockIdx.x; }
__global__ void chain(int *o) { o[blockIdx.x + 1] = o[blockIdx.x] + 1; }
__global__ void bytes(unsigned char *o) { o[blockIdx.x] = blockIdx.x; }
__global__ void float_sum(const float *x, float *s) { atomicAdd(s, x[blockIdx.x * blockDim.x + threadIdx.x]); }
__global__ void tickets(int *next, int *o) { if (threadIdx.x == 0) o[blockIdx.x] = atomicAdd(next, 1); }
__global__ void wait_for_all(volatile int *arrived, int *o) {
  if (threadIdx.x == 0) { atomicAdd((int *)arrived, 1); while (*arrived < gridDim.x) ; }
  __syncthreads();
  o[blockIdx.x * blockDim.x + threadIdx.x] = *arrived;
}
__global__ void wait_for_last(volatile int *flag, int *o) {
  if (blockIdx.x == gridDim.x - 1) *flag = 1; else while (*flag == 0) ;
  o[blockIdx.x] = 1;
}
__global__ void spin(volatile int *flag) { while (*flag == 0) ; }
__global__ void plain_spin(int n, int *o) { int x = 1; while (x != n) x = x * 3 & 0xffff; o[0] = x; }
__global__ void bad_store(int *o, int bad) { if (blockIdx.x == bad) o[1 << 20] = 1; o[blockIdx.x] = 1; }
__global__ void bad_assert(int n) { assert(threadIdx.x + 32 * blockIdx.x != n); }
__global__ void traps(int n) { if (threadIdx.x + 32 * blockIdx.x == n) __trap(); }
__global__ void barrier_mix(int *o) {
  if (threadIdx.x < 32) asm volatile("bar.sync 1, 64;"); else asm volatile("bar.sync 2, 64;");
  o[threadIdx.x] = 1;
}
__global__ void lane_waits(int *o) { if (threadIdx.x & 1) __syncwarp(0x3); else if (threadIdx.x) __syncwarp(0x3); o[threadIdx.x] = 1; }
__global__ void lock_lanes(int *lock, int *count) {
  bool done = false;
  while (!done) if (atomicCAS(lock, 0, 1) == 0) { ++*(volatile int *)count; __threadfence(); atomicExch(lock, 0); done = true; }
}
__global__ void handover(int *o) {
  __shared__ volatile int turn;
  if (threadIdx.x == 0) turn = 0;
  __syncwarp();
  while (turn != threadIdx.x) ;
  o[threadIdx.x] = turn;
  turn = threadIdx.x + 1;
}
"""


@pytest.fixture(scope="module")
def module():
    return fasim.compile(SOURCE)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_results_on_any_number_of_cores(module, workers, backend):
    launch = {"workers": workers, "backend": backend}
    out = np.zeros(64 * 12, np.int32)
    module.kernel("own").launch(12, 64, [out], **launch)
    assert (out.reshape(12, 64) == np.arange(12)[:, None] * 1000 + np.arange(64)).all()

    out = np.zeros(32, np.int32)
    module.kernel("last_writer").launch(9, 32, [out], **launch)
    assert (out == 8).all()

    out = np.zeros(30, np.int32)
    module.kernel("chain").launch(29, 1, [out], **launch)
    assert out.tolist() == list(range(30))

    raw = np.zeros(40, np.uint8)
    module.kernel("bytes").launch(40, 1, [raw], **launch)
    assert raw.tolist() == list(range(40))


def test_float_atomics_add_in_the_order_of_the_grid(module):
    x = np.random.default_rng(0).standard_normal(32 * 20).astype(np.float32)
    expected = np.float32(0)
    for value in x:
        expected = np.float32(expected + value)
    for workers in (1, 3):
        total = np.zeros(1, np.float32)
        module.kernel("float_sum").launch(20, 32, [x, total], workers=workers)
        assert total[0].tobytes() == expected.tobytes()


def test_tickets_are_given_in_the_order_of_the_grid(module):
    for workers in (1, 4):
        out = np.zeros(50, np.int32)
        module.kernel("tickets").launch(50, 32, [np.zeros(1, np.int32), out], workers=workers)
        assert out.tolist() == list(range(50))


def test_ctas_that_wait_for_each_other_get_on(module):
    out = np.zeros(64 * 20, np.int32)
    module.kernel("wait_for_all").launch(20, 64, [np.zeros(1, np.int32), out])
    assert (out == 20).all()
    out = np.zeros(10, np.int32)
    module.kernel("wait_for_last").launch(10, 1, [np.zeros(1, np.int32), out])
    assert (out == 1).all()


def test_more_ctas_than_the_gpu_holds_cannot_wait_for_all(module):
    # 1024 threads a CTA: two an SM, 264 on 132 SMs
    out = np.zeros(1024 * 265, np.int32)
    with pytest.raises(DeadlockError, match=r"1 CTAs have not started, since 264 fill the GPU"):
        module.kernel("wait_for_all").launch(265, 1024, [np.zeros(1, np.int32), out])


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_livelocks_are_reported(module, backend):
    with pytest.raises(DeadlockError, match=r"(?s)livelock in kernel spin.*source.cu:18"):
        module.kernel("spin").launch(2, 32, [np.zeros(1, np.int32)], backend=backend)


def test_a_loop_without_end_that_touches_no_memory_is_reported(module):
    with pytest.raises(DeadlockError, match="livelock"):
        module.kernel("plain_spin").launch(3, 32, [2, np.zeros(1, np.int32)], workers=2)


def test_the_instruction_limit(module):
    with pytest.raises(InstructionLimit, match="100000 warp instructions"):
        module.kernel("plain_spin").launch(3, 32, [2, np.zeros(1, np.int32)], workers=2, max_instructions=100_000)
    module.kernel("own").launch(2, 32, [np.zeros(64, np.int32)], max_instructions=10_000)


@pytest.mark.parametrize("workers", [1, 4])
def test_the_first_cta_that_fails_is_reported(module, workers):
    out = np.zeros(64, np.int32)
    with pytest.raises(MemoryAccessError) as caught:
        module.kernel("bad_store").launch(64, 1, [out, 37], workers=workers)
    assert caught.value.where.ctaid == (37, 0, 0)
    # what ran before it in the stated order has run, nothing else
    assert out.tolist() == [1] * 37 + [0] * 27
    with pytest.raises(KernelAssertion) as failed:
        module.kernel("bad_assert").launch(8, 32, [100], workers=workers)
    assert failed.value.where.ctaid == (3, 0, 0) and failed.value.where.threads == ((4, 0, 0),)
    with pytest.raises(KernelTrap) as trapped:
        module.kernel("traps").launch(8, 32, [70], workers=workers)
    assert trapped.value.where.lanes == (6,)


def test_warps_at_different_barriers(module):
    with pytest.raises(DeadlockError) as caught:
        module.kernel("barrier_mix").launch(1, 64, [np.zeros(64, np.int32)])
    assert [(w["warp"], w["for"]) for w in caught.value.details["waiting"]] == [(0, "barrier 1"), (1, "barrier 2")]


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_lanes_that_wait_for_each_other_get_on(module, backend):
    count = np.zeros(1, np.int32)
    module.kernel("lock_lanes").launch(1, 32, [np.zeros(1, np.int32), count], backend=backend)
    assert count[0] == 32
    out = np.zeros(32, np.int32)
    module.kernel("handover").launch(1, 32, [out], backend=backend)
    assert out.tolist() == list(range(32))


CONNECTED = """
#include <cuda_fp16.h>
struct __align__(16) Quad { int x, y, z, w; };
__device__ int variable[100];
// each CTA reads what the one before it wrote, in every way that there is
__global__ void quads(Quad *a) { Quad v = a[blockIdx.x]; v.x++; v.w += 2; a[blockIdx.x + 1] = v; }
__global__ void shorts(short *a) { a[blockIdx.x + 1] = a[blockIdx.x] + 1; }
__global__ void doubles(double *a) { a[blockIdx.x + 1] = a[blockIdx.x] + 1; }
__global__ void odd_bytes(char *a) { a[3 * blockIdx.x + 3 + threadIdx.x] = a[3 * blockIdx.x + threadIdx.x] + 1; }
__global__ void strides(int *a) { int i = (blockIdx.x * 8 + threadIdx.x) * 5; a[i + 40] = a[i] + 1; }
__global__ void module_variable(int *a) {
  variable[blockIdx.x + 1] = variable[blockIdx.x] + 1;
  a[blockIdx.x] = variable[blockIdx.x + 1];
}
__global__ void copies(int *a) {
  __shared__ __align__(16) int s[4];
  unsigned p = __cvta_generic_to_shared(s);
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, 8; cp.async.wait_all;" :: "r"(p), "l"(a + 4 * blockIdx.x) : "memory");
  a[4 * blockIdx.x + 4] = s[0] + 1;
}
__global__ void overwrites(int *a) { int old = a[0]; a[blockIdx.x + 1] = old; a[0] = blockIdx.x; }
__global__ void uneven(unsigned *flag, unsigned *o, int iterations) {
  unsigned x = blockIdx.x, seen = blockIdx.x & 1 ? flag[blockIdx.x - 1] : 0;
  for (int i = 0; i < iterations; i++) x = x * 1664525u + 1013904223u;
  if (!(blockIdx.x & 1)) flag[blockIdx.x] = 1 + (x == 0);
  o[blockIdx.x] = seen;
}
__global__ void delay(int *o, long long ticks) { long long start = clock64(); while (clock64() - start < ticks) ; o[0] = 1; }
__global__ void times(unsigned long long *o) {
  unsigned long long t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  o[blockIdx.x] = t;
}
"""


@pytest.fixture(scope="module")
def connected():
    return fasim.compile(CONNECTED)


@pytest.mark.parametrize(
    "kernel, dtype, size, block",
    [
        ("quads", np.int32, 4 * 66, 1),
        ("shorts", np.int16, 66, 1),
        ("doubles", np.float64, 66, 1),
        ("odd_bytes", np.int8, 200, 3),
        ("strides", np.int32, 8 * 66 * 5, 8),
        ("module_variable", np.int32, 66, 1),
        ("copies", np.int32, 4 * 66, 1),
        ("overwrites", np.int32, 66, 1),
    ],
)
def test_ctas_that_read_what_others_wrote(connected, kernel, dtype, size, block):
    results = []
    for workers in (1, 2, 4):
        if kernel == "module_variable":
            connected.symbol("variable").write(np.zeros(100, np.int32))
        data = np.zeros(size, dtype)
        connected.kernel(kernel).launch(64, block, [data], workers=workers)
        results.append(data.tobytes())
    assert len(set(results)) == 1


def test_long_ctas_end_before_the_next_ones_start(connected):
    for workers in (1, 2):
        flag, out = np.zeros(8, np.uint32), np.zeros(8, np.uint32)
        connected.kernel("uneven").launch(8, 32, [flag, out, 500_000], workers=workers)
        assert out.tolist() == [0, 1] * 4


def test_waiting_for_the_clock_is_no_livelock(connected):
    out = np.zeros(1, np.int32)
    connected.kernel("delay").launch(1, 32, [out, 30_000_000])
    assert out[0] == 1


def test_the_global_timer_goes_on_over_ctas(connected):
    out = np.zeros(5, np.uint64)
    connected.kernel("times").launch(5, 32, [out], workers=2)
    assert (np.diff(out.astype(np.int64)) > 0).all()
