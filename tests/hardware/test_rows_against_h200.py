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
from tests.hardware.make_ptx import needs_newer, only_in_vectors, variants
from tests.hardware.simulate import answers, digest
from tests.hardware.sweeps import BINADE_BITS, BLOCK_BITS, Simulated, exhaustive_rows, sampled_rows

DATA = Path(__file__).parent / "data"
KINDS = ("lanes", "collective", "atom")

#: rows without a recording that counts, by the beginning of their names
EXCEPTIONS = {
    "cvta.": "where the state spaces lie among generic addresses is each machine's own choice",
    "isspacep.": "where the state spaces lie among generic addresses is each machine's own choice",
    "createpolicy.": "a cache policy is opaque, and the simulated caches take no hints",
}


def exception(row):
    """Why there is nothing to compare a row with, or None."""
    if needs_newer(row):
        return "needs a target after sm_90"
    if row.kind == "atom" and only_in_vectors(row):
        return "exists for vectors only, whose recordings check it"
    return next((reason for prefix, reason in EXCEPTIONS.items() if row.name.startswith(prefix)), None)


def module(variant):
    """The part of the table that a variant belongs to."""
    return variant.row.name.split(".")[0]


@functools.cache
def recorded():
    return json.loads(gzip.decompress((DATA / "h200_rows.json.gz").read_bytes()))


@functools.cache
def by_part():
    parts = {}
    for variant in variants():
        if exception(variant.row) is None:
            parts.setdefault(module(variant), []).append(variant)
    return parts


PARTS = sorted({row.name.split(".")[0] for row in ROWS.values() if row.kind in KINDS and exception(row) is None})


def test_inputs_are_those_of_the_recording():
    assert recorded()["about"]["inputs"] == f"tests.hardware.inputs version {inputs.VERSION}, seed {inputs.SEED}"


def test_every_row_is_recorded():
    keys = {v.key for v in variants() if exception(v.row) is None}
    assert keys - set(recorded()["digests"]) == set(), "record them: python -m tests.hardware.record"
    covered = {v.row.name for v in variants()}
    rows = [row for row in ROWS.values() if row.kind in KINDS]
    assert [row.name for row in rows if row.name not in covered and exception(row) is None] == []


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
