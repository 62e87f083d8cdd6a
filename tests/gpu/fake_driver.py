"""`pycuda.driver` without a GPU: device memory at addresses of its own, launches by the simulator, errors in the real driver's words.

As seen on an H200 with driver 580.159.04 and pycuda 2026.1. What real pycuda would not take (numpy integers as addresses, arrays that are
not contiguous, calls without a context) is refused here too. Kernels run when they are launched; later calls tell what broke.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

import fasim.toolchain.ptxas
from fasim.errors import ExecutionError, FasimError, InstructionLimit, KernelAssertion, LaunchError, MemoryAccessError
from fasim.gmem import DeviceBuffer
from fasim.gpu import driver as gpu_driver
from fasim.sm.arguments import DeviceArray
from fasim.toolchain import CompiledModule
from tests.gpu.fake_objects import (
    H200,
    KNOWN,
    Code,
    DeviceAllocation,
    Error,
    Event,
    Function,
    LoadedModule,
    LogicError,
    Memory,
    MemoryError_,
    RuntimeError_,
    attribute,
    know,
)

MEMORY_BYTES = 150_110_011_392
#: what a launch may execute before it counts as one that does not end
_ENDLESS = 1_000_000
_VERSION = re.compile(r"^\s*\.version\s+(\d+)\.(\d+)", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+)", re.MULTILINE)


@dataclass
class FakeDriver:
    """The module `pycuda.driver`, and what tests see and set of the fake GPU.

    log: what was asked of it. durations_ns: of the launches in turn. contexts: "made", "popped", "detached" in their order.
    fills_needed: how many fills in a row keep the GPU busy for as long as the host needs to start what comes behind.
    fault: what the driver says since a kernel failed. late: what went wrong when objects came to their end behind a fault.
    """

    names: tuple[str, ...] = ("NVIDIA H200",)
    capability: tuple[int, int] = (9, 0)
    attributes: dict[str, int] = field(default_factory=lambda: dict(H200))
    total_bytes: int = MEMORY_BYTES
    ptx_version: tuple[int, int] = (9, 0)
    clock_mhz: float = 1755.0
    durations_ns: tuple[int, ...] = (100_000,)
    init_error: str = ""
    log: list[tuple[Any, ...]] = field(default_factory=list)
    contexts: list[str] = field(default_factory=list)
    memory: dict[int, Memory] = field(default_factory=dict)
    late: list[str] = field(default_factory=list)
    loaded: list[bytes] = field(default_factory=list)
    now_ns: int = 1_000_000_000
    launches: int = 0
    fills_needed: int = 0
    pending_fills: int = 0
    fault: str = ""
    hangs: bool = False

    Error, LogicError, RuntimeError, MemoryError = Error, LogicError, RuntimeError_, MemoryError_
    limit = SimpleNamespace(PRINTF_FIFO_SIZE=attribute(1, "PRINTF_FIFO_SIZE"))
    function_attribute = SimpleNamespace(MAX_DYNAMIC_SHARED_SIZE_BYTES=attribute(8, "MAX_DYNAMIC_SHARED_SIZE_BYTES"))

    def __post_init__(self) -> None:
        self._next, self._printed, self._current, self._ready = 0x7F5A_0000_0000, "", 0, False
        self.Device = self._device_class()

    def init(self) -> None:
        if self.init_error:
            raise LogicError(f"cuInit failed: {self.init_error}")
        self._ready = True

    def get_driver_version(self) -> int:
        return 13000

    def Event(self) -> Event:
        self.check("cuEventCreate")
        return Event(self)

    def check(self, function: str, *, faults: bool = True) -> None:
        """Every call needs a context, and fails after a fault."""
        if not self._current:
            raise LogicError(f"{function} failed: invalid device context")
        if self.fault and faults:
            raise LogicError(f"{function} failed: {self.fault}")

    def clean_up(self, function: str, *, waits: bool = False) -> None:
        """What an object does at its end: nothing if its context is gone; else real pycuda warns on stderr if it fails."""
        if self.contexts[-1:] == ["detached"]:
            return
        if waits and self.hangs:
            self.late.append(f"{function} waits for ever")
        elif self.fault:
            self.late.append(f"{function} failed: {self.fault}")

    def _device_class(self) -> Any:
        driver = self

        class Device:
            def __init__(self, index: int) -> None:
                if not 0 <= index < len(driver.names):
                    raise LogicError("cuDeviceGet failed: invalid device ordinal")
                self.index = index

            @staticmethod
            def count() -> int:
                assert driver._ready, "cuInit first"
                return len(driver.names)

            def name(self) -> str:
                return driver.names[self.index]

            def compute_capability(self) -> tuple[int, int]:
                return driver.capability

            def get_attributes(self) -> dict[Any, int]:
                return {attribute(i, name): value for i, (name, value) in enumerate(driver.attributes.items())}

            def total_memory(self) -> int:
                return driver.total_bytes

            def make_context(self) -> Any:
                driver._current += 1
                driver.contexts.append("made")
                driver.log.append(("context", self.index))
                return SimpleNamespace(set_limit=driver.set_limit, pop=driver.pop, detach=driver.detach, synchronize=driver.synchronize)

        return Device

    def set_limit(self, limit: Any, value: int) -> None:
        self.check("cuCtxSetLimit")
        self.log.append(("limit", str(limit), value))

    def pop(self) -> None:
        self._current -= 1
        self.contexts.append("popped")

    def detach(self) -> None:
        self.contexts.append("detached")

    def synchronize(self) -> None:
        assert not self.hangs, "this would wait for ever"
        self.check("cuCtxSynchronize")
        self.pending_fills = 0
        text, self._printed = self._printed, ""
        if text:
            os.write(1, text.encode())

    def module_from_buffer(self, code: bytes) -> LoadedModule:
        self.check("cuModuleLoadDataEx")
        self.loaded.append(code)
        if code.endswith(b"\0") and not code.startswith(b"\x7fELF"):
            return self._assembled(code[:-1].decode())
        if code not in KNOWN:
            raise RuntimeError_("cuModuleLoadDataEx failed: device kernel image is invalid - ")
        known = KNOWN[code]
        number, mine = int(known.arch[3:].rstrip("af")), 10 * self.capability[0] + self.capability[1]
        if number // 10 != mine // 10 or number > mine:
            raise RuntimeError_("cuModuleLoadDataEx failed: no kernel image is available for execution on the device - ")
        return LoadedModule(self, known)

    def _assembled(self, ptx: str) -> LoadedModule:
        version, target = _VERSION.search(ptx), _TARGET.search(ptx)
        assert version and target, "PTX without .version or .target"
        if (int(version[1]), int(version[2])) > self.ptx_version:
            current = ".".join(map(str, self.ptx_version))
            raise LogicError(
                "cuModuleLoadDataEx failed: the provided PTX was compiled with an unsupported toolchain. - ptxas application ptx input, "
                f"line 9; fatal   : Unsupported .version {version[1]}.{version[2]}; current version is '{current}'"
            )
        mine = f"sm_{self.capability[0]}{self.capability[1]}"
        module = LoadedModule(self, Code(ptx, mine, {}))
        try:
            module.module._index  # noqa: B018
        except FasimError as error:
            raise LogicError(f"cuModuleLoadDataEx failed: a PTX JIT compilation failed - {error}") from error
        return module

    def place(self, size_bytes: int, given: np.ndarray | None = None) -> Memory:
        """Memory at the next address."""
        found = Memory(self._next, size_bytes, given)
        self.memory[found.address] = found
        self._next += -(-max(size_bytes, 1) // 512) * 512
        return found

    def mem_get_info(self) -> tuple[int, int]:
        self.check("cuMemGetInfo")
        return self.total_bytes - sum(each.size_bytes for each in self.memory.values()), self.total_bytes

    def mem_alloc(self, size_bytes: int) -> DeviceAllocation:
        self.check("cuMemAlloc")
        if size_bytes <= 0:
            raise LogicError("cuMemAlloc failed: invalid argument")
        if size_bytes > self.mem_get_info()[0]:
            raise MemoryError_("cuMemAlloc failed: out of memory")
        return DeviceAllocation(self, self.place(size_bytes).address)

    def _memory(self, function: str, address: Any, size_bytes: int) -> tuple[Memory, int]:
        """The allocation that an address is in, and how far."""
        assert type(address) in (int, DeviceAllocation), f"pycuda takes no {type(address).__name__} as address"
        self.check(function)
        found = self._find(int(address))
        if found is None or found[1] + size_bytes > found[0].size_bytes:
            raise LogicError(f"{function} failed: invalid argument")
        return found

    def _find(self, address: int) -> tuple[Memory, int] | None:
        inside = [a for a in self.memory.values() if a.address <= address < a.address + max(a.size_bytes, 1)]
        return (inside[0], address - inside[0].address) if inside else None

    def memcpy_htod(self, target: Any, source: np.ndarray) -> None:
        assert source.flags.c_contiguous, "ndarray is not contiguous"
        allocation, at = self._memory("cuMemcpyHtoD", target, source.nbytes)
        allocation.data[at : at + source.nbytes] = source.reshape(-1).view(np.uint8)

    def memcpy_dtoh(self, target: np.ndarray, source: Any) -> None:
        assert target.flags.c_contiguous and target.flags.writeable, "no buffer that can be written"
        allocation, at = self._memory("cuMemcpyDtoH", source, target.nbytes)
        target.reshape(-1).view(np.uint8)[:] = allocation.data[at : at + target.nbytes]

    def memcpy_dtod_async(self, target: Any, source: Any, size_bytes: int) -> None:
        (there, to), (here, start) = (self._memory("cuMemcpyDtoDAsync", a, size_bytes) for a in (target, source))
        there.data[to : to + size_bytes] = here.data[start : start + size_bytes]
        self.log.append(("copy", int(target), int(source), size_bytes))
        self.now_ns += 7_000_000

    def memset_d32_async(self, target: Any, word: int, count: int) -> None:
        allocation, at = self._memory("cuMemsetD32Async", target, 4 * count)
        if at == 0 and 4 * count == allocation.size_bytes and allocation.given is None:
            allocation.word = word
        else:
            allocation.data[at : at + 4 * count].view(np.uint32)[:] = word
        self.log.append(("fill", int(target), 4 * count))
        self.pending_fills += 1
        self.now_ns += 60_000

    def start_profiler(self) -> None:
        self.log.append(("start profiler",))

    def stop_profiler(self) -> None:
        self.log.append(("stop profiler",))

    def launch(self, function: Function, grid: tuple[int, ...], block: tuple[int, ...], params: bytes, shared_bytes: int) -> None:
        """Run a kernel, and let its time pass."""
        self.log.append(("launch", function.entry, grid, block, params, shared_bytes))
        if function.entry == "fasim_clock":
            return self._read_clock(grid, params)
        if function.kernel.program.static_smem_bytes + shared_bytes > 49152:
            assert function.most_dynamic_bytes >= shared_bytes
        try:
            done = function.kernel.launch(
                grid, block, list(self._arguments(function, params)), dynamic_smem_bytes=shared_bytes, workers=1, count=False,
                max_instructions=_ENDLESS, output=lambda text: None,
            )  # fmt: skip
            self._printed += done.output
        except LaunchError as error:
            raise LogicError("cuLaunchKernel failed: invalid argument") from error
        except InstructionLimit:
            self.hangs = True
        except ExecutionError as error:
            self.fault = _driver_words(error)
        self.now_ns += self.durations_ns[self.launches % len(self.durations_ns)]
        self.launches += 1
        return None

    def _arguments(self, function: Function, params: bytes) -> Iterator[Any]:
        """What stands in the parameters, with addresses of the fake GPU as pointers into its memory."""
        for parameter in function.kernel.program.parameters:
            raw = params[parameter.offset : parameter.offset + parameter.size_bytes]
            number = int.from_bytes(raw, "little")
            if parameter.type_.startswith("b8["):
                yield np.frombuffer(raw, np.uint8)
            elif parameter.type_[0] == "f":
                yield np.frombuffer(raw, f"f{len(raw)}")[0]
            elif len(raw) == 8 and (found := self._find(number)):
                yield DeviceArray(DeviceBuffer(found[0].data), found[1])
            else:
                yield number

    def _read_clock(self, grid: tuple[int, ...], params: bytes) -> None:
        allocation, at = self._memory("launch", int.from_bytes(params, "little"), 24 * grid[0])
        rows = allocation.data[at : at + 24 * grid[0]].view(np.int64).reshape(-1, 3)
        rows[:, 0] = np.arange(grid[0]) % self.attributes["MULTIPROCESSOR_COUNT"]
        # each SM counts from another number
        rows[:, 1] = rows[:, 0] * 10**9 + int(self.now_ns * self.clock_mhz / 1000)
        rows[:, 2] = self.now_ns


def _driver_words(error: ExecutionError) -> str:
    if isinstance(error, MemoryAccessError):
        return "misaligned address" if "misaligned" in str(error.details.get("kind")) else "an illegal memory access was encountered"
    return "device-side assert triggered" if isinstance(error, KernelAssertion) else "unspecified launch failure"


def install(monkeypatch: Any, driver: Any) -> None:
    """Make `driver` the module `pycuda.driver`, and note what cubins are made from."""
    package = ModuleType("pycuda")
    package.__spec__, package.__path__ = ModuleSpec("pycuda", None, is_package=True), []
    package.driver = driver
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    gpu_driver.pycuda_driver.cache_clear()
    make, assemble = CompiledModule.__init__, fasim.toolchain.ptxas.assemble

    def noting(self: CompiledModule, *args: Any, **fields: Any) -> None:
        make(self, *args, **fields)
        know(self.cubin, self.ptx, self.arch, self.registers)

    def assembling(ptx: str, path: str, arch: str) -> Any:
        done = assemble(ptx, path, arch)
        know(done.cubin, ptx, arch, done.registers)
        return done

    monkeypatch.setattr(CompiledModule, "__init__", noting)
    monkeypatch.setattr(fasim.toolchain.ptxas, "assemble", assembling)
