"""`fasim doctor`: what the machine has, what is missing, and the command that mends it."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata

from fasim.cli.failures import paint
from fasim.errors import FasimError, ToolMissing

#: oldest versions that pyproject.toml asks for
PYTHON = (3, 11)
_PIP = f"{os.path.basename(sys.executable)} -m pip install"


@dataclass(frozen=True)
class Finding:
    """One thing looked for; `needed` says whether the simulator works without it."""

    name: str
    present: bool
    needed: bool
    detail: str
    mend: str = ""


def examine(*, json: bool) -> int:
    """Print all findings.

    Returns: 0 if what the simulator needs is there, else 4.
    """
    findings = [_guarded(*row) for row in CHECKS]
    healthy = all(finding.present for finding in findings if finding.needed)
    if json:
        import json as library

        rows = [asdict(finding) for finding in findings]
        print(library.dumps({"schema": "fasim.doctor/1", "healthy": healthy, "findings": rows}, indent=2))
        return 0 if healthy else ToolMissing.exit_code
    width = max(len(finding.name) for finding in findings)
    for finding in findings:
        word, code = ("ok", "32") if finding.present else ("MISSING", "31;1") if finding.needed else ("absent", "33")
        print(f"{paint(f'{word:<7}', code, sys.stdout)}  {finding.name:<{width}}  {finding.detail}")
        if not finding.present and finding.mend:
            print(f"{'':<{width + 11}}{finding.mend}")
    print("\nThe simulator has what it needs." if healthy else "\nThe simulator lacks what is marked MISSING.")
    return 0 if healthy else ToolMissing.exit_code


def _guarded(name: str, needed: bool, mend: str, look: Callable[[], str]) -> Finding:
    """Look for one thing: what it raises says why it is not there."""
    try:
        return Finding(name, True, needed, look())
    except FasimError as error:
        return Finding(name, False, needed, str(error).split(" Install it with:")[0].split(" Install them with:")[0], mend)
    except (ImportError, OSError, metadata.PackageNotFoundError) as error:
        return Finding(name, False, needed, f"{type(error).__name__}: {error}", mend)


def _python() -> str:
    if sys.version_info < PYTHON:
        raise ToolMissing(f"{platform.python_version()}, {'.'.join(map(str, PYTHON))} or later is needed")
    return f"{platform.python_version()} ({sys.executable})"


def _package(name: str) -> Callable[[], str]:
    def look() -> str:
        importlib.import_module(name)
        return metadata.version(name)

    return look


def _processor() -> str:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    features = llvm.get_host_cpu_features()
    vectors = [name for name in ("avx512f", "avx2", "avx", "neon", "sve") if features.get(name)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return f"{llvm.get_host_cpu_name()}, {cores} core{'s' * (cores != 1)}, vectors: {', '.join(vectors) or 'none known'}"


def _nvrtc() -> str:
    from fasim.toolchain.nvrtc import library, nvrtc_version, supported_archs

    archs = supported_archs()
    return f"{nvrtc_version()}, sm_{archs[0]} to sm_{archs[-1]} ({library()._name})"


def _headers() -> str:
    from fasim.toolchain.wheels import cuda_include_directories

    return ", ".join(map(str, cuda_include_directories()))


def _tool(name: str, purpose: str) -> Callable[[], str]:
    """A command-line tool of NVIDIA's: its path and version."""

    def look() -> str:
        from fasim.toolchain.tools import find_tool

        try:
            found = find_tool(name)
        except ToolMissing:
            raise ToolMissing(f"not installed; only {purpose} needs it") from None
        return _version_of(found)

    return look


def _cache() -> str:
    from fasim.cli.kept import size
    from fasim.toolchain.cache import cache_dir

    folder = cache_dir()
    existing = folder
    while not existing.exists():
        existing = existing.parent
    if not (existing.is_dir() and os.access(existing, os.W_OK)):
        raise ToolMissing(f"{folder} cannot be written, so that everything is compiled anew in each run")
    count, total = size()
    return f"{folder}, {count:,} files, {total / 1e6:,.1f} MB"


# CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR
_CAPABILITY_ATTRIBUTES = (75, 76)


def _gpu() -> str:
    try:
        cuda = ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        raise ToolMissing("no CUDA driver (libcuda); only runs on a GPU need it") from None
    version, count = ctypes.c_int(), ctypes.c_int()
    if cuda.cuInit(0) or cuda.cuDeviceGetCount(ctypes.byref(count)) or not count.value:
        raise ToolMissing("there is a CUDA driver, but no GPU that it can use")
    cuda.cuDriverGetVersion(ctypes.byref(version))
    names = []
    for i in range(count.value):
        device, text = ctypes.c_int(), ctypes.create_string_buffer(128)
        cuda.cuDeviceGet(ctypes.byref(device), i)
        cuda.cuDeviceGetName(text, len(text), device)
        capability = (ctypes.c_int(), ctypes.c_int())
        for value, attribute in zip(capability, _CAPABILITY_ATTRIBUTES, strict=True):
            cuda.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        major, minor = (value.value for value in capability)
        names.append(f"{text.value.decode('utf-8', 'replace')} (compute capability {major}.{minor}: sm_{major}{minor})")
    return f"{', '.join(names)}; driver for CUDA {version.value // 1000}.{version.value % 1000 // 10}"


def _optional(module: str, package: str, purpose: str) -> Callable[[], str]:
    """A package that is looked for, not imported: importing it may need a GPU."""

    def look() -> str:
        if importlib.util.find_spec(module) is None:
            raise ToolMissing(f"not installed; only {purpose} needs it")
        return metadata.version(package)

    return look


def _version_of(program: str) -> str:
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20, check=False)
    lines = [line for line in done.stdout.splitlines() if "release" in line or "Version" in line]
    return f"{program}: {lines[0].strip()}" if lines else program


_NSIGHT = "install Nsight Compute, which the CUDA toolkit brings, and put ncu on the PATH: https://developer.nvidia.com/nsight-compute"
_TOOLKIT = "install the CUDA toolkit: https://developer.nvidia.com/cuda-downloads"
CHECKS: tuple[tuple[str, bool, str, Callable[[], str]], ...] = (
    ("Python", True, "install Python 3.11 or later: https://www.python.org/downloads/", _python),
    ("numpy", True, f"{_PIP} 'numpy>=2.0'", _package("numpy")),
    ("numba", True, f"{_PIP} 'numba>=0.61'", _package("numba")),
    ("llvmlite", True, f"{_PIP} 'numba>=0.61'", _package("llvmlite")),
    ("processor", True, f"{_PIP} 'numba>=0.61'", _processor),
    ("NVRTC", True, f"{_PIP} nvidia-cuda-nvrtc", _nvrtc),
    ("CUDA headers", True, f"{_PIP} nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl", _headers),
    ("nvdisasm", False, f"{_PIP} nvidia-cuda-nvdisasm", _tool("nvdisasm", "machine code")),
    ("ptxas", False, f"{_PIP} nvidia-cuda-nvcc", _tool("ptxas", "a .ptx file that is to run on a GPU")),
    ("cache", False, "export FASIM_CACHE_DIR=DIRECTORY (one that you may write to)", _cache),
    ("GPU", False, "needs an NVIDIA GPU and its driver: https://www.nvidia.com/drivers", _gpu),
    ("pycuda", False, f"{_PIP} pycuda ncu-report (pycuda is built with the CUDA toolkit)", _optional("pycuda", "pycuda", "a run on a GPU")),
    ("nvcc", False, _TOOLKIT, _tool("nvcc", "building pycuda")),
    ("ncu", False, _NSIGHT, _tool("ncu", "counting on a GPU (fasim gpu profile, record, compare)")),
    ("ncu-report", False, f"{_PIP} ncu-report", _optional("ncu_report", "ncu-report", "reading what ncu measured")),
)
