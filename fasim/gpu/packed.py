"""A launch as a GPU takes it: machine code, parameter bytes, buffers, and where addresses stand among the bytes."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.arch import Architecture
from fasim.errors import NotModelled
from fasim.gmem import AddressSpace
from fasim.sm.arguments import Arguments
from fasim.sm.limits import launch_shape, triple
from fasim.sm.module import Kernel
from fasim.toolchain.names import plain_name

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Pointer:
    """An address among the parameters: that of a buffer, `delta_bytes` further on."""

    offset: int
    buffer: int
    delta_bytes: int


@dataclass(frozen=True)
class Variable:
    """A variable of the module; content: what it holds at the launch, None for what the machine code says itself.

    read_back: whether it is an output: a `__device__` variable whose bytes are no addresses.
    """

    name: str
    title: str
    size_bytes: int
    content: bytes | None
    read_back: bool


@dataclass(frozen=True)
class PackedLaunch:
    """Everything that a launch on a GPU needs, apart from the machine code.

    entry: the kernel's mangled name; title: its plain one. buffers: C-contiguous arrays, which change in place.
    """

    entry: str
    title: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    dynamic_smem_bytes: int
    params: bytes
    pointers: tuple[Pointer, ...]
    buffers: tuple[Array, ...]
    names: tuple[str, ...]
    variables: tuple[Variable, ...] = ()

    def parameters(self, addresses: Sequence[int]) -> bytes:
        """The parameter bytes with the addresses that the buffers have on the device."""
        data = bytearray(self.params)
        for pointer in self.pointers:
            address = addresses[pointer.buffer] + pointer.delta_bytes
            data[pointer.offset : pointer.offset + 8] = (address & 0xFFFFFFFFFFFFFFFF).to_bytes(8, "little")
        return bytes(data)


class Packing:
    """One launch of a kernel made ready for a GPU; `write_back` ends it.

    arch: the limits of the GPU. grid, block, args: as `Kernel.launch` takes them.
    Raises: LaunchError for what the driver would refuse; NotModelled for a launch that pycuda cannot make.
    """

    def __init__(
        self,
        kernel: Kernel,
        grid: int | Sequence[int],
        block: int | Sequence[int],
        args: Sequence[Any] = (),
        *,
        dynamic_smem_bytes: int = 0,
        names: Sequence[str] = (),
        arch: Architecture | None = None,
    ) -> None:
        self.kernel, program = kernel, kernel.program
        if program.syncs_grid or "%envreg2" in program.launch_rows:
            raise NotModelled(f"kernel {kernel.name} synchronises its grid: pycuda has no cooperative launch; run it with fasim run")
        sizes = triple(grid, "grid"), triple(block, "block")
        launch_shape(program, arch or kernel.module.arch, kernel.registers, *sizes, dynamic_smem_bytes, True)
        self.space = AddressSpace()
        self.arguments = Arguments(program, self.space, {}, names, kernel.signature)
        params = bytes(self.arguments.pack(args))[: program.param_bytes]
        allocations = sorted(self.space.allocations, key=lambda allocation: allocation.address)
        starts = [allocation.address for allocation in allocations]
        found = [(offset, bisect.bisect_right(starts, address) - 1, address) for offset, address in self.arguments.pointers]
        # of the device arrays that somebody holds only those that the kernel gets
        used = sorted({index for _, index, _ in found})
        self.launch = PackedLaunch(
            entry=program.name,
            title=kernel.name,
            grid=sizes[0],
            block=sizes[1],
            dynamic_smem_bytes=int(dynamic_smem_bytes),
            params=params,
            pointers=tuple(Pointer(offset, used.index(index), address - starts[index]) for offset, index, address in found),
            buffers=tuple(allocations[index].data for index in used),
            names=tuple(allocations[index].name for index in used),
            variables=tuple(self._variables()),
        )

    def _variables(self) -> list[Variable]:
        module, found = self.kernel.module, []
        for variable in self.kernel.program.variables:
            content = bytes(module.data(variable))
            if variable.relocated and content != variable.initial:
                raise NotModelled(
                    f"variable {plain_name(variable.name)} holds addresses of the simulator by now, which mean nothing on a GPU: "
                    "compile the module anew for the launch there"
                )
            # strings of the compiler: of printf, and of assert
            ours = "$" not in variable.name and not variable.name.startswith("__unnamed_")
            found.append(
                Variable(
                    variable.name,
                    plain_name(variable.name),
                    variable.size_bytes,
                    content if ours and content != variable.initial else None,
                    ours and variable.space == "global" and not variable.relocated,
                )
            )
        return [variable for variable in found if variable.content is not None or variable.read_back]

    def write_back(self, variables: dict[str, bytes]) -> None:
        """After the launch: arrays that had to be copied get their contents, and so do the module's variables (by mangled name)."""
        self.arguments.write_back()
        for variable in self.kernel.program.variables:
            if variable.name in variables:
                self.kernel.module.data(variable)[:] = np.frombuffer(variables[variable.name], np.uint8)
