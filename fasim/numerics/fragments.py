"""Fragments: which matrix element each lane and register of a warp holds in mma and wmma instructions.

Every mma shape follows one rule. With g = lane / 4, t = lane % 4 and w elements of the multiplicands in a register, register j of
A starts at (g + 8 * (j % 2), w*t + 4*w * (j / 2)), or (g, w*t + 4*w*j) when A has 8 rows; register j of B at (w*t + 4*w*j, g); its other
elements continue along k. Element i of C and D is at (g + 8 * (i / 2), 2*t + i % 2).

wmma fragments, which PTX leaves open, are those that ptxas uses since sm_80: the blocks of 16 x 8 that one mma of the same k computes,
one after the other. m8n32 is computed as the transposed m32n8; the shapes m8n8 are those of mma.
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
    "s4": ("m8n8k32",),
    "u4": ("m8n8k32",),
    "b1": ("m8n8k128",),
    "f64": ("m8n8k4",),
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


#: registers of an f16 wmma multiplicand; since Volta's fragments needed them all, the elements are there more than once
WMMA_F16_REGISTERS = 8


@functools.cache
def wmma_blocks(shape: str) -> tuple[str, bool, list[tuple[int, int]]]:
    """How a wmma is made of mma: the mma shape, whether A and B trade places, and the (row block, column block) of each mma in order."""
    m, n, k = sizes(shape)
    if m == n == 8:
        return shape, False, [(0, 0)]
    swapped = m == 8
    rows, columns = (n, m) if swapped else (m, n)
    return f"m16n8k{k}", swapped, [(i, j) for i in range(rows // 16) for j in range(columns // 8)]


@functools.cache
def wmma_fragment_elements(shape: str, operand: str, type_: str) -> Elements:
    """The elements of a wmma fragment; the memory layout of the matrix makes no difference.

    operand: 'a', 'b', 'c' or 'd'. type_: the type of the multiplicands.
    Returns [32 lanes, n elements, 2] of (row, column), as `fragment_elements`; f16 multiplicands repeat theirs to fill 8 registers.
    Raises UsageError for a shape that wmma does not have with this type.
    Source: machine code that ptxas makes of wmma.load and wmma.mma for sm_80 and sm_90.
    """
    if shape not in WMMA_SHAPES.get(type_, ()):
        known = ", ".join(WMMA_SHAPES.get(type_, ())) or f"none; types are {', '.join(WMMA_SHAPES)}"
        raise UsageError(f"wmma has no shape {shape} with {type_}; known: {known}")
    mma_shape, swapped, blocks = wmma_blocks(shape)
    role = {"a": "b", "b": "a"}.get(operand, operand) if swapped else operand
    one = fragment_elements(mma_shape, role, type_)
    if role == "a":
        origins = [(16 * i, 0) for i in sorted({i for i, _ in blocks})]
    elif role == "b":
        origins = [(0, 8 * j) for j in sorted({j for _, j in blocks})]
    else:
        origins = [(16 * i, 8 * j) for i, j in blocks]
    result = np.concatenate([one + np.array(origin) for origin in origins], axis=1)
    if type_ == "f16" and role in "ab":
        result = np.tile(result, (1, 2 * WMMA_F16_REGISTERS // result.shape[1], 1))
    if swapped:
        result = result[:, :, ::-1].copy()
    result.flags.writeable = False
    return result


def locate(elements: Elements) -> dict[tuple[int, int], tuple[int, int]]:
    """The inverse: (row, column) to the (lane, element number) that holds it, the first one if several do."""
    where: dict[tuple[int, int], tuple[int, int]] = {}
    for number in range(elements.shape[1]):
        for lane in range(elements.shape[0]):
            where.setdefault((int(elements[lane, number, 0]), int(elements[lane, number, 1])), (lane, number))
    return where


Source = tuple[int, tuple[int, ...]]  # an element of a fragment, and for each lane the lane that holds it


@functools.cache
def sources(shape: str, type_: str) -> tuple[tuple[tuple[Source, Source], ...], ...]:
    """For each element of D and each k: where its factors of A and B come from."""
    held = {x: locate(fragment_elements(shape, x, type_)) for x in "ab"}

    def source(operand: str, positions: Elements) -> Source:
        found = [held[operand][int(r), int(c)] for r, c in positions]
        (element,) = {element for _, element in found}
        return element, tuple(lane for lane, _ in found)

    d, k = fragment_elements(shape, "d", type_), sizes(shape)[2]
    result = []
    for number in range(d.shape[1]):
        at_a, at_b = d[:, number].copy(), d[:, number].copy()
        factors = []
        for i in range(k):
            at_a[:, 1], at_b[:, 0] = i, i
            factors.append((source("a", at_a), source("b", at_b)))
        result.append(tuple(factors))
    return tuple(result)
