"""The two machines: compiled, and the same source as plain Python."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fasim.errors import UsageError
from fasim.isa import machine as m
from fasim.isa.program import HandlerUse, Program
from fasim.numerics import native
from fasim.warp.handlers import HandlerKey, reference_handler
from fasim.warp.schedule import LONGEST_SLICE_INSTRUCTIONS, QUANTUM_INSTRUCTIONS
from fasim.warp.taint import AUX_BANKS, AUX_DESTS, AUX_MMA, AUX_SHUFFLE, AUX_SOURCES, BANK_CODES, SHOWN_SOURCES


@dataclass(frozen=True)
class Machine:
    """run(context address, entry pc) -> status; addresses(uses) -> what goes into the code for each handler.

    shadow_addresses(uses): the same for the shadow handlers, which `native.call_shadow` takes; all uses must be of shadowed rows.
    slice_instructions: the most warp instructions for one call of `run`.
    """

    name: str
    run: Callable[[int, int], int]
    addresses: Callable[[Iterable[HandlerUse]], dict[HandlerUse, int]]
    shadow_addresses: Callable[[Iterable[HandlerUse]], dict[HandlerUse, int]]
    slice_instructions: int


def link(program: Program, machine: Machine, *, shadows: bool = False) -> np.ndarray[Any, Any]:
    """The program's code with the addresses of its handlers and operands (of `program.pool`, which must stay).

    shadows: also with what `fasim.warp.taint` needs: shadow handlers, which instructions are mma, which are shuffles.
    """
    code = program.code.copy()
    addresses = machine.addresses(program.handlers.values())
    words = code.view(np.int64)
    words[:, m.AT_OPERANDS // 8] = program.pool.ctypes.data + 4 * code[:, m.AT_POOL // 4].astype(np.int64)
    for pc, use in program.handlers.items():
        words[pc, m.AT_HANDLER // 8] = addresses[use]
    if shadows:
        _link_shadows(program, machine, code)
    return code


def _link_shadows(program: Program, machine: Machine, code: np.ndarray[Any, Any]) -> None:
    from fasim.isa.rows import row_of
    from fasim.warp.shadow import SHADOWED, dest_operands, source_operands

    shadowed = {pc: use for pc, use in program.handlers.items() if code[pc, m.AT_KIND // 4] in (m.LANES, m.COLLECTIVE)}
    shadowed = {pc: use for pc, use in shadowed.items() if row_of(use.name).kind in SHADOWED}
    addresses = machine.shadow_addresses(shadowed.values())
    for pc, use in shadowed.items():
        code.view(np.int64)[pc, m.AT_SHADOW // 8] = addresses[use]
        dests, sources = dest_operands(row_of(use.name)), source_operands(row_of(use.name))
        aux = len(dests) << AUX_DESTS | len(sources) << AUX_SOURCES
        for i, source in enumerate(sources[:SHOWN_SOURCES]):
            aux |= BANK_CODES[source.bank] << AUX_BANKS + 2 * i
        opcode = use.name.split(".")[0]
        code[pc, m.AT_AUX // 4] = aux | (AUX_SHUFFLE if opcode == "shfl" else AUX_MMA if opcode in ("mma", "wmma") else 0)


def _reference_addresses(uses: Iterable[HandlerUse]) -> dict[HandlerUse, int]:
    return {use: _reference_index(use) for use in uses}


@functools.cache
def _reference_index(use: HandlerUse) -> int:
    from fasim.isa.rows import row_of  # a quarter of a second: only who needs rows pays

    row = row_of(use.name)
    handler = reference_handler(row, use.immediates)
    count = sum(max(a.count, 1) for a in (*row.dests, *row.sources) if a.type_ != "imm" and a.name != "active")

    def by_address(registers: int, operands: int, mask: int) -> None:
        handler(_bytes_at(registers), _words_at(operands, count), mask)

    native.REFERENCE_HANDLERS.append(by_address)
    return len(native.REFERENCE_HANDLERS) - 1


def _reference_shadow_addresses(uses: Iterable[HandlerUse]) -> dict[HandlerUse, int]:
    return {use: _reference_shadow_index(use) for use in uses}


@functools.cache
def _reference_shadow_index(use: HandlerUse) -> int:
    from fasim.isa.rows import row_of
    from fasim.warp.shadow import dest_operands, reference_shadow_handler, source_operands

    row = row_of(use.name)
    handler = reference_shadow_handler(row, use.immediates)
    count = len(dest_operands(row)) + len(source_operands(row))

    def by_address(registers: int, shadow: int, origins: int, operands: int, mask: int) -> None:
        handler(_bytes_at(registers), _bytes_at(shadow), _bytes_at(origins), _words_at(operands, count), mask)

    native.REFERENCE_SHADOW_HANDLERS.append(by_address)
    return len(native.REFERENCE_SHADOW_HANDLERS) - 1


def _bytes_at(address: int) -> np.ndarray[Any, Any]:
    # a register file is at most a few megabytes; offsets were made by lowering
    return _view(address, 1 << 26, np.uint8)


def _words_at(address: int, count: int) -> np.ndarray[Any, Any]:
    return _view(address, count * 4, np.uint8).view(np.int32)


def _view(address: int, size: int, dtype: Any) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
    return array.view(dtype)


def _jit_addresses(uses: Iterable[HandlerUse], shadow: bool = False) -> dict[HandlerUse, int]:
    from fasim.warp.jit import engine

    keys = {use: HandlerKey(use.name, use.immediates, shadow) for use in uses}
    engine().load(keys.values())
    return {use: engine().address(key) for use, key in keys.items()}


def _jit_shadow_addresses(uses: Iterable[HandlerUse]) -> dict[HandlerUse, int]:
    return _jit_addresses(uses, shadow=True)


@functools.cache
def machine(name: str = "jit") -> Machine:
    """The machine called "jit" or "reference"."""
    from fasim.sm.cta import run_ctas
    from fasim.warp.jit import compile_machine

    if name == "reference":
        return Machine(name, run_ctas, _reference_addresses, _reference_shadow_addresses, QUANTUM_INSTRUCTIONS)
    if name != "jit":
        raise UsageError(f"no machine called {name!r}; there are jit and reference")
    return Machine(name, compile_machine(run_ctas), _jit_addresses, _jit_shadow_addresses, LONGEST_SLICE_INSTRUCTIONS)
