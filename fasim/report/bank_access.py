"""One execution of a shared-memory access: what it costs at these offsets or at others, and the rows that it touches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fasim.smem.wavefronts import Wavefronts, count_wavefronts, operation

#: how much of the grid rows x columns the lanes must cover so that the grid is believed
_LEAST_COVERAGE = 0.75


@dataclass(frozen=True)
class Cost:
    """What one execution costs: as the hardware counters have it, and as ncu's source page does."""

    wavefronts: int
    conflicts: int
    source_wavefronts: int
    source_ideal: int

    @staticmethod
    def of(found: Wavefronts) -> Cost:
        """The figures of a count."""
        return Cost(found.actual, found.conflicts, found.source_actual, found.source_ideal)

    @property
    def ideal(self) -> bool:
        """Whether neither the hardware counter nor the source page sees a conflict."""
        return self.conflicts == 0 and self.source_wavefronts <= self.source_ideal


@dataclass(frozen=True)
class Access:
    """One execution of one operation, as `count_wavefronts` takes it."""

    op: str
    byte_offsets: tuple[int, ...]
    active_mask: int = 0xFFFFFFFF
    arch: str = "sm_90"
    source_addresses: tuple[int, ...] = ()

    @property
    def access_bytes(self) -> int:
        """Bytes of a lane, and the alignment of its offset."""
        return operation(self.op).lane_bytes

    @property
    def lanes(self) -> tuple[int, ...]:
        """Lanes whose offsets count."""
        return tuple(lane for lane in range(operation(self.op).lanes) if self.active_mask >> lane & 1)

    @property
    def offsets(self) -> list[int]:
        """The distinct byte offsets, ascending."""
        return sorted({self.byte_offsets[lane] for lane in self.lanes})

    def count(self, offsets: Sequence[int] | None = None) -> Cost:
        """Wavefronts of the access, or of the same at other offsets."""
        sources = self.source_addresses or None
        return Cost.of(count_wavefronts(self.op, self.byte_offsets if offsets is None else offsets, self.active_mask, self.arch, sources))

    def overlaps(self, other: Access) -> bool:
        """Whether the ranges from the first to the last byte of two accesses have bytes in common."""
        mine, theirs = self.offsets, other.offsets
        if not mine or not theirs:
            return False
        return mine[0] < theirs[-1] + other.access_bytes and theirs[0] < mine[-1] + self.access_bytes


@dataclass(frozen=True)
class Pitch:
    """Rows that an access touches: `base` is where the first row starts, `rows` counts from the first to the last row seen.

    columns: offsets within a row of what is touched. whole: every row that is touched at all is touched in every column.
    """

    pitch_bytes: int
    base: int
    rows: int
    columns: tuple[int, ...]
    whole: bool

    def moved(self, offset: int, pitch_bytes: int) -> int:
        """Where a byte goes when the pitch changes."""
        row, column = divmod(offset - self.base, self.pitch_bytes)
        return self.base + row * pitch_bytes + column


def find_pitches(access: Access) -> list[Pitch]:
    """The pitches that fit the offsets, most plausible first.

    Rows and columns that the lanes cover without exception come before those that they cover almost, rows without gaps before others,
    and small pitches before large ones. The first row is taken to start at a multiple of the pitch where that fits.
    """
    offsets = access.offsets
    differences = {b - a for i, a in enumerate(offsets) for b in offsets[i + 1 :]}
    ranked = []
    for pitch_bytes in differences:
        if pitch_bytes <= access.access_bytes or pitch_bytes % access.access_bytes:
            continue
        places = {divmod(offset - offsets[0], pitch_bytes) for offset in offsets}
        rows, columns = {row for row, _ in places}, {column for _, column in places}
        filled = len(columns) * access.access_bytes == pitch_bytes  # then the offsets do not show where a row ends
        if filled or len(rows) < 2 or max(columns) + access.access_bytes > pitch_bytes:
            continue
        coverage, gaps = len(places) / (len(rows) * len(columns)), max(rows) + 1 != len(rows)
        if coverage == 1 or (coverage >= _LEAST_COVERAGE and not gaps and 2 * len(columns) <= len(offsets)):
            aligned = offsets[0] % pitch_bytes
            before = aligned if aligned + max(columns) + access.access_bytes <= pitch_bytes else 0
            ranked.append((coverage < 1, gaps, pitch_bytes, _pitch(offsets, pitch_bytes, offsets[0] - before)))
    return [pitch for *_, pitch in sorted(ranked, key=lambda entry: entry[:3])]


def given_pitch(access: Access, pitch_bytes: int) -> list[Pitch]:
    """Rows of a pitch that the caller knows, which start at multiples of it; empty if the access stays within one row."""
    offsets = access.offsets
    found = _pitch(offsets, pitch_bytes, offsets[0] // pitch_bytes * pitch_bytes)
    return [found] if found.rows > 1 else []


def _pitch(offsets: Sequence[int], pitch_bytes: int, base: int) -> Pitch:
    places = {divmod(offset - base, pitch_bytes) for offset in offsets}
    rows, columns = {row for row, _ in places}, {column for _, column in places}
    return Pitch(pitch_bytes, base, max(rows) - min(rows) + 1, tuple(sorted(columns)), len(places) == len(rows) * len(columns))
