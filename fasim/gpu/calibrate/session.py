"""The measurements' kernels on a device: loaded when first used, launched with plain numbers, results as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fasim.gpu.calibrate.code import Code
from fasim.gpu.device import Device
from fasim.gpu.driver import driver_errors
from fasim.gpu.launch import GpuKernel, GpuModule

Array = np.ndarray[Any, Any]
_TIMEOUT_SECONDS = 60.0


class Memory:
    """Device memory that lives until it is freed."""

    def __init__(self, device: Device, size_bytes: int) -> None:
        self.size_bytes, self.device = size_bytes, device
        with driver_errors(f"no device memory for {size_bytes:,} bytes"):
            self._memory = device.driver.mem_alloc(size_bytes)

    def __int__(self) -> int:
        return int(self._memory)

    def fill(self, value: int = 0) -> None:
        """Start setting all words to a value."""
        self.device.driver.memset_d32(int(self), value, self.size_bytes // 4)

    def put(self, data: Array, offset_bytes: int = 0) -> None:
        """Copy an array there."""
        self.device.driver.memcpy_htod(int(self) + offset_bytes, np.ascontiguousarray(data))

    def words(self, count: int) -> Array:
        """The first 64-bit words."""
        data = np.empty(count, np.int64)
        self.device.driver.memcpy_dtoh(data, int(self))
        return data

    def free(self) -> None:
        """Give it back."""
        if not self.device.broken:
            self._memory.free()


class Session:
    """A device with the measurements' code; out: memory for results."""

    def __init__(self, device: Device, code: Code) -> None:
        self.device, self.code = device, code
        self._modules: dict[str, GpuModule] = {}
        self._kernels: dict[str, GpuKernel] = {}
        self.out = Memory(device, 1 << 20)

    def module(self, cubin: str) -> GpuModule:
        """A cubin, loaded."""
        if cubin not in self._modules:
            self._modules[cubin] = GpuModule(self.device, self.code.cubins[cubin], self.code.arch)
        return self._modules[cubin]

    def kernel(self, cubin: str, name: str, smem_bytes: int = 0) -> GpuKernel:
        """A kernel that may have so much dynamic shared memory."""
        key = f"{cubin}/{name}"
        if key not in self._kernels:
            self._kernels[key] = self.module(cubin).kernel(name)
        kernel = self._kernels[key]
        if smem_bytes > self.device.architecture.smem_default_bytes:
            attribute = self.device.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
            with driver_errors(f"{smem_bytes:,} bytes of dynamic shared memory"):
                kernel.function.set_attribute(attribute, smem_bytes)
        return kernel

    def start(self, kernel: GpuKernel, grid: int, block: int, arguments: Sequence[Any], smem_bytes: int = 0, stream: Any = None) -> None:
        """Launch without waiting; arguments: Memory, or int for 32 bits, or numpy integers."""
        values = [np.uint64(int(each)) if isinstance(each, Memory) else each for each in arguments]
        values = [np.uint32(each) if isinstance(each, int) else each for each in values]
        kernel.function.prepare([value.dtype for value in values])
        numbers = [int(value) for value in values]
        if stream is None:
            kernel.function.prepared_call((grid, 1, 1), (block, 1, 1), *numbers, shared_size=smem_bytes)
        else:
            kernel.function.prepared_async_call((grid, 1, 1), (block, 1, 1), stream, *numbers, shared_size=smem_bytes)

    def run(self, kernel: GpuKernel, grid: int, block: int, arguments: Sequence[Any], smem_bytes: int = 0) -> None:
        """Launch and wait.

        Raises: GpuError, GpuFault.
        """
        doing = "a measurement"
        with driver_errors(doing):
            self.start(kernel, grid, block, arguments, smem_bytes)
            end = self.device.driver.Event()
            end.record()
            kernel.wait(end, doing, _TIMEOUT_SECONDS)

    def between_events(self, kernel: GpuKernel, grid: int, block: int, arguments: Sequence[Any], before: Any = None) -> float:
        """Launch between two events, and wait; before: started first, so that the host is ahead of the GPU.

        Returns: microseconds.
        """
        driver = self.device.driver
        with driver_errors("a measurement"):
            begin, end = driver.Event(), driver.Event()
            if before is not None:
                before()
            begin.record()
            self.start(kernel, grid, block, arguments)
            end.record()
            kernel.wait(end, "a measurement", _TIMEOUT_SECONDS)
            return 1000.0 * float(end.time_since(begin))

    def close(self) -> None:
        """Give all memory back."""
        self.out.free()
