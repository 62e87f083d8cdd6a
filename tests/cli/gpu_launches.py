"""Launches for the commands that use a GPU, and what their tests share."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fasim.gpu import driver as gpu_driver
from fasim.gpu.recording_file import load, save

MANY = "many.cu -I include -D BIAS=2 --block 32 --grid 1"
AXPY = "axpy.cu --grid 8 --block 128 --arg a=2.0 --arg x=f32[1024]:normal --arg y=f32[1024]:ones --arg n=1000"
STORE = "store.ptx --grid 1 --block 1 --arg p=u32[4]:zeros --arg n=5"
FAULTS = """
#include <cstdio>
__global__ void outside(int* p) { p[0] = 1; p[1 << 20] = 1; }
__global__ void trapped(int* p) { p[0] = 1; __trap(); }
__global__ void forever(int* p) { while (atomicAdd(p, 0) == 0) p[1] += 1; }
__device__ float factor = 1.5f;
__constant__ int offsets[4] = {1, 2, 3, 4};
__global__ void variables(float* o) { o[threadIdx.x] = factor * offsets[threadIdx.x % 4]; if (threadIdx.x == 0) factor = o[3]; }
__global__ void talk(int* p) { if (threadIdx.x < 2) printf("lane %d\\n", threadIdx.x); p[threadIdx.x] = threadIdx.x; }
"""
VARIABLES = "faults.cu --entry variables --grid 1 --block 4 --arg o=f32[4]:zeros"
LAUNCHES = {
    "collection": "axpy --n 100",
    "options": "fa_v21 --heads 1 --n 33 --head-dim 64 --causal --seed 3",
    "file": AXPY,
    "variables": f"{VARIABLES} --symbol factor=2.5 --symbol offsets=i32[4]:arange",
    "template": f"{MANY} --entry scale<5,float> --arg p=f32[32]:arange",
    "printed": "faults.cu --entry talk --grid 1 --block 32 --arg p=i32[32]:zeros",
    "stored": "axpy.cu --grid 8 --block 128 --arg a=2.0 --arg x=@x.npy --arg y=f32[1024]:ones --arg n=1000",
    "half": f"{MANY} --entry twice --arg p=bf16[32]:normal",
    "null": f"{MANY} --entry nullable --arg p=null --arg out=i32[32]:zeros",
    "ptx": "store.ptx --grid 1 --block 1 --arg p=u32[4]:zeros --arg n=5",
}


@pytest.fixture
def run(fasim_command, tmp_path):
    (tmp_path / "faults.cu").write_text(FAULTS)
    return lambda line, *more: fasim_command(*line.split(), *more)


@pytest.fixture
def no_gpu(gpu):
    """Call it to take the GPU away."""

    def take():
        gpu.names = ()
        gpu_driver.pycuda_driver.cache_clear()

    return take


@pytest.fixture
def recorded(run, gpu):
    assert run(f"gpu record {LAUNCHES['collection']} --no-profile --no-time -o r.zip").code == 0
    return Path("r.zip")


def recording_of_the_report(run, ncu, which, name="packed"):
    """A launch of fa_v21 with the machine code of the sample report."""
    layout = ("linear", "padded")[which // 2]
    assert run(f"gpu pack fa_v21 --heads 1 --n 128 --layout {layout} -o {name}.zip").code == 0
    path = Path(f"{name}.zip")
    recording = load(path)
    save(path, replace(recording, module=replace(recording.module, cubin=ncu.cubins[which])))
    return path
