"""Micro-kernels: one PTX instruction over and over, to see what it costs in the machine.

Every kernel has the same shape: a loop around `UNROLL` copies of one piece of inline PTX. The loop adds three instructions to each
`UNROLL`, so that its share of a figure is small.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import fasim

UNROLL = 32
THREADS = 128
BUFFER_BYTES = 1 << 16
SHARED_BYTES = 1 << 14


@dataclass(frozen=True)
class Micro:
    """A piece of PTX to repeat.

    ptx: the instruction; %0 is the lane's global address, %1 its shared address, %2 the lane number. Names a, b, c, d, x, y, z, w are
    .b32 registers, h a .b16 register and l a .b64 register.
    lane_bytes: distance between the addresses of neighbouring lanes.
    """

    name: str
    ptx: str
    lane_bytes: int = 4

    @property
    def source(self) -> str:
        """CUDA source of the kernel."""
        repeated = f'asm volatile("{{ .reg .b32 a, b, c, d, x, y, z, w; .reg .b16 h; .reg .b64 l; {self.ptx} }}"'
        return f"""
extern "C" __global__ void {self.entry}(char *buffer, int rounds) {{
    __shared__ __align__(128) char shared[{SHARED_BYTES}];
    const unsigned lane = threadIdx.x % 32;
    const unsigned long long g = __cvta_generic_to_global(buffer) + lane * {self.lane_bytes};
    const unsigned s = __cvta_generic_to_shared(shared) + lane * {self.lane_bytes};
    for (int i = 0; i < rounds; i++) {{
        #pragma unroll
        for (int j = 0; j < {UNROLL}; j++) {repeated} :: "l"(g), "r"(s), "r"(lane) : "memory");
    }}
}}
"""

    @property
    def entry(self) -> str:
        """Name of the kernel."""
        return "k_" + "".join(c if c.isalnum() else "_" for c in self.name)


MEMORY = (
    Micro("ld.global.b32 contiguous", "ld.global.b32 a, [%0];"),
    Micro("ld.global.v4.b32 contiguous", "ld.global.v4.b32 {a, b, c, d}, [%0];", 16),
    Micro("ld.global.b64 contiguous", "ld.global.b64 l, [%0];", 8),
    Micro("ld.global.b16 contiguous", "ld.global.b16 h, [%0];", 2),
    Micro("ld.global.b32 every 128 B", "ld.global.b32 a, [%0];", 128),
    Micro("ld.global.b32 uniform", "ld.global.b32 a, [%0];", 0),
    Micro("st.global.b32 contiguous", "st.global.b32 [%0], %2;"),
    Micro("st.global.b32 every 128 B", "st.global.b32 [%0], %2;", 128),
    Micro("ld.shared.b32 contiguous", "ld.shared.b32 a, [%1];"),
    Micro("ld.shared.v4.b32 contiguous", "ld.shared.v4.b32 {a, b, c, d}, [%1];", 16),
    Micro("ld.shared.b32 every 128 B", "ld.shared.b32 a, [%1];", 128),
    Micro("ld.shared.b32 uniform", "ld.shared.b32 a, [%1];", 0),
    Micro("st.shared.b32 contiguous", "st.shared.b32 [%1], %2;"),
    Micro("atom.shared.add.u32 distinct", "atom.shared.add.u32 a, [%1], %2;"),
    Micro("atom.shared.add.u32 one address", "atom.shared.add.u32 a, [%1], %2;", 0),
    Micro("red.global.add.f32 distinct", "red.global.add.f32 [%0], 0f3F800000;"),
    Micro("shfl.sync.bfly.b32", "shfl.sync.bfly.b32 a, %2, 1, 31, -1;"),
    Micro("ldmatrix.x4", "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a, b, c, d}, [%1];", 16),
    Micro("cp.async.cg 16 B", "cp.async.cg.shared.global [%1], [%0], 16; cp.async.commit_group; cp.async.wait_group 0;", 16),
)

_F32, _F16 = "{%f0, %f1, %f2, %f3}", "{p, q}"
_SOURCES = "{a, b, c, d}, {x, y}"


def _mma(name: str, accumulators: int) -> Micro:
    kinds, sources = name.rsplit(".", 4)[1:], "{a, b, c, d}, {x, y}"
    del kinds
    dest = "{p, q, r, s}" if accumulators == 4 else "{p, q}"
    registers = ".reg .b32 p, q, r, s; " if accumulators == 2 else ".reg .f32 p, q, r, s; "
    return Micro(name, f"{registers}mma.sync.aligned.{name} {dest}, {sources}, {dest};")


MMA = (
    _mma("m16n8k16.row.col.f32.f16.f16.f32", 4),
    _mma("m16n8k16.row.col.f32.bf16.bf16.f32", 4),
    _mma("m16n8k8.row.col.f32.tf32.tf32.f32", 4),
    _mma("m16n8k16.row.col.f16.f16.f16.f16", 2),
)

ALU = """
extern "C" __global__ void alu(float *out, int rounds) {
    float a = threadIdx.x, b = 1.0001f, c = 0.5f, d = 2.0f;
    int x = threadIdx.x, y = 3, z = 7;
    for (int i = 0; i < rounds; i++) {
        #pragma unroll
        for (int j = 0; j < 8; j++) {
            a = __fmaf_rn(a, b, c); d = __fadd_rn(d, a); c = __fmul_rn(c, 0.999f); b = fmaxf(b, c);
            x = x * 3 + y; y ^= x >> 3; z += y & x;
        }
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = a + b + c + d + x + y + z;
}
"""


@cache
def kernel(micro: Micro) -> fasim.Kernel:
    """The compiled kernel of a piece of PTX."""
    return fasim.compile(micro.source).kernel(micro.entry)


def seconds_each(micro: Micro, rounds: int) -> float:
    """Seconds that one execution of the piece takes on one core."""
    buffer = np.zeros(BUFFER_BYTES, np.uint8)
    result = kernel(micro).launch(1, THREADS, [buffer, rounds], workers=1)
    return result.seconds / (rounds * UNROLL * THREADS // 32)
