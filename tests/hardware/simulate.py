"""The simulator's answers to the kernels of make_ptx: compiled handlers over all rounds of a variant's inputs."""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from fasim.isa.table import ROWS, Arg, Row
from fasim.warp.handlers import FULL_MASK, HandlerKey
from fasim.warp.jit import engine
from tests.hardware import inputs
from tests.hardware.make_ptx import Variant, outputs, uses_active

HANDLER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint32)
STRIDE = 256  # bytes of a register's row
DTYPE = {1: np.uint8, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
Patterns = Any


#: the first row of each meaning
_FIRST: dict[Any, str] = {}


def handler_key(variant: Variant) -> HandlerKey:
    """The handler of a variant; rows of one meaning (`.u32` and `.b32`, `lt` and `lo`) share that of the first."""
    row = scalar(variant.row)
    types = tuple((a.type_.replace("s", "u"), a.count) for a in row.dests)
    return HandlerKey(_FIRST.setdefault((row.semantics, types, row.sources), row.name), variant.immediates)


def scalar(row: Row) -> Row:
    """The row of one element of a vector atomic, else the row."""
    return ROWS[row.attributes["scalar"]] if "scalar" in row.attributes else row


def active_lanes(variant: Variant) -> Patterns | None:
    """The lanes that execute in each round, None if it does not matter."""
    if not uses_active(variant.row):
        return None
    masks = inputs.active_masks()
    if variant.immediates and any(a.name == "mask" and a.type_ == "imm" for a in variant.row.sources):
        masks = np.full_like(masks, variant.immediates[-1])
    return masks


def _store(registers: Patterns, arg: Arg, values: Patterns) -> None:
    """Patterns [round, lane] into registers [round, bytes]."""
    if arg.type_ == "pred":
        registers[:, :4] = np.packbits(values.astype(np.uint8), axis=1, bitorder="little")
    elif inputs.WIDTH[arg.type_] == 64:
        registers.view(np.uint64)[:] = values
    else:
        registers.view(np.uint32)[:, :32] = values


def _fetch(registers: Patterns, arg: Arg) -> Patterns:
    bits = inputs.WIDTH[arg.type_]
    if bits == 1:
        return np.unpackbits(registers[:, :4], axis=1, bitorder="little")
    words = registers.view(np.uint64) if bits == 64 else registers.view(np.uint32)[:, :32]
    return words.astype(DTYPE[bits])


def execute(key: HandlerKey, row: Row, sources: list[Patterns], masks: Patterns | None) -> list[Patterns]:
    """Destinations [round, lane] of a row."""
    dest_args = [a for a in row.dests for _ in range(max(a.count, 1))]
    source_args = inputs.register_sources(row)
    count = len(sources[0]) if sources else inputs.ROUNDS
    total = len(dest_args) + len(source_args)
    raw = np.zeros(total * count * STRIDE + 64, np.uint8)
    file = raw[-raw.ctypes.data % 64 :][: total * count * STRIDE].reshape(total, count, STRIDE)
    for i, (arg, values) in enumerate(zip(source_args, sources, strict=True)):
        _store(file[len(dest_args) + i], arg, values)
    pool = (np.arange(total) * count * STRIDE).astype(np.int32)
    engine().load([key])
    call, base, operands = HANDLER(engine().address(key)), file.ctypes.data, pool.ctypes.data
    for r, mask in enumerate([FULL_MASK] * count if masks is None else masks.tolist()):
        call(base + r * STRIDE, operands, mask)
    return [_fetch(file[i], a) for i, a in enumerate(dest_args)]


#: the last answers: rows of one meaning and the same inputs often follow each other
_LAST: dict[Any, list[Patterns]] = {}


def answers(variant: Variant) -> list[Patterns]:
    """What the variant's kernel stores, [round, lane] a destination, in the width of its type."""
    row = variant.row
    key = (handler_key(variant), inputs.plan(row), variant.key if row.kind == "atom" else "")
    if key not in _LAST:
        found = _answers(variant)
        _LAST.clear()
        _LAST[key] = found
    return _LAST[key]


def _answers(variant: Variant) -> list[Patterns]:
    row, sources, masks = variant.row, inputs.sources(variant.row), active_lanes(variant)
    if row.kind != "atom":
        return execute(handler_key(variant), row, sources, masks)
    one, count = scalar(row), max(row.sources[0].count, 1)
    news = [execute(handler_key(variant), one, sources[i::count], None)[0] for i in range(count)]
    olds = [s.astype(n.dtype) for s, n in zip(sources, news)]
    return news if row.name.startswith("red.") else olds + news


# --- what counts ---------------------------------------------------------------------------------------------------------------


def _shfl_undefined(variant: Variant) -> list[Patterns]:
    """Lanes whose source lane does not take part: the PTX ISA leaves their value open."""
    masks = active_lanes(variant)
    sources = [s.astype(np.int64) for s in inputs.sources(variant.row)]
    lane = np.arange(32)[None, :]
    if variant.immediates:
        b, c = (np.full_like(sources[0], i) for i in variant.immediates)
    else:
        b, c = sources[1], sources[2]
    member = sources[-1]
    segment, clamp, b = c >> 8 & 31, c & 31, b & 31
    last = lane & segment | clamp & ~segment & 31
    first = lane & segment
    mode = variant.row.name.split(".")[2]
    source = {"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first | b & ~segment & 31}[mode]
    inside = source >= last if mode == "up" else source <= last
    source = np.where(inside, source, lane) & 31
    assert masks is not None
    missing = (member & masks.astype(np.int64)[:, None]) >> source & 1 == 0
    return [missing, np.zeros_like(missing)]


def undefined(variant: Variant) -> list[Patterns] | None:
    """Where results are left open by the PTX ISA and therefore do not count, for each destination; None: nowhere."""
    if variant.row.name.startswith("shfl."):
        return _shfl_undefined(variant)
    return None


def digest(variant: Variant, results: Iterable[Patterns]) -> str:
    """Eight bytes of BLAKE2b over all destinations that count, each in the width of its type (a predicate: one byte)."""
    hash_, masks = hashlib.blake2b(digest_size=8), undefined(variant)
    for i, (arg, values) in enumerate(zip(outputs(variant), results, strict=True)):
        values = values.astype(DTYPE[inputs.WIDTH[arg.type_]])
        if masks is not None:
            values = np.where(masks[i], values.dtype.type(0), values)
        hash_.update(np.ascontiguousarray(values).tobytes())
    return hash_.hexdigest()
