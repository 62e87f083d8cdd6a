"""How long a launch takes on a card: some CTAs walked, one SM simulated, the grid extrapolated."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.arch.cards import Card
from fasim.sm.occupancy import Occupancy, occupancy
from fasim.sm.timing.classes import CLASSES
from fasim.sm.timing.constants import constants
from fasim.sm.timing.kernel import TimedKernel, timed_kernel
from fasim.sm.timing.paths import Walk, site_numbers
from fasim.sm.timing.sample import Sampler
from fasim.sm.timing.schedule import Schedule, groups_of, last_end, schedule
from fasim.sm.timing.sm import SmRun, run
from fasim.sm.timing.state import K_STAGGER

if TYPE_CHECKING:
    from fasim.sm.grid import GridRun
    from fasim.sm.module import Kernel

Array = np.ndarray[Any, Any]
MATRIX = CLASSES["tensor"]
#: warp instructions that are simulated of an SM at most; what is left is extrapolated
BUDGET = 12_000_000
#: rounds of CTAs that are simulated at least where all are too many
_ROUNDS = 8
#: cycles more from the first to the last of the first CTAs of an SM, for which its time is worked out, too
_STAGGERS = (230, 610, 1370)
#: buffers that take up to this part of the L2 stay in it from one launch to the next
_STAYS = 0.8
INSTRUCTION_BYTES = 16
#: CTAs whose work differs by less than this part do as much as each other
_SAME = 0.02
#: seconds in which most of what the change of the clock costs is spent: 0.11 of 0.17 us in a kernel of 1.6 us, 0.14 in one of 5.6 us
_SWITCHING = 2e-6


@dataclass(frozen=True)
class Prediction:
    """What the model says of a launch.

    seconds: between two events around the launch. cycles: from the first CTA's start to the last one's end. clock_mhz: at which the SMs
    run. sm: the SM that was simulated, with its CTAs `order`, of which it ran the first. work_error: how far
    walked CTAs were from what was inferred of them, at most. stagger_spread: between the shortest and the longest time of the SM if its
    first CTAs begin together or apart, in parts of the mean. dram_share, stored_share: of the sectors that are read, that are stored, the
    part that comes from DRAM, that goes there. sm_cycles, atomic_cycles: that the SM and that the L2's atomic operations take, which go on
    at the same time.
    """

    kernel: TimedKernel
    card: Card
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    occupancy: Occupancy
    cycles: float
    clock_mhz: float
    seconds: float
    launch_seconds: float
    warp_instructions: float
    order: list[int]
    sm: SmRun
    sm_cycles: float
    atomic_cycles: float
    schedule: Schedule
    dram_share: float
    stored_share: float
    work_error: float
    stagger_spread: float


def predict(
    kernel: Kernel,
    grid: int | Sequence[int],
    block: int | Sequence[int],
    args: Sequence[Any],
    card: Card,
    *,
    dynamic_smem_bytes: int = 0,
    warm: bool = True,
    events: int = 0,
    budget: int = BUDGET,
    smem_config_bytes: int = 0,
) -> Prediction:
    """Predict the time of a launch; the arguments are those of `Kernel.launch`; arrays stay as they are.

    warm: whether an earlier launch has left in the L2 what fits. events: of how many instructions the simulated SM keeps a log.
    budget: warp instructions to simulate at most. smem_config_bytes: shared memory of an SM if it is known.
    Raises: UsageError, LaunchError as a launch; NotModelled for kernels whose CTAs wait for each other, or whose path others or the clock
    decide.
    """
    timed = timed_kernel(kernel, card)
    prepared = timed.prepare(grid, block, args, dynamic_smem_bytes)
    shape, numbers = prepared.shape, site_numbers(prepared, timed.instructions)
    sampler = Sampler(Walk(prepared, numbers), timed.records)
    barriers = 1 if any(ins.opcode == "BAR" for ins in timed.instructions) else 0
    held = occupancy(card.arch, shape.threads, kernel.registers, shape.smem_bytes, barriers, smem_config_bytes=smem_config_bytes)
    work, work_error = sampler.grid_work()
    work_error = max(work_error, sampler.order_error(lambda: Walk(timed.prepare(grid, block, args, dynamic_smem_bytes), numbers)))
    traffic = _traffic(prepared, sampler, work, card, warm)
    tensor = any(ins.opcode in MATRIX for ins in timed.instructions)
    clock = float(card["clock.tensor_mhz" if tensor else "clock.mhz"])
    k = constants(
        card,
        smem_config_bytes=held.smem_config_bytes,
        busy_sms=min(card.sms, shape.ctas),
        storing_sms=min(card.sms, shape.ctas) * _alike(work),
        dram_share=traffic.dram_share,
        stored_share=traffic.stored_share,
        clock_mhz=clock,
        shared=traffic.shared,
        code_bytes=INSTRUCTION_BYTES * len(timed.instructions),
    )
    model = _SmModel(sampler, work, max(held.ctas, 1), k)
    rates, apart = model.rates()
    hand_out = functools.partial(
        schedule,
        groups=groups_of(card),
        resident=model.resident,
        rates=rates,
        overhead=card["launch.cta_turnover"],
        spread=card["memory.sm_spread"] if traffic.reads else 0.0,
        apart=apart,
    )
    plan = hand_out(work)
    last = int(np.argmax(plan.ends))
    order = plan.orders[last]
    result, cycles, spread = model.time(order, budget, events)
    # the SM that was simulated stands for all, and for what else could have come last
    cycles *= last_end(plan, work, hand_out) / (plan.cycles * float(plan.speed[last]))
    sm_cycles, atomic_cycles = cycles, _atomic_ns(sampler, shape.ctas, card) * clock / 1000
    cycles = max(sm_cycles, atomic_cycles)
    busy_seconds = cycles / (clock * 1e6)
    launch_seconds = _launch_seconds(card, tensor, busy_seconds)
    return Prediction(
        kernel=timed,
        card=card,
        grid=shape.grid,
        block=shape.block,
        occupancy=held,
        cycles=cycles,
        clock_mhz=clock,
        seconds=launch_seconds + busy_seconds,
        launch_seconds=launch_seconds,
        warp_instructions=float(work.sum()),
        order=order,
        sm=result,
        sm_cycles=sm_cycles,
        atomic_cycles=atomic_cycles,
        schedule=plan,
        dram_share=traffic.dram_share,
        stored_share=traffic.stored_share,
        work_error=work_error,
        stagger_spread=spread,
    )


@dataclass(frozen=True)
class _Traffic:
    """What the grid does with global memory: the parts of its sectors that come from DRAM and go there; whether it reads at all; whether
    several SMs read the same lines."""

    dram_share: float
    stored_share: float
    reads: bool
    shared: bool


def _traffic(run: GridRun, sampler: Sampler, work: Array, card: Card, warm: bool) -> _Traffic:
    """From what walked CTAs ask for and the sizes of the buffers; warm: what fits into the L2 is there."""
    buffers = sum(a.size_bytes for a in run.space.allocations if not a.constant)
    asked, stored = (each * float(work.sum()) for each in sampler.bytes_an_instruction())
    fits = buffers <= _STAYS * card["card.l2_bytes"]
    return _Traffic(
        dram_share=0.0 if warm and fits else min(1.0, buffers / max(asked, 1.0)),
        stored_share=0.0 if fits or not stored else min(1.0, buffers / stored),
        reads=asked > 0,
        shared=min(card.sms, run.shape.ctas) > 1 and asked > 2 * buffers,
    )


@dataclass(frozen=True)
class _SmModel:
    """One SM, ready to run CTAs of a grid; work: warp instructions of each. resident: that it holds at once. k: `CONSTANTS`."""

    sampler: Sampler
    work: Array
    resident: int
    k: Array

    def simulate(self, order: Sequence[int], at_once: int, *, stagger_cycles: int = 0, events: int = 0) -> SmRun:
        """Run CTAs by their numbers in the grid; stagger_cycles: between the starts of the first ones, beyond the usual."""
        sampler, k = self.sampler, self.k.copy()
        k[K_STAGGER] = stagger_cycles
        return run(sampler.records, sampler.paths, [sampler.place(cta) for cta in order], at_once, k, events=events)

    def rates(self) -> tuple[list[float], float]:
        """Warp instructions a cycle of one CTA, by how many the SM holds, and how far apart CTAs end that begin together.

        The last result is in parts of the time of one.
        """
        work, apart = self.work, 0.0
        typical = int(np.argsort(work)[len(work) // 2])
        known = {}
        for count in sorted({1, self.resident, (self.resident + 1) // 2}):
            near = [min(max(typical + i, 0), len(work) - 1) for i in range(count)]
            result = self.simulate(near, count)
            known[count] = float(np.mean([work[cta] / max(end - begin, 1) for cta, (begin, end) in zip(near, result.spans)]))
            if count == self.resident:
                apart = float(np.ptp(result.spans[:, 1]) / max(float(np.mean(np.diff(result.spans))), 1.0))
        return [float(np.interp(count, list(known), list(known.values()))) for count in range(1, self.resident + 1)], min(apart, 1.0)

    def time(self, order: list[int], budget: int, events: int) -> tuple[SmRun, float, float]:
        """What the SM does with the first of its CTAs, its cycles for all of them, and how much they depend on how it begins.

        budget: warp instructions to simulate. events: instructions to log. The last result is between the shortest and the longest time, in
        parts of the mean.
        """
        taken = self._within(order, budget)
        result = self.simulate(taken, self.resident, events=events)
        found = [self._whole(result, taken, order)]
        if self.resident > 1 and len(taken) >= 3 * self.resident:
            # CTAs that share an SM get into step with each other: how they begin decides in which
            for stagger in _STAGGERS:
                staggered = self.simulate(taken, self.resident, stagger_cycles=stagger // (self.resident - 1))
                found.append(self._whole(staggered, taken, order) - stagger / 2)
        cycles = float(np.mean(found))
        return result, cycles, (max(found) - min(found)) / cycles

    def _within(self, order: list[int], budget: int) -> list[int]:
        """The first CTAs of an SM that fit into the budget, at least so many rounds that a rate can be told."""
        taken: list[int] = []
        spent = 0.0
        for cta in order:
            if spent > budget and len(taken) >= _ROUNDS * self.resident:
                break
            taken.append(cta)
            spent += float(self.work[cta])
        return taken

    def _whole(self, result: SmRun, taken: list[int], order: list[int]) -> float:
        """Cycles of all CTAs of an SM, from those that were simulated: the rate after the first round goes on."""
        if len(taken) == len(order):
            return float(result.cycles)
        starts, ends = result.spans[:, 0], result.spans[:, 1]
        # from the end of the first round to the last start the SM is full, and out of the first round's step
        begin, end = float(np.sort(ends)[self.resident - 1]), float(starts.max())
        between = float(self.work[np.array(taken)[(ends > begin) & (ends <= end)]].sum())
        rest = float(self.work[order[len(taken) :]].sum())
        if between <= 0.0:
            return float(result.cycles) * (1.0 + rest / float(self.work[taken].sum()))
        return float(result.cycles) + rest * (end - begin) / between


def _alike(work: Array) -> float:
    """The part of the CTAs that do as much as one of them, on average: these begin and end together."""
    ordered = np.sort(work)
    near = np.searchsorted(ordered, ordered * (1 + _SAME), "right") - np.searchsorted(ordered, ordered * (1 - _SAME), "left")
    return float(np.mean(near)) / len(work)


def _atomic_ns(sampler: Sampler, ctas: int, card: Card) -> float:
    """Nanoseconds that the L2 needs for the atomic operations of the grid."""
    operations, sectors, lines = sampler.atomics(ctas)
    if not operations:
        return 0.0
    # known for 1, 8, 64... lines
    known = np.log(card["memory.atomic_ns"])
    each = float(np.exp(np.interp(math.log(max(lines, 1.0), 8), np.arange(len(known)), known)))
    return operations * each * (0.3 + 0.7 * (sectors / operations - 1) / 3)


def _launch_seconds(card: Card, tensor: bool, busy_seconds: float) -> float:
    """What comes on top of the time in which SMs are busy."""
    seconds: float = (card["launch.event_us"] + card["launch.drain_us"]) * 1e-6
    if tensor:  # the clock changes while the kernel begins
        seconds += 1e-6 * card.get("clock.tensor_switch_us", 0.0) * (1.0 - math.exp(-busy_seconds / _SWITCHING))
    return seconds
