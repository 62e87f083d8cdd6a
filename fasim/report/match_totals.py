"""Totals of the hardware counters on both sides, and how much of their difference is accounted for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fasim.report.match import EQUAL, KNOWN, MISMATCH, MOVED, NOT_COUNTED, TURNS, Item, Match
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
#: what else uses the pipe of shared memory at the same time, so that the hardware's counters hold arbitration too
_CROWDS = {"ctas": "other CTAs on the SM", "local": "local memory (spilled registers)"}
#: what a lone CTA's warps may add by meeting in the pipe: part of what was measured, or a few
_STRAY_PART, _STRAY = 0.02, 4
_SWAPS = ("ATOMS.cas", "ATOMS.cast")
#: groups of lanes that an access with all lanes is served in, by bytes a lane
_GROUPS = {8: 2, 16: 4}


@dataclass(frozen=True)
class ComparedTotal:
    """A counter over the launch, under ncu's name.

    explained: measured minus simulated over the accesses that ptxas changed; rest: what remains of the difference.
    verdict: `equal`; `explained`: by the rows that are accounted for, of which there are `lines`; `noise`: arbitration with other CTAs
    on the SM, with accesses to local memory or, up to 2 % or 4, between warps of a CTA: the hardware counts it in wavefronts and conflicts
    alike; `turns`: the kernel repeats atomics until they succeed, which each pass of ncu saw differently; `MISMATCH`. why: in words.
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
    changed = [match for match in matches if match.verdict in KNOWN]
    crowd = [_CROWDS["ctas"]] * ctas_share_sm + [_CROWDS["local"]] * _uses_local(profile)
    for at, pattern in enumerate((_WAVEFRONTS, _CONFLICTS)):
        for kind in ("ld", "st", "atom"):
            name, other = pattern.format(kind), (_CONFLICTS, _WAVEFRONTS)[at].format(kind)
            if name in profile.counters and name in result.totals:
                change, twin = _hardware(changed, kind, at), _hardware(changed, kind, 1 - at)
                rest = int(profile.counters[name]) - result.totals[name] - change.difference
                twin_rest = int(profile.counters.get(other, 0)) - result.totals.get(other, 0) - twin.difference
                exact = (change.low, change.high, twin.low, twin.high) == (0, 0, 0, 0)
                measured = int(profile.counters[name])
                wavefronts = int(profile.counters.get(_WAVEFRONTS.format(kind), 0))
                noise = crowd or ["warps of the same CTA"] * (0 < rest <= max(_STRAY, _STRAY_PART * wavefronts))
                noise = noise if rest == twin_rest or not exact else []
                yield _judge(name, result.totals[name], measured, change, noise, turns=_other_turns(matches))
    for name, (field, machine_field) in _SOURCE_PAGE.items():
        if name in result.totals and profile.instructions:
            measured = sum(getattr(x, machine_field) for x in profile.instructions)
            yield _judge(name, result.totals[name], measured, _source_page(changed, field), [], turns=False)


def _uses_local(profile: Profile) -> bool:
    """Whether the machine code accessed local memory."""
    return any(x.executions and x.opcode.split(".")[0] in ("LDL", "STL") for x in profile.instructions)


def _other_turns(matches: Sequence[Match]) -> bool:
    """Whether atomics were repeated another number of times, as at a lock, where that depends on who wins."""
    atomics = (match for match in matches if match.verdict in (MOVED, NOT_COUNTED))
    return any(match.verdict == TURNS for match in matches) or any(match.simulated[0].name == "shared atomic" for match in atomics)


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


def _judge(name: str, simulated: int, measured: int, change: _Change, crowd: Sequence[str], *, turns: bool) -> ComparedTotal:
    """crowd: what can have added noise to this counter. turns: warps take turns, each time in another order."""
    rest = measured - simulated - change.difference
    verdict, why = EQUAL, ""
    by = f"by {change.lines} line{'s' * (change.lines != 1)} shown above"
    if rest == 0 and change.difference:
        verdict, why = EXPLAINED, by
    elif rest and change.low <= rest <= change.high:
        verdict, why = EXPLAINED, f"{by}, whose hardware figures the source page gives to within {change.low:+,} and {change.high:+,}"
    elif rest and turns:
        verdict, why = TURNS, f"atomics are repeated until they succeed, and ncu took this in another pass than the lines: {rest:+,}"
    elif rest > 0 and crowd:
        verdict, why = NOISE, f"arbitration with {' and '.join(crowd)} adds {rest:,}, {100 * rest / measured:.3g} % of what was measured"
        why += f"; {change.difference:+,} {by}" if change.difference else ""
    elif rest:
        verdict, why = MISMATCH, "less than simulated, but noise only adds" if rest < 0 else "nothing that could add noise was there"
    return ComparedTotal(name, simulated, measured, change.difference, rest, change.lines, verdict, why)
