"""Predictions against what an H200 did with the same machine code: times, instructions, sectors of the L2."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fasim
from fasim.arch.cards import card
from fasim.errors import FasimError
from fasim.gpu.recording_file import load
from fasim.sm.timing.kernel import timed_kernel
from fasim.sm.timing.paths import Walk, site_numbers
from fasim.sm.timing.predict import Prediction, predict
from fasim.sm.timing.sample import Sampler
from fasim.sm.timing.state import LONG_SCOREBOARD, SELECTED, SHORT_SCOREBOARD

RECORDINGS = Path(__file__).parents[3] / "recordings" / "h200"


def recorded(name: str):
    return load(RECORDINGS / name.split("-")[0] / f"{name}.zip")


def prediction(name: str, **options) -> tuple[Prediction, float]:
    """The prediction of a recorded launch, and the measured time in seconds."""
    recording = recorded(name)
    kernel = recording.load_kernel("sass")
    args = [value.value for value in recording.make_arguments(kernel)]
    found = predict(kernel, recording.grid, recording.block, args, card("h200"), dynamic_smem_bytes=recording.dynamic_smem_bytes, **options)
    return found, recording.timings["warm"].median_us * 1e-6


#: launches and how far from the truth the model may be; all of them are in the table that recordings/predict.py prints
TIMED = {
    **{f"fa_v21-n1024-batch4-heads8-head_dim64-bc{bc}-layout{layout}-causal{causal}": 0.08
       for bc in (32, 64) for layout in ("linear", "padded", "swizzled") for causal in ("false", "true")},
    **{f"fa_v21-n1024-batch1-heads1-head_dim64-bc{bc}-layoutswizzled-causalfalse": 0.08 for bc in (32, 64)},
    "fa_v21-n1024-batch4-heads8-head_dim128-bc64-layoutswizzled-causalfalse": 0.12,
    "fa_v20-n200-batch1-heads1-head_dim64-causalfalse": 0.05,
    "gemm_mma-m128-n128-k256-stages3": 0.08,
    "gemm_mma-m1024-n4096-k4096-stages4": 0.10,
    "gemm_tiled-m256-n256-k256": 0.10,
    "softmax_rows-rows4-columns2000": 0.08,
    "transpose-rows256-columns256-layoutlinear": 0.10,
    "transpose-rows256-columns256-layoutpadded": 0.10,
    "histogram-n10000-spread4": 0.10,
    "axpy-n1000": 0.10,
}  # fmt: skip


@pytest.mark.parametrize(("name", "limit"), TIMED.items())
def test_time(name, limit):
    found, measured = prediction(name)
    assert abs(found.seconds / measured - 1) <= limit
    assert found.work_error < 1e-9 and 0 <= found.stagger_spread < 0.15


def test_bank_conflicts_cost_what_they_do():
    """The linear layout over the padded one, B=4 H=8 N=1024 Bc=32."""
    names = [f"fa_v21-n1024-batch4-heads8-head_dim64-bc32-layout{layout}-causalfalse" for layout in ("linear", "padded")]
    (linear, linear_measured), (padded, padded_measured) = (prediction(name) for name in names)
    assert linear.seconds / padded.seconds == pytest.approx(linear_measured / padded_measured, rel=0.08)


WALKED = (
    "fa_v21-n200-batch1-heads1-head_dim64-bc32-layoutpadded-causaltrue",
    "fa_v21-n128-batch1-heads8-head_dim64-bc64-layoutswizzled-causalfalse",
    "fa_v20-n33-batch1-heads1-head_dim64-causaltrue",
    "attention_naive-n33-batch1-heads1-head_dim64-causaltrue",
    "gemm_mma-m100-n72-k104-stages3",
    "gemm_tiled-m70-n50-k90",
    "histogram-n10000-spread256",
    "reduce-n5000",
    "softmax_rows-rows37-columns300",
    "transpose-rows100-columns70-layoutpadded",
)


@pytest.mark.parametrize("name", WALKED)
def test_paths_have_the_instructions_that_ncu_counts(name):
    recording = recorded(name)
    kernel = timed_kernel(recording.load_kernel("sass"), card("h200"))
    args = [value.value for value in recording.make_arguments(kernel.skeleton)]
    run, _ = kernel.skeleton.prepare(recording.grid, recording.block, args, dynamic_smem_bytes=recording.dynamic_smem_bytes)
    sampler = Sampler(Walk(run, site_numbers(run, kernel.instructions)), kernel.records)
    for cta in range(run.shape.ctas):
        sampler.place(cta)
    assert sum(sampler.work.values()) == recording.profile.counters["inst_executed"]


#: of v2.1, N=1024, head dimension, Bc and layout: part of the sectors of spilled registers that the L1 has, by ncu on an H200, L2 warm
SPILLS = {
    (128, 32, "padded"): 0.999,
    (128, 32, "swizzled"): 1.000,
    (128, 64, "padded"): 0.034,
    (128, 64, "swizzled"): 0.496,
    (128, 128, "padded"): 0.293,
    (128, 128, "swizzled"): 0.595,
    (64, 128, "padded"): 0.974,
}


@pytest.mark.parametrize(("head_dim", "bc", "layout"), SPILLS)
def test_spills_that_the_l1_keeps(head_dim, bc, layout):
    """Lines that are read for the last time (LDL.LU) make room, so that more of the others stay than with LRU alone."""
    found, _ = prediction(f"fa_v21-n1024-batch4-heads8-head_dim{head_dim}-bc{bc}-layout{layout}-causalfalse")
    assert found.sm.local_hits / found.sm.local_sectors == pytest.approx(SPILLS[head_dim, bc, layout], abs=0.03)


KERNEL = r"""
extern "C" __global__ void chain(float *out, const float *in, int n) {
  __shared__ float s[128];
  s[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  float x = s[(threadIdx.x * STRIDE) & 127];
  for (int i = 0; i < n; i++) x = x * 0.5f + s[((int)x + i) & 127];
  out[blockIdx.x * 128 + threadIdx.x] = x;
}
"""


def chain(ctas: int, n: int, stride: int = 1, **options) -> Prediction:
    kernel = fasim.compile(KERNEL, arch="sm_90", defines={"STRIDE": stride}).kernel()
    data = np.ones(128 * ctas, np.float32)
    return predict(kernel, ctas, 128, [np.zeros_like(data), data, n], card("h200"), **options)


def test_more_work_takes_longer():
    times = [chain(132, n).cycles for n in (8, 32, 128)]
    assert times[0] < times[1] < times[2]
    # a loop takes so long a round
    assert (times[2] - times[1]) / 96 == pytest.approx((times[1] - times[0]) / 24, rel=0.1)


def test_waves():
    """Twice as many CTAs as fit take about twice as long, one of them more a wave more."""
    one = chain(1, 64)
    full = one.occupancy.ctas * 132
    a, b, c = chain(full, 64), chain(2 * full, 64), chain(full + 1, 64)
    assert 1.6 < b.cycles / a.cycles < 2.3
    assert a.cycles < c.cycles < b.cycles


def test_extrapolation_is_close():
    """What a budget leaves out is inferred within a few percent."""
    whole, part = chain(132 * 16 * 12, 64), chain(132 * 16 * 12, 64, budget=60_000)
    assert part.sm.instructions < whole.sm.instructions
    assert part.cycles == pytest.approx(whole.cycles, rel=0.05)


def test_arguments_stay():
    kernel = fasim.compile(KERNEL, arch="sm_90", defines={"STRIDE": 1}).kernel()
    out, data = np.full(128, 7, np.float32), np.ones(128, np.float32)
    predict(kernel, 1, 128, [out, data, 4], card("h200"))
    assert (out == 7).all() and (data == 1).all()


def test_stalls_are_where_the_loads_are():
    found = chain(132, 64)
    texts = [ins.line.text for ins in found.kernel.instructions]
    assert found.sm.stalls[:, SELECTED].sum() == found.sm.instructions
    # the loop waits for its load from shared memory, the beginning for the one from global memory
    assert found.sm.stalls[:, SHORT_SCOREBOARD].sum() > found.sm.stalls[:, LONG_SCOREBOARD].sum() > 0
    assert any("LDS" in text for text in texts)


def test_ctas_that_wait_for_each_other_are_refused():
    source = r"""
extern "C" __global__ void wait(volatile int *flag) {
  if (blockIdx.x == 0) { while (flag[0] == 0) ; }
  else flag[0] = 1;
}
"""
    kernel = fasim.compile(source, arch="sm_90").kernel()
    with pytest.raises(FasimError, match="timing model"):
        predict(kernel, 2, 32, [np.zeros(1, np.int32)], card("h200"))
