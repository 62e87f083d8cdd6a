"""Matrices to registers of a warp and back, by the fragment tables."""

from __future__ import annotations

import numpy as np


def to_registers(matrix: np.ndarray, elements: np.ndarray, bits: int) -> list[np.ndarray]:
    """Registers (arrays of 32) of a fragment from a matrix of bit patterns, `bits` wide each; f64 and f32 fill registers of their own."""
    held = matrix[elements[..., 0], elements[..., 1]].astype(np.uint64) & np.uint64((1 << bits) - 1 if bits < 64 else 2**64 - 1)
    per_register = max(32 // bits, 1)
    registers = []
    for i in range(0, elements.shape[1], per_register):
        word = np.zeros(32, np.uint64)
        for at in range(per_register):
            word |= held[:, i + at] << np.uint64(bits * at)
        registers.append(word)
    return registers


def from_registers(registers: list[np.ndarray], elements: np.ndarray, bits: int, shape: tuple[int, int]) -> np.ndarray:
    """The matrix of bit patterns (uint64) that a fragment's registers hold."""
    matrix = np.zeros(shape, np.uint64)
    per_register = max(32 // bits, 1)
    mask = np.uint64((1 << bits) - 1 if bits < 64 else 2**64 - 1)
    for number in range(elements.shape[1]):
        values = registers[number // per_register].astype(np.uint64) >> np.uint64(bits * (number % per_register)) & mask
        matrix[elements[:, number, 0], elements[:, number, 1]] = values
    return matrix


def encode(values: np.ndarray, type_: str) -> np.ndarray:
    """Bit patterns of numbers that the type holds exactly."""
    if type_ in ("f16", "f32", "f64"):
        width = int(type_[1:])
        return values.astype(f"f{width // 8}").view(f"u{width // 8}").astype(np.uint64)
    if type_ in ("bf16", "tf32"):
        words = values.astype(np.float32).view(np.uint32).astype(np.uint64)
        return words >> np.uint64(16) if type_ == "bf16" else words
    return values.astype(np.int64).view(np.uint64)


def decode(bits: np.ndarray, type_: str) -> np.ndarray:
    """Numbers from bit patterns of f16, f32, f64 or s32."""
    if type_ == "s32":
        return bits.astype(np.uint32).view(np.int32).astype(np.int64)
    width = int(type_[1:])
    return bits.astype(f"u{width // 8}").view(f"f{width // 8}").astype(np.float64)
