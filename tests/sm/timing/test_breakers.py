"""Kernels that are unlike those of the repository: predicted with what they execute, or refused with the reason."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim.arch.cards import card
from fasim.errors import NotModelled
from fasim.report.timing_bounds import resources
from fasim.sass.control import control
from fasim.sass.listing import section
from fasim.sass.syntax import parse
from fasim.sm.timing import paths
from fasim.sm.timing import record as r
from fasim.sm.timing.decode import decode
from fasim.sm.timing.predict import Prediction, predict
from fasim.sm.timing.state import SELECTED

SMALL = np.zeros(4096, np.int32)


def kernel_of(source: str, arch: str = "sm_90"):
    return fasim.compile(source, arch=arch).kernel()


def timed(source: str, grid, block, args, gpu: str = "h200", **options) -> Prediction:
    gpu_card = card(gpu)
    return predict(kernel_of(source, gpu_card.arch.name), grid, block, args, gpu_card, **options)


#: kernels of which a few CTAs execute in the model what they execute on the machine, with the threads of a CTA
SAME = {
    "named barriers, producers and consumers": (256, r"""
__global__ void k(int* o) {
  __shared__ int s[2][128];
  if (threadIdx.x < 128) {
    for (int i = 0; i < 8; i++) {
      asm volatile("bar.sync %0, 256;" :: "r"(3 + (i & 1)) : "memory");
      s[i & 1][threadIdx.x] = i;
      asm volatile("bar.arrive %0, 256;" :: "r"(1 + (i & 1)) : "memory");
    }
    return;
  }
  asm volatile("bar.arrive 3, 256; bar.arrive 4, 256;" ::: "memory");
  int sum = 0;
  for (int i = 0; i < 8; i++) {
    asm volatile("bar.sync %0, 256;" :: "r"(1 + (i & 1)) : "memory");
    sum += s[i & 1][threadIdx.x - 128];
    if (i < 6) asm volatile("bar.arrive %0, 256;" :: "r"(3 + (i & 1)) : "memory");
  }
  o[threadIdx.x] = sum;
}"""),
    "barriers of a part of the warps, as often as the part says": (128, r"""
__global__ void k(int* o) {
  int part = threadIdx.x / 64;
  for (int i = 0; i < 3 * (part + 1); i++) {
    o[threadIdx.x] += i;
    asm volatile("bar.sync %0, 64;" :: "r"(part + 1) : "memory");
  }
  __syncthreads();
}"""),
    "recursion": (32, r"""
__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__global__ void k(int* o) { o[threadIdx.x] = fib(4 + (threadIdx.x & 3)); }"""),
    "threads that end early, and lanes that vote": (96, r"""
__global__ void k(int* o) {
  if (threadIdx.x > 80) return;
  int c = 0;
  for (int j = 0; j < (int)threadIdx.x; j++) {
    if (j == 50) return;
    c += __popc(__activemask());
  }
  o[threadIdx.x] = c;
}"""),
    "data in local memory decide addresses": (64, r"""
__global__ void k(int* o) {
  int a[64];
  for (int j = 0; j < 64; j++) a[j] = j * (int)threadIdx.x;
  int at = threadIdx.x;
  for (int j = 0; j < 20; j++) at = a[at & 63] & 63;
  o[at] = at;
}"""),
    "nothing": (1024, "__global__ void k(int* o) {}"),
    "one thread": (1, "__global__ void k(int* o) { for (int i = 0; i < o[5]; i++) o[i] = atomicAdd(o + 7, i); }"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
def test_executes_the_same(name):
    threads, source = SAME[name]
    kernel = kernel_of(source)
    run = fasim.compile(source, arch="sm_90").kernel(isa="sass").launch(4, threads, [SMALL.copy()])
    found = predict(kernel, 4, threads, [SMALL], card("h200"))
    assert found.warp_instructions == run.warp_instructions
    assert found.cycles > 0 and found.sm.stalls[:, SELECTED].sum() == found.sm.instructions


def test_axes_that_depend_on_each_other():
    source = r"""
__global__ void k(int* o) {
  int n = blockIdx.x * blockIdx.y + 3 * blockIdx.z + 1;
#pragma unroll 1
  for (int i = 0; i < n; i++) o[threadIdx.x] += i;
}"""
    grid = (24, 20, 3)
    kernel = fasim.compile(source, arch="sm_90").kernel(isa="sass")
    run = kernel.launch(grid, 32, [SMALL.copy()])
    found = timed(source, grid, 32, [SMALL])
    assert found.warp_instructions == pytest.approx(run.warp_instructions, rel=1e-9)
    assert found.work_error < 1e-9


def test_a_basic_block_of_any_length():
    cubin = fasim.compile("__global__ void k(float* o) { o[threadIdx.x] *= 3.f; }", arch="sm_90").cubin()
    line = next(each for each in section(cubin, "_Z1kPf").lines if each.text.startswith("FMUL"))
    count = 40_000
    rows = decode([parse(line)] * count, [control(line.encoding)] * count, card("h200"), [0])
    assert rows[0, r.I_LENGTH] == count


#: kernels whose CTAs do what others let them do, and what is said of them
REFUSED = {
    "work taken from a counter": (r"""
__global__ void k(int* o) {
  __shared__ int item;
  for (;;) {
    if (threadIdx.x == 0) item = atomicAdd(o, 1);
    __syncthreads();
    if (item >= 1000) return;
    o[64 + item] += 1;
    __syncthreads();
  }
}""", "behind others"),
    "values of the CTA before": (r"""
__global__ void k(int* o) {
  int n = blockIdx.x ? o[blockIdx.x - 1] : 50;
#pragma unroll 1
  for (int i = 0; i < n; i++) o[1000 + threadIdx.x] += i;
  o[blockIdx.x] = 50;
}""", "behind others"),
    "a flag of another CTA": (r"""
__global__ void k(volatile int* o) {
  if (blockIdx.x + 1 < gridDim.x) while (o[blockIdx.x + 1] == 0) ;
  o[blockIdx.x] = 1;
}""", "wait for each other.*make kernels of the parts"),
    "all CTAs wait": (r"""
__global__ void k(unsigned* o) {
  atomicAdd(o, 1);
  while (atomicAdd(o, 0) < gridDim.x) ;
}""", "wait for each other.*make kernels of the parts"),
    "the clock": (r"""
__global__ void k(int* o) {
  long long from = clock64();
  while (clock64() - from < 1000) ;
  o[blockIdx.x] = 1;
}""", r"reads the clock \(.*leave that part out"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_reason(name, monkeypatch):
    monkeypatch.setattr(paths, "MOST_INSTRUCTIONS", 1 << 20)
    source, message = REFUSED[name]
    with pytest.raises(NotModelled, match=message):
        timed(source, 40, 32, [SMALL])


def test_the_last_cta_may_do_more_and_variables_stay():
    source = r"""
__device__ unsigned done;
__global__ void k(const int* in, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) { out[blockIdx.x] = in[blockIdx.x]; __threadfence(); last = atomicInc(&done, gridDim.x - 1) == gridDim.x - 1; }
  __syncthreads();
  if (last) for (int i = threadIdx.x; i < gridDim.x; i += blockDim.x) out[i] += i;
}"""
    kernel = kernel_of(source)
    found = predict(kernel, 300, 32, [SMALL, SMALL], card("h200"))
    assert found.work_error < 0.01
    assert not kernel.module.symbol("done").read().any()


def test_a_clock_that_decides_nothing():
    source = r"""
__global__ void k(long long* o) {
  long long begin = clock64(), n = o[threadIdx.x];
  for (int i = 0; i < n; i++) o[i] = i;
  o[99] = clock64() - begin;
}"""
    assert timed(source, 4, 32, [np.zeros(128, np.int64)]).cycles > 0


def test_dram_that_reads_and_writes_bounds_a_copy():
    source = "__global__ void k(const float4* a, float4* o) { int i = blockIdx.x * blockDim.x + threadIdx.x; o[i] = a[i]; }"
    data = np.empty(1 << 26, np.float32)
    found = timed(source, 1 << 16, 256, [data, data.copy()])
    busiest = resources(found)[0]
    assert busiest.name == "DRAM" and 80 < busiest.percent <= 105


def test_atomic_operations_bound_a_histogram():
    source = "__global__ void k(int* o) { for (int i = 0; i < 40; i++) atomicAdd(o + 32 * (threadIdx.x & 7), 1); }"
    found = timed(source, 1056, 256, [SMALL])
    assert found.cycles == found.atomic_cycles > 2 * found.sm_cycles
    named = {each.name: each.percent for each in resources(found)}
    assert named.pop("L2 atomics") == pytest.approx(100)
    assert max(named.values()) < 50


@pytest.mark.parametrize("gpu", ["h200", "a100", "rtx5090"])
def test_more_ctas_than_the_gpu_holds_take_twice_as_long_twice(gpu):
    source = "__global__ void k(float* o) { float x = threadIdx.x; for (int i = 0; i < 64; i++) x = x * x + 1.f; if (x == 3.f) o[0] = x; }"
    once, twice = (timed(source, count, 256, [np.zeros(4, np.float32)], gpu).cycles for count in (40_000, 80_000))
    assert twice / once == pytest.approx(2, rel=0.03)
