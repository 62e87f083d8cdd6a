"""Time a kernel with events: warm-up, many launches, buffers in turn so that the L2 cache does not lie.

Two events hold the kernel's time alone only if the host has started the kernel before the GPU gets to the first of them. So the GPU is kept
busy with fills while the host starts a batch, and a batch in which it did get there is repeated with more of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import GpuFault
from fasim.gpu.clock import Clock, clock_of
from fasim.gpu.device import Device
from fasim.gpu.driver import driver_errors
from fasim.gpu.launch import Buffers, GpuKernel
from fasim.gpu.packed import PackedLaunch
from fasim.gpu.printed import captured_stdout
from fasim.report.measured import Timing

Array = np.ndarray[Any, Any]

#: launches in flight between two events each
_BATCH = 50
#: more than twice the largest L2 cache; how many fills keep the GPU busy at first, and at most
_FILL_BYTES, _FILLS, _MOST_FILLS = 1 << 28, 12, 384
#: one round through all sets of buffers moves this much more than the L2 holds
_L2_TIMES = 3
_MOST_SETS = 64
#: repetitions where no number is given
_LEAST, _MOST = 20, 300


@dataclass
class _Set:
    """One copy of all buffers, and the contents to put back into those that the kernel changes."""

    buffers: Buffers
    pristine: list[tuple[Any, Any, int]]

    def restore(self, driver: Any) -> None:
        for target, source, size in self.pristine:
            driver.memcpy_dtod_async(target, source, size)


def time_launch(
    kernel: GpuKernel,
    launch: PackedLaunch,
    changed: Sequence[int],
    *,
    warm_up: int = 5,
    repetitions: int | None = None,
    seconds: float = 1.0,
    rotate: bool = True,
    flops: int = 0,
    timeout_seconds: float = 60.0,
) -> Timing:
    """Time a launch; the launch's own buffers stay as they are.

    changed: the buffers that the kernel changes, by number: they are put back between launches, outside of the times.
    repetitions: launches that are timed; None: as many as take `seconds`, within limits.
    rotate: use as many copies of the buffers as it takes to leave the L2 cold, and where they are too small for that overwrite it before
    each launch; without, the same ones each time, so that it is warm.
    Raises: GpuError, GpuFault.
    """
    device = kernel.device
    total = sum(array.nbytes for array in launch.buffers)
    count = _sets(device, total) if rotate else 1
    flush = rotate and count * total < _L2_TIMES * device.card.l2_bytes
    sets: list[_Set] = []
    scratch: list[Any] = []
    try:
        with driver_errors(f"cannot time kernel {launch.title}"):
            originals = Buffers(device, launch.buffers, launch.names)
            scratch.append(originals)
            originals.upload()
            for _ in range(count):
                buffers = Buffers(device, launch.buffers, launch.names)
                sets.append(_Set(buffers, [(buffers.addresses[i], originals.addresses[i], launch.buffers[i].nbytes) for i in changed]))
                buffers.upload()
            fill = device.driver.mem_alloc(_FILL_BYTES)
            kernel.prepare(launch)
            before = kernel.read_variables(launch)
            with captured_stdout():
                kernel.launch_and_wait(launch, sets[0].buffers.addresses, timeout_seconds)
            written = {name: before[name] for name, after in kernel.read_variables(launch).items() if after != before[name]}
            scratch.append(_keep_variables(kernel, written, sets))
            sets[0].restore(device.driver)
            run = _Run(kernel, launch, sets, int(fill), flush, clock_of(device), timeout_seconds)
            once_us = float(np.median(run.batch(max(warm_up, 3))[0]))
            wanted = repetitions or int(np.clip(seconds * 1e6 / max(once_us, 1.0), _LEAST, _MOST))
            samples: list[float] = []
            clocks: list[float] = []
            while len(samples) < wanted:
                times, clock = run.batch(min(_BATCH, wanted - len(samples)))
                samples += times
                clocks.append(clock)
            fill.free()
        low, median, high = np.percentile(samples, (5, 50, 95))
        known = [clock for clock in clocks if clock]
        return Timing(
            median_us=round(float(median), 3),
            low_us=round(float(low), 3),
            high_us=round(float(high), 3),
            least_us=round(min(samples), 3),
            most_us=round(max(samples), 3),
            warm_up=1 + max(warm_up, 3),
            repetitions=len(samples),
            input_sets=count,
            flops=flops,
            sm_clock_mhz=round(float(np.mean(known)), 1) if known else 0.0,
            l2_flushed=flush,
        )
    except GpuFault:
        device.broken = True
        raise
    finally:
        for each in (*scratch, *(item.buffers for item in sets)):
            each.free()


def _sets(device: Device, bytes_each: int) -> int:
    """How many copies of the buffers leave nothing of the first in the L2 cache when its turn comes again."""
    if not bytes_each:
        return 1
    wanted = -(-_L2_TIMES * device.card.l2_bytes // bytes_each) + 1
    free, _ = device.driver.mem_get_info()
    return int(max(1, min(wanted, _MOST_SETS, (free - 2 * _FILL_BYTES) // (2 * bytes_each))))


def _keep_variables(kernel: GpuKernel, written: Mapping[str, bytes], sets: Sequence[_Set]) -> Buffers:
    """Copies of the module's variables that the kernel writes, on the device; every set puts them back, too."""
    copies = Buffers(kernel.device, [np.frombuffer(content, np.uint8) for content in written.values()], list(written))
    copies.upload()
    for name, source in zip(written, copies.addresses):
        target, size_bytes = kernel.module.variable(name)
        for each in sets:
            each.pristine.append((target, source, size_bytes))
    return copies


class _Run:
    """Launches in batches, each between two events of its own."""

    def __init__(
        self,
        kernel: GpuKernel,
        launch: PackedLaunch,
        sets: Sequence[_Set],
        fill: int,
        flush: bool,
        clock: Clock | None,
        timeout_seconds: float,
    ) -> None:
        self.kernel, self.launch, self.sets, self.fill, self.flush, self.clock = kernel, launch, sets, fill, flush, clock
        self.timeout_seconds, self.turn, self.fills = timeout_seconds, 0, _FILLS

    def batch(self, count: int) -> tuple[list[float], float]:
        """Times of `count` launches in microseconds, and the SM clock meanwhile in MHz (0 if unknown)."""
        while True:
            events, ahead = self._started(count)
            if ahead or self.fills >= _MOST_FILLS:
                return [1000.0 * float(end.time_since(begin)) for begin, end in events], self.clock.mhz() if self.clock else 0.0
            self.fills *= 2

    def _overwrite_l2(self) -> None:
        self.kernel.device.driver.memset_d32_async(self.fill, 0, _FILL_BYTES // 4)

    def _started(self, count: int) -> tuple[list[tuple[Any, Any]], bool]:
        """The events around `count` launches that have ended, and whether the host was ahead of the GPU at each of them."""
        driver = self.kernel.device.driver
        events, ahead = [(driver.Event(), driver.Event()) for _ in range(count)], True
        for _ in range(self.fills):
            self._overwrite_l2()
        if len(self.sets) == 1:
            # the fill has emptied the L2 cache
            self.kernel.start(self.launch, self.sets[0].buffers.addresses)
            self.sets[0].restore(driver)
        if self.clock:
            self.clock.read(0)
        for begin, end in events:
            chosen = self.sets[self.turn % len(self.sets)]
            self.turn += 1
            if self.flush:
                self._overwrite_l2()
            begin.record()
            self.kernel.start(self.launch, chosen.buffers.addresses)
            ahead = ahead and not begin.query()
            end.record()
            chosen.restore(driver)
        if self.clock:
            self.clock.read(1)
        behind = driver.Event()
        behind.record()
        # what printf writes is nobody's output here
        with captured_stdout():
            self.kernel.wait(behind, f"{count} launches of {self.launch.title}", self.timeout_seconds * count)
        return events, ahead
