"""The clock at which the SMs really ran: cycles over nanoseconds, read on the SMs themselves before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

from fasim.errors import GpuError
from fasim.gpu.device import Device
from fasim.gpu.launch import GpuModule

Array = np.ndarray[Any, Any]

#: every CTA notes its SM's cycles and the time: o[3 * ctaid] = smid, cycles, ns
_PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry fasim_clock(.param .u64 out)
{
  .reg .b64 %rd<8>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mul.wide.u32 %rd2, %r1, 24;
  add.s64 %rd3, %rd1, %rd2;
  mov.u32 %r2, %smid;
  cvt.u64.u32 %rd4, %r2;
  mov.u64 %rd6, %globaltimer;
  mov.u64 %rd5, %clock64;
  st.global.u64 [%rd3], %rd4;
  st.global.u64 [%rd3+8], %rd5;
  st.global.u64 [%rd3+16], %rd6;
  ret;
}
"""


class Clock:
    """Two readings of all SMs around what is timed; needs no tool beside the driver."""

    def __init__(self, device: Device) -> None:
        self.device, self.ctas = device, 2 * device.card.sms
        self._kernel = GpuModule(device, _PTX).kernel("fasim_clock")
        self._memory = [device.driver.mem_alloc(24 * self.ctas) for _ in range(2)]

    def read(self, which: int) -> None:
        """Start reading 0 or 1, behind what was started before."""
        function = self._kernel.function
        function.prepare([np.dtype(np.uint64)])
        function.prepared_call((self.ctas, 1, 1), (1, 1, 1), int(self._memory[which]))

    def mhz(self) -> float:
        """Mean over the SMs of the clock between the two readings; 0 if the time between them was too short to tell."""
        readings = []
        for memory in self._memory:
            data = np.empty((self.ctas, 3), np.int64)
            self.device.driver.memcpy_dtoh(data, memory)
            # of the CTAs that ran on one SM the first
            readings.append({int(sm): (int(cycles), int(ns)) for sm, cycles, ns in data[::-1]})
        clocks = []
        for sm, (cycles, ns) in readings[0].items():
            later_cycles, later_ns = readings[1].get(sm, (0, 0))
            # %globaltimer may move on only every microsecond
            if later_ns - ns >= _LEAST_NS:
                clocks.append((later_cycles - cycles) / (later_ns - ns) * 1000)
        return float(np.mean(clocks)) if clocks else 0.0


_LEAST_NS = 100_000


def clock_of(device: Device) -> Clock | None:
    """A clock, or None where the driver does not take the PTX."""
    try:
        return Clock(device)
    except GpuError:
        return None
