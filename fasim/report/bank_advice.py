"""How to cure a bank conflict: the smallest padding and the swizzle that bring an access to its ideal, each verified by counting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from fasim.report.bank_access import Access, Cost, Pitch, find_pitches, given_pitch
from fasim.smem.layouts import Swizzle

#: after this many bytes of padding the banks are the same again
BANK_CYCLE_BYTES = 128
#: the bits of a byte offset from the first to below the second choose the bank
_FIRST_BANK_BIT, _END_BANK_BIT = 2, 7


@dataclass(frozen=True)
class SideEffect:
    """Another access to the same bytes that gets more conflicts by a remedy; row: its index in the report."""

    row: int
    now: Cost
    then: Cost


@dataclass(frozen=True)
class PaddingAdvice:
    """Rows of `pitch_bytes` + `padding_bytes`: what they cost for the rows seen, and what the access costs then.

    others: how many other accesses to these bytes were counted as well. harm: those of them that get worse.
    """

    pitch_bytes: int
    padding_bytes: int
    rows: int
    extra_bytes: int
    then: Cost
    others: int = 0
    harm: tuple[SideEffect, ...] = ()


@dataclass(frozen=True)
class SwizzleAdvice:
    """A swizzle of byte offsets, what it costs for the rows seen (blocks are filled up), and what the access costs then.

    align_bytes: of the buffer, so that offsets from its start may be swizzled. others, harm: as in `PaddingAdvice`.
    """

    swizzle: str
    bits: int
    base: int
    shift: int
    block_bytes: int
    align_bytes: int
    extra_bytes: int
    then: Cost
    others: int = 0
    harm: tuple[SideEffect, ...] = ()


@dataclass(frozen=True)
class Advice:
    """What helps one access; `notes` say what does not, and why.

    now: what the access costs as it is. pitch: None if no rows were recognised. unit_bytes: pieces that stay whole and aligned.
    """

    now: Cost
    pitch: Pitch | None = None
    padding: PaddingAdvice | None = None
    swizzle: SwizzleAdvice | None = None
    unit_bytes: int = 0
    notes: list[str] = field(default_factory=list)


def advise(
    access: Access, pitch_bytes: int | None = None, others: Mapping[int, Access] | None = None, alike: Sequence[Access] = ()
) -> Advice:
    """Search what brings an access to its ideal.

    pitch_bytes: the distance of the rows, where the caller knows it. others: more accesses of the kernel by their rows in the report;
    those to the same bytes keep their alignment, and remedies that spare them are preferred. alike: the same access at other places,
    as in an unrolled loop, which a swizzle brings to its ideal as well.
    """
    now = access.count()
    if now.ideal:
        return Advice(now, notes=["nothing to cure: this access is at its ideal"])
    same_bytes = {row: other for row, other in (others or {}).items() if access.overlaps(other)}
    unit_bytes = max(each.access_bytes for each in (access, *same_bytes.values()))
    pitches = find_pitches(access) if pitch_bytes is None else given_pitch(access, pitch_bytes)
    notes = []
    padding, pitch = None, pitches[0] if pitches else None
    for candidate in pitches:
        if padding := smallest_padding(access, candidate, unit_bytes, same_bytes):
            pitch = candidate
            break
    if not pitches and pitch_bytes is None:
        notes.append("no padding: the offsets of the lanes form no rows of a constant pitch (--pitch BYTES gives one)")
    elif not pitches:
        notes.append(f"no padding: all lanes are in one row of {pitch_bytes:,} bytes")
    elif padding is None:
        tried = ", ".join(f"{each.pitch_bytes:,}" for each in pitches)
        notes.append(f"no padding: none up to {BANK_CYCLE_BYTES} bytes after rows of {tried} bytes brings the access to its ideal")
    swizzle = smallest_swizzle(access, pitch, unit_bytes, same_bytes, alike)
    if swizzle is None:
        notes.append(f"no swizzle: no Swizzle<B,M,S> that keeps {unit_bytes} bytes together brings the access to its ideal")
    if access.op.startswith("LDGSTS.cg"):
        notes.append("the hardware's conflict counter is 0 for these copies; the source page alone counts more than the ideal")
    if access.op.startswith("LDGSTS.ca") and access.count([lane * access.access_bytes for lane in range(32)]).conflicts:
        notes.append("the global addresses that are read collide in the banks of L1, which no layout of shared memory changes")
    if shared := _same_address(access):
        notes.append(f"{shared}; such updates are served one after the other in every layout")
    return Advice(now, pitch, padding, swizzle, unit_bytes, notes)


def _same_address(access: Access) -> str:
    """Who meets at one address, for operations that serve such lanes one after the other."""
    offsets = [access.byte_offsets[lane] for lane in access.lanes]
    most = max(offsets, key=offsets.count, default=0)
    if not access.op.startswith(("ATOMS", "RED")) or offsets.count(most) < 2:
        return ""
    return f"{offsets.count(most)} lanes update the same address ({most})"


def _count(access: Access, move: Callable[[int], int]) -> Cost | None:
    """What an access costs when all offsets move, None if it would be misaligned."""
    moved = [move(offset) for offset in access.byte_offsets]
    return None if any(moved[lane] % access.access_bytes for lane in access.lanes) else access.count(moved)


def _harm(others: Mapping[int, Access], move: Callable[[int], int]) -> tuple[SideEffect, ...] | None:
    """The accesses that have more conflicts when all offsets move; None if one would be misaligned."""
    effects = []
    for row, other in others.items():
        now, then = other.count(), _count(other, move)
        if then is None:
            return None
        if then.conflicts > now.conflicts:
            effects.append(SideEffect(row, now, then))
    return tuple(effects)


def smallest_padding(access: Access, pitch: Pitch, unit_bytes: int = 1, others: Mapping[int, Access] | None = None) -> PaddingAdvice | None:
    """The fewest bytes after each row that bring the access to its ideal, None if there are none.

    The new pitch is a multiple of unit_bytes. If every such padding harms one of the others, the smallest is returned all the same.
    """
    step, found = max(unit_bytes, access.access_bytes), None
    for padding in range(step - pitch.pitch_bytes % step, BANK_CYCLE_BYTES + 1, step):
        move = partial(pitch.moved, pitch_bytes=pitch.pitch_bytes + padding)
        then = _count(access, move)
        if then is None or not then.ideal or (harm := _harm(others or {}, move)) is None:
            continue
        advice = PaddingAdvice(pitch.pitch_bytes, padding, pitch.rows, pitch.rows * padding, then, len(others or {}), harm)
        if not harm:
            return advice
        found = found or advice
    return found


def smallest_swizzle(
    access: Access,
    pitch: Pitch | None,
    unit_bytes: int = 1,
    others: Mapping[int, Access] | None = None,
    alike: Sequence[Access] = (),
) -> SwizzleAdvice | None:
    """The swizzle of the fewest bits that brings the access to its ideal, also at other columns and at the next rows; None if none does.

    Pieces of unit_bytes stay whole. alike: more accesses that must come to their ideal. If every such swizzle harms one of the others,
    the first is returned all the same.
    """
    offsets, found = access.offsets, None
    shifts = _translations(access, pitch)
    for swizzle in _swizzles(offsets, max(unit_bytes, access.access_bytes)):
        then = access.count([swizzle(offset) for offset in access.byte_offsets])
        if not then.ideal or (harm := _harm(others or {}, swizzle)) is None:
            continue
        if not all(access.count([swizzle(offset + by) for offset in access.byte_offsets]).ideal for by in shifts):
            continue
        if not all(each.count([swizzle(offset) for offset in each.byte_offsets]).ideal for each in alike):
            continue
        extent = pitch.rows * pitch.pitch_bytes if pitch else offsets[-1] + access.access_bytes - offsets[0]
        advice = SwizzleAdvice(
            swizzle.name,
            swizzle.bits,
            swizzle.base,
            swizzle.shift,
            swizzle.block_bytes,
            swizzle.period_bytes,
            -extent % swizzle.block_bytes,
            then,
            len(others or {}),
            harm,
        )
        if not harm:
            return advice
        found = found or advice
    return found


def _swizzles(offsets: list[int], unit_bytes: int) -> Iterator[Swizzle]:
    """What may change banks, few bits first: from bits in which the offsets differ into those that choose the bank."""
    differing = 0
    for offset in offsets:
        differing |= offset ^ offsets[0]
    lowest = max(_FIRST_BANK_BIT, (unit_bytes - 1).bit_length())
    for bits in range(1, _END_BANK_BIT - lowest + 1):
        for base in range(lowest, _END_BANK_BIT - bits + 1):
            for shift in range(bits, max(differing.bit_length() - base, bits)):
                if differing >> (base + shift) & ((1 << bits) - 1):
                    yield Swizzle(bits, base, shift)


def _translations(access: Access, pitch: Pitch | None) -> list[int]:
    """By how much the access moves to the other columns of its rows, and to the rows below."""
    if pitch is None or pitch.pitch_bytes & (pitch.pitch_bytes - 1):
        return []
    width = pitch.columns[-1] - pitch.columns[0] + access.access_bytes
    places = range(pitch.columns[0] % width, pitch.pitch_bytes - width + 1, width)
    return [place - pitch.columns[0] + row for row in (0, pitch.rows * pitch.pitch_bytes) for place in places]
