"""Launch a packed kernel on a GPU: machine code in, buffers up, wait, buffers down."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import GpuFault, UsageError
from fasim.gpu.device import Device
from fasim.gpu.driver import driver_errors
from fasim.gpu.packed import PackedLaunch, Variable
from fasim.gpu.printed import captured_stdout

Array = np.ndarray[Any, Any]
#: how often a launch is looked at
_POLL_SECONDS = 0.0005


@dataclass(frozen=True)
class GpuRun:
    """What a launch left behind: what printf wrote, and the module's `__device__` variables by mangled name. Buffers change in place."""

    output: str
    variables: dict[str, bytes]


class Buffers:
    """The buffers of a launch on the device; they live until `free`."""

    def __init__(self, device: Device, arrays: Sequence[Array], names: Sequence[str]) -> None:
        self.device, self.arrays, self._memory = device, arrays, []  # type: tuple[Device, Sequence[Array], list[Any]]
        total = sum(array.nbytes for array in arrays)
        for name, array in zip(names, arrays):
            with driver_errors(f"no device memory for {name}, {array.nbytes:,} of {total:,} bytes"):
                self._memory.append(device.driver.mem_alloc(max(array.nbytes, 1)))

    @property
    def addresses(self) -> list[int]:
        """Where the buffers are on the device."""
        return [int(memory) for memory in self._memory]

    def upload(self) -> None:
        """Copy all buffers to the device."""
        with driver_errors("copying to the GPU"):
            for memory, array in zip(self._memory, self.arrays):
                if array.nbytes:
                    self.device.driver.memcpy_htod(memory, array)

    def download(self) -> None:
        """Copy all buffers back into the arrays; those that are not writable stay as they are."""
        with driver_errors("copying from the GPU"):
            for memory, array in zip(self._memory, self.arrays):
                if array.nbytes and array.flags.writeable:
                    self.device.driver.memcpy_dtoh(array, memory)

    def free(self) -> None:
        """Give the memory back; after a fault there is none."""
        memory, self._memory = self._memory, []
        if self.device.broken:
            _LOST.extend(memory)
            return
        for each in memory:
            # if this fails, something else did before, which is what should be told
            with contextlib.suppress(self.device.driver.Error):
                each.free()


#: memory and modules of devices after a fault: taking them apart would only bring further errors
_LOST: list[Any] = []


class GpuModule:
    """Machine code loaded on a device: a cubin, or PTX text for the driver to assemble.

    Raises: GpuError if the driver refuses it.
    """

    def __init__(self, device: Device, code: bytes | str, arch: str = "") -> None:
        self.device = device
        what = "PTX" if isinstance(code, str) else "machine code"
        with driver_errors(f"{device.card.name} ({device.card.arch}) cannot load the {what}{f' for {arch}' if arch else ''}"):
            self.module = device.driver.module_from_buffer(code.encode() + b"\0" if isinstance(code, str) else code)
        self._initial: dict[str, bytes] = {}

    def kernel(self, entry: str) -> GpuKernel:
        """A kernel by its mangled name.

        Raises: GpuError if there is none.
        """
        return GpuKernel(self, entry)

    def variable(self, name: str) -> tuple[int, int]:
        """Address and size of a variable by its mangled name."""
        with driver_errors(f"no variable {name} in the machine code"):
            address, size_bytes = self.module.get_global(name)
        return int(address), int(size_bytes)

    def read(self, name: str) -> bytes:
        """What a variable holds."""
        address, size_bytes = self.variable(name)
        data = np.empty(size_bytes, np.uint8)
        with driver_errors(f"cannot read {name}"):
            self.device.driver.memcpy_dtoh(data, address)
        return data.tobytes()

    def write(self, name: str, content: bytes) -> None:
        """Set a variable.

        Raises: UsageError if it has another size.
        """
        address, size_bytes = self.variable(name)
        if size_bytes != len(content):
            raise UsageError(f"{name} has {size_bytes} bytes on the GPU, {len(content)} in the PTX")
        with driver_errors(f"cannot set {name}"):
            self.device.driver.memcpy_htod(address, np.frombuffer(content, np.uint8))

    def reset(self, variables: Iterable[Variable]) -> None:
        """Make variables hold what a launch starts with, its own contents or the machine code's, whatever earlier launches left there."""
        given = {variable.name: variable.content for variable in variables}
        for name in given.keys() - self._initial.keys():
            self._initial[name] = self.read(name)
        for name, initial in self._initial.items():
            content = given.get(name)
            self.write(name, initial if content is None else content)


class GpuKernel:
    """A kernel of a loaded module."""

    def __init__(self, module: GpuModule, entry: str) -> None:
        self.module, self.device = module, module.device
        with driver_errors(f"there is no kernel {entry} in the machine code"):
            self.function = module.module.get_function(entry)

    @property
    def registers(self) -> int:
        """Registers a thread."""
        return int(self.function.num_regs)

    @property
    def static_smem_bytes(self) -> int:
        """Static shared memory of a CTA."""
        return int(self.function.shared_size_bytes)

    def prepare(self, launch: PackedLaunch) -> None:
        """What precedes a launch: shared memory above the default limit is opted in, variables set."""
        driver = self.device.driver
        if launch.dynamic_smem_bytes + self.static_smem_bytes > self.device.architecture.smem_default_bytes:
            with driver_errors(f"{launch.dynamic_smem_bytes:,} bytes of dynamic shared memory are too many for {self.device.card.name}"):
                self.function.set_attribute(driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.dynamic_smem_bytes)
        self.module.reset(launch.variables)

    def start(self, launch: PackedLaunch, addresses: Sequence[int]) -> None:
        """Launch without waiting."""
        params = launch.parameters(addresses)
        self.function.prepare([np.dtype(f"V{len(params)}")] if params else [])
        self.function.prepared_call(launch.grid, launch.block, *([params] if params else []), shared_size=launch.dynamic_smem_bytes)

    def run(self, launch: PackedLaunch, *, timeout_seconds: float = 60.0) -> GpuRun:
        """Launch once; the launch's buffers get their new contents.

        Raises: GpuError; GpuFault if the kernel fails or does not end in time.
        """
        buffers = Buffers(self.device, launch.buffers, launch.names)
        try:
            buffers.upload()
            self.prepare(launch)
            with captured_stdout() as printed:
                self.launch_and_wait(launch, buffers.addresses, timeout_seconds)
            buffers.download()
            return GpuRun(printed.text, self.read_variables(launch))
        except BaseException:
            if self.device.broken:
                _LOST.append(self.module)
            raise
        finally:
            buffers.free()

    def launch_and_wait(self, launch: PackedLaunch, addresses: Sequence[int], timeout_seconds: float) -> None:
        """Launch, and wait for the end.

        Raises: GpuError, GpuFault.
        """
        driver = self.device.driver
        doing = f"kernel {launch.title} on {self.device.card.name}"
        with driver_errors(doing):
            end = driver.Event()
            self.start(launch, addresses)
            end.record()
            self.wait(end, doing, timeout_seconds)

    def wait(self, end: Any, doing: str, timeout_seconds: float) -> None:
        """Wait for an event behind all that was started; doing: the beginning of the message if it does not come.

        Raises: GpuFault, or the driver's own error. The device is broken after either, and after an interrupt.
        """
        deadline = time.monotonic() + timeout_seconds
        try:
            while not end.query():
                if time.monotonic() > deadline:
                    raise GpuFault(
                        f"{doing} did not end within {timeout_seconds:g} s. If it only needs longer, --timeout gives it more; "
                        "`fasim run --max-instructions` says where a kernel hangs."
                    )
                time.sleep(_POLL_SECONDS)
            self.device.synchronise()
        except BaseException:
            # the kernel has failed or still runs: whoever gives memory back would meet its error, or wait for it
            self.device.broken = True
            raise

    def read_variables(self, launch: PackedLaunch) -> dict[str, bytes]:
        """The contents of the variables that a kernel may write, by mangled name."""
        return {variable.name: self.module.read(variable.name) for variable in launch.variables if variable.read_back}
