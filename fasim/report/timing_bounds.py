"""How busy the parts of an SM and of its way to memory are in a prediction, and where a launch stands under the roofline."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.sass.syntax import Instruction, Register

if TYPE_CHECKING:
    from fasim.sm.timing.predict import Prediction

Array = np.ndarray[Any, Any]
_SUB_PARTITIONS, _SECTOR_BYTES, _LANES = 4, 32, 32
#: that an SM sends to the L2 at most
_SECTORS_STORED_A_CYCLE = 1
#: what the report calls pipes; the halves of the FMA pipe are told of together
_PIPE_NAMES = {
    "alu": "ALU pipe",
    "uniform": "uniform pipe",
    "fp64": "FP64 pipe",
    "xu": "XU pipe",
    "tensor": "tensor pipe",
}
#: operations of a lane
_LANE_FLOPS = {
    "FADD": 1, "FMUL": 1, "FFMA": 2, "FADD32I": 1, "FMUL32I": 1, "FFMA32I": 2, "FADD2": 2, "FMUL2": 2, "FFMA2": 4,
    "HADD2": 2, "HMUL2": 2, "HFMA2": 4, "DADD": 1, "DMUL": 1, "DFMA": 2,
}  # fmt: skip
_MATRIX = ("HMMA", "DMMA", "QMMA")
#: M, N, K run together: all are powers of two, M and N at least 8
_SHAPE = re.compile(r"(8|16)(8|16)(4|8|16|32)")


@dataclass(frozen=True)
class Resource:
    """A part of an SM, or of the way to memory: percent of the cycles in which it was busy, of the busiest sub-partition."""

    name: str
    percent: float


@dataclass(frozen=True)
class Roof:
    """A limit of a card: "tflops" of a pipe, or "gbytes_a_second" of a memory."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True)
class Roofline:
    """Where a launch stands under the roofline of its card.

    flops: operations; tflops: by the predicted time. dram_bytes: of the buffers, each once, as DRAM gives and takes them at least if caches
    are cold. read_bytes: from DRAM in this prediction. l2_bytes: that SMs read from the L2 and store to it. flops_a_dram_byte,
    flops_a_l2_byte: None without such bytes. roofs: the card's, of the pipe that most operations use first. percent: tflops of what the
    roofs allow.
    """

    flops: int
    tflops: float
    dram_bytes: int
    read_bytes: int
    l2_bytes: int
    flops_a_dram_byte: float | None
    flops_a_l2_byte: float | None
    roofs: list[Roof]
    percent: float | None


def resources(found: Prediction) -> list[Resource]:
    """All that is busy at all, busiest first."""
    from fasim.sm.timing.classes import ADU_PIPE, LSU, PIPES

    run = found.sm
    cycles = max(run.cycles, 1)
    warps = -(-math.prod(found.block) // _LANES) * max(min(found.occupancy.ctas, len(run.spans)), 1)
    used = min(_SUB_PARTITIONS, warps)
    busiest = run.busy.max(axis=0) / cycles
    parts = {"issue slots": run.instructions / used / cycles, "FMA pipe": _fma_load(found) / cycles}
    for number, pipe in enumerate(PIPES):
        if pipe in _PIPE_NAMES:
            parts[_PIPE_NAMES[pipe]] = float(busiest[number])
    parts["ADU"] = float(run.busy[:, ADU_PIPE].sum()) / cycles
    parts["load-store unit"] = float(run.busy[:, LSU].sum()) / cycles
    l2_rate, dram_rate = _memory_rates(found)
    read, stored = (sectors * _SECTOR_BYTES / cycles for sectors in (run.sectors_read, run.sectors_stored))
    parts["L2 reads"] = read / l2_rate
    parts["L2 writes"] = run.sectors_stored / _SECTORS_STORED_A_CYCLE / cycles
    parts["DRAM"] = (read * found.dram_share + stored * found.stored_share) / dram_rate
    # the simulated SM does not wait for the atomic operations of the others
    parts = {name: part * found.sm_cycles / found.cycles for name, part in parts.items()} if found.cycles else parts
    if found.cycles:
        parts["L2 atomics"] = found.atomic_cycles / found.cycles
        started = math.prod(found.grid) * found.card["launch.cta_ns"] * found.clock_mhz / 1000  # cycles in which CTAs start, one by one
        parts["launch of CTAs"] = min(started / found.cycles, 1.0)
    return sorted((Resource(name, 100 * part) for name, part in parts.items() if part > 0), key=lambda each: -each.percent)


def _fma_load(found: Prediction) -> float:
    """Cycles that the FMA pipe of the busiest sub-partition needs at least: some instructions go to either half, some to both."""
    from fasim.sm.timing.classes import FMA_HEAVY
    from fasim.sm.timing.record import I_BOTH, I_INTERVAL, I_PIPE, PARTS

    records, executions = found.kernel.records, found.sm.stalls[:, 0]
    cost = np.where(records[:, I_PIPE] == FMA_HEAVY, executions / PARTS * records[:, I_INTERVAL], 0.0)
    heavy, both, either = (float(cost[records[:, I_BOTH] == which].sum()) for which in (0, 1, 2))
    busy = found.sm.busy[:, FMA_HEAVY]
    share = float(busy.max()) / float(busy.sum()) if busy.any() else 0.0
    return max(heavy + both, (heavy + 2 * both + either) / 2) * share


def _memory_rates(found: Prediction) -> tuple[float, float]:
    """Bytes a cycle that one SM gets at most from L2 and DRAM while all that have CTAs ask."""
    from fasim.sm.timing.constants import dram_gbps

    card = found.card
    sms = min(card.sms, math.prod(found.grid))
    # the L2 has a clock of its own: to a slower SM it is faster
    slower = found.clock_mhz / float(card["clock.mhz"])
    l2 = min(float(card["memory.sm_l2_bytes_a_cycle"]), float(card["memory.l2_bytes_a_cycle"]) / slower / sms)
    return l2, dram_gbps(card, found.stored_share) * 1000 / found.clock_mhz / sms


def warp_flops(ins: Instruction) -> int:
    """Floating-point operations of an instruction that all lanes execute; those on whole numbers are none, and neither are moves."""
    if ins.opcode in ("FFMA", "HFMA2") and sum(isinstance(each, Register) and each.is_zero for each in ins.operands[1:3]) == 2:
        return 0  # it moves its addend
    if ins.opcode not in _MATRIX:
        return _LANES * _LANE_FLOPS.get(ins.opcode, 0)
    shape = next((match for part in ins.modifiers if (match := _SHAPE.fullmatch(part))), None)
    return 2 * math.prod(map(int, shape.groups())) if shape else 0


def roofline(found: Prediction, flops: int, buffer_bytes: int) -> Roofline:
    """flops: of the problem, 0: those that the machine code executes. buffer_bytes: of all buffers."""
    card, run = found.card, found.sm
    executions = run.stalls[:, 0]
    each = np.array([warp_flops(ins) for ins in found.kernel.instructions])
    executed = executions.astype(np.float64) * each
    scale = found.warp_instructions / max(run.instructions, 1)
    total = flops or round(float(executed.sum()) * scale)
    l2_bytes = round((run.sectors_read + run.sectors_stored) * _SECTOR_BYTES * scale)
    tflops = total / found.seconds * 1e-12
    l2_rate = float(card["memory.l2_bytes_a_cycle"]) * found.clock_mhz * 1e-3
    roofs = [*_pipe_roofs(found, executed), Roof("L2", l2_rate, "gbytes_a_second")]
    roofs.append(Roof("DRAM", float(card["memory.dram_read_gbps"]), "gbytes_a_second"))
    read_bytes = round(run.sectors_read * _SECTOR_BYTES * scale * found.dram_share)
    limits = [roofs[0].value]
    limits += [total / bytes_ * rate * 1e-3 for bytes_, rate in ((l2_bytes, l2_rate), (read_bytes, roofs[-1].value)) if bytes_]
    return Roofline(
        flops=total,
        tflops=tflops,
        dram_bytes=buffer_bytes,
        read_bytes=read_bytes,
        l2_bytes=l2_bytes,
        flops_a_dram_byte=total / buffer_bytes if buffer_bytes else None,
        flops_a_l2_byte=total / l2_bytes if l2_bytes else None,
        roofs=roofs,
        percent=100 * tflops / min(limits) if total else None,
    )


def _pipe_roofs(found: Prediction, executed: Array) -> list[Roof]:
    """The peaks of the pipes that this kernel's operations use, most used first: for matrices with the shapes that it multiplies."""
    from fasim.sm.timing.classes import FP64, TENSOR
    from fasim.sm.timing.record import I_INTERVAL, I_PIPE, PARTS

    card, records = found.card, found.kernel.records
    executions = found.sm.stalls[:, 0]
    per_cycle = card.sms * _SUB_PARTITIONS * found.clock_mhz * 1e-6
    peaks = {}
    for name, pipe in (("tensor pipe", TENSOR), ("FP64 pipe", FP64)):
        on_pipe = (records[:, I_PIPE] == pipe) & (executed > 0)
        if on_pipe.any():
            work = float(executed[on_pipe].sum())
            cycles = float((executions[on_pipe] / PARTS * records[on_pipe, I_INTERVAL]).sum())
            peaks[name] = (work, work / cycles * per_cycle)
    rest = float(executed.sum()) - sum(work for work, _ in peaks.values())
    peaks["FMA pipe"] = (rest, 2 * _LANES / float(card["interval.fma"]) * per_cycle)
    ranked = sorted(peaks.items(), key=lambda item: -item[1][0])
    return [Roof(name, peak, "tflops") for name, (_, peak) in ranked]
