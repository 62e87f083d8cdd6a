"""NVIDIA's command-line tools: those of the installed wheels first, then those on the PATH and of a CUDA toolkit."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from fasim.errors import ToolMissing
from fasim.toolchain.wheels import nvidia_directories, toolkit_directories

#: where a tool comes from if it is not there
_SOURCES = {
    "nvdisasm": "pip install nvidia-cuda-nvdisasm",
    "ptxas": "pip install nvidia-cuda-nvcc",
    "ncu": "install Nsight Compute (with the CUDA toolkit: https://developer.nvidia.com/cuda-downloads) and put ncu on the PATH",
}


def how_to_install(name: str) -> str:
    """The command or the page that brings a tool."""
    return _SOURCES.get(name, "install the CUDA toolkit: https://developer.nvidia.com/cuda-downloads")


def find_tool(name: str) -> str:
    """The path of a tool.

    Raises: ToolMissing, with what installs it.
    """
    file = f"{name}.exe" if os.name == "nt" else name
    wheel = _in(nvidia_directories(), file)
    found = wheel or shutil.which(name) or _in(toolkit_directories(), file)
    if found is None:
        raise ToolMissing(f"{name} is neither installed as a package nor on the PATH. Get it: {how_to_install(name)}")
    return str(found)


def _in(roots: Iterable[Path], file: str) -> Path | None:
    return next((path for root in roots if (path := root / "bin" / file).is_file()), None)
