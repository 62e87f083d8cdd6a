"""The stepper: from the command line to the first frame, and single steps forward and back."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.figures import Figure, repeat

ROOT = Path(__file__).resolve().parent.parent
WORDS = ["fa_v21", "--n", "128", "--heads", "1", "--bc", "32"]


def first_frame() -> None:
    """What `fasim run --trace` does, with the screen in memory."""
    from fasim.cli.launching import Call
    from fasim.cli.run_options import RunOptions
    from fasim.cli.target import prepare
    from fasim.cli.trace import make_session
    from fasim.tui.app import StepperApp

    call = Call(WORDS, RunOptions(), [], 0.0)

    async def show() -> None:
        async with StepperApp(make_session(prepare(call.words, call.options, call.general), call)).run_test(size=(80, 24)) as pilot:
            await pilot.pause()

    asyncio.run(show())


def process_seconds() -> float:
    """Wall clock of a process that shows the first frame and ends."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "from bench.stepping import first_frame; first_frame()"], cwd=ROOT, check=True)
    return time.perf_counter() - start


def steps(count: int = 200) -> Iterator[Figure]:
    """Milliseconds a step at random positions of v2.1, with what the instruction did, forward and back."""
    from fasim.cli.launching import Call
    from fasim.cli.run_options import RunOptions
    from fasim.cli.target import prepare
    from fasim.cli.trace import make_session

    call = Call(WORDS, RunOptions(), [], 0.0)
    stepper = make_session(prepare(call.words, call.options, call.general), call).stepper
    stepper.go_to_end()
    places = random.Random(0).sample(range(1, stepper.position), count)
    for direction, label in ((1, "forward"), (-1, "back")):
        taken = []
        for position in places:
            stepper.go_to(position)
            start = time.perf_counter()
            stepper.step(direction)
            stepper.event()
            taken.append(1e3 * (time.perf_counter() - start))
        yield Figure(f"v2.1 N=128, a step {label}", "ms", tuple(taken), f"at most {max(taken):.2g} ms")


def stepping() -> Iterator[Figure]:
    """All of them."""
    process_seconds()
    yield repeat("v2.1 N=128, stepper to the first frame", "s", process_seconds, 5, "warm start, whole process")
    yield from steps()
