"""Where NVIDIA's libraries and headers are: those of the installed wheels, else those of a CUDA toolkit.

Source: the directory trees of the wheels, of the CUDA Toolkit installation guides and of the toolkit's conda packages.
"""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Iterable
from pathlib import Path

from fasim.errors import ToolMissing

PIP_COMMAND = "pip install nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl"

#: the toolkit's directory, by environment variable, and where it is by default
TOOLKIT_VARIABLES = ("CUDA_HOME", "CUDA_PATH")
_DEFAULT_TOOLKIT = Path("/usr/local/cuda")

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


def toolkit_directories() -> tuple[Path, ...]:
    """The CUDA toolkits of this machine: those that the environment names, then the default one."""
    named = [Path(os.environ[variable]) for variable in TOOLKIT_VARIABLES if os.environ.get(variable)]
    return tuple(dict.fromkeys(path for path in (*named, _DEFAULT_TOOLKIT) if path.is_dir()))


def _sources() -> list[tuple[Path, ...]]:
    """The sets of roots that may hold a compiler with its headers, the preferred first: the wheels, then each toolkit.

    Headers and compiler should be of one version, so sets without a compiler come last.
    """
    sources = [nvidia_directories(), *((root,) for root in toolkit_directories())]
    return sorted(sources, key=lambda roots: not _libraries(roots))


@functools.cache
def cuda_include_directories() -> tuple[Path, ...]:
    """The include directories of CUDA and CCCL.

    Raises: ToolMissing, with the command that installs the missing wheels.
    """
    if found := _used_headers():
        return tuple(dict.fromkeys(found.values()))
    found = _headers(nvidia_directories())
    missing = [wheel for wheel in _WITNESSES if wheel not in found]
    raise ToolMissing(f"CUDA headers are missing ({', '.join(missing)}). Install them with: {PIP_COMMAND}")


def _headers(roots: Iterable[Path]) -> dict[str, Path]:
    """The include directory of each wheel's headers, as far as they are there."""
    include = [path for root in roots for path in (root / "include", *sorted(root.glob("targets/*/include")))]
    candidates = [path for folder in include for path in (folder, folder / "cccl")]
    found: dict[str, Path] = {}
    for wheel, header in _WITNESSES.items():
        where = next((path for path in candidates if (path / header).is_file()), None)
        if where is not None:
            found[wheel] = where
    return found


def library_paths() -> list[Path]:
    """The NVRTC libraries of the installed NVIDIA wheels, newest first, then those of CUDA toolkits."""
    return [path for roots in (nvidia_directories(), *((root,) for root in toolkit_directories())) for path in _libraries(roots)]


def _libraries(roots: Iterable[Path]) -> list[Path]:
    patterns = ("lib/libnvrtc.so*", "lib64/libnvrtc.so*", "targets/*/lib/libnvrtc.so*", "bin/**/nvrtc64_*.dll")
    found = {path.resolve(): path for root in roots for pattern in patterns for path in root.glob(pattern)}
    return sorted(found.values(), key=lambda path: path.name, reverse=True)


@functools.cache
def installed_versions() -> str:
    """What identifies the installed compiler and headers, found without loading a library: wheel versions, sizes and times of files."""
    sites = {root.parent.parent for root in nvidia_directories()}
    wheels = sorted(path.name for site in sites for path in site.glob("nvidia_cuda_*.dist-info"))
    files = [*library_paths(), *(path / _WITNESSES[wheel] for wheel, path in _used_headers().items())]
    return "\n".join([*wheels, *(f"{path}:{path.stat().st_size}:{path.stat().st_mtime_ns}" for path in files)])


def _used_headers() -> dict[str, Path]:
    return next((found for roots in _sources() if len(found := _headers(roots)) == len(_WITNESSES)), {})
