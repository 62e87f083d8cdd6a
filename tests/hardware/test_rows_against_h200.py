"""Every row that only touches registers, and every atomic, against what an H200 answered to the same inputs.

The recordings in data/ come from tests.hardware.record and record_sweeps; they hold digests and sums, since the inputs can be made again.
"""

import functools
import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from fasim.isa.rows import ROWS
from tests.hardware import inputs
from tests.hardware.exceptions import REASONS, exception
from tests.hardware.make_ptx import variants
from tests.hardware.simulate import answers, digest
from tests.hardware.sweeps import BINADE_BITS, BLOCK_BITS, Simulated, exhaustive_rows, sampled_rows

DATA = Path(__file__).parent / "data"
KINDS = ("lanes", "collective", "atom")


def opcode(row):
    """The first word of a row's name."""
    return row.name.split(".")[0]


@functools.cache
def recorded():
    return json.loads(gzip.decompress((DATA / "h200_rows.json.gz").read_bytes()))


@functools.cache
def by_part():
    parts = {}
    for variant in variants():
        parts.setdefault(opcode(variant.row), []).append(variant)
    return parts


PARTS = sorted({opcode(row) for row in ROWS.values() if row.kind in KINDS and exception(row) is None})


def test_inputs_are_those_of_the_recording():
    assert recorded()["about"]["inputs"] == f"tests.hardware.inputs version {inputs.VERSION}, seed {inputs.SEED}"


def test_every_row_is_recorded():
    keys = {v.key for v in variants()}
    assert keys - set(recorded()["digests"]) == set(), "not recorded; see the docstring of tests.hardware.record"
    assert set(recorded()["digests"]) - keys == set(), "recorded, but no row any more"
    covered = {v.row.name for v in variants()}
    assert [row.name for row in ROWS.values() if row.kind in KINDS and row.name not in covered and exception(row) is None] == []


def test_every_exception_is_needed():
    assert [prefix for prefix in REASONS if not any(name.startswith(prefix) for name in ROWS)] == []
    assert [name for name in ROWS if name.startswith(tuple(REASONS)) and name in recorded()["digests"]] == []


@pytest.mark.parametrize("part", PARTS)
def test_rows(part):
    digests = recorded()["digests"]
    wrong = [v.key for v in by_part()[part] if digest(v, answers(v)) != digests.get(v.key)]
    assert not wrong, f"{len(wrong)} of {len(by_part()[part])} differ from the hardware: {wrong}"


def test_random_operands():
    with np.load(DATA / "h200_sums.npz") as file:
        sums = dict(zip(file["names"].tolist(), file["random"]))
    wrong = []
    for row in sampled_rows():
        of_blocks = sums[row.name]
        if not np.array_equal(Simulated(row, False).sums(BLOCK_BITS, range(len(of_blocks) - 1)), of_blocks[:-1]):
            wrong.append(row.name)
    assert not wrong, f"{len(wrong)} differ from the hardware: {wrong}"


def binades(number):
    """Some of the 512 blocks of 2**23 float32 patterns: for every function others, but always the special values."""
    return sorted({0, 255, 256, 511, 127 - number % 8, 120 + number, 255 + number * 7, number * 8})


def test_every_float():
    with np.load(DATA / "h200_sums.npz") as file:
        sums = dict(zip(file["every_names"].tolist(), file["every"]))
    wrong = []
    for number, row in enumerate(exhaustive_rows()):
        chosen = binades(number)
        got = Simulated(row, True).sums(BINADE_BITS, chosen)
        wrong += [(row.name, b) for b, x, y in zip(chosen, got, sums[row.name][chosen]) if x != y]
    assert not wrong, f"functions and sign and exponent fields that differ from the hardware: {wrong}"
