"""The clock of the SMs from two readings, and the kernel that reads it."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim.errors import FasimError, ToolMissing
from fasim.gpu import clock as clock_module
from fasim.gpu.clock import Clock, clock_of
from fasim.toolchain.ptxas import assemble


@pytest.mark.parametrize("mhz", [345.0, 1755.0, 1980.0])
@pytest.mark.parametrize("ns", [100_000, 3_333_333])
def test_cycles_by_time(device, gpu, mhz, ns):
    gpu.clock_mhz = mhz
    clock = Clock(device)
    clock.read(0)
    gpu.now_ns += ns
    clock.read(1)
    assert clock.mhz() == pytest.approx(mhz, rel=1e-4)
    assert [each[:4] for each in gpu.log if each[0] == "launch"] == [("launch", "fasim_clock", (264, 1, 1), (1, 1, 1))] * 2


def test_too_short_to_tell(device, gpu):
    clock = Clock(device)
    clock.read(0)
    gpu.now_ns += 99_999
    clock.read(1)
    assert clock.mhz() == 0.0


def readings(rows):
    return np.array(rows, np.int64)


TABLES = [
    # an SM whose counter began elsewhere; the first CTA of each SM counts
    ([(0, 0, 0), (1, 10**12, 5), (0, 999, 50)], [(1, 10**12 + 400_000, 200_005), (0, 200_000, 200_000), (0, 1, 300_000)], 1500.0),
    # an SM that only one reading met
    ([(0, 0, 0), (1, 0, 0)], [(0, 300_000, 200_000), (7, 1, 200_000)], 1500.0),
    # no SM in both
    ([(0, 0, 0), (1, 0, 0)], [(2, 300_000, 200_000), (7, 1, 200_000)], 0.0),
]


@pytest.mark.parametrize(("first", "second", "mhz"), TABLES)
def test_sms_are_told_apart(device, gpu, first, second, mhz):
    clock = Clock(device)
    clock.ctas = len(first)
    for memory, rows in zip(clock._memory, (first, (second + second)[: len(first)])):
        gpu.memcpy_htod(memory, readings(rows))
    assert clock.mhz() == mhz


def test_no_clock_where_the_driver_refuses(device, gpu):
    gpu.ptx_version = (6, 0)
    assert clock_of(device) is None


def test_the_kernel_notes_sm_cycles_and_nanoseconds():
    kernel = fasim.compile(clock_module._PTX).kernel("fasim_clock")
    noted = np.full((5, 3), -1, np.int64)
    try:
        kernel.launch(5, 1, [noted])
    except FasimError as error:
        pytest.skip(f"not simulated: {error}")
    assert noted[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert (noted[:, 1:] >= 0).all()


@pytest.mark.parametrize("arch", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_the_kernel_assembles(arch):
    try:
        assert assemble(clock_module._PTX, "clock.ptx", arch).cubin.startswith(b"\x7fELF")
    except ToolMissing:
        pytest.skip("no ptxas")
