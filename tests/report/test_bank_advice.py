"""Padding and swizzles that cure conflicts: the smallest ones, and never one that counting does not confirm."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasim.report.bank_access import Access, find_pitches, given_pitch
from fasim.report.bank_advice import advise
from fasim.smem.layouts import Swizzle
from fasim.smem.wavefronts import OPERATIONS, count_wavefronts
from tests.report.accesses import COLUMN, MATRICES, ROW, access

# access, pitch found, padding, its bytes for the rows seen, swizzle
CURES = {
    "column of floats": (COLUMN, 128, 4, 128, "Swizzle<5,2,5>"),
    "half a warp": (access("LDS.32", lambda lane: 128 * lane, 0x0000FFFF), 128, 4, 64, "Swizzle<4,2,5>"),
    "column in the middle": (access("STS.32", lambda lane: 128 * lane + 52), 128, 4, 128, "Swizzle<5,2,5>"),
    "column of doubles": (access("LDS.64", lambda lane: 256 * lane), 256, 8, 256, "Swizzle<4,3,5>"),
    "column of float4": (access("STS.128", lambda lane: 128 * lane), 128, 16, 512, "Swizzle<3,4,3>"),
    "column of bytes": (access("LDS.U8", lambda lane: 64 * lane), 64, 2, 64, "Swizzle<4,2,5>"),
    "every other word": (access("LDS.32", lambda lane: 8 * lane), 8, 4, 128, "Swizzle<1,2,5>"),
    "ldmatrix, rows of 128": (MATRICES, 128, 16, 256, "Swizzle<3,4,3>"),
    "ldmatrix, rows of 256": (access("LDSM.x4.T", lambda lane: 256 * (lane % 16) + 16 * (lane // 16)), 256, 16, 256, "Swizzle<3,4,4>"),
    "ldmatrix, rows of 64": (access("LDSM.x4", lambda lane: 64 * (lane % 16) + 16 * (lane // 16)), 64, 16, 256, "Swizzle<2,4,3>"),
    "two matrices far apart": (access("LDSM.x2", lambda lane: 128 * (lane % 8) + 2048 * (lane // 8 % 2)), 128, 16, 384, "Swizzle<3,4,3>"),
    "fragment by words": (access("LDS.32", lambda lane: 128 * (lane // 4) + 4 * (lane % 4)), 128, 16, 128, "Swizzle<3,4,3>"),
    "rows of ten floats": (access("LDS.32", lambda lane: 160 * lane), 160, 4, 128, "Swizzle<3,2,5>"),
    "copies into a column": (access("LDGSTS.ca4", lambda lane: 128 * lane), 128, 4, 128, "Swizzle<5,2,5>"),
    "atomics on a column": (access("ATOMS.add", lambda lane: 128 * lane), 128, 4, 128, "Swizzle<5,2,5>"),
}


def at(found: Access, move) -> tuple[int, int, int]:
    """Conflicts and the source page's figures with all offsets moved, counted without the code under test."""
    moved = count_wavefronts(found.op, [move(offset) for offset in found.byte_offsets], found.active_mask)
    return moved.conflicts, moved.source_actual, moved.source_ideal


@pytest.mark.parametrize("name", CURES)
def test_smallest_cures(name):
    found, pitch, padding, extra, swizzle = CURES[name]
    advice = advise(found)
    assert not advice.now.ideal and advice.notes == []
    assert (advice.pitch.pitch_bytes, advice.padding.padding_bytes, advice.padding.extra_bytes) == (pitch, padding, extra)
    assert (advice.swizzle.swizzle, advice.swizzle.extra_bytes) == (swizzle, 0)
    assert advice.padding.then.ideal and advice.swizzle.then.ideal
    base = min(found.byte_offsets) // pitch * pitch
    for bytes_ in range(0, padding + 1, found.access_bytes):
        conflicts, actual, ideal = at(found, lambda o, p=pitch + bytes_: base + (o - base) // pitch * p + (o - base) % pitch)
        assert (conflicts == 0 and actual == ideal) == (bytes_ == padding)
    conflicts, actual, ideal = at(found, Swizzle.parse(swizzle))
    assert (conflicts, actual) == (0, ideal)


@pytest.mark.parametrize("column_bytes", range(0, 128, 32))
@pytest.mark.parametrize("row", [0, 16, 40])
def test_a_swizzle_holds_for_the_other_columns_and_rows(column_bytes, row):
    turn = Swizzle.parse(advise(MATRICES).swizzle.swizzle)
    assert at(MATRICES, lambda o: turn(o - 1024 + 128 * row + column_bytes))[0] == 0


def test_no_rows_no_padding():
    scattered = [1136, 488, 264, 1096, 3780, 2340, 2668, 604, 2064, 208, 3984, 1796, 3360, 3968, 1472, 1880, 4036, 3260, 3916, 360, 1744]
    scattered += [284, 2952, 3132, 3596, 1580, 1728, 2028, 1616, 1664, 2628, 3460]
    advice = advise(Access("LDS.32", tuple(scattered)))
    assert (advice.pitch, advice.padding, advice.swizzle) == (None, None, None)
    assert advice.notes == [
        "no padding: the offsets of the lanes form no rows of a constant pitch (--pitch BYTES gives one)",
        "no swizzle: no Swizzle<B,M,S> that keeps 4 bytes together brings the access to its ideal",
    ]


def test_rows_that_no_padding_cures():
    advice = advise(access("LDS.32", lambda lane: 128 * (lane // 4) + 16 * (lane % 4)))
    assert advice.pitch.pitch_bytes == 128 and advice.padding is None and advice.swizzle is None
    assert (
        advice.notes[0] == "no padding: none up to 128 bytes after rows of 128, 256, 512, 16, 32, 384 bytes brings the access to its ideal"
    )


def test_one_address_is_no_matter_of_layout():
    advice = advise(access("ATOMS.add", lambda lane: 64))
    assert (advice.padding, advice.swizzle) == (None, None)
    assert advice.notes[-1] == "32 lanes update the same address (64); such updates are served one after the other in every layout"


def test_copies_past_l1_have_no_conflicts_in_hardware():
    found = access("LDGSTS.cg16", lambda lane: 144 * (lane // 8) + 16 * (lane % 8), source_addresses=tuple(range(0, 512, 16)))
    advice = advise(found)
    assert advice.now.conflicts == 0 and advice.now.source_wavefronts > advice.now.source_ideal == 4
    assert advice.notes[-1].startswith("the hardware's conflict counter is 0 for these copies")
    # rows of 256 bytes begin in one line each
    assert (advice.padding.padding_bytes, advice.padding.then.source_wavefronts) == (112, 4)


def test_copies_from_colliding_addresses():
    column = tuple(range(0, 32 * 128, 128))
    advice = advise(access("LDGSTS.ca4", lambda lane: 4 * lane, source_addresses=column))
    assert (advice.now.conflicts, advice.padding, advice.swizzle) == (31, None, None)
    assert advice.notes[-1] == "the global addresses that are read collide in the banks of L1, which no layout of shared memory changes"


def test_an_ideal_access_gets_no_advice():
    assert advise(ROW).notes == ["nothing to cure: this access is at its ideal"]
    assert advise(access("LDS.32", lambda lane: 0)).padding is None


def test_a_given_pitch():
    found = access("LDS.32", lambda lane: 8 * lane)
    assert (given_pitch(found, 128)[0].rows, given_pitch(found, 512)) == (2, [])
    advice = advise(found, pitch_bytes=128)
    assert (advice.padding.pitch_bytes, advice.padding.padding_bytes, advice.padding.extra_bytes) == (128, 4, 8)
    assert advise(found, pitch_bytes=1024).notes[0] == "no padding: all lanes are in one row of 1,024 bytes"


def test_other_accesses_keep_their_alignment():
    wide = access("STS.128", lambda lane: 16 * lane)
    advice = advise(COLUMN, others={3: wide})
    # pieces of 16 bytes have only 8 places in 32 banks, so a column of 32 words cannot be spread
    assert advice.unit_bytes == 16 and advice.padding is None and advice.swizzle is None
    elsewhere = access("STS.128", lambda lane: 8192 + 16 * lane)
    assert advise(COLUMN, others={3: elsewhere}).padding.padding_bytes == 4


FRAGMENT = access("LDS.32", lambda lane: 128 * (lane // 4) + 4 * (lane % 4))


def skewed(chunks: tuple[int, ...]) -> Access:
    """Four lanes a row, each row at a 16-byte chunk of its own: without conflicts in rows of 128 bytes."""
    return access(
        "LDS.32", lambda lane: 128 * (lane // 4) + 16 * (*chunks, *[0] * 8)[lane // 4] + 4 * (lane % 4), (1 << 4 * len(chunks)) - 1
    )


def test_a_padding_that_spares_the_others_is_preferred():
    other = skewed((1, 0, 2, 3))
    assert other.count().ideal and advise(FRAGMENT).padding.padding_bytes == 16
    advice = advise(FRAGMENT, others={4: other})
    assert (advice.padding.padding_bytes, advice.padding.others, advice.padding.harm) == (48, 1, ())
    # rows 0 and 1 change places with each other's chunk
    (effect,) = advice.swizzle.harm
    assert (advice.swizzle.swizzle, effect.row, effect.now.conflicts, effect.then.conflicts) == ("Swizzle<3,4,3>", 4, 0, 1)


def test_harm_is_told_if_nothing_spares_the_others():
    advice = advise(FRAGMENT, others={4: ROW, 9: skewed(tuple(range(8)))})
    (effect,) = advice.padding.harm
    assert (advice.padding.padding_bytes, advice.padding.others) == (16, 2)
    assert (effect.row, effect.now.conflicts, effect.then.conflicts) == (9, 0, 1)


def test_others_that_do_not_mind():
    advice = advise(COLUMN, others={0: ROW})
    assert (advice.padding.padding_bytes, advice.padding.others, advice.padding.harm, advice.swizzle.harm) == (4, 1, (), ())


@pytest.mark.parametrize(
    ("place", "pitches"),
    [
        (lambda lane: 132 * lane, [132]),
        (lambda lane: 128 * (lane // 4) + 4 * (lane % 4), [128]),
        (lambda lane: 1000 + 80 * (lane % 16) + 4 * (lane // 16), [80]),
        (lambda lane: 4 * lane, []),
        (lambda lane: 64, []),
    ],
)
def test_the_likeliest_pitch(place, pitches):
    assert [pitch.pitch_bytes for pitch in find_pitches(access("LDS.32", place))][:1] == pitches


def test_rows_with_a_hole_are_recognised():
    found = access("LDS.32", lambda lane: 128 * (lane // 4) + 4 * (lane % 4), 0x7FFFFFFF)
    pitch = find_pitches(found)[0]
    assert (pitch.pitch_bytes, pitch.rows, pitch.columns, pitch.whole) == (128, 8, (0, 4, 8, 12), False)
    assert advise(found).padding.padding_bytes == 16


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from([name for name in OPERATIONS if not name.startswith("LDGSTS.cg")]),
    st.lists(st.integers(0, 255), min_size=32, max_size=32),
    st.sampled_from([16, 32, 48, 64, 128, 144, 256]),
    st.integers(1, 0xFFFFFFFF),
)
def test_whatever_is_proposed_holds(op, numbers, pitch, mask):
    size = OPERATIONS[op].lane_bytes
    offsets = tuple((number // 8 * pitch + number % 8 * size) // size * size for number in numbers)
    advice = advise(Access(op, offsets, mask))
    found = Access(op, offsets, mask)
    if advice.padding:
        old, new = advice.padding.pitch_bytes, advice.padding.pitch_bytes + advice.padding.padding_bytes
        base = advice.pitch.base
        conflicts, actual, ideal = at(found, lambda o: base + (o - base) // old * new + (o - base) % old)
        assert new % size == 0 and conflicts == 0 and actual <= ideal
    if advice.swizzle:
        turn = Swizzle(advice.swizzle.bits, advice.swizzle.base, advice.swizzle.shift)
        conflicts, actual, ideal = at(found, turn)
        assert 1 << turn.base >= size and conflicts == 0 and actual <= ideal
    assert advice.now.ideal or advice.padding or advice.swizzle or len(advice.notes) >= 2
