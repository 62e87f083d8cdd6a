"""Kernels to step through, with their launches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import fasim
from fasim import kernels
from fasim.trace.stepper import Stepper

CASES = Path(__file__).parents[1] / "cases"
sys.path.insert(0, str(CASES))
import caselib  # noqa: E402  the cases import it by this name

SOURCE = r"""
#include <cstdio>
__device__ __noinline__ int collatz(int n) {
    int steps = 0;
    while (n != 1) { n = n % 2 ? 3 * n + 1 : n / 2; steps++; }
    return steps;
}
__device__ __noinline__ int depth(int n) { return n < 2 ? n : depth(n - 1) + depth(n - 2); }
extern "C" __global__ void calls(int *out) {
    int t = threadIdx.x;
    out[t] = collatz(t + 1);
    if (t & 1) out[t] += 1000 * depth(t & 7);
}
extern "C" __global__ void prints(int *out) {
    int t = threadIdx.x;
    for (int i = 0; i < 3; i++) if (t % 20 == i) printf("%d: %d\n", i, t);
    out[t] = t;
}
extern "C" __global__ void global_order(unsigned *slots, int rounds) {   // slots[0] is a counter
    for (int i = 0; i < rounds; i++) {
        unsigned at = threadIdx.x % 32 == 0 ? atomicAdd(slots, 1u) : 0u;
        if (threadIdx.x % 32 == 0) slots[1 + at] = threadIdx.x / 32 + 10 * i;
    }
}
extern "C" __global__ void turns(unsigned *slots) {                     // lanes of a warp wait for each other: turns decide
    __shared__ volatile int turn;
    if (threadIdx.x == 0) turn = 0;
    __syncthreads();
    int t = threadIdx.x;
    while (turn != t) { }
    slots[1 + atomicAdd(slots, 1u)] = t;
    turn = t + 1;
}
extern "C" __global__ void heap(long long *out) {
    int *mine = (int *)malloc(8 + 8 * (threadIdx.x % 2));
    mine[0] = threadIdx.x; mine[1] = 7;
    out[threadIdx.x] = mine[0] + mine[1];
    if (threadIdx.x % 3) free(mine);
    int *more = (int *)malloc(8);
    out[threadIdx.x] += (long long)more % 4096 << 20;
}
extern "C" __global__ void many_copies(const int *in, int *out) {
    __shared__ int s[96 * 64];
    unsigned t = threadIdx.x, base = (unsigned)__cvta_generic_to_shared(s);
    for (int i = 0; i < 96; i++)
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(base + 4 * (i * 64 + t)), "l"(in + i * 64 + t));
    asm volatile("cp.async.commit_group;");
    asm volatile("cp.async.wait_group 0;");
    int v = 0;
    for (int i = 0; i < 96; i++) v += s[i * 64 + t] * (i + 1);
    out[t] = v;
}
extern "C" __global__ void many_races(int *out, int n) {
    extern __shared__ int d[];
    int v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) d[i] = i;
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += d[n - 1 - i];
    out[threadIdx.x] = v;
}
extern "C" __global__ void overrun(int *out, int wrong) {
    int t = threadIdx.x;
    out[t] = 1;
    __syncthreads();
    if (t == 40) out[wrong] = 2;
    out[t] += 1;
}
extern "C" __global__ void asserts(int *out) {
    out[threadIdx.x] = 1;
    __syncthreads();
    if (out[threadIdx.x] == 1 && threadIdx.x == 5) printf("soon\n");
    if (threadIdx.x == 7) asm volatile("trap;");
}
extern "C" __global__ void deadlock(int *out) {
    int t = threadIdx.x;
    out[t] = 1;
    if (t < 32) asm volatile("bar.sync 1, 64;"); else asm volatile("bar.sync 2, 64;");
    out[t] = 2;
}
extern "C" __global__ void nans(const float *in, float *out) {
    float x = in[threadIdx.x];
    float y = x - 1.0f;
    float z = y * 0.0f;
    out[threadIdx.x] = z + 1.0f;
}
extern "C" __global__ void endless(volatile int *flag) { while (*flag == 0) { } }
extern "C" __global__ void undefined(const float *in, float *out) { if (in[threadIdx.x] != 1.0f) out[threadIdx.x] = 2.0f; }
extern "C" __global__ void generic(int *out, int where) {
    __shared__ int s[32];
    s[threadIdx.x] = 5;
    __syncwarp();
    int *at = threadIdx.x < where ? s + threadIdx.x : out + threadIdx.x;
    *at = 7;
    out[threadIdx.x] += s[threadIdx.x];
}
extern "C" __global__ void wide(const unsigned char *in, unsigned char *out, int n) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = in[i] + 1;
}
extern "C" __global__ void reduced(const int *in, int *out) {           // results that stand where the barrier's number stood
    int number = 3 + (in[0] & 1), bits;
    asm volatile("{.reg .pred p; setp.lt.s32 p, %1, 40; bar.red.popc.u32 %0, %0, p;}" : "+r"(number) : "r"(in[threadIdx.x]));
    bits = atomicAdd(out, 0);                                           // gives what a fresh register holds
    out[threadIdx.x] = number + bits;
}
extern "C" __global__ void scoped(const int *in, int *out) {            // registers that a block has for itself
    __shared__ __align__(16) int s[256];
    int t = threadIdx.x;
    for (int i = t; i < 256; i += 32) s[i] = in[i];
    __syncwarp();
    unsigned at = (unsigned)__cvta_generic_to_shared(s + 4 * t);
    asm volatile("{.reg .b32 a<4>; .reg .f32 c<4>; .reg .s16 narrow;"
                 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {a0, a1, a2, a3}, [%0];"
                 "mov.f32 c0, 0f3F800000; mov.f32 c1, c0; mov.f32 c2, c0; mov.f32 c3, c0;"
                 "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {c0, c1, c2, c3}, {a0, a1}, {a2}, {c0, c1, c2, c3};"
                 "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%0];"
                 "cvt.s16.s32 narrow, %1; neg.s16 narrow, narrow; st.shared.s16 [%2], narrow;"
                 "cvt.rzi.s32.f32 a3, c3; add.s32 %0, %0, a3;}" : "+r"(at) : "r"(t), "r"((unsigned)__cvta_generic_to_shared(s + t)));
    out[t] = at;
}
extern "C" __global__ void handed(int *out) {                           // who opens the barrier does not wait there
    __shared__ int value;
    if (threadIdx.x < 32) {
        asm volatile("bar.sync 1, 64;" ::: "memory");
        out[threadIdx.x] = value;
    } else {
        value = 7;
        asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
}
extern "C" __global__ void strangers(const float *in, float *out) {     // lanes that wait in vain for those of another instruction
    for (int i = 0; i < 2; i++)
        if (i == threadIdx.x % 2) {
            float taken;
            asm volatile("shfl.sync.bfly.b32 %0, %1, 1, 31, 0xffffffff;" : "=f"(taken) : "f"(in[threadIdx.x] + i));
            out[threadIdx.x] = taken;
        }
}
"""


@dataclass(frozen=True)
class Launch:
    """A launch whose arguments `make` makes anew."""

    name: str
    kernel: Callable[[], Any]
    grid: Any
    block: Any
    make: Callable[[], Sequence[Any]]
    dynamic_smem_bytes: int = 0
    names: tuple[str, ...] = ()

    def stepper(self, args: Sequence[Any] | None = None, **options: Any) -> Stepper:
        """A stepper at its beginning."""
        given = self.make() if args is None else args
        return Stepper(self.kernel(), self.grid, self.block, given, dynamic_smem_bytes=self.dynamic_smem_bytes, names=self.names, **options)

    def launch(self, args: Sequence[Any], **options: Any) -> Any:
        """A launch."""
        options = {"output": lambda text: None, "workers": 1, **options}
        return self.kernel().launch(self.grid, self.block, args, dynamic_smem_bytes=self.dynamic_smem_bytes, names=self.names, **options)


@cache
def module() -> fasim.Module:
    """The kernels of this file."""
    return fasim.compile(SOURCE)


def own(name: str, block: Any, make: Callable[[], Sequence[Any]], *, grid: Any = 1, smem: int = 0) -> Launch:
    """A kernel of this file."""
    return Launch(name, lambda: module().kernel(name), grid, block, make, smem)


def zeros(count: int, dtype: Any = np.int32) -> np.ndarray[Any, Any]:
    """An output."""
    return np.zeros(count, dtype)


OWN = {
    launch.name: launch
    for launch in (
        own("calls", 64, lambda: [zeros(64)]),
        own("prints", 64, lambda: [zeros(64)]),
        own("global_order", 128, lambda: [zeros(1 + 4 * 900, np.uint32), np.int32(900)]),
        own("turns", 40, lambda: [zeros(41, np.uint32)]),
        own("heap", 64, lambda: [zeros(64, np.int64)]),
        own("many_copies", 64, lambda: [np.arange(96 * 64, dtype=np.int32), zeros(64)]),
        own("many_races", 64, lambda: [zeros(64), np.int32(12000)], smem=48000),
        own("overrun", 64, lambda: [zeros(64), np.int32(1 << 20)]),
        own("asserts", 64, lambda: [zeros(64)]),
        own("deadlock", 64, lambda: [zeros(64)]),
        own("nans", 32, lambda: [np.array([np.inf] + [1.0] * 31, np.float32), zeros(32, np.float32)]),
        own("endless", 32, lambda: [zeros(1)], grid=2),
        own("reduced", 96, lambda: [np.arange(96, dtype=np.int32), zeros(96)]),
        own("scoped", 32, lambda: [np.arange(256, dtype=np.int32) * 1117, zeros(32)]),
        own("handed", 64, lambda: [zeros(32)]),
        own("strangers", 32, lambda: [np.ones(32, np.float32), zeros(32, np.float32)]),
        own("generic", 32, lambda: [zeros(32), np.int32(12)]),
        own("wide", 64, lambda: [np.arange(1 << 16).astype(np.uint8), zeros(1 << 16, np.uint8), np.int32(1 << 15)], grid=1),
    )
}


def of_collection(name: str, **options: Any) -> Launch:
    """A kernel that comes with fasim."""
    spec = kernels.load(name)
    given = spec.resolve(options)
    launch = spec.launch(given)
    inputs = spec.inputs(given, 0)

    def make() -> list[Any]:
        return [each.value.copy() if isinstance(each.value, np.ndarray) else each.value for each in inputs]

    def kernel() -> Any:
        return fasim.compile(spec.path, defines=spec.defines(given)).kernel(spec.entry)

    return Launch(name, cache(kernel), launch.grid, launch.block, make, launch.dynamic_smem_bytes, tuple(each.name for each in inputs))


def of_cases(name: str, run_id: str = "") -> Launch:
    """A run of a published case."""
    case = caselib.load(name)
    run = next(each for each in case["runs"] if run_id in ("", each["id"]))

    def make() -> list[Any]:
        return [value.copy() for value in caselib.make_inputs(run).values()]

    def kernel() -> Any:
        return fasim.compile(CASES / f"{name}.cu", arch=case.get("arch", "sm_90")).kernel(run["entry"])

    return Launch(
        f"{name}-{run['id']}", cache(kernel), run["grid"], run["block"], make, run["dynamic_smem"], tuple(caselib.make_inputs(run))
    )


FLASH = of_collection("fa_v21", n=128, bc=32, heads=1)
ONE_CTA = [
    FLASH,
    of_cases("out_divergent_loops"),
    of_cases("out_atomics_shared"),
    of_cases("out_shfl_reduce"),
    of_cases("out_local_array"),
    of_cases("hz_cp_async_pipeline"),
    of_cases("bc_ldmatrix_layouts"),
    *(OWN[name] for name in ("calls", "prints", "global_order", "turns", "heap", "many_copies", "many_races", "wide")),
]


def same_bytes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    """Whether all arrays hold the same bits."""
    return all(x.tobytes() == y.tobytes() for x, y in zip(a, b) if isinstance(x, np.ndarray))
