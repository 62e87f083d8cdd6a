"""From raw results to the keys of a data file: value, and spread over the repetitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.gpu.calibrate.placement import spacing, turnover
from fasim.gpu.calibrate.runs import VALUES

Array = np.ndarray[Any, Any]
#: lines of the other half of the L2 cache take this much longer, where a card has halves at all, and make up at least this share
_FAR_FACTOR, _FAR_SHARE = 1.25, 0.1
#: a cycle an instruction more than this is a miss of the instruction cache
_MISS = 1.4


@dataclass(frozen=True)
class Measured:
    """A value with the spread (most minus least) over its repetitions; key: of the data file, `section.key`, or a name of its own."""

    key: str
    value: float
    spread: float
    repetitions: int
    unit: str = "cycles"


def slopes(raw: Mapping[str, Any]) -> list[dict[str, float]]:
    """Cycles a statement by run, repetition by repetition, and the stall counts of its helpers as `RUN/helpers`."""
    found: list[dict[str, float]] = []
    for name, run in raw["loops"].items():
        if "skipped" in run:
            continue
        short, long = run["cycles"]
        statements = run["iterations"] * (run["lengths"][1] - run["lengths"][0])
        for i, (a, b) in enumerate(zip(short, long)):
            if len(found) <= i:
                found.append({})
            found[i][name] = (b - a) / statements
            found[i][f"{name}/helpers"] = run["helper_cycles"]
    return found


def values(raw: Mapping[str, Any], placed: Mapping[str, Array]) -> list[Measured]:
    """All that follows from the raw results; what was left out there is left out here."""
    by_repetition = slopes(raw)
    found = []
    for value in VALUES:
        try:
            each = [value.of(one) for one in by_repetition]
        except KeyError:
            continue
        found.append(_measured(value.key, each, value.unit))
    found += _latencies(raw["latency"], [one["ldgsts.chain"] for one in by_repetition if "ldgsts.chain" in one])
    found += _bandwidths(raw["bandwidth"])
    found += _instruction_cache(raw["instruction_cache"])
    found += _launches(raw["launch"])
    for key, name in (("clock.mhz", "fma"), ("clock.tensor_mhz", "tensor")):
        each = [1000 * float(np.mean(np.divide(one["cycles"], one["ns"]))) for one in raw["clock"][name]]
        found.append(_measured(key, each, "MHz"))
    found.append(_distribution("launch.cta_spacing", spacing(placed)))
    found.append(_distribution("launch.cta_turnover", turnover(placed)))
    return found


def skipped(raw: Mapping[str, Any]) -> dict[str, str]:
    """Keys that were not measured although there is a loop for them, and why."""
    reasons = {name: run["skipped"] for name, run in raw["loops"].items() if "skipped" in run}
    found = {}
    for value in VALUES:
        needed: set[str] = set()
        value.of(_Asked(needed))
        for name in needed & reasons.keys():
            found[value.key] = reasons[name]
    return found


class _Asked(dict[str, float]):
    """Slopes that note which are asked for."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def __missing__(self, name: str) -> float:
        self.names.add(name)
        return 1.0


def _measured(key: str, each: Sequence[float], unit: str = "cycles") -> Measured:
    return Measured(key, float(np.median(each)), float(max(each) - min(each)), len(each), unit)


def _distribution(key: str, each: Sequence[float], unit: str = "cycles") -> Measured:
    """Of single events; the spread is that between the quartiles."""
    low, median, high = np.percentile(each, (25, 50, 75))
    return Measured(key, float(median), float(high - low), len(each), unit)


def _latencies(raw: Mapping[str, Any], ldgsts: Sequence[float]) -> Iterable[Measured]:
    chase = _measured("memory.l2_latency", [cycles / raw["chase"]["steps"] for cycles in raw["chase"]["cycles"]])
    near, dram = np.array(raw["near"], float), np.array(raw["dram"], float)
    # the clock's own cycles are in both
    own = float(np.median(near)) - chase.value
    others = np.concatenate([np.array(one, float) for one in raw["after_another"].values()])
    far = others[others > _FAR_FACTOR * float(np.median(near))]
    yield chase
    if len(far) > _FAR_SHARE * len(others):
        yield _distribution("memory.l2_far_latency", (far - own).tolist())
    else:
        yield Measured("memory.l2_far_latency", chase.value, chase.spread, chase.repetitions)
    yield _distribution("memory.dram_latency", (dram - own).tolist())
    if ldgsts:
        yield _measured("memory.ldgsts_extra", [one - chase.value for one in ldgsts])


def _bandwidths(raw: Mapping[str, Any]) -> Iterable[Measured]:
    for key, name in (
        ("memory.sm_l2_bytes_a_cycle", "l2_one_sm"),
        ("memory.l2_bytes_a_cycle", "l2_all_sms"),
        ("memory.l2_write_bytes_a_cycle", "l2_write_all_sms"),
        ("memory.l1_bytes_a_cycle", "l1_one_sm"),
    ):
        if name not in raw:
            continue
        one = raw[name]
        each = [one["bytes"] * one["rounds"] * len(cycles) / float(np.mean(cycles)) for cycles in one["cycles"]]
        yield _measured(key, each, "bytes/cycle")
    for key, name, moved in (("read", "read", 1), ("write", "write", 1), ("mixed", "copy", 2)):
        (half, short), (size, long) = sorted((int(part), times) for part, times in raw["dram"]["us"][name].items())
        # what the launch takes is in both times
        each = [moved * (size - half) / (b - a) / 1000 for a, b in zip(sorted(short), sorted(long))]
        yield _distribution(f"memory.dram_{key}_gbps", each, "GB/s")


def _instruction_cache(raw: Mapping[str, Any]) -> Iterable[Measured]:
    """Sizes are the longest loops that ran as if shorter; intervals those of the first loop that is clearly longer, and of the longest."""
    lengths = [int(length) for length in raw["cycles"]]
    rates = {n: [cycles / (raw["iterations"] * n) for cycles in raw["cycles"][str(n)]] for n in lengths}
    typical = {n: float(np.median(each)) for n, each in rates.items()}
    near = max((n for n in lengths if typical[n] < _MISS), default=0)
    beyond = [n for n in lengths if n > near]
    if not near or len(beyond) < 2:
        return
    first, last = beyond[0], beyond[-1]
    middle = (typical[first] + typical[last]) / 2
    far = max(n for n in lengths if typical[n] < middle) if typical[last] > _MISS * typical[first] else 0
    repetitions = len(rates[near])
    yield Measured("instruction_cache.near_bytes", 16 * near, 0, repetitions, "bytes")
    yield _measured("instruction_cache.near_miss_interval", rates[first])
    if far:
        yield Measured("instruction_cache.far_bytes", 16 * far, 0, repetitions, "bytes")
        yield _measured("instruction_cache.far_miss_interval", rates[last])


def _launches(raw: Mapping[str, Any]) -> Iterable[Measured]:
    grids = {int(grid): _per_kernel(graph) for grid, graph in raw["graphs_us"].items()}
    one, few, many = sorted(grids)
    yield _distribution("launch.graph_us", grids[one], "us")
    yield _distribution("launch.event_us", raw["events_us"], "us")
    yield _distribution("launch.cta_ns", [1000 * (b - a) / (many - few) for a, b in zip(grids[few], grids[many])], "ns")


def _per_kernel(graph: Mapping[str, Sequence[float]]) -> list[float]:
    """Microseconds a kernel: what a graph of more kernels takes longer."""
    (few, short), (many, long) = sorted((int(nodes), times) for nodes, times in graph.items())
    return [(b - a) / (many - few) for a, b in zip(sorted(short), sorted(long))]


#: keys whose values are whole numbers by what they are
WHOLE = ("bytes", "MHz", "GB/s")


def rounded(measured: Measured) -> float | int:
    """The value as a data file has it: whole where it is so within what can be told, else three digits."""
    value = measured.value
    # loops whose ends other warps hide in part are off by up to 1.3 %
    near = abs(value - round(value)) < max(0.03, 0.015 * abs(value)) and (round(value) or abs(value) < 0.005)
    if measured.unit in WHOLE or near:
        return round(value)
    number = float(f"{value:.3g}")
    return int(number) if number.is_integer() else number
