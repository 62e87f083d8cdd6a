"""CUDA graphs through the driver's own interface, as pycuda has none: their launches cost what they cost on the GPU alone."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from fasim.errors import GpuError

#: no other thread of the process is affected
_CAPTURE_RELAXED = 2


def _library() -> Any:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


def _call(function: str, *arguments: Any) -> None:
    code = getattr(_library(), function)(*arguments)
    if code:
        raise GpuError(f"{function} failed with error {code} of the driver")


class Graph:
    """What `start(stream)` launches, as a graph to be used in a `with` block.

    Raises: GpuError if the driver refuses it.
    """

    def __init__(self, driver: Any, start: Callable[[Any], None]) -> None:
        self.driver, self.stream = driver, driver.Stream()
        self._graph, self._executable = ctypes.c_void_p(), ctypes.c_void_p()
        stream = ctypes.c_void_p(int(self.stream.handle))
        _call("cuStreamBeginCapture_v2", stream, ctypes.c_int(_CAPTURE_RELAXED))
        try:
            start(self.stream)
        finally:
            _call("cuStreamEndCapture", stream, ctypes.byref(self._graph))
        _call("cuGraphInstantiateWithFlags", ctypes.byref(self._executable), self._graph, ctypes.c_ulonglong(0))

    def __enter__(self) -> Graph:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None:
            _call("cuGraphExecDestroy", self._executable)
            _call("cuGraphDestroy", self._graph)

    def launch(self) -> None:
        """Start all of it without waiting."""
        _call("cuGraphLaunch", self._executable, ctypes.c_void_p(int(self.stream.handle)))

    def microseconds(self) -> float:
        """Start it between two events, and wait.

        Returns: the time between them.
        """
        begin, end = self.driver.Event(), self.driver.Event()
        begin.record(self.stream)
        self.launch()
        end.record(self.stream)
        end.synchronize()
        return 1000.0 * float(end.time_since(begin))
