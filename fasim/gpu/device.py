"""A GPU that is there: what its driver says of it, and a context on it."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import Any

from fasim.arch import Architecture
from fasim.arch.table import ARCHITECTURES
from fasim.errors import GpuError, GpuFault, UsageError
from fasim.gpu.driver import driver_errors, pycuda_driver
from fasim.report.measured import Card

#: printf's buffer on the device, whose older half is lost when it is full; the driver's default is 1 MB
PRINTF_BYTES = 64 << 20
#: contexts after a fault, and the exceptions, whose frames hold events, modules and memory: their ends would fail, or wait for a kernel
#: that does not end
_LOST: list[Any] = []


class Device:
    """A GPU with a context of its own, to be used in a `with` block; index: as the driver counts (CUDA_VISIBLE_DEVICES applies).

    Raises: ToolMissing without pycuda, driver or GPU; UsageError for an index that there is not.
    """

    def __init__(self, index: int = 0) -> None:
        self.driver = pycuda_driver()
        count = self.driver.Device.count()
        if not 0 <= index < count:
            found = ", ".join(f"{i}: {self.driver.Device(i).name()}" for i in range(count))
            raise UsageError(f"there is no GPU {index}; there are {found}")
        self.index = index
        with driver_errors(f"GPU {index}"):
            self._device = self.driver.Device(index)
            self._attributes = {str(key): value for key, value in self._device.get_attributes().items()}
            self.card = self._card()
        self._context: Any = None
        self.broken = False

    def __enter__(self) -> Device:
        with driver_errors(f"cannot use {self.card.name}"):
            self._context = self._device.make_context()
            try:
                self._context.set_limit(self.driver.limit.PRINTF_FIFO_SIZE, PRINTF_BYTES)
            except BaseException as error:
                self.__exit__(type(error), error, None)
                raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        context, self._context = self._context, None
        self.broken = self.broken or isinstance(error, GpuFault)
        with contextlib.suppress(self.driver.Error):
            context.pop()
        if self.broken:
            _LOST.append((context, error))
            return
        with contextlib.suppress(self.driver.Error):
            context.detach()

    def _attribute(self, name: str) -> int:
        if name not in self._attributes:
            raise GpuError(f"GPU {self.index}: the driver or pycuda does not know {name}: update them (CUDA 11.1 or later)")
        return int(self._attributes[name])

    def _card(self) -> Card:
        major, minor = self._device.compute_capability()
        return Card(
            name=self._device.name(),
            compute_capability=f"{major}.{minor}",
            driver=driver_version(),
            sms=self._attribute("MULTIPROCESSOR_COUNT"),
            memory_bytes=int(self._device.total_memory()),
            l2_bytes=self._attribute("L2_CACHE_SIZE"),
            sm_clock_khz=self._attribute("CLOCK_RATE"),
            memory_clock_khz=self._attribute("MEMORY_CLOCK_RATE"),
        )

    @property
    def architecture(self) -> Architecture:
        """The limits of this GPU, all as its driver states them."""
        get, (major, minor) = self._attribute, self._device.compute_capability()
        return Architecture(
            name=f"{self.card.name} ({self.card.arch})",
            number=10 * major + minor,
            card=self.card.name,
            sms=self.card.sms,
            smem_opt_in_bytes=get("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
            smem_sm_bytes=get("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR"),
            smem_reserved_bytes=get("RESERVED_SHARED_MEMORY_PER_BLOCK"),
            warps_per_sm=get("MAX_THREADS_PER_MULTIPROCESSOR") // get("WARP_SIZE"),
            ctas_per_sm=get("MAX_BLOCKS_PER_MULTIPROCESSOR"),
            smem_default_bytes=get("MAX_SHARED_MEMORY_PER_BLOCK"),
            threads_per_cta=get("MAX_THREADS_PER_BLOCK"),
            block_limits=(get("MAX_BLOCK_DIM_X"), get("MAX_BLOCK_DIM_Y"), get("MAX_BLOCK_DIM_Z")),
            grid_limits=(get("MAX_GRID_DIM_X"), get("MAX_GRID_DIM_Y"), get("MAX_GRID_DIM_Z")),
            registers_per_sm=get("MAX_REGISTERS_PER_MULTIPROCESSOR"),
        )

    @property
    def simulated(self) -> bool:
        """Whether fasim can simulate kernels that are compiled for this GPU."""
        return int(self.card.arch.removeprefix("sm_")) in ARCHITECTURES

    def synchronise(self) -> None:
        """Wait for all that was started."""
        self._context.synchronize()


def driver_version() -> str:
    """The version of the driver's package, `580.159.04`; where the system does not tell, the CUDA version that the driver supports."""
    from pathlib import Path

    with contextlib.suppress(OSError):
        # "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  ..."
        words = Path("/proc/driver/nvidia/version").read_text().split("\n", 1)[0].split()
        if versions := [word for word in words if word[0].isdigit() and "." in word]:
            return versions[0]
    number = pycuda_driver().get_driver_version()
    return f"for CUDA {number // 1000}.{number % 1000 // 10}"
