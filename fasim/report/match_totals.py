"""Totals of the hardware counters on both sides, and how much of their difference is accounted for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fasim.report.match import BY_PTXAS, EQUAL, MISMATCH, Item, Match
from fasim.report.measured import Profile
from fasim.sm.result import LaunchResult

EXPLAINED, NOISE = "explained", "noise"
_WAVEFRONTS = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{}.sum"
_CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_{}.sum"
#: totals of the source page: our field, that of a machine instruction
_SOURCE_PAGE = {
    "memory_l1_wavefronts_shared": ("wavefronts", "wavefronts_shared"),
    "memory_l1_wavefronts_shared_ideal": ("ideal", "wavefronts_shared_ideal"),
}
#: why a difference is no noise, by whether CTAs can share an SM; None where there is no noise at all
_NO_NOISE = {
    None: "the source page has no noise",
    False: "at most one CTA was on an SM: this is no noise",
    True: "less than simulated, but noise only adds",
}
_SWAPS = ("ATOMS.cas", "ATOMS.cast")
#: groups of lanes that an access with all lanes is served in, by bytes a lane
_GROUPS = {8: 2, 16: 4}


@dataclass(frozen=True)
class ComparedTotal:
    """A counter over the launch, under ncu's name.

    explained: measured minus simulated over the accesses that ptxas changed; rest: what remains of the difference.
    verdict: `equal`; `explained`: by the rows that ptxas changed, of which there are `lines`; `noise`: arbitration between CTAs on one SM;
    `MISMATCH`. why: in words.
    """

    name: str
    simulated: int
    measured: int
    explained: int
    rest: int
    lines: int
    verdict: str
    why: str


@dataclass(frozen=True)
class _Change:
    """What ptxas changed in a counter: the difference, and how far it may be off, as the source page does not tell it exactly."""

    difference: int = 0
    low: int = 0
    high: int = 0
    lines: int = 0


def compare_totals(result: LaunchResult, profile: Profile, matches: Sequence[Match], *, ctas_share_sm: bool) -> Iterator[ComparedTotal]:
    """The counters of shared memory that both sides have."""
    changed = [match for match in matches if match.verdict in BY_PTXAS]
    for at, pattern in enumerate((_WAVEFRONTS, _CONFLICTS)):
        for kind in ("ld", "st", "atom"):
            name = pattern.format(kind)
            if name in profile.counters and name in result.totals:
                yield _judge(name, result.totals[name], int(profile.counters[name]), _hardware(changed, kind, at), ctas_share_sm)
    for name, (field, machine_field) in _SOURCE_PAGE.items():
        if name in result.totals and profile.instructions:
            measured = sum(getattr(x, machine_field) for x in profile.instructions)
            yield _judge(name, result.totals[name], measured, _source_page(changed, field), None)


def _lines(matches: Iterable[Match]) -> int:
    return len({place for match in matches for place in match.places})


def _source_page(changed: Sequence[Match], field: str) -> _Change:
    difference, touched = 0, []
    for match in changed:
        here = sum(getattr(x, field) for x in match.measured) - sum(getattr(x, field) for x in match.simulated)
        difference += here
        touched += [match] if here else []
    return _Change(difference, lines=_lines(touched))


def _hardware(changed: Sequence[Match], kind: str, at: int) -> _Change:
    """at: 0 for wavefronts, 1 for conflicts."""
    difference, low, high, touched = 0, 0, 0, []
    for match in changed:
        before = low, high
        here = -sum(x.hardware[at] for x in match.simulated if x.counted_in == kind)
        for item in match.measured:
            if item.counted_in == kind:
                figure, below, above = _hardware_figure(item, at)
                here, low, high = here + figure, low + below, high + above
        difference += here
        touched += [match] if here or (low, high) != before else []
    return _Change(difference, low, high, _lines(touched))


def _hardware_figure(item: Item, at: int) -> tuple[int, int, int]:
    """What the source page says about a hardware counter, and how much less and more it may be.

    Loads of 64 and 128 bits can merge, which the two count differently; conflicts are wavefronts less one for each group of lanes that
    takes part, which is the ideal of the source page if all lanes do. Compare-and-swap has two wavefronts for one conflict.
    """
    conflicts = item.wavefronts - item.ideal
    if item.op.startswith(_SWAPS) and at == 1:
        return conflicts, -conflicts, 0
    groups = _GROUPS.get(item.lane_bytes, 1) * item.executions if item.name in ("shared load", "shared store") else 0
    merging = groups if item.name == "shared load" and item.lane_bytes in _GROUPS else 0
    if at == 0:
        return item.wavefronts, -merging, merging
    fewer = 0 if item.all_lanes or item.lane_bytes not in _GROUPS else -max(groups - item.ideal, 0)
    return conflicts, fewer - merging, merging


def _judge(name: str, simulated: int, measured: int, change: _Change, ctas_share_sm: bool | None) -> ComparedTotal:
    """ctas_share_sm: None for a counter without noise."""
    rest = measured - simulated - change.difference
    verdict, why = EQUAL, ""
    by = f"by {change.lines} line{'s' * (change.lines != 1)} that ptxas changed"
    if rest == 0 and change.difference:
        verdict, why = EXPLAINED, by
    elif rest and change.low <= rest <= change.high:
        verdict, why = EXPLAINED, f"{by}, whose hardware figures the source page gives to within {change.low:+,} and {change.high:+,}"
    elif rest > 0 and ctas_share_sm:
        verdict, why = NOISE, f"arbitration between CTAs on one SM adds {rest:,}, {100 * rest / measured:.3g} % of what was measured"
        why += f"; {change.difference:+,} {by}" if change.difference else ""
    elif rest:
        verdict = MISMATCH
        why = _NO_NOISE[ctas_share_sm]
    return ComparedTotal(name, simulated, measured, change.difference, rest, change.lines, verdict, why)
