"""Ctrl-C in the middle of a move: the stepper stands at some position of the way, whole, and can be used as before."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from fasim.trace import history, places, search, stepper, view, walker
from fasim.trace.breaks import ConflictBreak
from fasim.trace.stepper import Stepper
from tests.trace.launches import FLASH, OWN, of_cases

MODULES = {module.__file__ for module in (history, places, search, stepper, view, walker)}
MOVES: dict[str, Callable[[Stepper, Any], Any]] = {
    "go_to": lambda s, watch: s.go_to(9000, watch),
    "go_to_end": lambda s, watch: s.go_to_end(watch),
    "step": lambda s, watch: s.step(5000, watch),
    "run_to": lambda s, watch: s.run_to([ConflictBreak(99)], watch=watch),
    "next_line": lambda s, watch: [s.next_line(3, watch) for _ in range(50)],
    "next_tile": lambda s, watch: [s.next_tile(watch=watch) for _ in range(8)],
    "next_barrier": lambda s, watch: [s.next_barrier(watch=watch) for _ in range(30)],
}


class Interrupt:
    """Within its block, the n-th line of the stepper's code that is executed raises KeyboardInterrupt, as a signal would there."""

    def __init__(self, line: int) -> None:
        self.left, self.seen = line, 0

    def __enter__(self) -> Interrupt:
        self._old = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._old)

    def _call(self, frame: FrameType, what: str, _: Any) -> Any:
        return self._line if frame.f_code.co_filename in MODULES else None

    def _line(self, frame: FrameType, what: str, _: Any) -> Any:
        if what == "line":
            self.seen += 1
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self._line


def known_digests(launch: Any, count: int, **options: Any) -> list[str]:
    stepper = launch.stepper(**options)
    found = [stepper.digest()]
    while len(found) <= count and stepper.state.next is not None:
        stepper.go_to(stepper.position + 1)
        found.append(stepper.digest())
    return found


@pytest.mark.parametrize("move", MOVES)
def test_in_a_watch(move: str) -> None:
    """The position is where the watch was told that one is."""
    stepper, told = FLASH.stepper(), []
    stepper.go_to(10)

    def watch(position: int) -> bool:
        told.append(position)
        if len(told) == 3:
            raise KeyboardInterrupt
        return True

    with pytest.raises(KeyboardInterrupt):
        MOVES[move](stepper, watch)
    assert stepper.position == told[-1] > 10
    there = stepper.digest()
    stepper.go_to(3)
    stepper.go_to(told[-1])
    assert stepper.digest() == there
    assert MOVES[move](stepper, None) is not False


@pytest.mark.parametrize(
    ("launch", "options"),
    [
        (of_cases("hz_cp_async_pipeline"), {"interval": 16}),
        (of_cases("hz_cp_async_pipeline"), {"interval": 4, "limit_bytes": 20_000, "check": False}),
        (OWN["heap"], {"interval": 16}),
        (OWN["many_copies"], {"interval": 32, "check": False}),
    ],
    ids=["checked", "thinned out", "heap", "a queue that grows"],
)
def test_at_any_line(launch: Any, options: dict[str, Any]) -> None:
    """Also once more while it is being put right."""
    count = 240
    known = known_digests(launch, count, **options)
    target = len(known) - 1

    def to_and_fro(stepper: Stepper) -> None:
        stepper.go_to(target)
        stepper.go_to(target // 2)
        stepper.go_to(target - 7)

    with Interrupt(-1) as all_lines:
        to_and_fro(launch.stepper(**options))
    random_ = random.Random(4)
    for _ in range(60):
        stepper = launch.stepper(**options)
        for line in (random_.randrange(1, all_lines.seen), random_.randrange(1, 400)):
            try:
                with Interrupt(line):
                    to_and_fro(stepper)
            except KeyboardInterrupt:
                pass
        stepper.go_to(stepper.position)
        assert known[stepper.position] == stepper.digest()
        for position in (target, 0, target // 3, target):
            stepper.go_to(position)
            assert stepper.position == position and known[position] == stepper.digest()


def test_by_a_signal() -> None:
    """As Ctrl-C sends it, wherever the machine is then."""
    launch, random_ = OWN["turns"], random.Random(5)
    whole = launch.stepper()
    whole.go_to_end()
    stepper, interrupted = launch.stepper(), 0
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(40):
            timer = threading.Timer(random_.random() * 0.02, os.kill, (os.getpid(), signal.SIGINT))
            try:
                timer.start()
                while True:
                    stepper.go_to_end()
                    stepper.go_to(0)
            except KeyboardInterrupt:
                interrupted += 1
            timer.join()
    finally:
        signal.signal(signal.SIGINT, old)
    assert interrupted == 40
    position = stepper.position
    there = stepper.digest()
    fresh = launch.stepper()
    fresh.go_to(position)
    assert fresh.digest() == there
    stepper.go_to_end()
    assert stepper.digest() == whole.digest() and stepper.end == whole.end


def test_a_machine_that_does_not_return(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice of the machine that ends with an exception may have executed anything."""
    stepper, fresh = FLASH.stepper(), FLASH.stepper()
    stepper.go_to(700)
    walking = stepper.walker
    real, calls = walking.run.machine.run, []

    def run(address: int, entry: int) -> int:
        status = real(address, entry)
        calls.append(status)
        if len(calls) == 5:
            raise KeyboardInterrupt
        return status

    monkeypatch.setattr(type(walking.run.machine), "run", property(lambda self: run), raising=False)
    with pytest.raises(KeyboardInterrupt):
        stepper.go_to(800)
    monkeypatch.undo()
    assert stepper.position == 512  # the keyframe
    for position in (stepper.position, 704, 9000):
        stepper.go_to(position)
        fresh.go_to(position)
        assert stepper.digest() == fresh.digest()
