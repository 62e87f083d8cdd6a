"""Parts of shared memory with a row of their own: those that a kernel's description names, else what it declares and copies into."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from fasim.sm.module import Kernel
from fasim.trace.view import joined_ranges

Range = tuple[int, int]
#: so many parts without a name are shown one by one; what is beyond is one part
MOST_PARTS = 16


@dataclass(frozen=True)
class Area:
    """A part of shared memory: its name, its bytes (ends excluded), and a remark on it."""

    name: str
    ranges: tuple[Range, ...]
    note: str = ""

    @property
    def size_bytes(self) -> int:
        """Bytes of all its ranges."""
        return sum(end - start for start, end in self.ranges)

    def meets(self, ranges: Iterable[Range]) -> bool:
        """Whether it has a byte in common with some ranges."""
        return any(start < end_ and start_ < end for start, end in ranges for start_, end_ in self.ranges)


@dataclass(frozen=True)
class Target:
    """Where the copies of one source line that belong to one group go, and the buffers in global memory that they come from."""

    ranges: tuple[Range, ...]
    sources: frozenset[str] = frozenset()


def find_areas(named: Sequence[Area], declared: Sequence[Area], targets: Sequence[Target], touched: Sequence[Range]) -> list[Area]:
    """The areas of a CTA in the order of their addresses.

    named: from the kernel's description; if there are any, copies do not make areas. declared: its static variables. targets: of its
    copies. touched: all bytes that it accesses; those outside of all other areas are areas, too.
    """
    found = list(named)
    if not found:
        parts = copied_parts(targets)
        undeclared = [part for part in parts if not any(variable.meets([part]) for variable in declared)]
        if len(undeclared) > MOST_PARTS:  # scattered, so that parts say nothing
            parts = [*(part for part in parts if part not in undeclared), (undeclared[0][0], max(end for _, end in undeclared))]
        for variable in declared:
            inside = [part for part in parts if variable.meets([part])]
            if not 2 <= len(inside) <= MOST_PARTS:
                found.append(Area(variable.name, variable.ranges, _origin(inside, targets)))
        found += [
            _area(part, declared, targets) for part in parts if not any(area.meets([part]) for area in found if len(area.ranges) == 1)
        ]
    rest = close_ranges(_without(touched, [span for area in found for span in area.ranges]))
    if len(rest) > MOST_PARTS:
        found.append(Area("others", tuple(rest)))
    else:
        found += [Area(range_name(part), (part,)) for part in rest]
    return sorted(found, key=lambda area: area.ranges[0])


def _area(part: Range, declared: Sequence[Area], targets: Sequence[Target]) -> Area:
    owner = next((each for each in declared if each.meets([part])), None)
    name = range_name(part) if owner is None else f"{owner.name}+{part[0] - owner.ranges[0][0]:#x}"
    return Area(name, (part,), _origin([part], targets))


def _origin(parts: Sequence[Range], targets: Sequence[Target]) -> str:
    """Where what is copied to some parts comes from, in words."""
    sources = sorted({name for target in targets if Area("", tuple(parts)).meets(target.ranges) for name in target.sources})
    return f"from {', '.join(sources)}" if sources else ""


def range_name(part: Range) -> str:
    """A part of shared memory without a name: its first and last byte."""
    return f"{part[0]:#x}-{part[1] - 1:#x}"


def close_ranges(ranges: Iterable[Range]) -> list[Range]:
    """Ranges, those joined that are nearer to each other than they are long: rows with padding between them are one part."""
    found: list[Range] = []
    last = 0
    for start, end in sorted(ranges):
        if found and start - found[-1][1] < min(last, end - start):
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
        last = end - start
    return found


def copied_parts(targets: Iterable[Target]) -> list[Range]:
    """The buffers that copies go to: what one line of a group fills; those that lie inside of each other are one.

    A line that fills at once what others fill one by one (two stages of a pipeline) makes no part of its own.
    """
    spans = sorted({span for target in targets for span in close_ranges(target.ranges)})
    parts: list[Range] = []
    for start, end in (span for span in spans if not _is_put_together(span, spans)):
        if parts and start < parts[-1][1]:
            parts[-1] = (parts[-1][0], max(end, parts[-1][1]))
        else:
            parts.append((start, end))
    return parts


def _is_put_together(span: Range, spans: Sequence[Range]) -> bool:
    """Whether a span consists of two or more of the others (which are sorted), apart from gaps that are shorter than they."""
    near = spans[bisect_left(spans, (span[0], 0)) : bisect_left(spans, (span[1], 0))]
    outer: list[Range] = []  # those inside of the span that are not inside of another one
    for each in sorted(near, key=lambda each: (each[0], -each[1])):
        if each != span and each[1] <= span[1] and (not outer or each[1] > outer[-1][1]):
            outer.append(each)
    apart = all(a[1] <= b[0] for a, b in pairwise(outer))
    return len(outer) > 1 and apart and close_ranges(outer) == [span]


def _without(ranges: Iterable[Range], taken: Iterable[Range]) -> list[Range]:
    """What is left of ranges."""
    left = []
    gaps = joined_ranges(list(taken))
    for start, end in ranges:
        for first, last in gaps:
            if first < end and start < last:
                if start < first:
                    left.append((start, first))
                start = last
        if start < end:
            left.append((start, end))
    return left


def declared_areas(kernel: Kernel) -> list[Area]:
    """The static shared variables of a kernel, by the names that the source gives them."""
    from fasim.ptx.lower import lowered
    from fasim.ptx.parser import parse
    from fasim.ptx.tree import Variable

    module = kernel.module
    program = parse(module.ptx, module.path)
    places = lowered(program, kernel.program.name, module.arch.number).context.shared
    sizes = {name: variable.size_bytes for name, variable in program.variables.items()}
    for function in program.functions.values():
        sizes |= {each.name: each.size_bytes for each in function.body or () if isinstance(each, Variable)}
    return [Area(plain_name(name), ((at, at + sizes[name]),)) for name, at in places.items() if sizes.get(name)]


def plain_name(mangled: str) -> str:
    """The name in the source of a variable inside a function, as the ABI of C++ writes it: _ZZ1kPfE4tile is tile."""
    if not mangled.startswith("_Z"):
        return mangled
    for name in (mangled, re.sub(r"_\d+$", "", mangled)):
        for match in re.finditer(r"\d+", name):
            text = name[match.end() :]
            for digits in range(len(match[0])):
                if text and int(match[0][digits:]) == len(text):
                    return text
    return mangled
