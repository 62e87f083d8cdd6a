"""A real GPU beside the simulated one: the identical kernel through pycuda, measured by events and ncu, and recorded.

`run` is the short way; `fasim.gpu.device.Device`, `fasim.gpu.launch.GpuModule` and `fasim.gpu.packed.Packing` are its parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fasim.sm.module import Kernel

__all__ = ["run"]


def run(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any] = (),
    *,
    dynamic_smem_bytes: int = 0,
    names: Sequence[str] = (),
    device: int = 0,
    timeout_seconds: float = 60.0,
) -> str:
    """Run a kernel on a GPU; arguments as `Kernel.launch` takes them: numpy arrays are device buffers and change in place.

    The kernel is compiled for that GPU: `fasim.compile(..., arch="sm_90")`. device: number of the GPU, as the driver counts.
    Returns: what device printf wrote.
    Raises: ToolMissing without pycuda or a GPU; LaunchError for what this GPU refuses; GpuError with the driver's message; GpuFault if the
    kernel fails there or does not end in time.
    """
    from fasim.gpu.code import machine_code
    from fasim.gpu.device import Device
    from fasim.gpu.launch import GpuModule
    from fasim.gpu.packed import Packing

    with Device(device) as gpu:
        code = machine_code(kernel.module, gpu.card)
        packing = Packing(kernel, grid, block, args, dynamic_smem_bytes=dynamic_smem_bytes, names=names, arch=gpu.architecture)
        loaded = GpuModule(gpu, code.code, code.arch).kernel(packing.launch.entry)
        done = loaded.run(packing.launch, timeout_seconds=timeout_seconds)
        packing.write_back(done.variables)
        return done.output
