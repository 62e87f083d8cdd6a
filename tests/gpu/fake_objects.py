"""What `fake_driver` hands out: device memory, events, kernels and modules, and the errors of pycuda."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.arch import architecture
from fasim.sm.module import Module

if TYPE_CHECKING:
    from tests.gpu.fake_driver import FakeDriver

H200 = {
    "MULTIPROCESSOR_COUNT": 132,
    "L2_CACHE_SIZE": 62914560,
    "CLOCK_RATE": 1980000,
    "MEMORY_CLOCK_RATE": 3201000,
    "MAX_SHARED_MEMORY_PER_BLOCK": 49152,
    "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 232448,
    "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": 233472,
    "RESERVED_SHARED_MEMORY_PER_BLOCK": 1024,
    "MAX_THREADS_PER_MULTIPROCESSOR": 2048,
    "MAX_BLOCKS_PER_MULTIPROCESSOR": 32,
    "MAX_REGISTERS_PER_MULTIPROCESSOR": 65536,
    "MAX_THREADS_PER_BLOCK": 1024,
    "MAX_BLOCK_DIM_X": 1024,
    "MAX_BLOCK_DIM_Y": 1024,
    "MAX_BLOCK_DIM_Z": 64,
    "MAX_GRID_DIM_X": 2147483647,
    "MAX_GRID_DIM_Y": 65535,
    "MAX_GRID_DIM_Z": 65535,
    "WARP_SIZE": 32,
}
_UNUSED = 0xA5


class Error(Exception):
    """pycuda's base class."""


class LogicError(Error):
    """The caller's fault, and everything after a fault of a kernel."""


class RuntimeError_(Error):
    """The machine's fault."""


class MemoryError_(Error):
    """No memory."""


@dataclass(frozen=True)
class Code:
    """What a cubin was made from."""

    ptx: str
    arch: str
    registers: dict[str, int]


KNOWN: dict[bytes, Code] = {}


def know(cubin: bytes, ptx: str, arch: str, registers: dict[str, int]) -> None:
    """Tell what a cubin was made from."""
    if cubin:
        KNOWN.setdefault(cubin, Code(ptx, arch, dict(registers)))


class _Attribute(int):
    """A member of pycuda's enumerations: a number whose text is its name."""

    name: str

    def __str__(self) -> str:
        return self.name


def attribute(number: int, name: str) -> _Attribute:
    found = _Attribute(number)
    found.name = name
    return found


@dataclass(eq=False)
class Memory:
    """Device memory; what nobody wrote is not zero."""

    address: int
    size_bytes: int
    given: np.ndarray | None = None
    word: int = 0x01010101 * _UNUSED

    @property
    def data(self) -> np.ndarray:
        if self.given is None:
            self.given = np.full(-(-self.size_bytes // 4), self.word, np.uint32).view(np.uint8)[: self.size_bytes]
        return self.given


class DeviceAllocation:
    """What `mem_alloc` gives: the memory lives as long as this does."""

    def __init__(self, driver: FakeDriver, address: int) -> None:
        self._driver, self._address, self._freed = driver, address, False

    def __int__(self) -> int:
        return self._address

    def free(self) -> None:
        if self._freed:
            raise LogicError("device_allocation::free failed: invalid handle")
        self._driver.check("cuMemFree")
        del self._driver.memory[self._address]
        self._freed = True

    def __del__(self) -> None:
        if not self._freed:
            self._driver.clean_up("cuMemFree", waits=True)
            self._driver.memory.pop(self._address, None)


class Event:
    """Notes the time of the fake GPU."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver, self.at_ns, self.hangs, self.looks = driver, -1, False, 0

    def __del__(self) -> None:
        self.driver.clean_up("cuEventDestroy")

    def record(self) -> None:
        self.driver.check("cuEventRecord", faults=False)
        self.at_ns, self.hangs = self.driver.now_ns, self.driver.hangs
        self.driver.log.append(("record",))

    def query(self) -> bool:
        self.driver.check("cuEventQuery")
        self.looks += 1
        # the host is ahead of the GPU: at the first look nothing has ended, unless there are too few fills to keep the GPU busy
        return not self.hangs and (self.looks > 1 or self.driver.pending_fills < self.driver.fills_needed)

    def time_since(self, earlier: Event) -> float:
        assert self.at_ns >= 0 and earlier.at_ns >= 0, "an event that was not recorded"
        return (self.at_ns - earlier.at_ns) / 1e6


class Function:
    """A kernel of a loaded module."""

    def __init__(self, driver: FakeDriver, module: Module, entry: str, registers: int) -> None:
        self.driver, self.entry, self.num_regs = driver, entry, registers
        self.kernel = module.kernel(entry)
        self.shared_size_bytes = self.kernel.program.static_smem_bytes
        self.most_dynamic_bytes = 49152 - self.shared_size_bytes
        self.arg_format = ""

    def set_attribute(self, attribute: Any, value: int) -> None:
        assert attribute is self.driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES
        self.driver.check("cuFuncSetAttribute")
        if value + self.shared_size_bytes > H200["MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"]:
            raise LogicError("cuFuncSetAttribute failed: invalid argument")
        self.most_dynamic_bytes = value

    def prepare(self, arg_types: list[np.dtype]) -> None:
        self.arg_format = "".join(f"{t.itemsize}s" if t.char == "V" else t.char for t in arg_types)

    def prepared_call(self, grid: tuple[int, ...], block: tuple[int, ...], *args: Any, shared_size: int = 0) -> None:
        params = struct.pack(self.arg_format, *args)
        self.driver.check("cuLaunchKernel")
        if shared_size > self.most_dynamic_bytes or len(params) != self.kernel.program.param_bytes:
            raise LogicError("cuLaunchKernel failed: invalid argument")
        self.driver.launch(self, grid, block, params, shared_size)


class _Untyped(Module):
    """A module that knows no types of parameters: memory is bytes here."""

    def signature(self, program: Any) -> None:
        return None


class LoadedModule:
    """A module on the fake GPU: the simulator's, with its variables at addresses of the fake GPU."""

    def __init__(self, driver: FakeDriver, code: Code) -> None:
        self.driver, self.code = driver, code
        self.module = _Untyped(code.ptx, "<loaded>", architecture(code.arch))
        self._variables: dict[str, Memory] = {}

    def __del__(self) -> None:
        self.driver.clean_up("cuModuleUnload", waits=True)

    def get_function(self, name: str) -> Function:
        if name not in self.module._index[0]:
            raise LogicError("cuModuleGetFunction failed: named symbol not found")
        return Function(self.driver, self.module, name, self.code.registers.get(name, 32))

    def get_global(self, name: str) -> tuple[int, int]:
        if name not in self._variables:
            found = [variable for variable in self.module._variables() if variable.name == name]
            if not found:
                raise LogicError("cuModuleGetGlobal failed: named symbol not found")
            self._variables[name] = self.driver.place(found[0].size_bytes, self.module.data(found[0]))
        return self._variables[name].address, self._variables[name].size_bytes
