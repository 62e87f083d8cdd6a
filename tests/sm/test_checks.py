"""Counting and checking as options of a launch: what is on, what it costs nothing to leave out, and that results never depend on it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import fasim
from fasim import kernels
from fasim.errors import ExecutionError, UsageError
from fasim.sm import watch

SOURCE = r"""
extern "C" __global__ void reverse(const int *in, int *out, int wait) {
    __shared__ int s[64];
    unsigned t = threadIdx.x;
    s[t] = in[t];                                   // 5
    if (wait) __syncthreads();
    out[t] = s[63u - t];                            // 7
}
extern "C" __global__ void overrun(const int *in, int *out) {
    __shared__ int s[64];
    unsigned t = threadIdx.x;
    s[t] = in[t];                                   // 12
    out[t] = s[63u - t];                            // 13
    if (t == 63u) out[t + 1000000u] = 1;            // 14
}
extern "C" __global__ void through_global(const float *in, float *out) { out[threadIdx.x] = in[threadIdx.x] + 1.0f; }
extern "C" __global__ void first_half(float *out) { if (threadIdx.x < 16) out[threadIdx.x] = 1.0f; }
extern "C" __global__ void copy_along(const unsigned *in, unsigned *out) {
    __shared__ unsigned s[64];
    unsigned t = threadIdx.x;
    if (t < 16) s[t] = in[t];
    __syncwarp();
    unsigned v = s[t];                              // 23
    s[t + 32u] = v;
    __syncwarp();
    unsigned w = s[t + 32u];
    out[t] = t < 16 ? w : 0u;                       // selected away
    if (in[0] == 77u) out[t] = w;                   // 28
}
extern "C" __global__ void many(const int *in, int *out, int n) {
    extern __shared__ int d[];
    int v = 0;
    for (int i = threadIdx.x; i < n; i += blockDim.x) d[i] = i;          // 33
    for (int i = threadIdx.x; i < n; i += blockDim.x) v += d[n - 1 - i]; // 34
    out[blockIdx.x * blockDim.x + threadIdx.x] = v;
}
"""


@pytest.fixture(scope="module")
def module():
    return fasim.compile(SOURCE)


def summary(result):
    return [dataclasses.replace(h, text="") for h in result.hazards], list(result.shared_accesses), result.totals


def reverse(module, wait, **options):
    out = np.zeros(64, np.int32)
    return module.kernel("reverse").launch(1, 64, [np.arange(64, dtype=np.int32), out, wait], **options), out


def test_counting_is_on_and_checking_off_by_default(module):
    result, _ = reverse(module, 0)
    assert [(a.line, a.kind, a.op, a.executions, a.wavefronts, a.conflicts) for a in result.shared_accesses] == [
        (5, "st", "STS.32", 2, 2, 0),
        (7, "ld", "LDS.32", 2, 2, 0),
    ]
    assert not result.hazards and result.totals["l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"] == 2


def test_counting_can_be_left_out(module):
    result, out = reverse(module, 1, count=False)
    assert not result.shared_accesses and not result.totals and result.shared_instructions == 4
    assert out.tolist() == list(range(64))[::-1]


@pytest.mark.parametrize("check, kinds", [("all", ["RAW"]), ("race", ["RAW"]), ("sync", []), (" race, sync", ["RAW"]), ("", [])])
def test_which_checks(module, check, kinds):
    assert [h.kind for h in reverse(module, 0, check=check)[0].hazards] == kinds


@pytest.mark.parametrize("check", ["races", "all,race", "race;sync", ","])
def test_unknown_checks_are_named(module, check):
    with pytest.raises(UsageError, match="race, init, sync"):
        reverse(module, 0, check=check)


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_both_machines_find_the_same(module, backend):
    result, _ = reverse(module, 0, check="all", backend=backend)
    [hazard] = result.hazards
    assert (hazard.kind, hazard.first_line, hazard.second_line, hazard.words, hazard.severity) == ("RAW", 5, 7, 64, "error")
    assert hazard.word_offsets == tuple(range(0, 256, 4)) and not hazard.benign
    assert "put __syncthreads() between" in hazard.text


def test_what_was_found_before_an_error_is_not_lost(module):
    with pytest.raises(ExecutionError) as caught:
        module.kernel("overrun").launch(1, 64, [np.arange(64, dtype=np.int32), np.zeros(64, np.int32)], check="all")
    assert caught.value.where.line == 14
    assert [(h.kind, h.first_line, h.second_line) for h in caught.value.hazards] == [("RAW", 12, 13)]


def test_uninitialised_buffers_are_known_until_they_are_written(module):
    buffer = fasim.empty(32, np.float32)
    use, out = module.kernel("through_global"), np.zeros(32, np.float32)
    [hazard] = use.launch(1, 32, [buffer, out], check="all").hazards
    assert (hazard.kind, hazard.scope, hazard.words, hazard.lanes, hazard.space) == ("uninit_global", "output", 32, 32, "global")
    module.kernel("first_half").launch(1, 32, [buffer], check="all")
    [hazard] = use.launch(1, 32, [buffer, out], check="all").hazards
    assert (hazard.words, hazard.first_lanes[0]) == (16, 16)
    buffer[16:] = 0  # by the host
    assert not use.launch(1, 32, [buffer, out], check="all").hazards
    again = fasim.empty(32, np.float32)
    module.kernel("first_half").launch(1, 32, [again])  # unchecked: nobody knows what it wrote
    assert not use.launch(1, 32, [again, out], check="all").hazards


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize("used", [False, True])
def test_undefined_values_may_be_copied_but_not_used(module, backend, used):
    given = np.zeros(32, np.uint32)
    given[0] = 77 if used else 0
    hazards = module.kernel("copy_along").launch(1, 32, [given, np.zeros(32, np.uint32)], check="all", backend=backend).hazards
    wanted = [("uninit_shared", 23, 28, "output", 16, 16)] if used else []
    assert [(h.kind, h.first_line, h.second_line, h.scope, h.words, h.lanes) for h in hazards] == wanted


def test_findings_and_chains_grow_beyond_their_first_room(module, monkeypatch):
    monkeypatch.setattr(watch, "LOG_CAPACITY", 1 << 12)
    monkeypatch.setattr(watch, "EXTRA_CAPACITY", 1 << 11)
    n = 12000
    kernel, out = module.kernel("many"), np.zeros(4 * 256, np.int32)
    results = [
        kernel.launch(4, 256, [np.zeros(1, np.int32), out, n], dynamic_smem_bytes=4 * n, check="all", workers=workers) for workers in (1, 2)
    ]
    for result in results:
        [hazard] = result.hazards
        assert (hazard.kind, hazard.first_line, hazard.second_line, hazard.ctaid) == ("RAW", 33, 34, (0, 0, 0))
        # every thread reads in its mirror's place: the words that a thread wrote itself are no race, and here there are none
        assert hazard.words == n
    assert summary(results[0]) == summary(results[1])


@pytest.mark.parametrize("name", kernels.names())
def test_checks_change_no_result_and_the_collection_is_clean(name):
    spec = kernels.load(name)
    options = {key: value for key, value in {"n": 128, "heads": 1, "batch": 1}.items() if key in {o.name for o in spec.options}}
    if name in ("fa_v20", "attention_naive"):
        options["n"] = 64
    kernel, launch = fasim.compile(spec.path, defines=spec.defines(options)).kernel(spec.entry), spec.launch(options)
    outputs = []
    for keywords in ({"count": False}, {"check": "all", "workers": 1}, {"check": "all", "workers": 2}):
        values = [argument.value for argument in spec.inputs(options)]
        result = kernel.launch(launch.grid, launch.block, values, dynamic_smem_bytes=launch.dynamic_smem_bytes, **keywords)
        assert [h.text for h in result.hazards] == []
        outputs.append([np.asarray(v).tobytes() for v in values if isinstance(v, np.ndarray)])
    assert outputs[0] == outputs[1] == outputs[2]


UNDEFINED = r"""
#include <cstdio>
extern "C" __global__ void sum(int *out) {
    __shared__ int s[64];
    int x = s[threadIdx.x];                         // 5
    int y = s[threadIdx.x + 32];                    // 6
    out[threadIdx.x] = x + y;                       // 7
}
extern "C" __global__ void show(int n) {
    __shared__ int s[32]; if (threadIdx.x < n) s[threadIdx.x] = 1; __syncwarp();
    int x = s[threadIdx.x];                         // 11
    if (threadIdx.x == 3) printf("%d\n", x);        // 12
}
extern "C" __global__ void then_fails(int *out) {
    __shared__ int s[64];
    s[threadIdx.x] = 1;
    out[threadIdx.x + 1000000 * (s[63 - threadIdx.x] != 1)] = 1;
}
extern "C" __global__ void one_line(int *out) {
    __shared__ int s[32];
    int t = threadIdx.x;
    int v = t < 16 ? __shfl_down_sync(0xffffu, t, 8) : 0; int w = s[t]; out[t] = (t < 8 ? v : 0) + w;  // 22
}
"""


@pytest.mark.parametrize("backend", ["jit", "reference"])
def test_every_part_of_an_undefined_value_is_named(backend):
    kernel = fasim.compile(UNDEFINED).kernel("sum")
    hazards = kernel.launch(1, 32, [np.zeros(32, np.int32)], check="all", backend=backend).hazards
    assert [(h.kind, h.first_line, h.second_line, h.words) for h in hazards] == [
        ("uninit_shared", 5, 7, 32),
        ("uninit_shared", 6, 7, 32),
    ]


def test_printing_is_an_output():
    printed = []
    result = fasim.compile(UNDEFINED).kernel("show").launch(1, 32, [2], check="all", output=printed.append)
    assert [(h.kind, h.first_line, h.second_line, h.scope) for h in result.hazards] == [("uninit_shared", 11, 12, "output")]
    assert printed == ["-1\n"]


def test_after_an_error_nothing_is_called_uninitialised_that_might_still_have_been_written():
    with pytest.raises(ExecutionError) as caught:
        fasim.compile(UNDEFINED).kernel("then_fails").launch(1, 64, [np.zeros(64, np.int32)], check="all")
    assert not caught.value.hazards


def test_a_harmless_undefined_value_on_the_line_of_a_harmful_one():
    hazards = fasim.compile(UNDEFINED).kernel("one_line").launch(1, 32, [np.zeros(32, np.int32)], check="all").hazards
    assert [(h.kind, h.words) for h in hazards] == [("uninit_shared", 32)]


MASKS = r"""
extern "C" __global__ void too_many(int *out) { out[threadIdx.x] = __ballot_sync(0xffffu, 1); }                                      // 2
extern "C" __global__ void outside(int *out) {
    int v = 0;
    if (threadIdx.x < 16) v = __shfl_sync(0xffffu, (int)threadIdx.x, 20);                                                            // 5
    else v = __shfl_sync(0xffff0000u, (int)threadIdx.x, 20);                                                                         // 6
    out[threadIdx.x] = v;                                                                                                            // 7
}
extern "C" __global__ void tiles(int *out) { unsigned m = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
    out[threadIdx.x] = __shfl_xor_sync(m, (int)threadIdx.x, 8); }
extern "C" __global__ void tiles_crossed(int *out) { unsigned m = threadIdx.x < 16 ? 0xffffu : 0xffff0000u;
    out[threadIdx.x] = __shfl_xor_sync(m, (int)threadIdx.x, 16); }                                                                   // 12
extern "C" __global__ void sync_without_me(int *out) { __syncwarp(threadIdx.x < 4 ? 0xfu : 0xfffffff0u & ~(1u << 9)); out[0] = 1; }   // 13
"""


@pytest.mark.parametrize("backend", ["jit", "reference"])
@pytest.mark.parametrize(
    "entry, found",
    [
        ("too_many", [("unnamed_lanes", 2, 16)]),
        ("outside", [("uninit_lane", 5, 16)]),
        ("tiles", []),
        ("tiles_crossed", [("uninit_lane", 12, 32)]),
        ("sync_without_me", [("unnamed_lanes", 13, 1)]),
    ],
)
def test_masks(entry, found, backend):
    hazards = fasim.compile(MASKS).kernel(entry).launch(1, 32, [np.zeros(32, np.int32)], check="all", backend=backend).hazards
    assert [(h.kind, h.first_line, h.lanes) for h in hazards] == found


TAIL = """
extern "C" __global__ void shift(const float* in, float* out, int n) {
    __shared__ float tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) tile[threadIdx.x] = in[i];           // 5
    out[i] = tile[(threadIdx.x + 1) % 128];         // 6
}
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("ctas, n, words", [(2, 200, 56), (2, 256, 0), (5, 500, 128), (3, 128, 128)])
def test_a_race_in_one_cta_does_not_hide_what_another_never_wrote(ctas, n, words, workers):
    kernel = fasim.compile(TAIL).kernel("shift")
    given, out = np.zeros(ctas * 128, np.float32), np.zeros(ctas * 128, np.float32)
    hazards = kernel.launch(ctas, 128, [given, out, n], check="all", workers=workers).hazards
    found = {h.kind: h for h in hazards}
    assert (found["RAW"].first_line, found["RAW"].second_line, found["RAW"].words) == (5, 6, 128)
    undefined = found.get("uninit_shared")
    assert (undefined.words if undefined else 0) == words
    if undefined:
        assert (undefined.lanes, undefined.ctaid[0]) == (ctas * 128 - n, n // 128)
