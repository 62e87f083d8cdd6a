"""What sweeps are tried on, here and on a Dask cluster."""

from __future__ import annotations

from fasim.cli.launching import Call
from fasim.cli.run_options import RunOptions

#: REPEAT multiplications a thread, of which some do not compile, and shared memory that may be too much
OWN = """
__global__ void own(float* y, int n) {
  __shared__ float tile[KBYTES * 256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  tile[threadIdx.x] = i < n ? y[i] : 0;
  __syncthreads();
  float x = tile[threadIdx.x ^ 1];
  for (int k = 0; k < REPEAT; k++) x = x * x + 1;
  if (i < n) y[i] = x;
}
"""
ARGS = ("own.cu", "--arg", "y=f32[1024]:ones", "--arg", "n=1024")


def call_of(*words: str, **options) -> Call:
    return Call(list(words), RunOptions(**options), [], 0.0)
