"""Shadow handlers: no undefined bit gets lost, exact rules are exact, both machines agree, and what must stay defined does."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fasim.isa.rows import ROWS
from fasim.isa.table import Row
from fasim.numerics.lanes import width
from fasim.warp import shadow_rules as rules
from fasim.warp.handlers import FULL_MASK
from fasim.warp.shadow import SHADOWED, dest_operands
from tests.harness import BACKENDS
from tests.warp.shadow_files import Files, registers_of, shadow_of

IDS = np.arange(32, dtype=np.uint64)
SHADOWED_ROWS = [row for row in ROWS.values() if row.kind in SHADOWED]


# --- no undefined bit gets lost, and both machines agree ----------------------------------------------------------------------------


def sample() -> list[Row]:
    """A row for each opcode, rule and signature, and more of those where the rest of the name matters."""
    found: dict[object, Row] = {}
    for row in SHADOWED_ROWS:
        opcode, *parts = row.name.split(".")
        signature = tuple((a.name, a.type_, a.count) for a in (*row.dests, *row.sources))
        more: object = parts[0] if opcode in ("setp", "add", "sub", "vset2") or ":" in row.name else ""
        if opcode in ("prmt", "szext", "lop3", "bmsk", "slct", "shf", "shfl", "vote", "match", "redux"):
            more = row.name
        if opcode in ("set", "cvt"):
            more = parts[-1]
        found.setdefault((opcode, rules.rule_of(row.name), signature, more), row)
    return list(found.values())


SAMPLE = sample()


def words(random: np.random.Generator) -> np.ndarray:
    """Any 64 bits a lane."""
    return random.integers(0, 1 << 64, 32, np.uint64)


def some_values(random: np.random.Generator, bits: int, name: str) -> np.ndarray:
    """Values of all kinds: any, small, near the ends and the middle, few bits; masks of lanes that have their own lane in them."""
    if bits == 1:
        return (random.random(32) < random.choice([0.02, 0.5, 0.98])).astype(np.uint64)
    if name == "mask":
        return np.full(32, FULL_MASK, np.uint64) if random.random() < 0.6 else (words(random) & FULL_MASK) | (1 << IDS)
    every = np.uint64((1 << bits) - 1)
    small = random.integers(0, bits + 2, 32).astype(np.uint64)
    few = words(random) & words(random) & words(random)
    return np.choose(random.integers(0, 5, 32), [words(random), small, ~small, (every >> 1) ^ small, few]) & every


def some_shadows(random: np.random.Generator, bits: int, rare: bool) -> np.ndarray:
    """Shadows of all kinds: mostly none, else any bits, one, the upper ones, the lower ones, all."""
    if bits == 1:
        return (random.integers(0, 8 if rare else 3, 32) == 0).astype(np.uint64)
    every, one = np.uint64((1 << bits) - 1), np.uint64(1) << random.integers(0, bits, 32).astype(np.uint64)
    kinds = np.minimum(random.integers(0, 40 if rare else 10, 32), 5)
    return np.choose(kinds, [words(random), one, ~(one - 1), one | (one - 1), np.full(32, every), np.zeros(32, np.uint64)]) & every


def immediates_of(row: Row, random: np.random.Generator) -> tuple[int, ...]:
    """Values for a row's immediates."""
    kinds = {"lut": lambda: random.integers(0, 256), "arch": lambda: 90, "mask": lambda: FULL_MASK, "b": lambda: random.integers(0, 32)}
    clamp = 0 if ".up." in row.name else 31
    other = {"c": lambda: random.integers(0, 65536) if row.name.startswith("prmt") else random.choice([clamp, clamp | 0x1800])}
    return tuple(int((kinds | other)[a.name]()) for a in row.sources if a.type_ == "imm")


def experiments(row: Row, seed: int, count: int) -> Iterator[tuple[Files, int, np.random.Generator]]:
    """Random states before an instruction, with masks."""
    random = np.random.default_rng([seed, *row.name.encode()])
    collective = row.kind == "collective"
    args = registers_of(row)[len(dest_operands(row)) :]
    constants = immediates_of(row, random)
    for i in range(count):
        values = [some_values(random, width(a.type_), a.name) for a in args]
        shadows = [some_shadows(random, width(a.type_), collective or a.name == "mask") for a in args]
        if collective:
            shadows = [s * (a.name == "a" or random.integers(0, 4) == 0) for s, a in zip(shadows, args)]
        origins = [random.integers(1, 1 << 20) if a.type_ == "pred" else random.integers(1, 1 << 20, 32) for a in args]
        mask = FULL_MASK if i % 2 == 0 else int(random.integers(1, 1 << 32))
        yield Files(row.name, values, shadows, origins, constants), mask, random


def perturbed(files: Files, random: np.random.Generator, everything: bool) -> Files:
    """The same with other undefined bits."""
    other = Files(files.name, [], immediates=files.immediates)
    noise = np.full(files.registers.size, 255, np.uint8) if everything else random.integers(0, 256, files.registers.size, np.uint8)
    other.registers[:] = files.registers ^ (files.shadow & noise)
    return other


def lost(row: Row, backend: str, seed: int, count: int) -> list[str]:
    """Where results depend on undefined bits and say that they do not."""
    wrong = []
    for files, mask, random in experiments(row, seed, 4 * count if row.kind == "collective" else count):
        before, tries = files.results(backend, mask), [perturbed(files, random, i == 0).results(backend, mask) for i in range(3)]
        inputs = [files.get(files.registers, i) for i in range(files.dests, len(files.args))]
        sources = [files.get(files.shadow, i) for i in range(files.dests, len(files.args))]
        shadows = files.run(backend, mask)
        for number, shadow in enumerate(shadows):
            for after in tries:
                for lane in np.flatnonzero((before[number] ^ after[number]) & ~shadow):
                    state = [f"{int(v[lane]):#x}/{int(s[lane]):#x}" for v, s in zip(inputs, sources)]
                    wrong.append(
                        f"{row.name}{files.immediates} lane {lane} of {mask:#x}, result {number}: sources {state}, {int(shadow[lane]):#x}"
                    )
    return wrong


@pytest.mark.parametrize("backend", BACKENDS)
def test_whatever_depends_on_undefined_bits_is_undefined(backend):
    wrong = [w for row in SAMPLE if rules.rule_of(row.name) is not rules.defined for w in lost(row, backend, 1, 4)[:2]]
    assert not wrong, "\n".join(wrong)


LANEWISE = [row for row in SAMPLE if row.kind == "lanes" and registers_of(row)[len(dest_operands(row)) :]]


@st.composite
def one_source_state(draw):
    """A row with a value and a shadow for each source."""
    row = draw(st.sampled_from(LANEWISE))
    args = registers_of(row)[len(dest_operands(row)) :]
    tops = [(1 << width(a.type_)) - 1 for a in args]
    return row, [draw(st.integers(0, top)) for top in tops], [draw(st.integers(0, top)) for top in tops], draw(st.integers(0, 2**32))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(one_source_state())
def test_no_filling_of_undefined_bits_changes_a_defined_one(state):
    row, values, shadows, seed = state
    random = np.random.default_rng(seed)
    fillings = [random.integers(0, 1 << 64, 32, np.uint64) for _ in values]
    filled = [np.uint64(v) ^ (np.uint64(s) & f) for v, s, f in zip(values, shadows, fillings)]
    files = Files(row.name, filled, shadows, immediates=immediates_of(row, random))
    for result, shadow in zip(files.results("reference"), files.run("reference")):
        # the rule may use the values of defined bits only: all lanes must have the same shadow
        varying = np.bitwise_or.reduce(result ^ result[0])
        assert not (varying & ~np.bitwise_and.reduce(shadow))


def test_the_machines_agree_on_shadows_and_origins():
    wrong = []
    for row in SAMPLE:
        for (one, mask, _), (two, _, _) in zip(experiments(row, 2, 3), experiments(row, 2, 3)):
            old = np.random.default_rng(mask).integers(0, 2, 1 << 12, np.uint8)
            for files in (one, two):  # what the destinations hold before
                for i in range(files.dests):
                    files.put(files.shadow, i, old[32 * i : 32 * i + 32])
            one.run("reference", mask)
            two.run("jit", mask)
            if not (np.array_equal(one.shadow, two.shadow) and np.array_equal(one.origins, two.origins)):
                wrong.append(f"{row.name}{one.immediates} mask {mask:#x}")
    assert not wrong, "\n".join(wrong)


def test_every_row_has_a_shadow_handler_and_defines_all_from_defined_sources():
    random, wrong = np.random.default_rng(5), []
    for row in SHADOWED_ROWS:
        args = registers_of(row)[len(dest_operands(row)) :]
        values = [FULL_MASK if a.name == "mask" else 5 % (1 << width(a.type_)) for a in args]
        files = Files(row.name, values, immediates=immediates_of(row, random))
        for i in range(files.dests):  # what destinations held before does not matter
            files.put(files.shadow, i, 1)
        shadows, origins = files.run("reference"), [files.origin(i) for i in range(files.dests)]
        if any(x.any() for x in (*shadows, *origins)):
            wrong.append(row.name)
    assert not wrong, wrong


# --- where rules are exact ------------------------------------------------------------------------------------------------------

EXACT_PATTERN = re.compile(
    r"mov\..*|brev\..*|cvt\.[us]\d+\.[us]\d+.*|prmt\.b32:imm|(add|sub|neg|addc|subc)\.([us]\d+|cc\..*)|cvta\..*"
    r"|(and|or|xor|not|cnot|selp)\..*|lop3\.b32|setp\..*\.[bus]\d+|isspacep\.none"
)
EXACT_ROWS = [row for row in SAMPLE if EXACT_PATTERN.fullmatch(row.name)]


def all_fillings(row: Row, random: np.random.Generator, undefined_bits: int) -> Files:
    """The same sources in every lane but for up to five undefined bits, which take all 32 values."""
    args = registers_of(row)[len(dest_operands(row)) :]
    values = [int(some_values(random, width(a.type_), a.name)[0]) for a in args]
    places = [(i, bit) for i, a in enumerate(args) for bit in range(width(a.type_))]
    near = int(random.integers(0, len(places)))
    chosen = [
        places[(near + int(step)) % len(places)] for step in random.choice(min(len(places), 9), min(undefined_bits, len(places)), False)
    ]
    shadows, filled = [0] * len(args), [[v] * 32 for v in values]
    for number, (i, bit) in enumerate(chosen):
        shadows[i] |= 1 << bit
        filled[i] = [x & ~(1 << bit) | (lane >> number & 1) << bit for lane, x in enumerate(filled[i])]
    return Files(row.name, [np.array(f, np.uint64) for f in filled], shadows, immediates=immediates_of(row, random))


@pytest.mark.parametrize("backend", BACKENDS)
def test_exact_rules_find_every_defined_bit(backend):
    wrong, random = [], np.random.default_rng(7)
    assert len(EXACT_ROWS) > 100
    for row in EXACT_ROWS:
        for _ in range(6):
            files = all_fillings(row, random, 5)
            for i, (result, shadow) in enumerate(zip(files.results(backend), files.run(backend))):
                varying = int(np.bitwise_or.reduce(result ^ result[0]))
                if set(map(int, shadow)) != {varying}:
                    wrong.append(f"{row.name}{files.immediates} result {i}: {set(map(hex, shadow))} instead of {varying:#x}")
    assert not wrong, "\n".join(wrong)


UPPER, LOWER, ALL = 0xFFFF0000, 0x0000FFFF, 0xFFFFFFFF
ALL64 = 2**64 - 1
#: name, values and shadows of the sources, shadows of the results, immediates
PRECISE = [
    ("and.b32", (5, 0xFF), (UPPER, 0), [0]),
    ("and.b32", (5, 0xFF), (ALL, 0), [0xFF]),
    ("or.b32", (0, 0xFF), (ALL, 0), [0xFFFFFF00]),
    ("xor.b32", (5, 5), (1, 2), [3]),
    ("and.pred", (1, 0), (1, 0), [0]),
    ("or.pred", (0, 1), (1, 0), [0]),
    ("or.pred", (0, 0), (1, 0), [1]),
    ("lop3.b32", (0, 0xFF, 0), (ALL, 0, 0), [0xFF], 0xC0),
    ("lop3.b32", (0, 0, 0), (ALL, ALL, ALL), [0], 0xFF),
    ("lop3.b32", (7, 0xF0, 1), (ALL, 0, 0), [0], 0xCC),
    ("lop3.or.b32", (0, 0xFF, 0x100, 0), (ALL, 0, 0, 0), [0xFF, 0], 0xEA),
    ("mov.b32:pack2", (1, 2), (0, 0xFFFF), [UPPER]),
    ("mov.b32:unpack2", (0,), (UPPER,), [0, 0xFFFF]),
    ("mov.b64:unpack2", (0,), (ALL,), [ALL, 0]),
    ("mov.b128", (1, 2), (0, 7), [0, 7]),
    ("mov.pred", (1,), (1,), [1]),
    ("shl.b32", (1, 8), (0xFF, 0), [0xFF00]),
    ("shl.b32", (1, 32), (ALL, 0), [0]),
    ("shl.b32", (1, 8), (0, 1), [ALL]),
    ("shr.u32", (1, 24), (0x00FFFFFF, 0), [0]),
    ("shr.s32", (1, 24), (1 << 31, 0), [0xFFFFFF80]),
    ("shf.l.wrap.b32", (0, 0, 8), (0xFF000000, 0, 0), [0xFF]),
    ("prmt.b32:imm", (0, 0), (0xFF00, 0), [0xFF], 0x7651),
    ("prmt.b32", (0, 0, 0x7654), (ALL, 0, 0), [0]),
    ("prmt.b32", (0, 0, 0x7654), (0, 0, 1), [ALL]),
    ("bfe.u32", (0, 8, 8), (ALL, 0, 0), [0xFF]),
    ("bfe.s32", (0, 8, 8), (0x8000, 0, 0), [0xFFFFFF80]),
    ("bfi.b32", (0, 0, 8, 8), (0xFF, UPPER, 0, 0), [0xFFFFFF00 & (UPPER | 0xFF00)]),
    ("szext.clamp.u32", (0, 8), (UPPER, 0), [0]),
    ("brev.b32", (0,), (1,), [1 << 31]),
    ("selp.b32", (1, 2, 1), (0, ALL, 0), [0]),
    ("selp.b32", (1, 2, 0), (0, ALL, 0), [ALL]),
    ("selp.b32", (1, 3, 0), (0, 0, 1), [2]),
    ("slct.f32.s32", (1, 2, -1), (ALL, 0, 0), [0]),
    ("cvt.u32.u8", (0,), (0xFFFFFF00,), [0]),
    ("cvt.s32.s8", (0,), (0x80,), [0xFFFFFF80]),
    ("cvt.u64.u32", (0,), (ALL,), [ALL]),
    ("cvt.s64.s32", (0,), (1 << 31,), [ALL64 ^ 0x7FFFFFFF]),
    ("cvt.u16.u32", (0,), (UPPER,), [0]),
    ("cvt.sat.u8.s32", (-5,), (3,), [0]),
    ("cvt.sat.u8.s32", (0x1000,), (ALL >> 1,), [0xFF]),
    ("cvt.rn.f16x2.f32", (0, 0), (1, 0), [UPPER]),
    ("cvt.rn.f16x2.f32", (0, 0), (0, 1), [LOWER]),
    ("cvt.f32.f16", (0,), (UPPER,), [0]),
    ("cvt.rn.satfinite.e4m3x2.f16x2", (0,), (UPPER,), [0xFF00]),
    ("cvt.rn.f16x2.e4m3x2", (0,), (1,), [LOWER]),
    ("cvt.pack.sat.u8.s32.b32", (0, 0, 0), (0, 1, 1), [0x000100FF]),
    ("add.u32", (1, 1), (UPPER, 0), [UPPER]),
    ("add.u32", (0, 0), (0xFF00, 0x0F), [0xFF0F]),
    ("add.u32", (0x0100, 0x0F), (0, 1), [1]),
    ("add.u32", (0x0FFF, 0), (0, 1), [0x1FFF]),
    ("sub.s32", (0x100, 0), (0, 1), [0x1FF]),
    ("neg.s32", (8,), (8,), [0xFFFFFFF8]),
    ("cvta.shared.u64", (0,), (0xFF,), [0xFF]),
    ("add.cc.u32", (0xFFFF0000, 0), (1, 0), [1, 0]),
    ("addc.u32", (4, 4, 0), (0, 0, 1), [1]),
    ("mul.lo.u32", (3, 5), (UPPER, 0), [UPPER]),
    ("mul.lo.u32", (3, 8), (1, 0), [0xFFFFFFF8]),
    ("mul.lo.u32", (3, 0), (ALL, 0), [0]),
    ("mul.wide.u32", (3, 4), (1 << 31, 0), [ALL64 & ~((1 << 33) - 1)]),
    ("mad.lo.s32", (3, 5, 7), (UPPER, 0, 0), [UPPER]),
    ("mad.wide.u32", (3, 4, 1), (0, 0, 1 << 63), [1 << 63]),
    ("min.u32", (7, 0x100), (1, 0), [1]),
    ("max.u32", (7, 0x100), (1, 0), [0]),
    ("clz.b32", (1 << 20,), (0xFF,), [0]),
    ("popc.b32", (0,), (7,), [3]),
    ("setp.eq.u32", (1, 2), (UPPER, 0), [0, 0]),
    ("setp.eq.u32", (1, 1), (UPPER, 0), [1, 1]),
    ("setp.lt.u32", (3, 0x100), (0xF, 0), [0, 0]),
    ("setp.lt.s32", (3, 0x100), (1 << 31, 0), [0, 0]),
    ("setp.gt.s32", (3, 1), (1 << 31, 0), [1, 1]),
    ("setp.eq.and.s32", (1, 1, 0), (1, 0, 0), [0, 0]),
    ("setp.lt.f32", (0, 0), (1, 0), [1, 1]),
    ("setp.lt.f16x2", (0, 0), (UPPER, 0), [0, 1]),
    ("set.lt.u32.u32", (3, 3), (1, 0), [ALL]),
    ("set.eq.f16x2.f16x2", (0, 0), (1, 0), [LOWER]),
    ("fma.rn.f16x2", (0, 0, 0), (1, 0, 0), [LOWER]),
    ("add.rn.bf16x2", (0, 0), (0, 1 << 16), [UPPER]),
    ("max.s16x2", (0, 0), (0, 1), [LOWER]),
    ("add.rn.f32x2", (0, 0), (1, 0), [ALL]),
    ("fma.rn.f32", (0, 0, 0), (0, 1, 0), [ALL]),
    ("add.rn.f16", (0, 0), (1, 0), [0xFFFF]),
    ("vadd4.u32.u32.u32", (0, 0, 0), (0x100, 0, ALL), [0xFF00]),
    ("vabsdiff4.u32.u32.u32.add", (0, 0, 0), (0, 0, 1), [ALL]),
    ("cnot.b32", (0x10,), (ALL - 0x10,), [0]),
    ("cnot.b32", (0,), (ALL,), [1]),
    ("activemask.b32", (), (), [0]),
    ("isspacep.shared", (0,), (1,), [1]),
]


@pytest.mark.parametrize("case", PRECISE, ids=lambda case: case[0])
def test_what_stays_defined(case):
    name, values, shadows, expected, *immediates = case
    assert [hex(x) for x in shadow_of(name, values, shadows, tuple(immediates))] == [hex(x) for x in expected]
