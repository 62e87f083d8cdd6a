"""Whose doings breakpoints look at, and breakpoints on what is read."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim.trace.breaks import Breakpoint, HazardBreak, MemoryBreak, ReadBreak, RegisterBreak
from fasim.trace.stepper import Stepper

SOURCE = """extern "C" __global__ void hand(const float* in, float* out) {
  __shared__ float s[64];
  int t = threadIdx.x;
  s[63 - t] = in[t] * 2;
  __syncthreads();
  if (t < 40) out[t] = s[t];
}
"""


@pytest.fixture
def stepper() -> Stepper:
    kernel = fasim.compile(SOURCE).kernel("hand")
    return Stepper(kernel, 1, 64, [np.arange(64, dtype=np.float32), np.zeros((8, 8), np.float32)], names=["in", "out"])


def warps(stepper: Stepper, breakpoint_: Breakpoint, warp: int | None) -> list[int]:
    """The warps of all events where it stops, which are the same backwards."""
    stepper.go_to(0)
    found = []
    while (hit := stepper.run_to([breakpoint_], warp=warp)) is not None:
        found.append((hit.position, hit.event.warp if hit.event is not None else -1))
    back = []
    while (hit := stepper.run_to([breakpoint_], -1, warp=warp)) is not None:
        back.append((hit.position, hit.event.warp if hit.event is not None else -1))
    assert back[::-1] == found
    return [warp for _, warp in found]


@pytest.mark.parametrize("watched", [None, 0, 1])
@pytest.mark.parametrize(
    ("breakpoint_", "expected"),
    [
        (MemoryBreak("shared", 0), [1]),
        (MemoryBreak("shared", 4 * 40), [0]),
        (MemoryBreak("out", 4 * 33), [1]),
        (MemoryBreak("out", 4 * 3, value=np.float32(120).tobytes()), [0]),
        (MemoryBreak("out", 4 * 50), []),
        (ReadBreak("shared", 4 * 33), [1]),
        (ReadBreak("in", 0), [0]),
        (ReadBreak("out", 0), []),
        (RegisterBreak("%r1", warp=1), [1]),
    ],
)
def test_memory_is_looked_at_in_all_warps(stepper: Stepper, breakpoint_: Breakpoint, expected: list[int], watched: int | None) -> None:
    assert warps(stepper, breakpoint_, watched) == expected


def test_registers_stay_with_the_watched_warp_unless_all_are_meant(stepper: Stepper) -> None:
    assert warps(stepper, RegisterBreak("%r1"), 1) == [1]
    assert sorted(warps(stepper, RegisterBreak("%r1", all_warps=True), 1)) == [0, 1]
    assert HazardBreak().every_warp and not RegisterBreak("%r1").every_warp


def test_copies_read_where_they_are_issued() -> None:
    source = """extern "C" __global__ void copy(const int* in, int* out) {
      __shared__ int s[32];
      unsigned at = (unsigned)__cvta_generic_to_shared(s + threadIdx.x);
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(at), "l"(in + threadIdx.x));
      asm volatile("cp.async.wait_all;");
      out[threadIdx.x] = s[threadIdx.x];
    }"""
    found = Stepper(
        fasim.compile(source).kernel("copy"), 1, 32, [np.arange(32, dtype=np.int32), np.zeros(32, np.int32)], names=["in", "out"]
    )
    read = found.run_to([ReadBreak("in", 12)])
    assert read is not None and read.event is not None and read.event.kind == "cp_async"
    assert found.run_to([ReadBreak("in", 12)]) is None
    found.go_to(0)
    wrote = found.run_to([MemoryBreak("shared", 12)])
    assert wrote is not None and wrote.event is not None and wrote.event.kind == "cp_wait"
