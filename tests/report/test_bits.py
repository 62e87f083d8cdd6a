"""Outputs bit for bit: what differs, by how much, and where."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fasim.errors import UsageError
from fasim.report.bits import compare_bits, compare_output, sha256_of
from fasim.report.measured import Output

UNSIGNED = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32, "f64": np.uint64}


def floats(dtype, *patterns):
    bits = np.array(patterns, UNSIGNED[dtype])
    return bits if dtype == "bf16" else bits.view({"f16": np.float16, "f32": np.float32, "f64": np.float64}[dtype])


@pytest.mark.parametrize(
    "dtype, a, b, distance",
    [
        ("f16", 0x3C00, 0x3C01, 1),
        ("f16", 0x0000, 0x8000, 0),
        ("f16", 0x0001, 0x8001, 2),
        ("f16", 0x7C00, 0x7BFF, 1),
        ("f16", 0xFC00, 0x7C00, 2 * 0x7C00),
        ("bf16", 0x3F80, 0x3F7F, 1),
        ("bf16", 0xBF80, 0x3F80, 2 * 0x3F80),
        ("f32", 0x00000000, 0x80000001, 1),
        ("f32", 0x7F7FFFFF, 0xFF7FFFFF, 2 * 0x7F7FFFFF),
        ("f64", 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 2 * 0x7FEFFFFFFFFFFFFF),
        ("f64", 0x3FF0000000000000, 0x3FF0000000000001, 1),
        ("f32", 0x7FFFFFFF, 0x7FC00000, None),
        ("f16", 0x7E00, 0x3C00, None),
        ("bf16", 0x7F81, 0x7F80, None),
    ],
)
def test_distance_of_floating_point(dtype, a, b, distance):
    for x, y in ((a, b), (b, a)):
        found = compare_bits("o", dtype, floats(dtype, 0x1234, x), floats(dtype, 0x1234, y))
        digits = 2 * np.dtype(UNSIGNED[dtype]).itemsize
        assert (found.verdict, found.differing, found.largest_distance) == ("DIFFERENT", 1, distance)
        (first,) = found.first
        assert (first.index, first.distance) == ((1,), distance)
        assert (first.simulated_bits, first.measured_bits) == (f"0x{x:0{digits}x}", f"0x{y:0{digits}x}")
        assert found.zero_signs == (distance == 0) and found.nan_payloads == (distance is None and (a, b) == (0x7FFFFFFF, 0x7FC00000))


@pytest.mark.parametrize(
    "dtype, a, b, distance",
    [
        ("i32", -(2**31), 2**31 - 1, 2**32 - 1),
        ("i64", -(2**63), 2**63 - 1, 2**64 - 1),
        ("u64", 0, 2**64 - 1, 2**64 - 1),
        ("i8", -1, 1, 2),
        ("u8", 255, 0, 255),
        ("i16", -5, -9, 4),
    ],
)
def test_distance_of_integers(dtype, a, b, distance):
    kind = np.dtype({"i": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    found = compare_bits("o", dtype, np.array([a], kind), np.array([b], kind))
    assert found.largest_distance == distance
    assert (found.first[0].simulated, found.first[0].measured) == (a, b)


def test_values_shape_and_the_first_few():
    a = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    b = a.copy()
    b[0, 1, 2], b[1, 2, :] = 6.5, -1
    found = compare_bits("o", "f32", a, b, shown=2)
    assert (found.elements, found.differing, found.shape) == (24, 5, (2, 3, 4))
    assert [(x.index, x.simulated, x.measured) for x in found.first] == [((0, 1, 2), 6.0, 6.5), ((1, 2, 0), 20.0, -1.0)]
    assert compare_bits("o", "f32", a, a.copy()).verdict == "equal"
    # the order in memory does not matter, nor does that of the bytes
    assert compare_bits("o", "f32", a, np.asfortranarray(a)).equal
    assert compare_bits("o", "f32", a, a.astype(">f4")).equal


def test_equal_nans_and_bools():
    nan = floats("f32", 0x7FFFFFFF, 0xFFC00001)
    assert compare_bits("o", "f32", nan, nan.copy()).equal
    found = compare_bits("o", "bool", np.array([True, False]), np.array([True, True]))
    assert (found.differing, found.largest_distance, found.first[0].simulated) == (1, 1, 0)
    assert math.isnan(compare_bits("o", "f32", nan[:1], floats("f32", 0)).first[0].simulated)


def test_empty_arrays_are_equal():
    empty = np.zeros((0, 4), np.float16)
    assert compare_bits("o", "f16", empty, empty).equal


def test_by_hash():
    values = np.arange(6, dtype=np.float16).reshape(2, 3)
    measured = Output("o", "f16", (2, 3), sha256_of(values))
    found = compare_output(values, "f16", measured)
    assert (found.equal, found.by_hash, found.differing) == (True, True, 0)
    assert compare_output(np.asfortranarray(values), "f16", measured).equal
    found = compare_output(-values, "f16", measured)
    assert (found.equal, found.by_hash, found.differing, found.largest_distance) == (False, True, None, None)
    # with the elements at hand they are compared, not their hash
    assert not compare_output(values, "f16", Output("o", "f16", (2, 3), "", values)).by_hash


def test_what_cannot_be_compared():
    values = np.zeros(4, np.float32)
    with pytest.raises(UsageError, match=r"f32\[4\], the GPU f32\[5\]"):
        compare_output(values, "f32", Output("o", "f32", (5,), ""))
    with pytest.raises(UsageError, match="shape"):
        compare_bits("o", "f32", values, values[:3])
    with pytest.raises(UsageError, match="f16 is held in float16, got float32"):
        compare_bits("o", "f16", values, values)
    with pytest.raises(UsageError, match="no element type 'f8'"):
        compare_bits("o", "f8", values, values)
