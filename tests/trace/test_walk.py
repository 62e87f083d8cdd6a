"""Positions: one by one or in one go, forward or back, a position is always the same state, and the end is that of a launch."""

from __future__ import annotations

import itertools
import random
import statistics
import time

import numpy as np
import pytest

import fasim
from fasim.errors import DeadlockError, ExecutionError, InstructionLimit, KernelTrap, MemoryAccessError, UsageError
from fasim.isa import machine as m
from tests.trace.launches import FLASH, ONE_CTA, OWN, Launch, of_collection, same_bytes

NAMES = [launch.name for launch in ONE_CTA]


@pytest.mark.parametrize("check", [False, True], ids=["plain", "checked"])
@pytest.mark.parametrize("launch", ONE_CTA, ids=NAMES)
def test_end_is_that_of_a_launch(launch: Launch, check: bool) -> None:
    """Over all CTAs of the grid, where there are more than one."""
    text: list[str] = []
    wanted, found = launch.make(), launch.make()
    result = launch.launch(wanted, output=text.append, check="all" if check else "")
    printed = ""
    for cta in itertools.product(*map(range, reversed(result.grid))):
        stepper = launch.stepper(found, cta=cta[::-1], check=check)
        stepper.go_to_end()
        printed += stepper.output
        assert stepper.position == stepper.end
    assert same_bytes(found, wanted) and printed == "".join(text)
    if check and result.grid == (1, 1, 1):
        assert stepper.state.hazards == list(result.hazards)


@pytest.mark.parametrize("launch", [each for each in ONE_CTA if each.name != "many_races"], ids=lambda each: each.name)
def test_a_position_is_one_state(launch: Launch) -> None:
    args = launch.make()
    stepper = launch.stepper(args, interval=64)
    first, begin = stepper.digest(), [a.tobytes() for a in args if isinstance(a, np.ndarray)]
    known, random_ = {0: first}, random.Random(1)
    stepper.go_to_end()
    end = stepper.end
    assert end is not None
    known[end] = stepper.digest()
    far = range(max(0, end - 3000), end) if end > 5000 else range(end)
    for position in [*random_.sample(far, min(12, len(far))), 0, end, 0, end]:
        stepper.go_to(position)
        assert stepper.position == position
        assert known.setdefault(position, stepper.digest()) == stepper.digest(), position
    near = [position for position in known if position < end]
    for position in near[:4]:  # come from before it, by single steps
        stepper.go_to(max(position - 5, 0))
        while stepper.position < position:
            stepper.step()
        assert known[position] == stepper.digest(), position
        stepper.step()
        stepper.step(-1)
        assert known[position] == stepper.digest(), position
    stepper.go_to(0)
    assert [a.tobytes() for a in args if isinstance(a, np.ndarray)] == begin
    assert (stepper.output, stepper.digest()) == ("", first)


def test_one_instruction_at_a_time() -> None:
    """Also where instructions on registers follow each other, which the machine executes in one go."""
    stepper = FLASH.stepper(check=False)
    program = FLASH.kernel().program
    runs = program.code[:, m.AT_RUN // 4]
    before = stepper.walker.state.counts
    inside = 0
    for _ in range(300):
        following = stepper.state.next
        stepper.step()
        after = stepper.walker.state.counts
        changed = np.flatnonzero(after != before)
        assert changed.tolist() == [following.pc] and after[following.pc] == before[following.pc] + 1
        inside += runs[following.pc] > 1
        before = after
    assert inside > 100


def test_positions_count_warp_instructions() -> None:
    stepper = FLASH.stepper()
    stepper.go_to_end()
    result = FLASH.launch(FLASH.make())
    inserted = sum(int(stepper.walker.state.counts[pc]) for pc, source in enumerate(FLASH.kernel().program.source) if source is None)
    assert stepper.end == result.warp_instructions + inserted


def test_fast_enough_to_hold_a_key_down() -> None:
    FLASH.stepper()
    start = time.perf_counter()
    stepper = FLASH.stepper()
    assert stepper.state.next is not None and time.perf_counter() - start < 3
    stepper.go_to(8000)
    for count in (-1, 1):
        seconds = []
        for _ in range(30):
            start = time.perf_counter()
            stepper.step(count)
            assert stepper.event() is not None and stepper.state.registers(0)
            seconds.append(time.perf_counter() - start)
        assert statistics.median(seconds) < 0.05


# --- what a kernel prints, and where it fails ---------------------------------------------------------------------------------------


def test_printed_text_belongs_to_positions() -> None:
    launch = OWN["prints"]
    text: list[str] = []
    launch.launch(launch.make(), output=text.append)
    stepper = launch.stepper()
    seen = {0: ""}
    while stepper.state.next is not None:
        stepper.step()
        seen[stepper.position] = stepper.output
        event = stepper.event()
        assert event is not None and seen[stepper.position] == seen[stepper.position - 1] + event.printed
    assert stepper.output == "".join(text) != ""
    for position in random.Random(2).sample(sorted(seen), 20):
        stepper.go_to(position)
        assert stepper.output == seen[position]


FAILING = {"overrun": MemoryAccessError, "asserts": KernelTrap, "deadlock": DeadlockError}


@pytest.mark.parametrize("name", FAILING)
def test_the_error_is_that_of_a_launch(name: str) -> None:
    launch = OWN[name]
    wanted, found = launch.make(), launch.make()
    with pytest.raises(FAILING[name]) as raised:
        launch.launch(wanted, check="all")
    stepper = launch.stepper(found)
    begin = stepper.digest()
    for _ in range(2):
        with pytest.raises(FAILING[name]) as caught:
            stepper.go_to_end()
        error = caught.value
        assert (str(error), error.where, error.details) == (str(raised.value), raised.value.where, raised.value.details)
        assert list(error.hazards) == list(raised.value.hazards)
        assert same_bytes(found, wanted) and stepper.position == stepper.end and stepper.failure is error
        end = stepper.digest()
        with pytest.raises(FAILING[name]):
            stepper.step()
        with pytest.raises(FAILING[name]):
            stepper.next_line()
        assert stepper.digest() == end
        stepper.step(-3)
        assert stepper.position == stepper.end - 3 and stepper.digest() != end
        for _ in range(3):
            stepper.step()
        assert stepper.digest() == end
        stepper.go_to(0)
        assert stepper.digest() == begin and not found[0].any()


def test_who_waits_in_a_deadlock() -> None:
    stepper = OWN["deadlock"].stepper()
    with pytest.raises(DeadlockError):
        stepper.go_to_end()
    assert stepper.state.next is None
    assert {b.number: (b.arrived, b.expected, b.waiting) for b in stepper.state.barriers()} == {
        1: (32, 64, {0: 0xFFFFFFFF}),
        2: (32, 64, {1: 0xFFFFFFFF}),
    }
    assert [s.state for s in stepper.state.splits(1)] == ["barrier"]


def test_an_instruction_that_fails_comes_next() -> None:
    stepper = OWN["overrun"].stepper()
    with pytest.raises(MemoryAccessError) as caught:
        stepper.go_to_end()
    following = stepper.state.next
    assert following is not None and stepper.places.source(following.pc).line == caught.value.where.line
    assert stepper.event(stepper.position) is None


# --- what grows, and how much is kept -----------------------------------------------------------------------------------------------


def test_a_queue_that_grows() -> None:
    stepper = OWN["many_copies"].stepper(check=False)
    stepper.go_to(150)
    before, capacity = stepper.digest(), stepper.walker.state.capacity
    stepper.go_to_end()
    assert stepper.walker.state.capacity > capacity
    stepper.go_to(150)
    assert stepper.digest() == before


def test_a_log_that_grows() -> None:
    launch = OWN["many_races"]
    stepper = launch.stepper()
    stepper.go_to(500)
    before = stepper.digest()
    stepper.go_to_end()
    checks = stepper.walker.state.checks
    assert checks is not None and checks.log_capacity > 1 << 15
    assert stepper.state.hazards == list(launch.launch(launch.make(), check="all").hazards) != []
    stepper.go_to(500)
    assert stepper.digest() == before


def test_keyframes_are_thinned_out() -> None:
    stepper = FLASH.stepper(interval=16, limit_bytes=1 << 20)
    stepper.go_to(5000)
    at_5000 = stepper.digest()
    stepper.go_to_end()
    end, history = stepper.digest(), stepper.walker.history
    assert history.interval > 16 and history.size_bytes <= 1 << 20 and len(history.frames) < 10136 / 16
    for position, digest in ((5000, at_5000), (10**9, end), (5000, at_5000)):
        stepper.go_to(position)
        assert stepper.digest() == digest


def test_watching_a_long_way() -> None:
    stepper, seen = FLASH.stepper(), []

    def watch(position: int) -> bool:
        seen.append(position)
        return position < 2000

    stepper.go_to_end(watch)
    assert seen == list(range(256, 2049, 256)) and stepper.position == 2048 and stepper.end is None


def test_what_does_not_end() -> None:
    stepper = OWN["endless"].stepper(max_instructions=5000)
    with pytest.raises(InstructionLimit, match="5000 warp instructions"):
        stepper.go_to_end()
    stepper.step(-1)
    assert stepper.position == 4999


# --- which CTA ----------------------------------------------------------------------------------------------------------------------


def test_a_cta_that_needs_no_other_runs_alone() -> None:
    launch = of_collection("fa_v21", n=256, bc=32, heads=1)
    wanted, found = launch.make(), launch.make()
    launch.launch(wanted)
    stepper = launch.stepper(found, cta=(1,))
    stepper.go_to_end()
    out = launch.names.index("o")
    half = found[out].reshape(2, -1).shape[1]
    same = found[out].reshape(-1).view(np.uint16) == wanted[out].reshape(-1).view(np.uint16)
    assert stepper.ctaid == (1, 0, 0) and same[half:].all() and not same[:half].all()


def test_ctas_that_communicate_run_first() -> None:
    source = """
extern "C" __global__ void order(unsigned *slots) {
    if (threadIdx.x == 0) slots[1 + atomicAdd(slots, 1u)] = blockIdx.x + 10;
    if (threadIdx.x == 0 && blockIdx.x == 0) printf("first\\n");
}
"""
    kernel = fasim.compile("#include <cstdio>\n" + source).kernel()
    slots = np.zeros(5, np.uint32)
    stepper = fasim.trace.stepper.Stepper(kernel, 4, 32, [slots], cta=(2,))
    assert slots.tolist() == [2, 10, 11, 0, 0] and stepper.earlier_output == "first\n"
    stepper.go_to_end()
    assert slots.tolist() == [3, 10, 11, 12, 0] and stepper.output == ""
    stepper.go_to(0)
    assert slots.tolist() == [2, 10, 11, 0, 0]


@pytest.mark.parametrize("cta", [(2,), (0, 1), (0, 0, -1), (0, 0, 0, 0)])
def test_there_is_no_such_cta(cta: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="CTA"):
        OWN["endless"].stepper(cta=cta)


def test_positions_begin_at_0() -> None:
    stepper = FLASH.stepper()
    with pytest.raises(UsageError, match="position -1"):
        stepper.go_to(-1)
    stepper.step(-5)
    assert stepper.position == 0


def test_fresh_arrays_are_undefined_again() -> None:
    fresh = fasim.empty(32)
    kernel = fasim.compile(
        'extern "C" __global__ void k(float *a, float *out) {\n'
        "    a[threadIdx.x & 15] = 1.0f;\n    __syncwarp();\n    if (a[threadIdx.x] == 1.0f) out[threadIdx.x] = 1.0f;\n}\n"
    ).kernel()
    stepper = fasim.trace.stepper.Stepper(kernel, 1, 32, [fresh, np.zeros(32, np.float32)])
    stepper.go_to_end()
    first = stepper.state.hazards
    assert [(x.kind, x.lanes) for x in first] == [("uninit_global", 16)]
    stepper.go_to(0)
    assert stepper.state.hazards == []
    stepper.go_to_end()
    assert stepper.state.hazards == first


def test_the_reference_machine_agrees() -> None:
    launch = OWN["calls"]
    digests = []
    for backend in ("jit", "reference"):
        stepper = launch.stepper(backend=backend, check=False)
        stepper.go_to(200)
        digests.append(stepper.digest())
    assert digests[0] == digests[1]


def test_an_error_is_no_fasim_error_before_it_happens() -> None:
    stepper = OWN["overrun"].stepper()
    assert stepper.failure is None and stepper.end is None
    stepper.step(20)
    assert stepper.failure is None and issubclass(MemoryAccessError, ExecutionError)
