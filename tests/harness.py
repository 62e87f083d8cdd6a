"""Run one row of the instruction table on 32 lanes, on the reference backend or compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from fasim.isa.rows import row_of
from fasim.isa.table import Arg
from fasim.numerics.lanes import width
from fasim.warp.handlers import FULL_MASK, HandlerKey, reference_handler, row_bytes
from fasim.warp.jit import engine

BACKENDS = ("reference", "jit")


def aligned(size: int) -> np.ndarray:
    """Zeroed bytes at a 64-byte boundary."""
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def _put(registers: np.ndarray, offset: int, arg: Arg, values: object) -> None:
    values = np.broadcast_to(np.asarray(values), 32)
    if arg.type_ == "pred":
        registers[offset : offset + 4].view(np.uint32)[0] = sum(1 << i for i in range(32) if values[i])
        return
    bits = width(arg.type_)
    mask = (1 << bits) - 1
    if values.dtype.kind == "f":
        words = [int(x) for x in values.view(f"u{values.dtype.itemsize}")]
    else:
        words = [int(x) & mask for x in values]
    registers[offset : offset + row_bytes(arg.type_)].view(np.uint64 if bits == 64 else np.uint32)[:] = words


def run_row(
    name: str,
    sources: Sequence[object],
    *,
    immediates: tuple[int, ...] = (),
    mask: int = FULL_MASK,
    backend: str = "jit",
    dests: Sequence[object] | None = None,
) -> list[np.ndarray]:
    """Execute a row once.

    sources: for each non-immediate source in the row's order (vectors flattened, `cc` included, `active` left out) one value or 32.
    Integer values are bit patterns, numpy floats are stored by their bits. dests: what the destination registers hold before.
    Returns one array of 32 a destination register: bool, or unsigned integers of the register's 32 or 64 bits.
    """
    row = row_of(name)
    dest_args = [arg for arg in row.dests for _ in range(max(arg.count, 1))]
    source_args = [arg for arg in row.sources for _ in range(max(arg.count, 1)) if arg.type_ != "imm" and arg.name != "active"]
    assert len(source_args) == len(sources), f"{name} takes {len(source_args)} source registers, not {len(sources)}"
    registers, operands, at = aligned(64 + 256 * (len(dest_args) + len(source_args))), [], 64
    for i, arg in enumerate(dest_args + source_args):
        operands.append(at)
        if i >= len(dest_args):
            _put(registers, at, arg, sources[i - len(dest_args)])
        elif dests is not None:
            _put(registers, at, arg, dests[i])
        at += 256
    pool, key = np.array(operands, np.int32), HandlerKey(name, immediates)
    if backend == "reference":
        reference_handler(row, immediates)(registers, pool, mask)
    else:
        engine().load([key])
        call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)(engine().address(key))
        call(registers.ctypes.data, pool.ctypes.data, mask)
    results = []
    for arg, offset in zip(dest_args, operands):
        if arg.type_ == "pred":
            word = int(registers[offset : offset + 4].view(np.uint32)[0])
            results.append((word >> np.arange(32)) & 1 == 1)
        else:
            results.append(
                registers[offset : offset + row_bytes(arg.type_)].view(np.uint64 if width(arg.type_) == 64 else np.uint32).copy()
            )
    return results
