"""`fasim gpu` where something is missing: pycuda, a driver, a GPU, ncu."""

from __future__ import annotations

import sys
from ctypes.util import find_library

import pytest

from fasim.errors import ToolMissing
from fasim.gpu import driver as gpu_driver
from tests.cli import gpu_launches as launches
from tests.gpu import conftest as fixtures

gpu, ncu, run, sample_report = fixtures.gpu, fixtures.ncu, launches.run, fixtures.sample_report

COMMANDS = ["list", "run axpy --n 10", "run nothing.cu", "time axpy --n 10", "profile axpy --n 10", "record axpy --n 10 --no-profile"]


@pytest.fixture
def no_pycuda(monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "pycuda"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pycuda", None)
    gpu_driver.pycuda_driver.cache_clear()
    # as on a machine that has a driver
    monkeypatch.setattr(gpu_driver, "need_driver", lambda: None)
    yield monkeypatch
    for name in [name for name in sys.modules if name.partition(".")[0] == "pycuda"]:
        del sys.modules[name]
    gpu_driver.pycuda_driver.cache_clear()


@pytest.mark.parametrize("command", COMMANDS)
def test_without_pycuda(run, no_pycuda, ncu, command, tmp_path):
    before = sorted(tmp_path.iterdir())
    outcome = run(f"gpu {command}")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith("error: pycuda is not installed: pip install pycuda ncu-report")
    assert len(outcome.err.strip().splitlines()) == 1
    report = run(f"gpu {command} --json").record
    assert report["exit_code"] == 4
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(find_library("cuda") is not None, reason="there is a CUDA driver here")
@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_gpu(run, command, tmp_path):
    before = sorted(tmp_path.iterdir())
    outcome = run(f"gpu {command}")
    assert (outcome.code, outcome.out) == (4, "")
    assert outcome.err.startswith("error: there is no GPU here: no CUDA driver (libcuda.so.1). With an NVIDIA GPU, install its driver")
    assert len(outcome.err.strip().splitlines()) == 1 and sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_pycuda_without_a_driver(run, no_pycuda, ncu, command, tmp_path):
    no_pycuda.delitem(sys.modules, "pycuda")
    (tmp_path / "lib" / "pycuda").mkdir(parents=True)
    (tmp_path / "lib" / "pycuda" / "__init__.py").write_text("")
    (tmp_path / "lib" / "pycuda" / "driver.py").write_text("raise ImportError('libcuda.so.1: cannot open shared object file')\n")
    no_pycuda.syspath_prepend(tmp_path / "lib")
    outcome = run(f"gpu {command}")
    assert (outcome.code, outcome.out) == (4, "")
    assert "pycuda finds no CUDA driver (libcuda.so.1: cannot open shared object file): install the driver" in outcome.err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("error", ["", "no CUDA-capable device is detected"])
def test_no_gpu(run, gpu, ncu, command, error):
    gpu.names, gpu.init_error = (), error
    outcome = run(f"gpu {command}")
    assert (outcome.code, outcome.out) == (4, "")
    assert (error or "no GPU that it can use") in outcome.err


@pytest.mark.parametrize("command", ["profile axpy --n 10", "record axpy --n 10 -o x.zip", "compare axpy --n 10"])
def test_no_ncu(run, gpu, monkeypatch, command, tmp_path):
    def missing(name):
        raise ToolMissing(f"{name} is neither installed as a package nor on the PATH. Get it: somewhere")

    for module in ("fasim.cli.gpu_profile", "fasim.cli.gpu_record", "fasim.gpu.ncu"):
        __import__(module)
        monkeypatch.setattr(sys.modules[module], "find_tool", missing)
    outcome = run(command if command.startswith("compare") else f"gpu {command}")
    assert (outcome.code, gpu.launches) == (4, 0)
    assert "ncu is neither installed" in outcome.err
    assert not (tmp_path / "x.zip").exists()
