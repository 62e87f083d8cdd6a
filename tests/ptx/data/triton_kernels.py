"""The Triton kernels behind triton_*.ptx, and how they were compiled (Triton 3.9.0, sm_80, no GPU needed): python triton_kernels.py"""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add_kernel(x, y, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    tl.store(o + i, tl.load(x + i, mask=mask) + tl.load(y + i, mask=mask), mask=mask)


@triton.jit
def softmax_kernel(x, o, n, stride, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + column, mask=column < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(o + row * stride + column, e / tl.sum(e, axis=0), mask=column < n)


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows, columns, depth = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        left = tl.load(a + rows[:, None] * K + (k + depth)[None, :])
        right = tl.load(b + (k + depth)[:, None] * N + columns[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(tl.float16))


F32, F16, I32, C = "*fp32", "*fp16", "i32", "constexpr"
KERNELS = {
    "add": (add_kernel, {"x": F32, "y": F32, "o": F32, "n": I32, "BLOCK": C}, {(4,): 1024}, {}),
    "softmax": (softmax_kernel, {"x": F32, "o": F32, "n": I32, "stride": I32, "BLOCK": C}, {(4,): 256}, {}),
    "matmul": (
        matmul_kernel,
        {"a": F16, "b": F16, "c": F16, "M": I32, "N": I32, "K": I32, "BM": C, "BN": C, "BK": C},
        {(6,): 64, (7,): 64, (8,): 32},
        {"num_stages": 3},
    ),
}

if __name__ == "__main__":
    for name, (function, signature, constants, options) in KERNELS.items():
        source = ASTSource(function, signature, constexprs=constants)
        compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options)
        with open(f"triton_{name}.ptx", "w") as file:
            file.write(compiled.asm["ptx"])
