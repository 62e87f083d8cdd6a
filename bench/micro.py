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


@dataclass(frozen=True)
class Mma:
    """An mma.sync on random fragments, the same ones over and over.

    shape: as in the mnemonic. dtype: of A and B. accumulator: of C and D. registers: 32-bit registers of A, of B, of D.
    """

    shape: str
    dtype: str
    accumulator: str
    registers: tuple[int, int, int]

    @property
    def name(self) -> str:
        """As PTX spells it, shortened."""
        return f"mma.{self.shape} {self.dtype}->{self.accumulator}"

    @property
    def entry(self) -> str:
        """Name of the kernel."""
        return f"mma_{self.shape}_{self.dtype}_{self.accumulator}"

    @property
    def source(self) -> str:
        """CUDA source of the kernel."""
        a, b, d = self.registers
        c_type, letter = ("float", "f") if self.accumulator == "f32" else ("unsigned", "r")
        slots = iter(range(d + a + b + d))
        lists = ["{" + ", ".join(f"%{next(slots)}" for _ in range(count)) + "}" for count in (d, a, b, d)]
        outputs = ", ".join(f'"={letter}"(out[{i}])' for i in range(d))
        inputs = ", ".join([f'"r"(in[{i}])' for i in range(a + b)] + [f'"{letter}"(c[{i}])' for i in range(d)])
        operation = f"mma.sync.aligned.{self.shape}.row.col.{self.accumulator}.{self.dtype}.{self.dtype}.{self.accumulator}"
        return f"""
extern "C" __global__ void {self.entry}(const unsigned *fragments, {c_type} *result, int rounds) {{
    const int lane = threadIdx.x % 32;
    unsigned in[{a + b}];
    {c_type} c[{d}], out[{d}];
    for (int i = 0; i < {a + b}; i++) in[i] = fragments[{a + b} * lane + i];
    for (int i = 0; i < {d}; i++) c[i] = result[{d} * lane + i];
    for (int i = 0; i < rounds; i++) {{
        #pragma unroll
        for (int j = 0; j < {UNROLL}; j++) asm volatile("{operation} {", ".join(lists)};" : {outputs} : {inputs});
    }}
    for (int i = 0; i < {d}; i++) result[{d} * lane + i] = out[i];
}}
"""

    def arguments(self, rounds: int) -> list[object]:
        """Fragments of normal numbers in the format of A and B, accumulators, and the number of rounds."""
        rng = np.random.default_rng(0)
        a, b, d = self.registers
        single = rng.standard_normal((32 * (a + b), 2), dtype=np.float32)
        if self.dtype == "f16":
            fragments = single.astype(np.float16).view(np.uint32)
        elif self.dtype == "bf16":
            fragments = (single.view(np.uint32) >> 16).astype(np.uint16).view(np.uint32)
        else:
            fragments = single[:, 0].view(np.uint32) & np.uint32(0xFFFFE000)
        sums = rng.standard_normal(32 * d * (1 if self.accumulator == "f32" else 2), dtype=np.float32)
        return [fragments.reshape(-1).copy(), sums if self.accumulator == "f32" else sums.astype(np.float16), rounds]


MMA = (
    Mma("m16n8k16", "f16", "f32", (4, 2, 4)),
    Mma("m16n8k16", "bf16", "f32", (4, 2, 4)),
    Mma("m16n8k8", "tf32", "f32", (4, 2, 4)),
    Mma("m16n8k16", "f16", "f16", (4, 2, 2)),
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
def kernel(source: str, entry: str) -> fasim.Kernel:
    """The compiled kernel of a source."""
    return fasim.compile(source).kernel(entry)


def seconds_each(micro: Micro | Mma, rounds: int) -> float:
    """Seconds that one execution of the instruction takes a warp on one core."""
    arguments = micro.arguments(rounds) if isinstance(micro, Mma) else [np.zeros(BUFFER_BYTES, np.uint8), rounds]
    result = kernel(micro.source, micro.entry).launch(1, THREADS, arguments, workers=1)
    return result.seconds / (rounds * UNROLL * THREADS // 32)


def alu_rate(rounds: int, workers: int) -> float:
    """Warp instructions a second and core on f32 and integer arithmetic."""
    out = np.zeros(1024, np.float32)
    result = kernel(ALU, "alu").launch(4, 256, [out, rounds], workers=workers)
    return result.warp_instructions / result.seconds / workers
