"""The layouts that `fasim layout` knows: one for each ldmatrix, stmatrix, mma and wmma in the instruction table, found by name."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from fasim.errors import UsageError
from fasim.isa.rows import ROWS, Row
from fasim.numerics.fragments import ELEMENT_BITS, LANES, Elements, fragment_elements, wmma_fragment_elements
from fasim.numerics.mma_quads import quad_fragment, quad_pair
from fasim.report.layout import Fragment, Geometry, fragment, geometry
from fasim.report.layout_matrix import matrix_elements, matrix_names

_SHAPE = re.compile(r"m\d+n\d+k\d+")
_MATRIX = re.compile(r"(ld|st)matrix\.sync\.aligned\.m8n8\.(x\d+)(\.trans)?")
#: names shown after a name that is not known
_SHOWN = 12


@dataclass(frozen=True)
class Part:
    """One fragment of an instruction: its sizes, and its elements as `fasim.report.layout.geometry` takes them."""

    sizes: Geometry
    elements: Elements


@dataclass
class Entry:
    """One layout: its short name, other names, the rows of the instruction table that have it, and its fragments."""

    name: str
    title: str
    make: Callable[[], tuple[Part, ...]]
    aliases: set[str] = field(default_factory=set)
    mnemonics: list[str] = field(default_factory=list)

    @functools.cached_property
    def parts(self) -> tuple[Part, ...]:
        """The fragments; C and D are one if they are held alike."""
        return self.make()

    @property
    def geometries(self) -> tuple[Geometry, ...]:
        """The sizes of the fragments."""
        return tuple(part.sizes for part in self.parts)

    def fragments(self, operand: str | None = None) -> tuple[Fragment, ...]:
        """All fragments, or that of one operand, in capital or small letters.

        Raises: UsageError if there is no such operand.
        """
        if operand is None:
            return tuple(fragment(part.sizes, part.elements) for part in self.parts)
        wanted = operand.upper()
        for part in self.parts:
            if wanted in part.sizes.operands:
                return (fragment(replace(part.sizes, operands=(wanted,), prefix=wanted.lower()), part.elements),)
        known = ", ".join(name for part in self.parts for name in part.sizes.operands)
        raise UsageError(f"--operand {operand}: {self.name} has no such operand; known: {known}")


@functools.cache
def catalog() -> dict[str, Entry]:
    """All layouts by name, in the order of the listing."""
    found: dict[str, Entry] = {}
    for name, row in ROWS.items():
        entry = _entry(name, row)
        if entry is not None:
            kept = found.setdefault(entry.name, entry)
            kept.aliases |= entry.aliases
            kept.mnemonics.append(name)
    return dict(sorted(found.items(), key=lambda item: _order(item[0])))


def _order(name: str) -> tuple[object, ...]:
    """Instructions, then shapes by size, then names."""
    family, *_ = name.split(".")
    shape = _SHAPE.search(name)
    sizes = tuple(int(number) for number in re.findall(r"\d+", shape[0])) if shape else ()
    return ("ldmatrix", "stmatrix", "mma", "wmma").index(family), sizes, len(name), name


def find(name: str) -> tuple[Entry, str | None]:
    """The layout of a name, and the operand if the name says that: short names and all mnemonics of the instruction table.

    Raises: UsageError for an unknown name.
    """
    wanted, known = name.strip().lower(), catalog()
    if wanted in known:
        return known[wanted], None
    for entry in known.values():
        if wanted in entry.aliases or wanted in entry.mnemonics:
            return entry, None
    row = ROWS.get(wanted)
    if row is not None and row.kind in ("wmma_load", "wmma_store"):
        return _of_wmma_access(row)
    raise UsageError(_unknown(name, wanted, list(known)))


def _unknown(name: str, wanted: str, known: list[str]) -> str:
    if row := ROWS.get(wanted):
        return f"{name!r} has no layout: {row.name} does not spread a matrix over the lanes of a warp; `fasim layout` lists what does"
    longer = [each for each in known if each.startswith(wanted + ".")]
    near = longer or difflib.get_close_matches(wanted, [*known, "hand-over"], _SHOWN, 0.6)
    more = f", and {len(near) - _SHOWN} more" if len(near) > _SHOWN else ""
    shown = ", ".join(near[:_SHOWN]) + more
    hint = f"{'write one of' if longer else 'near names'}: {shown}; " if near else "for example mma.m16n8k16.f16 or ldmatrix.x4; "
    return f"no layout is called {name!r}; {hint}`fasim layout` lists all"


def _of_wmma_access(row: Row) -> tuple[Entry, str]:
    shape, type_, element, operand = (row.attributes[key] for key in ("shape", "type", "element", "operand"))
    d = element if operand in "cd" else None
    for entry in catalog().values():
        match = re.fullmatch(rf"wmma\.{shape}\.(\w+)\.{type_}\.{type_}\.(\w+)", min(entry.aliases, default=""))
        if match and (d is None or match[1] == match[2] == d):
            return entry, operand.upper()
    raise UsageError(f"no layout belongs to {row.name}")


def _entry(name: str, row: Row) -> Entry | None:
    """The layout of a row of the instruction table, None if it has none."""
    if row.kind in ("ldmatrix", "stmatrix"):
        return _matrix_entry(name, row)
    words = name.split(".")
    is_wmma = words[:2] == ["wmma", "mma"]
    if row.kind != "collective" or not (is_wmma or words[0] == "mma"):
        return None
    shape = next(word for word in words if _SHAPE.fullmatch(word))
    types = [word for word in words if word in ELEMENT_BITS]
    if len(types) == 2:  # wmma of f16 names D and C
        types = [types[0], "f16", "f16", types[1]]
    d, a, b, c = types
    quads = not is_wmma and (shape, a) == ("m8n8k4", "f16")
    layouts = tuple(word for word in words if word in ("row", "col"))
    family = f"{'wmma' if is_wmma else 'mma'}.{shape}" + (f".{layouts[0]}.{layouts[1]}" if quads else "")
    full = f"{family}.{d}.{a}.{b}.{c}"
    short = f"{family}.{a}" if a == b and d == c != "f16" else full

    def make() -> tuple[Part, ...]:
        def part(*operands: str) -> Part:
            operand = operands[0].lower()
            arg = row.dests[0] if operand == "d" else next(arg for arg in row.sources if arg.name == operand)
            type_ = dict(zip("dabc", types))[operand]
            if quads:
                held = _with_pairs(quad_fragment(operand, dict(zip("ab", layouts)).get(operand, type_)))
            else:
                held = (wmma_fragment_elements if is_wmma else fragment_elements)(shape, operand, a)
            wide = 64 if arg.type_ == "f64" else 32
            return Part(geometry(operands, type_, held, arg.count, wide, _PAIR_NAMES if quads else ()), held)

        return part("A"), part("B"), *([part("C", "D")] if c == d else [part("C"), part("D")])

    title = f"{'wmma.mma' if is_wmma else 'mma.sync'} {shape}: D = A*B + C"
    return Entry(short, title, make, {full})


#: what the matrices of mma.m8n8k4 of f16 are
_PAIR_NAMES = tuple(f"of lanes {4 * pair}-{4 * pair + 3} and {4 * pair + 16}-{4 * pair + 19}" for pair in range(4))


def _with_pairs(elements: Elements) -> Elements:
    pairs = np.array([[quad_pair(lane)] * elements.shape[1] for lane in range(LANES)], np.int64)
    return np.concatenate([pairs[:, :, None], elements], axis=-1)


def _matrix_entry(name: str, row: Row) -> Entry:
    match = _MATRIX.match(name)
    assert match is not None, name
    loads, transposed = row.kind == "ldmatrix", row.attributes["transposed"]
    arg = row.dests[0] if loads else row.sources[1]

    def make() -> tuple[Part, ...]:
        held = matrix_elements(loads, arg.count, transposed)
        return (Part(geometry(("R",), "b16", held, arg.count, 32, matrix_names(arg.count)), held),)

    plural = "matrices" if arg.count > 1 else "matrix"
    turned = ", transposed" if transposed else ""
    verb, way = ("load", "from") if loads else ("store", "to")
    return Entry(
        f"{row.kind}.{match[2]}{match[3] or ''}", f"{verb} {arg.count} {plural} of 8 x 8 b16 {way} shared memory{turned}", make, set()
    )
