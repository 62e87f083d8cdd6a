"""Kernels of which ptxas makes other accesses than PTX says, and counts of their machine code for the tests of the comparison."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import fasim
from fasim.report.bank_access import Access
from fasim.report.machine_classes import GENERIC, class_of_machine, machine_operation
from fasim.report.measured import MachineInstruction, Profile
from fasim.sass.listing import SassLine, listing
from fasim.sm.result import LaunchResult

WARPS = 4
LOADS = """\
__device__ __forceinline__ float lds(unsigned a) { float v; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(a)); return v; }
__device__ __forceinline__ float2 lds2(unsigned a) {
    float2 v; asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(v.x), "=f"(v.y) : "r"(a)); return v;
}
__device__ __forceinline__ float4 lds4(unsigned a) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(a));
    return v;
}
"""
#: every access of lane i is at 16 i and a constant
KERNEL = """\
extern "C" __global__ void k(float* o, int n) {
    __shared__ __align__(16) float s[512];
    int t = threadIdx.x;
    *(float4*)&s[4 * t] = make_float4(t, t + 1, t + 2, t + 3);
    __syncthreads();
    unsigned p = (unsigned)__cvta_generic_to_shared(&s[4 * t]);
    BODY
}
"""
ATOMICS = """\
extern "C" __global__ void k(float* o, int n) {
    __shared__ int c; __shared__ float f;
    atomicAdd(&f, 1.0f);
    atomicAdd(&c, 5);
    __syncthreads();
    o[threadIdx.x] = c + f;
}
"""


def launched(body: str) -> tuple[LaunchResult, tuple[SassLine, ...]]:
    """Compile a kernel with this body (or this source), launch it with 4 warps and n = 32: the result, and its machine code."""
    source = body if "__global__" in body else LOADS + KERNEL.replace("BODY", body)
    module = fasim.compile(source, arch="sm_90")
    result = module.kernel("k").launch(1, 32 * WARPS, [np.zeros(4096, np.float32), np.int32(32)], workers=1)
    assert module.compiled is not None
    return result, listing(module.compiled.cubin, "k")


def cost(op: str, mask: int = 0xFFFFFFFF) -> tuple[int, int]:
    """Wavefronts and ideal of the source page for lanes at 16 i; atomics: of one lane."""
    if op.startswith("ATOMS"):
        return 1, 1
    found = Access(op, tuple(16 * lane for lane in range(32)), mask).count()
    return found.source_wavefronts, found.source_ideal


def operations_of(code: tuple[SassLine, ...], name: str) -> list[str]:
    """The operations of a class in the machine code, in its order."""
    opcodes = [MachineInstruction(line.offset, line.text, 0, ()).opcode for line in code]
    return [machine_operation(opcode) for opcode in opcodes if (each := class_of_machine(opcode)) and each.name == name]


def profile(
    code: tuple[SassLine, ...],
    warps_on: Callable[[str], int] = lambda text: WARPS,
    *,
    with_lines: bool = True,
    counters: dict[str, float] | None = None,
) -> Profile:
    """Every instruction executed once by each of 4 warps; warps_on: in how many of them lanes take part, by the text."""
    instructions = []
    for line in code:
        bare = MachineInstruction(line.offset, line.text, 0, ())
        each, on = class_of_machine(bare.opcode), warps_on(line.text)
        generic = bare.opcode.split(".")[0] in GENERIC  # these kernels have none to global memory
        wavefronts, ideal = cost(machine_operation(bare.opcode)) if generic or (each and each.shared) else (0, 0)
        # a predicate on an atomic leaves one lane, which works for the others
        lanes = 1 if line.text.startswith("@") and bare.opcode.startswith("ATOMS") else 32
        counts = (WARPS, 32 * WARPS, lanes * on, on * wavefronts, on * ideal)
        instructions.append(MachineInstruction(line.offset, line.text, line.ptx_line if with_lines else 0, line.place, *counts))
    return Profile("2026.1", counters or {}, {}, tuple(instructions))
