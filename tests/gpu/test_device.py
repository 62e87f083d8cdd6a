"""A GPU as its driver describes it, and every way in which there is none."""

from __future__ import annotations

import sys
from ctypes.util import find_library
from pathlib import Path

import pytest

from fasim.arch import ARCHITECTURES
from fasim.errors import GpuError, GpuFault, ToolMissing, UsageError
from fasim.gpu import driver as gpu_driver
from fasim.gpu.device import PRINTF_BYTES, Device, driver_version
from fasim.gpu.driver import driver_errors, pycuda_driver, reason
from fasim.report.measured import Card


@pytest.fixture
def no_pycuda(monkeypatch):
    """As if pycuda was never imported."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "pycuda"]:
        monkeypatch.delitem(sys.modules, name)
    gpu_driver.pycuda_driver.cache_clear()
    # as on a machine that has a driver
    monkeypatch.setattr(gpu_driver, "need_driver", lambda: None)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] == "pycuda"]:
        del sys.modules[name]
    gpu_driver.pycuda_driver.cache_clear()


def test_the_card_and_its_limits(gpu, monkeypatch):
    monkeypatch.setattr(Path, "read_text", _no_file)
    device = Device()
    assert device.card == Card("NVIDIA H200", "9.0", "for CUDA 13.0", 132, 150_110_011_392, 62914560, 1980000, 3201000)
    assert device.card.arch == "sm_90"
    ours, known = device.architecture, ARCHITECTURES[90]
    fields = [name for name in known.__dataclass_fields__ if name not in ("name", "card")]
    assert {name: getattr(ours, name) for name in fields} == {name: getattr(known, name) for name in fields}
    assert gpu.contexts == []


@pytest.mark.parametrize(
    ("capability", "arch", "simulated"), [((9, 0), "sm_90", True), ((12, 0), "sm_120", True), ((7, 0), "sm_70", False)]
)
def test_any_gpu(gpu, capability, arch, simulated):
    gpu.capability = capability
    gpu.attributes.update({"MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": 98304, "MAX_THREADS_PER_MULTIPROCESSOR": 1536, "MAX_GRID_DIM_Y": 77})
    device = Device()
    assert (device.card.arch, device.simulated) == (arch, simulated)
    limits = device.architecture
    assert (limits.smem_opt_in_bytes, limits.warps_per_sm, limits.grid_limits[1], limits.number) == (98304, 48, 77, int(arch[3:]))


def _no_file(self, *args, **options):
    raise FileNotFoundError(str(self))


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Thu Jan  1 00:00:00 UTC 2026\nGCC version: 13.3.0\n", "580.159.04"),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release Build\n", "575.57.08"),
        ("nothing of the kind\n", "for CUDA 13.0"),
    ],
)
def test_driver_version(gpu, monkeypatch, line, version):
    monkeypatch.setattr(Path, "read_text", lambda self, *args, **options: line)
    assert driver_version() == version


def test_a_context_of_its_own(gpu):
    gpu.names = ("NVIDIA H200", "NVIDIA RTX 5080")
    with Device(1) as device:
        assert device.card.name == "NVIDIA RTX 5080"
        assert gpu.contexts == ["made"]
        device.synchronise()
    assert gpu.contexts == ["made", "popped", "detached"]
    assert gpu.log[:2] == [("context", 1), ("limit", "PRINTF_FIFO_SIZE", PRINTF_BYTES)]


@pytest.mark.parametrize(("error", "detached"), [(ValueError, True), (GpuError, True), (GpuFault, False)])
def test_a_fault_leaves_the_context_alone(gpu, error, detached):
    with pytest.raises(error), Device():
        raise error("it failed")
    assert gpu.contexts == ["made", "popped", *(["detached"] if detached else [])]


@pytest.mark.parametrize("index", [-1, 2, 7])
def test_no_such_device(gpu, index):
    gpu.names = ("NVIDIA H200", "NVIDIA RTX 5080")
    with pytest.raises(UsageError, match=rf"no GPU {index}; there are 0: NVIDIA H200, 1: NVIDIA RTX 5080"):
        Device(index)


def test_a_context_that_cannot_be_set_up_is_given_back(gpu, monkeypatch):
    def refuse(limit, value):
        raise gpu.LogicError("cuCtxSetLimit failed: invalid argument")

    monkeypatch.setattr(gpu, "set_limit", refuse)
    with pytest.raises(GpuError, match="cannot use NVIDIA H200: invalid argument"), Device():
        pass
    assert gpu.contexts == ["made", "popped", "detached"]


def test_a_driver_that_does_not_tell_a_limit(gpu):
    del gpu.attributes["RESERVED_SHARED_MEMORY_PER_BLOCK"]
    with pytest.raises(GpuError, match="GPU 0: the driver or pycuda does not know RESERVED_SHARED_MEMORY_PER_BLOCK: update"):
        Device().architecture  # noqa: B018


@pytest.mark.skipif(find_library("cuda") is not None, reason="there is a CUDA driver here")
def test_no_driver():
    with pytest.raises(
        ToolMissing, match=r"there is no GPU here: no CUDA driver \(libcuda.so.1\)\. With an NVIDIA GPU, install its driver"
    ):
        gpu_driver.need_driver()


def test_no_pycuda(no_pycuda, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(ToolMissing, match="pycuda is not installed: pip install pycuda ncu-report") as caught:
        Device()
    assert caught.value.exit_code == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "libcuda.so.1: cannot open shared object file: No such file or directory",
            r"no CUDA driver \(libcuda.so.1: cannot open .*install the driver, https://www.nvidia.com",
        ),
        ("No module named 'pytools'", r"cannot be imported \(No module named 'pytools'\): pip install --force-reinstall pycuda"),
    ],
)
def test_pycuda_that_cannot_be_imported(no_pycuda, monkeypatch, tmp_path, text, message):
    (tmp_path / "pycuda").mkdir()
    (tmp_path / "pycuda" / "__init__.py").write_text("")
    (tmp_path / "pycuda" / "driver.py").write_text(f"raise ImportError({text!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolMissing, match=message):
        Device()


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ((), "", "there is a CUDA driver, but no GPU"),
        ((), "no CUDA-capable device is detected", "cannot be used: no CUDA-capable device is detected"),
        (("NVIDIA H200",), "system not yet initialized", "cannot be used: system not yet initialized"),
    ],
)
def test_no_gpu(gpu, names, error, message):
    gpu.names, gpu.init_error = names, error
    with pytest.raises(ToolMissing, match=message) as caught:
        Device()
    assert caught.value.exit_code == 4
    assert "fasim compare" in str(caught.value)


def test_what_was_missing_is_looked_for_again(gpu):
    gpu.names = ()
    with pytest.raises(ToolMissing):
        pycuda_driver()
    gpu.names = ("NVIDIA H200",)
    assert pycuda_driver() is gpu


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cuMemAlloc failed: out of memory", "out of memory"),
        ("cuModuleLoadDataEx failed: no kernel image is available for execution on the device - ", "no kernel image is available for "
         "execution on the device"),
        ("cuX failed: a -\n b", "a - b"),
        ("something else", "something else"),
    ],
)  # fmt: skip
def test_reason(text, said):
    assert reason(Exception(text)) == said


ADVICE = [
    ("an illegal memory access was encountered", GpuFault, "fasim run"),
    ("misaligned address", GpuFault, "fasim run"),
    ("an illegal instruction was encountered", GpuFault, "fasim run"),
    ("unspecified launch failure", GpuFault, "fasim run"),
    ("device-side assert triggered", GpuFault, "fasim run"),
    ("the launch timed out and was terminated", GpuFault, "smaller"),
    ("out of memory", GpuError, "nvidia-smi"),
    ("no kernel image is available for execution on the device", GpuError, "--arch"),
    ("the provided PTX was compiled with an unsupported toolchain.", GpuError, "pip install nvidia-cuda-nvcc"),
    ("too many resources requested for launch", GpuError, "__launch_bounds__"),
    ("all CUDA-capable devices are busy or unavailable", GpuError, "--device"),
    ("something that nobody knows", GpuError, ""),
]


@pytest.mark.parametrize(("said", "kind", "advice"), ADVICE)
def test_errors_of_the_driver(gpu, said, kind, advice):
    with pytest.raises(kind) as caught, driver_errors("kernel k"):
        raise gpu.LogicError(f"cuCtxSynchronize failed: {said}")
    assert type(caught.value) is kind
    assert str(caught.value).startswith(f"kernel k: {said}")
    assert advice in str(caught.value)
    assert ".." not in str(caught.value)
    assert caught.value.exit_code == (1 if kind is GpuFault else 2)


def test_other_errors_pass(gpu):
    with pytest.raises(ZeroDivisionError), driver_errors("kernel k"):
        1 / 0  # noqa: B018
