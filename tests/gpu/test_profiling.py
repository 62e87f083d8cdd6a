"""Profiles of many launches by one run of ncu, with a script that leaves a real report in its place."""

from __future__ import annotations

import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import fasim
from fasim.errors import FasimError, ToolMissing
from fasim.gpu import ncu as ncu_module
from fasim.gpu import replay
from fasim.gpu.code import MachineCode
from fasim.gpu.ncu_reader import read_report
from fasim.gpu.packed import PackedLaunch, Packing
from fasim.gpu.profiling import profile_launches
from fasim.sass.listing import listing

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the script is for a POSIX shell")


def launch(entry="fa_v21"):
    return PackedLaunch(entry, entry, (1, 1, 1), (128, 1, 1), 0, b"", (), (np.arange(3),), ("q",))


def test_each_launch_gets_its_own_profile(ncu):
    profiles = profile_launches([(MachineCode(cubin, "NVRTC 13.0", "sm_90"), launch()) for cubin in ncu.cubins], 0)
    for profile, found, cubin in zip(profiles, read_report(ncu.report), ncu.cubins, strict=True):
        assert profile == found.profile(listing(cubin, "fa_v21"), "2025.3.1.0")
        assert profile.tool == "2025.3.1.0"
        assert sum(each.executions for each in profile.instructions) == profile.counters["inst_executed"] > 0
    assert profiles[0].launch["launch__grid_size"] == 1
    assert profiles[1].launch["launch__grid_size"] == 256


def test_nobody_can_list_what_the_driver_assembled(ncu):
    ncu.chosen.append(1)
    (profile,) = profile_launches([(MachineCode(".version 8.0\n", "the driver", "sm_90"), launch())], 0)
    assert profile.instructions == ()
    assert profile.counters["l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"] == 14909440


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["fa_v21"], r"ncu's report holds 4 launches \(fa_v21\), not the 1 that were"),
        (["fa_v21"] * 5, r"holds 4 launches \(fa_v21\), not the 5"),
        (["fa_v21"] * 3 + ["other"], r"holds 4 launches \(fa_v21\), not the 4"),
    ],
)
def test_a_report_of_other_launches(ncu, entries, message):
    with pytest.raises(FasimError, match=message):
        profile_launches([(MachineCode(ncu.cubins[0], "NVRTC 13.0", "sm_90"), launch(entry)) for entry in entries], 0)


def test_a_report_of_other_machine_code(ncu):
    with pytest.raises(FasimError, match="not made with this machine code"):
        profile_launches([(MachineCode(cubin, "NVRTC 13.0", "sm_90"), launch()) for cubin in reversed(ncu.cubins)], 0)


def test_the_report_is_kept_where_asked(ncu, tmp_path):
    profile_launches([(MachineCode(cubin, "", "sm_90"), launch()) for cubin in ncu.cubins], 0, keep=tmp_path / "kept.ncu-rep")
    assert [path.name for path in tmp_path.iterdir()] == ["kept.ncu-rep"]
    assert (tmp_path / "kept.ncu-rep").read_bytes() == ncu.report.read_bytes()


def test_what_ncu_is_told(ncu, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    profile_launches([(MachineCode(cubin, "", "sm_90"), launch()) for cubin in ncu.cubins], 3)
    words = ncu.arguments
    assert words[-6:-2] == [sys.executable, "-m", "fasim.gpu.replay", "3"] and float(words[-1]) >= 60
    assert words[words.index("--clock-control") + 1] == "none"
    assert words[words.index("--profile-from-start") + 1] == "off"
    (path,) = [line for line in (ncu.folder / "environment").read_text().splitlines() if line.startswith("PYTHONPATH=")]
    assert path == f"PYTHONPATH={Path(fasim.__file__).parent.parent}{os.pathsep}/somewhere"
    with ncu.launches.open("rb") as file:
        written = [pickle.load(file) for _ in range(4)]
    assert [code for code, _ in written] == ncu.cubins
    assert [each.buffers[0].tolist() for _, each in written] == [[0, 1, 2]] * 4
    # nothing stays behind
    assert not Path(words[-2]).exists()


def test_the_process_launches_what_was_written(ncu, gpu, monkeypatch):
    """What ncu would start, here in this process."""
    module = fasim.compile('extern "C" __global__ void fa_v21(int* o) { o[threadIdx.x] += 1; }')
    values = np.arange(32, dtype=np.int32)
    packed = Packing(module.kernel(), 1, 32, [values]).launch
    ncu.chosen.append(0)
    with pytest.raises(FasimError, match="not made with this machine code"):
        profile_launches([(MachineCode(module.compiled.cubin, "", "sm_90"), packed)], 0)
    monkeypatch.setattr(sys, "argv", ["replay", "0", str(ncu.launches), "60"])
    assert replay.main() == 0
    assert [each[:2] for each in gpu.log if each[0] in ("launch", "start profiler", "stop profiler")] == [
        ("start profiler",),
        ("launch", "fa_v21"),
        ("stop profiler",),
    ]


def test_no_ncu(monkeypatch, tmp_path):
    def missing(name):
        raise ToolMissing(f"{name} is neither installed as a package nor on the PATH")

    monkeypatch.setattr(ncu_module, "find_tool", missing)
    with pytest.raises(ToolMissing, match="ncu is neither"):
        profile_launches([(MachineCode(b"", "", "sm_90"), launch())], 0, keep=tmp_path / "x.ncu-rep")
    assert not list(tmp_path.iterdir())
