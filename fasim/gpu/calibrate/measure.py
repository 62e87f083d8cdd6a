"""Measure: raw cycles and times as the GPU gave them, which `values` turns into keys. Nothing is computed here that can be later."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fasim.gpu.calibrate.code import CACHE_CHAINS, CACHE_LENGTHS, CACHE_LOOP, Code
from fasim.gpu.calibrate.graph import Graph
from fasim.gpu.calibrate.loops import IN_BYTES, ITERATIONS, LOOPS, REPETITIONS, entry
from fasim.gpu.calibrate.placement import placements
from fasim.gpu.calibrate.runs import RUNS
from fasim.gpu.calibrate.session import Memory, Session
from fasim.gpu.device import Device
from fasim.gpu.driver import driver_errors

#: what is measured, as JSON keeps it
Raw = dict[str, Any]
REPEATED = REPETITIONS - 1

_LINE_BYTES = 128
_CHASE_BYTES = 8 << 20
_LINES = 4096
_TOUCHERS = 8
_FILL_BYTES = 256 << 20
_DRAM_BYTES = 1 << 30
_CACHE_ITERATIONS = 24
_GRAPH_NODES = (200, 600)
_GRAPH_WAVES = (8, 64)
_EMPTY_THREADS = 128
_LOAD_NS = 50_000_000


def measure(device: Device, code: Code, progress: Callable[[str], None] = lambda _: None) -> tuple[Raw, dict[str, Any]]:
    """Everything, in some tens of seconds; progress: told what comes next.

    Returns: the raw results, and the arrays of the placement of CTAs by name.
    Raises: GpuError, GpuFault.
    """
    session = Session(device, code)
    raw: Raw = {}
    steps: tuple[tuple[str, Callable[[Session], Any]], ...] = (
        ("loops", loops),
        ("instruction_cache", instruction_cache),
        ("latency", latency),
        ("bandwidth", bandwidth),
        ("launch", launch),
        ("clock", clock),
    )
    for name, step in steps:
        progress(name)
        raw[name] = step(session)
    progress("placement")
    placed = placements(session)
    session.close()
    return raw, placed


@contextlib.contextmanager
def _memory(session: Session, *sizes_bytes: int) -> Iterator[tuple[Memory, ...]]:
    taken = tuple(Memory(session.device, size) for size in sizes_bytes)
    yield taken
    for each in taken:
        each.free()


def _inputs(session: Session, given: Memory) -> None:
    """The words that loops begin with: see the setups in `loops`."""
    words = np.zeros(IN_BYTES // 4, np.uint32)
    words[:40] = 0x3F800000 + 64 * np.arange(40)
    words[40:44] = 0x3C003C01, 3, 5, 7
    words[48:56] = 1
    words[56:64] = 0x00010001
    # a pointer to itself
    words[1024:1026] = np.array([int(given) + 4096], np.uint64).view(np.uint32)
    given.put(words)


def loops(session: Session) -> Raw:
    """Cycles of the two lengths of each run, repetition by repetition; what does not measure what it is named after is left out."""
    found: Raw = {}
    with _memory(session, IN_BYTES) as (given,):
        for name, run in RUNS.items():
            loop, looked = LOOPS[run.loop], session.code.looked[f"{run.loop}/{run.chains}"]
            if looked.reason:
                found[name] = {"skipped": looked.reason}
                continue
            _inputs(session, given)
            cycles = [_cycles(session, f"loop_{run.loop}", entry(run.loop, run.chains, length), given, run.warps, run.parameter)
                      for length in loop.lengths]  # fmt: skip
            found[name] = {"cycles": cycles, "lengths": list(loop.lengths), "iterations": ITERATIONS, "helper_cycles": looked.helper_cycles}
    return found


def _cycles(session: Session, cubin: str, name: str, given: Memory, warps: int, parameter: int, iterations: int = ITERATIONS) -> list[int]:
    """From the last warp's arrival at the barrier to the last warp's end, of all repetitions but the first."""
    session.run(session.kernel(cubin, name), 1, 32 * warps, [session.out, given, iterations, parameter])
    clocks = session.out.words(2 * REPETITIONS * warps).reshape(REPETITIONS, warps, 2)
    return [int(each) for each in (clocks[:, :, 1].max(1) - clocks[:, :, 0].max(1))[1:]]


def instruction_cache(session: Session) -> Raw:
    """Cycles of loops of one warp that are as long as told."""
    with _memory(session, IN_BYTES) as (given,):
        _inputs(session, given)
        cycles = {
            str(length): _cycles(
                session, "instruction_cache", entry(CACHE_LOOP, CACHE_CHAINS, length), given, 1, 0, _CACHE_ITERATIONS
            )
            for length in CACHE_LENGTHS
        }  # fmt: skip
    return {"iterations": _CACHE_ITERATIONS, "cycles": cycles}


def one_an_sm(session: Session) -> int:
    """Dynamic shared memory with which an SM has room for one CTA."""
    return session.device.architecture.smem_opt_in_bytes


def latency(session: Session) -> Raw:
    """Loads one after the other: a ring in the L2 cache; line by line from DRAM, and from L2 after the same or another SM."""
    size = min(_CHASE_BYTES, 1 << (session.device.card.l2_bytes // 4).bit_length() - 1)
    steps = size // _LINE_BYTES
    with _memory(session, size, _FILL_BYTES, (_TOUCHERS + 1) * _LINES * _LINE_BYTES) as (ring, fill, lines):
        order = np.random.default_rng(0).permutation(steps)
        words = np.zeros((steps, _LINE_BYTES // 8), np.uint64)
        words[order, 0] = int(ring) + _LINE_BYTES * np.roll(order, -1).astype(np.uint64)
        ring.put(words)
        session.run(session.kernel("memory", "fasim_chase"), 1, 1, [session.out, ring, steps, REPEATED])
        chase = session.out.words(REPEATED).tolist()
        lines.fill(0)
        each = session.kernel("memory", "fasim_each_line", one := _gate_bytes(session))
        touch = session.kernel("memory", "fasim_touch", one)
        sms = session.device.card.sms

        def timed(part: int) -> list[int]:
            address = np.uint64(int(lines) + part * _LINES * _LINE_BYTES)
            session.run(each, sms, 32, [session.out, address, _LINES, 0], one)
            return [int(value) for value in session.out.words(_LINES)]

        fill.fill(0)
        dram, near = timed(0), timed(0)
        others: dict[str, list[int]] = {}
        for part in range(1, _TOUCHERS + 1):
            # neighbouring pairs of SMs are on different GPCs, and these on one side of the L2 cache or the other
            sm = min(2 * part, sms - 1)
            fill.fill(0)
            address = np.uint64(int(lines) + part * _LINES * _LINE_BYTES)
            session.run(touch, sms, 256, [session.out, address, _LINES, sm], one)
            others[str(sm)] = timed(part)
    return {"chase": {"bytes": size, "steps": steps, "cycles": chase}, "dram": dram, "near": near, "after_another": others}


def _gate_bytes(session: Session) -> int:
    """Dynamic shared memory beside the static one of a kernel of which each SM is to get one CTA."""
    return one_an_sm(session) - 24 * 1024


def bandwidth(session: Session) -> Raw:
    """Bytes and cycles of one SM and of all from the caches; bytes and times from DRAM."""
    sms = session.device.card.sms
    found: Raw = {}
    each_bytes = 128 * 1024
    while each_bytes * sms > session.device.card.l2_bytes // 3 and each_bytes > 64 * 1024:
        each_bytes //= 2
    cases = {
        "l2_one_sm": ("fasim_read_l2", 1, 1024, 1 << 20, 20),
        "l2_all_sms": ("fasim_read_l2", sms, 1024, each_bytes, 40),
        "l2_write_all_sms": ("fasim_write_l2", sms, 256, each_bytes, 40),
        "l1_one_sm": ("fasim_read_l1", 1, 1024, 64 * 1024, 200),
    }
    with _memory(session, max(1 << 20, each_bytes * sms)) as (data,):
        data.fill(0)
        for name, (kernel, ctas, threads, size, rounds) in cases.items():
            cycles = []
            for _ in range(REPEATED):
                # of the CTAs of the first wave every SM gets one
                session.run(session.kernel("memory", kernel), ctas, threads, [session.out, data, size, rounds])
                cycles.append([int(value) for value in np.subtract(*session.out.words(3 * ctas).reshape(-1, 3).T[1::-1])])
            found[name] = {"bytes": size, "rounds": rounds, "cycles": cycles}
    found["dram"] = _dram(session)
    return found


def _dram(session: Session) -> Raw:
    ctas, threads = 8 * session.device.card.sms, 256
    at_once = ctas * threads * 4 * 16
    free, _ = session.device.driver.mem_get_info()
    size = max(1, min(_DRAM_BYTES, free // 4) // (2 * at_once)) * 2 * at_once
    times: dict[str, dict[str, list[float]]] = {}
    with _memory(session, size, size, _FILL_BYTES) as (to, source, fill):
        to.fill(0)
        source.fill(1)
        for name in ("read", "write", "copy"):
            kernel = session.kernel("memory", f"fasim_dram_{name}")
            for part in (size // 2, size):
                arguments = [to, source, np.uint64(part // 16)]
                taken = [session.between_events(kernel, ctas, threads, arguments, lambda: _busy(session, fill)) for _ in range(12)]
                times.setdefault(name, {})[str(part)] = taken[2:]
    return {"us": times}


def _busy(session: Session, fill: Memory) -> None:
    """Keep the GPU at work while the host starts what comes next."""
    for _ in range(2):
        session.device.driver.memset_d32_async(int(fill), 0, fill.size_bytes // 4)


def launch(session: Session) -> Raw:
    """An empty kernel: many in a graph, by grid size and number; one between two events."""
    kernel, driver, sms = session.kernel("launch", "fasim_empty"), session.device.driver, session.device.card.sms
    graphs: dict[str, dict[str, list[float]]] = {}
    for grid in (1, *(sms * waves for waves in _GRAPH_WAVES)):
        for nodes in _GRAPH_NODES:

            def start(stream: Any, grid: int = grid, nodes: int = nodes) -> None:
                for _ in range(nodes):
                    session.start(kernel, grid, _EMPTY_THREADS, [], 0, stream)

            with driver_errors("a graph of empty kernels"), Graph(driver, start) as graph:
                times = [graph.microseconds() for _ in range(30)]
            graphs.setdefault(str(grid), {})[str(nodes)] = times[10:]
    with _memory(session, _FILL_BYTES) as (fill,):
        events = [session.between_events(kernel, 1, _EMPTY_THREADS, [], lambda: _busy(session, fill)) for _ in range(53)]
    return {"graphs_us": graphs, "events_us": events[3:]}


def clock(session: Session) -> Raw:
    """Cycles and nanoseconds of every CTA while all SMs calculate, with and without tensor cores, after as long a run to warm up."""
    found: Raw = {}
    ctas = session.device.card.sms
    with _memory(session, IN_BYTES) as (given,):
        _inputs(session, given)
        for name in ("fma", "tensor"):
            kernel, rounds = session.kernel("launch", f"fasim_load_{name}"), 200
            for wanted_ns in (_LOAD_NS // 10, _LOAD_NS, *[_LOAD_NS] * REPEATED):
                session.run(kernel, ctas, 512, [session.out, given, rounds])
                readings = session.out.words(2 * ctas).reshape(-1, 2)
                found.setdefault(name, []).append({"cycles": readings[:, 0].tolist(), "ns": readings[:, 1].tolist()})
                rounds = max(rounds, int(rounds * wanted_ns / max(int(np.median(readings[:, 1])), 1)))
            found[name] = found[name][2:]
    return found
