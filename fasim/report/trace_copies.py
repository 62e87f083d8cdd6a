"""Groups of `cp.async`, followed event by event: from the first copy to after the wait that makes its bytes valid."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fasim.sm.findings import lanes_of
from fasim.trace.event import Event
from fasim.trace.view import StateView, joined_ranges


@dataclass(frozen=True)
class Copy:
    """A cp.async of one group.

    path, step: of the instruction. size_bytes, ranges: what it copies, and where to in shared memory (joined, ends excluded). source: the
    buffer in global memory that its first lane reads, "" for none.
    """

    position: int
    path: tuple[tuple[str, int], ...]
    step: str
    size_bytes: int
    ranges: tuple[tuple[int, int], ...]
    source: str


@dataclass
class TracedGroup:
    """A group of one warp. committed: the position of its commit; end: after the wait that covers it; -1 until they are known."""

    number: int
    warp: int
    copies: list[Copy] = field(default_factory=list)
    committed: int = -1
    end: int = -1

    @property
    def first(self) -> int:
        """The position of its first copy."""
        return self.copies[0].position


class TracedCopies:
    """The groups of a CTA that are on their way; it has to be told of all copies, commits and waits, in order."""

    def __init__(self) -> None:
        self._groups: dict[tuple[int, int], TracedGroup] = {}

    def __iter__(self) -> Iterator[TracedGroup]:
        """Those on their way, in the order of their first copies."""
        return iter(self._groups.values())

    def note(self, event: Event, state: StateView) -> list[TracedGroup]:
        """Take note of an event. state: that after it. Returns: the groups that have arrived with it."""
        warp = event.warp
        if event.kind == "cp_async" and event.access is not None:
            for number, lanes in copy_groups_of(event, state).items():
                group = self._groups.setdefault((warp, number), TracedGroup(number, warp))
                group.copies.append(_copy(event, lanes_of(lanes), state))
        elif event.kind == "cp_commit" and event.copies is not None:
            committed = self._groups.get((warp, event.copies.group))
            if committed is not None:
                committed.committed = event.position
        elif event.kind == "cp_wait" and event.executed:
            left = {group.number for group in state.copy_groups(warp)}
            arrived = [group for group in self if group.warp == warp and group.number not in left]
            for group in arrived:
                group.end = event.position + 1
                del self._groups[warp, group.number]
            return arrived
        return []


def _copy(event: Event, lanes: tuple[int, ...], state: StateView) -> Copy:
    access = event.access
    assert access is not None
    size, source = access.bytes_per_lane, state.buffer_at(access.sources[lanes[0]])
    ranges = joined_ranges([(access.addresses[lane], access.addresses[lane] + size) for lane in lanes])
    return Copy(event.position, event.path, event.step, size * len(lanes), ranges, source[0] if source is not None else "")


def copy_groups_of(event: Event, state: StateView) -> dict[int, int]:
    """The groups that a cp.async belongs to, with their lanes; none of other instructions. state: that after it."""
    found: dict[int, int] = {}
    if event.kind == "cp_async" and event.access is not None:
        committed = state.committed_groups(event.warp)
        for lane in lanes_of(event.access.lanes):
            found[committed[lane]] = found.get(committed[lane], 0) | 1 << lane
    return found
