"""Predictions of small launches for the tests of reports, each made once."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

import fasim
from fasim.arch.cards import card
from fasim.report.timing import About, TimedLaunch, timed_launch
from fasim.sm.timing.predict import Prediction, predict

#: a loop of independent multiplications, a step of one warp that waits for memory, a matrix product, conflicts in shared memory
SOURCE = """
__global__ void multiply(float* y, int n) {
  float a = y[threadIdx.x], b = a + 1, c = a + 2, d = a + 3;
  //@ LOOP
  for (int i = 0; i < n; i++) { a = a * b + c; b = b * c + d; c = c * d + a; d = d * a + b; }
  //@ STORE
  y[threadIdx.x] = a + b + c + d;
}
__global__ void chase(const int* p, int* out, int n) {
  int i = 0;
  for (int k = 0; k < n; k++) i = p[i];
  out[0] = i;
}
__global__ void collide(int* out, int n) {
  __shared__ volatile int tile[32 * 32];
  int sum = 0;
  for (int k = 0; k < n; k++) sum += tile[threadIdx.x % 32 * 32 + k % 32];
  out[threadIdx.x] = sum;
}
__global__ void product(float* c, int n) {
  float r[4] = {0, 0, 0, 0};
  unsigned a = threadIdx.x, b = threadIdx.x + 1;
  for (int k = 0; k < n; k++)
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, {%0,%1,%2,%3};"
                 : "+f"(r[0]), "+f"(r[1]), "+f"(r[2]), "+f"(r[3]) : "r"(a), "r"(b));
  c[threadIdx.x] = r[0] + r[1] + r[2] + r[3];
}
"""
#: grid, block, arguments by kernel
LAUNCHES: dict[str, tuple[int, int, tuple[Any, ...]]] = {
    "multiply": (1, 512, (np.ones(512, np.float32), np.int32(256))),
    "chase": (1, 32, (np.zeros(32, np.int32), np.zeros(1, np.int32), np.int32(100))),
    "collide": (2, 256, (np.zeros(256, np.int32), np.int32(256))),
    "product": (1, 128, (np.zeros(128, np.float32), np.int32(200))),
}


@functools.cache
def kernel(name: str) -> fasim.Kernel:
    """One of the kernels above."""
    return fasim.compile(SOURCE, name="/timed.cu").kernel(name)


@functools.cache
def prediction(name: str, events: int = 1 << 16) -> Prediction:
    """Of the launch above on an H200."""
    grid, block, args = LAUNCHES[name]
    return predict(kernel(name), grid, block, [np.array(each) if each.ndim else each for each in args], card("h200"), events=events)


def launch(name: str, **about: Any) -> TimedLaunch:
    """Its record."""
    return timed_launch(prediction(name), About(source="timed.cu", **about))
