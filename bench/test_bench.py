"""The same measurements for pytest-benchmark: `python -m pytest bench` (the plain test run does not collect this folder)."""

from __future__ import annotations

import pytest

from bench import micro, processes
from bench.attention import Problem

SHAPES = {"N=256 one head": (256, 1, 1), "N=1024 one head": (1024, 1, 1), "B=4 H=8 N=1024": (1024, 4, 8)}


@pytest.mark.parametrize("shape", SHAPES)
def test_v21(benchmark, shape):
    problem = Problem("fa_v21", *SHAPES[shape])
    benchmark.pedantic(problem.seconds, rounds=3, warmup_rounds=1)
    if problem.options["heads"] == 1:
        problem.check()


def test_attention_naive(benchmark):
    problem = Problem("attention_naive", 256, 1, 1)
    benchmark.pedantic(problem.seconds, rounds=3, warmup_rounds=1)
    problem.check()


def test_whole_process(benchmark):
    benchmark.pedantic(lambda: processes.fasim_run("--n", "256", "--heads", "1"), rounds=3, warmup_rounds=1)


def test_arithmetic(benchmark):
    rate = benchmark.pedantic(lambda: micro.alu_rate(1000, 1), rounds=5, warmup_rounds=1)
    benchmark.extra_info["warp_instructions_a_second"] = rate


@pytest.mark.parametrize("each", [*micro.MMA, *micro.MEMORY], ids=lambda each: each.name)
def test_instruction(benchmark, each):
    micro.seconds_each(each, 1)
    benchmark.extra_info["seconds_each"] = benchmark.pedantic(lambda: micro.seconds_each(each, 50), rounds=5)
