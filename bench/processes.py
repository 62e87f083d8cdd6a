"""Whole processes: `fasim run` and `fasim time` as a person starts them, with time and peak memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Outcome:
    """seconds: wall clock of the process. peak_bytes: its largest resident set. report: what --json printed."""

    seconds: float
    peak_bytes: int
    report: dict[str, Any]


def fasim_run(*options: str, cache_dir: str | None = None) -> Outcome:
    """Run `fasim run fa_v21 --json` with options; raises RuntimeError if it does not exit with 0, so the output was right."""
    return _fasim("run", *options, cache_dir=cache_dir)


def fasim_time(*options: str) -> Outcome:
    """Run `fasim time fa_v21 --json` with options; raises RuntimeError if it does not exit with 0."""
    return _fasim("time", *options)


def _fasim(name: str, *options: str, cache_dir: str | None = None) -> Outcome:
    command = [sys.executable, "-m", "fasim", name, "fa_v21", "--json", *options]
    environment = {**os.environ, **({"FASIM_CACHE_DIR": cache_dir} if cache_dir else {})}
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=output, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        errors.seek(0)
        if process.returncode:
            raise RuntimeError(f"{' '.join(command)} exited with {process.returncode}: {errors.read().decode()[-2000:]}")
        unit = 1 if sys.platform == "darwin" else 1024
        return Outcome(seconds, usage.ru_maxrss * unit, json.loads(output.read()))


def first_start() -> float:
    """Seconds of a first-ever start: nothing cached."""
    with tempfile.TemporaryDirectory() as empty:
        return fasim_run("--n", "256", "--heads", "1", cache_dir=empty).seconds
