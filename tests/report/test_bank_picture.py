"""The picture of the banks, by what stands in its cells."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from fasim.errors import UsageError
from fasim.report.bank_figure import save_figure
from fasim.report.bank_picture import bank_groups, lane_ranges, picture_text
from fasim.report.figure_style import check_figure_path
from tests.report.accesses import COLUMN, MATRICES, ROW, access


def cells(line: str, width: int) -> list[str]:
    """The cells of a row of the picture, without its label."""
    return [line[10 + width * i : 10 + width * (i + 1)].strip() for i in range(32)]


def test_rows_are_lines_of_128_bytes_and_columns_are_banks():
    text = picture_text(bank_groups(MATRICES), columns=120).splitlines()
    assert text[0] == "group 1 of 4, lanes 0-7: 8 wavefronts"
    assert cells(text[1], 3) == [str(bank) for bank in range(32)]
    for row in range(8):
        assert text[2 + row][:10] == f"{1024 + 128 * row:>8}  "
        assert cells(text[2 + row], 3) == [f"{row}!"] * 4 + ["."] * 28
    assert cells(text[10], 3) == ["8"] * 4 + ["0"] * 28
    assert text[11].strip() == "bank 0-3: lane 0 at 1024, 1 at 1152, 2 at 1280, 3 at 1408, 4 at 1536, 5 at 1664, 6 at 1792, 7 at 1920"
    assert text[13] == "wavefronts of the other groups: lanes 8-15: 8; lanes 16-23: 8; lanes 24-31: 8"
    assert max(map(len, text)) <= 120


def test_every_group():
    text = picture_text(bank_groups(MATRICES), every_group=True, columns=120)
    assert re.findall(r"group (\d) of 4, lanes ([\d-]+): 8 wavefronts", text) == [
        ("1", "0-7"),
        ("2", "8-15"),
        ("3", "16-23"),
        ("4", "24-31"),
    ]
    rows = [line for line in text.splitlines() if line.startswith("    1152  ")]
    assert [cells(row, 3) for row in rows] == [["1!"] * 4 + ["."] * 28, ["."] * 4 + ["17!"] * 4 + ["."] * 24]


def test_a_narrow_terminal():
    text = picture_text(bank_groups(COLUMN), columns=80).splitlines()
    assert cells(text[1], 2)[9:12] == ["", "1", "1"] and cells(text[2], 2)[8:12] == ["8", "9", "0", "1"]
    assert [cells(line, 2)[0] for line in text[3:35]] == [f"{lane}!" for lane in "0123456789abcdefghijklmnopqrstuv"]
    assert [cells(line, 2)[0] for line in text[35:37]] == ["3", "2"]
    # the list of collisions wraps, the picture does not
    assert max(map(len, text[:37])) <= 80
    assert "lanes 10 to 31 are a to v" in text[-1]


def test_words_that_lanes_share():
    shared = bank_groups(access("LDS.32", lambda lane: 4 * (lane // 2)))
    assert cells(picture_text(shared).splitlines()[2], 3) == [f"{lane}+" for lane in range(0, 32, 2)] + ["."] * 16
    # two words of a bank, each for 16 lanes
    both = picture_text(bank_groups(access("LDS.32", lambda lane: 128 * (lane % 2)))).splitlines()
    assert (both[0], cells(both[2], 3)[0], cells(both[3], 3)[0]) == ("lanes 0-31: 2 wavefronts", "0#", "1#")
    # atomics do not share
    atomics = picture_text(bank_groups(access("ATOMS.add", lambda lane: 4 * (lane // 2)))).splitlines()
    assert (atomics[0], cells(atomics[2], 3)[:2]) == ("lanes 0-31: 2 wavefronts", ["0#", "2#"])
    assert cells(atomics[3], 3) == ["2"] * 16 + ["0"] * 16


def test_no_collision_no_mark():
    text = picture_text(bank_groups(ROW)).splitlines()
    assert cells(text[2], 3) == [str(lane) for lane in range(32)]
    assert cells(text[3], 3) == ["1"] * 32 and not any("bank " in line for line in text[4:-1])


def test_inactive_lanes_are_not_there():
    (group,) = bank_groups(access("LDS.32", lambda lane: 128 * lane, 0x5))
    assert [(word.bank, word.byte_offset, word.lanes, word.collides) for word in group.words] == [(0, 0, (0,), True), (0, 256, (2,), True)]
    assert (group.lanes, group.wavefronts, group.demand[:2]) == ((0, 2), 2, (2, 0))


@pytest.mark.parametrize(
    "found",
    [
        COLUMN,
        MATRICES,
        ROW,
        access("LDS.64", lambda lane: 8 * (lane // 2)),
        access("STS.128", lambda lane: 80 * lane),
        access("LDS.U8", lambda lane: lane),
        access("ATOMS.cas", lambda lane: 8 * (lane // 2)),
        access("ATOMS.cas.64", lambda lane: 64 * lane),
    ],
)
def test_groups_add_up_to_the_count(found):
    groups = bank_groups(found)
    assert sum(group.wavefronts for group in groups) == found.count().wavefronts
    assert sorted(lane for group in groups for lane in group.lanes) == list(found.lanes)
    for group in groups:
        assert {lane for word in group.words for lane in word.lanes} == set(group.lanes)
        assert all(word.byte_offset // 4 % 32 == word.bank and word.collides == (group.demand[word.bank] > 1) for word in group.words)


def test_colours_change_nothing_else():
    groups = bank_groups(MATRICES)
    painted = picture_text(groups, color=True)
    assert "\x1b[31;1m 0!\x1b[0m" in painted
    assert [line.rstrip() for line in re.sub(r"\x1b\[[\d;]*m", "", painted).splitlines()] == picture_text(groups).splitlines()


def test_lane_ranges():
    assert [lane_ranges(lanes) for lanes in ([], [3], [0, 1, 2, 7], [0, 2, 3])] == ["", "3", "0-2,7", "0,2-3"]


def svg_texts(path) -> list[str]:
    return [element.text.strip() for element in ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text") if element.text]


def test_svg_has_lanes_banks_and_offsets_as_text(tmp_path):
    path = tmp_path / "banks.svg"
    save_figure(path, [("the title", bank_groups(MATRICES)), ("another", bank_groups(ROW))])
    texts = svg_texts(path)
    assert "the title" in texts and "another" in texts and texts.count("lanes 16-23: 8 wavefronts") == 1
    # four banks for each of 32 lanes, a row of lanes, and for 5 groups the numbers of the banks
    assert sum(text == "29" for text in texts) == 4 + 1 + 5
    assert [text for text in texts if text == "1,152"] == ["1,152"] * 2
    # orange cells: 32 rows of 4 banks
    assert path.read_text().count("fill: #d55e00") == 128
    first = path.read_bytes()
    save_figure(path, [("the title", bank_groups(MATRICES)), ("another", bank_groups(ROW))])
    assert path.read_bytes() == first


def test_png(tmp_path):
    path = tmp_path / "banks.png"
    save_figure(path, [("x", bank_groups(ROW))])
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n") and int.from_bytes(data[16:20], "big") == 2200


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("banks.pdf", r"pictures are \.png or \.svg; name the file .*banks\.svg"),
        ("folder.svg", r"this is a directory; name a file in it"),
        ("nowhere/banks.svg", r"there is no directory '.*nowhere'"),
    ],
)
def test_paths_that_cannot_be_written(tmp_path, name, message):
    (tmp_path / "folder.svg").mkdir()
    with pytest.raises(UsageError, match=message):
        check_figure_path(tmp_path / name)


def test_a_disk_that_refuses(tmp_path):
    with pytest.raises(UsageError, match=r"--out .*banks\.svg: No such file"):
        save_figure(tmp_path / "gone" / "banks.svg", [("x", bank_groups(ROW))])
