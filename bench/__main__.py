"""`python -m bench`: every figure with a target, and the peers beside ours, in one table.

python -m bench                    some minutes, most of them for the peers' installation
python -m bench --full             with the published size, B=4 H=8 N=8192, and the predicted time of every recording: 15 minutes more
python -m bench --no-peers         fasim alone
python -m bench --peers DIR        keep the peers' virtual environments in DIR (default: a temporary directory)
python -m bench --json FILE        all values as data too
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import micro, processes
from bench.attention import Problem
from bench.figures import Figure, cores, place, repeat
from bench.peers.install import PEERS, measure
from bench.predicting import accuracy, published, speed
from bench.stepping import stepping
from bench.watching import PROBLEMS, Watched

FULL_SIZE = ("--n", "8192", "--batch", "4", "--heads", "8")
GPGPU_SIM = Figure("GPGPU-Sim, functional, naive, N=256 one head", "s", (), "published: 1.9 s; not measured")


def attention(name: str, label: str, n: int, batch: int, heads: int, repetitions: int, *, check: bool) -> Figure:
    """Seconds in the machine, after one launch that warms up and whose output is checked."""
    problem = Problem(name, n, batch, heads)
    problem.seconds()
    if check:
        problem.check()
    return repeat(label, "s", problem.seconds, repetitions)


def flagship() -> Iterator[Figure]:
    """The v2.1 kernel, Bc = 32, D = 64, dense."""
    yield attention("fa_v21", "v2.1 N=256 one head, machine", 256, 1, 1, 20, check=True)
    processes.fasim_run("--n", "256", "--heads", "1")
    whole = "v2.1 N=256 one head, whole process"
    yield repeat(whole, "s", lambda: processes.fasim_run("--n", "256", "--heads", "1").seconds, 7, "warm start; `fasim run`")
    yield attention("fa_v21", "v2.1 N=1024 one head, machine", 1024, 1, 1, 9, check=True)
    yield attention("fa_v21", "v2.1 B=4 H=8 N=1024, machine", 1024, 4, 8, 3, check=False)


def full_size() -> Iterator[Figure]:
    """The published size, once: time in the machine, peak memory, and the process with its float64 reference."""
    outcome = processes.fasim_run(*FULL_SIZE)
    seconds = outcome.report["seconds"]
    yield Figure("v2.1 B=4 H=8 N=8192, machine", "s", (seconds["machine"],))
    yield Figure("v2.1 B=4 H=8 N=8192, peak memory", "GB", (outcome.peak_bytes / 1e9,), "whole process with inputs and reference")
    yield Figure("v2.1 B=4 H=8 N=8192, whole process", "s", (outcome.seconds,), "with the float64 reference")


def machine() -> Iterator[Figure]:
    """Instructions by themselves."""
    for workers in dict.fromkeys((1, cores())):
        micro.alu_rate(10, workers)
        label = "f32 and integer arithmetic, a core" if workers == 1 else f"f32 and integer arithmetic, a core of {workers}"
        yield repeat(label, "M warp instr/s", lambda workers=workers: micro.alu_rate(4000, workers) / 1e6, 9)  # type: ignore[misc]
    for each in micro.MMA:
        micro.seconds_each(each, 1)
        yield repeat(each.name, "us", lambda each=each: micro.seconds_each(each, 200) * 1e6, 9, "through the machine")  # type: ignore[misc]


def watching() -> Iterator[Figure]:
    """What counting and checking cost."""
    for name in PROBLEMS:
        watched = Watched(name)
        yield repeat(f"{name}, counted", "x plain", lambda: watched.ratio("counted"), 7)  # noqa: B023
        yield repeat(f"{name}, check=all", "x plain", lambda: watched.ratio("checked"), 5)  # noqa: B023


def memory() -> Iterator[Figure]:
    """Memory instructions by themselves, no targets."""
    for each in micro.MEMORY:
        micro.seconds_each(each, 1)
        yield repeat(each.name, "us", lambda each=each: micro.seconds_each(each, 400) * 1e6, 9)  # type: ignore[misc]


def starts() -> Iterator[Figure]:
    """From nothing."""
    yield repeat("first start, empty cache", "s", processes.first_start, 2, "`fasim run`; compiles the machine and the kernel")


def peers(folder: Path) -> Iterator[Figure]:
    """Others beside ours, on the same problems in the same run."""
    triton, simulator = PEERS
    yield attention("fa_v21", "fasim, v2.1, N=256 one head", 256, 1, 1, 20, check=True)
    yield attention("fa_v21", "fasim, v2.1, N=1024 one head", 1024, 1, 1, 9, check=True)
    yield from measure(triton, folder)
    yield attention("attention_naive", "fasim, naive kernel, N=256 one head", 256, 1, 1, 9, check=True)
    yield from measure(simulator, folder)
    yield GPGPU_SIM


def number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def add_row(table: Table, figure: Figure) -> None:
    """One figure as a row."""
    target = figure.target
    limit = "" if target is None else f"{'>=' if target.at_least else '<='} {target.limit:g}"
    style = {"met": "green", "best only": "yellow", "missed": "red"}.get(figure.verdict, "")
    values = (number(figure.best), number(figure.median)) if figure.values else ("-", "-")
    verdict = f"[{style}]{figure.verdict}[/]" if style else ""
    repetitions = str(len(figure.values)) if figure.values else ""
    table.add_row(figure.name, *values, figure.unit, repetitions, limit, verdict, figure.note)


def main(arguments: list[str] | None = None) -> int:
    """Measure and print; returns 1 if the best value of a figure misses its target."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="measure the published size too")
    parser.add_argument("--no-peers", action="store_true", help="fasim alone")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="where the peers' virtual environments are kept")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values")
    options = parser.parse_args(arguments)

    progress = Console(stderr=True)
    before = place()
    figures: list[Figure] = []
    table = Table("figure", "best", "median", "unit", "runs", "target", "", "note", title="fasim benchmark")

    def section(measurements: Callable[[], Iterator[Figure]]) -> None:
        table.add_section()
        for figure in measurements():
            progress.print(f"{figure.name}: {number(figure.median) if figure.values else '-'} {figure.unit}")
            figures.append(figure)
            add_row(table, figure)

    long = (full_size, accuracy) if options.full else ()
    for each in (flagship, machine, watching, stepping, speed, published, starts, memory, *long):
        section(each)
    if not options.no_peers:
        with tempfile.TemporaryDirectory() as temporary:
            section(lambda: peers(options.peers or Path(temporary)))
    after = place()
    output = Console(width=max(Console().width, 150))
    output.print(table)
    output.print(f"start: {before}\nend:   {after}", highlight=False)
    if options.json:
        data = {"start": before, "end": after, "figures": [asdict(figure) for figure in figures]}
        options.json.write_text(json.dumps(data, indent=1) + "\n")
    return int(any(figure.verdict == "missed" for figure in figures))


if __name__ == "__main__":
    sys.exit(main())
