"""Records of predictions: sums, what bounds a launch, lines and steps, the roofline, how sure it is."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fasim
from fasim.arch.cards import Card, card
from fasim.errors import UsageError
from fasim.report.measured import Timing
from fasim.report.timing import LAUNCH, Accuracy, Resource, accuracy, bound, predict_time
from fasim.report.timing_bounds import warp_flops
from fasim.report.timing_spans import ISSUE, SUB_PARTITIONS, pipe_spans, warp_issues
from fasim.sass.listing import SassLine
from fasim.sass.syntax import parse
from fasim.sm.timing.classes import PIPES
from fasim.sm.timing.state import STALLS
from tests.report.timed import LAUNCHES, kernel, launch, prediction


@pytest.mark.parametrize("name", LAUNCHES)
def test_parts_add_up(name):
    found, row = prediction(name), launch(name)
    assert sum(row.stalls.values()) == pytest.approx(100)
    assert set(row.stalls) <= set(STALLS) and list(row.stalls.values()) == sorted(row.stalls.values(), reverse=True)
    assert sum(line.percent for line in row.lines) == pytest.approx(100)
    assert sum(line.executions for line in row.lines) == found.sm.instructions == row.sampled.warp_instructions
    for line in row.lines:
        assert sum(line.stalls.values()) == pytest.approx(line.percent)
    assert row.time_us == pytest.approx(row.launch_us + row.cycles / row.clock_mhz)
    assert [each.percent for each in row.resources] == sorted((each.percent for each in row.resources), reverse=True)
    assert all(0 < each.percent <= 100.5 for each in row.resources)
    assert row.sampled.ctas <= row.sampled.sm_ctas <= row.sampled.grid_ctas == LAUNCHES[name][0]


# what each kernel was written to wait for, its busiest resource, and the line where most is lost
WAITS = [
    ("multiply", None, ("issue slots", "FMA pipe"), "for (int i = 0; i < n; i++) {"),
    ("chase", "long_scoreboard", ("issue slots", "FMA pipe"), "for (int k = 0; k < n; k++) i = p[i];"),
    ("collide", "short_scoreboard", ("load-store unit",), "for (int k = 0; k < n; k++) sum += tile"),
    ("product", None, ("tensor pipe",), "asm volatile("),
]


@pytest.mark.parametrize(("name", "reason", "busiest", "code"), WAITS)
def test_what_it_waits_for(name, reason, busiest, code):
    row = launch(name)
    waits = [each for each in row.stalls if each not in ("selected", "not_selected")]
    if reason is not None:
        assert waits[0] == reason
    assert row.resources[0].name in busiest
    assert row.lines[0].code.startswith(code)


@pytest.mark.parametrize(
    ("percents", "stalls", "launch_part", "expected"),
    [
        ([("ALU pipe", 71.0), ("L2", 10.0)], {"wait": 50.0}, 0.1, "ALU pipe"),
        ([("ALU pipe", 59.0)], {"selected": 60.0, "not_selected": 25.0, "barrier": 15.0}, 0.1, "latency (barrier)"),
        ([("ALU pipe", 99.0)], {"wait": 50.0}, 0.6, LAUNCH),
        ([], {"selected": 100.0}, 0.0, "latency"),
    ],
)
def test_bound(percents, stalls, launch_part, expected):
    assert bound([Resource(*each) for each in percents], stalls, launch_part) == expected


def test_steps_are_sums_of_lines():
    row = launch("multiply")
    assert {step.step for step in row.steps} == {"", "LOOP", "STORE"}
    assert row.steps[0].step == "LOOP"
    for step in row.steps:
        lines = [line for line in row.lines if line.step == step.step]
        assert step.percent == pytest.approx(sum(line.percent for line in lines))
        assert step.executions == sum(line.executions for line in lines)
        assert sum(step.stalls.values()) == pytest.approx(step.percent)
    assert launch("chase").steps == []


FLOPS = [
    ("FFMA R1, R2, R3, R4", 64),
    ("FADD R1, R2, R3", 32),
    ("HFMA2 R1, R2, R3, R4", 128),
    ("HFMA2 R1, -RZ, RZ, 0, 0", 0),
    ("DFMA R2, R4, R6, R8", 64),
    ("HMMA.16816.F32 R4, R8, R12, R4", 4096),
    ("HMMA.1688.F32.TF32 R4, R8, R12, R4", 2048),
    ("IMMA.16832.S8.S8 R4, R8, R12, R4", 0),
    ("IMAD R1, R2, R3, R4", 0),
    ("MUFU.EX2 R1, R2", 0),
]


@pytest.mark.parametrize(("text", "expected"), FLOPS, ids=[text for text, _ in FLOPS])
def test_operations_of_an_instruction(text, expected):
    assert warp_flops(parse(SassLine(0, text))) == expected


def test_roofline():
    matrix = launch("product").roofline
    assert matrix.flops >= 200 * 4 * 4096  # a few additions come on top
    assert matrix.flops < 200 * 4 * 4096 + 128 * 16
    # a quarter of what an H200's data sheet says of dense f16 with wgmma is less than mma.sync reaches, and that less than all of it
    assert matrix.roofs[0].name == "tensor pipe" and 250 < matrix.roofs[0].value < 990
    plain = launch("multiply", buffer_bytes=2048)
    assert [roof.name for roof in plain.roofline.roofs] == ["FMA pipe", "L2", "DRAM"]
    clock = prediction("multiply").clock_mhz
    assert plain.roofline.roofs[0].value == pytest.approx(132 * 128 * 2 * clock * 1e-6)
    assert plain.flops == plain.roofline.flops >= 512 * 256 * 8 and plain.from_code
    assert plain.roofline.flops_a_dram_byte == plain.flops / 2048
    assert plain.tflops == pytest.approx(plain.flops / plain.time_us * 1e-6)
    given = launch("multiply", flops=1000)
    assert (given.flops, given.from_code, given.roofline.flops_a_dram_byte) == (1000, False, None)
    assert launch("chase").roofline.percent is None


def with_accuracy(**values: float) -> Card:
    bare = {key: value for key, value in card("h200").values.items() if not key.startswith("accuracy.")}
    return replace(card("h200"), values=bare | {f"accuracy.{name}": value for name, value in values.items()})


ALL: dict[str, float] = {"mean_percent": 4.5, "worst_percent": 12.0, "launches": 300}
OF_V21: dict[str, float] = {"fa_v21_mean_percent": 2.0}
V21, AXPY = ("fa_v21", "/k/10_fa_v21.cu.ptx"), ("axpy", "01_axpy.cu")
ACCURACY: list[tuple[dict[str, float], tuple[str, str], int, Accuracy | None]] = [
    (ALL, V21, 100, Accuracy(4.5, 12.0, 300)),
    (ALL | OF_V21, V21, 100, Accuracy(2.0, None, 0)),
    (ALL | OF_V21, AXPY, 100, Accuracy(4.5, 12.0, 300)),
    (ALL | OF_V21 | {"small_mean_percent": 7.0, "small_launches": 8}, V21, 8, Accuracy(7.0, None, 8)),
    (ALL | {"small_mean_percent": 7.0}, V21, 9, Accuracy(4.5, 12.0, 300)),
    (ALL, ("mine", "mine.cu"), 100, Accuracy(4.5, 12.0, 300)),
    (ALL | {"small_mean_percent": 7.0, "unseen_mean_percent": 9.0}, ("mine", "mine.cu"), 8, Accuracy(9.0, None, 0)),
    (ALL | {"others_mean_percent": 7.0, "unseen_mean_percent": 9.0}, ("axpy", "axpy.cu"), 8, Accuracy(9.0, None, 0)),
    (ALL | {"others_mean_percent": 7.0, "unseen_mean_percent": 9.0}, AXPY, 8, Accuracy(7.0, None, 0)),
]


@pytest.mark.parametrize(("values", "name", "ctas", "expected"), ACCURACY)
def test_accuracy(values, name, ctas, expected):
    assert accuracy(with_accuracy(**values), name[0], ctas, name[1]) == expected


def test_accuracy_that_nobody_measured():
    assert accuracy(with_accuracy(), "k", 1) is None


def test_measured():
    row = launch("product", measured=Timing(5.0, 4.5, 5.5, 4.0, 6.0, 5, 20, 1, sm_clock_mhz=1900.0))
    assert row.measured is not None
    assert row.measured.error_percent == pytest.approx(100 * (row.time_us / 5.0 - 1))
    assert launch("product").measured is None


# --- what happened when ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LAUNCHES)
def test_spans_of_a_pipe_do_not_overlap_and_sum_to_its_busy_cycles(name):
    found = prediction(name)
    spans = list(pipe_spans(found))
    by_track: dict[tuple[int, str], list[Any]] = {}
    for span in spans:
        by_track.setdefault((span.sub_partition, span.pipe), []).append(span)
    for (sub, pipe), own in by_track.items():
        assert all(a.end <= b.start for a, b in itertools.pairwise(own)), pipe
        if pipe in ("alu", "uniform", "fp64", "xu", "tensor", "adu"):
            assert sum(span.end - span.start for span in own) == pytest.approx(found.sm.busy[sub, PIPES.index(pipe)])
    assert sum(len(own) for (_, pipe), own in by_track.items() if pipe == ISSUE) == found.sm.instructions


@pytest.mark.parametrize("name", LAUNCHES)
def test_issues_of_a_warp_follow_each_other(name):
    found = prediction(name)
    by_warp: dict[int, list[Any]] = {}
    for issue in warp_issues(found):
        by_warp.setdefault(issue.warp, []).append(issue)
        assert issue.sub_partition == issue.warp % SUB_PARTITIONS
    assert sum(map(len, by_warp.values())) == found.sm.instructions == len(found.sm.events)
    for own in by_warp.values():
        assert all(a.start < a.end <= b.start for a, b in itertools.pairwise(own))


# --- the Python interface --------------------------------------------------------------------------------------------------------


def test_predict_time():
    grid, block, args = LAUNCHES["product"]
    row = fasim.predict_time(kernel("product"), grid, block, [np.copy(args[0]), args[1]], gpu="h200")
    assert fasim.predict_time is predict_time
    assert (row.time_us, row.cycles, row.lines) == (launch("product").time_us, launch("product").cycles, launch("product").lines)
    assert row.roofline.dram_bytes == 512 and row.gpu == "h200"
    with pytest.raises(UsageError, match="needs machine code for sm_90, this is for sm_80"):
        other = fasim.compile("__global__ void k(int* p) { p[0] = 1; }\n", arch="sm_80").kernel()
        fasim.predict_time(other, 1, 32, [np.zeros(1, np.int32)])
    with pytest.raises(UsageError, match=r"no timing data of 'gtx1080'; known: .*h200"):
        fasim.predict_time(kernel("product"), grid, block, args, gpu="gtx1080")
