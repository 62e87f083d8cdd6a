"""State before and after one instruction with undefined bits, for the tests of shadow handlers."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence

import numpy as np

from fasim.isa.rows import ROWS
from fasim.isa.table import Arg, Row
from fasim.numerics.lanes import width
from fasim.warp.handlers import FULL_MASK, HandlerKey, reference_handler
from fasim.warp.jit import engine
from fasim.warp.shadow import dest_operands, reference_shadow_handler
from tests.harness import BACKENDS, aligned


def registers_of(row: Row) -> list[Arg]:
    """The argument of each register, destinations first."""
    return [a for a in (*row.dests, *row.sources) if a.type_ != "imm" and a.name != "active" for _ in range(max(a.count, 1))]


@functools.cache
def plain(name: str, immediates: tuple[int, ...], backend: str) -> Callable[..., None]:
    if backend == "reference":
        return reference_handler(ROWS[name], immediates)
    key = HandlerKey(name, immediates)
    engine().load([key])
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)(engine().address(key))
    return lambda registers, operands, mask: call(registers.ctypes.data, operands.ctypes.data, mask)


@functools.cache
def shadowing(name: str, immediates: tuple[int, ...], backend: str) -> Callable[..., None]:
    if backend == "reference":
        return reference_shadow_handler(ROWS[name], immediates)
    key = HandlerKey(name, immediates, shadow=True)
    engine().load([key])
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4, ctypes.c_uint32)(engine().address(key))
    return lambda *arrays: call(*(a.ctypes.data for a in arrays[:4]), arrays[4])


class Files:
    """Registers, shadow and origins for one instruction; 32 words an operand, predicates as 0 and 1. Sources alone are given."""

    def __init__(self, name: str, values: Sequence, shadows: Sequence = (), origins: Sequence = (), immediates: tuple[int, ...] = ()):
        self.name, self.immediates = name, immediates
        self.args = registers_of(ROWS[name])
        self.dests = len(dest_operands(ROWS[name]))
        self.offsets = np.array([64 + 256 * i for i in range(len(self.args))], np.int32)
        self.registers, self.shadow, self.origins = (aligned(64 + 256 * len(self.args)) for _ in range(3))
        for i, value in enumerate(values, self.dests):
            self.put(self.registers, i, value)
        for i, shadow in enumerate(shadows, self.dests):
            self.put(self.shadow, i, shadow)
        for i in range(len(self.args)):
            self.put_origin(i, origins[i - self.dests] if i >= self.dests and len(origins) else i + 1)

    def put(self, file: np.ndarray, i: int, values: object) -> None:
        words, at, bits = np.broadcast_to(np.asarray(values), 32), self.offsets[i], width(self.args[i].type_)
        if bits == 1:
            file[at : at + 4].view(np.uint32)[0] = sum(1 << lane for lane in range(32) if words[lane])
        else:
            size = 64 if bits == 64 else 32
            file[at : at + 4 * size].view(f"u{size // 8}")[:] = [int(x) & (1 << size) - 1 for x in words]

    def negate(self, name: str) -> None:
        """Read a predicate source as its opposite."""
        i = next(i for i, a in enumerate(self.args) if i >= self.dests and a.name == name)
        self.offsets[i] |= 1

    def get(self, file: np.ndarray, i: int) -> np.ndarray:
        at, bits = self.offsets[i], width(self.args[i].type_)
        if bits == 1:
            return (int(file[at : at + 4].view(np.uint32)[0]) >> np.arange(32) & 1).astype(np.uint64)
        size = 64 if bits == 64 else 32
        return file[at : at + 4 * size].view(f"u{size // 8}").astype(np.uint64)

    def put_origin(self, i: int, origin: object) -> None:
        at, count = self.offsets[i], 1 if self.args[i].type_ == "pred" else 32
        self.origins[at : at + 4 * count].view(np.uint32)[:] = origin

    def results(self, backend: str, mask: int = FULL_MASK) -> list[np.ndarray]:
        """What the instruction gives."""
        registers = self.registers.copy() if backend == "reference" else aligned(self.registers.size)
        registers[:] = self.registers
        plain(self.name, self.immediates, backend)(registers, self.offsets, mask)
        return [self.get(registers, i) for i in range(self.dests)]

    def run(self, backend: str, mask: int = FULL_MASK) -> list[np.ndarray]:
        """The shadows of the results, after changing both files."""
        shadowing(self.name, self.immediates, backend)(self.registers, self.shadow, self.origins, self.offsets, mask)
        return [self.get(self.shadow, i) for i in range(self.dests)]

    def origin(self, i: int = 0) -> np.ndarray:
        """The origins of a destination, one for a predicate."""
        at, count = self.offsets[i], 1 if self.args[i].type_ == "pred" else 32
        return self.origins[at : at + 4 * count].view(np.uint32).copy()


def shadow_of(name: str, values: Sequence, shadows: Sequence, immediates: tuple[int, ...] = (), lane: int = 0) -> list[int]:
    """The result shadows in one lane, on both machines."""
    one, other = ([int(x[lane]) for x in Files(name, values, shadows, immediates=immediates).run(backend)] for backend in BACKENDS)
    assert one == other
    return one
