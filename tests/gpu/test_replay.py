"""The process that ncu watches, in this process."""

from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

import fasim
from fasim.gpu import replay
from fasim.gpu.packed import Packing

SOURCE = """
__device__ int calls = 40;
extern "C" __global__ void count(int* o) { if (threadIdx.x == 0) o[0] = ++calls; }
extern "C" __global__ void broken(int* p) { p[1 << 20] = 1; }
extern "C" __global__ void dynamic(int* o) { extern __shared__ int tile[]; tile[threadIdx.x] = o[threadIdx.x];
                                             __syncthreads(); o[threadIdx.x] = tile[31 - threadIdx.x]; }
"""


def packed(module, name, size=32, **more):
    return Packing(module.kernel(name), 1, 32, [np.arange(size, dtype=np.int32)], **more).launch


@pytest.fixture
def process(gpu, tmp_path, monkeypatch):
    """Runs the process; returns its exit code."""

    def run(launches, device=0):
        path = tmp_path / "launches.pickle"
        with path.open("wb") as file:
            replay.write(file, launches)
        monkeypatch.setattr(sys, "argv", ["replay", str(device), str(path), "60"])
        return replay.main()

    return run


def test_launches_between_start_and_stop(process, gpu):
    gpu.names = ("NVIDIA H200", "NVIDIA H200")
    module = fasim.compile(SOURCE)
    code = module.compiled.cubin
    launches = [
        (code, packed(module, "dynamic", dynamic_smem_bytes=100_000)),
        (code, packed(module, "count")),
        (code, packed(module, "count")),
    ]
    assert process(launches, 1) == 0
    steps = [each[:2] for each in gpu.log if each[0] in ("launch", "start profiler", "stop profiler")]
    wanted = [[("start profiler",), ("launch", entry), ("stop profiler",)] for entry in ("dynamic", "count", "count")]
    assert steps == [step for each in wanted for step in each]
    assert gpu.log[0] == ("context", 1)
    # the same code once: ncu tells instructions by address
    assert gpu.loaded == [code]
    assert gpu.contexts == ["made", "popped", "detached"]
    assert [each.size_bytes for each in gpu.memory.values()] == [4]


def test_each_launch_finds_variables_as_the_first_did(process, gpu, monkeypatch):
    module = fasim.compile(SOURCE)
    seen, free = [], replay.Buffers.free

    def noting(buffers):
        buffers.download()
        seen.append(int(buffers.arrays[0][0]))
        free(buffers)

    monkeypatch.setattr(replay.Buffers, "free", noting)
    changed = fasim.compile(SOURCE)
    changed.symbol("calls").write(7)
    assert process([(module.compiled.cubin, packed(m, "count")) for m in (module, changed, module)]) == 0
    assert seen == [41, 8, 41]


def test_inputs_are_those_of_the_file(process, gpu, monkeypatch):
    seen, free = [], replay.Buffers.free

    def noting(buffers):
        buffers.download()
        seen.append(buffers.arrays[0].tolist())
        free(buffers)

    monkeypatch.setattr(replay.Buffers, "free", noting)
    module = fasim.compile(SOURCE)
    launch = packed(module, "dynamic", dynamic_smem_bytes=128)
    assert process([(module.compiled.cubin, launch)]) == 0
    assert seen == [list(range(31, -1, -1))]
    assert launch.buffers[0].tolist() == list(range(32))


def test_a_fault_ends_with_its_message_and_code(process, gpu, capsys):
    module = fasim.compile(SOURCE)
    assert process([(module.compiled.cubin, packed(module, name)) for name in ("count", "broken", "count")]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: kernel broken on NVIDIA H200: an illegal memory access was encountered")
    assert gpu.contexts == ["made", "popped"]
    assert [each[0] for each in gpu.log].count("start profiler") == 2


@pytest.mark.parametrize(
    ("names", "device", "code", "message"), [((), 0, 4, "no GPU that it can use"), (("NVIDIA H200",), 1, 2, "there is no GPU 1")]
)
def test_no_gpu(process, gpu, capsys, names, device, code, message):
    gpu.names = names
    assert process([], device) == code
    assert message in capsys.readouterr().err


def test_the_file_is_one_launch_behind_the_other(tmp_path):
    module = fasim.compile(SOURCE)
    launches = [(module.compiled.cubin, packed(module, "count", size)) for size in (1, 5)]
    with (tmp_path / "x").open("wb") as file:
        replay.write(file, iter(launches))
    with (tmp_path / "x").open("rb") as file:
        for code, launch in launches:
            again, same = pickle.load(file)
            assert again == code
            assert same.buffers[0].tolist() == launch.buffers[0].tolist()
            assert (same.entry, same.pointers, same.variables) == (launch.entry, launch.pointers, launch.variables)
        assert not file.read()
