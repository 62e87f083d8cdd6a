"""One access of a warp as a picture of the 32 banks: who touches what, and which words collide; as data and as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fasim.report.bank_access import Access
from fasim.smem.wavefront_rule import BANKS, LINE_BYTES, TWICE
from fasim.smem.wavefronts import count_wavefronts, operation
from fasim.trace.event import Access as TracedAccess

BANK_BYTES = LINE_BYTES // BANKS
#: banks whose collisions are told in words
_TOLD = 4
#: words of a bank that are told
_WORDS_TOLD = 8
_LABEL = 8
_DIGITS = "0123456789abcdefghijklmnopqrstuv"
#: SGR codes of a word: it collides, or not
_COLORS = {True: "31;1", False: "36"}


@dataclass(frozen=True)
class BankWord:
    """A 4-byte word that lanes of a group touch; `collides` if its bank has to be asked more than once."""

    bank: int
    byte_offset: int
    lanes: tuple[int, ...]
    collides: bool


@dataclass(frozen=True)
class BankGroup:
    """Lanes that are served together: `demand` is how often each of the 32 banks is asked, `wavefronts` what that costs."""

    lanes: tuple[int, ...]
    wavefronts: int
    demand: tuple[int, ...]
    words: tuple[BankWord, ...]

    def lines(self) -> dict[int, dict[int, BankWord]]:
        """The words by the offset of their 128-byte line, then by bank."""
        found: dict[int, dict[int, BankWord]] = {}
        for word in sorted(self.words, key=lambda each: each.byte_offset):
            found.setdefault(word.byte_offset // LINE_BYTES * LINE_BYTES, {})[word.bank] = word
        return found


def traced_bank_groups(access: TracedAccess) -> list[BankGroup]:
    """The groups of an access to shared memory that an instruction made."""
    return bank_groups(Access(access.op, access.addresses, access.lanes, access.arch, access.sources))


def bank_groups(access: Access) -> list[BankGroup]:
    """The groups of an access in the order of their lanes."""
    found = count_wavefronts(access.op, access.byte_offsets, access.active_mask, access.arch, access.source_addresses or None)
    entry = operation(access.op)
    width, times = max(BANK_BYTES, entry.lane_bytes), 2 if entry.code & TWICE else 1
    groups = []
    for number, lanes in enumerate(found.groups):
        touched: dict[int, list[int]] = {}
        for lane in lanes:
            start = access.byte_offsets[lane] // width * width
            for word in range(start, start + width, BANK_BYTES):
                touched.setdefault(word, []).append(lane)
        cost: dict[int, int] = {}
        for collision in found.collisions:
            if collision.group == number:
                for bank in range(collision.bank, collision.bank + width // BANK_BYTES):
                    cost[bank] = len(collision.words)
        words = [BankWord(_bank(at), at, tuple(who), _bank(at) in cost) for at, who in sorted(touched.items())]
        used = {word.bank for word in words}
        demand = tuple(cost.get(bank, int(bank in used)) for bank in range(BANKS))
        groups.append(BankGroup(lanes, times * max(demand), demand, tuple(words)))
    return groups


def _bank(byte_offset: int) -> int:
    return byte_offset // BANK_BYTES % BANKS


def picture_text(groups: Sequence[BankGroup], *, every_group: bool = False, columns: int = 120, color: bool = False) -> str:
    """The picture for a terminal: a row is a line of 128 bytes, a column a bank, and a cell says which lane is there.

    every_group: not only the one that costs most. columns: width of the terminal; below 106 lanes are written with one character.
    """
    cell = 3 if columns >= _LABEL + 2 + 3 * BANKS else 2
    worst = max(range(len(groups)), key=lambda i: groups[i].wavefronts)
    lines = []
    for number, group in enumerate(groups):
        if every_group or number == worst:
            lines += [*_group_text(group, number, len(groups), cell, color), ""]
    if len(groups) > 1 and not every_group:
        others = [f"lanes {lane_ranges(group.lanes)}: {group.wavefronts}" for i, group in enumerate(groups) if i != worst]
        lines += [f"wavefronts of the other groups: {'; '.join(others)}", ""]
    marks = "lane; + more lanes in the same word; ! the bank is asked more than once; # both"
    lines.append(marks if cell == 3 else f"{marks}; lanes 10 to 31 are a to v")
    return "\n".join(lines)


def _group_text(group: BankGroup, number: int, of: int, cell: int, color: bool) -> Iterator[str]:
    which = f"group {number + 1} of {of}, " if of > 1 else ""
    wavefronts = f"{group.wavefronts} wavefront{'s' * (group.wavefronts != 1)}"
    yield f"{which}lanes {lane_ranges(group.lanes)}: {wavefronts}"
    yield from _numbers("bank", range(BANKS), cell)
    for offset, words in group.lines().items():
        cells = "".join(_cell(words.get(bank), cell, color) for bank in range(BANKS))
        yield f"{offset:>{_LABEL}}  {cells}".rstrip()
    yield from _numbers("asked", group.demand, cell)
    yield from _told(group)


def _numbers(label: str, numbers: Sequence[int], cell: int) -> Iterator[str]:
    """A row of numbers; in narrow cells the tens stand above the ones."""
    if cell == 3:
        yield (f"{label:>{_LABEL}}  " + "".join(f"{number:>2} " for number in numbers)).rstrip()
        return
    if max(numbers) > 9:
        yield (" " * (_LABEL + 2) + "".join(f"{number // 10 or ' '} " for number in numbers)).rstrip()
    yield (f"{label:>{_LABEL}}  " + "".join(f"{number % 10} " for number in numbers)).rstrip()


def _cell(word: BankWord | None, cell: int, color: bool) -> str:
    if word is None:
        return " . " if cell == 3 else ". "
    more = len(word.lanes) > 1
    mark = ("#" if more else "!") if word.collides else "+" if more else " "
    lane = f"{word.lanes[0]:>2}" if cell == 3 else _DIGITS[word.lanes[0]]
    return f"\x1b[{_COLORS[word.collides]}m{lane}{mark}\x1b[0m" if color else lane + mark


def _told(group: BankGroup) -> Iterator[str]:
    """The worst collisions in words; banks with the same lanes are one."""
    told: dict[tuple[tuple[int, ...], ...], list[BankWord]] = {}
    for bank in sorted(range(BANKS), key=lambda bank: -group.demand[bank]):
        words = [word for word in group.words if word.bank == bank and word.collides]
        if words:
            told.setdefault(tuple(word.lanes for word in words), []).extend(words)
    for number, words in enumerate(told.values()):
        if number == _TOLD:
            yield f"{'':>{_LABEL}}  and so on in other banks"
            break
        banks = lane_ranges(sorted({word.bank for word in words}))
        first = [word for word in words if word.bank == words[0].bank]
        places = ", ".join(f"{lane_ranges(word.lanes)} at {word.byte_offset}" for word in first[:_WORDS_TOLD])
        more = f" and {len(first) - _WORDS_TOLD} words more" if len(first) > _WORDS_TOLD else ""
        yield f"{'':>{_LABEL}}  bank {banks}: lane {places}{more}"


def lane_ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers in a short form: 0-7,12."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts)
