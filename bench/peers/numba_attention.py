"""Naive attention in numba's CUDA simulator, a thread for each query row: `python numba_attention.py N REPETITIONS`."""

from __future__ import annotations

import json
import math
import os
import sys
import time

os.environ["NUMBA_ENABLE_CUDASIM"] = "1"  # read when numba is imported

import numba
import numpy as np
from numba import cuda

HEAD_DIM, THREADS = 64, 128


@cuda.jit
def attention(q, k, v, o, p, scale):
    row = cuda.grid(1)
    n, head_dim = q.shape
    if row >= n:
        return
    highest = -math.inf
    for key in range(n):
        s = np.float32(0)
        for d in range(head_dim):
            s += q[row, d] * k[key, d]
        s *= scale
        p[row, key] = s
        highest = max(highest, s)
    total = np.float32(0)
    for key in range(n):
        p[row, key] = math.exp(p[row, key] - highest)
        total += p[row, key]
    for d in range(head_dim):
        s = np.float32(0)
        for key in range(n):
            s += p[row, key] * v[key, d]
        o[row, d] = s / total


def main() -> None:
    n, repetitions = int(sys.argv[1]), int(sys.argv[2])
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((n, HEAD_DIM), dtype=np.float32) for _ in range(3))
    o, p = np.zeros_like(q), np.zeros((n, n), np.float32)
    seconds, cpu_seconds = [], []
    for _ in range(repetitions):
        start, cpu_start = time.perf_counter(), time.process_time()
        attention[-(-n // THREADS), THREADS](q, k, v, o, p, np.float32(1 / math.sqrt(HEAD_DIM)))
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    s = q.astype(np.float64) @ k.T / math.sqrt(HEAD_DIM)
    s = np.exp(s - s.max(1, keepdims=True))
    error = float(np.abs(o - s / s.sum(1, keepdims=True) @ v).max())
    assert error < 1e-4, f"wrong output: {error}"
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "error": error, "version": f"numba {numba.__version__}"}))


if __name__ == "__main__":
    main()
