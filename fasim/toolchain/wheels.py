"""Where the NVIDIA wheels keep their libraries and headers."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path

from fasim.errors import ToolMissing

PIP_COMMAND = "pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"

# one header that only this wheel has, relative to an include directory
_WITNESSES = {
    "nvidia-cuda-runtime": "cuda_fp16.h",
    "nvidia-cuda-crt": "crt/mma.h",
    "nvidia-cuda-cccl": "cuda/std/cstdint",
}


@functools.cache
def nvidia_directories() -> tuple[Path, ...]:
    """The directories below the `nvidia` namespace package that hold a `lib`, `bin` or `include` directory, newest CUDA first."""
    spec = importlib.util.find_spec("nvidia")
    roots = [Path(entry) for entry in (spec.submodule_search_locations or ())] if spec else []
    children = [child for root in roots if root.is_dir() for child in root.iterdir() if child.is_dir()]
    return tuple(sorted(children, key=lambda child: child.name, reverse=True))


@functools.cache
def cuda_include_directories() -> tuple[Path, ...]:
    """The include directories of CUDA and CCCL.

    Raises: ToolMissing, with the command that installs the missing wheels.
    """
    candidates = [path for root in nvidia_directories() for path in (root / "include", root / "include" / "cccl")]
    found: dict[str, Path] = {}
    for wheel, header in _WITNESSES.items():
        where = next((path for path in candidates if (path / header).is_file()), None)
        if where is not None:
            found[wheel] = where
    missing = [wheel for wheel in _WITNESSES if wheel not in found]
    if missing:
        raise ToolMissing(f"CUDA headers are missing ({', '.join(missing)}). Install them with: {PIP_COMMAND}")
    return tuple(dict.fromkeys(found.values()))


def library_paths() -> list[Path]:
    """The NVRTC libraries of the installed NVIDIA wheels, newest first."""
    patterns = ("lib/libnvrtc.so.*", "bin/**/nvrtc64_*.dll")
    found = [path for root in nvidia_directories() for pattern in patterns for path in root.glob(pattern)]
    return sorted(found, key=lambda path: path.name, reverse=True)


@functools.cache
def installed_versions() -> str:
    """What identifies the installed compiler and headers, found without loading a library: wheel versions and library sizes."""
    sites = {root.parent.parent for root in nvidia_directories()}
    wheels = sorted(path.name for site in sites for path in site.glob("nvidia_cuda_*.dist-info"))
    libraries = [f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in library_paths()]
    return "\n".join([*wheels, *libraries])
