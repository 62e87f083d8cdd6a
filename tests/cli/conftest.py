"""Running the command line in this process, and small sources to run."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from fasim.cli.main import main
from fasim.sm.machines import machine
from tests.cli.sweeps import OWN

SOURCES = {
    "axpy.cu": """
__global__ void axpy(float a, const float* __restrict__ x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
int main() { axpy<<<8, 128>>>(1.0f, nullptr, nullptr, 0); }
""",
    "many.cu": """
#include <cstdio>
#include <cuda_bf16.h>
#include "width.h"
struct Pair { int a; float b; };
template <int N, typename T> __global__ void scale(T* p) { p[threadIdx.x] = p[threadIdx.x] * T(N); }
template __global__ void scale<3, int>(int*);
__global__ void twice(__nv_bfloat16* p) { p[threadIdx.x] = p[threadIdx.x] + p[threadIdx.x]; }
__global__ void structure(Pair pair, float* out) { out[threadIdx.x] = pair.a + pair.b + BIAS + WIDTH; }
__global__ void copy(const long long* in, long long* out) { out[threadIdx.x] = in[threadIdx.x] + 1; }
__global__ void talk(int* p) { if (threadIdx.x < 2) printf("lane %d\\n", threadIdx.x); p[threadIdx.x] = 1 / (p[0] + 1); }
__global__ void nullable(int* p, int* out) { out[threadIdx.x] = p == nullptr; }
__global__ void shared(int* out) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[31 - threadIdx.x];
}
__global__ void forever(int* p) { while (atomicAdd(p, 0) == 0) p[1] += 1; }
""",
    "include/width.h": "#define WIDTH 8\n",
    "broken.cu": "__global__ void broken(int* p) { p[0] = undeclared; }\n",
    "textures.ptx": """.version 8.0
.target sm_90
.address_size 64
.visible .entry textured(.param .u64 p) {
  .reg .b32 %r<5>; .reg .b64 %d<2>; .reg .f32 %f<5>;
  ld.param.u64 %d1, [p];
  tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%d1, {%r1}];
  ret;
}
""",
    "store.ptx": """.version 8.0
.target sm_90
.address_size 64
.visible .entry store(.param .u64 p, .param .u32 n) {
  .reg .b32 %r<2>; .reg .b64 %d<2>;
  ld.param.u64 %d1, [p];
  ld.param.u32 %r1, [n];
  st.global.u32 [%d1], %r1;
  ret;
}
""",
}


@dataclass
class Outcome:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def record(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.out)


@pytest.fixture(scope="session", autouse=True)
def compiled_machine():
    """The first launch with a cold cache prints a line of its own."""
    machine("jit")


@pytest.fixture
def fasim_command(capfd, tmp_path, monkeypatch):
    """Returns a function that runs a command line in a directory with the sources."""
    for name, text in SOURCES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    np.save(tmp_path / "x.npy", np.arange(1024, dtype=np.float32))
    np.savez(tmp_path / "two.npz", first=np.arange(32, dtype=np.int32), second=np.ones((2, 3)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: str) -> Outcome:
        capfd.readouterr()
        code = main(list(words))
        captured = capfd.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def sweep(fasim_command, tmp_path):
    """Returns a function that runs `fasim sweep` beside own.cu, without processes of its own if nothing else is said."""
    (tmp_path / "own.cu").write_text(OWN)

    def run(*words: str):
        alone = () if {"--scheduler", "--workers"} & set(words) else ("--workers", "1")
        return fasim_command("sweep", *words, *alone)

    return run
