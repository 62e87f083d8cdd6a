"""What `fasim doctor` finds, and what it says of what is missing."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from fasim.cli import doctor
from fasim.cli.doctor import Finding
from fasim.toolchain import tools


def finding(name: str) -> Finding:
    return next(doctor._guarded(*row) for row in doctor.CHECKS if row[0] == name)


class FakeDriver:
    """libcuda with cards of given names and compute capabilities."""

    def __init__(self, cards: list[tuple[str, tuple[int, int]]]) -> None:
        self.cards = cards

    def cuInit(self, flags) -> int:
        return 0

    def cuDeviceGetCount(self, count) -> int:
        count._obj.value = len(self.cards)
        return 0

    def cuDriverGetVersion(self, version) -> int:
        version._obj.value = 13010
        return 0

    def cuDeviceGet(self, device, index: int) -> int:
        device._obj.value = index + 40
        return 0

    def cuDeviceGetName(self, text, size: int, device) -> int:
        text.value = self.cards[device.value - 40][0].encode()
        return 0

    def cuDeviceGetAttribute(self, value, attribute: int, device) -> int:
        value._obj.value = self.cards[device.value - 40][1][{75: 0, 76: 1}[attribute]]
        return 0


def test_gpus_with_their_compute_capability(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver([("NVIDIA H200", (9, 0)), ("NVIDIA GeForce RTX 5080", (12, 0))])
    monkeypatch.setattr(ctypes, "CDLL", lambda name: driver)
    found = finding("GPU")
    assert found.present and found.detail == (
        "NVIDIA H200 (compute capability 9.0: sm_90), NVIDIA GeForce RTX 5080 (compute capability 12.0: sm_120); driver for CUDA 13.1"
    )
    driver.cards = []
    assert (finding("GPU").present, finding("GPU").detail) == (False, "there is a CUDA driver, but no GPU that it can use")


@pytest.mark.parametrize("name", ["nvdisasm", "ptxas", "nvcc", "ncu"])
def test_tools(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each tool is found in a toolkit's directory, without being on the PATH."""
    monkeypatch.setattr(tools, "nvidia_directories", lambda: ())
    monkeypatch.setenv("PATH", "/usr/bin:/bin" if not Path("/usr/bin", name).exists() else str(tmp_path))
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    program = tmp_path / "bin" / name
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'Cuda compilation tools, release 12.9, V12.9.1'\n")
    program.chmod(0o755)
    found = finding(name)
    assert (found.present, found.detail) == (True, f"{program}: Cuda compilation tools, release 12.9, V12.9.1")
    monkeypatch.setattr(tools, "_in", lambda roots, file: None)
    absent = finding(name)
    assert not absent.present and not absent.needed and absent.detail.startswith("not installed; only ")
    assert ("pip install nvidia-cuda-" in absent.mend) == (name in ("nvdisasm", "ptxas")) and "install" in absent.mend


@pytest.mark.parametrize(
    ("name", "module", "mend"),
    [
        ("pycuda", "pycuda", "pip install pycuda ncu-report"),
        ("ncu-report", "ncu_report", "pip install ncu-report"),
    ],
)
def test_packages_of_the_gpu(name: str, module: str, mend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sought: list[str] = []
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda wanted: sought.append(wanted))
    absent = finding(name)
    assert sought == [module] and not absent.present and not absent.needed
    assert absent.detail.startswith("not installed; only ") and mend in absent.mend
    monkeypatch.setattr(doctor.importlib.util, "find_spec", lambda wanted: wanted)
    monkeypatch.setattr(doctor.metadata, "version", {name: "1.2.3"}.get)
    assert (finding(name).present, finding(name).detail) == (True, "1.2.3")


def test_the_compiler_and_where_it_is() -> None:
    found = finding("NVRTC")
    assert found.present and found.needed and "libnvrtc" in found.detail and "sm_90" not in found.mend
