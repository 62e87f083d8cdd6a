"""Parts of shared memory: from descriptions, declarations, copies and accesses."""

from __future__ import annotations

import pytest

import fasim
from fasim.report.buffer_areas import MOST_PARTS, Area, Target, close_ranges, copied_parts, declared_areas, find_areas, plain_name


def rows(start: int, count: int, pitch: int = 144, size: int = 128) -> tuple[tuple[int, int], ...]:
    return tuple((start + pitch * i, start + pitch * i + size) for i in range(count))


@pytest.mark.parametrize(
    ("ranges", "joined"),
    [
        ([], []),
        ([(16, 32), (0, 16)], [(0, 32)]),
        (rows(0, 4), [(0, 3 * 144 + 128)]),
        ([(0, 128), (256, 384)], [(0, 128), (256, 384)]),
        ([*rows(0, 4), *rows(2000, 4)], [(0, 560), (2000, 2560)]),
        ([(0, 4), (6, 10), (100, 104)], [(0, 10), (100, 104)]),
        ([(0, 100), (20, 40)], [(0, 100)]),
    ],
)
def test_rows_with_padding_are_one_part(ranges, joined):
    assert close_ranges(ranges) == joined


@pytest.mark.parametrize(
    ("groups", "parts"),
    [
        # two buffers in turn
        ([((0, 512),), ((512, 1024),), ((0, 512),)], [(0, 512), (512, 1024)]),
        # the last tile is not full
        ([((0, 512),), ((512, 1024),), ((0, 128),)], [(0, 512), (512, 1024)]),
        # the first two tiles at once, then one by one
        ([((0, 1024),), ((0, 512),), ((512, 1024),)], [(0, 512), (512, 1024)]),
        # one buffer, always the same
        ([((0, 1024),), ((0, 1024),)], [(0, 1024)]),
        # rows that wander through a ring are one part
        ([((0, 512),), ((256, 768),), ((512, 1024),)], [(0, 1024)]),
        ([rows(0, 32), rows(4608, 32)], [(0, 4592), (4608, 9200)]),
    ],
)
def test_parts_by_copies(groups, parts):
    assert copied_parts([Target(ranges) for ranges in groups]) == parts


def named(areas: list[Area]) -> list[tuple[str, int, str]]:
    return [(area.name, area.size_bytes, area.note) for area in areas]


def test_areas_of_declared_variables():
    declared = [Area("buf", ((0, 1024),)), Area("one", ((1024, 1536),)), Area("sums", ((1536, 1568),))]
    targets = [Target(((0, 512),), frozenset("a")), Target(((512, 1024),), frozenset("ba")), Target(((1024, 1536),), frozenset("c"))]
    found = find_areas([], declared, targets, [(0, 1540), (4000, 4016)])
    assert named(found) == [
        ("buf+0x0", 512, "from a"),
        ("buf+0x200", 512, "from a, b"),
        ("one", 512, "from c"),
        ("sums", 32, ""),
        ("0xfa0-0xfaf", 16, ""),
    ]


def test_areas_by_description_leave_the_rest():
    found = find_areas([Area("K", ((0, 256),)), Area("Q", ((512, 1024),))], [], [Target(((0, 128),))], [(0, 300), (500, 600)])
    assert named(found) == [("K", 256, ""), ("0x100-0x12b", 44, ""), ("0x1f4-0x1ff", 12, ""), ("Q", 512, "")]


def test_many_parts_are_one():
    scattered = [(100 * i, 100 * i + 4) for i in range(MOST_PARTS + 1)]
    assert named(find_areas([], [], [], scattered)) == [("others", 4 * len(scattered), "")]
    assert len(find_areas([], [], [], scattered[1:])) == MOST_PARTS


@pytest.mark.parametrize(
    ("mangled", "name"),
    [
        ("_ZZ10gemm_tiledE6a_tile", "a_tile"),
        ("_ZZ9transposePKfPfiE4tile", "tile"),
        ("_ZZ1kPfE8buf4abcd", "buf4abcd"),
        ("_ZZ1kPfE1s_0", "s"),
        ("_ZZ1kPfE3a_1", "a_1"),
        ("_ZZ4k_12PfE2xy", "xy"),
        ("tile", "tile"),
        ("_Z1", "_Z1"),
    ],
)
def test_names_in_the_source(mangled, name):
    assert plain_name(mangled) == name


def test_declared_variables():
    source = (
        "struct pair { double a, b; };\n__shared__ int outside[10];\n"
        'extern "C" __global__ void k(int *p) {\n __shared__ pair s[4]; extern __shared__ int d[];\n'
        " int t = threadIdx.x; s[t % 4].a = t; d[t] = t; outside[t % 10] = 1; __syncthreads();\n"
        " p[t] = d[t] + int(s[3].b) + outside[t % 3];\n}\n"
    )
    found = {area.name: area.ranges for area in declared_areas(fasim.compile(source).kernel("k"))}
    assert set(found) == {"outside", "s"}
    assert {name: end - start for name, ((start, end),) in found.items()} == {"outside": 40, "s": 64}


def test_scattered_copies_are_one_part():
    """Where the words that lanes copy lie far from each other, each would be a part."""
    scattered = Target(rows(256, MOST_PARTS + 1, 32, 16))
    end = 256 + 32 * MOST_PARTS + 16
    assert [area.name for area in find_areas([], [Area("s", ((0, 2048),))], [scattered], [(0, 2048)])] == ["s"]
    found = find_areas([], [Area("s", ((0, 256),))], [scattered], [(256, end)])
    assert [area.ranges for area in found] == [((0, 256),), ((256, end),)]
    few = find_areas([], [Area("s", ((0, 2048),))], [Target(rows(256, 3, 32, 16))], rows(256, 3, 32, 16))
    assert [area.name for area in few] == ["s+0x100", "s+0x120", "s+0x140"]
