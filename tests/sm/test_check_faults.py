"""Faults that were found in the checks once, and must not come back."""

from __future__ import annotations

import numpy as np
import pytest

import fasim
from fasim.errors import DeadlockError
from fasim.sm import watch
from fasim.smem import cells, clocks
from fasim.smem import check_state as h
from tests.smem.test_races import Block

SOURCE = r"""
#define SMEM(p) ((unsigned)__cvta_generic_to_shared(p))
extern "C" __global__ void exited(int *out) {
    __shared__ int s[128]; int t = threadIdx.x;
    if (t < 32) { s[t] = t; return; }                                   // 5
    asm volatile("bar.sync 1, 96;" ::: "memory");
    out[t] = s[t & 31];                                                 // 7
}
extern "C" __global__ void arrived(int *out) {
    __shared__ int s[128]; int t = threadIdx.x;
    if (t < 32) { s[t] = t; asm volatile("bar.arrive 1, 128;" ::: "memory"); return; }
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[t] = s[t & 31];
}
extern "C" __global__ void float_atomics(float *out) {
    __shared__ float s[1024]; s[threadIdx.x] = 0; __syncthreads();
    atomicAdd(&s[32 * threadIdx.x], 1.0f);                              // 17
    __syncthreads(); out[threadIdx.x] = s[32 * threadIdx.x];
}
extern "C" __global__ void spin(const float *in, volatile int *flag) {
    __shared__ float s[32]; unsigned d = SMEM(&s[threadIdx.x]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(d), "l"(in + threadIdx.x));
    while (*flag == 0) asm volatile("cp.async.wait_all;");
}
extern "C" __global__ void stale(const int *never, int *out, int i) {
    __shared__ __align__(8) int s[2];
    s[0] = never[i]; s[0] = 5;                                          // 27
    long long both = *(volatile long long *)s;                          // 28
    out[0] = (int)(both >> 32);                                         // 29
}
extern "C" __global__ void half_of_eight(unsigned long long *out) {
    __shared__ __align__(8) unsigned s[2];
    s[0] = 1; out[0] = atomicExch((unsigned long long *)s, 3ull);       // 33
}
extern "C" __global__ void absent_sync(int *out) {
    if (threadIdx.x < 16) __syncwarp();                                 // 36
    out[threadIdx.x] = 1;
}
extern "C" __global__ void late(const float *in, float *out) {
    __shared__ float s[64]; unsigned t = threadIdx.x, d = SMEM(&s[t]);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(d), "l"(in + t) : "memory");     // 41
    asm volatile("cp.async.wait_group 0;" ::: "memory");                                            // 42
    asm volatile("cp.async.commit_group;" ::: "memory");
    __syncthreads();
    out[t] = s[t ^ 32u];                                                                            // 45
}
extern "C" __global__ void abandons(const float4 *in, int n) {
    extern __shared__ float4 d[];
    for (int i = 0; i < n; i++) {
        unsigned a = SMEM(&d[i * 32 + threadIdx.x]);
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(a), "l"(in + threadIdx.x) : "memory");      // 51
    }
}
extern "C" __global__ void twice(const float *in, float *out, int n) {
    extern __shared__ float e[];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < n; i++) {
            unsigned a = SMEM(&e[i * 32 + threadIdx.x]);
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(a), "l"(in + threadIdx.x) : "memory");   // 59
        }
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[threadIdx.x] = e[threadIdx.x];
}
extern "C" __global__ void copy(const int *in, int *out, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = in[i];    // 65
}
"""


@pytest.fixture(scope="module")
def module():
    return fasim.compile(SOURCE)


def ints(n):
    return np.zeros(n, np.int32)


def found(module, entry, block, args, **options):
    result = module.kernel(entry).launch(1, block, args, check="all", **options)
    return [(x.kind, x.first_line, x.second_line) for x in result.hazards]


def test_a_thread_that_has_ended_takes_no_part_in_a_counted_barrier(module):
    assert found(module, "exited", 128, [ints(128)]) == [("RAW", 5, 7)]
    assert found(module, "arrived", 128, [ints(128)]) == []


def test_a_deadlock_names_the_warps_that_have_ended():
    source = """
extern "C" __global__ void k(int *out) {
    if (threadIdx.x >= 64) return;
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[threadIdx.x] = 1;
}
"""
    with pytest.raises(DeadlockError, match=r"warps 2-3 have ended") as caught:
        fasim.compile(source).kernel("k").launch(1, 128, [ints(128)])
    assert [w["warp"] for w in caught.value.details["waiting"]] == [0, 1]


def test_atomics_that_are_loops_are_not_counted(module):
    result = module.kernel("float_atomics").launch(1, 32, [np.zeros(32, np.float32)])
    atomic = next(a for a in result.shared_accesses if a.line == 17)
    assert (atomic.op, atomic.executions, atomic.wavefronts, atomic.conflicts, atomic.pattern) == ("", 1, 0, 0, None)
    assert result.uncounted == 1 and result.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum"] == 0


def test_livelocks_are_noticed_with_waits_for_copies(module):
    with pytest.raises(DeadlockError):
        found(module, "spin", 32, [np.zeros(32, np.float32), ints(1)])


def test_an_origin_is_that_of_the_word_which_is_undefined(module):
    assert found(module, "stale", 1, [fasim.empty(8, np.int32), ints(1), 0]) == [("uninit_shared", 28, 29)]
    hazards = module.kernel("half_of_eight").launch(1, 1, [np.zeros(1, np.uint64)], check="all").hazards
    assert [(x.kind, x.first_line, x.word_offsets) for x in hazards] == [("uninit_shared", 33, (4,))]


def test_lanes_that_go_round_syncwarp(module):
    assert found(module, "absent_sync", 32, [ints(32)]) == [("absent_lanes", 36, None)]


def test_the_reason_of_a_late_copy_outlives_its_warp(module):
    [hazard] = module.kernel("late").launch(1, 64, [np.zeros(64, np.float32), np.zeros(64, np.float32)], check="all").hazards
    assert (hazard.first_line, hazard.second_line, hazard.words) == (41, 45, 64)
    assert "committed only after the wait at source.cu:42" in hazard.text


def test_large_undefined_buffers_take_a_bounded_log(module):
    n = 1 << 18
    [hazard] = module.kernel("copy").launch(4, 256, [fasim.empty(n, np.int32), ints(n), n], check="all").hazards
    assert (hazard.kind, hazard.first_line, hazard.lanes) == ("uninit_global", 65, n)
    assert 1 << 15 <= hazard.words < n and "words and more of in (global memory)" in hazard.text


def test_times_begin_anew_before_they_no_longer_fit():
    """What was ordered stays so, what was not is still found, and a copy on its way is not forgotten."""
    block = Block()
    block.words[h.H_NOW // 8] = cells.RESTART + 5
    clocks.whole_cta(block.at)
    from fasim.smem import races

    def access(site, warp, word, flags):
        races.note_execution(block.at, site, warp)
        races.access(block.ctx, block.at, word, cells.make_tag(block.at, site, warp, flags), 1)

    access(1, 0, 0, cells.WRITE)
    cells.restart_clock(block.at)
    clocks.whole_cta(block.at)
    assert block.words[h.H_NOW // 8] < 10
    access(0, 1, 0, 0)
    assert not block.found()
    access(1, 0, 1, cells.WRITE)
    access(0, 1, 1, 0)
    assert block.found() == {(0, 1, 1)}


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_the_log_grows_while_threads_end(module, backend, monkeypatch):
    monkeypatch.setattr(watch, "LOG_CAPACITY", 1 << 8)
    n = 40 if backend == "jit" else 4
    kernel = module.kernel("abandons")
    [hazard] = kernel.launch(1, 32, [np.zeros(128, np.float32), n], dynamic_smem_bytes=512 * n, check="all", backend=backend).hazards
    assert (hazard.kind, hazard.first_line, hazard.words) == ("copy_not_waited", 51, 128 * n)


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_chains_grow_while_copies_arrive(module, backend, monkeypatch):
    monkeypatch.setattr(watch, "EXTRA_CAPACITY", 1 << 5)
    n = 100 if backend == "jit" else 3
    args = [np.zeros(32, np.float32), np.zeros(32, np.float32), n]
    hazards = module.kernel("twice").launch(1, 32, args, dynamic_smem_bytes=128 * n, check="all", backend=backend).hazards
    assert [(x.kind, x.scope, x.first_line, x.second_line, x.words) for x in hazards] == [("WAW", "async", 59, 59, 32 * n)]


def test_all_lines_that_race_are_named_however_often_they_are_unrolled():
    source = """
extern "C" __global__ void k(const int *in, int *out, int n) {
    __shared__ int s[256]; int t = threadIdx.x, a = 0, b = 0;
    for (int i = 0; i < n; i++) {
        #pragma unroll
        for (int j = 0; j < 8; j++) a += s[(t + i * a + j) & 255];      // 6
        #pragma unroll
        for (int j = 0; j < 8; j++) b ^= s[(t + i * b + j) & 255];      // 8
    }
    s[t] = in[t];                                                       // 10
    out[t] = a + b;
}
"""
    kernel = fasim.compile(source).kernel("k")
    groups, pcs = watch.line_groups(kernel.program)
    shared = {kernel.program.source_at(int(pc)).line for pc in pcs}
    assert {6, 8, 10} <= shared and len(pcs) < len(kernel.program.sites) and groups.max() == len(pcs) - 1
    hazards = kernel.launch(1, 256, [ints(256), ints(256), 3], check="race").hazards
    assert {(x.kind, x.first_line, x.second_line) for x in hazards} == {("WAR", 6, 10), ("WAR", 8, 10)}


def test_undefined_bytes_copied_by_an_unrolled_loop_are_known_by_its_line():
    source = r"""
extern "C" __global__ void k(const float4 *in, float4 *out) {
    __shared__ float4 s[4 * 32]; unsigned t = threadIdx.x;
    #pragma unroll
    for (int i = 0; i < 4; i++)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(&s[32 * i + t])),
                     "l"(in + 32 * i + t));
    asm volatile("cp.async.wait_all;" ::: "memory");
    out[t] = s[96 + t];                                                 // 9
}
"""
    kernel = fasim.compile(source).kernel("k")
    hazards = kernel.launch(1, 32, [fasim.empty(512), np.zeros(128, np.float32)], check="all").hazards
    assert [(x.kind, x.first_line, x.second_line, x.words) for x in hazards] == [("uninit_global", 6, 9, 512)]
    assert "of in (global memory)" in hazards[0].text
