"""fasim: the CUDA kernel lab that needs no GPU.

module = fasim.compile("kernel.cu", arch="sm_90")
result = module.kernel("name").launch(grid=8, block=128, args=[a, b, np.int32(n)])
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["DeviceArray", "Kernel", "LaunchResult", "Module", "compile", "device_array", "empty", "errors", "gpu", "predict_time"]

if TYPE_CHECKING:
    from fasim import errors, gpu
    from fasim.report.timing import predict_time
    from fasim.sm.arguments import DeviceArray, device_array
    from fasim.sm.fresh import empty
    from fasim.sm.module import Kernel, Module, compile
    from fasim.sm.result import LaunchResult


def __getattr__(name: str) -> Any:
    # the machine takes a third of a second to import: only who uses it pays
    import importlib

    if name in ("errors", "gpu"):
        return importlib.import_module(f"fasim.{name}")
    for module in ("fasim.sm.module", "fasim.sm.arguments", "fasim.sm.fresh", "fasim.report.timing"):
        if name in __all__:
            loaded = importlib.import_module(module)
            if hasattr(loaded, name):
                return getattr(loaded, name)
    raise AttributeError(f"module 'fasim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
