"""Where compiler and headers are looked for: wheels, toolkits, and both."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fasim.errors import ToolMissing
from fasim.toolchain import compile_cuda, nvrtc, wheels

WHEEL = ["lib/libnvrtc.so.13", "include/cuda_fp16.h", "include/crt/mma.h", "include/cccl/cuda/std/cstdint"]
TOOLKIT_13 = ["lib64/libnvrtc.so.13", "include/cuda_fp16.h", "include/crt/mma.h", "include/cccl/cuda/std/cstdint"]
TOOLKIT_12 = ["lib64/libnvrtc.so.12", "include/cuda_fp16.h", "include/crt/mma.h", "include/cuda/std/cstdint"]
CONDA = [f"targets/x86_64-linux/{name}" for name in ("lib/libnvrtc.so.13", "include/cuda_fp16.h", "include/crt/mma.h")]
CONDA.append("targets/x86_64-linux/include/cccl/cuda/std/cstdint")


@pytest.fixture
def lay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Lays wheels and toolkits out: label to files; W is the wheels' directory, H is CUDA_HOME, P is CUDA_PATH, D is the default."""

    def make(**trees: list[str]) -> Path:
        for label, names in trees.items():
            for name in names:
                path = tmp_path / label / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(name)
        monkeypatch.setattr(wheels, "nvidia_directories", lambda: (tmp_path / "W",) if "W" in trees else ())
        monkeypatch.setattr(wheels, "_DEFAULT_TOOLKIT", tmp_path / "D")
        for variable, label in (("CUDA_HOME", "H"), ("CUDA_PATH", "P")):
            monkeypatch.setenv(variable, str(tmp_path / label))
        return tmp_path

    functions = (wheels.cuda_include_directories, wheels.installed_versions)
    for function in functions:
        function.cache_clear()
    yield make
    for function in functions:
        function.cache_clear()


@pytest.mark.parametrize(
    ("trees", "libraries", "includes"),
    [
        ({"W": WHEEL}, ["W/lib/libnvrtc.so.13"], ["W/include", "W/include/cccl"]),
        ({"D": TOOLKIT_13}, ["D/lib64/libnvrtc.so.13"], ["D/include", "D/include/cccl"]),
        ({"P": TOOLKIT_12}, ["P/lib64/libnvrtc.so.12"], ["P/include"]),
        (
            {"H": CONDA},
            ["H/targets/x86_64-linux/lib/libnvrtc.so.13"],
            ["H/targets/x86_64-linux/include", "H/targets/x86_64-linux/include/cccl"],
        ),
        # wheels stay first; the environment goes before the default
        (
            {"W": WHEEL, "D": TOOLKIT_12, "H": TOOLKIT_13},
            ["W/lib/libnvrtc.so.13", "H/lib64/libnvrtc.so.13", "D/lib64/libnvrtc.so.12"],
            ["W/include", "W/include/cccl"],
        ),
        # headers come from where the compiler is
        ({"W": WHEEL[1:], "D": TOOLKIT_12}, ["D/lib64/libnvrtc.so.12"], ["D/include"]),
        ({"W": WHEEL[:1], "D": TOOLKIT_13[1:]}, ["W/lib/libnvrtc.so.13"], ["D/include", "D/include/cccl"]),
        # half a set is none
        ({"W": WHEEL[:2], "D": TOOLKIT_13}, ["W/lib/libnvrtc.so.13", "D/lib64/libnvrtc.so.13"], ["D/include", "D/include/cccl"]),
    ],
)
def test_what_is_found(lay, trees: dict[str, list[str]], libraries: list[str], includes: list[str]) -> None:
    root = lay(**trees)
    assert [str(path.relative_to(root)) for path in wheels.library_paths()] == libraries
    assert [str(path.relative_to(root)) for path in wheels.cuda_include_directories()] == includes


def test_links_to_one_library_count_once(lay) -> None:
    root = lay(D=["lib64/libnvrtc.so.13.0.88", *TOOLKIT_13[1:]])
    (root / "D/lib64/libnvrtc.so").symlink_to("libnvrtc.so.13.0.88")
    (root / "D/lib").symlink_to("lib64")
    assert len(wheels.library_paths()) == 1


def test_missing_headers_are_named(lay) -> None:
    lay(W=WHEEL[:2], D=TOOLKIT_13[:3])
    with pytest.raises(ToolMissing, match=r"missing \(nvidia-cuda-crt, nvidia-cuda-cccl\).*pip install"):
        wheels.cuda_include_directories()
    assert "libnvrtc" in wheels.installed_versions()


def test_versions_tell_toolkits_apart(lay) -> None:
    root = lay(D=TOOLKIT_13)
    seen = set()
    for change in (None, "lib64/libnvrtc.so.13", "include/cuda_fp16.h", "include/cccl/cuda/std/cstdint"):
        if change:
            os.utime(root / "D" / change, ns=(1, 1))
        wheels.installed_versions.cache_clear()
        seen.add(wheels.installed_versions())
    assert len(seen) == 4


def test_a_toolkit_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_cache: Path) -> None:
    """The compiler of the wheels, laid out as a toolkit."""
    libraries, includes = wheels.library_paths(), wheels.cuda_include_directories()
    (tmp_path / "lib64").mkdir()
    for path in libraries[0].parent.glob("libnvrtc*"):
        (tmp_path / "lib64" / path.name).symlink_to(path)
    (tmp_path / "include").symlink_to(includes[0])
    functions = (nvrtc.library, nvrtc.supported_archs, nvrtc.nvrtc_version, wheels.cuda_include_directories, wheels.installed_versions)
    with monkeypatch.context() as patch:
        patch.setattr(wheels, "nvidia_directories", lambda: ())
        patch.setattr(sys, "executable", "")  # compile in this process, which alone has the changes
        patch.setenv("CUDA_HOME", str(tmp_path))
        for function in functions:
            function.cache_clear()
        module = compile_cuda("#include <mma.h>\n#include <cuda/std/array>\n__global__ void k(__half *p) { p[0] = p[1] * p[2]; }")
        assert str(tmp_path / "lib64") in wheels.installed_versions()
    for function in functions:
        function.cache_clear()
    assert "mul" in module.ptx and module.cubin[:4] == b"\x7fELF"
