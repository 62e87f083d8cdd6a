"""Comparison, statistics and JSON."""

from __future__ import annotations

import json

import numpy as np
import pytest

from fasim.errors import MemoryAccessError, UsageError, Where
from fasim.gmem import AddressSpace
from fasim.numerics.dtypes import DTYPES, bf16_bits
from fasim.report.compare import compare, statistics
from fasim.report.records import OutputReport, error_report, to_json
from fasim.report.text import output_lines
from fasim.trace.elements import Elements

INF, NAN = np.inf, np.nan
F32 = np.float32

# got, dtype, expected, rtol, atol: wrong elements, max abs error, index of the worst
COMPARISONS = [
    (np.array([1, 2], F32), "f32", np.array([1, 2.5]), 0, 0, 1, 0.5, (1,)),
    (np.array([1, 2], F32), "f32", np.array([1, 2.5]), 0, 0.5, 0, 0.5, (1,)),
    (np.array([1, 2], F32), "f32", np.array([1, 2.5]), 0.2, 0, 0, 0.5, (1,)),
    (np.array([[1, 200], [1, 2]], F32), "f32", np.array([[1, 201], [1, 2.5]]), 0.01, 0, 1, 1.0, (1, 1)),
    (np.array([NAN, 1], F32), "f32", np.array([NAN, 1]), 0, 0, 0, 0.0, (0,)),
    (np.array([NAN, 1], F32), "f32", np.array([0, 1]), 1, 1, 1, INF, (0,)),
    (np.array([0, 1], F32), "f32", np.array([NAN, 1]), 1, 1, 1, INF, (0,)),
    (np.array([INF, -INF], F32), "f32", np.array([INF, INF]), 1, 1, 1, INF, (1,)),
    (np.array([2**53 + 1, 2**63 - 1], np.int64), "i64", np.array([2**53, 2**63 - 1]), 0, 0, 1, 1.0, (0,)),
    (np.array([255, 0], np.uint8), "u8", np.array([-1, 0]), 0, 0, 1, 256.0, (0,)),
    (np.array([True, False]), "bool", np.array([True, True]), 0, 0, 1, 1.0, (1,)),
    (bf16_bits([1.0, 2.0]), "bf16", np.array([1.0, 2.0]), 0, 0, 0, 0.0, (0,)),
    (bf16_bits([1.0, 2.0]), "bf16", np.array([1.0, 3.0]), 0, 0, 1, 1.0, (1,)),
]


@pytest.mark.parametrize(("got", "dtype", "expected", "rtol", "atol", "wrong", "error", "index"), COMPARISONS)
def test_compare(got, dtype, expected, rtol, atol, wrong, error, index):
    found = compare(got, dtype, expected, "test", rtol, atol)
    assert (found.wrong_elements, found.max_abs_error, found.worst.index, found.ok) == (wrong, error, index, wrong == 0)


def test_compare_finds_the_worst_in_any_chunk(monkeypatch):
    monkeypatch.setattr("fasim.report.compare._CHUNK", 16)
    got = np.zeros((10, 10))
    for at in ((0, 3), (7, 7), (9, 9)):
        changed = got.copy()
        changed[at] = 5
        changed[4, 4] = 1
        found = compare(changed, "f64", got, "test", 0, 0)
        assert (found.worst.index, found.wrong_elements, found.max_abs_error) == (at, 2, 5)
        assert statistics(changed, "f64").maximum == 5


def test_shapes():
    assert compare(np.zeros((2, 3)), "f64", np.zeros(6), "test", 0, 0).ok
    with pytest.raises(UsageError, match=r"shape \[2, 3\], what is expected has shape \[3, 2\]"):
        compare(np.zeros((2, 3)), "f64", np.zeros((3, 2)), "test", 0, 0)


def test_statistics():
    found = statistics(np.array([NAN, INF, 1, -3, NAN], F32), "f32")
    assert (found.elements, found.nan, found.infinite, found.minimum, found.maximum, found.mean) == (5, 2, 1, -3, 1, -1)
    nothing = statistics(np.array([NAN], F32), "f32")
    assert (nothing.minimum, nothing.maximum, nothing.mean) == (None, None, None)
    large = statistics(np.array([2**64 - 1, 0], np.uint64), "u64")
    assert (large.minimum, large.maximum) == (0, 2**64 - 1)


def test_json_of_a_finding_is_valid_and_complete():
    where = Where("k", "a.cu", 7, 9, "ld", (1, 0, 0), 2, (3, 4), ((3, 0, 0),))
    error = MemoryAccessError("out of bounds", where, kind="oob_global", addresses=[1 << 47], ratio=NAN, limit=-INF, count=np.int64(3))
    record = json.loads(to_json(error_report(error, "1.0", "text")), parse_constant=lambda name: pytest.fail(name))
    assert next(iter(record)) == "schema"
    assert record["where"]["line"] == 7 and record["where"]["lanes"] == [3, 4]
    assert record["details"] == {"kind": "oob_global", "addresses": [1 << 47], "ratio": "NaN", "limit": "-Infinity", "count": 3}
    assert (record["type"], record["exit_code"], record["output"]) == ("MemoryAccessError", 1, "text")


@pytest.mark.parametrize(
    ("dtype", "shape", "wrong", "place"),
    [
        ("f32", (1024,), (77,), 308),
        ("f16", (2, 3, 64), (1, 2, 40), 2 * (64 * (3 + 2) + 40)),
        ("bf16", (5, 2), (4, 1), 18),
        ("u8", (7,), (6,), 6),
        ("bool", (7,), (6,), 6),
        ("f64", (), (), 0),
    ],
)
def test_a_wrong_output_says_how_the_stepper_gets_there(dtype, shape, wrong, place):
    got, expected = np.zeros(shape, DTYPES[dtype]), np.zeros(shape, DTYPES[dtype])
    right = output_lines(_output(got, dtype, expected), color=False)
    expected[wrong] = 1
    lines = output_lines(_output(got, dtype, expected), color=False)
    element = f"[{','.join(map(str, wrong))}]" if wrong else " 0"
    keys = f"there press x, type mem out{element}, Enter, c"
    told = f"to where it is written: the same command with --trace; {keys} (in the CTA that --cta chooses)"
    assert told in lines and not any("--trace" in line for line in right)
    assert Elements(_space(got), {"out": dtype}).find("out", ",".join(map(str, wrong)))[0] == place if wrong else place == 0
    for ctas, writers, ending in ((1, {}, "Enter, c"), (4, {"out": "2,1"}, "Enter, c")):
        (line,) = [line for line in output_lines(_output(got, dtype, expected), False, ctas, writers) if "--trace" in line]
        assert line.endswith(ending) and ("--trace --cta 2,1; there" in line) == bool(writers)


def test_an_output_that_is_not_a_number_has_no_infinite_error():
    got = np.array([1, np.nan], np.float32)
    lines = output_lines(_output(got, "f32", np.ones(2, np.float32)), color=False)
    assert "WRONG: max abs error nan against there (exact)" in lines
    lines = output_lines(_output(np.array([1, np.inf], np.float32), "f32", np.ones(2, np.float32)), color=False)
    assert "WRONG: max abs error inf against there (exact)" in lines


def _space(data):
    space = AddressSpace()
    space.add("out", data)
    return space


def _output(got, dtype, expected):
    verdict = compare(got, dtype, expected, "there", 0, 0, "bf16" if dtype == "bf16" else None)
    return OutputReport("out", dtype, got.shape, True, "", statistics(got, dtype), verdict)
