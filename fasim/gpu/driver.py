"""pycuda, and the driver's errors as exceptions of fasim."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
import sys
from collections.abc import Iterator
from typing import Any

from fasim.errors import FasimError, GpuError, GpuFault, ToolMissing

WITHOUT = "Without a GPU, `fasim compare` shows the recordings of one"
#: what the import of pycuda speaks of where there is no driver; Windows does not say which DLL it misses
_DRIVER_LIBRARIES = ("libcuda.so", "DLL load failed")
_SIMULATE = "`fasim run` with the same arguments says which line and lanes did it; `fasim check` looks for hazards"

#: a part of the driver's message, whether the kernel is at fault, and what to do
_ADVICE = (
    ("an illegal memory access", True, _SIMULATE),
    ("misaligned address", True, _SIMULATE),
    ("an illegal instruction", True, _SIMULATE),
    ("unspecified launch failure", True, _SIMULATE),
    ("device-side assert", True, _SIMULATE),
    ("operation not supported on global/shared address space", True, _SIMULATE),
    ("invalid program counter", True, _SIMULATE),
    ("hardware stack error", True, "Deep recursion needs more stack than the driver gives"),
    ("launch timed out", True, "The display's watchdog ended it: make the grid smaller, or use a GPU without a display"),
    ("out of memory", False, "Make the buffers smaller, or end what else uses this GPU (nvidia-smi lists it)"),
    ("no kernel image", False, "The machine code is for another GPU: leave --arch out, or name this one's"),
    ("unsupported toolchain", False, "The PTX is newer than the driver: let ptxas assemble it (pip install nvidia-cuda-nvcc)"),
    ("too many resources requested", False, "Use smaller blocks, or __launch_bounds__ so that a thread takes fewer registers"),
    ("no CUDA-capable device", False, WITHOUT),
    ("system not yet initialized", False, "The fabric manager of this machine does not run"),
    ("busy or unavailable", False, "Another process holds this GPU alone: end it, or name another one with --device"),
)


@functools.cache
def pycuda_driver() -> Any:
    """The module `pycuda.driver`, initialised.

    Raises: ToolMissing if there is no pycuda, no driver or no GPU.
    """
    if "pycuda.driver" not in sys.modules:
        need_driver()
    if importlib.util.find_spec("pycuda") is None:
        raise ToolMissing(
            f"pycuda is not installed: pip install pycuda ncu-report (pycuda is built with the CUDA toolkit's headers). {WITHOUT}"
        )
    try:
        import pycuda.driver as driver
    except ImportError as error:
        if not any(library in str(error) for library in _DRIVER_LIBRARIES):
            raise ToolMissing(f"pycuda cannot be imported ({error}): pip install --force-reinstall pycuda. {WITHOUT}") from error
        raise ToolMissing(
            f"pycuda finds no CUDA driver ({error}): install the driver, https://www.nvidia.com/drivers. {WITHOUT}"
        ) from error
    try:
        driver.init()
        if driver.Device.count() == 0:
            raise ToolMissing(f"there is a CUDA driver, but no GPU that it can use. {WITHOUT}")
    except driver.Error as error:
        raise ToolMissing(f"the CUDA driver cannot be used: {reason(error)}. {WITHOUT}") from error
    return driver


def need_driver() -> None:
    """Raises: ToolMissing if this machine has no CUDA driver, and so no GPU that programs could use."""
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        ctypes.CDLL(name)
    except OSError:
        how = "With an NVIDIA GPU, install its driver: https://www.nvidia.com/drivers"
        raise ToolMissing(f"there is no GPU here: no CUDA driver ({name}). {how}. {WITHOUT}") from None


def reason(error: BaseException) -> str:
    """What the driver said, without the name of its function."""
    text = " ".join(str(error).split())
    _, failed, said = text.partition(" failed: ")
    return (said if failed else text).rstrip(" -.")


def _translated(error: BaseException, doing: str) -> FasimError:
    said = reason(error)
    for part, fault, advice in _ADVICE:
        if part in said:
            return (GpuFault if fault else GpuError)(f"{doing}: {said}. {advice}.")
    return GpuError(f"{doing}: {said}.")


@contextlib.contextmanager
def driver_errors(doing: str) -> Iterator[None]:
    """Turn errors of the driver into GpuError, or GpuFault where the kernel is at fault; doing: the beginning of their message."""
    driver = pycuda_driver()
    try:
        yield
    except driver.Error as error:
        raise _translated(error, doing) from error
