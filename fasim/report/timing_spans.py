"""From the log of a simulated SM to what its pipes and warps do when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fasim.errors import UsageError

if TYPE_CHECKING:
    from fasim.sm.timing.predict import Prediction

Array = np.ndarray[Any, Any]
SUB_PARTITIONS = 4
ISSUE, LSU = "issue", "lsu"
_CYCLE, _SUB, _WARP, _INSTRUCTION, _CTA = range(5)


@dataclass(frozen=True)
class Span:
    """A pipe of a sub-partition, or its issue slot, taken from `start` to `end` (cycles) by an instruction.

    warp: its slot in the SM. instruction: number in the machine code. cta: place in the SM's order.
    """

    start: float
    end: float
    sub_partition: int
    pipe: str
    warp: int
    instruction: int
    cta: int


@dataclass(frozen=True)
class Issue:
    """An instruction of a warp: issued at `start`; `end` is when the warp issues its next one, or the cycle after. See Span."""

    start: int
    end: int
    sub_partition: int
    warp: int
    instruction: int
    cta: int


def logged_cycles(found: Prediction) -> int:
    """Up to which cycle the log is complete.

    Raises: UsageError if there is no log.
    """
    events = found.sm.events
    if not len(events):
        raise UsageError("this prediction has no log of instructions")
    return found.sm.cycles + 1 if len(events) >= found.sm.instructions else int(events[-1, _CYCLE])


def pipe_spans(found: Prediction) -> Iterator[Span]:
    """Each logged instruction in the issue slot, and in the pipe that it takes.

    A pipe is taken as long as its interval says, after what it does already. "lsu": the cycle in which an instruction goes into the queue
    of the load-store unit.
    """
    from fasim.sm.timing.classes import FMA_HEAVY, FMA_LITE, NONE, PIPES
    from fasim.sm.timing.classes import LSU as LSU_PIPE
    from fasim.sm.timing.record import I_BOTH, I_INTERVAL, I_PIPE, PARTS

    records = found.kernel.records
    free = np.zeros((SUB_PARTITIONS, len(PIPES)))
    for cycle, sub, warp, number, cta in found.sm.events.tolist():
        yield Span(cycle, cycle + 1, sub, ISSUE, warp, number, cta)
        pipe, both = int(records[number, I_PIPE]), int(records[number, I_BOTH])
        length = 1.0 if pipe == LSU_PIPE else float(records[number, I_INTERVAL]) / PARTS
        if pipe == NONE or not length:
            continue
        pipes = [pipe]
        if pipe == FMA_HEAVY and both == 1:
            pipes = [FMA_HEAVY, FMA_LITE]
        elif pipe == FMA_HEAVY and both == 2 and free[sub, FMA_LITE] <= free[sub, FMA_HEAVY]:
            pipes = [FMA_LITE]
        start = max(float(cycle), *(free[sub, each] for each in pipes))
        for each in pipes:
            free[sub, each] = start + length
            yield Span(start, start + length, sub, PIPES[each], warp, number, cta)


def warp_issues(found: Prediction) -> Iterator[Issue]:
    """The logged instructions of each warp, in the order in which they end."""
    pending: dict[int, list[int]] = {}
    for row in found.sm.events.tolist():
        before = pending.get(row[_WARP])
        if before is not None:
            end = row[_CYCLE] if before[_CTA] == row[_CTA] else before[_CYCLE] + 1
            yield Issue(before[_CYCLE], end, before[_SUB], before[_WARP], before[_INSTRUCTION], before[_CTA])
        pending[row[_WARP]] = row
    for last in pending.values():
        yield Issue(last[_CYCLE], last[_CYCLE] + 1, last[_SUB], last[_WARP], last[_INSTRUCTION], last[_CTA])


def used_pipes(spans: Sequence[Span]) -> list[str]:
    """The pipes among spans, in the order in which a chart has them."""
    from fasim.sm.timing.classes import PIPES

    used = {span.pipe for span in spans}
    return [pipe for pipe in (ISSUE, *PIPES) if pipe in used]
