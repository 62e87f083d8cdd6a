"""FlashAttention forward on fp16 tiles in Triton's interpreter: `python triton_attention.py N REPETITIONS`."""

from __future__ import annotations

import json
import os
import sys
import time

os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported

import torch
import triton
import triton.language as tl

HEAD_DIM, ROWS, KEYS = 64, 128, 32


@triton.jit
def attention(q, k, v, o, n, scale_log2, head_dim: tl.constexpr, rows: tl.constexpr, keys: tl.constexpr):
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    head = tl.program_id(1) * n * head_dim
    column = tl.arange(0, head_dim)
    at_rows = head + row[:, None] * head_dim + column[None, :]
    q_tile = tl.load(q + at_rows, mask=row[:, None] < n, other=0.0)
    highest = tl.full([rows], float("-inf"), tl.float32)
    total = tl.zeros([rows], tl.float32)
    result = tl.zeros([rows, head_dim], tl.float32)
    for first in range(0, n, keys):
        key = first + tl.arange(0, keys)
        at_keys = head + key[:, None] * head_dim + column[None, :]
        k_tile = tl.load(k + at_keys, mask=key[:, None] < n, other=0.0)
        v_tile = tl.load(v + at_keys, mask=key[:, None] < n, other=0.0)
        s = tl.dot(q_tile, tl.trans(k_tile)) * scale_log2
        s = tl.where(key[None, :] < n, s, float("-inf"))
        new_highest = tl.maximum(highest, tl.max(s, 1))
        p = tl.exp2(s - new_highest[:, None])
        correction = tl.exp2(highest - new_highest)
        total = total * correction + tl.sum(p, 1)
        result = tl.dot(p.to(tl.float16), v_tile, result * correction[:, None])
        highest = new_highest
    tl.store(o + at_rows, (result / total[:, None]).to(tl.float16), mask=row[:, None] < n)


def main() -> None:
    n, repetitions = int(sys.argv[1]), int(sys.argv[2])
    torch.manual_seed(0)
    q, k, v = (torch.randn(1, n, HEAD_DIM).to(torch.float16) for _ in range(3))
    o = torch.empty_like(q)
    seconds, cpu_seconds = [], []
    for _ in range(repetitions + 1):  # the first one warms up
        start, cpu_start = time.perf_counter(), time.process_time()
        attention[(triton.cdiv(n, ROWS), 1)](q, k, v, o, n, 1.4426950408889634 / HEAD_DIM**0.5, HEAD_DIM, ROWS, KEYS)
        seconds.append(time.perf_counter() - start)
        cpu_seconds.append(time.process_time() - cpu_start)
    expected = torch.softmax(q.double() @ k.double().transpose(1, 2) / HEAD_DIM**0.5, -1) @ v.double()
    error = (o.double() - expected).abs().max().item()
    assert error < 2e-3, f"wrong output: {error}"
    version = f"triton {triton.__version__}, torch {torch.__version__}"
    print(json.dumps({"seconds": seconds[1:], "cpu_seconds": cpu_seconds[1:], "error": error, "version": version}))


if __name__ == "__main__":
    main()
