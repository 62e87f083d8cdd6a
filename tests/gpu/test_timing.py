"""Times by events: which launches are counted, which buffers they get, and what the kernel changed is put back between them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fasim
from fasim.errors import GpuError, GpuFault
from fasim.gpu.device import Device
from fasim.gpu.launch import GpuModule
from fasim.gpu.packed import Packing
from fasim.gpu.timing import time_launch
from fasim.report.measured import Timing

SOURCE = """
extern "C" __global__ void add(const float* x, float* y, int* seen) {
  y[threadIdx.x] += x[threadIdx.x];
  if (threadIdx.x == 0 && y[0] != 3.0f) seen[0] = 1;
}
extern "C" __global__ void broken(int* p) { p[1 << 20] = 1; }
extern "C" __global__ void nothing() {}
"""
COUNT = """
__device__ int calls = 40;
extern "C" __global__ void count(int* o) { if (threadIdx.x == 0) o[0] = ++calls; }
"""


def prepared(device, name="add", args=None, source=SOURCE):
    module = fasim.compile(source)
    given = [np.full(32, 1, np.float32), np.full(32, 2, np.float32), np.zeros(1, np.int32)] if args is None else args
    packing = Packing(module.kernel(name), 1, 32, given)
    return GpuModule(device, module.compiled.cubin).kernel(name), packing.launch


def launches(gpu, entry="add"):
    """The addresses that each launch got."""
    found = [each[4] for each in gpu.log if each[0] == "launch" and each[1] == entry]
    return [tuple(int.from_bytes(params[i : i + 8], "little") for i in range(0, len(params), 8)) for params in found]


@pytest.mark.parametrize(("repetitions", "warm_up", "warmed"), [(1, 5, 6), (7, 0, 4), (50, 5, 6), (120, 3, 4)])
@pytest.mark.parametrize("rotate", [True, False])
def test_number_of_launches(device, gpu, repetitions, warm_up, warmed, rotate):
    kernel, launch = prepared(device)
    timing = time_launch(kernel, launch, [1], repetitions=repetitions, warm_up=warm_up, rotate=rotate)
    assert (timing.repetitions, timing.warm_up) == (repetitions, warmed)
    # with the same buffers each time, one launch a batch warms them after the fill
    batches = 1 + -(-repetitions // 50)
    assert gpu.launches == repetitions + warmed + (0 if rotate else batches)
    # two events around each launch of a batch, and one behind all of them
    assert sum(each[0] == "record" for each in gpu.log) == 2 * (repetitions + warmed - 1) + batches + 1
    assert not gpu.memory
    assert not gpu.late


@pytest.mark.parametrize(("us", "seconds", "repetitions"), [(100, 1.0, 300), (10_000, 1.0, 100), (10_000, 0.25, 25), (10**6, 1.0, 20)])
def test_repetitions_take_the_time_they_are_given(device, gpu, us, seconds, repetitions):
    gpu.durations_ns = (us * 1000,)
    timing = time_launch(*prepared(device, "nothing", []), [], seconds=seconds)
    assert (timing.repetitions, timing.median_us) == (repetitions, us)


def test_median_and_spread_of_the_launches_alone(device, gpu):
    kernel, launch = prepared(device)
    # one launch, three that warm up, then 1 to 100 us; the copies that put buffers back last longer than any launch
    times = np.random.default_rng(1).permutation(np.arange(1, 101))
    gpu.durations_ns = (999_000,) * 4 + tuple(int(us) * 1000 for us in times)
    timing = time_launch(kernel, launch, [1], repetitions=100, warm_up=3, flops=10**6)
    assert timing == Timing(50.5, 5.95, 95.05, 1.0, 100.0, 4, 100, timing.input_sets, 10**6, 1755.0, True)
    assert timing.tflops == pytest.approx(10**6 / 50.5e-6 / 1e12)


def test_no_flops_no_tflops(device):
    assert time_launch(*prepared(device, "nothing", []), [], repetitions=3).tflops == 0.0


SIZES = [
    # bytes of the buffers, size of the L2, copies
    (1 << 20, 8 << 20, 25),
    (1 << 20, 62914560, 64),
    (64 << 10, 1 << 20, 49),
    (1 << 20, 1 << 18, 2),
    (0, 62914560, 1),
]


@pytest.mark.parametrize(("size", "l2", "copies"), SIZES)
def test_copies_in_turn(gpu, size, l2, copies):
    gpu.attributes["L2_CACHE_SIZE"] = l2
    with Device() as device:
        kernel, launch = prepared(device, *(("add", _arrays(size)) if size else ("nothing", [])))
        timing = time_launch(kernel, launch, [], repetitions=2 * copies)
    assert timing.input_sets == copies
    if size:
        used = launches(gpu)
        assert len(set(used)) == copies
        turns = used[1:]
        assert all(turns[i] == turns[i + copies] for i in range(len(turns) - copies))
        assert len(set(turns[:copies])) == copies


def _arrays(size):
    return [np.zeros(size // 8, np.float32), np.zeros(size // 8 - 1, np.float32), np.zeros(1, np.int32)]


def test_no_more_copies_than_there_is_memory(gpu):
    gpu.total_bytes = (2 << 28) + (20 << 20)
    with Device() as device:
        timing = time_launch(*prepared(device, "add", _arrays(1 << 20)), [], repetitions=3)
    assert timing.input_sets == 10


def test_no_room_for_the_fill(gpu):
    gpu.total_bytes = 1 << 28
    with pytest.raises(GpuError, match="cannot time kernel add: out of memory"), Device() as device:
        time_launch(*prepared(device), [1], repetitions=3)
    assert gpu.contexts == ["made", "popped", "detached"]
    assert not gpu.memory


@pytest.mark.parametrize("rotate", [True, False])
@pytest.mark.parametrize(("changed", "stale"), [([1, 2], 0), ([2], 1)])
def test_what_changes_is_put_back(device, gpu, monkeypatch, rotate, changed, stale):
    gpu.attributes["L2_CACHE_SIZE"] = 100
    kernel, launch = prepared(device)
    flags = []
    run = gpu.launch

    def watching(function, grid, block, params, shared):
        run(function, grid, block, params, shared)
        if function.entry == "add":
            memory, at = gpu._find(int.from_bytes(params[16:24], "little"))
            flags.append(int(memory.data[at : at + 4].view(np.int32)[0]))

    monkeypatch.setattr(gpu, "launch", watching)
    time_launch(kernel, launch, changed, repetitions=40, rotate=rotate)
    # the kernel notes when y was not 2: only where y is not put back, and only from the second use of a copy on
    assert max(flags) == stale
    assert [buffer.tolist()[0] for buffer in launch.buffers] == [1.0, 2.0, 0]


def test_what_the_kernel_changes_in_variables_is_put_back(device, gpu, monkeypatch):
    kernel, launch = prepared(device, "count", [np.zeros(1, np.int32)], COUNT)
    seen = []
    run = gpu.launch

    def watching(function, grid, block, params, shared):
        run(function, grid, block, params, shared)
        if function.entry == "count":
            memory, at = gpu._find(int.from_bytes(params[:8], "little"))
            seen.append(int(memory.data[at : at + 4].view(np.int32)[0]))

    monkeypatch.setattr(gpu, "launch", watching)
    time_launch(kernel, launch, [0], repetitions=20)
    assert len(seen) == gpu.launches
    assert set(seen) == {41}


@pytest.mark.parametrize(
    ("size", "l2", "rotate", "flushed"),
    [(1 << 20, 8 << 20, True, False), (64 << 10, 62914560, True, True), (0, 62914560, True, True), (64 << 10, 62914560, False, False)],
)
def test_copies_that_the_l2_holds_all_at_once(gpu, size, l2, rotate, flushed):
    gpu.attributes["L2_CACHE_SIZE"] = l2
    with Device() as device:
        kernel, launch = prepared(device, *(("add", _arrays(size)) if size else ("nothing", [])))
        timing = time_launch(kernel, launch, [], repetitions=50, rotate=rotate)
    assert timing.l2_flushed == flushed
    order = " ".join(each[0] for each in gpu.log if each[0] in ("fill", "record"))
    # a time is between two records; the last record of a batch is behind all of them
    assert order.count("fill record record fill record record") == (25 + 2 if flushed else 0)


@pytest.mark.parametrize(("needed", "fills"), [(0, [12, 12]), (12, [12, 12]), (13, [12, 24, 24]), (100, [12, 24, 48, 96, 192, 192])])
def test_a_batch_that_the_host_was_too_slow_for_is_repeated(device, gpu, needed, fills):
    gpu.fills_needed = needed
    timing = time_launch(*prepared(device), [1], repetitions=20, warm_up=3, rotate=False)
    found = re.findall(r"(?:fill )+", " ".join(each[0] for each in gpu.log))
    assert [run.count("fill") for run in found] == fills
    assert (timing.repetitions, timing.median_us) == (20, 100.0)


def test_a_host_that_is_always_too_slow(device, gpu):
    gpu.fills_needed = 10**6
    assert time_launch(*prepared(device), [1], repetitions=20, warm_up=3, rotate=False).repetitions == 20


def test_warm_times_use_one_set(device, gpu):
    kernel, launch = prepared(device)
    timing = time_launch(kernel, launch, [1], repetitions=60, rotate=False)
    assert timing.input_sets == 1
    assert len(set(launches(gpu))) == 1
    # the fill, which empties the L2, is followed by a launch that is not timed
    order = [each[0] for each in gpu.log if each[0] == "fill" or each[0] == "record" or each[:2] == ("launch", "add")]
    text = " ".join(order)
    assert text.count("fill launch record") == 3
    assert "fill record" not in text


def test_the_clock_spans_the_launches(device, gpu):
    gpu.clock_mhz = 1200.0
    assert time_launch(*prepared(device), [1], repetitions=30).sm_clock_mhz == pytest.approx(1200.0, abs=0.1)
    gpu.ptx_version = (6, 0)
    assert time_launch(*prepared(device), [1], repetitions=30).sm_clock_mhz == 0.0


@pytest.mark.parametrize("rotate", [True, False])
def test_a_kernel_that_fails(gpu, rotate):
    with pytest.raises(GpuFault, match="kernel broken on NVIDIA H200: an illegal memory access"), Device() as device:
        time_launch(*prepared(device, "broken", [np.zeros(4, np.int32)]), [0], repetitions=5, rotate=rotate)
    assert gpu.contexts == ["made", "popped"]
