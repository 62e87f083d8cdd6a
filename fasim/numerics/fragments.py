"""Fragments: which matrix element each lane and register of a warp holds in mma and wmma instructions.

Every mma shape follows one rule. With g = lane / 4, t = lane % 4 and w elements of the multiplicands in a register, register j of
A starts at (g + 8 * (j % 2), w*t + 4*w * (j / 2)), or (g, w*t + 4*w*j) when A has 8 rows; register j of B at (w*t + 4*w*j, g); its other
elements continue along k. Element i of C and D is at (g + 8 * (i / 2), 2*t + i % 2).
"""

from __future__ import annotations

import functools
import re
from typing import Any

import numpy as np

from fasim.errors import UsageError

LANES = 32
Elements = np.ndarray[Any, np.dtype[np.int64]]

#: bits of one element; tf32 stands in a register of its own
ELEMENT_BITS = {"f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1, "s32": 32}

#: mma shapes, by the type of the multiplicands
MMA_SHAPES: dict[str, tuple[str, ...]] = {
    "f16": ("m16n8k8", "m16n8k16"),
    "bf16": ("m16n8k8", "m16n8k16"),
    "tf32": ("m16n8k4", "m16n8k8"),
    "f64": ("m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"),
    "s8": ("m8n8k16", "m16n8k16", "m16n8k32"),
    "u8": ("m8n8k16", "m16n8k16", "m16n8k32"),
    "s4": ("m8n8k32", "m16n8k32", "m16n8k64"),
    "u4": ("m8n8k32", "m16n8k32", "m16n8k64"),
    "b1": ("m8n8k128", "m16n8k128", "m16n8k256"),
}

#: wmma shapes, by the type of the multiplicands
WMMA_SHAPES: dict[str, tuple[str, ...]] = {
    "f16": ("m16n16k16", "m32n8k16", "m8n32k16"),
    "bf16": ("m16n16k16", "m32n8k16", "m8n32k16"),
    "tf32": ("m16n16k8",),
    "s8": ("m16n16k16", "m32n8k16", "m8n32k16"),
    "u8": ("m16n16k16", "m32n8k16", "m8n32k16"),
}


def sizes(shape: str) -> tuple[int, int, int]:
    """m, n and k of a shape as PTX spells it."""
    match = re.fullmatch(r"m(\d+)n(\d+)k(\d+)", shape)
    if match is None:
        raise UsageError(f"{shape!r} is not a matrix shape; write for example 'm16n8k16'")
    return int(match[1]), int(match[2]), int(match[3])


def matrix_size(shape: str, operand: str) -> tuple[int, int]:
    """Rows and columns of operand 'a', 'b', 'c' or 'd'."""
    m, n, k = sizes(shape)
    return {"a": (m, k), "b": (k, n)}.get(operand, (m, n))


@functools.cache
def fragment_elements(shape: str, operand: str, type_: str) -> Elements:
    """The elements of an mma fragment.

    operand: 'a', 'b', 'c' or 'd'. type_: the type of the multiplicands (it decides C and D too).
    Returns [32 lanes, n elements, 2] of (row, column), elements in register order, the low bits of a register first.
    Raises UsageError for a shape that mma does not have with this type.
    Source: PTX ISA, warp-level-matrix-fragment of each shape.
    """
    if shape not in MMA_SHAPES.get(type_, ()):
        known = ", ".join(MMA_SHAPES.get(type_, ())) or f"none; types are {', '.join(MMA_SHAPES)}"
        raise UsageError(f"mma has no shape {shape} with {type_}; known: {known}")
    rows, columns = matrix_size(shape, operand)
    lane, i = np.arange(LANES)[:, None], np.arange(rows * columns // LANES)[None, :]
    g, t = lane // 4, lane % 4
    per_register = max(32 // ELEMENT_BITS[type_], 1)
    j, along = i // per_register, i % per_register
    if operand == "a":
        row_blocks = rows // 8
        row, column = g + 8 * (j % row_blocks), per_register * (t + 4 * (j // row_blocks)) + along
    elif operand == "b":
        row, column = per_register * (t + 4 * j) + along, g + 0 * i
    else:
        row, column = g + 8 * (i // 2), 2 * t + i % 2
    result = np.stack(np.broadcast_arrays(row, column), axis=-1).astype(np.int64)
    result.flags.writeable = False
    return result


def locate(elements: Elements) -> dict[tuple[int, int], tuple[int, int]]:
    """The inverse: (row, column) to the (lane, element number) that holds it, the first one if several do."""
    where: dict[tuple[int, int], tuple[int, int]] = {}
    for number in range(elements.shape[1]):
        for lane in range(elements.shape[0]):
            where.setdefault((int(elements[lane, number, 0]), int(elements[lane, number, 1])), (lane, number))
    return where
