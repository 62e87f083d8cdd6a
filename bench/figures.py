"""Figures: repeated measurements with best and median, and where they were taken."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import fasim
from bench.targets import TARGETS, Target


@dataclass(frozen=True)
class Figure:
    """What was measured. values: one a repetition, in `unit`; none if it was skipped, and `note` says why."""

    name: str
    unit: str
    values: tuple[float, ...]
    note: str = ""

    @property
    def target(self) -> Target | None:
        """The target of this figure, if it has one."""
        return TARGETS.get(self.name)

    @property
    def best(self) -> float:
        """The value least disturbed by whatever else the machine did."""
        return max(self.values) if self.target is not None and self.target.at_least else min(self.values)

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def verdict(self) -> str:
        """ "met" if the median keeps to the target, "best only" if just the best does, "missed", or nothing without a target."""
        if self.target is None or not self.values:
            return ""
        if self.target.met(self.median):
            return "met"
        return "best only" if self.target.met(self.best) else "missed"


def repeat(name: str, unit: str, measure: Callable[[], float], repetitions: int, note: str = "") -> Figure:
    """Measure several times."""
    return Figure(name, unit, tuple(measure() for _ in range(repetitions)), note)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def place() -> str:
    """Processor, cores, versions, date and load, in one line."""
    versions = [f"{name} {importlib.metadata.version(name)}" for name in ("numpy", "numba", "llvmlite", "nvidia-cuda-nvrtc")]
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return (
        f"{_processor()}, {cores()} cores, {platform.system()} {platform.machine()}; Python {platform.python_version()}, "
        f"fasim {fasim.__version__}, {', '.join(versions)}; {date}; load {load}"
    )


def _processor() -> str:
    """The processor's name with family, model and stepping, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    facts = dict(part.split(":", 1) for part in lines if ":" in part)
    values = {key.strip(): value.strip() for key, value in facts.items()}
    name = values.get("model name", platform.machine())
    return f"{name} (family {values.get('cpu family', '?')}, model {values.get('model', '?')})"
